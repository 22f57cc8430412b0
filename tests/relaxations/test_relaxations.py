"""Relaxations and the reference path: values of the paper's equations, known answers, solvers, and what they refuse."""

import tracemalloc

import cvxpy as cp
import numpy as np
import oracles
import pytest
from instances import centered_normal

import diffrac_cvx as dc
from diffrac_cvx.comparison.instances import Design
from diffrac_cvx.errors import ResourceError
from diffrac_cvx.solvers import reference

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

NUS = [0.0, 0.25, 0.75, 1.0]
RIDGE, SPARSE = np.array([0.1, 0.0, 0.4]), np.array([0.3, 0.1, 0.2])
PENALTIES = {
    "none": dc.Penalty(),
    "ridge": dc.Penalty(a=RIDGE),
    "l1": dc.Penalty(c=SPARSE),
    "both": dc.Penalty(a=RIDGE, c=SPARSE),
}
BOUNDED = {  # with certified bounds that close
    "constrained_alpha": lambda X: dc.constrained_alpha(X, 0.1, PENALTIES["ridge"]),
    "balanced": lambda X: dc.constrained_alpha(X, 0.0),
    "penalized_nu": lambda X: dc.penalized_nu(X, 0.5, PENALTIES["ridge"]),
    "lifted": lambda X: dc.lifted(X, 0.5, PENALTIES["both"]),
    "v_space": lambda X: dc.v_space(X, 0.5, PENALTIES["both"]),
    "v_space_normalized": lambda X: dc.v_space_normalized(X, 0.5, PENALTIES["both"]),
}
BUILDERS = {name: build for name, build in BOUNDED.items() if name != "balanced"} | {"correlation": dc.correlation}


each_nu = pytest.mark.parametrize("nu", NUS)
each_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
each_bounded = pytest.mark.parametrize("build", BOUNDED.values(), ids=BOUNDED)
each_solver = pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
each_builder = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)


def value(relaxation):
    """Return the optimal value to a certified gap of 1e-6; CLARABEL's accuracy in Y-space is a few 1e-7."""
    result = dc.solve(relaxation, "CLARABEL", tol=1e-6)
    assert result.gap <= 1e-6
    return result.value


@each_nu
@each_penalty
def test_labels_and_directions_together_and_each_alone_give_the_values_of_eq_11_8_and_15(noisy, nu, penalty):
    optimum = oracles.solve_lifted(noisy, nu, penalty.a, penalty.c)
    assert value(dc.lifted(noisy, nu, penalty)) == pytest.approx(optimum, abs=oracles.TOL)
    assert value(dc.v_space(noisy, nu, penalty)) == pytest.approx(optimum, abs=oracles.TOL)
    if not np.any(penalty.c):
        assert value(dc.penalized_nu(noisy, nu, penalty)) == pytest.approx(optimum, abs=oracles.TOL)
        assert oracles.solve_y(noisy, nu, penalty.a)[0] == pytest.approx(optimum, abs=oracles.TOL)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("ridge", [np.zeros(3), RIDGE], ids=["no ridge", "ridge"])
def test_fixed_imbalance_gives_the_value_of_eq_7_with_the_ridge_of_eq_16(noisy, alpha, ridge):
    result = dc.solve(dc.constrained_alpha(noisy, alpha, dc.Penalty(a=ridge)), "CLARABEL", tol=1e-5)
    assert result.value == pytest.approx(oracles.solve_alpha(noisy, alpha, ridge)[0], abs=oracles.TOL)
    assert result.lower - 1e-12 <= dc.certify_y(noisy, result.F, alpha=alpha, penalty=dc.Penalty(a=ridge)).upper
    Y = result.F @ result.F.T
    np.testing.assert_allclose(np.diag(Y), 1.0, atol=1e-12)
    assert Y.mean() == pytest.approx(alpha, abs=1e-9)
    if alpha == 1.0:
        assert result.lower == result.upper == 0.0
        np.testing.assert_array_equal(Y, np.ones((12, 12)))


@pytest.mark.parametrize("nu", [0.25, 1.0])
@each_penalty
def test_the_normalized_form_gives_the_value_of_eq_21(noisy, nu, penalty):
    optimum, _ = oracles.solve_normalized(noisy, nu, penalty.a, penalty.c)
    result = dc.solve(dc.v_space_normalized(noisy, nu, penalty), "CLARABEL", tol=1e-4)
    assert result.value == pytest.approx(optimum, abs=oracles.TOL)
    X, a, c = oracles.augmented(noisy, nu, penalty.a, penalty.c)
    A = X.T @ X / len(X) + np.diag(a**2)
    assert np.trace(A @ result.V) == pytest.approx(1.0, abs=1e-9)
    assert oracles.gamma(result.V, 0.0, c) - oracles.mean_sqrt(result.V, X) == pytest.approx(result.value, abs=1e-9)


@pytest.mark.parametrize(
    "design",
    [(0.25, "strong l1", "noisy"), (0.5, "weak l1", "plain"), (1.0, "mixed", "plain"), (0.75, "weak l1", "unbalanced")],
    ids=lambda design: " ".join(map(str, design)),
)
def test_the_normalized_form_is_solved_and_its_bounds_meet_if_there_are_fewer_points_than_features(design):
    """The first three stalled with power cones; at the last, A + C + Diag(c)^2 is singular for the solver's C."""
    X, nu, penalty = Design(8, 20, *design).instance(2017)
    found = dc.solve(dc.v_space_normalized(X, nu, penalty), "CLARABEL")
    assert found.status is dc.Status.OPTIMAL
    Z, units = X - X.mean(axis=0), X.std(axis=0)
    optimum, V = oracles.solve_normalized(Z / units, nu, penalty.a / units, penalty.c / units)
    rows, a, c = oracles.augmented(Z / units, nu, penalty.a / units, penalty.c / units)
    V = oracles.allowed(V)
    V /= np.trace((rows.T @ rows / len(rows) + np.diag(a**2)) @ V)
    attained = oracles.gamma(V, 0.0, c) - oracles.mean_sqrt(V, rows)
    assert attained == pytest.approx(optimum, abs=1e-5)
    assert found.lower <= attained + 1e-12
    assert found.upper >= optimum - oracles.TOL


@pytest.mark.parametrize("nu", NUS[1:])
@pytest.mark.parametrize("penalty", [PENALTIES["l1"], PENALTIES["both"]], ids=["l1", "both"])
def test_with_an_l1_penalty_the_normalized_form_is_another_problem_linked_by_a_rescaling_of_c(noisy, nu, penalty):
    normalized = dc.solve(dc.v_space_normalized(noisy, nu, penalty), "CLARABEL")
    assert normalized.value > -((1 - value(dc.v_space(noisy, nu, penalty))) ** 0.5) + 0.01
    X, _, c = oracles.augmented(noisy, nu, penalty.a, penalty.c)
    g, l1 = oracles.mean_sqrt(normalized.V, X), oracles.gamma(normalized.V, 0.0, c)
    theta = g / 2 - l1
    linked = dc.Penalty(penalty.a, np.asarray(penalty.c) / theta**0.5)
    assert value(dc.v_space(noisy, nu, linked)) == pytest.approx(1 - g**2 / (1 + l1 / theta), abs=oracles.TOL)


@pytest.mark.parametrize("build", [dc.lifted, dc.v_space, dc.v_space_normalized])
def test_a_path_of_parameters_gives_the_values_of_rebuilt_problems(noisy, build):
    path = build(noisy, 1.0, PENALTIES["both"])
    for nu in (0.5, 1.0):
        along, again = (dc.solve(one, "CLARABEL") for one in (path.at(nu=nu), build(noisy, nu, PENALTIES["both"])))
        assert along.value == pytest.approx(again.value, abs=oracles.TOL)
        assert along.V.shape == again.V.shape


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@each_builder
def test_the_cvxpy_problem_can_be_solved_without_the_package(noisy, build):
    relaxation = build(noisy)
    optimum = relaxation.problem.solve(solver="SCS", eps_abs=1e-7, eps_rel=1e-7, max_iters=20_000)
    assert optimum == pytest.approx(dc.solve(relaxation, "CLARABEL").value, rel=1e-3, abs=1e-5)


@each_builder
def test_changing_a_parameter_does_not_compile_again(noisy, build):
    relaxation = build(noisy)
    assert relaxation.problem.is_dcp(dpp=True)
    before, chain, _ = relaxation.problem.get_problem_data("SCS")
    compiled = relaxation.problem._cache.param_prog
    assert compiled is not None
    relaxation.at(**dict.fromkeys(relaxation.parameters, 0.3))
    after, same_chain, _ = relaxation.problem.get_problem_data("SCS")
    assert relaxation.problem._cache.param_prog is compiled
    assert same_chain is chain
    changed = np.any(before["b"] != after["b"]) or np.any(before["c"] != after["c"]) or (before["A"] != after["A"]).nnz
    assert bool(changed) == bool(relaxation.parameters)


# Known answers; `problem/test_metamorphic.py` has those that every method solves


@each_solver
def test_balance_is_imposed_exactly_though_the_problem_has_no_interior(solver):
    result = dc.solve(dc.constrained_alpha(centered_normal(14, 3, 3), 0.0), solver, tol=1e-6)
    assert result.status is dc.Status.OPTIMAL
    assert result.n_iter < 1000  # as posed in the paper, SCS takes tens of thousands
    np.testing.assert_allclose(result.F.sum(axis=0), 0.0, atol=1e-6)


# Solvers


@each_bounded
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


def test_scs_solves_eq_11_in_about_as_many_iterations_as_eq_8():
    X = np.random.default_rng(0).standard_normal((40, 4))
    joint, labels = (dc.solve(build(X, ridge=0.3), "SCS") for build in (dc.lifted, dc.penalized_nu))
    assert joint.gap < 1e-4
    assert joint.n_iter < 1.5 * labels.n_iter, "2.4 times as many without the balanced scaling of V"


@each_bounded
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


def test_the_first_call_of_solve_counts_the_time_of_the_builder_in_its_limit():
    relaxation = dc.penalized_nu(np.random.default_rng(0).standard_normal((12, 3)))
    assert len(relaxation.building) == 1
    relaxation.building[:] = [60.0]
    assert dc.solve(relaxation, time_limit=60.0).status is dc.Status.USER_LIMIT
    assert dc.solve(relaxation, time_limit=60.0).status is dc.Status.OPTIMAL


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
    with pytest.raises(ResourceError, match=r"n = 200000.* GB .* Use "):
        build(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * X.nbytes
