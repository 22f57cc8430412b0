"""The sparse regime: its closed forms compared with programs and samples, its searches, and their growth."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.linalg

from experiments.sparse_regime import models
from experiments.sparse_regime.cells import ladder, least_points

# The statistical dimension of a vanishing weight.


def project_by_cvxpy(G: np.ndarray, sparsity: int) -> float:
    """Return |projection of G onto K|^2, with K written from its definition."""
    d = len(G)
    rotation = scipy.linalg.block_diag(scipy.linalg.hadamard(sparsity) / sparsity**0.5, np.eye(d - sparsity))
    Delta = cp.Variable((d, d), symmetric=True)
    support = np.zeros((d, d))
    support[:sparsity, :sparsity] = 1.0
    original = rotation.T @ Delta @ rotation
    raised = cp.sum(cp.multiply(support, original)) + cp.sum(cp.abs(cp.multiply(1 - support, original)))
    block = Delta[1:, 1:]
    rest = np.ones((d, d))
    rest[0, 0] = 0.0
    cone_of = [block >> 0, Delta[0, 0] == -cp.trace(block), raised <= 0]
    cp.Problem(cp.Minimize(cp.sum_squares(cp.multiply(rest, Delta - G))), cone_of).solve(solver="CLARABEL")
    return float(np.sum((rest * Delta.value) ** 2))


@pytest.mark.parametrize(("sparsity", "d"), [(2, 9), (4, 6)])
def test_the_closed_form_bounds_the_statistical_dimension_from_above(sparsity, d):
    drawn = [project_by_cvxpy((A + A.T) / 2, sparsity) for A in np.random.default_rng(0).standard_normal((12, d, d))]
    bound = models.dimension_bound(sparsity, d)
    assert 0.6 * bound < np.mean(drawn) < bound + 2 * np.std(drawn) / len(drawn) ** 0.5
    assert bound <= d - 1 + d * (d - 1) / 4


def test_the_bound_is_of_order_d_log_d():
    d = np.array([1e4, 1e5, 1e6])
    for l in (2, 4):
        bound = np.array([models.dimension_bound(l, int(at)) for at in d])
        ratio = bound / ((l - 1) ** 2 * d * np.log(d / (l - 1) ** 2))
        assert np.all((ratio > 0.6) & (ratio < 1.2))
        assert ratio.max() / ratio.min() < 1.25


# The search.


@pytest.mark.parametrize("threshold", [4, 11, 57, 600, 1990, 3000])
@pytest.mark.parametrize("guess", [1, 60, 5000])
def test_the_search_finds_the_first_rung_from_its_threshold_on(threshold, guess):
    rungs = ladder(4, 2000)
    found = least_points(lambda n: n >= threshold, rungs, guess)
    expected = rungs[rungs >= threshold][0] if threshold <= 2000 else 2000
    assert found == {"points": expected, "outside": -1 if threshold == 4 else int(threshold > 2000)}


# The growth.


def test_the_boundary_of_searches_is_their_median_and_a_bound_where_most_are_outside():
    table = pd.DataFrame({"d": 10, "replication": range(5), "points": [4, 6, 8, 90, 90], "outside": [0, 0, 0, 1, 1]})
    found = models.boundary_of(table)
    assert (found.n50[0], found.outside[0]) == (8.0, 0)
    assert models.boundary_of(table.assign(outside=[0, 0, 1, 1, 1])).outside[0] == 1
    assert models.boundary_of(table.assign(outside=[-1, -1, -1, 0, 0])).outside[0] == -1


def test_the_growth_in_l_is_that_of_the_table():
    table = pd.DataFrame({"d": np.repeat([16.0, 24.0, 32.0, 48.0, 64.0, 96.0], 8), "outside": 0})
    about = table["d"] * np.exp(0.005 * np.random.default_rng(0).standard_normal(48))
    found = {l: models.boundary_of(table.assign(points=about * l**1.5)) for l in (2, 4, 8, 16)}
    assert models.growth_in_sparsity(found, 32).value == pytest.approx(1.5, abs=0.03)
    assert not np.isfinite(models.growth_in_sparsity(found, 33).value)
