"""Simulated tables with far more columns than rows: two clusters that differ in the means of a few columns."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.typing import Array

FACTORS = 10  # common to all columns
BLOCK = 20  # columns per block with a common factor
COMMON = 0.5  # fraction of the variance due to the factors
TAILS = 3  # degrees of freedom of the heavy-tailed noise
NOISES = ("independent", "factors", "blocks", "heavy tails", "words")
WORDS = 200.0  # mean number of words per text; rates follow Zipf's law


class WideTable(NamedTuple):
    """A standardised table with its true clusters."""

    X: Array  # columns of mean 0 and mean square 1; constant ones are excluded
    y: npt.NDArray[np.int64]  # clusters 0 and 1, used for evaluation only
    informative: npt.NDArray[np.intp]  # columns whose means differ; empty if unknown


def make_wide(
    n: int, d: int, k: int, noise: str, fraction: float, shift: float, *, rng: np.random.Generator
) -> WideTable:
    """Return a simulated table; the informative columns and the signs of their shifts are drawn at random.

    Parameters
    ----------
    n, d, k : int
        Numbers of rows, columns, and columns whose means differ.
    noise : str
        One of `NOISES`: independent normal entries; half of the variance from ten factors common to all columns; half
        of it from one factor for each block of twenty columns; as the second, with Student's t with three degrees of
        freedom and variance one for the other half; or words, 0 or 1 for each text and word.
    fraction : float
        Fraction of the rows in cluster 1.
    shift : float
        Half of the distance of the means, times a number between 1/2 and 1 drawn for each column, in standard
        deviations of the noise; for words, in logarithms of the rates.
    """
    y = (rng.permutation(n) < round(fraction * n)).astype(np.int64)
    places = rng.choice(d, size=k, replace=False)
    shifts = shift * rng.uniform(0.5, 1.0, k) * rng.choice([-1.0, 1.0], size=k)
    signs = 2.0 * y - 1.0
    if noise == "words":
        rates = np.zeros((n, d))
        rates[:, places] = signs[:, None] * shifts
        X = draw_words(rates, rng)
    else:
        X = draw_noise(n, d, noise, rng)
        X[:, places] += signs[:, None] * shifts
    return keep_varying(X, y, places)


def draw_noise(n: int, d: int, noise: str, rng: np.random.Generator) -> Array:
    """Return noise with mean 0 and variance 1 in every column, given its factors' mean square."""
    if noise == "heavy tails":
        own = rng.standard_t(TAILS, size=(n, d)) / np.sqrt(TAILS / (TAILS - 2.0))
    else:
        own = rng.standard_normal((n, d))
    if noise == "independent":
        return np.asarray(own)
    if noise == "blocks":
        common = np.repeat(rng.standard_normal((n, -(-d // BLOCK))), BLOCK, axis=1)[:, :d]
    else:
        common = rng.standard_normal((n, FACTORS)) @ rng.standard_normal((FACTORS, d)) / np.sqrt(FACTORS)
    return np.asarray(np.sqrt(1.0 - COMMON) * own + np.sqrt(COMMON) * common)


def draw_words(log_rates: Array, rng: np.random.Generator) -> Array:
    """Return indicators of words in texts, by Poisson counts with Zipf's rates times exp(log_rates)."""
    n, d = log_rates.shape
    usual: Array = 1.0 / np.arange(1.0, d + 1.0)
    lengths = WORDS * rng.lognormal(0.0, 0.4, size=(n, 1))
    counts = rng.poisson(lengths * rng.permutation(usual / usual.sum()) * np.exp(log_rates))
    return np.asarray(counts > 0, dtype=float)


def keep_varying(X: Array, y: npt.ArrayLike, informative: npt.ArrayLike = ()) -> WideTable:
    """Return a standardised table without its constant columns."""
    varying = np.flatnonzero(X.std(axis=0) > 0.0)
    carried = np.flatnonzero(np.isin(varying, np.asarray(informative, dtype=np.intp)))
    return WideTable(standardize_columns(X[:, varying]), np.asarray(y, dtype=np.int64), carried)
