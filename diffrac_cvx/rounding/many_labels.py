"""From a factor F of the labels' matrix to many labels at once, by alternating Procrustes problems."""

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.linalg

from diffrac_cvx.errors import DegenerateDataWarning
from diffrac_cvx.inputs import Array, as_generator, as_matrix, list_some, positive_int

MOST_ROUNDS = 500
PROGRESS = 1e-9  # relative gain below which the alternation has come to its end
DEPENDENT = 1e-8  # singular value of the labels, relative, below which they count as linearly dependent
NULL = 1e-6  # singular value of F, relative, below which a direction counts as missing


class LabelMatrix(np.ndarray[Any, np.dtype[np.float64]]):
    """Labels (n, k) in {-1, +1}, one column a label, with how they were found.

    Attributes
    ----------
    weights : (k + 1,) array
        a_0, ..., a_k of norm 1: Y is about a_0^2 11' + sum_i a_i^2 y_i y_i'.
    objective : float
        ||F R - M||_F^2 / n that was reached, F with unit rows at rank k + 1: 0 where Y has exactly that form.
    """

    weights: Array
    objective: float

    def __new__(cls, labels: Array, weights: Array, objective: float) -> Self:
        """Return the labels with their attributes."""
        found = np.asarray(labels, dtype=np.float64).view(cls)
        found.weights, found.objective = weights, objective
        return found

    def __array_finalize__(self, source: object) -> None:
        """Keep the attributes in views."""
        self.weights = getattr(source, "weights", np.empty(0))
        self.objective = getattr(source, "objective", np.nan)

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the attributes in pickles."""
        return LabelMatrix, (np.asarray(self), self.weights, self.objective)


class Mixture(NamedTuple):
    """Labels as procrustes returns them, with the scores (n, k), columns of F R, that they are the signs of."""

    labels: LabelMatrix
    scores: Array


class Matched(NamedTuple):
    """A rotation R, and the M = [a_0 1, a_1 y_1, ...] nearest to F R, by what the two have in common."""

    R: Array
    weights: Array
    signs: Array
    common: float


def procrustes(F: npt.ArrayLike, k: int, *, restarts: int = 20, rng: np.random.Generator | int = 0) -> LabelMatrix:
    r"""Round to k labels: the mixture of 11' and k matrices yy' that is nearest to Y = F F'.

    .. math::
        \min_{R^\top R = I,\ \|a\|_2 = 1,\ y_i \in \{-1, 1\}^n}\
        \|F R - [a_0 1_n, a_1 y_1, \dots, a_k y_k]\|_F^2

    Given the matrix M on the right, R = UV' of the singular value decomposition of F'M.  Given R, with F R =
    [xi_0, ..., xi_k], y_i = sign(xi_i), and a is proportional to (xi_0'1, ||xi_1||_1, ..., ||xi_k||_1).  The two steps
    alternate from random rotations of the whitened F, where every label weighs the same; the best end is kept.

    Source: the lemma on rounding of section 5.3.  Its a_0 is ||xi_0||_1 and missing from the norm: the first column is
    a multiple of 1, so xi_0'1 is right, in both.

    Parameters
    ----------
    F : (n, r) array
        Factor of Y = F F'; its best approximation of rank k + 1 is used.
    k : int
        Number of labels.
    restarts : int
        Number of random rotations.
    rng : numpy.random.Generator or int
        Generator, or its seed.

    Returns
    -------
    LabelMatrix
        The (n, k) labels, heaviest first, each with its first point at +1; with ``weights`` and ``objective``.

    Warns
    -----
    DegenerateDataWarning
        If the rank of F is below k, or the labels found are linearly dependent.

    Raises
    ------
    DataError, ParameterError
        If F is not a finite matrix, or k, restarts or rng is not valid.
    """
    return nearest_mixture(F, k, restarts, rng).labels


def nearest_mixture(F: npt.ArrayLike, k: int, restarts: int, rng: np.random.Generator | int) -> Mixture:
    """Return what procrustes returns, with the scores of every label."""
    F, k, restarts = as_matrix(F, "F"), positive_int(k, "k"), positive_int(restarts, "restarts")
    random = as_generator(rng)
    lead, whitened = leading(F, k + 1)
    rank = int(np.sum(np.linalg.norm(whitened, axis=0) > 0))
    if rank < k:
        warnings.warn(f"F has rank {rank}, less than k = {k} labels", DegenerateDataWarning, stacklevel=3)
    best = max((matched(lead, whitened, random) for _ in range(restarts)), key=lambda end: end.common)
    order = 1 + np.argsort(-best.weights[1:], kind="stable")
    labels, first = best.signs[:, order], best.signs[0, order]
    warn_if_dependent(labels)
    weights = np.concatenate([best.weights[:1], best.weights[order]])
    # ||F R - M||^2 = ||F||^2 + n ||a||^2 - 2 tr (F R)'M
    objective = float(np.sum(lead**2) / len(F) + 1.0 - 2.0 * best.common)
    return Mixture(LabelMatrix(labels * first, weights, max(objective, 0.0)), (lead @ best.R)[:, order] * first)


def leading(F: Array, columns: int) -> tuple[Array, Array]:
    """Return the best approximation of F by that many columns, at unit mean square, and the same with equal ones."""
    U, s, _ = np.linalg.svd(F, full_matrices=False)
    U, s = U[:, :columns], s[:columns]
    pad = columns - len(s)
    U, s = np.pad(U, ((0, 0), (0, pad))), np.pad(s, (0, pad))
    live = s > NULL * max(s[0], 1e-300)
    total = float(np.sum(s**2)) or 1.0
    root = len(F) ** 0.5
    return U * (s * root / total**0.5), U * np.where(live, root / max(live.sum(), 1) ** 0.5, 0.0)


def matched(lead: Array, whitened: Array, random: np.random.Generator) -> Matched:
    """Return the end of the alternation from a random rotation: on the whitened factor first, then on F itself."""
    size = lead.shape[1]
    start = np.asarray(np.linalg.qr(random.standard_normal((size, size)))[0])
    return alternated(lead, alternated(whitened, start).R)


def alternated(F: Array, R: Array) -> Matched:
    """Alternate the two steps from R until they gain nothing; the gain of each is never negative."""
    n, common = len(F), -np.inf
    for _ in range(MOST_ROUNDS):
        rotated = F @ R
        signs = np.where(rotated >= 0.0, 1.0, -1.0)
        signs[:, 0] = 1.0
        shared = np.sum(rotated * signs, axis=0)
        if shared[0] < 0:
            signs[:, 0], shared[0] = -1.0, -shared[0]
        weights = shared / max(float(np.linalg.norm(shared)), 1e-300)
        reached = float(weights @ shared) / n
        if reached <= common * (1 + PROGRESS):
            break
        common = reached
        U, _, Vt = np.linalg.svd(F.T @ (signs * weights))
        R = U @ Vt
    return Matched(R, weights, signs, reached)


def warn_if_dependent(labels: Array) -> None:
    """Warn of labels that are combinations of others, by number."""
    _, R, pivots = scipy.linalg.qr(labels, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    extra = np.ones(labels.shape[1], dtype=bool)
    extra[pivots[: len(size)][size > DEPENDENT * size[0]]] = False
    if extra.any():
        warnings.warn(
            f"the recovered labels {list_some(extra)} are linear combinations of the others",
            DegenerateDataWarning,
            stacklevel=4,
        )
