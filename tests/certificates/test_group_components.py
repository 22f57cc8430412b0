"""With groups of columns, or known signs, every optimal V is block diagonal along the components too."""

import cvxpy as cp
import numpy as np
import pytest

import diffrac_cvx as dc

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}


def instance(seed):
    """Random data, groups of unequal sizes and weights, some 0, signs in every third, some a ridge."""
    rng = np.random.default_rng([2017, 26, seed])
    n, d = int(rng.integers(25, 45)), int(rng.integers(5, 10))
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = rng.permutation(np.arange(d) % int(rng.integers(3, d)))
    sizes = np.unique(labels, return_counts=True)[1]
    lam = rng.uniform(0.05, 0.5) ** 2 * (sizes if seed % 2 else rng.uniform(0.5, 2.0, len(sizes)))
    order = np.argsort([list(labels).index(g) for g in range(len(sizes))])
    lists = [list(np.flatnonzero(labels == g)) for g in order]
    lam = lam[order]
    if seed % 5 == 0:
        lam[0] = 0.0
    free = np.concatenate([columns for columns, weight in zip(lists, lam, strict=True) if weight > 0.0])
    signs = list(rng.choice(free, 3, replace=False)) if seed % 3 == 0 and len(free) > 2 else None
    penalty = dc.Penalty(lam=lam, ridge=0.02 * (seed % 3), groups=[list(map(int, g)) for g in lists], nonnegative=signs)
    return X, (1.0, 0.5)[seed // 2 % 2], penalty


def restricted_value(X, nu, penalty, zero):
    """The optimum among the matrices with given zeros, in CVXPY alone."""
    (n, d), names = X.shape, penalty.groups.labels
    w = np.sqrt(np.broadcast_to(penalty.lam, len(np.unique(names))))
    ridge = np.full(d, float(penalty.ridge))
    rows, size = X, d
    if nu < 1.0:
        rows, ridge, size = np.column_stack([X, np.ones(n)]), np.append(ridge, nu / (1.0 - nu)), d + 1
    V = cp.Variable((size, size), PSD=True)
    value = 1 - 2 * cp.sum(cp.sqrt(cp.sum(cp.multiply(rows @ V, rows), axis=1))) / n
    value += cp.trace((rows.T @ rows / n + np.diag(ridge)) @ V)
    for g in range(len(w)):
        for h in range(len(w)):
            block = V[np.flatnonzero(names == g), :][:, np.flatnonzero(names == h)]
            value += w[g] * w[h] * (cp.trace(block) if g == h else cp.normNuc(block))
    constraints = [V[j, k] == 0 for j, k in zip(*np.nonzero(zero), strict=True) if j < k]
    if penalty.nonnegative is not None:
        chosen = np.asarray(penalty.nonnegative)
        constraints.append(V[chosen, :][:, chosen] >= 0)
    return float(cp.Problem(cp.Minimize(value), constraints).solve(solver="CLARABEL"))


def hold_to_the_interior_point(seed):
    """Compare V between components with 0, and the optimum of the block diagonal matrices with the optimum."""
    X, nu, penalty = instance(seed)
    best = dc.solve(dc.v_space(X, nu, penalty), "CLARABEL", **TIGHT)
    labels = dc.find_components(X, best, nu, penalty)
    groups = penalty.groups.labels
    assert all(len(set(labels[groups == g])) == 1 for g in np.unique(groups)), seed
    between = (labels[:, None] != labels) & (labels[:, None] >= 0) & (labels >= 0)
    V = best.V[: len(labels), : len(labels)]
    size = np.sqrt(np.outer(np.diag(V), np.diag(V))) + 1e-3 * np.abs(V).max()
    assert np.all(np.abs(V[between]) <= 2e-3 * size[between]), seed
    assert restricted_value(X, nu, penalty, between) == pytest.approx(best.value, abs=1e-5), seed
    return labels.max() + 1


def test_v_vanishes_between_components_of_groups_and_nothing_is_lost_by_it():
    counts = [hold_to_the_interior_point(seed) for seed in range(6)]
    assert max(counts) > 1


@pytest.mark.slow
def test_v_vanishes_between_components_of_groups_on_two_hundred_instances():
    counts = [hold_to_the_interior_point(seed) for seed in range(200)]
    assert len(set(counts)) > 3


def test_groups_of_one_have_the_components_of_single_columns():
    X, nu, _ = instance(1)
    alone, grouped = dc.Penalty(lam=0.05), dc.Penalty(lam=0.05, groups=list(range(X.shape[1])))
    found = [dc.find_components(X, dc.low_rank(X, nu, p, tol=1e-8), nu, p) for p in (alone, grouped)]
    np.testing.assert_array_equal(*found)
