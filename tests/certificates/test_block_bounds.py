"""Block certificate: bounds at any block diagonal V, and screening of the pairs."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse
from instances import SPARSE_KINDS, optimum, random_blocks, random_multipliers, random_point, sparse_instance

import diffrac_cvx as dc
from diffrac_cvx.certificates.direction_bounds import Blocks, DualPoint, bound_of_blocks, certify, certify_blocks
from diffrac_cvx.points.factors import dense
from diffrac_cvx.solvers.factored.components import block_point
from diffrac_cvx.solvers.factored.parametrization import BlockParametrization

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

SEEDS = range(24)  # each kind of problem at each nu
each_seed = pytest.mark.parametrize(  # each kind at two
    "seed",
    [pytest.param(seed, marks=[pytest.mark.slow] * (seed // 8 == seed % 3)) for seed in SEEDS],
    ids=lambda seed: f"{SPARSE_KINDS[seed % 8]}-{sparse_instance(seed).nu}",
)


@cache
def claims(seed):
    """Block diagonal points of a problem, at random and near its optimum: blocks, C, point, its value and its dual."""
    split, found = sparse_instance(seed).split, []
    U, m = split.problem.coordinates.transform_factor(dense(optimum(seed).G)), len(split.c)
    for k, noise in enumerate([None, None, 1.0, 0.1, 0.01, 0.0]):
        rng = np.random.default_rng([seed, k])
        blocks = Blocks(split, np.zeros(m, dtype=int)) if noise == 0.0 else random_blocks(rng, split)
        point = random_point(rng, blocks) if noise is None else block_point(blocks, U)
        moved = np.sqrt(np.mean(U**2)) * rng.standard_normal(point.flat().shape)
        point = point.like(point.flat() + (noise or 0.0) * moved)
        C = random_multipliers(rng, blocks)
        scaled, value, q = BlockParametrization(blocks, point).rescale(point)
        found.append((blocks, C, scaled, value, blocks.best_dual(q, C)))
    return found


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
        one = sparse_instance(seed)
        result = dc.low_rank(*one, tol=1e-6, max_iter=500)
        judged = dc.certify_v(one.X, result, one.nu, one.penalty)
        assert judged.upper == pytest.approx(result.upper, abs=1e-12)
        assert judged.lower <= optimum(seed).upper + 1e-12
        of_matrix, of_sparse = (
            dc.certify_v(one.X, V, one.nu, one.penalty) for V in (result.V, scipy.sparse.csr_array(result.V))
        )
        assert of_matrix == pytest.approx(of_sparse, abs=1e-12)
        assert of_matrix.upper == pytest.approx(result.upper, abs=1e-9)
        assert of_matrix.lower <= optimum(seed).upper + 1e-12
        if result.components is not None and result.status is dc.Status.OPTIMAL:
            tight += 1
            assert judged.lower > 0.0
            assert judged.gap <= 2e-6
    assert tight > 3


def test_a_point_that_explains_nothing_proves_nothing():
    problem = sparse_instance(0).split.problem
    assert certify(problem, problem.rescale(scipy.sparse.csc_array((5, 1)))) == (0.0, 1.0)


def test_a_sparse_matrix_that_is_too_large_as_one_block_is_refused():
    with pytest.raises(dc.ResourceError, match="V as one block"):
        dc.certify_v(sparse_instance(0).X, scipy.sparse.csr_array((10**7, 10**7)), lam=0.1)
