"""The duality of alpha and nu: both values with their certified bounds, and their figure."""

from dataclasses import replace

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import oracles
import pytest

import diffrac_cvx as dc
from experiments.unbalanced.duality import Duality, duality
from experiments.unbalanced.plot import draw_pair

ROUNDING = 1e-9


@pytest.fixture(scope="module")
def planted():
    return dc.datasets.make_planted(24, 5, sparsity=2, imbalance=0.1, noise=0.3, rng=5)


@pytest.fixture(scope="module")
def dual(planted):
    return duality(planted.X, [0.1, 0.003, 1.0], solver="CLARABEL")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def drawn(line):
    return np.column_stack(line.get_data())


def test_the_penalized_value_is_the_constrained_one_plus_nu_alpha(dual):
    assert (dual.penalized.gap <= 1e-6).all()
    assert (dual.constrained.gap <= 1e-4).all()
    np.testing.assert_allclose(dual.bracket_distance, 0.0, atol=ROUNDING)
    lower, upper = dual.sums
    np.testing.assert_allclose(upper, dual.penalized.value, atol=1e-4)
    assert (lower <= upper).all()
    assert (np.diff(dual.penalized.parameter) > 0).all()


def test_brackets_that_do_not_meet_are_said_to_lie_apart(dual):
    for shift in (0.2, -0.2):
        low, high = dual.constrained.lower + shift, dual.constrained.upper + shift
        moved = replace(dual.constrained, lower=low, upper=high)
        gap = dual.penalized.gap + dual.constrained.gap
        assert (Duality(dual.penalized, moved).bracket_distance >= 0.2 - gap - ROUNDING).all()


def test_the_paths_of_nu_bound_the_constrained_value_everywhere(planted, dual):
    alphas = np.array([0.0, 0.01, 0.15, 0.5, 0.8, 1.0])
    lower, upper = dual.bounds(alphas)
    values = np.array([oracles.solve_alpha(planted.X, alpha)[0] if alpha < 1 else 0.0 for alpha in alphas])
    assert (lower - oracles.TOL <= values).all()
    assert (values <= upper + oracles.TOL).all()
    at = dual.constrained.parameter
    assert np.max(np.subtract(*dual.bounds(at)[::-1])) <= 1e-4  # at the solutions the bounds touch


def test_the_band_contains_the_values_at_the_solutions_and_the_sums_are_drawn_at_their_nu(dual):
    left, right = plt.figure().subplots(1, 2)
    draw_pair(left, right, dual, color="k", marker="s")
    solved = dual.constrained
    np.testing.assert_array_equal(drawn(left.lines[0]), np.column_stack([solved.parameter, solved.value]))
    np.testing.assert_array_equal(drawn(right.lines[0]), np.column_stack([dual.penalized.parameter, dual.sums[1]]))
    corners = left.collections[0].get_paths()[0].vertices
    at = dual.constrained.parameter[1]
    lower, upper = dual.bounds([at])
    assert {lower[0], upper[0]} <= set(corners[corners[:, 0] == at, 1])
