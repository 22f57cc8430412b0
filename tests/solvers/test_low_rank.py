import tracemalloc
from functools import cache

import numpy as np
import oracles
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.solvers.factored.growing import most_promising

NUS = [0.25, 0.5, 1.0]
PENALTIES = {"none": dc.Penalty(), "ridge": dc.Penalty(a=0.3), "l1": dc.Penalty(c=0.3), "both": dc.Penalty(0.1, 0.2)}


def gaussian(n=20, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


SYMMETRIC = np.round(4 * gaussian(8, 3))  # integers, so that centring leaves the zero rows at zero
CASES = {
    "tall": gaussian(),
    "n < d": gaussian(6, 9),
    "d = 1": gaussian(20, 1),
    "low rank": gaussian(20, 2) @ gaussian(2, 5),
    "same column twice": gaussian(20, 3)[:, [0, 1, 2, 2]],
    "zero rows": np.vstack([SYMMETRIC, -SYMMETRIC, np.zeros((5, 3))]),
    "same rows thrice": np.repeat(gaussian(8, 3), 3, axis=0),
}

each_nu = pytest.mark.parametrize("nu", NUS)
each_case = pytest.mark.parametrize("case", CASES)
each_penalty = pytest.mark.parametrize("penalty", PENALTIES)
not_of_the_test = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning", "ignore:Solution may be")


@cache
def oracle(case, nu, penalty):
    """Value of Eq. (15) by the paper's formula, through CVXPY; right to 1e-6."""
    return oracles.solve_v(as_data(CASES[case], warn=False), nu, PENALTIES[penalty].a, PENALTIES[penalty].c)[0]


def solved(case="tall", nu=0.5, penalty="l1", **options):
    return dc.low_rank(CASES[case], nu, PENALTIES[penalty], **options)


def assert_brackets(result, optimum):
    assert result.lower - 1e-6 <= optimum <= result.upper + 1e-6


def many_columns(noise=0.0):
    """A clustering along one of 60 columns, all of unit variance; without noise the relaxation is tight."""
    return dc.datasets.make_planted(80, 60, noise=noise, rng=1).X[:, np.random.default_rng(1).permutation(60)]


@not_of_the_test
@each_nu
@each_penalty
@each_case
def test_the_gap_is_closed_around_the_value_of_eq_15(case, penalty, nu):
    result = solved(case, nu, penalty)
    assert result.status is dc.Status.OPTIMAL
    assert result.gap <= 1e-5
    assert_brackets(result, oracle(case, nu, penalty))
    assert result.value == result.upper


@not_of_the_test
@each_penalty
@each_case
def test_the_value_is_the_objective_of_the_matrix_returned(case, penalty):
    result = solved(case, 0.5, penalty)
    given = oracles.augmented(as_data(CASES[case], warn=False), 0.5, PENALTIES[penalty].a, PENALTIES[penalty].c)
    assert result.value == pytest.approx(oracles.v_objective(result.V, *given), abs=1e-12)


@not_of_the_test
@each_nu
@each_case
def test_the_factor_of_the_labels_is_that_of_appendix_C2(case, nu):
    result = solved(case, nu)
    X, _, _ = oracles.augmented(as_data(CASES[case]), nu)
    scores = X @ result.V @ X.T
    size = np.sqrt(np.maximum(np.diag(scores), 0.0))
    live = size > 1e-6 * size.max()
    Y = result.F @ result.F.T
    np.testing.assert_allclose(np.diag(Y), 1.0, rtol=1e-12)
    expected = scores[np.ix_(live, live)] / np.outer(size[live], size[live])
    np.testing.assert_allclose(Y[np.ix_(live, live)], expected, atol=1e-6)


@pytest.mark.parametrize(("d", "penalty"), [(9, "none"), (9, "l1"), (60, "l1")], ids=["no l1", "plain", "components"])
def test_the_history_narrows_to_the_bracket_returned(d, penalty):
    X = many_columns(0.5) if d == 60 else gaussian(60, d)
    result = dc.low_rank(X, 0.5, PENALTIES[penalty], tol=1e-16, max_iter=90)
    iterations, seconds, lower, upper = np.array(result.history).T
    assert len(result.history) > 1
    assert np.all(np.diff(iterations) > 0)
    for column in (seconds, lower, -upper):
        assert np.all(np.diff(column) >= 0)
    assert result.n_iter == iterations[-1]
    assert (result.lower, result.upper) == pytest.approx(
        (lower[-1], upper[-1]), abs=1e-11
    )  # upper is that of V as returned
    judged = dc.certify_v(X, result.V, 0.5, PENALTIES[penalty])
    assert judged.upper == pytest.approx(result.upper, abs=1e-12)
    assert judged.lower <= result.upper


# The working set


@pytest.mark.parametrize("noise", [0.0, 0.5], ids=["tight", "noisy"])
@pytest.mark.parametrize("nu", [0.5, 1.0])
def test_the_working_set_changes_the_work_and_not_the_bracket(noise, nu):
    X = many_columns(noise)
    within, without = (dc.low_rank(X, nu, dc.Penalty.l1(0.1), tol=1e-3, working_set=on) for on in (True, False))
    assert within.gap <= 1e-3
    assert without.gap <= 1e-3
    assert within.lower <= without.upper
    assert without.lower <= within.upper
    assert (within.V.shape, within.F.shape[0]) == (without.V.shape, without.F.shape[0])


def test_a_coordinate_without_l1_weight_is_always_among_the_first():
    c = np.full(60, 0.3)
    c[[7, 40]] = 0.0
    problem = direction_problem(as_data(many_columns(0.5)), 1.0, dc.Penalty(c=c))
    chosen = most_promising(problem, 8)
    best_alone = np.argmax(np.mean(np.abs(problem.X.array()), axis=0) ** 2 / np.diag(problem.A + np.diag(problem.c**2)))
    assert {best_alone, 7, 40} <= set(chosen)
    assert len(chosen) == 8


# Starting, stopping


@each_penalty
@pytest.mark.parametrize("d", [4, 30])
def test_a_start_at_the_solution_is_recognised(d, penalty):
    X = many_columns(0.5)[:, :d]
    cold = dc.low_rank(X, 0.5, PENALTIES[penalty], tol=1e-4)
    warm = dc.low_rank(X, 0.5, PENALTIES[penalty], tol=1e-4, start=cold)
    assert warm.status is dc.Status.OPTIMAL
    assert warm.n_iter <= cold.n_iter / 10


@pytest.mark.parametrize("d", [12, 30])
def test_a_start_at_the_solution_for_a_nearby_penalty_saves_most_of_the_work(d):
    """With noise V is dense: from 24 columns on, the start must survive the working set, too."""
    X = many_columns(0.5)[:, :d]
    first, cold = (dc.low_rank(X, 0.5, dc.Penalty.l1(lam), tol=1e-4) for lam in (0.1, 0.11))
    warm = dc.low_rank(X, 0.5, dc.Penalty.l1(0.11), tol=1e-4, start=first)
    assert warm.gap <= 1e-4
    assert warm.n_iter <= cold.n_iter / 2


@pytest.mark.parametrize("penalty", ["l1", "both"])
def test_the_multiplier_of_the_l1_part_comes_back_in_the_users_coordinates(penalty):
    result = solved("tall", 0.5, penalty)
    c = np.append(PENALTIES[penalty].weights(4)[1], 0.0)
    assert np.all(np.abs(result.C) <= np.outer(c, c) * (1 + 1e-12))
    large = np.abs(result.V) > 1e-2 * np.abs(result.V).max()
    np.fill_diagonal(large, False)
    np.testing.assert_allclose(result.C[large], (np.outer(c, c) * np.sign(result.V))[large], atol=1e-12)


@pytest.mark.parametrize("d", [4, 30])
@pytest.mark.parametrize("diagonal", [[-1.0], [0.0], [1e12], [1e-20], [1.0, 0.0]], ids=str)
def test_a_poor_start_does_no_harm(diagonal, d):
    start = np.diag(np.resize(diagonal, d))
    result = dc.low_rank(many_columns(0.5)[:, :d], 0.5, PENALTIES["l1"], tol=1e-3, start=start)
    without = dc.low_rank(many_columns(0.5)[:, :d], 0.5, PENALTIES["l1"], tol=1e-3)
    assert result.gap <= 1e-3
    assert result.lower <= without.upper
    assert without.lower <= result.upper


@pytest.mark.parametrize("max_iter", [1, 2, 7, 61, 130.0, 190])
@pytest.mark.parametrize(("d", "penalty"), [(4, "l1"), (4, "none"), (60, "l1")], ids=["plain", "no l1", "working set"])
def test_max_iter_is_never_exceeded(d, penalty, max_iter):
    X = many_columns(0.5)[:, :d]
    result = dc.low_rank(X, 0.5, PENALTIES[penalty], tol=1e-4, max_iter=max_iter)
    assert result.n_iter <= max_iter
    assert result.status is (dc.Status.OPTIMAL if result.gap <= 1e-4 else dc.Status.MAX_ITER)
    assert 0 <= result.lower <= result.upper <= 1


def test_the_time_limit_is_kept():
    result = dc.low_rank(many_columns(0.5), 0.5, PENALTIES["l1"], tol=1e-15, time_limit=0.05)
    assert result.status is dc.Status.TIME_LIMIT
    assert 0.05 <= result.seconds < 5.0  # the limit is looked at between rounds; machines may be busy


def test_the_callback_sees_the_history_and_can_stop():
    seen = []

    def second_time(progress):
        seen.append(progress)
        return len(seen) == 2

    result = solved(tol=1e-12, callback=second_time)
    assert result.status is dc.Status.STOPPED
    assert result.history == tuple(seen)
    assert_brackets(result, oracle("tall", 0.5, "l1"))


@pytest.mark.parametrize("d", [4, 60])
def test_the_result_is_the_same_every_time(d):
    X = many_columns(0.5)[:, :d]
    one, two = (dc.low_rank(X, 0.5, PENALTIES["l1"], tol=1e-4) for _ in range(2))
    np.testing.assert_array_equal(one.V, two.V)
    assert (one.lower, one.upper, one.n_iter) == (two.lower, two.upper, two.n_iter)


@pytest.mark.parametrize("penalty", ["none", "l1"])
def test_memory_is_a_few_times_the_data(penalty):
    X = gaussian(20_000, 30)
    tracemalloc.start()
    result = dc.low_rank(X, 1.0, PENALTIES[penalty], tol=1e-2, max_iter=30)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.n_iter > 0
    assert peak < 12 * X.nbytes
