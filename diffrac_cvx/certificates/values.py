"""Certified upper bounds on objectives in the user's units: at least the exact value, rounding included."""

import math

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense, diagonal, scale_rows, squared_norm
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, RoundedFactor, round_up, sum_error
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalty import Penalty, weights_of


def certified_value(X: Table, nu: float, penalty: Penalty, G: Factor) -> float:
    """Return an upper bound on the objective of (15) at V = GG', for the exactly centred data.

    The bound is tight unless G, (d, r), or (d + 1, r) with the offset last, has large entries that cancel.
    X is centred in double precision; the normalised weights have errors of a few units in the last place.
    """
    n, d = X.shape
    pair_penalty = weights_of(penalty, d)
    offset = dense(G[d:]).ravel() if G.shape[0] > d else np.zeros(G.shape[1])
    features, units = G[:d], X.column_scales()
    scaled = scale_rows(features, 1.0 / units)
    norm = float(np.sqrt(np.sum(diagonal(scaled))) + np.linalg.norm(offset))
    sqrt_sum, square_sum = X.sum_bounds(RoundedFactor(features, offset, units, norm, n))
    convex_term = square_sum / n + squared_norm(scale_rows(features, pair_penalty.a))
    if nu < 1.0:
        convex_term += nu / (1.0 - nu) * float(offset @ offset)
    n_roundings = X.rows.accumulation_length + 16
    error = (
        sum_error(n_roundings) * 2.0 * sqrt_sum / n
        + sum_error(n_roundings + d + G.shape[1]) * convex_term
        + 8.0 * UNIT_ROUNDOFF
    )
    if not pair_penalty.is_zero:
        convex_term += pair_penalty.value(features)
        error += pair_penalty.value_error_bound(features) + 8.0 * UNIT_ROUNDOFF * convex_term
    return float(1.0 - 2.0 * sqrt_sum / n + convex_term + round_up(error))


def certified_labels_value(X: Table, y: Array, v: Array, nu: float, weights: PairPenalty) -> float:
    """Return an upper bound on Eq. (9) at labels y in {-1, +1} and a direction v, for the exactly centred data.

    X is centred in double precision; the normalised weights have errors of a few units in the last place.
    """
    n, d = X.shape
    # A sum of +1 and -1 is exact; a sum of weights is rounded once, and the weights have errors of a few units.
    weighted = X.weights is not None
    mean = math.fsum(y * X.weights) if X.weights is not None else float(y.mean())
    penalty = float(np.sum((weights.a * v) ** 2) + weights.direction_value(v))
    total = X.residual_bound(y - mean, v, 16.0 if weighted else 4.0) + nu * mean**2 + penalty
    return float(round_up(total + 32.0 * UNIT_ROUNDOFF if weighted else total, n + 2 * d + 32))


def or_zero_direction(value: float, v: Array) -> tuple[float, Array]:
    """Return the bound and direction of labels, (d,), or clusters, (K, d); or 1 at v = 0, if the bound exceeds 1.

    At v = 0, labels have 1 - (1 - nu)(1'y/n)^2, and K clusters K/(K - 1) times 1 - nu/K - (1 - nu) sum (n_k/n)^2.
    """
    return (value, v) if value <= 1.0 else (1.0, np.zeros_like(v))  # also for NaN


def certified_clusters_value(X: Table, Z: Array, W: Array, nu: float, weights: PairPenalty) -> float:
    """Return an upper bound on the objective of K >= 2 clusters, with indicators Z (n, K) and directions W (K, d).

    With c_k the objective of Eq. (9) at cluster k against the others, labels 2 z_k - 1 and direction 2 w_k, it is
    (K sum_k c_k - nu (K - 2)^2) / (4 (K - 1)), see `certify_clusters`.
    """
    K = Z.shape[1]
    one_by_one = [certified_labels_value(X, 2.0 * z - 1.0, 2.0 * w, nu, weights) for z, w in zip(Z.T, W, strict=True)]
    total = round_up(K * float(np.sum(one_by_one)), K + 4)
    error = 8.0 * UNIT_ROUNDOFF * (total + K**2)
    return float((total - nu * (K - 2) ** 2 + error) / (4.0 * (K - 1)) * (1.0 + 4.0 * UNIT_ROUNDOFF))
