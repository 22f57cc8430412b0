"""Bounds in floating point hold for the stored numbers, checked in sixty digits."""

from decimal import Decimal

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
from experiments.stress.cells import ROUNDED, check_instance, measure
from experiments.stress.exact import best_labels_value, direction_value, labels_value
from experiments.stress.experiment import check_bounds
from experiments.stress.instances import DROPPED, FAMILIES, WHOLE, make_instance


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
