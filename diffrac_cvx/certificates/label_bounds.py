"""Certified bounds in the space of labels, from any factor F of Y, for (7) and (8), in O(n r^2)."""

import numpy as np
import scipy

from diffrac_cvx.certificates.label_proof import (
    Projection,
    bound_near_balance,
    certified_label_bound,
    eigenvalue_test,
    value_with_balance,
    value_with_penalty,
)
from diffrac_cvx.metrics import factor_imbalance
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import row_products, unit_rows
from diffrac_cvx.problem.result import Bracket

FEASIBILITY_TOLERANCE = 1e-12  # of a point in 1'Y1/n^2; its upper bound includes the deviation
NEAR_BALANCE = 1e-12  # imbalance alpha up to which the bound of alpha = 0 is computed too


def bracket_nu(H: Projection, F: Array, nu: float, mu: Array | None = None) -> Bracket:
    """Return certified bounds on (8) from any F, and the solver's multiplier mu of diag Y = 1, if it has one.

    With must-link constraints, which F is made to satisfy, mu has an entry for each chunklet.
    """
    F, sizes = unit_rows(F), H.sums[2]
    F = H.points.chunklets.common_unit_rows(F)
    diagonal, drift = multiplier_terms(H.Q, F)
    D = diagonal + (1.0 - nu) * drift
    D = H.points.chunklets.sums(D) / sizes
    given = [] if mu is None else [1.0 - len(F) * mu / sizes]
    lower = max(label_bound_at(H, D, 1.0 - nu) for D in [D, *given])
    return Bracket(max(lower, 0.0), value_with_penalty(H, F, nu))


def bracket_alpha(H: Projection, F: Array, alpha: float, mu: Array | None = None) -> Bracket:
    """Return certified bounds on (7) from any F, and the solver's multiplier mu of diag Y = 1, if it has one.

    The multiplier of the constraint is fitted to the stationarity of F, then improved by a scalar search: every value
    gives a valid bound.  At alpha = 0 the feasible Y have Y1 = 0 and the bound is taken on the complement of 1; near 0
    that bound is used too, minus the `balance_cost`.
    """
    F, Q = with_imbalance(F, alpha), H.Q
    upper = value_with_balance(H, F, alpha)
    diagonal, drift = multiplier_terms(Q, F)
    balanced, given = 0.0, [] if mu is None else [1.0 - len(F) * mu]
    if alpha <= NEAR_BALANCE:
        # Y1 = 0 has a multiplier for every row; stationarity leaves one vector w to fit, D_i f_i - (QQ'F)_i = w.
        D = diagonal + F @ np.linalg.lstsq(len(F) * np.eye(F.shape[1]) - F.T @ F, F.T @ diagonal)[0]
        balanced = bound_near_balance(max(label_bound_at(H, D, -np.inf) for D in [D, *given]), alpha)
        if alpha == 0.0:
            return Bracket(balanced, upper)

    def bound(weight: float) -> float:
        return label_bound_at(H, diagonal + weight * drift, weight, alpha)

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
        others = [label_bound_at(H, D, weight, alpha) for D in given for weight in (guess, float(found.x))]
        lower = max(lower, -float(found.fun), *others)
    return Bracket(lower, upper)


def label_bound_at(H: Projection, D: Array, weight: float, alpha: float = 0.0) -> float:
    """Return `certified_label_bound` at nearly the largest certified lower bound on 0 and on the eigenvalues."""
    Q, ones, sizes = H.sums
    return certified_label_bound(H, D, weight, min_eigenvalue(D, Q, weight, ones, sizes), alpha)


def min_eigenvalue(D: Array, Q: Array, weight: float, ones: Array | None = None, sizes: Array | None = None) -> float:
    """Return a lower bound, 1 % sharp, on min(0, lambda_min(Diag(D) - QQ' - weight 11'/n)), see `eigenvalue_test`."""
    ones, sizes = (np.ones(len(D)) if given is None else given for given in (ones, sizes))
    holds, bad, good = eigenvalue_test(D, Q, weight, ones, sizes), 0.0, 1e-13
    while not holds(-good):
        bad, good = good, 4.0 * good
        if good > 1e6:
            return -np.inf
    while good > 1.01 * bad and good > 1e-13:
        middle = (bad * good) ** 0.5
        if holds(-middle):
            good = middle
        else:
            bad = middle
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
        other = reduce_imbalance(F, alpha)
        mixing = (found - alpha) / (found - factor_imbalance(other))
    return np.hstack([(1.0 - mixing) ** 0.5 * F, mixing**0.5 * other])


def reduce_imbalance(F: Array, alpha: float) -> Array:
    """Return unit rows with 1'Y1/n^2 <= alpha: the signs of F's leading column if feasible, otherwise a balanced Y."""
    signs = np.where(np.linalg.svd(F, full_matrices=False)[0][:, :1] >= 0.0, 1.0, -1.0)
    return signs if factor_imbalance(signs) <= alpha else balanced_factor(len(F))


def balanced_factor(n: int) -> Array:
    """Return unit rows that sum to zero: alternating signs, and three at 120 degrees when n is odd."""
    F = np.column_stack([np.where((np.arange(n) - n % 2) % 2, 1.0, -1.0), np.zeros(n)])
    if n % 2:
        F[:3] = [[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]]
    return F
