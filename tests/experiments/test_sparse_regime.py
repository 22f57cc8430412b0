"""The sparse regime: its programs compared with each other and closed forms, its searches, and their growth."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.linalg

import diffrac_cvx as dc
from experiments.phase_transition.cells import points_of
from experiments.phase_transition.uniqueness import is_only_solution
from experiments.sparse_regime import cells as regime_cells
from experiments.sparse_regime import cone, models
from experiments.sparse_regime.limit import is_least_norm, least_change
from experiments.sparse_regime.population import chi_squared, solve_population
from experiments.sparse_regime.search import Answer, ladder, least_points

# The limit of a vanishing weight.


def sparsest_solution(X: np.ndarray) -> np.ndarray:
    """Return a V >= 0 with x_i'Vx_i = 1 and the smallest |V|_1, by CVXPY."""
    d = X.shape[1]
    V = cp.Variable((d, d), PSD=True)
    cp.Problem(cp.Minimize(cp.sum(cp.abs(V))), [cp.sum(cp.multiply(X @ V, X), axis=1) == 1]).solve(solver="CLARABEL")
    return np.asarray(V.value)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize(("sparsity", "n"), [(2, 10), (2, 40), (4, 20), (4, 34)])
def test_the_program_of_directions_says_whether_the_sparsest_solution_is_the_planted_one(sparsity, n):
    X, _, v = points_of(sparsity, "flat", n, 8, 1)
    distance = np.linalg.norm(sparsest_solution(X) - np.outer(v, v))
    assert is_least_norm(X, v) == (distance < 1e-4)


@pytest.mark.parametrize("n", [4, 6, 8, 20])
def test_with_one_nonzero_entry_it_is_the_linear_program(n):
    for replication in range(3):
        X, _, v = points_of(1, "flat", n, 8, replication)
        assert is_least_norm(X, v) == is_only_solution(X)


def test_a_small_weight_recovers_what_the_limit_does():
    for n, found in ((14, False), (80, True)):
        X, y, v = points_of(2, "flat", n, 12, 0)
        assert is_least_norm(X, v) is found
        result = dc.low_rank(X, 1.0, dc.Penalty.l1(1e-3), tol=1e-5)
        assert (regime_cells.error_of(result, y) < 0.5) is found


# Its statistical dimension.


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


@pytest.mark.parametrize(("sparsity", "d"), [(1, 6), (2, 6), (2, 9), (4, 4), (4, 9), (8, 8)])
def test_the_distance_to_the_polar_cone_is_the_length_of_the_projection(sparsity, d):
    for seed in range(2):
        found = cone.draw_dimension(sparsity, d, np.random.default_rng(seed))
        G = cone.draw_gaussian(d, np.random.default_rng(seed))
        assert found == pytest.approx(project_by_cvxpy(G, sparsity), rel=1e-3, abs=5e-3)


def test_with_one_nonzero_entry_the_dimension_is_wendels():
    d = 16
    drawn = [cone.draw_dimension(1, d, np.random.default_rng(seed)) for seed in range(12)]
    assert 1 + np.mean(drawn) == pytest.approx((d + 1) / 2, rel=0.2)


@pytest.mark.parametrize(("sparsity", "d"), [(2, 16), (4, 16), (8, 8), (8, 24)])
def test_the_closed_form_bounds_the_dimension_from_above(sparsity, d):
    drawn = [cone.draw_dimension(sparsity, d, np.random.default_rng(seed)) for seed in range(40)]
    error = np.std(drawn) / len(drawn) ** 0.5
    bound = cone.dimension_bound(sparsity, d)
    assert 0.6 * bound < np.mean(drawn) < bound + 2 * error
    assert bound <= d - 1 + d * (d - 1) / 4


def test_the_bound_is_of_order_d_log_d():
    d = np.array([1e4, 1e5, 1e6])
    for l in (2, 4):
        bound = np.array([cone.dimension_bound(l, int(at)) for at in d])
        ratio = bound / ((l - 1) ** 2 * d * np.log(d / (l - 1) ** 2))
        assert np.all((ratio > 0.6) & (ratio < 1.2))
        assert ratio.max() / ratio.min() < 1.25


# Infinitely many points.


@pytest.mark.parametrize("k", [7, 4000])  # the Gamma function overflows at 2000
def test_the_quadrature_has_the_moments_of_a_chi_squared_variable(k):
    nodes, weights = chi_squared(k)
    assert weights @ nodes == pytest.approx(k)
    assert weights @ (nodes - k) ** 2 == pytest.approx(2 * k)


def test_the_population_has_the_value_of_a_large_sample():
    sparsity, d, lam = 4, 10, 0.02
    X, _, _ = points_of(sparsity, "flat", 8000, d, 0)
    found = solve_population(sparsity, d, lam)
    sample = dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=1e-5)
    assert sample.value == pytest.approx(found.value, abs=2e-3)
    assert np.ones(4) @ sample.V[:4, :4] @ np.ones(4) / 4 == pytest.approx(found.w, abs=0.03)


@pytest.mark.parametrize("d", [16, 64])
@pytest.mark.parametrize(("kappa", "survives"), [(0.7, True), (1.3, False)])
def test_the_direction_survives_below_the_line_and_not_above(d, kappa, survives):
    assert (solve_population(4, d, kappa / (3 * d)).excess > 1e-3) is survives


# The search.


@pytest.mark.parametrize("threshold", [4, 11, 57, 600, 1990])
@pytest.mark.parametrize("guess", [1, 60, 5000])
def test_the_search_finds_the_first_rung_from_its_threshold_on(threshold, guess):
    rungs = ladder(4, 2000)
    found = least_points(lambda n: Answer.RECOVERED if n >= threshold else Answer.FAILED, rungs, guess)
    assert found.points == rungs[rungs >= threshold][0]
    assert found.outside == (-1 if threshold == 4 else 0)
    assert len(found.tried.split()) == len(set(found.tried.split()))


def test_a_search_without_success_is_above_its_ladder_and_counts_what_is_undecided():
    found = least_points(lambda n: Answer.UNDECIDED, ladder(4, 100), 20)
    assert (found.points, found.outside) == (100, 1)
    assert found.undecided == len(found.tried.split())


# The growth.


def searches(n_of) -> pd.DataFrame:
    """Return eight searches at each d that end at about n_of(d)."""
    d = np.repeat([16.0, 24.0, 32.0, 48.0, 64.0, 96.0], 8)
    points = n_of(d) * np.exp(0.005 * np.random.default_rng(0).standard_normal(48))
    return pd.DataFrame({"d": d, "points": points, "outside": 0})


def test_the_boundary_of_searches_is_their_median_and_a_bound_where_most_are_outside():
    table = pd.DataFrame({"d": 10, "replication": range(5), "points": [4, 6, 8, 90, 90], "outside": [0, 0, 0, 1, 1]})
    found = models.boundary_of(table)
    assert (found.n50[0], found.outside[0]) == (8.0, 0)
    assert models.boundary_of(table.assign(outside=[0, 0, 1, 1, 1])).outside[0] == 1
    assert models.boundary_of(table.assign(outside=[-1, -1, -1, 0, 0])).outside[0] == -1


def test_the_growth_in_l_is_that_of_the_table():
    found = {l: models.boundary_of(searches(lambda d, l=l: d * l**1.5)) for l in (2, 4, 8, 16)}
    assert models.growth_in_sparsity(found, 32).value == pytest.approx(1.5, abs=0.03)
    assert not np.isfinite(models.growth_in_sparsity(found, 33).value)


def test_the_limit_is_decided_where_one_solver_fails():
    X, _, v = points_of(8, "flat", 64, 16, 7)
    assert least_change(X, v) == pytest.approx(2.9e-4, rel=0.1)
