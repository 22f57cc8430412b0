"""Certified optimal labels: brute force agrees, every intermediate bound is valid, constraints are satisfied."""

import numpy as np
import pytest
from instances import satisfies
from oracles import labelings_values

import diffrac_cvx as dc


def random_constraints(rng, n):
    y = rng.choice([-1, 1], n)
    pairs = rng.integers(0, n, (int(rng.integers(0, 4)), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    alike = y[pairs[:, 0]] == y[pairs[:, 1]]
    labels = np.where(rng.random(n) < 0.3, y, 0) if rng.random() < 0.5 else None
    return dc.Constraints(pairs[alike], pairs[~alike], labels, unlabelled=0)


def instance(seed, *, l1):
    rng = np.random.default_rng([2017, 26 if l1 else 24, seed])
    n, d = int(rng.integers(2, 9 if l1 else 11)), int(rng.integers(1, 4 if l1 else 5))
    X = rng.standard_normal((n, d)) if rng.integers(2) else rng.integers(-1, 2, (n, d)).astype(float)
    ridge = rng.choice([0.0, 0.1, 1.0], d) if rng.integers(2) else float(rng.choice([0.0, 0.3]))
    lam = rng.choice([0.02, 0.1, 0.4]) * np.var(X, axis=0) if l1 else 0.0
    nu = float(rng.choice([1.0, 1.0, 0.6, 0.1]))
    w = rng.integers(1, 4, n).astype(float) if rng.integers(3) == 0 else None
    return X, nu, ridge, lam, w, random_constraints(rng, n) if rng.integers(2) else None


def check(seed, *, l1):
    """Check labels, bounds and their certificate against all labellings; return the number of its branches."""
    X, nu, ridge, lam, w, constraints = instance(seed, l1=l1)
    tol = 1e-5 if l1 else 1e-6
    Y, costs = labelings_values(X, nu, ridge, lam, w)
    satisfied = satisfies(Y, constraints)
    best = float(costs[satisfied].min())
    found = dc.optimal_labels(X, nu, lam=lam, ridge=ridge, constraints=constraints, tol=tol, sample_weight=w)
    assert satisfies(found.labels[None], constraints)
    assert max(found.lower, found.root_bound) <= best + 1e-12
    assert found.upper >= best - 1e-12
    assert costs[np.all(found.labels == Y, axis=1)][0] == pytest.approx(found.upper, abs=1e-6 if l1 else 1e-8)
    assert found.status is dc.Status.OPTIMAL
    assert found.gap <= tol
    assert dc.check_certificate(X, found).lower == found.lower
    return len(found.certificate.proofs)


QUICK = (1, 2, 3, 4, 5, 8, 9, 10)


@pytest.fixture(params=[True, False], ids=["branching first", "cuts first"])
def branching(request):
    """Whether branch and bound comes before the cutting planes."""
    if not request.param:
        request.getfixturevalue("cuts_first")
    return request.param


@pytest.mark.parametrize("l1", [False, True], ids=["ridge", "l1"])
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(12, 312, 50))])
def test_brute_force_agrees_with_labels_and_bounds_that_the_checker_states_again(first, l1, branching):
    seeds = range(first, first + 50) if first else QUICK[: 8 if branching else 5]
    branches = [check(seed, l1=l1) for seed in seeds]
    assert l1 or not branching or max(branches) > 1


def test_labels_are_found_that_alternation_misses_and_every_bound_on_the_way_holds():
    X = dc.datasets.make_planted(60, 5, noise=0.5, rng=0).X
    found = dc.optimal_labels(X, tol=1e-5)
    assert found.status is dc.Status.OPTIMAL
    assert str(found).startswith("certified optimal to within the gap of [")
    assert f"after {found.n_nodes} relaxations" in str(found)
    assert found.root_bound < found.lower - 0.01
    lowers = [lower for _, lower, _ in found.history]
    assert all(lower <= found.upper for lower in lowers)
    assert lowers == sorted(lowers)
    relaxed = dc.low_rank(X, tol=1e-8)
    assert found.root_bound == pytest.approx(relaxed.lower, abs=1e-4)
    assert dc.certify_labels(X, found.labels, found.lower).gap <= 1e-5


def test_a_limit_gives_a_bracket_at_once_and_a_callback_ends_the_search():
    X = np.random.default_rng(0).standard_normal((80, 8))
    stopped = dc.optimal_labels(X, time_limit=0.0)
    assert stopped.status is dc.Status.TIME_LIMIT
    assert 0.0 <= stopped.lower < stopped.upper <= 1.0
    calls = []
    asked = dc.optimal_labels(X, callback=lambda *now: calls.append(now) or len(calls) > 2)
    assert asked.status is dc.Status.STOPPED
    assert [bracket.lower for bracket, *_ in calls] == sorted(bracket.lower for bracket, *_ in calls)
    assert asked.n_nodes > stopped.n_nodes


def test_where_no_column_varies_all_labels_cost_one():
    found = dc.optimal_labels(np.ones((5, 2)), constraints=dc.Constraints(cannot_link=[(0, 1)]))
    assert found.status is dc.Status.OPTIMAL
    assert found.labels[0] == -found.labels[1]
    assert found.lower == 1.0
    assert found.gap < 1e-12


@pytest.mark.parametrize("tol", [1e-16, 1e-6])
def test_the_search_ends_where_rounding_hides_what_is_left(tol):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 2))
    for table in (rng.standard_normal((4, 2)), np.column_stack([X, X[:, 0] + 1e-7 * rng.standard_normal(8)])):
        found = dc.optimal_labels(table, tol=tol)
        assert found.n_nodes < 2**10
        best = labelings_values(table)[1].min()
        assert found.lower <= best + 1e-12
        assert found.upper >= best - 1e-12
