"""Directions of labels with any penalty that is a norm of a cone program, such as group norms with sign constraints."""

import numpy as np
import scipy.sparse

from diffrac_cvx.machine.deadlines import is_late
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.points import Points
from diffrac_cvx.problem.penalties.base import PairPenalty, PenaltyWeights

INITIAL_COLUMNS = 300  # of the initial working set, in whole groups
ENTERING_RTOL = 1e-6  # relative violation of its bound at which a gradient enters the working set
ZERO_GROUP_RTOL = 1e-4  # of the largest group, in unit columns: smaller ones are set to 0 (Clarabel leaves about 1e-6)
ZERO_COEFFICIENT_RTOL = 1e-7  # of the largest coefficient: smaller nonnegative ones are set to 0
CLARABEL_TOL = 1e-11


def socp_direction(X: Points, target: Array, weights: PenaltyWeights) -> Array:
    """Return approx. argmin over v of |target - X v|^2/n + sum a_i^2 v_i^2 plus a penalty on pairs, v feasible.

    The working set grows by the groups whose gradient violates the optimality conditions.
    """
    target = X.times_root_counts(target)
    X = X.weighted_rows()
    a, pair_penalty = weights
    d = len(a)
    scale = inverse_or_one(pair_penalty.group_max(np.sqrt(X.mean_squares() + a**2 + pair_penalty.c**2)))
    whole, Xty = X.in_columns(), X.rmatvec(target) * scale
    ridge, scaled = (a * scale) ** 2, pair_penalty.with_weights(pair_penalty.c * scale)
    v, slopes, chosen = np.zeros(d), Xty, np.zeros(d, dtype=bool)
    while True:
        sizes = scaled.group_norms(scaled.nearest_direction(slopes))
        bounds = scaled.c * float(scaled.direction_norm(v))
        violated = ((sizes > bounds * (1.0 + ENTERING_RTOL)) | (scaled.c == 0.0)) & ~chosen
        if not violated.any() or is_late():
            break
        order = np.argsort(-np.where(violated, sizes - bounds, -np.inf), kind="stable")[: int(violated.sum())]
        chosen[scaled.first_groups(order, max(INITIAL_COLUMNS, int(chosen.sum())))] = True
        active = np.flatnonzero(chosen)
        require_memory(
            8.0 * 6 * len(active) ** 2, f"the direction of labels in {len(active)} features", "use fewer features"
        )
        gram = whole.columns(active).scaled(scale[active]).second_moment() + np.diag(ridge[active])
        v[active] = minimize(gram, Xty[active], scaled.restrict(active))
        slopes = Xty - X.rmatvec(X @ (scale * v)) * scale - ridge * v
    return v * scale


def minimize(gram: Array, Xty: Array, pair_penalty: PairPenalty) -> Array:
    """Return argmin over feasible v of v' gram v - 2 Xty'v plus a penalty on pairs."""
    import clarabel

    d = len(Xty)
    A, cones = pair_penalty.direction_cones(clarabel)
    others = A.shape[1] - d - 1  # unknowns between v and its norm
    P = scipy.sparse.block_diag([np.triu(2.0 * gram), scipy.sparse.csc_array((others, others)), [[2.0]]], format="csc")
    q = np.concatenate([-2.0 * Xty, np.zeros(others + 1)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CLARABEL_TOL
    found = np.asarray(clarabel.DefaultSolver(P, q, A, np.zeros(A.shape[0]), cones, settings).solve().x[:d])
    if not np.all(np.isfinite(found)):
        return np.zeros(d)
    small = ZERO_COEFFICIENT_RTOL * np.abs(found).max(initial=0.0)
    found[pair_penalty.nearest_direction(found - small) == 0.0] = 0.0
    sizes = pair_penalty.group_norms(found)
    found[(sizes <= ZERO_GROUP_RTOL * sizes.max(initial=0.0)) & (pair_penalty.c > 0.0)] = 0.0
    cost = float(found @ gram @ found) + pair_penalty.direction_value(found)
    return found * max(float(Xty @ found), 0.0) / cost if cost > 0.0 else found
