"""Influential-features PCA of Jin and Wang: columns far from normal, then their first left singular vector."""

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from diffrac_cvx.baselines.principal import leading_scores
from diffrac_cvx.baselines.selection import Selection
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, as_data, as_generator, positive_int
from diffrac_cvx.points.linear_algebra import standardise
from diffrac_cvx.rounding.two_clusters import two_means

NULL = 100_000  # columns of normal numbers that p-values are taken from
BLOCK = 10_000  # of them at a time


def ifpca(X: npt.ArrayLike, *, features: int | None = None, rng: np.random.Generator | int) -> Array:
    r"""Return the labels of influential-features PCA, the first point at +1.

    Each standardised column has the Kolmogorov-Smirnov distance of its values to the normal distribution as its score,
    times :math:`\sqrt n`.  The scores are brought to the mean and variance that they have where all columns are normal
    ("Efron's null correction"); p-values are those under that null, simulated.  With
    :math:`\pi_{(1)} \le \dots \le \pi_{(d)}` the columns kept are the first j with the largest higher criticism

    .. math::
        \mathrm{HC}_j = \frac{\sqrt d\, (j/d - \pi_{(j)})}{\sqrt{\max(\sqrt n\, (j/d - \pi_{(j)}), 0) + j/d}}

    among those j up to d/2 with :math:`\pi_{(j)} > \log(d)/d`; half of the columns, if there is none.  The labels are
    those of 2-means of the first left singular vector of the columns kept, its entries cut off at
    :math:`\pm \log(d)/\sqrt n`.  O(n d), and about a second for the null.

    Source: Jin and Wang, "Influential features PCA for high dimensional clustering", Annals of Statistics 2016, with
    K = 2.

    Parameters
    ----------
    X : (n, d) array
        Data; brought to unit variance here.
    features : int, optional
        Number of columns to keep, those of the largest scores, instead of higher criticism.
    rng : Generator or int
        Of the simulated null, or its seed.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    """
    return _select(standardise(as_data(X)).X, features, rng).labels


def select_ifpca(X: npt.ArrayLike, *, features: int | None = None, rng: np.random.Generator | int) -> Selection:
    """Return the labels of influential-features PCA and the columns kept.

    Parameters and errors are those of ifpca.
    """
    return _select(standardise(as_data(X)).X, features, rng)


def _select(data: Array, features: int | None, rng: np.random.Generator | int) -> Selection:
    n, random = len(data), as_generator(rng)
    varying = np.flatnonzero(data.any(axis=0))
    d = len(varying)
    count = None if features is None else positive_int(features, "features")
    if count is not None and count > data.shape[1]:
        raise ParameterError(f"features = {count} is more than the {data.shape[1]} columns of X")
    if d == 0:  # all points are equal
        return Selection(np.ones(n), varying)
    scores = normal_distance(data[:, varying])
    if count is None:
        count = higher_criticism(np.sort(null_p_values(scores, n, random)), n)
    kept = varying[np.argsort(-scores, kind="stable")[:count]]
    u = leading_scores(data[:, kept], 1)[:, 0]
    cut = np.log(d) / n**0.5
    return Selection(two_means(np.clip(u, -cut, cut) if d > 1 else u), kept)


def normal_distance(columns: Array) -> Array:
    """Return sqrt(n) times the Kolmogorov-Smirnov distance of each standardised column to the normal, (d,)."""
    n = len(columns)
    expected = ndtr(np.sort(columns, axis=0))
    ranks = np.arange(n)[:, None] / n
    return np.asarray(np.maximum(expected - ranks, ranks + 1 / n - expected).max(axis=0) * n**0.5)


def null_p_values(scores: Array, n: int, random: np.random.Generator) -> Array:
    """Return the p-values of scores, brought to the mean and variance of scores of normal columns, (d,)."""
    blocks = (standardise(random.standard_normal((n, BLOCK))).X for _ in range(NULL // BLOCK))
    null = np.sort(np.concatenate([normal_distance(block) for block in blocks]))
    spread = float(scores.std()) or 1.0
    corrected = (scores - scores.mean()) / spread * null.std() + null.mean()
    return np.asarray(1.0 - np.searchsorted(null, corrected, side="right") / NULL)


def higher_criticism(p_values: Array, n: int) -> int:
    """Return how many of the sorted p-values, (d,), of columns of n points are kept; at least one."""
    d = len(p_values)
    share = np.arange(1, d + 1) / d
    excess = share - p_values
    criticism = d**0.5 * excess / np.sqrt(np.maximum(n**0.5 * excess, 0.0) + share)
    allowed = (p_values > np.log(d) / d) & (np.arange(1, d + 1) <= d / 2)
    if not allowed.any():
        return max(d // 2, 1)
    return int(np.argmax(np.where(allowed, criticism, -np.inf))) + 1
