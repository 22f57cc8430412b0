"""2-means along the first principal component of standardised columns, of all columns or of few."""

import numpy as np
import numpy.typing as npt
import scipy.linalg

from diffrac_cvx.baselines.selection import Selection, as_bound, grid_of_bounds, ranked_columns, sparse_weights
from diffrac_cvx.points.checks import Array, as_data, as_generator
from diffrac_cvx.points.linear_algebra import is_above_rounding, standardise
from diffrac_cvx.rounding.two_clusters import two_means

FOLDS = 5
ROUNDS = 20  # of turns
SETTLED = 1e-5  # change of the loadings, of norm 1


def first_component(X: npt.ArrayLike) -> Array:
    """Return the labels of exact 2-means of the first principal component, columns at unit variance, the first at +1.

    O(n d min(n, d)).

    Parameters
    ----------
    X : (n, d) array
        Data; brought to unit variance here.

    Raises
    ------
    DataError
        If X cannot be used as given.
    """
    data = standardise(as_data(X)).X
    return two_means(leading_scores(data, 1)[:, 0]) if data.any() else np.ones(len(data))


def sparse_component(X: npt.ArrayLike, *, bound: float | None = None, rng: np.random.Generator | int) -> Array:
    r"""Return the labels of exact 2-means of a sparse principal component, columns at unit variance, the first at +1.

    The penalised matrix decomposition of rank one maximises :math:`u^\top X v` over :math:`\|u\|_2 \le 1`,
    :math:`\|v\|_2 \le 1` and :math:`\|v\|_1 \le s` by turns, from the first singular vectors.

    If the bound is None, it is the one of ten between 1.2 and :math:`0.9 \sqrt d` with the least error of five-fold
    cross-validation: a fifth of the entries is left out, set to the mean 0, and predicted by the decomposition of the
    others.  O(n d) a turn.

    Source: Witten, Tibshirani and Hastie, "A penalized matrix decomposition", Biostatistics 2009, sections 2.3 and 3.2.

    Parameters, without restarts, and errors are those of sparse_kmeans; the bound s is on the loadings v.
    """
    return _select(standardise(as_data(X)).X, bound, rng).labels


def select_sparse_component(
    X: npt.ArrayLike, *, bound: float | None = None, rng: np.random.Generator | int
) -> Selection:
    """Return the labels of 2-means of a sparse principal component and the columns with a loading.

    Parameters and errors are those of sparse_component.
    """
    return _select(standardise(as_data(X)).X, bound, rng)


def _select(data: Array, bound: float | None, rng: np.random.Generator | int) -> Selection:
    given, random = None if bound is None else as_bound(bound), as_generator(rng)
    if not data.any():  # all points are equal
        return Selection(np.ones(len(data)), np.arange(0))
    v = sparse_loadings(data, _cross_validate(data, random) if given is None else given, leading_loadings(data))
    return Selection(two_means(data @ v), ranked_columns(v))


def leading_scores(data: Array, count: int) -> Array:
    """Return the first left singular vectors, (n, count), fewer where the rank of the data, not 0, is less."""
    U, values, _ = scipy.linalg.svd(data, full_matrices=False)
    return np.asarray(U[:, is_above_rounding(values, data.shape)][:, :count])


def leading_loadings(data: Array) -> Array:
    """Return the first right singular vector, (d,)."""
    v = data.T @ leading_scores(data, 1)[:, 0]
    return np.asarray(v / np.linalg.norm(v))


def sparse_loadings(data: Array, bound: float, v: Array) -> Array:
    """Return the loadings v, (d,), of the penalised matrix decomposition of rank one, from given ones."""
    for _ in range(ROUNDS):
        before, v = v, sparse_weights(data.T @ (data @ v), bound)
        if np.linalg.norm(v - before) <= SETTLED:
            break
    return v


def _cross_validate(data: Array, random: np.random.Generator) -> float:
    """Return the bound of the grid whose decomposition best predicts entries that are left out."""
    bounds = grid_of_bounds(data.shape[1])
    fold = random.integers(FOLDS, size=data.shape)
    errors = np.zeros(len(bounds))
    for left_out in ((fold == i).astype(float) for i in range(FOLDS)):
        unseen = data * left_out
        seen = data - unseen
        start = leading_loadings(seen)
        errors += [_error_of(seen, unseen, left_out, sparse_loadings(seen, bound, start)) for bound in bounds]
    return float(bounds[np.argmin(errors)])


def _error_of(seen: Array, unseen: Array, left_out: Array, v: Array) -> float:
    """Return the squared error of the rank-one approximation of the entries seen at those left out, less a constant."""
    scores = seen @ v
    return float(scores**2 @ (left_out @ v**2) - 2 * scores @ (unseen @ v))
