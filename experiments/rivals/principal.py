"""2-means along the first principal component of standardised columns: a sparse one, or of non-normal columns."""

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, as_data, as_generator, positive_int
from diffrac_cvx.points.linear_algebra import is_above_rounding, standardize_columns
from diffrac_cvx.rounding.two_clusters import kmeans_1d
from experiments.rivals.selection import Selection, as_bound, grid_of_bounds, ranked_columns, sparse_weights

CV_FOLDS = 5
LOADINGS_MAX_ITER = 20  # alternations
LOADINGS_TOL = 1e-5  # change of the loadings, of norm 1
NULL_COLUMNS = 100_000  # simulated normal columns for the p-values
NULL_BLOCK_SIZE = 10_000  # columns simulated at a time


def sparse_component(X: npt.ArrayLike, *, bound: float | None = None, rng: np.random.Generator | int) -> Selection:
    r"""Return the labels of exact 2-means of a sparse principal component, and the columns with nonzero loadings.

    For columns at unit variance, the penalised matrix decomposition of rank one maximises :math:`u^\top X v` over
    :math:`\|u\|_2 \le 1`, :math:`\|v\|_2 \le 1` and :math:`\|v\|_1 \le s` by alternation, from the first singular
    vectors.

    If the bound is None, five-fold cross-validation selects one of ten between 1.2 and :math:`0.9 \sqrt d`: a fifth of
    the entries is held out, set to the mean 0, and predicted by the decomposition of the others.  O(n d) per
    alternation.

    Source: Witten, Tibshirani and Hastie, "A penalized matrix decomposition", Biostatistics 2009, sections 2.3 and 3.2.

    Parameters, except n_init, and errors are those of sparse_kmeans; the bound s is on the l1 norm of the loadings v.
    """
    data, random = standardize_columns(as_data(X)), as_generator(rng)
    fixed_bound = None if bound is None else as_bound(bound)
    if not data.any():  # all points are equal
        return Selection(np.ones(len(data)), np.arange(0))
    s = _cross_validate(data, random) if fixed_bound is None else fixed_bound
    v = sparse_loadings(data, s, leading_loadings(data))
    return Selection(kmeans_1d(data @ v), ranked_columns(v))


def leading_scores(data: Array, count: int) -> Array:
    """Return the first left singular vectors, (n, count), or fewer if the rank of the data, not 0, is lower."""
    U, values, _ = scipy.linalg.svd(data, full_matrices=False)
    return np.asarray(U[:, is_above_rounding(values, data.shape)][:, :count])


def leading_loadings(data: Array) -> Array:
    """Return the first right singular vector, (d,)."""
    v = data.T @ leading_scores(data, 1)[:, 0]
    return np.asarray(v / np.linalg.norm(v))


def sparse_loadings(data: Array, bound: float, v: Array) -> Array:
    """Return the loadings v, (d,), of the penalised matrix decomposition of rank one, starting from given loadings."""
    for _ in range(LOADINGS_MAX_ITER):
        before, v = v, sparse_weights(data.T @ (data @ v), bound)
        if np.linalg.norm(v - before) <= LOADINGS_TOL:
            break
    return v


def _cross_validate(data: Array, random: np.random.Generator) -> float:
    """Return the bound of the grid whose decomposition best predicts held-out entries."""
    bounds = grid_of_bounds(data.shape[1])
    fold = random.integers(CV_FOLDS, size=data.shape)
    errors = np.zeros(len(bounds))
    for held_out in ((fold == i).astype(float) for i in range(CV_FOLDS)):
        unseen = data * held_out
        seen = data - unseen
        start = leading_loadings(seen)
        for i, bound in enumerate(bounds):
            v = sparse_loadings(seen, bound, start)
            scores = seen @ v  # squared error of the rank-one approximation at the held-out entries, minus a constant
            errors[i] += scores**2 @ (held_out @ v**2) - 2 * scores @ (unseen @ v)
    return float(bounds[np.argmin(errors)])


def ifpca(X: npt.ArrayLike, *, features: int | None = None, rng: np.random.Generator | int) -> Selection:
    r"""Return the labels of influential-features PCA and the selected columns.

    The score of a standardised column is :math:`\sqrt n` times the Kolmogorov-Smirnov distance of its values to the
    normal distribution.  The scores are shifted and scaled to their mean and variance under the null that all columns
    are normal ("Efron's null correction"); the p-values come from a simulation of this null.  With
    :math:`\pi_{(1)} \le \dots \le \pi_{(d)}`, the selected columns are the first j with the largest higher criticism

    .. math::
        \mathrm{HC}_j = \frac{\sqrt d\, (j/d - \pi_{(j)})}{\sqrt{\max(\sqrt n\, (j/d - \pi_{(j)}), 0) + j/d}}

    among the j up to d/2 with :math:`\pi_{(j)} > \log(d)/d`, or half of the columns if there is none.  The labels are
    those of 2-means of the first left singular vector of the selected columns, with entries clipped at
    :math:`\pm \log(d)/\sqrt n`.  O(n d), plus about a second for the null.

    Source: Jin and Wang, "Influential features PCA for high dimensional clustering", Annals of Statistics 2016, with
    K = 2.

    Parameters
    ----------
    X : (n, d) array
        Data; columns are standardised internally.
    features : int, optional
        Number of columns to select, those of largest score; by default, higher criticism determines it.
    rng : numpy.random.Generator or int
        Random generator of the simulated null, or its seed.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    """
    data, random = standardize_columns(as_data(X)), as_generator(rng)
    n = len(data)
    varying = np.flatnonzero(data.any(axis=0))
    d = len(varying)
    count = None if features is None else positive_int(features, "features")
    if count is not None and count > data.shape[1]:
        raise ParameterError(f"features = {count} exceeds the {data.shape[1]} columns of X. Choose a smaller number.")
    if d == 0:  # all points are equal
        return Selection(np.ones(n), varying)
    scores = normal_distance(data[:, varying])
    if count is None:
        count = higher_criticism(np.sort(null_p_values(scores, n, random)), n)
    selected = varying[np.argsort(-scores, kind="stable")[:count]]
    u = leading_scores(data[:, selected], 1)[:, 0]
    cut = np.log(d) / n**0.5
    return Selection(kmeans_1d(np.clip(u, -cut, cut) if d > 1 else u), selected)


def normal_distance(columns: Array) -> Array:
    """Return sqrt(n) times the Kolmogorov-Smirnov distance of each column to the standard normal, (d,)."""
    n = len(columns)
    expected = scipy.special.ndtr(np.sort(columns, axis=0))
    ranks = np.arange(n)[:, None] / n
    return np.asarray(np.maximum(expected - ranks, ranks + 1 / n - expected).max(axis=0) * n**0.5)


def null_p_values(scores: Array, n: int, random: np.random.Generator) -> Array:
    """Return the p-values of scores, (d,), after scaling to the mean and variance of scores of normal columns."""
    blocks = (
        standardize_columns(random.standard_normal((n, NULL_BLOCK_SIZE)))
        for _ in range(NULL_COLUMNS // NULL_BLOCK_SIZE)
    )
    null = np.sort(np.concatenate([normal_distance(block) for block in blocks]))
    spread = float(scores.std()) or 1.0
    corrected = (scores - scores.mean()) / spread * null.std() + null.mean()
    return np.asarray(1.0 - np.searchsorted(null, corrected, side="right") / NULL_COLUMNS)


def higher_criticism(p_values: Array, n: int) -> int:
    """Return the number of columns to select, at least one, from their sorted p-values, (d,), and n points."""
    d = len(p_values)
    fraction = np.arange(1, d + 1) / d
    excess = fraction - p_values
    criticism = d**0.5 * excess / np.sqrt(np.maximum(n**0.5 * excess, 0.0) + fraction)
    allowed = (p_values > np.log(d) / d) & (np.arange(1, d + 1) <= d / 2)
    if not allowed.any():
        return max(d // 2, 1)
    return int(np.argmax(np.where(allowed, criticism, -np.inf))) + 1
