"""Triangle inequalities: the lemmas, Theorem 8 and the counterexample of the companion note hold on instances."""

from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pytest
import scipy

import diffrac_cvx as dc


def signs_of(n):
    """Return all sign vectors of n rows, up to a global sign."""
    return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=n - 1)])


@cache
def inequalities_of(n, sizes=(3,)):
    """Return the pairs i < j, and A, b: A Y_ij <= b are the triangle (and larger odd clique) inequalities."""
    pairs = list(combinations(range(n), 2))
    place, rows, bounds = {pair: k for k, pair in enumerate(pairs)}, [], []
    for size in sizes:
        for members, signs in product(combinations(range(n), size), signs_of(size)):
            row = np.zeros(len(pairs))
            for (i, s), (j, t) in combinations(zip(members, signs, strict=True), 2):
                row[place[i, j]] = -s * t
            rows.append(row)
            bounds.append((size - 1) / 2)
    return np.array(pairs).T, np.array(rows), np.array(bounds)


def met(K, sizes=(3,)):
    """Return the largest <K, Y> over unit diagonals and the inequalities, a linear program."""
    (i, j), A, b = inequalities_of(len(K), sizes)
    return np.trace(K) - scipy.optimize.linprog(-2.0 * K[i, j], A, b, bounds=(-1.0, 1.0), method="highs").fun


def cut(K):
    """Return the largest y'Ky over signs, by enumeration."""
    Z = signs_of(len(K))
    return np.max(np.sum((Z @ K) * Z, axis=1))


def is_exact(R):
    K = R @ R.T
    return met(K) <= cut(K) * (1.0 + 1e-8)


def simplex(d):
    """Return the corners of a regular simplex, (d + 1, d), whose columns have variance one."""
    centred = np.eye(d + 1) - 1.0 / (d + 1)
    return (d + 1) ** 0.5 * centred @ np.linalg.svd(centred)[2][:d].T


def a_semimetric(rng, n):
    """Return the l1 distances of n random points in the plane, which are a semimetric."""
    points = rng.random((n, 2))
    return np.abs(points[:, None] - points).sum(axis=2)


# Lemmas


def test_lemma_1_moving_a_pair_of_rows_apart_is_concave():
    rng = np.random.default_rng(0)
    R, v, delta, t = rng.standard_normal((6, 3)), rng.standard_normal(3), a_semimetric(rng, 6), 0.3

    def g(t):
        moved = R + t * np.outer(np.eye(6)[1] - np.eye(6)[4], v)
        return np.sum(np.triu(moved @ moved.T * delta, 1))

    assert (g(t) + g(-t) - 2.0 * g(0.0)) / t**2 == pytest.approx(-2.0 * delta[1, 4] * (v @ v))


@pytest.mark.parametrize("seed", range(3))
def test_lemma_2_parallel_rows_are_one_row(seed):
    rng = np.random.default_rng(seed)
    merged = simplex(4) + 0.05 * rng.standard_normal((5, 4))
    split = np.vstack([0.3 * merged[0], 0.7 * merged[0], merged[1:]])
    assert cut(split @ split.T) == pytest.approx(cut(merged @ merged.T))
    assert met(split @ split.T) == pytest.approx(met(merged @ merged.T))
    assert met(merged @ merged.T) > 1.01 * cut(merged @ merged.T), "no gap: the test would not see one"


# The second antiderivative of w, for which the integrals of w(t - s) over two arcs are differences
SECOND = {
    "cos": lambda x: -np.cos(x),
    "sin cos": lambda x: -np.sin(2.0 * x) / 8.0,
    "sin^2 cos": lambda x: np.cos(x) ** 3 / 9.0 - np.cos(x) / 3.0,
}


def pairs_and_triples_of_arcs(name, ends):
    """Return the integrals k_ij of w(t - s) over arcs i < j, and of lambda over arcs i < j < k, of 0 to pi."""
    W, arcs, lengths = SECOND[name], list(pairwise(ends)), np.diff(ends)
    k = {
        (i, j): W(d - a) - W(d - b) - W(c - a) + W(c - b)
        for (i, (a, b)), (j, (c, d)) in combinations(enumerate(arcs), 2)
    }
    triples = {
        (i, j, l): (lengths[l] * k[i, j] + lengths[i] * k[j, l] - lengths[j] * k[i, l]) / np.pi
        for i, j, l in combinations(range(len(arcs)), 3)
    }
    return k, triples


def random_ends(seed, n):
    return np.concatenate([[0.0], np.sort(np.random.default_rng(seed).uniform(0.0, np.pi, n - 1)), [np.pi]])


@pytest.mark.parametrize("name", SECOND)
def test_lemma_3_the_pairs_are_a_sum_of_triangles(name):
    k, triples = pairs_and_triples_of_arcs(name, random_ends(1, 7))
    found = dict.fromkeys(k, 0.0)
    for (i, j, l), weight in triples.items():
        found[i, j] += weight
        found[j, l] += weight
        found[i, l] -= weight
    for pair, value in k.items():
        assert found[pair] == pytest.approx(value, abs=1e-12), pair


@pytest.mark.parametrize("seed", range(3))
def test_lemma_3_the_triangles_of_cos_and_of_sin_cos_have_nonnegative_weights_unlike_sin_squared_cos(seed):
    ends = random_ends(seed, 8)
    for name in ("cos", "sin cos"):
        assert min(pairs_and_triples_of_arcs(name, ends)[1].values()) >= -1e-15
    short = np.concatenate([np.linspace(0.0, 0.3, 4), [np.pi]])
    assert min(pairs_and_triples_of_arcs("sin^2 cos", short)[1].values()) < 0.0


# Rank two


@pytest.mark.parametrize("seed", range(8))
def test_theorem_8_triangles_are_exact_at_rank_two(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.choice([0.1, 1.0, 3.0], (9, 1)) if seed % 2 else 1.0
    assert is_exact(lengths * rng.standard_normal((9, 2)))


def test_theorem_8_chords_of_a_half_circle_have_tight_sums_and_the_multipliers_of_the_proof():
    ends = random_ends(5, 7)
    points = np.column_stack([1.0 - np.cos(ends), np.sin(ends)])
    R, a = np.diff(points, axis=0), points[-1]
    K = R @ R.T
    np.testing.assert_allclose(np.einsum("ij,ij->i", points, a - points), 0.0, atol=1e-12)
    assert cut(K) == pytest.approx(a @ a)
    k, triples = pairs_and_triples_of_arcs("cos", ends)
    assert [K[pair] for pair in k] == pytest.approx(list(k.values()))
    rng = np.random.default_rng(0)
    delta = a_semimetric(rng, 7)
    g = sum(K[i, j] * delta[i, j] for i, j in k)
    triangles = sum(weight * (delta[i, j] + delta[j, l] - delta[i, l]) for (i, j, l), weight in triples.items())
    assert g == pytest.approx(triangles)
    assert g > 0.0


def test_theorem_8_on_a_table_of_two_columns_the_linear_program_gives_the_optimal_cost():
    X = np.random.default_rng(2).standard_normal((9, 2))
    X -= X.mean(axis=0)
    whitened = X @ np.linalg.inv(np.linalg.cholesky(X.T @ X / 9 + 0.3 * np.eye(2))).T / 9
    best = dc.optimal_labels(X, ridge=0.3, tol=1e-8)
    assert 1.0 - met(whitened @ whitened.T) == pytest.approx(best.upper, abs=1e-6)


# Rank three


def vertices_of_six_points():
    """Return the 544 vertices of the metric polytope of six points, as entries of pairs i < j."""
    i, j = np.triu_indices(6, 1)
    labels, thirds = np.ones((6, 6)), np.full((6, 6), -1.0 / 3.0)
    bases = [labels, thirds]
    for p, q in zip(i, j, strict=True):  # two points with equal labels, in the vertex of five points
        doubled = thirds.copy()
        doubled[p, q] = doubled[q, p] = 1.0
        bases.append(doubled)
    switched = [np.outer(s, s) * base for base in bases for s in signs_of(6)]
    return np.array([Y[i, j] for Y in switched])


def test_proposition_1_the_vertices_of_six_points_are_feasible_and_attain_every_linear_program():
    vertices = vertices_of_six_points()
    (i, j), A, b = inequalities_of(6)
    assert len(np.unique(vertices.round(6), axis=0)) == 544
    assert np.max(vertices @ A.T - b) <= 1e-12
    kinds = set()
    for seed in range(60):
        rng = np.random.default_rng(seed)
        K = np.zeros((6, 6))
        K[i, j] = K[j, i] = vertices[rng.integers(544)] + 0.1 * rng.standard_normal(15)
        values = 2.0 * vertices @ K[i, j]
        assert met(K) == pytest.approx(values.max(), abs=1e-7)
        kinds.add(np.sum(np.abs(np.abs(vertices[values.argmax()]) - 1.0) < 1e-9))
    assert kinds == {15, 1, 0}, "each kind of vertex is the solution of some program"


def icosahedron():
    golden = (1.0 + 5.0**0.5) / 2.0
    return np.array([np.roll((0.0, 1.0, sign * golden), shift) for shift in range(3) for sign in (1.0, -1.0)])


@pytest.mark.parametrize("seed", range(6))
def test_proposition_1_triangles_are_exact_on_six_lines_at_rank_three(seed):
    rng = np.random.default_rng(seed)
    R = icosahedron() + (0.3 * rng.standard_normal((6, 3)) if seed else 0.0)
    assert is_exact(np.vstack([R, 0.5 * R[:2]]))


@pytest.mark.parametrize("seed", range(3))
def test_proposition_2_triangles_are_exact_on_pieces_of_a_half_sphere(seed):
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0.0, 2.0 * np.pi, 4))
    angles = np.append(angles, angles[0] + 2.0 * np.pi)
    low, high = np.array([0.0, 0.9]), np.array([0.9, np.pi / 2])  # of the angle to the axis
    ring = (high - low) / 2.0 - (np.sin(2.0 * high) - np.sin(2.0 * low)) / 4.0
    height = (np.sin(high) ** 2 - np.sin(low) ** 2) / 2.0
    R = np.array([
        (r * (np.sin(b) - np.sin(a)), r * (np.cos(a) - np.cos(b)), h * (b - a))
        for a, b in pairwise(angles)
        for r, h in zip(ring, height, strict=True)
    ])  # fmt: skip
    total = R.sum(axis=0)
    np.testing.assert_allclose(total, [0.0, 0.0, np.pi], atol=1e-12)
    assert cut(R @ R.T) == pytest.approx(np.pi**2), "equal labels are best"
    assert is_exact(R)


def lines_of_the_cube():
    """Return one vector on each axis of symmetry of the cube, (13, 3), of length one."""
    vectors = [v for v in product((0.0, 1.0, -1.0), repeat=3) if next((x for x in v if x), -1.0) > 0.0]
    return np.array(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
def test_the_open_question_of_rank_three_has_no_counterexample_among_the_axes_of_the_cube(seed):
    rng, R = np.random.default_rng(seed), lines_of_the_cube()
    assert R.shape == (13, 3)
    if seed:  # 11 lines of random lengths, moved a little
        R = rng.permutation(R)[:11] * rng.lognormal(0.0, 0.5, (11, 1)) + 0.1 * rng.standard_normal((11, 3))
    assert is_exact(R)


# Rank four and more


@pytest.mark.parametrize("copies", [1, 2])
def test_the_counterexample_has_a_gap_of_a_ninth_without_the_cone(copies):
    R = np.repeat(simplex(4), copies, axis=0) / copies
    assert cut(R @ R.T) == pytest.approx(24.0)
    assert met(R @ R.T) == pytest.approx(80.0 / 3.0)
    if copies == 1:
        assert met(R @ R.T, sizes=(3, 5)) == pytest.approx(24.0), "inequalities on five points close it"


@pytest.mark.parametrize(("d", "cost"), [(4, 1 / 25), (5, 0.0), (6, 1 / 49)])
def test_the_counterexample_has_the_bound_0_with_the_cone_and_a_positive_cost_if_d_is_even(d, cost):
    X = np.repeat(simplex(d), 2, axis=0)
    tightened = dc.triangles(dc.penalized_nu(X))
    assert tightened.problem.solve(solver="SCS", eps=1e-7) == pytest.approx(0.0, abs=1e-5)
    best = dc.optimal_labels(X, tol=1e-6)
    assert best.lower - 1e-6 <= cost <= best.upper + 1e-6
    assert best.gap <= 1e-6


def test_inequalities_on_five_points_leave_a_gap_at_rank_five():
    b = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    K = 7.0 * np.diag(b) - np.outer(b, b)
    assert np.linalg.matrix_rank(K) == 5
    assert (cut(K), met(K), met(K, sizes=(3, 5))) == pytest.approx((48.0, 160.0 / 3.0, 50.0))
