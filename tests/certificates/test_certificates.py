"""Any matrix gives valid bounds on the optimum; an optimal one gives tight bounds."""

import tracemalloc
from functools import cache

import numpy as np
import oracles
import pytest
import scipy.sparse
from forms import quick_or_slow
from instances import (
    SPARSE_KINDS,
    centered_normal,
    optimum,
    random_blocks,
    random_multipliers,
    random_point,
    sparse_instance,
)

import diffrac_cvx as dc
from diffrac_cvx.certificates.direction_bounds import Blocks, DualPoint, bound_of_blocks, certify, certify_blocks
from diffrac_cvx.certificates.proof import TRIVIAL
from diffrac_cvx.points.factors import dense
from diffrac_cvx.solvers.factored.components import BlockLagrangian, block_point

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

# The multipliers are read off a solution: where its value is right to 1e-8, they are right to about 1e-4.
CLOSED = 1e-4


TALL, HALF = centered_normal(12, 3, 0), centered_normal(5, 3, 1)
DATA = {  # and the units in which the columns are passed; the optimum does not change when a and c follow
    "tall": (TALL, np.ones(3)),
    "wide": (centered_normal(6, 9, 2), np.ones(9)),
    "degenerate": (np.column_stack([TALL, TALL[:, 0], np.zeros(12), TALL[:, 0] - TALL[:, 1]]), np.ones(6)),
    "zero row": (np.vstack([HALF, -HALF, np.zeros((1, 3))]), np.ones(3)),
    "correlated": (TALL + np.outer(np.repeat([1.0, -1.0], 6), np.ones(3)), np.ones(3)),
    "bad units": (TALL, np.array([1e-8, 1.0, 1e8])),
}
WEIGHTS = {
    "none": lambda d: (np.zeros(d), np.zeros(d)),
    "ridge": lambda d: (np.linspace(0.0, 0.5, d), np.zeros(d)),
    "l1": lambda d: (np.zeros(d), np.linspace(0.1, 0.4, d)),
    "both": lambda d: (np.linspace(0.0, 0.5, d), np.linspace(0.4, 0.0, d)),
}

TALLS = [("tall", weights, nu) for weights in WEIGHTS for nu in (0.0, 0.25, 1.0)]
OTHERS = [(data, weights, nu) for data in [*DATA][1:] for weights in WEIGHTS for nu in (0.25, 1.0)]
QUICK = TALLS + [case for i, case in enumerate(OTHERS) if i % 3 == 0]


def each_case(some=WEIGHTS, but=()):
    """Run a test with all cases of some weights."""
    cases = [case for case in TALLS + OTHERS if case[1] in some and case[:2] not in but]
    return quick_or_slow(("data", "weights", "nu"), cases, QUICK)


each_weights = pytest.mark.parametrize("weights", WEIGHTS)


def posed(data, weights):
    """Return the data and the penalty in the units in which they are passed."""
    X, units = DATA[data]
    a, c = WEIGHTS[weights](X.shape[1])
    return X * units, dc.Penalty(a * units, c * units)


@cache
def directions_optimum(data, weights, nu, crossed=1.0):
    """Return the optimum of Eq. (15) and its V, in the units of the columns."""
    X, units = DATA[data]
    value, V = oracles.solve_v(X, nu, *WEIGHTS[weights](X.shape[1]), crossed)
    units = units if nu == 1.0 else np.append(units, 1.0)
    return value, V / np.outer(units, units)


@cache
def labels_optimum(data, weights, nu):
    X, _ = DATA[data]
    return oracles.solve_y(X, nu, WEIGHTS[weights](X.shape[1])[0])


def garbage(size, seed=0):
    rng = np.random.default_rng(seed)
    M, u = rng.standard_normal((size, size)), rng.standard_normal(size)
    yield from (np.zeros((size, size)), np.eye(size), M @ M.T, M + M.T, M, -np.eye(size), np.outer(u, u))
    yield from (1e-12 * M @ M.T, 1e12 * M @ M.T, np.outer(M[0], M[1]), np.diag(np.arange(size) % 2.0))


def assert_holds(bracket, optimum):
    assert 0.0 <= bracket.lower <= bracket.upper
    assert bracket.lower - oracles.TOL <= optimum <= bracket.upper + oracles.TOL


@each_case()
def test_any_matrix_of_directions_proves_a_bracket_on_the_optimum(data, weights, nu):
    X, penalty = posed(data, weights)
    optimum, V = directions_optimum(data, weights, nu)
    units = np.append(DATA[data][1], 1.0)[: len(V)]
    near = V * (1 + 0.1 * np.random.default_rng(1).standard_normal(V.shape))
    _, harder = directions_optimum(data, weights, nu, crossed=2.0)  # would prove too much with a C outside its box
    for candidate in (V, near, harder, *(M / np.outer(units, units) for M in garbage(len(V)))):
        bracket = dc.certify_v(X, candidate, nu, penalty)
        assert_holds(bracket, optimum)
        assert bracket.upper <= 1.0
    # The upper bound is the objective at the best multiple of the directions.
    Z, a, c = oracles.augmented(DATA[data][0], nu, *WEIGHTS[weights](X.shape[1]))
    W = np.cov(np.random.default_rng(2).standard_normal((len(V), 3)))
    best = 1.0 - oracles.mean_sqrt(W, Z) ** 2 / (np.sum(Z.T @ Z * W) / len(Z) + oracles.gamma(W, a, c))
    assert dc.certify_v(X, W / np.outer(units, units), nu, penalty).upper == pytest.approx(best, abs=1e-9)


# Where X'X is singular and all c > 0, V says too little of the multiplier of the l1 part: there solvers bring it along.
OPEN = [("wide", "l1"), ("degenerate", "l1")]


@each_case(but=OPEN)
def test_the_optimal_directions_prove_their_optimality(data, weights, nu):
    X, penalty = posed(data, weights)
    assert dc.certify_v(X, directions_optimum(data, weights, nu)[1], nu, penalty).gap <= CLOSED


def label_matrices(n):
    rng = np.random.default_rng(n)
    yield from garbage(n)
    yield from (np.ones((n, n)), np.ones((n, 1)), np.zeros((n, 2)), rng.standard_normal((n, 3)))
    yield rng.choice([-1.0, 1.0], (n, 1))


def hold_in_labels(X, optimum, Y, **given):
    for candidate in (Y, Y + 0.1 * centered_normal(*Y.shape, 1), *label_matrices(len(Y))):
        assert_holds(dc.certify_y(X, candidate, **given), optimum)
    assert dc.certify_y(X, Y, **given).gap <= CLOSED


@each_case(some=("none", "ridge"))
def test_any_matrix_of_labels_proves_a_bracket_on_the_optimum(data, weights, nu):
    X, penalty = posed(data, weights)
    hold_in_labels(X, *labels_optimum(data, weights, nu), nu=nu, penalty=penalty)


@pytest.mark.parametrize("alpha", [0.0, *(pytest.param(alpha, marks=pytest.mark.slow) for alpha in (0.1, 0.5)), 1.0])
@pytest.mark.parametrize("data", DATA)
def test_any_matrix_of_labels_proves_a_bracket_on_the_optimum_at_fixed_imbalance(data, alpha):
    hold_in_labels(posed(data, "none")[0], *oracles.solve_alpha(DATA[data][0], alpha), alpha=alpha)


# Labels


@pytest.mark.parametrize("nu", [0.0, 0.4, 1.0])
@each_weights
@pytest.mark.parametrize("data", ["tall", "wide", "bad units"])
def test_the_objective_of_labels_is_that_of_their_best_direction(data, weights, nu):
    (X, units), (passed, penalty) = DATA[data], posed(data, weights)
    a, c = WEIGHTS[weights](X.shape[1])
    y = np.random.default_rng(0).choice([-1.0, 1.0], len(X))
    certificate = dc.certify_labels(passed, y, 0.0, nu=nu, penalty=penalty)
    (_, d), single = X.shape, [[j] for j in range(X.shape[1])]
    least, _ = oracles.best_pair_penalty_fit(X, y, nu, np.square(a), single, oracles.column(c, d) ** 2)
    assert certificate.objective == pytest.approx(least, abs=oracles.TOL)
    v = certificate.v * units
    attained = np.mean((y - y.mean() - X @ v) ** 2) + nu * y.mean() ** 2 + oracles.gamma(np.outer(v, v), a, c)
    assert certificate.objective == pytest.approx(attained, abs=1e-9)


# What is not usable: tests/project/test_bad_input.py and test_error_messages.py


@pytest.mark.parametrize("nu", [0.5, 1.0])
def test_a_result_of_one_block_is_certified_with_the_multipliers_that_proved_its_bound(nu):
    X, penalty = np.random.default_rng(8).standard_normal((200, 12)), dc.Penalty.l1(1e-3)
    result = dc.low_rank(X, nu, penalty, tol=1e-6)
    judged = dc.certify_v(X, result, nu, penalty)
    assert judged.upper == pytest.approx(result.upper, abs=1e-12)
    assert judged.gap <= 1.01e-6
    assert judged.lower >= dc.certify_v(X, result.V, nu, penalty).lower


SIDES = np.where(np.arange(12_000) % 3 == 0, 1.0, -1.0)
PROOFS = {
    "certify_v": lambda X, **penalty: dc.certify_v(X, np.eye(3), 0.5, **penalty),
    "certify_y": lambda X, ridge=None, **_: dc.certify_y(X, SIDES[:, None], ridge=ridge),
    "certify_y at alpha": lambda X, ridge=None, **_: dc.certify_y(X, SIDES[:, None], alpha=0.2, ridge=ridge),
    "certify_labels": lambda X, **penalty: dc.certify_labels(X, SIDES, 0.0, nu=0.5, **penalty),
    "certify_clusters": lambda X, **penalty: dc.certify_clusters(X, np.arange(len(X)) % 4, 0.0, **penalty),
    "low_rank": lambda X, **penalty: dc.low_rank(X, max_iter=3, **penalty).F,
    "fista": lambda X, **penalty: dc.fista(X, 0.5, max_iter=3, **penalty),
}


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning", "error::RuntimeWarning")
@pytest.mark.parametrize("prove", PROOFS)
@pytest.mark.parametrize("varied", [0, 1], ids=["no column varies", "one column varies"])
def test_no_proof_takes_more_memory_than_some_copies_of_the_data_also_where_they_do_not_vary(varied, prove):
    X = np.column_stack([SIDES * varied, np.full((len(SIDES), 2), 2.5)])
    for penalty in ({}, {"ridge": 0.1}, {"lam": 0.1}):
        tracemalloc.start()
        PROOFS[prove](X, **penalty)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 80 * X.nbytes


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize("penalty", [{}, {"ridge": 1e9}, {"lam": 0.5}], ids=["none", "ridge", "l1"])
@pytest.mark.parametrize("nu", [1.0, 1.0 - 2.0**-53, 0.3])
@pytest.mark.parametrize("vary", [False, True])
def test_no_upper_bound_exceeds_the_cost_of_no_direction(vary, nu, penalty):
    X = centered_normal(30, 2, 0) if vary else np.full((30, 2), 2.5)
    y, told = SIDES[:30], []

    def note(progress, *_):
        told.append(progress.upper)

    results = [solve(X, nu, max_iter=9, callback=note, **penalty) for solve in (dc.low_rank, dc.fista)]
    told += [
        found for result in results for found in (result.value, result.upper, *(line[3] for line in result.history))
    ]
    told += [dc.certify_v(X, V, nu, **penalty).upper for V in (np.eye(2), np.zeros((2, 2)))]
    told += [dc.certify_y(X, y[:, None], nu, ridge=penalty.get("ridge")).upper]
    told += [dc.certify_labels(X, labels, 0.0, nu=nu, **penalty).objective for labels in (y, np.ones(30))]
    told += [dc.certify_clusters(X, np.arange(30) % K, 0.0, nu=nu, **penalty).objective for K in (2, 3, 7)]
    told += [dc.optimal_labels(X, nu, time_limit=0.1, callback=note, **penalty).upper]
    assert max(told) <= 1.0


# V in blocks


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
        scaled, value, q = BlockLagrangian(blocks, point, C).rescale(point)
        found.append((blocks, C, scaled, value, blocks.best_dual(q, C)))
    return found


@each_seed
def test_no_block_diagonal_point_proves_more_than_the_optimum(seed):
    for k, (blocks, C, scaled, value, dual) in enumerate(claims(seed)):
        problem, found = blocks.problem.problem, certify_blocks(blocks, dual, 3).bound or TRIVIAL
        G = problem.rescale(blocks.factor(*scaled))
        assert G.value == pytest.approx(value, abs=1e-10)
        read = bound_of_blocks(problem, G, DualPoint(C=None if k == 3 else blocks.multiplier(C)))
        assert max(read.lower, found.lower) <= optimum(seed).upper + 1e-12
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
    assert certify(problem, problem.rescale(scipy.sparse.csc_array((5, 1)))) == TRIVIAL


def test_a_sparse_matrix_that_is_too_large_as_one_block_is_refused():
    with pytest.raises(dc.ResourceError, match="V as one block"):
        dc.certify_v(sparse_instance(0).X, scipy.sparse.csr_array((10**7, 10**7)), lam=0.1)
