"""Bounds in floating point hold for the stored numbers, checked in sixty digits."""

from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from posed import drop_beside_the_largest

import diffrac_cvx as dc
from diffrac_cvx.certificates import search, values
from diffrac_cvx.points import streamed
from diffrac_cvx.points.linear_algebra import EPS
from diffrac_cvx.problem import direction_problem
from diffrac_cvx.problem.coordinates import Coordinates
from diffrac_cvx.problem.direction_problem import DirectionProblem
from experiments.stress import cells as stress_cells
from experiments.stress import exact as exact_values
from experiments.stress.cells import ROUNDED, check_instance, measure
from experiments.stress.exact import best_labels_value, direction_value, labels_value
from experiments.stress.experiment import check_bounds
from experiments.stress.instances import DROPPED, FAMILIES, WHOLE, beside_collinear, make_instance


@pytest.fixture(autouse=True)
def little_time(monkeypatch):
    """A solve ends early: its bounds hold all the same."""
    monkeypatch.setattr(stress_cells, "SECONDS", 0.1)


# Values in sixty digits


def test_values_in_sixty_digits_are_those_in_double_precision_where_these_are_accurate():
    X, a, c = dc.datasets.make_planted(8, 2, noise=0.3, rng=0).X, np.array([0.1, 0.2]), np.array([0.3, 0.0])
    result = dc.low_rank(X, 0.7, dc.Penalty(a, c), tol=1e-9)
    assert float(direction_value(X, 0.7, a, c, result.G)) == pytest.approx(result.value, abs=1e-12)
    labels = dc.rounding.kmeans_centered(result.F)
    certificate = dc.certify_labels(X, labels, result, nu=0.7, penalty=dc.Penalty(a, c))
    cost = float(labels_value(X, 0.7, a, c, labels, certificate.v))
    assert cost == pytest.approx(certificate.objective, abs=1e-12)
    plain = dc.low_rank(X, 0.7, dc.Penalty(a), tol=1e-9)
    rounded = dc.certify_labels(X, dc.rounding.kmeans_centered(plain.F), plain, nu=0.7, penalty=dc.Penalty(a))
    assert plain.lower <= float(best_labels_value(X, 0.7, a)) <= rounded.objective + 1e-12


def differences(instance):
    """The same instance with the difference of each free column and its copy, a double, in place of the copy."""
    X = instance.X.copy()
    k = np.count_nonzero((instance.a == 0.0) & (instance.c == 0.0)) // 2 if instance.nonnegative is None else 1
    X[:, k : 2 * k] -= X[:, :k]
    return instance._replace(X=X)


@pytest.mark.parametrize("kind", ["ridge", "l1", "groups", "signs"])
def test_exact_costs_of_labels_depend_on_the_span_of_free_columns_alone(kind):
    made = [beside_collinear(np.random.default_rng(seed), kind) for seed in range(20)]
    made = next(one for one in made if (one.a == 0.0)[:2].all() and not (one.X[:, 0] == one.X[:, 1]).any())
    labels = list(exact_values.all_labels(len(made.X)))
    costs, same = (np.array(stress_cells.costs_of_labels(one, labels)) for one in (made, differences(made)))
    assert np.abs(costs - same).max() < Decimal("1e-50" if kind == "ridge" else "1e-12")
    apart = costs - np.array(stress_cells.costs_of_labels(made._replace(X=made.without), labels))
    assert apart.min() < Decimal("-1e-3")  # without the small differences some labels cost more
    assert apart.max() < Decimal("1e-9")


def test_a_column_that_depends_on_others_changes_no_exact_cost():
    X, a = np.random.default_rng(0).standard_normal((5, 2)), np.zeros(3)
    twice = np.column_stack([X, X[:, 0] * 2.0**40])
    assert best_labels_value(twice, 0.5, a) == best_labels_value(X, 0.5, a[:2])


@pytest.mark.parametrize(("n", "d"), [(5, 3), (4, 9)])
def test_the_best_labels_of_weighted_points_are_those_of_repeated_ones(n, d):
    rng = np.random.default_rng(n)
    X, a, w = rng.standard_normal((n, d)), np.full(d, 0.3), np.array([1.0, 2.0, *np.ones(n - 2)])
    repeated = np.vstack([X, X[1:2]])
    y, v, G = np.sign(X[:, 0]), rng.standard_normal(d), rng.standard_normal((d, 2))
    for weighted, twice in (
        (best_labels_value(X, 0.5, a, w), best_labels_value(repeated, 0.5, a)),
        (labels_value(X, 0.5, a, a, y, v, w), labels_value(repeated, 0.5, a, a, np.append(y, y[1]), v)),
        (direction_value(X, 1.0, a, a, G, w), direction_value(repeated, 1.0, a, a, G)),
    ):
        assert abs(weighted - twice) < Decimal("1e-50")


# Bounds of every solver, on instances of every family


@pytest.mark.parametrize("number", [1000, *(pytest.param(number, marks=pytest.mark.slow) for number in (1001, 1002))])
@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name.endswith("outwards") else [])
        for name in sorted([*FAMILIES, *WHOLE])
    ],
)
def test_no_bound_is_on_the_wrong_side_of_an_exact_value(family, number):
    for bound in check_instance(make_instance(family, number))[0]:
        assert bound.excess <= ROUNDED, bound


# The check can fail


def test_a_lower_bound_that_forgets_rounding_is_found_out(monkeypatch):
    monkeypatch.setattr(search, "least_certified_t", lambda *given: given[4] * (1.0 - 1e-12))
    monkeypatch.setattr(stress_cells, "BATCH", 6)
    row = measure("planted", 0)
    assert row["violations"] > 0
    assert not check_bounds(pd.DataFrame([{"family": "planted", **row}])).passed


def test_an_upper_bound_that_forgets_rounding_is_found_out(monkeypatch):
    monkeypatch.setattr(values, "round_up", lambda *_: -1e-12)
    bounds, _ = check_instance(make_instance("gaussian", 2))
    assert any(bound.excess > ROUNDED for bound in bounds if bound.kind == "upper")


@pytest.mark.parametrize("number", range(len(DROPPED)))
def test_columns_dropped_beside_larger_ones_are_found_out(monkeypatch, number):
    instance = DROPPED[number]
    assert make_instance("large_columns", number) is instance
    assert all(bound.excess <= ROUNDED for bound in check_instance(instance)[0])
    monkeypatch.setattr(direction_problem, "whitener_with_ridge", drop_beside_the_largest)
    bounds, n_excluded = check_instance(instance)
    assert n_excluded == 0
    assert max(bound.excess for bound in bounds if bound.kind == "lower") > 0.02


def kept_by_stacked_rows(problem):
    """W of the directions of free columns along which these, with rows of the penalty below, vary by 8 (2 D) eps."""
    M, free = np.vstack([problem.R, np.diag(problem.c)]), (problem.a == 0.0) & (problem.c == 0.0)
    _, singular, right = np.linalg.svd(M[:, free], full_matrices=False)
    basis = np.eye(len(free))[:, free] @ right[singular > 8 * len(M) * EPS * singular[0]].T
    _, singular, right = np.linalg.svd(M @ np.hstack([basis, np.eye(len(free))[:, ~free]]), full_matrices=False)
    return np.hstack([basis, np.eye(len(free))[:, ~free]]) @ (right.T / np.maximum(singular, EPS / 8 * singular[0]))


def test_directions_that_one_decision_excludes_and_another_does_not_count_are_found_out(monkeypatch):
    monkeypatch.setattr(DirectionProblem, "W", property(kept_by_stacked_rows))
    monkeypatch.setattr(Coordinates, "n_excluded", 0)
    bounds, excluded = check_instance(make_instance("collinear_beside_l1", 10))
    assert excluded == 0
    assert max(bound.excess for bound in bounds if bound.kind == "lower") > 0.02


def test_a_table_whose_change_is_not_seen_is_found_out(monkeypatch):
    monkeypatch.setattr(stress_cells, "SECONDS", 5.0)
    monkeypatch.setattr(streamed, "checksum", lambda block, _: np.zeros(block.shape[1]))
    assert max(bound.excess for bound in check_instance(make_instance("changed_table", 9))[0]) > 1e-3


# For which data


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
def test_directions_left_out_are_counted_and_no_others():
    rng = np.random.default_rng(0)
    x, y, z = rng.standard_normal((3, 12))
    twice, zeros, wide = np.column_stack([x, x, z]), np.column_stack([x, y, np.zeros(12)]), rng.standard_normal((4, 9))
    near, offset = np.column_stack([x, x + 2.0**-50 * y]), (0.5, dc.Penalty(0, [0, 0, 0.1]))
    assert "n_excluded=1" in repr(dc.low_rank(twice, *offset, tol=1e-6))
    for count, X, penalty in (
        (1, twice, dc.Penalty()), (1, near, dc.Penalty()), (0, twice, dc.Penalty(0.1)), (0, twice, dc.Penalty.l1(0.1)),
        (0, zeros, dc.Penalty()), (0, wide, dc.Penalty(0.3)),
    ):  # fmt: skip
        assert dc.low_rank(X, penalty=penalty, tol=1e-6).n_excluded == count


def test_a_lower_bound_is_held_against_the_data_without_what_its_own_record_excludes():
    record, silent = SimpleNamespace(n_excluded=1), SimpleNamespace()
    least = stress_cells.Least(Decimal("0.1"), Decimal("0.2"))
    for one, exact in ((record, 0.2), (silent, 0.1)):
        (bound,) = stress_cells.lower_bounds("any", stress_cells.Stated(0.3, stress_cells.excluded_of(one)), least)
        assert bound.excess == pytest.approx(0.3 - exact, abs=1e-8)
    assert list(stress_cells.lower_bounds("any", stress_cells.Stated(0.3, 1), least._replace(without=None))) == []


def test_where_every_record_excludes_directions_no_lower_bound_is_held_against_all_of_the_data(monkeypatch):
    monkeypatch.setattr(stress_cells, "excluded_of", lambda *_: 1)
    bounds, excluded = check_instance(make_instance("gaussian", 3))
    assert excluded == 1
    assert {bound.kind for bound in bounds} == {"upper"}


def test_an_instance_is_the_same_each_time():
    for one, other in zip(*(make_instance("wild_entries", 7)[:4] for _ in range(2)), strict=True):
        np.testing.assert_array_equal(one, other)
