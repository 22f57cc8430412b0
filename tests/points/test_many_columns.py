"""Columns beyond the first block of 512, and components with unpenalised columns, which belong to all of them."""

import numpy as np
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates import screening
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import eliminate
from diffrac_cvx.certificates.screening import gap_safe_weights, screen_components, screen_pairs
from diffrac_cvx.points.checks import as_data

MANY_COLUMNS = 600  # more columns than are multiplied at a time


def similar_columns(m, pairs, n=60, seed=0):
    """Return independent columns except for pairs (j, k) in which column k nearly equals column j."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    for j, k in pairs:
        X[:, k] = X[:, j] + 0.1 * rng.standard_normal(n)
    return as_data(X)


SIMILAR_PAIRS = [(3, 5), (10, 540), (20, 511), (21, 512), (530, 531), (550, 599), (5, 7)]


@pytest.mark.parametrize("single", [1, 10**9], ids=["single", "double"])
@pytest.mark.parametrize("nu", [1.0, 0.5])
def test_pairs_are_found_beyond_the_first_block_of_columns(monkeypatch, nu, single):
    assert MANY_COLUMNS > screening.COLUMN_BLOCK
    monkeypatch.setattr(screening, "SINGLE_PRECISION_SIZE", single)
    split = block_problem(direction_problem(similar_columns(MANY_COLUMNS, SIMILAR_PAIRS), nu, dc.Penalty(c=0.75)))
    at = eliminate(split, np.full(60, 2.0), 1.0)
    if at is None:  # with an offset t has to be above the weights
        at = eliminate(split, np.where(np.arange(60) < 30, 0.1, 0.3), 2.2)
    found = screen_pairs(at, np.arange(MANY_COLUMNS), max_pairs=10**6)
    G = at.gram(slice(0, MANY_COLUMNS), slice(0, MANY_COLUMNS)) / np.outer(split.c, split.c)
    expected = np.argwhere(np.triu(np.abs(G) > at.t, 1))
    assert [list(pair) for pair in sorted(zip(found.j, found.k, strict=True))] == expected.tolist()
    assert {j for j, _ in expected} >= {530, 550}
    exact = [G[j, k] * split.c[j] * split.c[k] for j, k in zip(*found[:2], strict=True)]
    np.testing.assert_allclose(found.G, exact, rtol=1e-5 if single == 1 else 1e-12)


# Components with unpenalised columns


def elimination_error(problem, weights, j, k):
    """Return |G_jk|, a Schur complement, and from the formulas a bound on its distance from that of the optimum."""
    X, n, free = problem.X.array(), len(problem.X.array()), np.flatnonzero(problem.c == 0.0)
    u, w = weights
    basis = block_problem(problem).inner.W  # coordinates of the free columns in which A is the identity on them
    F = X[:, free] @ basis
    SF, cross = (
        np.eye(F.shape[1]) - F.T @ (u[:, None] * F) / n,
        basis.T @ (problem.A[free] - X[:, free].T @ (u[:, None] * X) / n),
    )
    np.testing.assert_allclose(basis.T @ problem.A[np.ix_(free, free)] @ basis, np.eye(F.shape[1]), atol=1e-12)
    off, off_F, off_cross = (np.sqrt(np.einsum("ij,i,ik->jk", A**2, w, B**2) / n) for A, B in ((X, X), (F, F), (F, X)))
    values, error = np.linalg.eigvalsh(SF), off_F.sum()
    least = values[0] - error
    size, slack = np.linalg.norm(cross, axis=0), np.sqrt(np.sum(off_cross**2, axis=0))
    G = problem.A[j, k] - X[:, j] @ (u * X[:, k]) / n - cross[:, j] @ np.linalg.solve(SF, cross[:, k])
    moved = size[j] * size[k] * error / (values[0] * least)  # the inverse
    moved += ((size[j] + slack[j]) * (size[k] + slack[k]) - size[j] * size[k]) / least  # its sides
    return abs(G), off[j, k] + moved, least


def problem_with_free_columns(nu, weight=1.0):
    """Three penalised columns, an unpenalised one and, at nu < 1, the offset, none of unit scale."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((50, 4)) @ (np.eye(4) + 0.4 * rng.standard_normal((4, 4)))
    X[:, 3] *= 1.4
    c = weight * np.array([0.8, 0.9, 1.0, 0.0])
    return direction_problem(as_data(X), nu, dc.Penalty(a=np.array([0.2, 0.0, 0.1, 1.3]), c=c))


def first_gap(count, problem, q):
    """Return by bisection the smallest gap with at most so many components."""
    low, high = 1e-10, 1.0
    while high > low * (1.0 + 1e-12):
        gap = (low * high) ** 0.5
        labels = screen_components(problem, q, gap)
        low, high = (low, gap) if len(set(labels)) <= count else (gap, high)
    return high


@pytest.mark.parametrize("columns", [2, 512])
@pytest.mark.parametrize("nu", [1.0, 0.4])
@pytest.mark.parametrize("weight", [0.35, 0.7])
def test_features_are_joined_where_what_is_unknown_of_a_pair_just_reaches_its_box(monkeypatch, weight, nu, columns):
    monkeypatch.setattr(screening, "COLUMN_BLOCK", columns)
    problem = problem_with_free_columns(nu, weight)
    q = 1.0 / np.random.default_rng(5).uniform(0.8, 1.2, 50) ** 2
    box = np.outer(problem.c, problem.c)
    for count in (2, 1):
        weights, missing = gap_safe_weights(q, first_gap(count, problem, q)), []
        for j, k in ((0, 1), (0, 2), (1, 2)):
            G, off, least = elimination_error(problem, weights, j, k)
            missing.append(abs(G + off - box[j, k]) / box[j, k])
        assert least > 0.0
        assert min(missing) < 1e-8
    assert first_gap(1, problem, q) > first_gap(2, problem, q) * 1.01


def test_all_features_are_joined_where_the_unpenalized_columns_cannot_be_eliminated():
    problem = problem_with_free_columns(0.4)
    near, far = np.full(50, 1.0), np.full(50, 0.01)  # u = 1 and u = 10
    assert len(set(screen_components(problem, near, 0.0))) == 3
    np.testing.assert_array_equal(screen_components(problem, near, 10.0), 0)
    np.testing.assert_array_equal(screen_components(problem, far, 0.0), 0)
