"""The diagnosis of `validate`: what the failures of a wrong solver share, and which problem it solves."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.comparison.answers import Answer
from diffrac_cvx.comparison.diagnosis import Judged, diagnose
from diffrac_cvx.comparison.instances import Design, Instance, all_designs
from diffrac_cvx.comparison.posed import MISTAKES, pose
from diffrac_cvx.machine.deadlines import Timer

SOME = 10  # instances


def solution(problem):
    """V of a posed problem, written again in CVXPY, in the coordinates of the data."""
    units = 1.0 / np.sqrt(np.mean(problem.rows**2, axis=0) + problem.ridge + np.diag(problem.pair_weights))
    X, C = problem.rows * units, problem.pair_weights * np.outer(units, units)
    V = cp.Variable(C.shape, PSD=True)
    linear = cp.trace((X.T @ X / len(X) + np.diag(problem.ridge * units**2)) @ V) + cp.sum(cp.multiply(C, cp.abs(V)))
    mean_sqrt = cp.sum(cp.sqrt(cp.sum(cp.multiply(X @ V, X), axis=1))) / len(X)
    cp.Problem(cp.Minimize(1 - 2 * mean_sqrt + linear)).solve(solver="CLARABEL")
    return V.value * np.outer(units, units)


def mistaken(text):
    """Return a solver of the problem of a mistake; where that is the right problem, or unbounded, of the right one."""

    def solver(X, nu, penalty):
        problem = MISTAKES[text](Instance(X, nu, penalty))
        V = solution(problem) if np.all(np.isfinite(problem.ridge)) else dc.low_rank(X, nu, penalty).V
        padded = np.zeros((X.shape[1] + 1,) * 2)
        padded[: len(V), : len(V)] = V
        return padded if nu < 1.0 else V

    return solver


def test_a_solver_that_forgets_to_centre_is_told_so():
    found = dc.validate(mistaken("for the rows without centring"), SOME)
    assert "instances with column means other than 0 fail, none of the" in found.diagnosis
    assert "V is optimal for the rows without centring" in found.diagnosis
    assert f"diagnosis: {found.diagnosis}" in found.messages()


@pytest.mark.slow
@pytest.mark.parametrize("text", MISTAKES)
def test_the_mistake_of_a_solver_is_named(text):
    assert f"V is optimal {text}" in dc.validate(mistaken(text), 25).diagnosis


def result_with(**parts):
    """Return low_rank with other parts of its results, each a function of the result and n."""
    return lambda X, nu, penalty: replace(
        result := dc.low_rank(X, nu, penalty), **{name: part(result, len(X)) for name, part in parts.items()}
    )


def f_at_equal_sizes(X, nu, penalty):
    """F of nu = 1, which without an l1 penalty is found in Y alone."""
    return dc.low_rank(X, 1.0, penalty).F


def labels_of_f(X, nu, penalty):
    F = dc.low_rank(X, nu, penalty).F
    return np.where(F[:, :1] < 0.0, -1.0, 1.0)


def rank_one(X, nu, penalty):
    V = dc.low_rank(X, nu, penalty).V
    values, vectors = np.linalg.eigh(V)
    return values[-1] * np.outer(vectors[:, -1], vectors[:, -1])


WRONG = {
    "a scale of u": (lambda X, nu, penalty: 0.97**2 * dc.low_rank(X, nu, penalty).V, "V is 0.941 times an optimal V"),
    "a value times n": (result_with(value=lambda one, n: one.value * n), "the value is n times the objective"),
    "a low value": (result_with(value=lambda one, n: one.value - 0.01), "the value is about 0.01 below the objective"),
    "an F of another nu": (f_at_equal_sizes, "F is optimal for nu = 1, that is, without the offset"),
    "labels instead of F": (labels_of_f, "F has rank one and that of the reference a higher rank"),
    "V of rank one": (rank_one, "V has rank one and that of the reference a higher rank"),
    "an early stop": (
        lambda X, nu, penalty: replace(dc.low_rank(X, nu, penalty, tol=0.05), status=dc.Status.OPTIMAL),
        "as after an early stop",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_cause_is_named(name):
    solver, words = WRONG[name]
    assert words in dc.validate(solver, SOME).diagnosis


def test_a_right_solver_has_no_diagnosis_and_neither_has_a_bound_that_is_too_high():
    assert dc.validate(dc.low_rank, SOME).diagnosis == ""
    too_high = result_with(lower=lambda one, n: one.upper + 1e-3, upper=lambda one, n: one.upper + 2e-3)
    found = dc.validate(too_high, SOME)
    assert not found.passed
    assert found.diagnosis == ""


def test_a_property_is_named_only_if_its_association_with_failing_is_significant():
    instances = [design.instance(0) for design in all_designs()[:40]]
    answer, reference = Answer("V", ("infeasible",)), dc.low_rank(*instances[0])

    def diagnosis(fails):
        return diagnose([Judged(it, answer, reference, ("",) * bool(fails(it))) for it in instances], 1e-4, Timer(None))

    number = sum(it.penalty.has_l1 for it in instances)
    expected = f"All {number} instances with an l1 penalty fail, none of the {40 - number} others."
    assert diagnosis(lambda it: it.penalty.has_l1) == expected
    assert diagnosis(lambda it: it is instances[3]) == ""
    assert diagnosis(lambda it: True) == ""


@pytest.mark.parametrize("penalty", ["none", "ridge", "mixed"])
@pytest.mark.parametrize("nu", [0.25, 1.0])
def test_the_posed_problem_is_that_of_the_paper(nu, penalty):
    instance = Design(20, 5, nu, penalty, "noisy").instance(0)
    result = dc.low_rank(*instance, tol=1e-6)
    assert pose(instance).minimum() == pytest.approx(result.value, abs=2e-6)
    F = pose(instance).labels_objective(result.F)
    assert np.isnan(F) if instance.penalty.has_l1 else F == pytest.approx(result.value, abs=1e-6)
    assert pose(instance).objective(result.V) == pytest.approx(result.value, abs=1e-8)
    factor, least = pose(instance).best_multiple(4.0 * result.V)
    assert factor == pytest.approx(0.25, rel=1e-3)
    assert least == pytest.approx(result.value, abs=1e-6)
