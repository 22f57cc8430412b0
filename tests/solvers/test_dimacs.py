"""DIMACS errors: accuracy of a solver's point for its conic problem."""

import dataclasses
from itertools import product
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.solvers import dimacs, reference
from diffrac_cvx.solvers.dimacs import distance_outside
from experiments.validate import cells as validate_cells
from experiments.validate import check
from experiments.validate.plot import draw

FORMS = {
    "penalized_nu": lambda X: dc.penalized_nu(X, 0.5),
    "constrained_alpha": lambda X: dc.constrained_alpha(X, 0.2),
    "balanced": lambda X: dc.constrained_alpha(X, 0.0),  # solved on a face of the cone
    "lifted": lambda X: dc.lifted(X, 0.5, dc.Penalty(0.1, 0.2)),
    "v_space": lambda X: dc.v_space(X, 0.5, dc.Penalty(0.1, 0.2)),
    "v_space_normalized": lambda X: dc.v_space_normalized(X, 0.5, dc.Penalty(0.1, 0.2)),
}
each_solver = pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])


@pytest.fixture
def data():
    return np.random.default_rng(0).standard_normal((10, 3))


@each_solver
@pytest.mark.parametrize("form", FORMS)
def test_a_solved_relaxation_has_small_errors(data, form, solver):
    errors = dc.solve(FORMS[form](data), solver).dimacs
    assert 0.0 <= min(errors) <= errors.largest <= validate_cells.LARGEST_ERROR[solver]


@each_solver
def test_a_loose_solution_has_large_errors(data, solver):
    loose = {"CLARABEL": {"max_iter": 3}, "SCS": {"max_iters": 5}}[solver]
    assert dc.solve(dc.v_space(data), solver, **loose).dimacs.largest > 1e-3


def semidefinite_problem():
    """Least eigenvalue of a matrix as min tr CY over tr Y = 1, Y >= 0, with the data passed to the solver."""
    C = np.random.default_rng(1).standard_normal((4, 4))
    Y = cp.Variable((4, 4), PSD=True)
    return C + C.T, cp.Problem(cp.Minimize(cp.sum(cp.multiply(C + C.T, Y))), [cp.trace(Y) == 1])


@each_solver
def test_the_errors_of_the_exact_point_are_zero_and_each_grows_with_what_it_measures(solver):
    """In the solver's own order of rows and triangles: exact primal and dual points of a problem with a closed form."""
    C, problem = semidefinite_problem()
    data, _, _ = problem.get_problem_data(solver)
    values, vectors = np.linalg.eigh(C)
    rows, columns = dimacs.TRIANGLES[solver](4)
    stretch = np.where(rows == columns, 1.0, 2**0.5)

    A, b = data["A"].toarray(), data["b"]

    def point(y, Z):
        Y = stretch * (y * np.outer(vectors[:, 0], vectors[:, 0]))[rows, columns]
        x = np.linalg.lstsq(A[1:], b[1:] - Y)[0]
        return SimpleNamespace(x=x, s=np.append(0.0, Y), z=np.append(z0, stretch * Z[rows, columns]))

    # The multiplier of tr Y = 1 is minus or plus the least eigenvalue, by the sign of the row.
    side = np.sign(data["b"][0])
    z0 = -side * values[0]
    Z = C - values[0] * np.eye(4)
    exact = dimacs.dimacs_errors(solver, data, point(1.0, Z))
    assert exact.largest <= 1e-12
    scaled = dimacs.dimacs_errors(solver, data, point(0.5, Z))
    assert scaled.err1 == pytest.approx(0.5 / (1.0 + np.abs(data["b"]).max()), rel=1e-9)
    assert scaled.err5 > 0.01
    shifted = dimacs.dimacs_errors(solver, data, point(1.0, Z - 0.3 * np.eye(4)))
    of_c = 1.0 + np.abs(data["c"]).max()
    assert shifted.err4 == pytest.approx(0.3 / of_c, rel=1e-9)
    assert shifted.err3 > 0.1 / of_c
    assert shifted.err6 > 0.01
    negative = dimacs.dimacs_errors(solver, data, point(-1.0, Z))
    assert negative.err2 == pytest.approx(1.0 / (1.0 + np.abs(data["b"]).max()), rel=1e-9)


@pytest.mark.parametrize("dual", [False, True])
def test_the_distance_from_a_power_cone_is_what_has_to_be_added_to_its_first_two_entries(dual):
    rng = np.random.default_rng(0)
    cones = SimpleNamespace(zero=0, nonneg=0, soc=[], psd=[], p3d=[0.5])
    reach = 2.0 if dual else 1.0  # |w| <= reach * sqrt(x y)
    for x, y, w in rng.standard_normal((200, 3)):
        distance = distance_outside(np.array([x, y, w]), cones, "SCS", dual=dual)
        on = np.array([x + distance, y + distance])
        assert np.all(on >= -1e-12)
        if distance > 0.0:
            assert reach**2 * on[0] * on[1] == pytest.approx(w**2, rel=1e-9, abs=1e-12)
        else:
            assert abs(w) <= reach * np.sqrt(x * y) * (1 + 1e-12)


@pytest.mark.parametrize(("head", "dual", "distance"), [(1.0, False, 4.0), (5.0, False, 0.5), (5.0, True, 0.25)])
def test_the_distance_from_the_other_cones(head, dual, distance):
    cones = SimpleNamespace(zero=1, nonneg=2, soc=[3], psd=[], p3d=[])
    vector = np.array([-0.5, 1.0, -0.25, head, 3.0, 4.0])
    assert distance_outside(vector, cones, "SCS", dual=dual) == pytest.approx(distance)


def test_closed_forms_fast_solvers_other_solvers_cones_and_missing_points_have_no_errors(data):
    assert dc.solve(dc.penalized_nu(data, 0.0)).dimacs is None
    assert dc.low_rank(data).dimacs is None
    problem = dc.v_space(data).problem
    given, _, _ = problem.get_problem_data("CLARABEL")
    nothing = SimpleNamespace(x=None, s=None, z=None)
    assert dimacs.dimacs_errors("CLARABEL", given, nothing) is None
    assert dimacs.dimacs_errors("OTHER", given, nothing) is None
    dims = SimpleNamespace(zero=0, nonneg=0, soc=[], psd=[], exp=1, p3d=[])
    assert not dimacs.are_supported(dims)
    dims.exp, dims.p3d = 0, [0.3]
    assert not dimacs.are_supported(dims)


def test_solving_with_the_errors_gives_what_cvxpy_gives_without(data):
    relaxation = dc.v_space(data)
    plain = relaxation.problem.solve(solver="CLARABEL", **reference.COMMON_OPTIONS["CLARABEL"](1e-8, None, None))
    order = reference.SolveRequest("CLARABEL", tol=1e-8, max_iter=None, timer=Timer(None), verbose=False, options={})
    ran = reference.run_solver(relaxation.problem, order)
    assert relaxation.problem.value == pytest.approx(plain, abs=1e-12)
    assert relaxation.problem.status == "optimal"
    assert ran.n_iter == relaxation.problem.solver_stats.num_iters > 0


# The validation table


def test_every_form_has_errors_by_both_solvers_and_one_above_its_threshold_is_pointed_out(tmp_path):
    case = {"n": 12, "d": 3, "nu": 0.5, "penalty": "none", "trait": "noisy"}
    row = case | validate_cells.measure(*case.values())
    found = check.summarize_errors(pd.DataFrame([row]))
    forms = {"v_space", "lifted", "penalized_nu", "normalized", "constrained_alpha"}
    assert set(product(forms, ("CLARABEL", "SCS"))) == set(zip(found["form"], found["solver"], strict=True))
    assert (found["above"] == 0).all()
    table = pd.DataFrame([row, row | {"v_space SCS err3": 2e-4, "lifted err6": 2e-6}])
    flags = check.point_out(table)
    assert len(flags) == 2
    assert any("err3 2.0e-04" in flag and "v_space SCS (12, 3, 0.5, none, noisy)" in flag for flag in flags)
    assert check.summarize_errors(table)["above"].sum() == 2
    assert "LARGE err6 2.0e-06" in check.check_brackets(table).text
    draw(table, tmp_path / "validation")
    assert (tmp_path / "validation.png").stat().st_size > 10_000


def test_a_result_without_errors_leaves_blanks(data):
    result = dc.low_rank(data)
    blank = validate_cells.errors_of("x", result)
    assert set(blank) == {f"x {label}" for label in dc.DimacsErrors._fields}
    assert np.all(np.isnan(list(blank.values())))
    with_errors = dataclasses.replace(result, dimacs=dc.DimacsErrors(1e-9, 0.0, 1.23456e-8, 0.0, 0.0, 0.0))
    assert validate_cells.errors_of("x", with_errors)["x err3"] == 1.23e-8
