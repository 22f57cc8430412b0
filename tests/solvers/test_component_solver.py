"""Block decomposition of the sparse problem: objective, solutions, warm starts, messages."""

import numpy as np
import pytest
from instances import (
    SPARSE_KINDS,
    assert_overlap,
    optimum,
    planted,
    random_blocks,
    random_multipliers,
    random_point,
    sparse_instance,
)
from scipy.optimize import approx_fprime

import diffrac_cvx as dc
from diffrac_cvx.points.factors import dense, is_sparse
from diffrac_cvx.solvers import race
from diffrac_cvx.solvers.factored import solver
from diffrac_cvx.solvers.factored.components import BlockLagrangian

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

each_kind = pytest.mark.parametrize(
    "seed", range(24), ids=lambda seed: f"{SPARSE_KINDS[seed % 8]}-{sparse_instance(seed).nu}"
)
STRONG = dc.Penalty.l1(0.15)
WEAK = dc.Penalty.l1(0.03)


def pairs_of(labels):
    """Return which pairs of features are in the same component."""
    return labels[:, None] == labels


# The function


@each_kind
def test_the_gradient_is_that_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    blocks = random_blocks(rng, sparse_instance(seed).split)
    C, point = random_multipliers(rng, blocks), random_point(rng, blocks)
    lagrangian = BlockLagrangian(blocks, point, C)
    gradient = lagrangian.point(point.flat()).gradient
    numeric = approx_fprime(point.flat(), lambda x: lagrangian.point(x).value, 1e-7)
    np.testing.assert_allclose(gradient, numeric, atol=1e-4 * (1.0 + np.abs(gradient).max()))


# The answers


@each_kind
def test_the_bracket_is_that_without_components_and_every_optimal_v_is_zero_between_those_proved(seed):
    result, best = dc.low_rank(*sparse_instance(seed), tol=1e-7, max_iter=1000), optimum(seed)
    assert_overlap(result, best)
    assert result.n_iter <= 1000
    assert result.status is (dc.Status.OPTIMAL if result.gap <= 1e-7 else dc.Status.MAX_ITER)
    if result.components is None:
        return
    d = sparse_instance(seed).X.shape[1]
    penalized = sparse_instance(seed).penalty.weights(d)[1] > 0.0
    found, proved = result.components.found, result.components.certified
    np.testing.assert_array_equal(found >= 0, penalized)
    chosen = np.ix_(penalized, penalized)
    V = result.V[:d, :d]
    assert np.all(V[chosen][~pairs_of(found[penalized])] == 0.0)
    np.testing.assert_allclose(V, dense(result.G @ result.G.T)[:d, :d], atol=1e-14 * np.abs(V).max())
    if proved is not None and best.gap <= 1e-8:
        other = best.V[:d, :d]
        size = np.sqrt(np.outer(np.diag(other), np.diag(other))) + 1e-2 * np.abs(other).max()
        between = ~pairs_of(proved[penalized])
        assert np.all(np.abs(other[chosen][between]) <= 1e-3 * size[chosen][between])


@pytest.mark.parametrize("nu", [1.0, 0.5])
def test_blocks_of_a_few_features_are_found_whatever_the_units(nu, monkeypatch):
    """The multipliers are in the user's units and reproduce the certified bounds."""
    units = 10.0 ** np.random.default_rng(0).integers(-3, 4, 30)
    penalty = dc.Penalty(c=0.03**0.5 * units)
    monkeypatch.setattr(race, "FIRST_SLICE", 1e12)  # the blocks come before the other strategies
    result = dc.low_rank(planted() * units, nu, penalty, tol=1e-6)
    sizes = np.bincount(result.components.found)
    assert 1 < sizes.max() <= 4
    assert len(sizes) > 20
    np.testing.assert_array_equal(result.components.found, dc.low_rank(planted(), nu, WEAK, tol=1e-6).components.found)
    C, c = result.C.toarray(), np.append(penalty.weights(30)[1], np.zeros(int(nu < 1.0)))
    inside = pairs_of(np.append(result.components.found, -np.ones(int(nu < 1.0))))
    assert np.any(C)
    assert np.all(np.abs(C) <= np.outer(c, c) * (1 + 1e-12))
    assert np.all(C[~inside] == 0.0)
    large = np.abs(result.V / np.outer(c, c).clip(1e-300)) > 1e-3 * np.max(np.diag(result.V)[:30] / c[:30] ** 2)
    large &= np.outer(c, c) > 0.0
    np.fill_diagonal(large, False)
    np.testing.assert_allclose(C[large], (np.outer(c, c) * np.sign(result.V))[large], rtol=1e-9)
    assert dc.certify_v(planted() * units, result, nu, penalty).gap <= 2e-6


# Starts and stops


@pytest.mark.parametrize("solver", [dc.fista, dc.low_rank])
def test_a_solution_by_components_starts_either_solver_and_is_recognized(solver):
    X = planted(n=40, d=12)
    first = dc.low_rank(X, penalty=STRONG, tol=1e-6)
    assert is_sparse(first.G)
    again = solver(X, penalty=STRONG, tol=1e-3, start=first)
    assert again.status is dc.Status.OPTIMAL
    assert again.n_iter <= 1
    assert_overlap(again, first)


# Records


def test_what_would_not_fit_in_memory_is_refused_and_the_factor_of_a_matrix_is_there(monkeypatch):
    X = planted()
    result = dc.low_rank(X, penalty=STRONG, tol=1e-4)
    monkeypatch.setattr("diffrac_cvx.machine.memory.available_memory", lambda: 1000.0)
    with pytest.raises(dc.ResourceError, match=r"a dense 30 x 30 matrix .* Use the factor G of the result"):
        _ = result.V
    assert result.G.shape[0] == 30
    with pytest.raises(dc.ResourceError, match="60 points and 30 features"):
        dc.low_rank(X, penalty=STRONG)


def test_one_block_that_would_not_fit_in_memory_is_left_with_the_bracket_so_far(monkeypatch):
    monkeypatch.setattr(solver, "available_memory", lambda: 1000.0)
    result = dc.low_rank(planted(), penalty=dc.Penalty.l1(1e-3), tol=1e-9)
    assert result.status is dc.Status.OUT_OF_MEMORY
    assert "would not fit in memory" in str(result.status)
    assert_overlap(result, dc.low_rank(planted(), penalty=dc.Penalty.l1(1e-3), tol=1e-3, working_set=False))
    split = dc.low_rank(planted(), penalty=STRONG, tol=1e-5)
    assert split.status is dc.Status.OPTIMAL


# Steps


def test_blocks_that_most_features_would_join_are_left_to_the_other_strategies(monkeypatch):
    """Equal columns are all connected: the solver with V as one block goes on."""
    monkeypatch.setattr(race, "FIRST_SLICE", 1e12)
    X = np.random.default_rng(0).standard_normal((40, 1)) + 0.3 * np.random.default_rng(1).standard_normal((40, 8))
    result = dc.low_rank(X, penalty=dc.Penalty.l1(1e-3), tol=1e-5)
    assert result.gap <= 1e-5
    assert result.components is None
