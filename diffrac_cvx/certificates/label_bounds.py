"""Certified bounds on (7) and (8) in the space of labels, from any factor F of Y, rounding included, in O(n r^2).

With K = Pi - H_a, for any D and any weight w the bound mean(1 - D) + min(0, lambda_min(Diag(D) - H_a - w 11'/n)) holds
for (8) at w = 1 - nu, and for (7) with (w - 1) alpha added; w = -infinity means the complement of 1, where Y1 = 0.
With must-link constraints, Y = SZS' with the signs S of the points in chunklets: D is constant on a chunklet, and the
smallest eigenvalue is that of S'(Diag(D) - H_a - w 11'/n)S in the metric S'S, which is diagonal.
"""

from typing import NamedTuple

import numpy as np
import scipy

from diffrac_cvx.metrics import factor_imbalance
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.exclusion import exclude
from diffrac_cvx.points.floating_point import (
    UNIT_ROUNDOFF,
    outside_norm_bound,
    round_up,
    sum_error,
    whitening_error_bounds,
)
from diffrac_cvx.points.linear_algebra import row_products, scale_to_whiten, unit_rows
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.result import Bracket

FEASIBILITY_TOLERANCE = 1e-12  # on 1'Y1/n^2 of a point; its upper bound includes the deviation
NEAR_BALANCE = 1e-12  # largest alpha for which the bound is derived from alpha = 0


class LabelMultipliers(NamedTuple):
    """Multipliers that prove a lower bound on (7) or (8): D, a number for each chunklet, and the weight w of 11'/n."""

    D: Array  # (m,)
    weight: float


class Projection(NamedTuple):
    """Q with QQ' = H_a = X (X'X + n Diag(a)^2)^+ X', and a bound on its error."""

    Q: Array  # (n, r)
    error: float  # bound on QQ' - H_a, in the spectral norm
    points: Table  # without the excluded columns

    @property
    def sums(self) -> tuple[Array, Array, Array]:
        """S'Q, S'1 and the diagonal of S'S; without constraints, Q and ones."""
        g, ones = self.points.chunklets, np.ones(len(self.Q))
        return g.signed_sums(self.Q), g.signed_sums(ones), g.sums(ones)


def projection_of(points: Table, ridge: Array | None = None) -> Projection:
    """Return H_a of centred points, with a bound on the rounding errors of H_a and of its sums over chunklets.

    By Cauchy-Schwarz the error of the sums of Q, in the metric S'S, is at most their rounding times the norm of Q.
    """
    points = exclude(points, np.zeros(points.shape[1], dtype=bool) if ridge is None else ridge > 0.0)
    X, ridge, found = scale_to_whiten(points.array(), ridge)
    Z, chunklets = X @ found[0], points.chunklets
    Q = Z / len(X) ** 0.5
    sums_error = 4.0 * sum_error(chunklets.n_roundings) * float(np.sum(Q**2))
    rounding = whitening_error_bounds(X, found[0], Z, ridge**2, outside_norm_bound(found, len(X)))
    right = rounding.right_error / (1.0 - rounding.right_error) if rounding.right_error <= 0.5 else np.inf
    return Projection(Q, round_up(right + 3.0 * rounding.data_error + sums_error), points)


def bracket_nu(H: Projection, F: Array, nu: float, mu: Array | None = None) -> Bracket:
    """Return certified bounds on (8) from any F and, if given, the solver's multiplier mu of diag Y = 1.

    With must-link constraints, F is made feasible, and mu has an entry for each chunklet.
    """
    F, sizes = unit_rows(F), H.sums[2]
    F = H.points.chunklets.common_unit_rows(F)
    diagonal, drift = multiplier_terms(H.Q, F)
    D = diagonal + (1.0 - nu) * drift
    D = H.points.chunklets.sums(D) / sizes
    given = [] if mu is None else [1.0 - len(F) * mu / sizes]
    candidates = [LabelMultipliers(D, 1.0 - nu) for D in [D, *given]]
    lower, best = max(((label_bound(H, one), one) for one in candidates), key=lambda pair: pair[0])
    return Bracket(max(lower, 0.0), label_value(H, F, nu), H.points.n_excluded, best)


def label_value(H: Projection, F: Array, nu: float) -> float:
    """Return an upper bound on the objective of (8) at F with unit rows, which satisfy the constraints."""
    return min(objective(H.Q, F) + nu * factor_imbalance(F) + objective_error(H, F), 1.0)


def bracket_alpha(H: Projection, F: Array, alpha: float, mu: Array | None = None) -> Bracket:
    """Return certified bounds on (7) from any F and, if given, the solver's multiplier mu of diag Y = 1.

    The multiplier of the constraint is fitted to the stationarity of F, then improved by a scalar search: every value
    gives a valid bound.  At alpha = 0 the feasible Y have Y1 = 0, and the bound is computed on the complement of 1;
    near 0 it is this bound minus the `balance_cost`.
    """
    F, Q, n_excluded = with_imbalance(F, alpha), H.Q, H.points.n_excluded
    upper = balanced_value(H, F, alpha)
    diagonal, drift = multiplier_terms(Q, F)
    given = [] if mu is None else [1.0 - len(F) * mu]
    if alpha <= NEAR_BALANCE:
        # Y1 = 0 has a multiplier for every row; stationarity determines D up to one vector w, D_i f_i - (QQ'F)_i = w.
        D = diagonal + F @ np.linalg.lstsq(len(F) * np.eye(F.shape[1]) - F.T @ F, F.T @ diagonal)[0]
        candidates = [LabelMultipliers(D, -np.inf) for D in [D, *given]]
        best = max(candidates, key=lambda one: label_bound(H, one, alpha))
        return Bracket(max(label_bound(H, best, alpha), 0.0), upper, n_excluded, best)

    def bound(weight: float) -> float:
        return label_bound(H, LabelMultipliers(diagonal + weight * drift, weight), alpha)

    fixed = diagonal[:, None] * F - Q @ (Q.T @ F)
    moving = drift[:, None] * F - F.mean(axis=0)
    size = float(np.sum(moving**2))
    guess = -float(np.sum(fixed * moving)) / size if size > 1e-20 * len(F) else 1.0
    weights, multipliers = [guess, 1.0], list[LabelMultipliers]()
    if upper - max(bound(guess), bound(1.0), 0.0) > 1e-9:
        width = 0.2 * (1.0 + abs(guess))
        found = scipy.optimize.minimize_scalar(
            lambda weight: -max(bound(weight), -1.0), bounds=(guess - width, guess + width), method="bounded"
        )
        weights.append(float(found.x))
        multipliers = [LabelMultipliers(D, weight) for D in given for weight in (guess, float(found.x))]
    multipliers += [LabelMultipliers(diagonal + weight * drift, weight) for weight in weights]
    best = max(multipliers, key=lambda one: label_bound(H, one, alpha))
    return Bracket(max(label_bound(H, best, alpha), 0.0), upper, n_excluded, best)


def balanced_value(H: Projection, F: Array, alpha: float) -> float:
    """Return an upper bound on the optimum of (7) from unit rows of nearly the right imbalance."""
    return min(max(objective(H.Q, F), 0.0) + objective_error(H, F) + balance_cost(F, alpha), 1.0)


def label_bound(H: Projection, given: LabelMultipliers, alpha: float | None = None) -> float:
    """Return a lower bound on (8) at weight = 1 - nu, or on (7) at any weight; weight -infinity stands for Y1 = 0.

    Near balance, the bound at weight -infinity is that of alpha = 0 minus the `balance_cost`.
    """
    (D, weight), (Q, ones, sizes) = given, H.sums
    if weight == -np.inf and alpha is not None:
        return bound_near_balance(label_bound(H, given), alpha) if alpha <= NEAR_BALANCE else -np.inf
    linear = (weight - 1.0) * alpha if alpha else 0.0
    mean = lower_bound_of_mean((1.0 - D) * sizes * (len(D) / len(H.Q)))
    least = min_eigenvalue(D, Q, weight, ones, sizes)
    return mean + linear - 4 * UNIT_ROUNDOFF * abs(linear) + least - H.error


def class_bound(lower: float, nu: float, k: int) -> float:
    """Return a lower bound on the relaxation for k classes from a lower bound on (8), at least 0."""
    return float((nu / k + (1 - 1 / k) * max(lower, 0.0)) * (1.0 - 8 * UNIT_ROUNDOFF))


def class_value(value: float, nu: float, k: int) -> float:
    """Return an upper bound on the objective for k classes from an upper bound on that of (8)."""
    return min(round_up(nu / k + (1 - 1 / k) * value), 1.0)  # 1 is the value of a single class


def min_eigenvalue(D: Array, Q: Array, weight: float, ones: Array | None = None, sizes: Array | None = None) -> float:
    """Return a lower bound, within 1 %, on min(0, lambda_min(Diag(D) - QQ' - weight 11'/n)), in O(n r^2).

    With must-link constraints Q and 1 are sums over chunklets, whose sizes m are the metric: the bound then refers to
    the smallest t at which Diag(m (D - t)) - QQ' - weight 11'/n is not positive.

    weight = -inf restricts to the complement of 1.  The bordered matrix [[S^-1, G'], [G, Diag(D) - t]], G = [Q, 1], has
    a known number of negative eigenvalues if the Schur complement has none.  An eigenvalue that may be positive only by
    rounding counts as negative.
    """
    ones, sizes = (np.ones(len(D)) if given is None else given for given in (ones, sizes))
    size = 1.0 if np.isinf(weight) else abs(weight)
    G = np.column_stack([Q, ones * (size / float(np.sum(sizes))) ** 0.5])
    middle = np.ones(G.shape[1])  # S^-1; a zero entry is the restriction to the complement of 1
    middle[-1] = 0.0 if np.isinf(weight) else np.sign(weight) or 1.0
    expected, squares = int(weight < 0.0), row_products(G, G)

    def is_bound(t: float) -> bool:
        shifted = sizes * (D - t)
        if not np.isfinite(t) or np.any(shifted == 0.0):
            return False
        values = np.linalg.eigvalsh(np.diag(middle) - G.T @ (G / shifted[:, None]))
        error = sum_error(len(D) + 64 * len(middle)) * (len(middle) + float(np.sum(squares / np.abs(shifted))))
        return int(np.sum(shifted < 0) + np.sum(values < error)) <= expected

    bad, good = 0.0, 1e-13
    while not is_bound(-good):
        bad, good = good, 4.0 * good
        if good > 1e6:
            return -np.inf
    while good > 1.01 * bad and good > 1e-13:
        middle_t = (bad * good) ** 0.5
        bad, good = (bad, middle_t) if is_bound(-middle_t) else (middle_t, good)
    return -good


def multiplier_terms(Q: Array, F: Array) -> tuple[Array, Array]:
    """Return diag(QQ'Y) and diag(11'Y)/n: with mu_i = (KY)_ii, 1 - n mu is the first plus a multiple of the second."""
    return row_products(F, Q @ (Q.T @ F)), F @ F.mean(axis=0)


def with_imbalance(F: Array, alpha: float) -> Array:
    """Return unit rows with 1'Y1/n^2 = alpha up to the tolerance: shift the mean, then mix in 11' or a balanced Y."""
    F = unit_rows(F)
    for _ in range(200):
        mean = F.mean(axis=0)
        size = float(mean @ mean)
        if size**0.5 <= alpha**0.5 + 1e-15:
            break
        F = unit_rows(F - mean * (1.0 - (alpha / size) ** 0.5))
    found = factor_imbalance(F)
    if abs(found - alpha) <= FEASIBILITY_TOLERANCE:
        return F
    if found < alpha:
        mixing, other = (alpha - found) / (1.0 - found), np.ones((len(F), 1))
    else:
        # Mix in the signs of F's leading column if their imbalance is below alpha, otherwise a balanced Y.
        other = np.where(np.linalg.svd(F, full_matrices=False)[0][:, :1] >= 0.0, 1.0, -1.0)
        other = other if factor_imbalance(other) <= alpha else balanced_factor(len(F))
        mixing = (found - alpha) / (found - factor_imbalance(other))
    return np.hstack([(1.0 - mixing) ** 0.5 * F, mixing**0.5 * other])


def correlation_value(H: Projection, F: Array) -> float:
    """Return an upper bound on the optimum of (23)-(24) at M = FF' / (1 - 1'FF'1/n^2), for unit rows."""
    centered_fraction = 1.0 - factor_imbalance(F)
    if centered_fraction <= 1e-12:
        return 0.0
    gain = float(np.sum((H.Q.T @ F) ** 2)) - len(F) * objective_error(H, F)
    return min(round_up(-max(gain, 0.0) / centered_fraction, 64), 0.0)


def balanced_factor(n: int) -> Array:
    """Return unit rows that sum to zero: alternating signs, and three at 120 degrees when n is odd."""
    F = np.column_stack([np.where((np.arange(n) - n % 2) % 2, 1.0, -1.0), np.zeros(n)])
    if n % 2:
        F[:3] = [[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]]
    return F


def bound_near_balance(lower: float, alpha: float) -> float:
    """Return a lower bound on (7) at alpha from one at alpha = 0, see `balance_cost`."""
    return max(lower - round_up(8.0 * alpha**0.5), 0.0) if alpha else max(lower, 0.0)


def objective_error(H: Projection, F: Array) -> float:
    """Return a bound on the error of the computed objective at unit rows."""
    n, r = F.shape
    return float(round_up(H.error + sum_error(4 * n + H.Q.shape[1] + r + 64)))


def lower_bound_of_mean(x: Array) -> float:
    """Return a lower bound on the exact mean of numbers with errors of up to six roundings each."""
    return float(np.mean(x)) - round_up(sum_error(len(x) + 8) * float(np.mean(np.abs(x))))


def balance_cost(F: Array, alpha: float) -> float:
    r"""Return a bound on the extra objective of a feasible Y of (7) over unit rows F with nearly the right mean m.

    If the imbalance is below alpha, some Y + s (11' - Y), s in [0, 1], is feasible and has no larger objective.  If it
    is above, move all rows by one vector, so that times :math:`1 - 6\delta`, with :math:`\delta` its length, their
    squared mean is alpha: then :math:`\delta \le |m| - \sqrt\alpha`.  After scaling, their squared norms are between
    :math:`4\delta` and :math:`8\delta` below 1, and since no root of these deficits exceeds the sum of two others,
    there are vectors with these squared norms and sum 0.  Added in new coordinates, they cost at most their mean,
    :math:`8\delta`.  A bound in a higher power of :math:`|m|` would be false: the slope of (7) may be :math:`-\infty`
    at alpha = 0.
    """
    length = float(np.linalg.norm(F.mean(axis=0)))
    return float(round_up(8.0 * (max(length - alpha**0.5, 0.0) + sum_error(len(F) + F.shape[1] + 16))))


def objective(Q: Array, F: Array) -> float:
    """Return tr Y(Pi - QQ')/n at unit rows, as a difference of sums of squares."""
    centered = F - F.mean(axis=0)
    inside = Q.T @ centered
    return float(max(np.sum(centered**2) - np.sum(inside**2), 0.0)) / len(F)
