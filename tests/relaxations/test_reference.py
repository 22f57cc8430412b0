import tracemalloc

import cvxpy as cp
import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.errors import ResourceError
from diffrac_cvx.solvers import reference

BOTH = dc.Penalty(a=0.1, c=[0.3, 0.1, 0.2])
RELAXATIONS = {
    "constrained_alpha": lambda X: dc.constrained_alpha(X, 0.1),
    "balanced": lambda X: dc.constrained_alpha(X, 0.0),
    "penalized_nu": lambda X: dc.penalized_nu(X, 0.5, dc.Penalty(a=0.2)),
    "lifted": lambda X: dc.lifted(X, 0.5, BOTH),
    "v_space": lambda X: dc.v_space(X, 0.5, BOTH),
    "v_space_normalized": lambda X: dc.v_space_normalized(X, 0.5, BOTH),
}


each_relaxation = pytest.mark.parametrize("build", RELAXATIONS.values(), ids=RELAXATIONS)
each_solver = pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])


@each_relaxation
def test_solvers_agree_within_their_brackets(noisy, build):
    results = [dc.solve(build(noisy), solver) for solver in ("CLARABEL", "SCS", "clarabel", None)]
    for result in results:
        assert result.status is dc.Status.OPTIMAL
        assert result.value == pytest.approx(result.upper, abs=1e-12)
        assert 0.0 <= result.gap <= 1e-4
        assert result.n_iter > 0
        assert result.seconds > 0
    assert max(result.lower for result in results) <= min(result.upper for result in results) + 1e-9
    assert results[0].solver == results[2].solver == "CLARABEL"


# Neutral options


@each_solver
def test_a_smaller_tolerance_gives_a_smaller_gap_and_a_limit_of_one_call_does_not_stay_for_the_next(noisy, solver):
    relaxation = dc.penalized_nu(noisy, 0.5)
    loose, tight = (dc.solve(relaxation, solver, tol=tol) for tol in (1e-1, 1e-6))
    assert dc.solve(relaxation, solver, max_iter=2).n_iter == 2
    assert dc.solve(relaxation, solver).status is loose.status is tight.status is dc.Status.OPTIMAL
    assert tight.gap <= 1e-6 < loose.gap
    assert tight.n_iter > loose.n_iter


@pytest.mark.parametrize(("solver", "option"), [("CLARABEL", {"max_step_fraction": 0.5}), ("SCS", {"alpha": 1.0})])
def test_options_of_the_solver_itself_are_passed_as_they_are_and_win_over_the_neutral_ones(noisy, solver, option):
    with_it, without = (dc.solve(dc.penalized_nu(noisy, 0.5), solver, **options) for options in (option, {}))
    assert with_it.n_iter != without.n_iter
    assert dc.solve(dc.v_space(noisy), "SCS", max_iter=500, max_iters=3).n_iter == 3


@each_relaxation
@each_solver
def test_one_iteration_gives_a_valid_bracket_and_says_why_it_is_wide(noisy, build, solver):
    optimum = dc.solve(build(noisy))
    result = dc.solve(build(noisy), solver, max_iter=1)
    assert result.lower <= optimum.upper
    assert result.upper >= optimum.lower
    assert result.n_iter <= 1
    assert result.status in (dc.Status.MAX_ITER, dc.Status.USER_LIMIT, dc.Status.FAILED)
    assert np.isfinite(result.F).all()


@each_solver
def test_a_time_limit_is_passed_on(solver):
    X = np.random.default_rng(0).standard_normal((60, 30))
    result = dc.solve(dc.penalized_nu(X), solver, tol=1e-9, time_limit=1e-3)
    assert result.status in (dc.Status.TIME_LIMIT, dc.Status.USER_LIMIT, dc.Status.FAILED)
    assert 0.0 <= result.lower <= result.upper <= 1.0


# The certificate decides


def test_a_loose_solution_is_judged_by_its_gap_and_not_by_what_the_solver_calls_it(noisy):
    loose = {"eps_abs": 1e-2, "eps_rel": 1e-2}
    relaxation = dc.penalized_nu(noisy, 0.5)
    result = dc.solve(relaxation, "SCS", tol=1e-6, **loose)
    assert relaxation.problem.status == "optimal"
    assert result.status is dc.Status.INACCURATE
    assert dc.solve(relaxation, "SCS", tol=0.5, **loose).status is dc.Status.OPTIMAL


@pytest.mark.parametrize("spoil", ["none", "nan", "garbage"])
def test_a_point_that_is_missing_or_wrong_cannot_give_a_wrong_bracket(noisy, spoil, monkeypatch):
    relaxation = dc.penalized_nu(noisy, 0.5)
    optimum = dc.solve(relaxation, "CLARABEL")
    solved = reference.run_solver

    def spoiled(problem, *rest):
        n_iter = solved(problem, *rest)
        (Y,) = problem.variables()
        bad = np.full(Y.shape, np.nan) if spoil == "nan" else np.random.default_rng(0).standard_normal(Y.shape)
        Y.save_value(None if spoil == "none" else bad)
        return n_iter

    monkeypatch.setattr(reference, "run_solver", spoiled)
    result = dc.solve(relaxation, "CLARABEL")
    assert result.lower <= optimum.upper
    assert result.upper >= optimum.lower
    assert result.status is (dc.Status.INACCURATE if spoil == "garbage" else dc.Status.FAILED)


def test_a_failed_solver_leaves_the_trivial_bracket(noisy, monkeypatch):
    def fail(self, *args, **kwargs):
        raise cp.error.SolverError("out of luck")

    monkeypatch.setattr(cp.Problem, "solve", fail)
    for build, trivial in [(dc.v_space, (0.0, 1.0)), (dc.v_space_normalized, (-1.0, 0.0)), (dc.correlation, (-12, 0))]:
        result = dc.solve(build(noisy))
        assert result.status is dc.Status.FAILED
        assert (result.lower, result.upper) == trivial
        np.testing.assert_array_equal(result.F, np.ones((12, 1)))


# Memory


@pytest.mark.parametrize(
    "build",
    [dc.penalized_nu, lambda X: dc.constrained_alpha(X, 0.5), dc.lifted, dc.correlation],
    ids=["penalized_nu", "constrained_alpha", "lifted", "correlation"],
)
def test_n_by_n_matrices_that_cannot_fit_are_refused_before_memory_is_used(build):
    X = np.random.default_rng(0).standard_normal((200_000, 2))
    tracemalloc.start()
    with pytest.raises(ResourceError, match=r"n = 200000.* GB .* use "):
        build(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * X.nbytes
