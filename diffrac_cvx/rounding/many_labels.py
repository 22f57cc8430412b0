"""Rounding to several labels at once, by Procrustes problems."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.deadlines import is_late
from diffrac_cvx.points.checks import Array, as_generator, as_matrix, format_indices, positive_int, warn_degenerate
from diffrac_cvx.points.linear_algebra import leading_right_vectors

MAX_PROCRUSTES_ROUNDS = 500
PROCRUSTES_RTOL = 1e-9  # relative gain at which the alternation stops
DEPENDENCE_RTOL = 1e-8  # relative pivot below which a label counts as linearly dependent
MIXTURE_FULL_SVD_SIZE = 400  # rows and columns above which only the leading singular vectors are computed
RANK_RTOL = 1e-6  # relative singular value of F below which a direction counts as missing


@dataclass(frozen=True, eq=False)
class LabelMixture:
    """Approximation of Y by a mixture of 11' and k matrices yy'.

    Attributes
    ----------
    labels : (n, k) array
        Labels in {-1, +1}, one column per label, by decreasing weight; the first point has +1.
    weights : (k + 1,) array
        a_0, ..., a_k of norm 1: Y is approximately a_0^2 11' + sum_i a_i^2 y_i y_i'.
    objective : float
        ||F R - M||_F^2 / n at the solution, with F at rank k + 1 and ||F||_F^2 = n: 0 if Y has exactly this form.
    scores : (n, k) array
        Columns of F R whose signs are the labels.
    """

    labels: Array
    weights: Array
    objective: float
    scores: Array


class Fit(NamedTuple):
    """Rotation R, the M = [a_0 1, a_1 y_1, ...] nearest to F R, and the inner product tr (F R)'M / n."""

    R: Array
    weights: Array
    signs: Array
    inner_product: float


def procrustes(F: npt.ArrayLike, k: int, *, n_init: int = 20, rng: np.random.Generator | int = 0) -> Array:
    r"""Round to k labels by the nearest mixture of 11' and k matrices yy' to Y = F F'.

    .. math::
        \min_{R^\top R = I,\ \|a\|_2 = 1,\ y_i \in \{-1, 1\}^n}\
        \|F R - [a_0 1_n, a_1 y_1, \dots, a_k y_k]\|_F^2

    Given the matrix M on the right, R = UV' of the singular value decomposition of F'M.  Given R, with F R =
    [xi_0, ..., xi_k], y_i = sign(xi_i), and a is proportional to (xi_0'1, ||xi_1||_1, ..., ||xi_k||_1).  The two steps
    alternate from random rotations of the whitened F, in which all labels have equal weight; the best fit is returned.

    Source: the lemma on rounding of section 5.3.  It has a_0 = ||xi_0||_1 and excludes a_0 from the norm of a; since
    the first column is a multiple of 1, xi_0'1 is correct in both places.

    Parameters
    ----------
    F : (n, r) array
        Factor of Y = F F'; its best rank-(k + 1) approximation is used.
    k : int
        Number of labels, at most n.
    n_init : int
        Number of random initial rotations, by default 20.
    rng : numpy.random.Generator or int
        Generator, or its seed.

    Returns
    -------
    (n, k) array
        Labels by decreasing weight; the first point has +1.

    Warns
    -----
    DegenerateDataWarning
        If the rank of F is below k, or the labels are linearly dependent.

    Raises
    ------
    DataError, ParameterError
        If F is not a finite matrix, or k, n_init or rng is invalid.
    """
    return _fit_best(F, k, n_init, rng).labels


def fit_label_mixture(
    F: npt.ArrayLike, k: int, *, n_init: int = 20, rng: np.random.Generator | int = 0
) -> LabelMixture:
    """Return the labels of `procrustes` with their weights and scores, and the distance of the mixture from Y.

    Parameters, warnings and errors are those of procrustes.
    """
    return _fit_best(F, k, n_init, rng)


def _fit_best(F: npt.ArrayLike, k: int, n_init: int, rng: np.random.Generator | int) -> LabelMixture:
    F, k, n_init = as_matrix(F, "F"), positive_int(k, "k"), positive_int(n_init, "n_init")
    if k > len(F):
        raise ParameterError(f"k = {k} is more than the {len(F)} points; reduce k")
    random = as_generator(rng)
    lead, whitened = _reduce_rank(F, k + 1)
    rank = int(np.sum(np.linalg.norm(whitened, axis=0) > 0))
    if rank < k:
        warn_degenerate(f"F has rank {rank}, less than k = {k} labels; reduce k")
    fits: list[Fit] = []
    while not fits or (len(fits) < n_init and not is_late()):
        start = np.asarray(np.linalg.qr(random.standard_normal((k + 1, k + 1)))[0])
        *_, first = procrustes_iterates(whitened, start)
        *_, last = procrustes_iterates(lead, first.R)
        fits.append(last)
    best = max(fits, key=lambda fit: fit.inner_product)
    order = 1 + np.argsort(-best.weights[1:], kind="stable")
    labels, first = best.signs[:, order], best.signs[0, order]
    _warn_if_dependent(labels)
    # ||F R - M||^2 = ||F||^2 + n ||a||^2 - 2 tr (F R)'M
    objective = float(np.sum(lead**2) / len(F) + 1.0 - 2.0 * best.inner_product)
    weights, scores = best.weights[np.append(0, order)], (lead @ best.R)[:, order]
    return LabelMixture(labels * first, weights, max(objective, 0.0), scores * first)


def _reduce_rank(F: Array, rank: int) -> tuple[Array, Array]:
    """Return the best approximation of F of this rank, (n, rank) with ||F||_F^2 = n, and its whitened form."""
    if min(F.shape) > max(MIXTURE_FULL_SVD_SIZE, 4 * rank):
        lead = F @ leading_right_vectors(F, rank).T
        s = np.linalg.norm(lead, axis=0)
        U = lead / np.maximum(s, 1e-300)
    else:
        U, s, _ = np.linalg.svd(F, full_matrices=False)
        U, s = U[:, :rank], s[:rank]
    pad = rank - len(s)
    U, s = np.pad(U, ((0, 0), (0, pad))), np.pad(s, (0, pad))
    live = s > RANK_RTOL * max(s[0], 1e-300)
    total = float(np.sum(s**2)) or 1.0
    root = len(F) ** 0.5
    return U * (s * root / total**0.5), U * np.where(live, root / max(live.sum(), 1) ** 0.5, 0.0)


def procrustes_iterates(F: Array, R: Array) -> Iterator[Fit]:
    """Yield the fits of the alternation of `procrustes` from R, each better, until it stalls."""
    n, previous = len(F), -np.inf
    for _ in range(MAX_PROCRUSTES_ROUNDS):
        rotated = F @ R
        signs = np.where(rotated >= 0.0, 1.0, -1.0)
        signs[:, 0] = 1.0
        shared = np.sum(rotated * signs, axis=0)
        if shared[0] < 0:
            signs[:, 0], shared[0] = -1.0, -shared[0]
        weights = shared / max(float(np.linalg.norm(shared)), 1e-300)
        reached = float(weights @ shared) / n
        yield Fit(R, weights, signs, reached)
        if reached <= previous * (1 + PROCRUSTES_RTOL):
            break
        previous = reached
        U, _, Vt = np.linalg.svd(F.T @ (signs * weights))
        R = U @ Vt


def _warn_if_dependent(labels: Array) -> None:
    """Warn if labels are linear combinations of others, with their indices."""
    _, R, pivots = scipy.linalg.qr(labels, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    extra = np.ones(labels.shape[1], dtype=bool)
    extra[pivots[: len(size)][size > DEPENDENCE_RTOL * size[0]]] = False
    if extra.any():
        warn_degenerate(f"the recovered labels {format_indices(extra)} are linear combinations of others; reduce k")
