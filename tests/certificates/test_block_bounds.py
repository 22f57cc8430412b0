"""Block certificate: bounds at any block diagonal V, and screening of the pairs."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse
from sparse_instances import (
    KINDS,
    instance,
    optimum,
    random_blocks,
    random_multipliers,
    random_point,
    restricted_point,
)

import diffrac_cvx as dc
from diffrac_cvx.certificates.block_bounds import Blocks, certify_blocks
from diffrac_cvx.certificates.direction_bounds import DualPoint, bound_of_blocks, certify
from diffrac_cvx.certificates.proof import eliminate
from diffrac_cvx.certificates.screening import screen_pairs
from diffrac_cvx.points.factors import dense
from diffrac_cvx.solvers.factored.components import BlockLagrangian, BlockPoint

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

SEEDS = range(24)  # each kind of problem at each nu
each_seed = pytest.mark.parametrize(  # each kind at two
    "seed",
    [pytest.param(seed, marks=[pytest.mark.slow] * (seed // 8 == seed % 3)) for seed in SEEDS],
    ids=lambda seed: f"{KINDS[seed % 8]}-{instance(seed).nu}",
)


@cache
def claims(seed):
    """Block diagonal points of a problem, at random and near its optimum: blocks, C, point, its value and its dual."""
    split, found = instance(seed).split, []
    U, m = split.problem.coordinates.transform_factor(dense(optimum(seed).G)), len(split.c)
    for k, noise in enumerate([None, None, 1.0, 0.1, 0.01, 0.0]):
        rng = np.random.default_rng([seed, k])
        blocks = Blocks(split, np.zeros(m, dtype=int)) if noise == 0.0 else random_blocks(rng, split)
        point = random_point(rng, blocks) if noise is None else restricted_point(blocks, U, noise, rng)
        C = random_multipliers(rng, blocks)
        point = BlockPoint(*point)
        scaled, value, q = BlockLagrangian(blocks, point, C).rescale(point)
        found.append((blocks, C, scaled, value, blocks.best_dual(q, C)))
    return found


def full_pairs(split, at):
    """G = M - t A + K'K and its box, all m x m, from their definition, and how far rounding may move this G.

    The solution x of S x = b is that of a matrix within a few roundings of S, entry by entry: b'x is off by x'|S|x.
    """
    X, F, n, t = split.X.array(), split.F, len(split.X.array()), at.t
    u = n * at.gram_weights + t
    G = X.T @ (u[:, None] * X) / n - t * (X.T @ X / n + np.diag(split.a**2))
    off = np.full(G.shape, 1e-12 * float(np.abs(u).max()))
    if F.shape[1]:
        S = t * np.eye(F.shape[1]) - F.T @ (u[:, None] * F) / n
        cross = F.T @ (u[:, None] * X) / n - t * F.T @ X / n
        solution = np.linalg.solve(S, cross)
        G += cross.T @ solution
        off += 1e-14 * np.abs(solution).T @ (np.abs(S) + t * np.eye(len(S))) @ np.abs(solution)
    return G, (at.t - at.entry_error) * np.outer(split.c, split.c), off


# Bounds


@each_seed
def test_no_block_diagonal_point_proves_more_than_the_optimum(seed):
    for k, (blocks, C, scaled, value, dual) in enumerate(claims(seed)):
        problem, found = blocks.problem.problem, certify_blocks(blocks, dual, 3).lower
        G = problem.rescale(blocks.factor(*scaled))
        assert G.value == pytest.approx(value, abs=1e-10)
        read = bound_of_blocks(problem, G, DualPoint(C=None if k == 3 else blocks.multiplier(C)))
        assert max(read, found or 0.0) <= optimum(seed).upper + 1e-12
        assert optimum(seed).lower <= value + 1e-12


def test_the_bound_is_tight_at_a_solution_by_components_and_that_of_its_matrix_holds_stored_in_any_way():
    tight = 0
    for seed in SEEDS[::3]:  # each kind of problem
        one = instance(seed)
        result = one.solve(tol=1e-6, max_iter=500)
        judged = one.certify(result)
        assert judged.upper == pytest.approx(result.upper, abs=1e-12)
        assert judged.lower <= optimum(seed).upper + 1e-12
        of_matrix, of_sparse = (one.certify(V) for V in (result.V, scipy.sparse.csr_array(result.V)))
        assert of_matrix == pytest.approx(of_sparse, abs=1e-12)
        assert of_matrix.upper == pytest.approx(result.upper, abs=1e-9)
        assert of_matrix.lower <= optimum(seed).upper + 1e-12
        if result.components is not None and result.status is dc.Status.OPTIMAL:
            tight += 1
            assert judged.lower > 0.0
            assert judged.gap <= 2e-6
    assert tight > 3


# Pairs


@each_seed
def test_the_pairs_found_are_exactly_those_beyond_their_box(seed):
    for blocks, *_, (t, u, _) in claims(seed):
        labels, split = blocks.labels, blocks.problem
        at = eliminate(split, u, t * (1.0 + 1e-10))
        if at is not None:
            found = screen_pairs(at, labels)
            G, box, off = full_pairs(split, at)
            mask, apart = np.zeros(G.shape, dtype=bool), np.triu(labels[:, None] != labels, 1)
            mask[found.j, found.k] = True
            assert not np.any(mask & ~(apart & (np.abs(G) > box - off)))
            assert np.all(mask[apart & (np.abs(G) > box + off)])
            off = off + 1e-9 * np.abs(G)
            assert np.all(np.abs(found.G - G[found.j, found.k]) <= off[found.j, found.k])
            np.testing.assert_allclose(found.bound, box[found.j, found.k], rtol=1e-9)
            assert np.all(found.excess != 0.0)


def test_a_point_that_explains_nothing_proves_nothing():
    problem = instance(0).problem
    assert certify(problem, problem.rescale(scipy.sparse.csc_array((5, 1)))) == (0.0, 1.0)


def test_a_sparse_matrix_that_is_too_large_as_one_block_is_refused():
    with pytest.raises(dc.ResourceError, match="V as one block"):
        dc.certify_v(instance(0).X, scipy.sparse.csr_array((10**7, 10**7)), lam=0.1)
