"""`validate`: right solvers pass, and whatever is wrong with a solver is named."""

import inspect
from dataclasses import replace
from functools import partial

import cvxpy as cp
import numpy as np
import oracles
import pytest

import diffrac_cvx as dc
from diffrac_cvx.comparison import validation
from diffrac_cvx.comparison.answers import labels_objective
from diffrac_cvx.comparison.instances import TRAITS, ZERO_OPTIMUM, Design, all_designs

FEW = 6  # instances, of which some have each trait, penalty and nu


@pytest.fixture(autouse=True, scope="module")
def one_reference_for_each_instance():
    """Solve the reference of an instance once for all tests."""
    known = {}

    def solve(arguments, *solver, **options):
        key = arguments[0].tobytes(), arguments[1]
        if key not in known:
            known[key] = dc.solve(dc.v_space(*arguments), *solver, **options)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "v_space", lambda *arguments: arguments)
        patch.setattr(validation, "solve", solve)
        yield


def by_the_formula(X, nu, penalty):
    """V of problem (15) as it is written, in units of the columns, with the offset last."""
    (a, c), units = penalty.weights(X.shape[1]), np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    V = oracles.solve_v((X - X.mean(axis=0)) / units, nu, a / units, c / units)[1]
    units = np.append(units, np.ones(len(V) - len(units)))
    return V / np.outer(units, units)


RIGHT = {
    "fista": dc.fista,
    "low_rank": dc.low_rank,
    "reference": lambda X, nu, penalty: dc.solve(dc.v_space(X, nu, penalty), "CLARABEL"),
    "the problem written in CVXPY, V": by_the_formula,
    "V of low_rank": lambda X, nu, penalty: dc.low_rank(X, nu, penalty).V,
    "F of low_rank": lambda X, nu, penalty: dc.low_rank(X, nu, penalty).F,
    "labels relaxed where there is no l1 penalty": lambda X, nu, penalty: (
        dc.low_rank(X, nu, penalty) if penalty.has_l1 else dc.solve(dc.penalized_nu(X, nu, penalty), "CLARABEL")
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_solver_passes(name):
    found = dc.validate(RIGHT[name], FEW, rng=1, tol=1e-3 if name == "fista" else 1e-4)
    assert found.passed, found.violations
    assert len(found.rows) == FEW


SOLVED = {}


def solved(X, nu, penalty):
    """Return the result of low_rank, found once for all tests; F is read, because X may be changed later."""
    key = X.tobytes(), nu, penalty.has_l1
    if key not in SOLVED:
        SOLVED[key] = dc.low_rank(X, nu, penalty)
        _ = SOLVED[key].F
    return SOLVED[key]


def changed(**shifts):
    """Return low_rank with numbers added to entries of its results."""
    return of_result(**{name: lambda one, name=name, by=by: getattr(one, name) + by for name, by in shifts.items()})


def of_v(change):
    """Return a solver whose V is a changed one."""
    return lambda X, nu, penalty: change(solved(X, nu, penalty).V)


def of_f(change):
    """Return a solver whose F is a changed one."""
    return lambda X, nu, penalty: change(solved(X, nu, penalty).F)


def of_result(**parts):
    """Return low_rank with other parts of its results, each a function of the result."""
    return lambda X, nu, penalty: replace(
        result := solved(X, nu, penalty), **{name: part(result) for name, part in parts.items()}
    )


def with_entry(V, i, j, value):
    V = V.copy()
    V[i, j] = value
    return V


def scaling_in_place(X, nu, penalty):
    result = solved(X, nu, penalty)
    X *= 2.0
    return result


def stopped_early(X, nu, penalty):
    return replace(dc.low_rank(X, nu, penalty, max_iter=1), status=dc.Status.OPTIMAL)


def failing(X, nu, penalty):
    raise ZeroDivisionError("division by zero")


def one_cluster(F):
    return np.ones((len(F), 1))


BROKEN = {
    "a value too large by 1e-3": (changed(value=1e-3, upper=1e-3), "but the objective at V is"),
    "a value too small by 1e-3": (changed(value=-1e-3, lower=-1e-3, upper=-1e-3), "but the solver that it is at most"),
    "a lower bound above the optimum": (changed(value=1e-3, lower=1e-3, upper=1e-3), "but the reference that it is"),
    "an upper bound below the optimum": (changed(upper=-1e-3), "above its own upper bound"),
    "a NaN bound": (changed(lower=np.nan), "a bound that is NaN"),
    "a status that is not true": (stopped_early, "the status is optimal, but the gap of the bounds is"),
    "a V that is optimal up to its scale": (of_v(lambda V: 1.2 * V), "V is not optimal"),
    "an indefinite V": (of_v(lambda V: V - 0.5 * np.diag(np.diag(V))), "V is not positive semidefinite"),
    "an asymmetric V": (of_v(lambda V: with_entry(V, 0, -1, V[0, -1] + V[0, 0])), "V is not symmetric"),
    "a V with a NaN": (of_v(lambda V: with_entry(V, 0, 0, np.nan)), "entries that are NaN or infinite"),
    "a V of the wrong shape": (of_v(lambda V: V[:-1]), "an array of shape"),
    "an F with a NaN": (of_f(lambda F: with_entry(F, 0, 0, np.nan)), "F has 1 entries that are NaN or infinite"),
    "a changed X": (scaling_in_place, "the solver modifies X"),
    "an F with rows of other norms": (of_f(lambda F: 1.1 * F), "F has rows of norm"),
    "Y instead of F": (of_f(lambda F: F @ F.T), "It seems to be Y"),
    "an F of one cluster": (of_f(one_cluster), "F is not optimal"),
    "an F that is not that of V": (of_result(factor=lambda result: one_cluster(result.F)), "F does not belong to V"),
    "an error": (failing, "the solver raises ZeroDivisionError: division by zero"),
    "no answer": (lambda X, nu, penalty: None, "an object of type NoneType"),
    "a lower bound that its certificate does not prove": (
        of_result(lower=lambda result: result.lower + 1e-9, value=lambda result: result.value + 1e-9),
        "the certificate proves",
    ),
    "a certificate that was tampered with": (
        of_result(certificate=lambda result: replace(result.certificate, lower=result.lower + 1e-3, upper=2.0)),
        "the certificate is refused: its multipliers prove",
    ),
    "a certificate of another problem": (
        of_result(certificate=lambda result: replace(result.certificate, nu=0.9)),
        "the certificate is for another nu or penalty",
    ),
    "no solution": (of_result(status=lambda _: dc.Status.FAILED), "no solution"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_with_a_solver_is_named(name):
    solver, words = BROKEN[name]
    found = dc.validate(solver, FEW)
    assert any(words in violation for violation in found.violations), found.violations


def test_the_tolerance_is_the_one_given_whatever_a_parameter_of_the_solver_is_called():
    loose = partial(dc.low_rank, tol=3e-3)
    assert any("above tol = 0.0001" in violation for violation in dc.validate(loose, FEW).violations)
    assert dc.validate(loose, FEW, tol=3e-3).passed
    assert not dc.validate(loose, FEW, tol=1e-9).passed


def endless(X, nu, penalty):
    while len(X) > 50:
        pass
    return solved(X, nu, penalty)


def test_a_run_beyond_the_time_limit_of_an_instance_is_a_violation():
    found = dc.validate(endless, FEW, instance_time_limit=2.0)
    late = [row["n"] for row in found.rows if row["violations"] == ("the solver exceeds the time limit of 2 s",)]
    assert late == [row["n"] for row in found.rows if row["n"] > 50] != []
    assert len(late) < FEW


def test_a_validation_that_is_out_of_time_has_not_passed():
    found = dc.validate(endless, FEW, time_limit=0.2)
    assert not found.passed
    assert found.n_skipped == FEW - len(found.rows) > 0
    assert f"of {FEW} instances passed. The time limit left out {found.n_skipped}. Raise time_limit" in str(found)


def test_an_instance_can_be_solved_again_and_others_follow_from_another_seed_or_if_the_kinds_are_used_up(monkeypatch):
    found = dc.validate(dc.low_rank, 3, rng=5)
    for i, row in enumerate(found.rows):
        X, nu, penalty = found.instances[i]
        assert X.shape == (row["n"], row["d"])
        result = dc.low_rank(X, nu, penalty)
        assert result.lower <= row["reference_upper"]
        assert row["reference_lower"] <= result.upper
    assert not np.array_equal(found.instances[0].X, dc.validate(dc.low_rank, 1, rng=6).instances[0].X)
    monkeypatch.setattr(validation, "all_designs", lambda: [Design(12, 3, 1.0, "none", "noisy")])
    first, second = dc.validate(dc.low_rank, 2).instances
    assert not np.array_equal(first.X, second.X)


def test_the_printed_table_has_a_line_for_each_instance_all_columns_that_any_row_fills_and_the_violations_below():
    calls = iter(range(2))

    def failing_first(X, nu, penalty):
        return dc.low_rank(X, nu, penalty) if next(calls) else failing(X, nu, penalty)

    found = dc.validate(failing_first, 2)
    first, second = found.rows
    assert list(first) == list(second) == list(validation.COLUMNS)
    assert first["objective"] is None
    header, *lines = str(found).splitlines()
    assert header.split()[:4] == ["instance", "n", "d", "nu"]
    assert {"objective", "status", "violations"} <= set(header.split())
    assert "optimal" in lines[1]
    assert lines[3] == "1 of 2 instances passed"
    assert lines[4].startswith("instance 0 (")
    assert "<td>1</td>" in found._repr_html_()
    assert list(found.table["violations"].map(len)) == [1, 0]


@pytest.mark.parametrize("penalty", ["none", "ridge", "weak l1", "strong l1", "mixed"])
@pytest.mark.parametrize("nu", [0.25, 1.0])
def test_the_objective_of_labels_is_the_least_over_all_directions(penalty, nu):
    instance = Design(20, 5, nu, penalty, "noisy").instance(0)
    X = instance.X - instance.X.mean(axis=0)
    n, d = X.shape
    F = np.random.default_rng(0).standard_normal((n, 2))
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    joint = cp.Variable((2 + d, 2 + d), PSD=True)  # [[I, W'], [W, V]], W of the directions
    W, V = joint[2:, :2], joint[2:, 2:]
    misfit = np.sum((F - F.mean(axis=0)) ** 2) - 2 * cp.trace(F.T @ X @ W) + cp.trace(X.T @ X @ V)
    total = misfit / n + oracles.gamma_expression(V, *instance.penalty.weights(d))
    least = oracles.solved(cp.Problem(cp.Minimize(total), [joint[:2, :2] == np.eye(2)]))
    least += nu * np.sum(F.mean(axis=0) ** 2)
    assert labels_objective(instance, F) == pytest.approx(least, abs=1e-5)
    assert labels_objective(instance, F) <= least + oracles.TOL


@pytest.mark.slow
def test_the_fast_solvers_pass_on_all_kinds_of_instances():
    for solver in (dc.low_rank, dc.fista):
        tol = inspect.signature(solver).parameters["tol"].default
        assert dc.validate(solver, len(all_designs()), tol=tol).passed


# Instances


@pytest.mark.parametrize("trait", TRAITS)
def test_each_kind_has_shifted_and_copied_columns_and_columns_in_other_units(trait):
    made = [design.instance(0).X for design in all_designs() if design.trait == trait and design.d > 1]
    means = [np.abs(X.mean(axis=0) / X.std(axis=0)).max() > 1.0 for X in made]
    copies = [np.triu(np.abs(np.corrcoef(X.T)), 1).max() > 1.0 - 1e-9 for X in made]
    units = [X.std(axis=0).max() > 1.5 * X.std(axis=0).min() for X in made]
    assert np.mean(means) > 0.5
    assert np.mean(copies) > 0.25
    assert np.mean(units) > 0.25


def test_only_one_kind_has_an_optimum_below_a_hundredth():
    for design in all_designs()[::7]:
        instance = design.instance(1)
        result = dc.low_rank(*instance)
        assert (result.upper < 0.01) == (
            design.trait == ZERO_OPTIMUM and (design.nu == 0.0 or design.penalty == "none")
        )
