"""Simulated problems of the experiments: families by difficulty, benchmark, noiseless labels, wide and large tables.

The seed of a problem depends only on its name and size.
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.stats

import diffrac_cvx as dc
from diffrac_cvx.comparison.instances import Instance
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.typing import Array

Rng = np.random.Generator


# Families of data that are easy or hard to solve

LEVELS = 5  # of a categorical column
OUTLIER = 1e6


class Family(NamedTuple):
    """Generator of the data, nu, the ridge a and the weight lambda = c^2."""

    make: Callable[[Rng, int, int], Array]
    nu: float = 1.0
    a: float = 0.0
    lam: float = 0.01


def one_hot(rng: Rng, n: int, d: int) -> Array:
    """Indicators of categorical columns with five levels, so that columns are collinear."""
    groups = [rng.integers(LEVELS, size=n)[:, None] == np.arange(LEVELS) for _ in range(-(-d // LEVELS))]
    return np.hstack(groups)[:, :d].astype(float)


def outliers(rng: Rng, n: int, d: int) -> Array:
    """Normal entries, with one row in twenty a million times as large."""
    return rng.standard_normal((n, d)) * np.where(np.arange(n) < max(n // 20, 1), OUTLIER, 1.0)[:, None]


def outlying_entries(rng: Rng, n: int, d: int) -> Array:
    """Normal entries, with one in a hundred a million times as large."""
    X = rng.standard_normal((n, d))
    return np.where(rng.random((n, d)) < 0.01, OUTLIER * X, X)


def autoregressive(rng: Rng, n: int, d: int, rho: float = 0.98) -> Array:
    """Normal columns without clusters, with autoregressive correlation rho."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + (1.0 - rho**2) ** 0.5 * X[:, j]
    return X


PLANTED = Family(lambda rng, n, d: dc.datasets.make_planted(n, d, min(2, d), noise=0.3, rng=rng).X)
GAUSSIAN = Family(lambda rng, n, d: rng.standard_normal((n, d)))
FAMILIES = {
    "planted": PLANTED,
    "planted, no penalty": PLANTED._replace(lam=0.0),
    "noise": GAUSSIAN,
    "one-hot": Family(one_hot),
    "one-hot, no penalty": Family(one_hot, lam=0.0),
    "heavy tails": Family(lambda rng, n, d: rng.standard_t(1.5, (n, d))),  # no variance
    "outlying rows": Family(outliers),
    "outlying entries": Family(outlying_entries),
    "outlying rows, no penalty": Family(outliers, lam=0.0),
    "correlated": Family(autoregressive),
    "correlated, ridge": Family(autoregressive, a=0.1, lam=1e-3),
    "lambda tiny": GAUSSIAN._replace(lam=1e-8),
    "lambda large": PLANTED._replace(lam=1.0, a=0.1),
    "lambda huge": PLANTED._replace(lam=1e3),
    "nu near 0": PLANTED._replace(nu=1e-4),
    "nu near 1": PLANTED._replace(nu=1.0 - 1e-4),
}


def make_instance(family: str, n: int, d: int) -> Instance:
    """Return the instance of a family at a size; the seed depends only on these."""
    make, nu, a, lam = FAMILIES[family]
    rng = np.random.default_rng([2017, 4, list(FAMILIES).index(family), n, d])
    return Instance(make(rng, n, d), nu, dc.Penalty(a=a, c=lam**0.5))


# Benchmark: planted (from few interacting features to many rows), real, and one dense instance

SPARSITY, NOISE = 10, 0.3  # nonzeros of the planted direction; standard deviation of each cluster (centres at -1 and 1)
CORRELATION = 0.7  # of neighbouring columns of the dense instance, which has no clusters
LIMIT, MEDIUM, LONG = 15.0, 40.0, 60.0  # seconds per solve, the same for every method


class TimedInstance(NamedTuple):
    """Data by name and size, the l1 weight lambda, and the time limit of a solve in seconds."""

    data: str
    n: int
    d: int
    weight: str
    seconds: float = LIMIT

    @property
    def name(self) -> str:
        """Name of the instance in the table."""
        return f"{self.data} {self.n} x {self.d}, {self.weight}"

    @property
    def lam(self) -> float:
        """Lambda, from a number or a multiple of 1/sqrt(n)."""
        factor, _, root = self.weight.partition("/")
        return float(factor) / (self.n**0.5 if root else 1.0)


# At lambda = 0 the optimum of a1a is 2e-6 and that of corel5k 2e-12: a relative gap is not attainable there.
FULL = (
    TimedInstance("planted", 500, 300, "1/sqrt(n)"),
    TimedInstance("planted", 1500, 400, "0.3/sqrt(n)"),
    TimedInstance("planted", 2000, 1000, "1/sqrt(n)"),
    TimedInstance("planted", 500, 5000, "1/sqrt(n)"),
    TimedInstance("planted", 100, 10_000, "1/sqrt(n)", LONG),
    TimedInstance("planted", 500, 20_000, "1/sqrt(n)", LONG),
    TimedInstance("planted", 1500, 400, "0.03/sqrt(n)"),
    TimedInstance("planted", 2000, 200, "0.001"),
    TimedInstance("planted", 2000, 1000, "0.03/sqrt(n)", LONG),
    TimedInstance("planted", 1000, 50, "0", MEDIUM),
    TimedInstance("planted", 1000, 50, "0.01", MEDIUM),
    TimedInstance("planted", 10_000, 50, "0.001"),
    TimedInstance("planted", 100_000, 50, "0.001"),
    TimedInstance("planted", 1_000_000, 50, "0.001", LONG),
    TimedInstance("planted", 1_000_000, 50, "0", LONG),
    TimedInstance("breast_cancer", 683, 10, "0"),
    TimedInstance("breast_cancer", 683, 10, "0.01"),
    TimedInstance("a1a", 1605, 113, "0.01"),
    TimedInstance("w1a", 2270, 290, "0"),
    TimedInstance("w1a", 2270, 290, "0.01"),
    TimedInstance("corel5k", 5000, 499, "0.01"),
    TimedInstance("dense", 1000, 40, "0"),
    TimedInstance("dense", 1000, 40, "0.001"),
)
SMOKE = (
    TimedInstance("planted", 80, 6, "1/sqrt(n)", 2.0),
    TimedInstance("breast_cancer", 683, 10, "0", 2.0),
)
GRIDS = {"full": FULL, "smoke": SMOKE}
INSTANCES = {instance.name: instance for instance in (*FULL, *SMOKE)}


@lru_cache(maxsize=1)
def timed_data_of(name: str) -> Array:
    """Return X of an instance with columns of mean 0 and variance 1; the seed depends only on its size."""
    data, n, d, *_ = INSTANCES[name]
    rng = np.random.default_rng([2017, 7, n, d])
    if data == "planted":
        return dc.datasets.make_planted(n, d, min(SPARSITY, d), noise=NOISE, rng=rng).X
    if data == "dense":
        return np.asarray(standardize_columns(autoregressive(rng, n, d, CORRELATION)))
    return dc.datasets.load(data, scaling="standardize")[0]


# Noiseless labels


def noiseless_data(law: str, n: int, d: int, replication: int) -> tuple[Array, Array]:
    """Return X and y, the first n points of one stream: balanced after every second point, the first column is y.

    The other columns have mean 0 and covariance I and are independent of y; "student" is the multivariate t law with 5
    degrees of freedom, spherical, of kurtosis 9.  The stream depends on (law, d, replication) alone.
    """
    seeds = np.random.SeedSequence([2017, 11, ("gaussian", "student").index(law), d, replication]).spawn(3)
    signs, noise, scale = map(np.random.default_rng, seeds)
    first = signs.choice([-1.0, 1.0], n // 2)
    y = np.column_stack([first, -first]).ravel()
    columns = noise.standard_normal((n, d - 1))
    if law == "student":
        columns *= np.sqrt(3.0 / scale.chisquare(5, n))[:, None]
    return np.column_stack([y, columns]), y


def mixed(X: Array, replication: int) -> Array:
    """Return the data after a random rotation, the same for every n of a replication."""
    rng = np.random.default_rng([2017, 12, X.shape[1], replication])
    return X @ scipy.stats.ortho_group.rvs(X.shape[1], random_state=rng)


# Tables with far more columns than rows: two clusters that differ in the means of a few columns

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


# Large tables, created in chunks: a file of many rows, word counts, and chunks created by workers

CHUNK = 500_000  # rows created at a time
CLUSTER_NOISE = 0.25  # in the column of the labels
FREQUENT = 20.0  # added to the rank of a word in Zipf's law
TOLD_APART, MORE_OFTEN = 200, 6.0  # words that differ between the two topics, and the ratio of their frequencies
PARTNERS, TOGETHER = 200, 0.8  # words accompanied by a rare one, and how often


def rotation(d: int) -> npt.NDArray[np.float32]:
    """Return a rotation, (d, d)."""
    return np.linalg.qr(np.random.default_rng([2017, 14, d]).standard_normal((d, d)))[0].astype(np.float32)


def make_rows(seed: tuple[int, ...], rows: int, d: int) -> npt.NDArray[np.float32]:
    """Return rows (rows, d) of a rotated table, one column of which has two clusters and the others noise."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((rows, d), dtype=np.float32)
    Z[:, 0] = np.where(rng.random(rows) < 0.5, 1.0, -1.0) + CLUSTER_NOISE * Z[:, 0]
    return Z @ rotation(d)


def write_rows(path: Path, n: int, d: int) -> None:
    """Write a table (n, d) of single precision to a .npy file, one chunk at a time."""
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    for start in range(0, n, CHUNK):
        rows = min(CHUNK, n - start)
        file[start : start + rows] = make_rows((2017, 14, start), rows, d)
    file.flush()


def make_words(n: int, d: int) -> scipy.sparse.csr_array:
    """Return log(1 + counts) of d words in n short texts of two topics, ten to twenty words each.

    Word frequencies follow Zipf's law.  Some words are more frequent in one topic, some are accompanied by a rare one.
    """
    rng = np.random.default_rng([2017, 14, n, d])
    frequency = 1.0 / (np.arange(d) + FREQUENT)
    words = rng.permutation(d)[:TOLD_APART].reshape(2, -1)
    topic, length = rng.random(n) < 0.5, rng.poisson(10, n)
    rows, columns = [], []
    for label, chosen in enumerate(words):
        probability = frequency.copy()
        probability[chosen] *= MORE_OFTEN
        texts = np.flatnonzero(topic == bool(label))
        rows.append(np.repeat(texts, length[texts]))
        columns.append(rng.choice(d, len(rows[-1]), p=probability / probability.sum()))
    row, column = np.concatenate(rows), np.concatenate(columns)
    partner = rng.permutation(np.arange(d // 5, d))[:PARTNERS]
    brings = (column < len(partner)) & (rng.random(len(column)) < TOGETHER)
    row, column = np.append(row, row[brings]), np.append(column, partner[column[brings]])
    counts = scipy.sparse.csr_array((np.ones(len(row)), (row, column)), shape=(n, d))
    counts.sum_duplicates()
    counts.data = np.log1p(counts.data)
    return counts
