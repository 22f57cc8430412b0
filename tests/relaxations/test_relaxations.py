import numpy as np
import oracles
import pytest

import diffrac_cvx as dc

NUS = [0.0, 0.25, 0.75, 1.0]
RIDGE = np.array([0.1, 0.0, 0.4])
SPARSE = np.array([0.3, 0.1, 0.2])
PENALTIES = {
    "none": dc.Penalty(),
    "ridge": dc.Penalty(a=RIDGE),
    "l1": dc.Penalty(c=SPARSE),
    "both": dc.Penalty(a=RIDGE, c=SPARSE),
}
BUILDERS = {
    "constrained_alpha": lambda X: dc.constrained_alpha(X, 0.1),
    "penalized_nu": lambda X: dc.penalized_nu(X, 0.5, PENALTIES["ridge"]),
    "lifted": lambda X: dc.lifted(X, 0.5, PENALTIES["both"]),
    "v_space": lambda X: dc.v_space(X, 0.5, PENALTIES["both"]),
    "v_space_normalized": lambda X: dc.v_space_normalized(X, 0.5, PENALTIES["both"]),
    "correlation": dc.correlation,
}

each_nu = pytest.mark.parametrize("nu", NUS)
each_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
without_l1 = pytest.mark.parametrize("penalty", [PENALTIES["none"], PENALTIES["ridge"]], ids=["none", "ridge"])
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


@each_nu
@without_l1
def test_eliminating_the_directions_gives_the_problem_in_labels(noisy, nu, penalty):
    alone = value(dc.penalized_nu(noisy, nu, penalty))
    assert alone == pytest.approx(oracles.solve_y(noisy, nu, penalty.a)[0], abs=oracles.TOL)
    assert value(dc.lifted(noisy, nu, penalty)) == pytest.approx(alone, abs=oracles.TOL)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 1.0])
def test_fixed_imbalance_gives_the_value_of_eq_7(noisy, alpha):
    result = dc.solve(dc.constrained_alpha(noisy, alpha), "CLARABEL", tol=1e-5)
    assert result.value == pytest.approx(oracles.solve_alpha(noisy, alpha)[0], abs=oracles.TOL)
    Y = result.F @ result.F.T
    np.testing.assert_allclose(np.diag(Y), 1.0, atol=1e-12)
    assert Y.mean() == pytest.approx(alpha, abs=1e-9)


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


def test_the_relaxation_of_the_correlation_is_trivial_whatever_the_data():
    n = 20
    result = dc.solve(dc.correlation(np.random.default_rng(n).standard_normal((n, 3))), "CLARABEL", tol=1e-2)
    assert result.lower == -n
    assert result.value == pytest.approx(-n, rel=1e-3)  # the infimum is not attained: M grows without bound
    assert np.min(result.F @ result.F.T) > 0.9  # Y tends to 11'


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
