"""Rounding to several labels at once, by Procrustes problems."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.deadlines import is_late
from diffrac_cvx.points.checks import (
    Array,
    as_generator,
    as_matrix,
    normalize_weights,
    positive_int,
    repetitions,
    warn_degenerate,
)
from diffrac_cvx.points.linear_algebra import leading_right_vectors
from diffrac_cvx.rounding.two_clusters import FULL_SVD_SIZE

MAX_PROCRUSTES_ROUNDS = 500
PROCRUSTES_RTOL = 1e-9  # relative gain at which the alternation stops
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
        ||F R - M||_F^2 / n at the solution, with F at rank k + 1 and ||F||_F^2 = n: 0 if Y has exactly this form.  Sums
        over rows are weighted if there are sample weights.
    scores : (n, k) array
        Columns of F R whose signs are the labels.
    """

    labels: Array
    weights: Array
    objective: float
    scores: Array


class Fit(NamedTuple):
    """Rotation R, the M = [a_0 1, a_1 y_1, ...] nearest to F R, and the inner product tr (F R)'M / n, weighted."""

    R: Array
    weights: Array
    signs: Array
    inner_product: float


def procrustes(
    F: npt.ArrayLike,
    k: int,
    *,
    n_init: int = 20,
    rng: np.random.Generator | int = 0,
    sample_weight: npt.ArrayLike | None = None,
) -> Array:
    r"""Round to k labels by the nearest mixture of 11' and k matrices yy' to Y = F F'.

    .. math::
        \min_{R^\top R = I,\ \|a\|_2 = 1,\ y_i \in \{-1, 1\}^n}\
        \|F R - [a_0 1_n, a_1 y_1, \dots, a_k y_k]\|_F^2

    Given the matrix M on the right, R = UV' of the singular value decomposition of F'M.  Given R, with F R =
    [xi_0, ..., xi_k], y_i = sign(xi_i), and a is proportional to (xi_0'1, ||xi_1||_1, ..., ||xi_k||_1).  The two steps
    alternate from random rotations of the whitened F, in which all labels have equal weight; the best fit is returned.
    With sample weights all sums over rows are weighted, and the singular vectors from which the rotations start have
    fixed signs, so that a row of weight 2 counts as two equal rows, each of weight 1.

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
    sample_weight : (n,) array, optional
        Weights of the points, >= 0, of any scale; equal by default.

    Returns
    -------
    (n, k) array
        Labels by decreasing weight; the first point has +1.

    Warns
    -----
    DegenerateDataWarning
        If the rank of F is below k.

    Raises
    ------
    DataError, ParameterError
        If F is not a finite matrix, or k, n_init, rng or sample_weight is invalid.
    """
    return fit_label_mixture(F, k, n_init=n_init, rng=rng, sample_weight=sample_weight).labels


def fit_label_mixture(
    F: npt.ArrayLike,
    k: int,
    *,
    n_init: int = 20,
    rng: np.random.Generator | int = 0,
    sample_weight: npt.ArrayLike | None = None,
) -> LabelMixture:
    """Return the labels of `procrustes` with their weights and scores, and the distance of the mixture from Y.

    Parameters, warnings and errors are those of procrustes.
    """
    F, k, n_init = as_matrix(F, "F"), positive_int(k, "k"), repetitions(n_init, "n_init")
    if k > len(F):
        raise ParameterError(f"k = {k} is more than the {len(F)} points. Reduce k.")
    random, n, counts = as_generator(rng), len(F), counts_of(sample_weight, len(F))
    # Best approximation of F of rank k + 1, with ||F||_F^2 = n, and the same with equal singular values.
    is_large = min(F.shape) > max(FULL_SVD_SIZE, 4 * (k + 1))
    F = F @ leading_right_vectors(np.sqrt(counts) * F, k + 1).T if is_large else F
    U, singular, Vt = np.linalg.svd(np.sqrt(counts) * F, full_matrices=False)
    if sample_weight is not None:  # singular vectors of the rows of F
        U = oriented(F @ Vt.T / np.maximum(singular, 1e-100 * (singular[0] or 1.0)), counts)
    missing = max(k + 1 - len(singular), 0)
    U, singular = np.pad(U[:, : k + 1], ((0, 0), (0, missing))), np.pad(singular[: k + 1], (0, missing))
    live = singular > RANK_RTOL * max(singular[0], 1e-300)
    lead = U * (singular * n**0.5 / (float(np.sum(singular**2)) or 1.0) ** 0.5)
    whitened = U * np.where(live, n**0.5 / max(live.sum(), 1) ** 0.5, 0.0)
    if live.sum() < k:
        warn_degenerate(f"F has rank {live.sum()}, less than k = {k} labels. Reduce k.")
    fits: list[Fit] = []
    while not fits or (len(fits) < n_init and not is_late()):
        start = np.asarray(np.linalg.qr(random.standard_normal((k + 1, k + 1)))[0])
        *_, first = procrustes_iterates(whitened, start, counts)
        *_, last = procrustes_iterates(lead, first.R, counts)
        fits.append(last)
    best = max(fits, key=lambda fit: fit.inner_product)
    order = 1 + np.argsort(-best.weights[1:], kind="stable")
    orientation = best.signs[0, order]
    # ||F R - M||^2 = ||F||^2 + n ||a||^2 - 2 tr (F R)'M
    objective = max(float(np.sum(counts * lead**2) / n + 1.0 - 2.0 * best.inner_product), 0.0)
    labels, scores = best.signs[:, order] * orientation, (lead @ best.R)[:, order] * orientation
    return LabelMixture(labels, best.weights[np.append(0, order)], objective, scores)


def counts_of(sample_weight: npt.ArrayLike | None, n: int) -> Array | float:
    """Return the counts n p_i of the rows, shape (n, 1), from their weights; 1 without weights."""
    weights = normalize_weights(sample_weight, n)
    return 1.0 if weights is None else n * weights[:, None]


def oriented(U: Array, counts: Array | float) -> Array:
    """Return singular vectors with positive sums of cubes, so that their signs do not depend on the order of the rows.

    Therefore weighted rows have the same random rotations as repeated rows.
    """
    return np.asarray(U * np.where(np.sum(counts * U**3, axis=0) < 0.0, -1.0, 1.0))


def procrustes_iterates(F: Array, R: Array, counts: Array | float = 1.0) -> Iterator[Fit]:
    """Yield the fits of the alternation of `procrustes` from R, each better, until it stalls.

    The counts of the rows, (n, 1), have mean 1.
    """
    n, previous = len(F), -np.inf
    for _ in range(MAX_PROCRUSTES_ROUNDS):
        rotated = F @ R
        signs = np.where(rotated >= 0.0, 1.0, -1.0)
        signs[:, 0] = 1.0
        shared = np.sum(counts * (rotated * signs), axis=0)
        if shared[0] < 0:
            signs[:, 0], shared[0] = -1.0, -shared[0]
        weights = shared / max(float(np.linalg.norm(shared)), 1e-300)
        reached = float(weights @ shared) / n
        yield Fit(R, weights, signs, reached)
        if reached <= previous * (1 + PROCRUSTES_RTOL):
            break
        previous = reached
        U, _, Vt = np.linalg.svd(F.T @ (counts * (signs * weights)))
        R = U @ Vt
