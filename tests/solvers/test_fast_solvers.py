"""low_rank and both variants of fista: solutions compared with the paper's formula, warm starts and limits."""

from functools import cache, partial

import numpy as np
import oracles
import pytest
from forms import quick_or_slow
from instances import normal

import diffrac_cvx as dc
from diffrac_cvx.points.checks import as_data

PENALTIES = {
    "none": dc.Penalty(),
    "ridge": dc.Penalty(a=0.3),
    "l1": dc.Penalty(c=0.2),
    "both": dc.Penalty(a=0.1, c=[0.1, 0.3, 0.2, 0.0]),
}
TOL = {"low_rank": 1e-5, "accelerated": 1e-4, "published": 2e-2}  # published: O(1 / tol) iterations with a small step

with_and_without_l1 = pytest.mark.parametrize("penalty", ["none", "l1"])
pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning", "ignore:Solution may be")


SYMMETRIC = np.round(4 * normal(8, 3))  # integers, so that centring leaves the zero rows at zero
CASES = {
    "tall": normal(),
    "n < d": normal(5, 7),
    "d = 1": normal(20, 1),
    "low rank": normal(20, 2) @ normal(2, 4),
    "same column twice": normal(20, 3)[:, [0, 1, 2, 2]],
    "zero rows": np.vstack([SYMMETRIC, -SYMMETRIC, np.zeros((5, 3))]),
    "same rows thrice": np.repeat(normal(8, 3), 3, axis=0),
}
ODD = [case for case in CASES if case != "tall"]
MANY = dc.datasets.make_planted(80, 60, noise=0.5, rng=1).X[:, np.random.default_rng(1).permutation(60)]


@cache
def oracle(case, nu, penalty):
    """Value of Eq. (15) by the paper's formula, with CVXPY; accurate to 1e-6."""
    return oracles.solve_v(as_data(CASES[case], warn=False), nu, PENALTIES[penalty].a, PENALTIES[penalty].c)[0]


def solved(solver, case="tall", nu=0.5, penalty="l1", **options):
    options = {"tol": TOL[solver]} | options
    run = dc.low_rank if solver == "low_rank" else partial(dc.fista, variant=solver)
    return run(CASES[case], nu, PENALTIES[penalty], **options)


def assert_brackets(result, optimum):
    assert result.lower - 1e-6 <= optimum <= result.upper + 1e-6


# The answer


SOLVED = [("tall", nu, penalty) for nu in (0.25, 1.0) for penalty in PENALTIES]
SOLVED += [(case, nu, penalty) for case in ODD for nu, penalty in ((0.5, "l1"), (1.0, "none"))]
SOLVED += [("zero rows", 1.0, "l1"), ("same rows thrice", 1.0, "l1"), ("d = 1", 0.5, "none")]
MANY_STEPS = [("accelerated", case, 0.5, "l1") for case in ODD]


@quick_or_slow(
    ("solver", "case", "nu", "penalty"),
    [(solver, *one) for solver in TOL for one in SOLVED],
    [(solver, *one) for solver in TOL for one in SOLVED if (solver, *one) not in MANY_STEPS],
)
def test_the_result_brackets_eq_15_with_the_objective_of_its_matrix(solver, case, nu, penalty):
    few = {"max_iter": 200} if solver == "published" and case != "tall" else {}
    result = solved(solver, case, nu, penalty, **few)
    assert_brackets(result, oracle(case, nu, penalty))
    assert (result.status is dc.Status.OPTIMAL) == (result.gap <= TOL[solver])
    assert few or result.status is dc.Status.OPTIMAL
    X = as_data(CASES[case], warn=False)
    given = oracles.augmented(X, nu, PENALTIES[penalty].a, PENALTIES[penalty].c)
    assert result.value == result.upper == pytest.approx(oracles.v_objective(result.V, *given), abs=1e-12)
    assert_brackets(dc.certify_v(CASES[case], result.V, nu, PENALTIES[penalty]), oracle(case, nu, penalty))


@pytest.mark.parametrize("nu", [0.25, 1.0])
@pytest.mark.parametrize("case", CASES)
def test_the_factor_of_the_labels_is_that_of_appendix_C2(case, nu):
    result = solved("low_rank", case, nu)
    X, _, _ = oracles.augmented(as_data(CASES[case]), nu)
    scores = X @ result.V @ X.T
    size = np.sqrt(np.maximum(np.diag(scores), 0.0))
    live = size > 1e-6 * size.max()
    Y = result.F @ result.F.T
    expected = scores[np.ix_(live, live)] / np.outer(size[live], size[live])
    np.testing.assert_allclose(Y[np.ix_(live, live)], expected, atol=1e-6)


# Starting


@pytest.mark.parametrize("d", [12, 30])
def test_a_start_at_the_solution_for_a_nearby_penalty_saves_most_of_the_work(d):
    """With noise V is dense: from 24 columns, the start must also survive the working set."""
    first, cold = (dc.low_rank(MANY[:, :d], 0.5, dc.Penalty.l1(lam), tol=1e-4) for lam in (0.1, 0.11))
    warm = dc.low_rank(MANY[:, :d], 0.5, dc.Penalty.l1(0.11), tol=1e-4, start=first)
    assert warm.gap <= 1e-4
    assert warm.n_iter <= cold.n_iter / 2


# fista only: epsilon, and the scale of c that is adapted until (21) solves (15)


@pytest.mark.parametrize("variant", ["accelerated", "published"])
def test_the_l1_penalty_is_rescaled_until_eq_21_solves_eq_15(variant):
    """With c = 1 the scale of c changes much: at its first value, the gap would stay above 0.03."""
    result = dc.fista(CASES["tall"], 0.5, dc.Penalty(c=1.0), variant=variant, tol=2e-2, max_iter=3000)
    assert result.status is dc.Status.OPTIMAL


@with_and_without_l1
def test_a_given_epsilon_ends_the_published_variant_at_the_papers_own_rule(penalty):
    coarse, fine = (solved("published", nu=1.0, penalty=penalty, tol=1e-9, epsilon=eps) for eps in (1e-1, 1e-2))
    assert coarse.status is fine.status is dc.Status.SMOOTHED_GAP
    assert coarse.gap > fine.gap
    assert coarse.n_iter < fine.n_iter


def test_more_columns_than_the_points_determine_do_not_break_the_eigenvalue_solver():
    X = dc.datasets.make_planted(100, 80, sparsity=2, noise=0.3, rng=0).X  # M is near the identity: LAPACK's evr fails
    assert dc.fista(X, variant="published", epsilon=1e-2 / np.log(80)).upper < 2e-2
