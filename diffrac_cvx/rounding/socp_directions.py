"""Directions of labels with column groups or sign constraints: a second-order cone problem."""

from typing import Any

import numpy as np
import scipy.sparse

from diffrac_cvx.machine.deadlines import is_late
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.points import Mask, Points
from diffrac_cvx.problem.penalties.pair_penalty import IndexArray
from diffrac_cvx.problem.penalties.structure import PenaltyWeights

INITIAL_COLUMNS = 300  # of the initial working set, in whole groups
ENTERING_RTOL = 1e-6  # relative violation of its bound at which a gradient enters the working set
ZERO_GROUP_RTOL = 1e-4  # of the largest group, in unit columns: smaller ones are set to 0 (Clarabel leaves about 1e-6)
ZERO_COEFFICIENT_RTOL = 1e-7  # of the largest coefficient: smaller nonnegative ones are set to 0
CLARABEL_TOL = 1e-11


def socp_direction(X: Points, target: Array, weights: PenaltyWeights) -> Array:
    """Return approx. argmin over v of |target - X v|^2/n + sum a_i^2 v_i^2 + (sum_g w_g |v_g|)^2, some v_j >= 0.

    The working set grows by the groups whose gradient violates the optimality conditions.
    """
    a, c, (labels, nonnegative) = weights.a, weights.c, (weights.structure.labels, weights.structure.nonnegative)
    target = X.times_root_counts(target)
    X = X.weighted_rows()
    d = len(a)
    labels = np.arange(d) if labels is None else np.unique(labels, return_inverse=True)[1]
    nonnegative = np.zeros(d, dtype=bool) if nonnegative is None else nonnegative
    scale = inverse_or_one(weights.structure.group_max(np.sqrt(X.mean_squares() + a**2 + c**2)))
    whole, Xty = X.in_columns(), X.rmatvec(target) * scale
    ridge, w = (a * scale) ** 2, c * scale
    v, slopes, chosen = np.zeros(d), Xty, np.zeros(d, dtype=bool)
    while True:
        sizes = np.sqrt(np.bincount(labels, np.where(nonnegative, np.maximum(slopes, 0.0), slopes) ** 2))
        bounds = np.bincount(labels, w) / np.bincount(labels) * group_norm(v, w, labels)
        violated = sizes > bounds * (1.0 + ENTERING_RTOL)
        violated[labels[chosen]] = False
        violated |= (np.bincount(labels, w) == 0.0) & ~np.isin(np.arange(len(sizes)), labels[chosen])
        if not violated.any() or is_late():
            break
        order = np.argsort(-np.where(violated, sizes - bounds, -np.inf), kind="stable")[: int(violated.sum())]
        room = max(INITIAL_COLUMNS, int(chosen.sum()))
        fits = np.cumsum(np.bincount(labels)[order]) <= room
        fits[0] = True
        chosen |= np.isin(labels, order[fits])
        active = np.flatnonzero(chosen)
        require_memory(
            8.0 * 6 * len(active) ** 2, f"the direction of labels in {len(active)} features", "use fewer features"
        )
        gram = whole.columns(active).scaled(scale[active]).second_moment() + np.diag(ridge[active])
        v[active] = minimize(gram, Xty[active], w[active], labels[active], nonnegative[active])
        slopes = Xty - X.rmatvec(X @ (scale * v)) * scale - ridge * v
    return v * scale


def group_norm(v: Array, w: Array, labels: IndexArray) -> float:
    """Return sum_g w_g |v_g|."""
    return float(np.sqrt(np.bincount(labels, (w * v) ** 2)).sum())


def minimize(gram: Array, Xty: Array, w: Array, labels: IndexArray, nonnegative: Mask) -> Array:
    """Return argmin over v of v' gram v - 2 Xty'v + (sum_g w_g |v_g|)^2, v_j >= 0 if nonnegative_j."""
    import clarabel

    labels = np.unique(labels, return_inverse=True)[1]
    d, groups = len(Xty), int(labels.max(initial=-1)) + 1
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(groups + 1))
    weights = w[order[starts[:-1]]]
    # Unknowns: v, the norm of each group, and their weighted sum.
    P = scipy.sparse.block_diag([np.triu(2.0 * gram), scipy.sparse.csc_array((groups, groups)), [[2.0]]], format="csc")
    q = np.concatenate([-2.0 * Xty, np.zeros(groups + 1)])
    rows: list[Any] = [scipy.sparse.csc_array(np.concatenate([np.zeros(d), weights, [-1.0]])[None])]
    cones: list[Any] = [clarabel.ZeroConeT(1)]
    identity = scipy.sparse.identity(d + groups + 1, format="csr")
    if nonnegative.any():
        rows.append(-identity[np.flatnonzero(nonnegative)])
        cones.append(clarabel.NonnegativeConeT(int(nonnegative.sum())))
    places = [np.append(d + g, order[starts[g] : starts[g + 1]]) for g in range(groups)]
    rows.append(-identity[np.concatenate(places)])
    cones += [clarabel.SecondOrderConeT(len(place)) for place in places]
    A = scipy.sparse.vstack(rows, format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CLARABEL_TOL
    found = np.asarray(clarabel.DefaultSolver(P, q, A, np.zeros(A.shape[0]), cones, settings).solve().x[:d])
    if not np.all(np.isfinite(found)):
        return np.zeros(d)
    found[nonnegative & (found <= ZERO_COEFFICIENT_RTOL * np.abs(found).max())] = 0.0
    sizes = np.sqrt(np.bincount(labels, found**2))
    found[((sizes <= ZERO_GROUP_RTOL * sizes.max()) & (weights > 0.0))[labels]] = 0.0
    cost = float(found @ gram @ found) + group_norm(found, w, labels) ** 2
    return found * max(float(Xty @ found), 0.0) / cost if cost > 0.0 else found
