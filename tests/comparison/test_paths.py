"""Paths over nu and lambda."""

import numpy as np
import pytest
from instances import assert_overlap

import diffrac_cvx as dc
from diffrac_cvx import paths
from diffrac_cvx.points.linear_algebra import standardize_columns

ROUNDING = 1e-9
TOL = 1e-5
NUS = [1.0, 0.0, 0.1, 0.5, 0.02]
LAMS = [0.3, 0.0, 0.01, 2.0]
CONSTRAINTS = dc.Constraints([(7, 8), (8, 0)], [(8, 9)], labels=[1, 1, -1, -1, *[None] * 56])


@pytest.fixture(scope="module")
def planted():
    return dc.datasets.make_planted(60, 6, sparsity=2, imbalance=0.2, noise=0.3, rng=4)


def assert_values_of_cold_solves(path, grid, cold):
    """Check the bounds of a path, entry by entry, against those of a function of the parameter."""
    np.testing.assert_array_equal(path.parameter, np.sort(grid))
    for parameter, lower, upper in zip(path.parameter, path.lower, path.upper, strict=True):
        assert upper - lower <= TOL
        assert_overlap(dc.Bracket(lower, upper), cold(parameter), ROUNDING)


# Values


@pytest.mark.parametrize("given", [{}, {"penalty": dc.Penalty(a=0.1, c=0.2)}, {"constraints": CONSTRAINTS}])
def test_values_along_a_path_of_nu_are_those_of_cold_solves(planted, given):
    path = paths.nu_path(planted.X, NUS, tol=TOL, **given)
    assert_values_of_cold_solves(path, NUS, lambda nu: dc.low_rank(planted.X, nu, tol=TOL, **given))


@pytest.mark.parametrize("given", [{}, {"constraints": CONSTRAINTS}])
def test_values_along_a_path_of_lambda_are_those_of_cold_solves(planted, given):
    options = {"nu": 0.2, "tol": TOL} | given
    path = paths.lambda_path(planted.X, LAMS, dc.Penalty.l1(1.0, 0.1), **options)
    assert_values_of_cold_solves(
        path, LAMS, lambda lam: dc.low_rank(planted.X, penalty=dc.Penalty.l1(lam, 0.1), **options)
    )


def test_every_entry_of_a_path_is_that_of_the_known_solution():
    """Balanced labels as the first of the unit columns: at nu = 1 the optimum is V = e1 e1' / (1 + lambda)^2."""
    y = np.repeat([1.0, -1.0], 20)
    X = standardize_columns(np.column_stack([y, np.random.default_rng(3).standard_normal((40, 4))]))
    lams = np.array([0.05, 0.4, 2.0])
    path = paths.lambda_path(X, lams, y=y, tol=1e-6)
    np.testing.assert_allclose(path.value, lams / (1 + lams), atol=1e-6)
    np.testing.assert_allclose(path.directions, np.outer(1 / (1 + lams), np.eye(5)[0]), atol=3e-3)
    np.testing.assert_allclose(path.eigenvalue_ratio, 0.0, atol=1e-2)
    np.testing.assert_allclose(path.imbalance, 0.0, atol=1e-3)
    np.testing.assert_array_equal(path.error, 0.0)
    assert (path.seconds > 0.0).all()
    assert paths.nu_path(X, [1.0]).error is None
    with pytest.raises(dc.ParameterError, match="penalty has lam = 0"):
        paths.lambda_path(X, lams, dc.Penalty(ridge=0.3))


def test_a_path_takes_fewer_steps_than_cold_solves(monkeypatch):
    X = dc.datasets.make_planted(200, 40, sparsity=4, imbalance=0.2, noise=0.3, rng=1).X
    nus, results = np.geomspace(0.01, 1.0, 6), []

    def recorded(*args, **options):
        results.append(dc.low_rank(*args, **options))
        return results[-1]

    monkeypatch.setattr(paths, "low_rank", recorded)
    paths.nu_path(X, nus)
    cold = sum(dc.low_rank(X, nu).n_iter for nu in nus)
    assert len(results) == len(nus)
    assert 0 < sum(result.n_iter for result in results) < 0.5 * cold


# Directions


def test_the_leading_direction_does_not_depend_on_the_units(noisy):
    root, units = np.random.default_rng(1).standard_normal((3, 3)), np.array([1e-6, 1.0, 1e5])
    V = root @ root.T
    changed = paths.leading_direction(noisy * units, V / np.outer(units, units))
    np.testing.assert_allclose(changed * units, paths.leading_direction(noisy, V), rtol=1e-8)


def test_the_direction_of_rank_one_is_its_vector_without_the_offset(noisy):
    v = np.array([0.1, -2.0, 0.3])
    np.testing.assert_allclose(paths.leading_direction(noisy, np.outer(v, v)), -v, atol=1e-12)
    V = np.eye(4)
    V[3, 3] = V[0, 3] = V[3, 0] = 5.0
    np.testing.assert_array_equal(paths.leading_direction(noisy, V), paths.leading_direction(noisy, np.eye(3)))


def test_signs_follow_through_a_turn_of_the_direction():
    angles = np.linspace(0.0, 1.5 * np.pi, 7)
    spun = np.column_stack([np.cos(angles), np.sin(angles)]) * np.arange(1, 8)[:, None]
    turned = spun * np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0])[:, None]
    found = paths.align_signs(turned, np.ones(2))
    np.testing.assert_allclose(found, -spun, atol=1e-12)  # the last entry is the largest, and negative
