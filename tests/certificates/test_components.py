"""Every optimal V is block diagonal along the components of one solution, also with groups and known signs."""

from functools import cache, partial

import numpy as np
import oracles
import pytest
from instances import sparse_instance
from penalties import PenaltyOfPairs, draw_sides

import diffrac_cvx as dc

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
by_interior_point = partial(dc.solve, solver="CLARABEL", **TIGHT)


def in_groups(seed):
    """Random data, groups of unequal sizes and weights, some 0, or signs, in every third, some a ridge."""
    rng = np.random.default_rng([2017, 26, seed])
    n, d = int(rng.integers(25, 45)), int(rng.integers(5, 10))
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = rng.permutation(np.arange(d) % int(rng.integers(3, d)))
    lists = [list(map(int, np.flatnonzero(labels == g))) for g in dict.fromkeys(labels)]
    lam = rng.uniform(0.05, 0.5) ** 2 * (
        np.array([*map(len, lists)]) if seed % 2 else rng.uniform(0.5, 2.0, len(lists))
    )
    if seed % 5 == 0:
        lam[0] = 0.0
    free = np.concatenate([columns for columns, weight in zip(lists, lam, strict=True) if weight > 0.0])
    signs = list(rng.choice(free, 3, replace=False)) if seed % 3 == 0 and len(free) > 2 else None
    known = {"groups": lists, "lam": lam} if signs is None else {"nonnegative": signs, "lam": lam[0] + 0.01}
    return X, (1.0, 0.5)[seed // 2 % 2], dc.Penalty(ridge=0.02 * (seed % 3), **known)


def restricted_value(X, nu, penalty, zero):
    """The optimum of (15) among the matrices with given zeros."""
    d, labels = X.shape[1], None if penalty.groups is None else penalty.groups.labels
    groups = [[j] for j in range(d)] if labels is None else [np.flatnonzero(labels == g) for g in np.unique(labels)]
    known = [] if penalty.nonnegative is None else penalty.nonnegative
    weights = np.broadcast_to(penalty.lam, len(groups))
    sides = getattr(penalty, "r", 1.0)
    return oracles.solve_pair_penalty(X, nu, penalty.ridge, groups, weights, known, zero=zero, sides=sides).optimum


def with_pairs(seed):
    """A sparse instance with a weight of each pair of columns."""
    X, nu, penalty = sparse_instance(seed)
    r = draw_sides(np.random.default_rng([2017, 33, seed]), X.shape[1])
    return X, nu, PenaltyOfPairs(r, a=penalty.a, c=penalty.c)


@cache
def optimum(make, seed):
    X, nu, penalty = make(seed)
    return by_interior_point(dc.v_space(X, nu, penalty))


def between_components(best, labels, atol=1e-3):
    """Check that V vanishes between components, and return where they are."""
    between = (labels[:, None] != labels) & (labels[:, None] >= 0) & (labels >= 0)
    V = best.V[: len(labels), : len(labels)]
    size = np.sqrt(np.outer(np.diag(V), np.diag(V))) + 1e-3 * np.abs(V).max()
    assert np.all(np.abs(V[between]) <= atol * size[between])
    return between


@pytest.mark.parametrize(
    ("make", "quick"),
    [(sparse_instance, 12), (in_groups, 6), (with_pairs, 6)],
    ids=["columns", "groups", "pairs"],
)
def test_v_vanishes_between_components_and_nothing_is_lost_by_it(make, quick):
    counts = []
    for seed in range(quick):
        (X, nu, penalty), best = make(seed), optimum(make, seed)
        labels = dc.find_components(X, best, nu, penalty)
        groups = np.arange(len(labels)) if penalty.groups is None else penalty.groups.labels
        assert all(len(set(labels[groups == g])) == 1 for g in np.unique(groups))
        between = between_components(best, labels, 1e-3 if penalty.groups is None else 2e-3)
        assert restricted_value(X, nu, penalty, between) == pytest.approx(best.value, abs=1e-5)
        counts.append(labels.max() + 1)
    assert min(counts) <= 2
    assert max(counts) > 1


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_a_solution_with_a_wide_gap_separates_nothing_that_belongs_together(tol):
    separated = 0
    for seed in range(6):
        X, nu, penalty = sparse_instance(seed)
        for solver in (dc.fista, dc.low_rank):
            labels = dc.find_components(X, solver(X, nu, penalty, tol=tol), nu, penalty)
            separated += between_components(optimum(sparse_instance, seed), labels).any()
    assert separated > 0 or tol > 1e-3  # a loose solution proves little


def components_at(X, nu, penalty):
    return dc.find_components(X, dc.low_rank(X, nu, penalty, tol=1e-7), nu, penalty)


def test_components_do_not_depend_on_units_and_follow_the_order_of_the_features():
    X, nu, penalty = sparse_instance(3)
    labels, (a, c) = components_at(X, nu, penalty), penalty.weights(X.shape[1])
    units, order = 10.0 ** np.arange(-2, X.shape[1] - 2), np.arange(X.shape[1])[::-1]
    np.testing.assert_array_equal(components_at(X * units, nu, dc.Penalty(a * units, c * units)), labels)
    mirrored, turned = components_at(X[:, order], nu, dc.Penalty(a[order], c[order])), labels[order]
    np.testing.assert_array_equal(mirrored[:, None] == mirrored, turned[:, None] == turned)


def test_features_without_an_l1_weight_belong_to_no_component():
    X, nu, penalty = sparse_instance(2)
    np.testing.assert_array_equal(components_at(X, nu, penalty) < 0, penalty.c == 0.0)
    assert np.all(dc.find_components(X, dc.low_rank(X)) == -1)


def test_nothing_is_proved_to_be_apart_where_the_powers_of_a_row_are_too_small_to_be_numbers():
    X, penalty = sparse_instance(1)[0], dc.Penalty(a=0.2, c=0.5)
    for faint, apart in ((1e-20, True), (1e-60, False), (1e-90, False)):
        weights = np.append(faint, np.ones(len(X) - 1))
        result = dc.low_rank(X, 1.0, penalty, sample_weight=weights)
        found = dc.find_components(X, result, 1.0, penalty, sample_weight=weights)
        assert (len(set(found)) > 1) is apart
        assert result.gap <= 1e-5, "the bracket holds all the same"
