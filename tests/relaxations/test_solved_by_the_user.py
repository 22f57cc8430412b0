"""A relaxation's plain CVXPY problem, solved by the user: V and Y are read in the units of X."""

import numpy as np
import pytest

import diffrac_cvx as dc

X = np.random.default_rng(0).standard_normal((12, 3)) * [1.0, 100.0, 0.01]
PENALTY = dc.Penalty(lam=0.05 / X.std(axis=0), ridge=0.1)


@pytest.mark.parametrize("nu", [1.0, 0.6])
@pytest.mark.parametrize("build", [dc.v_space, dc.lifted], ids=["v_space", "lifted"])
def test_v_is_optimal_in_the_units_of_x(build, nu):
    relaxation = build(X, nu, PENALTY)
    with pytest.raises(dc.ParameterError, match="has no solution"):
        relaxation.V  # noqa: B018
    relaxation.problem.solve(solver="CLARABEL")
    bounds = dc.certify_v(X, relaxation.V, nu, PENALTY)
    assert bounds.upper == pytest.approx(relaxation.problem.value, abs=1e-5)
    assert bounds.gap <= 1e-3
    assert relaxation.V.shape == ((3, 3) if nu == 1.0 else (4, 4))
    np.testing.assert_allclose(np.diag(relaxation.Y), 1.0, atol=1e-9)


def test_y_of_a_problem_in_labels_is_that_of_all_points_and_there_is_no_v():
    constraints = dc.Constraints(must_link=[(0, 1)], cannot_link=[(2, 3)])
    relaxation = dc.penalized_nu(X, ridge=0.1, constraints=constraints)
    relaxation.problem.solve(solver="CLARABEL")
    Y = relaxation.Y
    assert relaxation.V is None
    assert Y.shape == (12, 12)
    assert (Y[0, 1], Y[2, 3]) == pytest.approx((1.0, -1.0))
    assert dc.certify_y(X, Y, ridge=0.1, constraints=constraints).gap <= 1e-4


def test_no_variable_in_scaled_columns_has_the_name_of_the_matrix_in_the_paper():
    for build in (dc.v_space, dc.v_space_normalized, dc.lifted):
        names = {variable.name() for variable in build(X).problem.variables()}
        assert not names & {"V", "YPV"}
        assert any(name.endswith("_scaled") for name in names)


@pytest.mark.parametrize("options", [{"max_iters": 5}, {"max_iters": 5, "warm_start": True}], ids=str)
def test_an_option_of_the_solver_replaces_what_is_derived_and_counts_as_the_limit(options):
    result = dc.solve(dc.v_space(X, lam=0.05), "SCS", **options)
    assert (result.n_iter, result.status) == (5, dc.Status.USER_LIMIT)
    solved = dc.solve(dc.v_space(X, lam=0.05), "SCS", **{**options, "max_iters": 100_000})
    assert solved.status is dc.Status.OPTIMAL
