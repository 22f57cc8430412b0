"""The certificate by blocks: what it proves at any block diagonal V, and what it finds among the pairs."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
from posed import direction_problem
from sparse_instances import (
    KINDS,
    Instance,
    instance,
    optimum,
    random_multipliers,
    random_partition,
    random_point,
    restricted_point,
)

import diffrac_cvx as dc
from diffrac_cvx.certificates import block_bounds, screening
from diffrac_cvx.certificates.block_bounds import (
    BlockCertificate,
    Blocks,
    bracket_blocks,
    larger_t,
    prove,
    whiten,
)
from diffrac_cvx.certificates.block_problem import Partition, factor_by_blocks
from diffrac_cvx.certificates.block_proof import eliminate, single_ratios
from diffrac_cvx.certificates.screening import largest_safe_t, quick_radius, scan
from diffrac_cvx.certificates.search import blended_ratio
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.factors import dense, is_sparse
from diffrac_cvx.solvers.factored.unknowns import BlockFactors, Point

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

SEEDS = range(24)  # each kind of problem at each nu
each_seed = pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{KINDS[seed % 8]}-{instance(seed).nu}")


def blocks_and_claim(split, partition, point, C):
    """What `prove` needs, at a point at its best scale."""
    blocks = Blocks(split, partition)
    scaled, claim = BlockFactors(blocks, Point(*point)).claim(Point(*point), C)
    return blocks, claim, scaled


def points(seed):
    """Block diagonal points of one problem: at random, and near its optimum; their partitions and multipliers."""
    split = instance(seed).split
    U = split.problem.from_user_factor(dense(optimum(seed).G))
    m = len(split.c)
    for k, noise in enumerate([None, None, 1.0, 0.3, 0.1, 0.01, 0.001, 0.0]):
        rng = np.random.default_rng([seed, k])
        partition = Partition(np.zeros(m, dtype=int)) if k == 7 else random_partition(rng, m)
        point = (
            random_point(rng, split, partition) if noise is None else restricted_point(split, partition, U, noise, rng)
        )
        yield split, partition, point, random_multipliers(rng, split, partition)


def full_pairs(split, at):
    """G = M - t A + K'K and its box, all m x m, from their definition."""
    X, F, n, t = split.X.array(), split.F, len(split.X.array()), at.t
    u = n * at.gram_weights + t
    A = X.T @ X / n + np.diag(split.a**2)
    G = X.T @ (u[:, None] * X) / n - t * A
    if F.shape[1]:
        S = t * np.eye(F.shape[1]) - F.T @ (u[:, None] * F) / n
        cross = F.T @ (u[:, None] * X) / n - t * F.T @ X / n
        G += cross.T @ np.linalg.solve(S, cross)
    return G, at.side * np.outer(split.c, split.c)


# Bounds


@each_seed
def test_no_block_diagonal_point_proves_more_than_the_optimum(seed):
    upper = optimum(seed).upper
    for k, (split, partition, point, C) in enumerate(points(seed)):
        blocks, claim, scaled = blocks_and_claim(split, partition, point, C)
        found = prove(blocks, claim, 3).lower
        lowers = [0.0 if found is None else found]
        G = split.problem.best_scale(split.factor(partition, *scaled))
        assert G.value == pytest.approx(claim.value, abs=1e-10)
        lowers.append(bracket_blocks(split.problem, G, split.multiplier(partition, C) if k % 3 else None).lower)
        assert max(lowers) <= upper + 1e-12
        assert optimum(seed).lower <= claim.value + 1e-12


@each_seed
def test_the_bound_is_that_of_one_multiplier_inside_its_box_for_all_coordinates(seed):
    """S = t (A + C + Diag(c)^2) - M is made in full, from t and the rule for C between the groups."""
    for split, partition, point, C in points(seed):
        blocks, claim, _ = blocks_and_claim(split, partition, point, C)
        lower = prove(blocks, claim, 3).lower
        if lower is None:
            continue
        u, t = claim.ratios.u, (1.0 - lower) / claim.ratios.inverse_mean
        at = eliminate(split, u, t)
        G, box = full_pairs(split, at)
        multiplier = np.clip(G, -box, box) / t
        np.fill_diagonal(multiplier, 0.0)
        for block, matrix in zip(partition.blocks, claim.ratios.C, strict=True):
            multiplier[np.ix_(block, block)] = matrix
        assert np.all(np.abs(multiplier) <= np.outer(split.c, split.c) * (1 + 1e-12))
        problem, chosen = split.problem, np.ix_(split.penalised, split.penalised)
        S = t * (problem.A + np.diag(problem.c**2)) - problem.X.array().T @ (u[:, None] * problem.X.array()) / len(u)
        S[chosen] += t * multiplier
        assert np.linalg.eigvalsh(S)[0] >= -1e-11 * t * max(1.0, u.max())


def test_a_partition_finer_than_the_true_one_proves_a_bound_with_the_pairs_left_over():
    proved = 0
    for seed in SEEDS:
        split, upper = instance(seed).split, optimum(seed).upper
        U = split.problem.from_user_factor(dense(optimum(seed).G))
        rng, finest = np.random.default_rng(seed), Partition(np.arange(len(split.c)))
        blocks, claim, _ = blocks_and_claim(split, finest, restricted_point(split, finest, U, 0.0, rng), [])
        found = prove(blocks, claim, 6)
        assert found.lower is None or found.lower <= upper + 1e-12
        proved += found.lower is not None and found.lower > 0.0 and len(found.pairs.beyond().j) > 0
    assert proved > 0


def test_the_bound_is_tight_at_a_solution_by_components():
    solved = 0
    for seed in SEEDS:
        result = instance(seed).solve(tol=1e-6, max_iter=500)
        if result.components is None or result.status is not dc.Status.OPTIMAL:
            continue
        solved += 1
        judged = instance(seed).certify(result)
        assert judged.upper == pytest.approx(result.upper, abs=1e-12)
        assert judged.lower > 0.0
        assert judged.gap <= 2e-6
    assert solved > 10


def prove_all(seed):
    """The bounds and the pairs at the points of a problem."""
    found = []
    for split, partition, point, C in points(seed):
        blocks, claim, _ = blocks_and_claim(split, partition, point, C)
        found.append(prove(blocks, claim, 3))
    return found


def assert_same(one, other, rtol):
    for first, second in zip(one, other, strict=True):
        assert set(zip(*first.pairs[:2], strict=True)) == set(zip(*second.pairs[:2], strict=True))
        assert (first.lower is None) == (second.lower is None)
        if first.lower is not None:
            assert second.lower == pytest.approx(first.lower, abs=rtol)


@pytest.mark.parametrize("seed", range(8), ids=lambda seed: KINDS[seed])
@pytest.mark.parametrize(
    ("name", "value", "rtol"),
    [
        ("SINGLE_FROM", 1, 1e-12),
        ("COLUMNS", 3, 1e-12),
        ("GATHER", 0, 1e-12),
        ("GATHER", 10**9, 1e-12),
        ("DENSE", 1, 1e-3),
    ],
    ids=["single precision", "few columns", "each alone", "all together", "Lanczos"],
)
def test_how_the_pairs_are_computed_does_not_change_what_is_proved(monkeypatch, seed, name, value, rtol):
    """Lanczos steps stop early: the next t, and the bound there, may differ a little, and both hold."""
    usual = prove_all(seed)
    if name == "GATHER":
        monkeypatch.setattr(screening, "SINGLE_FROM", 1)
    monkeypatch.setattr(block_bounds if name == "DENSE" else screening, name, value)
    assert_same(usual, prove_all(seed), rtol)


# Pairs


@each_seed
@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
def test_the_pairs_kept_are_exactly_those_beyond_the_share_of_their_box(monkeypatch, seed, share, single):
    monkeypatch.setattr(screening, "SINGLE_FROM", 1 if single else 10**9)
    for split, partition, point, C in points(seed):
        _, claim, _ = blocks_and_claim(split, partition, point, C)
        at = eliminate(split, claim.ratios.u, claim.least_t)
        if at is None:
            continue
        found = scan(at, partition.labels, share).pairs
        G, box = full_pairs(split, at)
        expected = np.triu((np.abs(G) > share * box) & (partition.labels[:, None] != partition.labels), 1)
        kept = np.zeros_like(expected)
        kept[found.j, found.k] = True
        np.testing.assert_array_equal(kept, expected)
        size = np.abs(claim.ratios.u).max()
        np.testing.assert_allclose(found.G, G[found.j, found.k], rtol=1e-9, atol=1e-12 * size)
        np.testing.assert_allclose(found.side, box[found.j, found.k], rtol=1e-12)
        np.testing.assert_array_equal(found.excess != 0.0, np.abs(found.G) > found.side)


@each_seed
def test_up_to_a_safe_t_no_pair_beyond_its_box_is_missing(seed):
    for split, partition, point, C in points(seed):
        _, claim, _ = blocks_and_claim(split, partition, point, C)
        t = claim.least_t
        safe, at = largest_safe_t(split, t), eliminate(split, claim.ratios.u, t)
        assert safe >= t
        if at is None:
            continue
        kept = scan(at, partition.labels, screening.NEAR).pairs
        for larger in np.linspace(t, safe, 4):
            later = scan(eliminate(split, claim.ratios.u, larger), partition.labels, 1.0).pairs
            assert set(zip(later.j, later.k, strict=True)) <= set(zip(kept.j, kept.k, strict=True))


def test_where_the_bound_fails_it_holds_at_a_t_a_few_steps_larger():
    """The least eigenvalue is a concave function of t: without a stretch Newton's steps would never reach its root."""
    failed = 0
    for seed in range(0, 24, 2):
        for split, partition, point, C in points(seed):
            blocks, claim, _ = blocks_and_claim(split, partition, point, C)
            t = claim.least_t
            found = prove(blocks, claim, 0)
            assert larger_t(blocks, claim.ratios, t, []) == t
            if found.failures:
                failed += 1
                once, twice = (larger_t(blocks, claim.ratios, t, found.failures, stretch) for stretch in (1.0, 2.0))
                assert once > t
                assert twice == pytest.approx(2 * once - t, rel=1e-12)
                assert prove(blocks, claim, 3).lower is not None
    assert failed > 15


def solved_in_part(lam, max_iter):
    """A claim from the solver's point after a few steps, of a problem with blocks; the optimal G off the diagonal."""
    inst = Instance(dc.datasets.make_planted(60, 30, noise=0.3, rng=0).X, 1.0, dc.Penalty.l1(lam))
    result, best = inst.solve(tol=1e-12, max_iter=max_iter), inst.solve(tol=1e-10)
    split = inst.split
    q, q_best = (split.problem.best_scale(split.problem.from_user_factor(R.G)).q for R in (result, best))
    blocks = Blocks(split, split.partition_of(result.G))
    ratios = blocks.ratios(q, [np.zeros((len(block), len(block))) for block in blocks.partition.blocks])
    G = split.X.array().T @ ((1.0 / np.sqrt(q_best) - 1.0)[:, None] * split.X.array()) / len(split.X.array())
    np.fill_diagonal(G, 0.0)
    return split, blocks, BlockCertificate(ratios, q, result.value), G


@pytest.mark.parametrize("max_iter", [1, 3, 8, 15, 20, 30])
@pytest.mark.parametrize("lam", [0.03, 0.1])
def test_no_optimal_pair_is_further_from_the_pairs_of_a_point_than_its_gap_says(lam, max_iter):
    split, blocks, claim, G_best = solved_in_part(lam, max_iter)
    lower = prove(blocks, claim, 3).lower
    t, whole = (1.0 - lower) / claim.ratios.inverse_mean, slice(0, 30)
    G = split.X.array().T @ ((claim.ratios.u - t)[:, None] * split.X.array()) / len(split.X.array())
    np.fill_diagonal(G, 0.0)
    spread = quick_radius(split, claim.q, claim.value - claim.bound(t), claim.ratios.u, t)
    off = spread.between(whole, whole)
    assert np.all(np.abs(G - G_best) <= off * np.outer(split.c, split.c) + 1e-6)
    assert off.max() <= spread.largest * (1 + 1e-12)
    if max_iter == 20:
        assert np.abs(G - G_best).max() > abs(claim.least_t - 1.0)  # the distance is more than that of t alone


@pytest.mark.parametrize("columns", [7, 512])
@pytest.mark.parametrize("single", [1, 10**9], ids=["single", "double"])
@pytest.mark.parametrize("max_iter", [8, 20, 30, 50, 100])
def test_the_components_proved_are_those_of_all_pairs_that_may_reach_their_box(monkeypatch, max_iter, single, columns):
    """Or a few pairs more, in single precision; or none, where too many pairs of some columns may."""
    split, blocks, claim, G_best = solved_in_part(0.03, max_iter)
    monkeypatch.setattr(screening, "SINGLE_FROM", single)
    monkeypatch.setattr(screening, "COLUMNS", columns)
    t = claim.least_t
    spread, at = (
        quick_radius(split, claim.q, claim.value - claim.bound(t), claim.ratios.u, t),
        eliminate(split, claim.ratios.u, t),
    )
    proved = scan(at, blocks.partition.labels, 0.7, spread).proved
    box, whole = np.outer(split.c, split.c), slice(0, 30)
    G = np.abs(full_pairs(split, at)[0]) / box
    np.fill_diagonal(G, 0.0)
    graph = G + spread.between(whole, whole) >= 1.0
    expected = scipy.sparse.csgraph.connected_components(graph)[1]
    if proved is None:
        assert np.sum(graph) > 30
        return
    together = proved[:, None] == proved
    np.testing.assert_array_equal(together, expected[:, None] == expected)
    if claim.gap < 1e-4:
        assert np.all(together[np.abs(G_best) >= box * (1 - 1e-6)])
        assert proved.max() > 0


def test_with_unpenalised_coordinates_nothing_is_said_of_the_distance_to_the_optimum():
    split, partition, point, C = next(points(8))
    _, claim, _ = blocks_and_claim(split, partition, point, C)
    assert quick_radius(split, claim.q, claim.value - claim.bound(claim.least_t), claim.ratios.u, claim.least_t) is None


# Ratios


@each_seed
def test_ratios_are_the_generalised_eigenvalues_of_each_coordinate_and_each_block(seed):
    for split, partition, point, C in points(seed):
        _, claim, _ = blocks_and_claim(split, partition, point, C)
        u, n = claim.ratios.u, len(split.X.array())

        def largest(block, C, u=u, n=n, split=split):
            data = split.data_of(block)
            right = split.right_of(block, data)
            right[: len(block), : len(block)] += C
            return scipy.linalg.eigh(data.moment(u), right, eigvals_only=True)[-1]

        alone = [largest(np.array([j]), np.zeros((1, 1))) for j in partition.singles]
        np.testing.assert_allclose(single_ratios(split, u, partition.singles), alone, rtol=1e-8, atol=1e-12)
        together = [largest(*pair) for pair in zip(partition.blocks, claim.ratios.C, strict=True)]
        np.testing.assert_allclose(claim.ratios.block, together, rtol=1e-8)
        assert claim.ratios.largest == max([*claim.ratios.single, *claim.ratios.block])


def test_the_right_side_of_a_block_is_the_restriction_of_the_problem():
    for seed in SEEDS:
        split = instance(seed).split
        problem, m = split.problem, len(split.c)
        block = np.arange(0, m, 2)
        chosen = np.concatenate([split.penalised[block], split.free])
        full = (problem.A + np.diag(problem.c**2))[np.ix_(chosen, chosen)]
        L = scipy.linalg.block_diag(np.eye(len(block)), split.basis)
        np.testing.assert_allclose(split.right_of(block, split.data_of(block)), L.T @ full @ L, atol=1e-10)


def test_a_multiplier_that_makes_the_right_side_singular_is_shrunk():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    M, C = X.T @ X / 30, -0.6 * (np.ones((3, 3)) - np.eye(3))  # I + C has the eigenvalue -0.2
    t, share, least, _ = blended_ratio(M, C)
    assert 0.0 <= share < 1.0
    assert np.linalg.eigvalsh(np.eye(3) + share * C)[0] == pytest.approx(least)
    assert np.linalg.eigvalsh(t * (np.eye(3) + share * C) - M)[0] == pytest.approx(0.0, abs=1e-12)


def test_whitening_makes_the_identity_and_drops_what_is_null():
    right = np.diag([4.0, 1.0, 0.0])
    W = whiten(right)
    assert W.shape == (3, 2)
    np.testing.assert_allclose(W.T @ right @ W, np.eye(2), atol=1e-12)


# From V to its blocks


@each_seed
def test_the_blocks_of_a_matrix_give_it_back(seed):
    split, partition, point, _ = list(points(seed))[1]
    partition = Partition(np.arange(len(split.c)) // 2)
    point = random_point(np.random.default_rng(seed), split, partition)
    U = split.factor(partition, *point)
    V = dense(U @ U.T)
    found = factor_by_blocks(split.problem, V)
    assert (found is None) == (2 * partition.largest > len(split.c))
    if found is not None:
        assert is_sparse(found)
        np.testing.assert_allclose(dense(found @ found.T), V, atol=1e-10 * np.abs(V).max())
        np.testing.assert_array_equal(split.partition_of(found).labels, split.partition_of(U).labels)


def test_a_matrix_of_one_block_and_a_problem_without_l1_part_have_no_factor_by_blocks():
    problem = instance(0).problem
    assert factor_by_blocks(problem, np.ones((5, 5))) is None
    assert factor_by_blocks(direction_problem(as_data(instance(0).X), 1.0, dc.Penalty()), np.eye(5)) is None


def test_a_matrix_that_is_not_positive_semidefinite_is_projected_block_by_block():
    problem = instance(0).problem
    V = np.diag([1.0, -1.0, 2.0, 0.0, 3.0])
    found = factor_by_blocks(problem, V)
    np.testing.assert_allclose(dense(found @ found.T), np.maximum(V, 0.0), atol=1e-14)


@pytest.mark.parametrize("seed", range(8, 16), ids=lambda seed: KINDS[seed % 8])
def test_a_result_its_matrix_and_its_sparse_matrix_are_certified_alike(seed):
    result = instance(seed).solve(tol=1e-5)
    by = [instance(seed).certify(V) for V in (result, result.V, scipy.sparse.csr_array(result.V))]
    assert by[1] == pytest.approx(by[2], abs=1e-12)
    for judged in by:
        assert judged.upper == pytest.approx(result.upper, abs=1e-9)
        assert judged.lower <= optimum(seed).upper + 1e-12


def test_a_point_that_explains_nothing_proves_nothing():
    problem = instance(0).problem
    assert bracket_blocks(problem, problem.best_scale(np.zeros((5, 1)))) == (0.0, 1.0)


def test_a_claim_says_what_its_bound_would_be():
    split, partition, point, C = next(points(3))
    _, claim, _ = blocks_and_claim(split, partition, point, C)
    assert claim.gap == pytest.approx(claim.value - 1.0 + claim.ratios.largest * np.mean(1.0 / claim.ratios.u))
    assert BlockCertificate(claim.ratios, claim.q, 1.0).bound(claim.ratios.largest) == pytest.approx(claim.ratios.bound)


def test_beyond_the_safe_t_all_pairs_are_looked_at_again_and_below_it_those_that_were_kept(monkeypatch):
    seed = 0
    split = instance(seed).split
    blocks = Blocks(split, Partition(np.arange(len(split.c))))
    q = np.mean(split.squares.array(), axis=1) + 0.1
    claim = BlockCertificate(blocks.ratios(q, []), q, 1.0)
    looks, first = [], claim.least_t
    ts = iter([1.5 * first, 2.5 * first, 3.5 * first])
    for name in ("scan", "look_again"):
        real = getattr(block_bounds, name)

        def recorded(*arguments, name=name, real=real):
            looks.append((name, round(arguments[0].t / first, 6)))
            return real(*arguments)

        monkeypatch.setattr(block_bounds, name, recorded)
    monkeypatch.setattr(block_bounds, "attempt", lambda *arguments: block_bounds.Finding(None, arguments[3], [], []))
    monkeypatch.setattr(block_bounds, "larger_t", lambda *arguments: next(ts))
    monkeypatch.setattr(block_bounds, "largest_safe_t", lambda problem, t: 2.0 * first)
    block_bounds.prove(blocks, claim, 3)
    assert looks == [("scan", 1.0), ("look_again", 1.5), ("scan", 2.5), ("scan", 3.5)]
