"""Derivative of the value against finite differences of values certified to many digits."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
from forms import each_form

import diffrac_cvx as dc
from diffrac_cvx.errors import DataError, ParameterError

STEP = 1e-4
TOL = 1e-11  # of the values: differences of them are right to 1e-7
CONSTRAINTS = dc.Constraints(must_link=[(0, 5)], cannot_link=[(1, 2)], labels=[*[None] * 6, 1, -1, *[None] * 4])
WEIGHTS = np.array([0, 2, 1, 1, 0.5, 1, 3, 1, 1, 1, 1, 1])
PENALTIES = {
    "ridge": {"ridge": 0.2},
    "l1": {"lam": 0.1},
    "both": {"lam": 0.05, "ridge": 0.1},
    "by column": {"lam": np.array([0.02, 0.1, 0.3]), "ridge": np.array([0.1, 0.3, 0.4])},
}
GIVEN = {"plain": {}, "linked": {"constraints": CONSTRAINTS}, "weighed": {"sample_weight": WEIGHTS}}
GIVEN["both"] = GIVEN["linked"] | GIVEN["weighed"]


def table(n=12, d=3, seed=0):
    """Points in columns of unequal size, whose mean is not zero."""
    return np.random.default_rng(seed).standard_normal((n, d)) * np.resize([1.0, 0.5, 2.0], d) + 3.0


def solved(X, nu, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        return dc.low_rank(X, nu, tol=TOL, **options)


def slope(value):
    """The derivative of a function at 0."""
    return (value(STEP) - value(-STEP)) / (2 * STEP)


CASES = [(nu, penalty, "plain") for nu in (0.3, 1.0) for penalty in PENALTIES] + [(0.9, "both", "plain")]
CASES += [(nu, penalty, given) for nu, penalty in ((0.3, "both"), (1.0, "by column")) for given in [*GIVEN][1:]]


@pytest.mark.parametrize(("nu", "penalty", "given"), CASES)
def test_the_derivative_is_that_of_finite_differences(nu, penalty, given):
    rng = np.random.default_rng(7)
    X, weights, options = table(), PENALTIES[penalty], GIVEN[given]
    found = solved(X, nu, **weights, **options).gradient()
    assert not found.warnings
    np.testing.assert_allclose(found.X.sum(axis=0), 0.0, atol=1e-12)
    at = {"X": X, "nu": nu, **weights}
    changes = {"X": rng.standard_normal(X.shape)} | ({"nu": 1.0} if nu < 1.0 else {})
    changes |= {name: weight * rng.uniform(0.5, 1.0, np.shape(weight)) for name, weight in weights.items()}
    for name, change in changes.items():
        by_factor = name == "lam" and np.ndim(change)
        change, expected = (at[name], found.lam) if by_factor else (change, np.sum(change * getattr(found, name)))
        measured = slope(lambda t, of=name, by=change: solved(**at | {of: at[of] + t * by}, **options).value)
        assert measured == pytest.approx(expected, abs=1e-6), name


def test_at_the_ends_of_nu_the_derivative_is_from_inside():
    X = table()
    at_one = solved(X, 1.0, ridge=0.1)
    backwards = 3 * at_one.value - 4 * solved(X, 1 - STEP, ridge=0.1).value + solved(X, 1 - 2 * STEP, ridge=0.1).value
    assert backwards / (2 * STEP) == pytest.approx(at_one.gradient().nu, abs=1e-6)
    at_zero = solved(X, 0.0, ridge=0.1).gradient()
    assert at_zero.nu == 1.0
    assert solved(X, STEP, ridge=0.1).value == pytest.approx(STEP, rel=1e-6)
    assert not at_zero.X.any()


@pytest.mark.parametrize(
    ("last", "constraints", "where"),
    [(0.0, None, "[12]"), (table()[0], dc.Constraints(cannot_link=[(0, 12)]), "[0, 12]")],
)
def test_a_row_of_zeros_is_a_kink_and_the_imbalance_is_that_from_the_left(last, constraints, where):
    """A point at the mean may have any label; two equal points apart have one of each."""
    X = table() if constraints else table() - table().mean(axis=0)
    X = np.vstack([X, np.broadcast_to(last, 3)])
    at_one, before = (
        dc.low_rank(X, nu, ridge=0.1, tol=1e-8, max_iter=300, constraints=constraints) for nu in (1.0, 0.99)
    )
    found = at_one.gradient()
    assert f"points {where}" in found.warnings[0]
    assert "kink" in found.warnings[0]
    assert (at_one.value - before.value) / 0.01 == pytest.approx(found.nu, rel=2e-2)


def test_columns_in_other_units_have_derivatives_in_those_and_the_value_does_not_change_where_the_weights_have_them():
    """X, lam and the ridge times s, s^2, s^2: the derivative along these changes is 0, at any best scale of V."""
    X, lam, ridge, units = table(), np.full(3, 0.05), np.full(3, 0.1), np.array([1e-8, 1.0, 1e8])
    plain = solved(X, 1.0, lam=lam, ridge=ridge).gradient()
    other = solved(X * units, 1.0, lam=lam * units**2, ridge=ridge * units**2).gradient()
    np.testing.assert_allclose(other.X * units, plain.X, atol=1e-6)
    assert other.lam == pytest.approx(plain.lam, abs=1e-5)
    np.testing.assert_allclose(other.ridge * units**2, plain.ridge, atol=1e-5)
    rough = dc.low_rank(X, lam=lam, ridge=ridge, tol=1e-2).gradient()
    assert np.sum(X * rough.X) + 2 * (rough.lam + ridge @ rough.ridge) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("tol", [1e-1, 1e-9])
def test_no_optimum_lies_above_the_line_of_the_derivative(tol):
    X, rng = table(40, 6), np.random.default_rng(1)
    at = dc.low_rank(X, 0.6, lam=0.05, ridge=0.2, tol=tol)
    found = at.gradient()
    for nu, lam, ridge in rng.uniform([0.0, 0.0, 0.0], [1.0, 0.2, 0.5], (12, 3)):
        line = at.upper + found.nu * (nu - 0.6) + found.lam * (lam - 0.05) + found.ridge * (ridge - 0.2)
        assert dc.low_rank(X, nu, lam=lam, ridge=ridge, tol=1e-4).lower <= line + 1e-12


# Solvers, tables, and results that were sent


@pytest.mark.parametrize(("nu", "constraints"), [(0.5, CONSTRAINTS), (1.0, None)])
def test_all_ways_of_solving_the_problem_have_the_same_derivative(nu, constraints):
    X, weights = table(), {"lam": 0.05, "ridge": 0.1, "constraints": constraints}
    exact = solved(X, nu, **weights).gradient()
    others = [dc.solve(build(X, nu, **weights), "CLARABEL") for build in (dc.v_space, dc.lifted)]
    for result in (*others, dc.fista(X, nu, **weights, tol=1e-6)):
        found = result.gradient()
        np.testing.assert_allclose(found.X, exact.X, atol=1e-4)
        np.testing.assert_allclose([found.lam, found.ridge, found.nu], [exact.lam, exact.ridge, exact.nu], atol=1e-3)


def test_parameters_that_were_changed_after_building_are_those_of_the_derivative():
    X = table()
    relaxation = dc.v_space(X, 0.5, lam=0.05, ridge=0.1).at(nu=1.0)
    found, exact = dc.solve(relaxation, "CLARABEL").gradient(), solved(X, 1.0, lam=0.05, ridge=0.1).gradient()
    np.testing.assert_allclose(found.X, exact.X, atol=1e-5)
    assert found.lam == pytest.approx(exact.lam, abs=1e-4)


@each_form("list", "data frame", "csr", "dask")
def test_the_derivative_does_not_depend_on_how_the_table_is_stored(form):
    found, exact = (solved(X, 0.7, lam=0.05, ridge=0.1).gradient() for X in (form(table()), table()))
    np.testing.assert_allclose(found.X, exact.X, atol=1e-6)


def test_columns_of_constants_have_no_derivative_where_they_are_penalized_and_a_caution_where_not():
    X = np.column_stack([table(), np.full(12, 7.0), np.zeros(12)])
    penalized, free = solved(X, 1.0, lam=0.05, ridge=0.1).gradient(), solved(X, 1.0).gradient()
    assert not penalized.warnings
    assert not penalized.X[:, 3:].any()
    assert "columns [3, 4]" in free.warnings[0]
    assert "1 in all" in solved(np.column_stack([table(), table()[:, 0]]), 1.0).gradient().warnings[0]
    assert len(solved(np.ones((5, 2)), 1.0).gradient().warnings) == 2


def test_a_result_refers_to_the_table_and_is_sent_without_it():
    X = table()
    result = dc.low_rank(X, 0.7, ridge=0.1)
    assert result._instance.keywords["X"] is X
    for sent in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        with pytest.raises(ParameterError, match=re.escape("result.gradient(X)")):
            sent.gradient()
        np.testing.assert_array_equal(sent.gradient(X).X, result.gradient().X)
    size = len(pickle.dumps(result))
    assert len(pickle.dumps(dc.low_rank(np.repeat(X, 2, axis=0)[::2], 0.7, ridge=0.1))) == pytest.approx(size, rel=0.1)


def test_a_table_that_changed_since_it_was_solved_is_refused_as_another_one_is():
    X = table()
    result = dc.low_rank(X, ridge=0.1)
    with pytest.raises(DataError, match="unchanged"):
        result.gradient(np.abs(X - 3.0))
    X[0] += 1.0
    with pytest.raises(DataError, match="unchanged"):
        result.gradient()


@pytest.mark.parametrize("lam", [0.1, np.array([0.05, 0.2])], ids=["one weight", "by group"])
@pytest.mark.parametrize("nu", [0.3, 1.0])
def test_with_groups_of_columns_the_derivative_is_that_of_finite_differences(nu, lam):
    X, ridge = table(d=4), 0.1

    def value(lam, ridge):
        penalty = dc.Penalty(lam=lam, ridge=ridge, groups=[[0, 2], [1, 3]])
        return solved(X, nu, penalty=penalty)

    found = value(lam, ridge).gradient()
    by_factor = found.lam if np.ndim(lam) else lam * found.lam
    assert slope(lambda t: value(lam + t * lam, ridge).value) == pytest.approx(by_factor, abs=1e-6)
    assert slope(lambda t: value(lam, ridge + t * ridge).value) == pytest.approx(ridge * found.ridge, abs=1e-6)
