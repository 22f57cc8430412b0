"""Brackets in the space of labels: what any factor F of Y proves about (7) and (8), in O(n r^2)."""

from typing import NamedTuple

import numpy as np
import scipy.optimize

from diffrac_cvx.metrics import factor_imbalance
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import UNIT, outside_of, round_up, rounding_of_whitening, sum_error
from diffrac_cvx.points.linear_algebra import row_products, scale_to_whiten, unit_rows
from diffrac_cvx.problem.result import Bracket

FEASIBLE = 1e-12  # in 1'Y1/n^2, of a point; what it is off is counted in its value
NEARLY_BALANCED = 1e-12  # an imbalance alpha at which the bound of 0 is worth looking at


class Projection(NamedTuple):
    """Q with QQ' = H_a = X (X'X + n Diag(a)^2)^+ X', and what is known of its accuracy.

    Attributes
    ----------
    Q : (n, r) array
        The factor.
    off : float
        How far QQ' may be from H_a, in the spectral norm.
    left_out : int
        How many directions without a ridge are taken to be constant, because the data hardly vary along them.
    """

    Q: Array
    off: float
    left_out: int


def projection_of(X: Array, ridge: Array | None = None) -> Projection:
    """Return H_a of centred data, with what rounding may change of it."""
    X, ridge, found = scale_to_whiten(X, ridge)
    Z = X @ found.W
    Q = Z / len(X) ** 0.5
    rounding = rounding_of_whitening(X, found.W, Z, ridge**2, outside_of(found, len(X)))
    if not rounding.right_error <= 0.5:
        return Projection(Q, np.inf, found.left_out)
    return Projection(
        Q, round_up(rounding.right_error / (1.0 - rounding.right_error) + 3.0 * rounding.data_error), found.left_out
    )


def bracket_nu(H: Projection, F: Array, nu: float, mu: Array | None = None) -> Bracket:
    """Bracket (8) from any F, and the multiplier mu of diag Y = 1 if the solver has one; rounding is covered."""
    F, Q = unit_rows(F), H.Q
    upper = min(objective(Q, F) + nu * factor_imbalance(F) + of_values(H, F), 1.0)
    diagonal, drift = gradient(Q, F)
    weight = 1.0 - nu
    D = diagonal + weight * drift
    candidates = [D] if mu is None else [D, 1.0 - len(D) * mu]
    lower = max(lower_bound_of_mean(1.0 - D) + min_eigenvalue(D, Q, weight) for D in candidates) - H.off
    return Bracket(max(lower, 0.0), upper)


def of_values(H: Projection, F: Array) -> float:
    """Return how far the objective at unit rows may be from the exact one."""
    n, r = F.shape
    return float(round_up(H.off + sum_error(4 * n + H.Q.shape[1] + r + 64)))


def lower_bound_of_mean(x: Array) -> float:
    """Return a lower bound of the exact mean; the numbers themselves may be off by two roundings."""
    return float(np.mean(x)) - round_up(sum_error(len(x) + 4) * float(np.mean(np.abs(x))))


def bracket_alpha(H: Projection, F: Array, alpha: float, mu: Array | None = None) -> Bracket:
    """Bracket (7) from any F, and the multiplier mu of diag Y = 1 if the solver has one.

    The multiplier of the constraint is fitted to the stationarity of F, then improved by a scalar search: every value
    gives a valid bound.  At alpha = 0 the feasible Y have Y1 = 0 and the bound is taken on the complement of 1; near 0
    that bound counts too, less what `cost_of_balance` gives.
    """
    F, Q = with_imbalance(F, alpha), H.Q
    upper = min(max(objective(Q, F), 0.0) + of_values(H, F) + cost_of_balance(F, alpha), 1.0)
    diagonal, drift = gradient(Q, F)
    balanced = 0.0
    if alpha <= NEARLY_BALANCED:
        # Y1 = 0 has a multiplier for every row; stationarity leaves one vector w, (D_i f_i - (QQ'F)_i) = w, to fit.
        D = diagonal + F @ np.linalg.lstsq(len(F) * np.eye(F.shape[1]) - F.T @ F, F.T @ diagonal)[0]
        candidates = [D] if mu is None else [D, 1.0 - len(D) * mu]
        lower = max(lower_bound_of_mean(1.0 - D) + min_eigenvalue(D, Q, -np.inf) for D in candidates) - H.off
        balanced = max(lower - round_up(8.0 * alpha**0.5), 0.0)
        if alpha == 0.0:
            return Bracket(balanced, upper)

    def bound(weight: float, mu: Array | None = None) -> float:
        D = diagonal + weight * drift if mu is None else 1.0 - len(diagonal) * mu
        linear = (weight - 1.0) * alpha
        return lower_bound_of_mean(1.0 - D) + linear - 4 * UNIT * abs(linear) + min_eigenvalue(D, Q, weight) - H.off

    fixed = diagonal[:, None] * F - Q @ (Q.T @ F)
    moving = drift[:, None] * F - F.mean(axis=0)
    size = float(np.sum(moving**2))
    guess = -float(np.sum(fixed * moving)) / size if size > 1e-20 * len(F) else 1.0
    lower = max(bound(guess), bound(1.0), balanced)
    if upper - lower > 1e-9:
        width = 0.2 * (1.0 + abs(guess))
        found = scipy.optimize.minimize_scalar(
            lambda weight: -max(bound(weight), -1.0), bounds=(guess - width, guess + width), method="bounded"
        )
        lower = max(lower, -float(found.fun))
        if mu is not None:
            lower = max(lower, bound(guess, mu), bound(float(found.x), mu))
    return Bracket(lower, upper)


def cost_of_balance(F: Array, alpha: float) -> float:
    r"""Return how much more a feasible Y of (7) may cost than unit rows F whose mean m is only nearly right.

    Y + share (11' - Y) is one where the imbalance is below alpha, and costs no more.  Above, move all rows by the same
    vector, so that times :math:`1 - 6\delta`, with :math:`\delta` its length, their squared mean is alpha: then
    :math:`\delta \le |m| - \sqrt\alpha`.  So scaled, their squared norms lack between :math:`4\delta` and
    :math:`8\delta` of 1, and since no root of these exceeds the sum of two others there are vectors of these squared
    norms and of sum 0.  Added in other coordinates, they cost at most their mean, :math:`8\delta`.  No power of
    :math:`|m|` above the first would hold: the optimum of (7) may have a slope of :math:`-\infty` at alpha = 0.
    """
    length = float(np.linalg.norm(F.mean(axis=0)))
    return float(round_up(8.0 * (max(length - alpha**0.5, 0.0) + sum_error(len(F) + F.shape[1] + 16))))


def objective(Q: Array, F: Array) -> float:
    """Return tr Y(Pi - QQ')/n at unit rows, as a sum of squares."""
    centred = F - F.mean(axis=0)
    inside = Q.T @ centred
    return float(max(np.sum(centred**2) - np.sum(inside**2), 0.0)) / len(F)


def gradient(Q: Array, F: Array) -> tuple[Array, Array]:
    """Return diag(QQ'Y) and diag(11'Y)/n: with mu_i = (KY)_ii, 1 - n mu is the first plus a multiple of the second."""
    return row_products(F, Q @ (Q.T @ F)), F @ F.mean(axis=0)


def min_eigenvalue(D: Array, Q: Array, weight: float) -> float:
    """Return a lower bound, 1 % sharp, on min(0, lambda_min(Diag(D) - QQ' - weight 11'/n)).

    weight = -inf restricts to the complement of 1.  The bordered matrix [[S^-1, G'], [G, Diag(D) - t]], G = [Q, 1],
    has a known number of negative eigenvalues when the Schur complement has none: each trial t costs O(n r^2).  An
    eigenvalue that rounding could have made positive counts as negative.
    """
    size = 1.0 if np.isinf(weight) else abs(weight)
    G = np.column_stack([Q, np.full(len(D), (size / len(D)) ** 0.5)])
    middle = np.ones(G.shape[1])  # S^-1; a zero entry is the restriction to the complement of 1
    middle[-1] = 0.0 if np.isinf(weight) else np.sign(weight) or 1.0
    expected, squares = int(weight < 0.0), row_products(G, G)

    def is_above(t: float) -> bool:
        shifted = D - t
        if np.any(shifted == 0.0):
            return False
        values = np.linalg.eigvalsh(np.diag(middle) - G.T @ (G / shifted[:, None]))
        mass = len(middle) + float(np.sum(squares / np.abs(shifted)))
        off = sum_error(len(D) + 64 * len(middle)) * mass
        return int(np.sum(shifted < 0) + np.sum(values < off)) <= expected

    bad, good = 0.0, 1e-13
    while not is_above(-good):
        bad, good = good, 4.0 * good
        if good > 1e6:
            return -np.inf
    while good > 1.01 * bad and good > 1e-13:
        middle_t = (bad * good) ** 0.5
        if is_above(-middle_t):
            good = middle_t
        else:
            bad = middle_t
    return -good


def with_imbalance(F: Array, alpha: float) -> Array:
    """Return unit rows with 1'Y1/n^2 = alpha to FEASIBLE: the mean is moved, then 11' or a balanced Y added."""
    F = unit_rows(F)
    for _ in range(200):
        mean = F.mean(axis=0)
        size = float(mean @ mean)
        if size**0.5 <= alpha**0.5 + 1e-15:
            break
        F = unit_rows(F - mean * (1.0 - (alpha / size) ** 0.5))
    found = factor_imbalance(F)
    if abs(found - alpha) <= FEASIBLE:
        return F
    if found < alpha:
        share, other = (alpha - found) / (1.0 - found), np.ones((len(F), 1))
    else:
        other = less_unbalanced(F, alpha)
        share = (found - alpha) / (found - factor_imbalance(other))
    return np.hstack([(1.0 - share) ** 0.5 * F, share**0.5 * other])


def less_unbalanced(F: Array, alpha: float) -> Array:
    """Return unit rows with 1'Y1/n^2 <= alpha: the signs of F's leading column if feasible, else a balanced Y."""
    signs = np.where(np.linalg.svd(F, full_matrices=False)[0][:, :1] >= 0.0, 1.0, -1.0)
    return signs if factor_imbalance(signs) <= alpha else balanced_factor(len(F))


def balanced_factor(n: int) -> Array:
    """Return unit rows that sum to zero: alternating signs, and three at 120 degrees when n is odd."""
    F = np.zeros((n, 2))
    F[:, 0] = np.where(np.arange(n) % 2, 1.0, -1.0)
    if n % 2:
        F[:3] = [[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]]
        F[3:, 0] = np.where(np.arange(n - 3) % 2, 1.0, -1.0)
    return F
