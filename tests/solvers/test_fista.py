from functools import cache

import numpy as np
import oracles
import pytest

import diffrac_cvx as dc
from diffrac_cvx.points.checks import as_data

NUS = [0.25, 0.5, 1.0]
PENALTIES = {"none": dc.Penalty(), "l1": dc.Penalty(c=0.2), "both": dc.Penalty(a=0.1, c=[0.1, 0.3, 0.2, 0.0])}
TOL = {"accelerated": 1e-4, "published": 2e-2}  # the published variant takes O(1 / tol) iterations, of a small step

each_nu = pytest.mark.parametrize("nu", NUS)
each_penalty = pytest.mark.parametrize("penalty", PENALTIES)
each_variant = pytest.mark.parametrize("variant", TOL)


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
each_odd_case = pytest.mark.parametrize("case", [case for case in CASES if case != "tall"])
not_of_the_test = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning", "ignore:Solution may be")


@cache
def oracle(case, nu, penalty):
    """Value of Eq. (15) by the paper's formula, through CVXPY; right to 1e-6."""
    return oracles.solve_v(as_data(CASES[case], warn=False), nu, PENALTIES[penalty].a, PENALTIES[penalty].c)[0]


def solved(case="tall", nu=0.5, penalty="l1", **options):
    return dc.fista(CASES[case], nu, PENALTIES[penalty], **options)


def assert_brackets(result, optimum):
    assert result.lower - 1e-6 <= optimum <= result.upper + 1e-6


@each_nu
@each_penalty
@each_variant
def test_the_gap_is_closed_around_the_value_of_eq_15(variant, penalty, nu):
    result = solved("tall", nu, penalty, variant=variant, tol=TOL[variant])
    assert result.status is dc.Status.OPTIMAL
    assert result.gap <= TOL[variant]
    assert_brackets(result, oracle("tall", nu, penalty))


@each_variant
def test_the_l1_part_is_rescaled_until_eq_21_solves_eq_15(variant):
    """With c = 1 the scale of c moves a lot: kept at its first value, the gap stays above 0.03."""
    result = dc.fista(CASES["tall"], 0.5, dc.Penalty(c=1.0), variant=variant, tol=2e-2, max_iter=3000)
    assert result.status is dc.Status.OPTIMAL


@not_of_the_test
@pytest.mark.parametrize("nu", [0.5, 1.0])
@pytest.mark.parametrize("penalty", ["none", "l1"])
@each_odd_case
def test_the_gap_is_closed_on_singular_data_and_with_zero_rows(case, penalty, nu):
    result = solved(case, nu, penalty)
    assert result.gap <= 1e-3
    assert_brackets(result, oracle(case, nu, penalty))
    assert np.all(np.isfinite(result.V))
    np.testing.assert_allclose(np.sum(result.F**2, axis=1), 1.0, rtol=1e-12)


@not_of_the_test
@pytest.mark.parametrize("penalty", ["none", "l1"])
@each_odd_case
def test_the_published_bracket_holds_on_singular_data_and_with_zero_rows(case, penalty):
    result = solved(case, 0.5, penalty, variant="published", tol=TOL["published"], max_iter=200)
    assert_brackets(result, oracle(case, 0.5, penalty))
    assert (result.status is dc.Status.OPTIMAL) == (result.gap <= TOL["published"])


@each_variant
@each_penalty
def test_the_value_is_the_objective_of_the_matrix_returned(variant, penalty):
    result = solved("tall", 0.5, penalty, variant=variant, tol=TOL[variant])
    given = oracles.augmented(as_data(CASES["tall"]), 0.5, PENALTIES[penalty].a, PENALTIES[penalty].c)
    assert result.value == result.upper
    assert result.value == pytest.approx(oracles.v_objective(result.V, *given), abs=1e-12)


@each_variant
@pytest.mark.parametrize("penalty", ["none", "l1"])
def test_the_history_narrows_to_the_bracket_returned(variant, penalty):
    result = solved("tall", 0.5, penalty, variant=variant, tol=TOL[variant])
    iterations, seconds, lower, upper = np.array(result.history).T
    assert len(result.history) > 1
    assert np.all(np.diff(iterations) >= 0)
    assert np.all(np.diff(seconds) >= 0)
    assert np.all(np.diff(lower) >= 0)
    assert np.all(np.diff(upper) <= 0)
    assert result.n_iter == iterations[-1]
    assert (result.lower, result.upper) == pytest.approx((lower[-1], upper[-1]), abs=1e-12)
    judged = dc.certify_v(CASES["tall"], result.V, 0.5, PENALTIES[penalty])
    assert judged.upper == pytest.approx(result.upper, abs=1e-12)
    assert_brackets(judged, oracle("tall", 0.5, penalty))


@each_variant
def test_the_callback_sees_the_history_and_can_stop(variant):
    seen = []

    def third_time(progress):
        seen.append(progress)
        return len(seen) == 3

    result = solved(variant=variant, tol=1e-9, callback=third_time)
    assert result.status is dc.Status.STOPPED
    assert result.history == tuple(seen)
    assert len(seen) == 3
    assert_brackets(result, oracle("tall", 0.5, "l1"))


@each_variant
@pytest.mark.parametrize("penalty", ["none", "l1"])
@pytest.mark.parametrize("max_iter", [1, 30, 101, 130.0])
def test_max_iter_is_kept_and_leaves_a_valid_bracket(variant, penalty, max_iter):
    result = solved("tall", 0.5, penalty, variant=variant, tol=1e-9, max_iter=max_iter)
    assert result.status is dc.Status.MAX_ITER
    assert result.n_iter == max_iter
    assert_brackets(result, oracle("tall", 0.5, penalty))


@each_variant
def test_the_time_limit_is_kept_and_leaves_a_valid_bracket(variant):
    result = solved(variant=variant, tol=1e-12, time_limit=0.05, max_iter=10**6)
    assert result.status is dc.Status.TIME_LIMIT
    assert 0.05 <= result.seconds < 5.0  # the limit is looked at every hundred iterations; machines may be busy
    assert_brackets(result, oracle("tall", 0.5, "l1"))


@each_nu
@each_penalty
def test_a_start_at_the_optimum_is_recognised(penalty, nu):
    optimum = dc.low_rank(CASES["tall"], nu, PENALTIES[penalty], tol=1e-6)
    result = solved("tall", nu, penalty, start=optimum)
    assert result.status is dc.Status.OPTIMAL
    assert result.n_iter <= 10


@each_penalty
def test_solving_again_from_the_solution_costs_less_than_the_first_time(penalty):
    cold = [solved("tall", nu, penalty, tol=1e-4) for nu in NUS]
    warm = [solved("tall", nu, penalty, tol=1e-4, start=first) for nu, first in zip(NUS, cold, strict=True)]
    assert all(result.gap <= 1e-4 for result in warm)
    assert sum(result.n_iter for result in warm) < 0.8 * sum(result.n_iter for result in cold)


@each_variant
@pytest.mark.parametrize(
    "start", [-np.eye(4), np.zeros((4, 4)), 1e12 * np.eye(4), 1e-20 * np.eye(4), np.diag([1.0, 0, 0, 0])]
)
def test_a_poor_start_does_no_harm(variant, start):
    result = solved("tall", 0.5, "l1", variant=variant, tol=TOL[variant], start=start)
    assert result.gap <= TOL[variant]
    assert_brackets(result, oracle("tall", 0.5, "l1"))


@each_variant
def test_the_result_is_the_same_every_time(variant):
    one, two = (solved(variant=variant, tol=TOL[variant]) for _ in range(2))
    np.testing.assert_array_equal(one.V, two.V)
    assert (one.lower, one.upper, one.n_iter) == (two.lower, two.upper, two.n_iter)


def test_epsilon_decides_what_gap_the_published_variant_can_reach():
    coarse, fine = (solved(variant="published", tol=2e-2, epsilon=eps, max_iter=2000) for eps in (0.3, 5e-3))
    assert coarse.status is dc.Status.PUBLISHED
    assert coarse.gap > 2e-2
    assert fine.status is dc.Status.OPTIMAL


@pytest.mark.parametrize("penalty", ["none", "l1"])
def test_a_given_epsilon_ends_the_published_variant_at_the_papers_own_rule(penalty):
    epsilons = (1e-1, 1e-2, 1e-3)
    ends = [solved("tall", 1.0, penalty, variant="published", tol=1e-9, epsilon=eps) for eps in epsilons]
    assert all(end.status is dc.Status.PUBLISHED for end in ends)
    assert ends[0].gap > ends[1].gap > ends[2].gap
    assert ends[0].n_iter < ends[1].n_iter < ends[2].n_iter


def test_the_accelerated_variant_sets_its_own_epsilon():
    with pytest.raises(dc.ParameterError, match="variant='published'"):
        solved(epsilon=1e-3)


@not_of_the_test
def test_more_columns_than_the_points_determine_do_not_break_the_eigenvalue_solver():
    X = dc.datasets.make_planted(100, 80, sparsity=2, noise=0.3, rng=0).X  # M is near the identity: LAPACK's evr fails
    assert dc.fista(X, variant="published", epsilon=1e-2 / np.log(80)).upper < 2e-2
