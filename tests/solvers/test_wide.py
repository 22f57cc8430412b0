"""Certified bounds for tables with more columns than rows, solved on working sets, for all features.

The reference implementations follow (15) and its dual, in NumPy, in fractions and with CVXPY.  Any V gives a value that
no lower bound may exceed, however inaccurate the solver.
"""

import numpy as np
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates import direction_bounds
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.screening import Verdict
from diffrac_cvx.certificates.working_set_bounds import check_kkt
from diffrac_cvx.machine.work import work_done
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.solvers.driver import Iterate, Stopping, WarmStart
from diffrac_cvx.solvers.factored import working_set
from diffrac_cvx.solvers.factored.working_set import working_set_iterates

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")


ROUNDING = 1e-11  # of the reference values, in NumPy


# Parts of the working-set certificate


def test_weights_whose_products_underflow_leave_no_pair_out():
    """G_jk / (c_j c_k) is NaN if c_j c_k is 0 or sums overflow: such a pair counts as violated."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 2))
    X[:, 1] = X[:, 0]
    problem = direction_problem(as_data(X), 1.0, dc.Penalty(0.3, 1e-160))
    u = rng.uniform(0.2, 2.0, 3000)
    core, C = block_problem(problem, np.zeros(0, dtype=np.intp)), np.zeros((0, 0))
    A, M = problem.X.second_moment() + np.diag(problem.a**2), problem.X.weighted_gram(u)
    least = float(np.linalg.eigvals(np.linalg.solve(A, M)).real.max())
    assert check_kkt(core, u, C, 0.98 * least).bound is None


@pytest.mark.parametrize("size", [1e-100, 1e-165, 1e-170, 1e-310])
@pytest.mark.parametrize("least", [10, 200], ids=["working set", "components"])
def test_brackets_with_tiny_weights_are_those_without(monkeypatch, size, least):
    monkeypatch.setattr(direction_bounds, "MIN_WIDE_SIZE", least)
    rng = np.random.default_rng(3)
    X = np.zeros((12, 30))
    for column in X.T:
        column[rng.choice(12, 4, replace=False)] = [1.0, -1.0, 2.0, -2.0]
    found = dc.low_rank(X, penalty=dc.Penalty(0.3, size), tol=1e-4)
    assert found.invalid_bound is None
    ridge = dc.low_rank(X, penalty=dc.Penalty(0.3), tol=1e-6)
    assert found.lower <= ridge.upper + ROUNDING
    assert found.upper >= ridge.lower - ROUNDING


# Bad tables


def bad_tables():
    """Tables of thousands of columns that are equal up to sign, repeated, constant or in any units."""
    rng = np.random.default_rng(5)
    X, x = rng.standard_normal((30, 2000)), rng.standard_normal(30)
    plain = {"lam": 0.1, "ridge": 0.3}
    some = np.where(np.arange(2000) % 2 == 0, 3.0, X)
    alone = np.where(np.arange(2000) == 7, X, 2.0)
    return {
        "equal up to sign": (np.outer(x, rng.choice([-1.0, 1.0], 1000)), plain),
        "repeated": (np.tile(X[:, :20], 50), plain),
        "half of them constant": (some, plain),
        "all but one constant": (alone, plain),
        "ridge by column, some zero": (X, {"lam": 0.05, "ridge": rng.choice([0.0, 0.3, 1.0], 2000)}),
        "all alive": (X, {"lam": 1e-6, "ridge": 0.3}),
        "none alive": (X, {"lam": 1e6, "ridge": 0.3}),
        "heavy tails": (rng.standard_t(1.2, (30, 2000)), plain),
        "units": (X * 10.0 ** rng.uniform(-6, 6, 2000), plain),
        "two points": (X[:2], plain),
        "many": (rng.standard_normal((20, 50_000)), plain),
    }


@pytest.mark.parametrize("name", bad_tables())
def test_a_short_time_leaves_a_valid_bracket_and_labels_to_read(name):
    X, weights = bad_tables()[name]
    result = dc.low_rank(X, **weights, tol=1e-3, time_limit=0.1)
    assert result.invalid_bound is None
    assert 0.0 <= result.lower <= result.upper <= 1.0 + ROUNDING
    assert result.seconds <= 1.5
    labels = dc.rounding.kmeans_centered(result.F)
    assert set(labels) <= {-1.0, 1.0}
    data, size = X - X.mean(axis=0), X.shape[1]
    a, c = np.sqrt(np.broadcast_to(weights["ridge"], size)), np.sqrt(weights["lam"])
    gains = np.mean(np.abs(data), axis=0) ** 2 / np.maximum(np.mean(data**2, axis=0) + a**2 + c**2, 1e-300)
    assert result.upper <= 1.0 - gains.max() + 1e-8  # the rounding of 50 000 columns
    assert result.lower <= 1.0 - gains.max() + ROUNDING


def test_no_large_gap_is_left_after_limited_work_where_the_columns_are_independent():
    X, start = np.random.default_rng(0).standard_normal((60, 1000)), work_done()
    X, options = X / X.std(axis=0), {"lam": 0.1, "ridge": 0.3, "rtol": 0.1}
    result = dc.low_rank(X, **options, callback=lambda _: work_done() - start > 1e11)
    assert result.status is dc.Status.OPTIMAL


def test_the_rank_grows_while_the_gap_on_a_working_set_stalls():
    X = np.cumsum(np.random.default_rng(1).standard_normal((60, 50)), axis=1)
    problem = direction_problem((X - X.mean(axis=0)) / X.std(axis=0), 1.0, dc.Penalty(lam=0.01, ridge=0.05))
    points = working_set_iterates(problem, WarmStart(), Stopping(1e-5, 400))
    points = [point for point in points if isinstance(point, Iterate)]
    assert max(one.bound.lower for one in points) >= 0.999 * min(one.point.value for one in points)


def test_the_multiplier_is_refined_once_the_gap_on_a_working_set_stalls():
    """Two groups in 10 of 100 columns: with the multiplier of the steps alone, a gap of .036 is left."""
    rng = np.random.default_rng(0)
    y, X = rng.permutation(np.resize([-1.0, 1.0], 50)), rng.standard_normal((50, 100))
    X[:, :10] += 0.6 * y[:, None]
    problem = direction_problem((X - X.mean(axis=0)) / X.std(axis=0), 1.0, dc.Penalty(lam=0.03, ridge=0.03))
    points = working_set_iterates(problem, WarmStart(), Stopping(1e-5, 1200))
    points = [point for point in points if isinstance(point, Iterate)]
    assert max(one.bound.lower for one in points) >= 0.99 * min(one.point.value for one in points)


def test_after_a_failure_the_mean_of_the_failed_and_the_certified_gap_is_tried_on_the_same_solution(monkeypatch):
    X = np.random.default_rng(0).standard_normal((60, 300))
    problem = direction_problem((X - X.mean(axis=0)) / X.std(axis=0), 1.0, dc.Penalty(lam=0.1, ridge=0.3))
    tried, certified = [], []

    def check(split, u, C, t):
        found = check_kkt(split, u, C, t) if u is failed_u else Verdict()  # the first of a solution fails
        tried.append((u, 1.0 - t * problem.mean_inverse(u), found.bound))
        return found

    monkeypatch.setattr(working_set, "check_kkt", check)
    upper, lower, failed, failed_u = 1.0, 0.0, 0.0, None
    for point in working_set_iterates(problem, WarmStart(), Stopping(1e-5, 400)):
        for u, bound, found in tried:
            gap, known = (upper - bound) / 0.99, upper - lower
            if u is failed_u:
                assert gap == pytest.approx(np.sqrt(failed * known))
                assert gap <= 0.9 * known
                certified.append(found is not None)
            failed, failed_u = (gap, u) if found is None else (failed, failed_u)
            lower = lower if found is None else max(lower, found.lower)
        tried.clear()
        if isinstance(point, Iterate):
            upper, lower = min(upper, point.point.value), max(lower, point.bound.lower)
        if any(certified):
            return
    pytest.fail("No mean was certified.")


@pytest.mark.parametrize(("n", "d"), [(500, 300), (300, 260)])
def test_blocks_are_not_given_up_while_what_they_certified_stands_though_the_last_step_screened_no_pairs(n, d):
    """Independent columns, 20 of them with two groups: given up after 60 steps, a gap of a fifth was left after 400."""
    rng = np.random.default_rng(0)
    y, X = rng.choice([-1.0, 1.0], n), rng.standard_normal((n, d))
    X[:, :20] += 0.8 * y[:, None]
    X = X - X.mean(axis=0)
    result = dc.low_rank(X / X.std(axis=0), lam=0.02, ridge=0.05, tol=1e-9, rtol=1e-3, max_iter=400)
    assert result.status is dc.Status.OPTIMAL
