"""Every optimal V is block diagonal along the components that one solution shows."""

import cvxpy as cp
import numpy as np
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates.block_bounds import BlockCertificate, Blocks
from diffrac_cvx.certificates.block_problem import Partition, block_problem
from diffrac_cvx.certificates.screening import quick_radius, weights_at

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}


def instance(seed):
    """Random data with correlated columns, nu, and a penalty with equal or different weights, some with a ridge."""
    rng = np.random.default_rng([2017, 10, seed])
    n, d = int(rng.integers(20, 41)), int(rng.integers(4, 9))
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    c = rng.uniform(0.02, 0.6) * (np.ones(d) if seed % 2 else rng.uniform(0.6, 1.4, d))
    if seed % 5 == 0:
        c[0] = 0.0
    return X, (1.0, 0.5)[seed // 2 % 2], dc.Penalty(a=0.1 * (seed % 3), c=c)


def restricted_value(X, nu, penalty, zero):
    """The optimum of (15) among the matrices with given zeros, written from Eq. (14) and (15)."""
    n, d = X.shape
    a, c = penalty.weights(d)
    if nu < 1.0:
        X, a, c = np.column_stack([X, np.ones(n)]), np.append(a, (nu / (1 - nu)) ** 0.5), np.append(c, 0.0)
        zero = np.pad(zero, (0, 1))
    V = cp.Variable((len(c), len(c)), PSD=True)
    energies = cp.sum(cp.multiply(X @ V, X), axis=1)
    l1 = cp.sum(cp.multiply(np.outer(c, c), cp.abs(V)))
    value = 1 - 2 * cp.sum(cp.sqrt(energies)) / n + cp.trace((X.T @ X / n + np.diag(a**2)) @ V) + l1
    constraints = [cp.multiply(zero.astype(float), V) == 0] if zero.any() else []
    return float(cp.Problem(cp.Minimize(value), constraints).solve(solver="CLARABEL"))


def hold_to_the_interior_point(seed):
    """Compare V between components with 0, and the optimum of the block diagonal matrices with the optimum."""
    X, nu, penalty = instance(seed)
    best = dc.solve(dc.v_space(X, nu, penalty), "CLARABEL", **TIGHT)
    labels = dc.find_components(X, best, nu, penalty)
    between = (labels[:, None] != labels) & (labels[:, None] >= 0) & (labels >= 0)
    V = best.V[: len(labels), : len(labels)]
    size = np.sqrt(np.outer(np.diag(V), np.diag(V))) + 1e-3 * np.abs(V).max()
    assert np.all(np.abs(V[between]) <= 1e-3 * size[between]), seed
    assert restricted_value(X, nu, penalty, between) == pytest.approx(best.value, abs=1e-5), seed
    return labels.max() + 1


def test_v_vanishes_between_components_and_nothing_is_lost_by_it():
    counts = [hold_to_the_interior_point(seed) for seed in range(20)]
    assert min(counts) <= 2
    assert max(counts) > 3


@pytest.mark.slow
def test_v_vanishes_between_components_on_two_hundred_instances():
    counts = [hold_to_the_interior_point(seed) for seed in range(200)]
    assert len(set(counts)) > 4


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_a_solution_with_a_wide_gap_separates_nothing_that_belongs_together(tol):
    separated = 0
    for seed in range(8):
        X, nu, penalty = instance(seed)
        exact = dc.find_components(X, dc.solve(dc.v_space(X, nu, penalty), "CLARABEL", **TIGHT), nu, penalty, rtol=1e-5)
        for result in (dc.fista(X, nu, penalty, tol=tol), dc.low_rank(X, nu, penalty, tol=tol)):
            found = dc.find_components(X, result, nu, penalty)
            together = exact[:, None] == exact
            assert np.all((found[:, None] == found)[together]), seed
            separated += len(set(found)) - 1
            assert len(set(dc.find_components(X, result, nu, penalty, rtol=1e-3))) >= len(set(found))
    assert separated > 0 or tol > 1e-3  # a loose solution proves little


@pytest.mark.parametrize("seed", [1, 3, 7])
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_the_solver_allows_at_least_the_distance_to_the_optimum_that_the_gap_leaves(seed, size):
    X, _, penalty = instance(seed)
    X[0] *= size  # with a small energy, below the floor of u = 1/sqrt(q)
    problem = direction_problem(X - X.mean(axis=0), 1.0, penalty)
    split = block_problem(problem)
    point = problem.best_scale(np.eye(X.shape[1]))
    blocks = Blocks(split, Partition(np.arange(X.shape[1])))
    claim = BlockCertificate(blocks.ratios(point.q, []), point.q, point.value)
    u, w, gap = weights_at(point.q, claim.gap)
    squares = problem.X.array() ** 2
    least = np.sqrt(gap * (squares.T @ (w[:, None] * squares)) / len(X))
    least = np.maximum(
        least, np.abs(problem.X.array().T @ ((u - claim.ratios.u)[:, None] * problem.X.array())) / len(X)
    )
    every, box, t = slice(0, X.shape[1]), np.outer(split.c, split.c), claim.ratios.largest
    of_t = abs(t - 1.0) * np.sqrt(np.outer(split.diagonal, split.diagonal))
    radius = quick_radius(split, claim.q, claim.value - claim.bound(t), claim.ratios.u, t)
    spread = radius.between(every, every) * box
    assert np.all(spread - of_t >= least * (1 - 1e-12))


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
def test_what_the_solver_says_is_proved_is_so(tol):
    separated = 0
    for seed in range(40):
        X, _, penalty = instance(seed)
        found = dc.low_rank(X, penalty=penalty, tol=tol).components
        if found is None or found.proved is None:
            continue
        proved = found.proved
        exact = dc.find_components(
            X, dc.low_rank(X, penalty=penalty, tol=1e-9, max_iter=3000), penalty=penalty, rtol=1e-4
        )
        assert np.all((proved[:, None] == proved)[exact[:, None] == exact]), seed
        separated += proved.max()
    assert separated > 0 or tol > 1e-3


def test_a_strong_penalty_separates_every_feature():
    X = dc.datasets.make_planted(60, 12, noise=0.3, rng=0).X
    penalty = dc.Penalty.l1(60**-0.5)
    result = dc.low_rank(X, penalty=penalty, tol=1e-7)
    labels = dc.find_components(X, result, penalty=penalty)
    np.testing.assert_array_equal(labels, np.arange(12))
    off_diagonal = result.V - np.diag(np.diag(result.V))
    assert np.abs(off_diagonal).max() <= 1e-3 * np.abs(result.V).max()


def test_components_do_not_depend_on_units_and_follow_the_order_of_the_features():
    X, nu, penalty = instance(3)
    result = dc.low_rank(X, nu, penalty, tol=1e-7)
    labels = dc.find_components(X, result, nu, penalty)
    units = 10.0 ** np.arange(-2, X.shape[1] - 2)
    a, c = penalty.weights(X.shape[1])
    other = dc.Penalty(a * units, c * units)
    scaled = dc.find_components(X * units, dc.low_rank(X * units, nu, other, tol=1e-7), nu, other)
    np.testing.assert_array_equal(scaled, labels)
    order = np.arange(X.shape[1])[::-1]
    turned = dc.Penalty(a[order], c[order])
    mirrored = dc.find_components(X[:, order], dc.low_rank(X[:, order], nu, turned, tol=1e-7), nu, turned)
    assert [[i == j for i in mirrored] for j in mirrored] == [[i == j for i in labels[order]] for j in labels[order]]


def test_many_columns_are_taken_in_blocks(monkeypatch):
    X, nu, penalty = instance(4)
    result = dc.low_rank(X, nu, penalty, tol=1e-7)
    whole = dc.find_components(X, result, nu, penalty)
    monkeypatch.setattr("diffrac_cvx.certificates.screening.COLUMNS", 3)
    np.testing.assert_array_equal(dc.find_components(X, result, nu, penalty), whole)


def test_features_without_an_l1_weight_belong_to_no_component():
    X, nu, penalty = instance(5)
    assert dc.find_components(X, dc.low_rank(X, nu, penalty), nu, penalty)[0] == -1
    assert np.all(dc.find_components(X, dc.low_rank(X)) == -1)


def test_a_matrix_is_certified_and_separates_no_more_than_its_result():
    X, nu, penalty = instance(4)
    result = dc.low_rank(X, nu, penalty, tol=1e-7)
    of_matrix, of_result = (dc.find_components(X, V, nu, penalty) for V in (result.V, result))
    assert np.all((of_matrix[:, None] == of_matrix)[of_result[:, None] == of_result])
    assert len(set(of_matrix)) > 1


def test_a_result_without_directions_is_refused():
    X = instance(0)[0]
    with pytest.raises(dc.DataError, match="no V"):
        dc.find_components(X, dc.solve(dc.penalized_nu(X), "SCS"))


def test_nothing_is_proved_to_be_apart_where_the_powers_of_a_row_are_too_small_to_be_numbers():
    X, _, _ = instance(1)
    for faint, apart in ((1e-20, True), (1e-60, False), (1e-90, False)):
        weights = np.append(faint, np.ones(len(X) - 1))
        penalty = dc.Penalty(a=0.2, c=0.5)
        result = dc.low_rank(X, 1.0, penalty, sample_weight=weights)
        found = dc.find_components(X, result, 1.0, penalty, sample_weight=weights)
        assert (len(set(found)) > 1) is apart
        assert result.gap <= 1e-5, "the bracket holds all the same"
