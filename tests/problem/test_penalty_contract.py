"""The contract of a penalty on pairs of coordinates: one suite for all classes, against CVXPY and exact numbers."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import combinations

import cvxpy as cp
import numpy as np
import oracles
import pytest
from penalties import PairWeights, draw_sides
from rationals import fractions, is_semidefinite

from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, sum_error
from diffrac_cvx.points.table import array_table
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalties.group import GroupNorms, largest_singular_values
from diffrac_cvx.problem.penalties.sign import SignConstraints
from diffrac_cvx.rounding.directions import best_direction
from diffrac_cvx.solvers.fista_dual import BoxWithDiagonal
from experiments.stress.exact import DIGITS, exact, group_penalty

D = 6
C = np.array([1.0, 0.6, 0.9, 1.3, 0.8, 0.7])
LABELS = np.array([0, 1, 0, 2, 1, 3])
OF_GROUPS = np.array([1.0, 0.6, 0.9, 1.3])[LABELS]
SIGNED = np.array([True, False, True, True, False, True])
PENALTIES = {
    "l1": PairPenalty(C),
    "l1, one weight 0": PairPenalty(np.where(np.arange(D) == 2, 0.0, C)),
    "l1 with the diagonal": BoxWithDiagonal(C),
    "groups": GroupNorms(OF_GROUPS, LABELS),
    "groups, one weight 0": GroupNorms(np.where(LABELS == 2, 0.0, OF_GROUPS), LABELS),
    "signs": SignConstraints(C, nonnegative=SIGNED),
    "signs of coordinates of weight 0": SignConstraints(np.where(SIGNED, 0.0, C), nonnegative=SIGNED),
    "one sign": SignConstraints(C, nonnegative=np.arange(D) == 3),
    "pairs": PairWeights(C, draw_sides(np.random.default_rng(5), D)),
}
each = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
even = pytest.mark.parametrize("penalty", [one for one in PENALTIES.values() if one.is_even])
NO_DIAGONAL = {name: penalty for name, penalty in PENALTIES.items() if not isinstance(penalty, BoxWithDiagonal)}
without_diagonal = pytest.mark.parametrize("penalty", NO_DIAGONAL.values(), ids=NO_DIAGONAL)


def subclasses(cls):
    return {cls}.union(*(subclasses(sub) for sub in cls.__subclasses__()))


def draw_factors(penalty, count=12):
    """Factors of feasible V: of one, two, three or eight columns."""
    rng = np.random.default_rng(0)
    for k in range(count):
        U = rng.standard_normal((D, (1, 3, 2, 8)[k % 4]))
        yield np.where(penalty.nonnegative[:, None], np.abs(U), U)


def sides_of(penalty):
    """The weights of pairs by the definition of a penalty, (D, D)."""
    return np.broadcast_to(getattr(penalty, "r", 1.0), (D, D))


def draw_symmetric(seed, size=2.0):
    Z = size * np.random.default_rng(seed).standard_normal((D, D))
    return (Z + Z.T) / 2


def maximum(penalty, U):
    """The maximum of tr CV over the dual set, by the value."""
    return penalty.value(U) - float(penalty.c**2 @ np.sum(U**2, axis=1)) * (not isinstance(penalty, BoxWithDiagonal))


def test_every_class_of_penalties_is_in_this_suite():
    found = {cls for cls in subclasses(PairPenalty) if cls.__module__.startswith("diffrac_cvx.")}
    assert {type(penalty) for penalty in PENALTIES.values()} >= found


@each
def test_the_value_is_the_definition_and_the_diagonal_plus_the_support_function_of_the_dual_set(penalty):
    for U in draw_factors(penalty):
        expected = oracles.group_penalty(U @ U.T, penalty.groups, penalty.weights**2, sides_of(penalty))
        assert penalty.value(U) == pytest.approx(expected, rel=1e-12)
        assert penalty.support_function(U @ U.T) == pytest.approx(maximum(penalty, U), rel=1e-10)
        assert penalty.value_error_bound(U) <= 1e-11 * (1.0 + expected)


def at_the_edge(penalty, seed):
    """Blocks between groups with all singular values at their bounds, positive between known signs; 0 inside groups."""
    rng, sides, edge = np.random.default_rng(seed), np.broadcast_to(penalty.sides, (D, D)), np.zeros((D, D))
    for g, h in combinations(penalty.groups, 2):
        left, _, right = np.linalg.svd(rng.standard_normal((len(g), len(h))), full_matrices=False)
        edge[np.ix_(g, h)] = sides[g[0], h[0]] * penalty.c[g[0]] * penalty.c[h[0]] * left @ right
    edge = np.where(np.outer(penalty.nonnegative, penalty.nonnegative), np.abs(edge), edge)
    return edge + edge.T


@each
def test_the_half_widths_are_those_of_the_dual_set_and_of_each_part_of_it(penalty):
    sides, places, some = np.broadcast_to(penalty.sides, (D, D)), np.arange(D), np.array([1, 3, 4])
    np.testing.assert_array_equal(sides, sides.T)
    np.testing.assert_array_equal(np.diag(sides), 1.0)
    assert 0.0 <= np.min(sides) <= np.max(sides) <= 1.0
    for j, k in ((places[:, None], places), (places, places[::-1]), (some[:, None], places[2:])):
        found = np.broadcast_to(penalty.half_widths(j, k), np.broadcast_shapes(j.shape, k.shape))
        np.testing.assert_array_equal(found, sides[j, k])
    np.testing.assert_array_equal(np.broadcast_to(penalty.restrict(some).sides, (3, 3)), sides[np.ix_(some, some)])
    np.testing.assert_array_equal(np.broadcast_to(penalty.with_offset().sides, (D + 1, D + 1))[:D, :D], sides)
    for seed in range(4):
        edge = at_the_edge(penalty, seed)
        np.testing.assert_allclose(penalty.project_safe(edge), edge, atol=1e-12)
        if not isinstance(penalty, BoxWithDiagonal):
            np.testing.assert_allclose(penalty.project_safe(2.0 * edge), edge, atol=1e-12)


@each
def test_the_dual_set_has_the_form_that_is_declared(penalty):
    """A box is projected entry by entry; a set that is even, or splits, contains -C with C."""
    given = draw_symmetric(2, 5.0)
    found, moved, splits = penalty.project_safe(given), [], penalty.splits_into_blocks
    for j, k in combinations(range(D), 2):
        other, one = given.copy(), np.ones((D, D), dtype=bool)
        other[j, k] = other[k, j] = one[j, k] = one[k, j] = 0.0
        moved.append(np.abs(penalty.project_safe(other) - found)[one].max())
    is_symmetric = np.allclose(penalty.project_safe(-given), -found)
    assert penalty.is_box == (max(moved) <= 1e-9)
    assert is_symmetric or not penalty.is_even
    assert penalty.is_box or not splits
    assert penalty.is_even or not splits


@each
def test_a_projection_is_in_the_dual_set_nearest_and_its_own_projection(penalty):
    others = [penalty.project_safe(draw_symmetric(seed, 5.0)) for seed in range(5)]
    for seed in range(6, 12):
        given = draw_symmetric(seed)
        found = penalty.project_safe(given)
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_allclose(penalty.project_safe(found), found, atol=1e-11)
        np.testing.assert_allclose(penalty.project_inexact(given.copy()), found, atol=1e-9)
        for U in draw_factors(penalty):
            assert float(np.sum(found * (U @ U.T))) <= maximum(penalty, U) + 1e-12
        assert all(np.vdot(given - found, other - found) <= 1e-7 for other in others)


@without_diagonal
def test_what_a_projection_takes_off_is_the_proximal_point_of_the_support_function(penalty):
    for seed in range(6):
        given = draw_symmetric(seed)
        found = penalty.project_safe(given)
        rest = given - found
        assert float(np.vdot(found, rest)) == pytest.approx(penalty.support_function(rest), abs=1e-8)


@each
def test_a_subgradient_is_in_the_dual_set_and_attains_the_maximum(penalty):
    for U in draw_factors(penalty):
        V = U @ U.T
        found = penalty.subgradient(V, 1e-12, penalty.zero())
        np.testing.assert_allclose(penalty.project_safe(found), found, atol=1e-8)
        assert float(np.vdot(found, V)) == pytest.approx(maximum(penalty, U), rel=1e-6)


@without_diagonal
def test_v_is_left_where_its_multiplier_is_at_the_edge_of_the_dual_set_and_zero_where_it_is_inside(penalty):
    U = next(U for U in draw_factors(penalty) if U.shape[1] > 1)
    V = U @ U.T
    at_edge = penalty.subgradient(V, 1e-12, penalty.zero())
    np.testing.assert_array_equal(penalty.zero_inactive(V, at_edge), V)
    assert penalty.support_function(penalty.zero_inactive(V, 0.9 * at_edge)) == 0.0


@without_diagonal
def test_a_matrix_whose_dual_norms_are_below_the_bounds_is_in_the_dual_set(penalty):
    apart = np.ones((D, D), dtype=bool)
    for group in penalty.groups:
        apart[np.ix_(group, group)] = False
    first = [group[0] for group in penalty.groups]
    bounds = np.outer(penalty.weights, penalty.weights) * sides_of(penalty)[np.ix_(first, first)]
    for seed in range(4):
        G = draw_symmetric(seed) * apart * np.outer(penalty.c, penalty.c)
        norms = penalty.dual_norms(G)
        assert np.all(norms[bounds == 0.0] == 0.0)
        G *= 0.999 / np.max(norms[bounds > 0.0] / bounds[bounds > 0.0], initial=1e-3)
        np.testing.assert_allclose(penalty.project_safe(G), G, atol=1e-9)


@each
def test_a_direction_has_the_value_of_its_matrix_and_an_infeasible_one_none(penalty):
    signed = penalty.nonnegative
    for v in np.random.default_rng(1).standard_normal((6, D)):
        nearest = penalty.nearest_direction(v)
        np.testing.assert_array_equal(nearest, np.where(signed, np.maximum(v, 0.0), v))
        assert penalty.direction_value(nearest) == pytest.approx(penalty.value(nearest[:, None]), rel=1e-12)
        norm = sum(w * np.linalg.norm(v[g]) for w, g in zip(penalty.weights, penalty.groups, strict=True))
        np.testing.assert_allclose(penalty.direction_norm(np.stack([v, -2.0 * v], axis=1)), [norm, 2.0 * norm])
        assert penalty.is_even == np.isfinite(penalty.direction_value(np.where(signed, -1.0, v)))


@without_diagonal
def test_the_cvxpy_expression_has_the_value_and_its_multiplier_attains_it(penalty):
    for seed in range(2):
        U = np.random.default_rng(seed).standard_normal((D, 3))
        U = np.where(penalty.nonnegative[:, None], np.abs(U), U)
        V = cp.Variable((D, D), PSD=True)
        value, constraints = penalty.expression(cp, V)
        problem = cp.Problem(cp.Minimize(value + cp.sum_squares(V - U @ U.T)), constraints)
        assert penalty.multiplier(constraints) is None or not penalty.c.any()
        problem.solve(solver="CLARABEL")
        V = np.asarray(V.value)
        values, vectors = np.linalg.eigh(V)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        assert float(value.value) == pytest.approx(penalty.value(root), rel=1e-5, abs=1e-6)
        multiplier = penalty.multiplier(constraints)
        multiplier = (multiplier + multiplier.T) / 2.0  # a block may have its multiplier at one of its two places
        np.fill_diagonal(multiplier, 0.0)
        np.testing.assert_allclose(penalty.project_safe(multiplier), multiplier, atol=1e-5)
        assert float(np.vdot(multiplier, V)) == pytest.approx(penalty.support_function(V), rel=1e-4, abs=1e-4)


@without_diagonal
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_best_direction_of_labels_is_not_worse_than_that_of_cvxpy(penalty, ridge):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((20, D)), rng.choice([-1.0, 1.0], 20)
        X[:, 0] += 2.0 * y
        X, y = X - X.mean(axis=0), y - y.mean()
        scaled = penalty.with_weights(0.4 * penalty.c)
        a = np.full(D, ridge)

        def cost(v, X=X, y=y, a=a, scaled=scaled):
            return float(np.mean((y - X @ v) ** 2) + np.sum((a * v) ** 2)) + scaled.direction_value(v)

        v = cp.Variable(D)
        norms = [w * cp.norm(v[group]) for w, group in zip(scaled.weights, scaled.groups, strict=True)]
        objective = cp.sum_squares(y - X @ v) / 20 + cp.sum_squares(cp.multiply(a, v)) + cp.square(sum(norms))
        signed = np.flatnonzero(penalty.nonnegative)
        problem = cp.Problem(cp.Minimize(objective), [v[signed] >= 0] if len(signed) else [])
        problem.solve(solver="CLARABEL")
        found = best_direction(array_table(X), y, scaled.with_weights(scaled.c, a))
        assert cost(found) <= problem.value + 1e-7


@each
def test_a_restricted_penalty_is_that_of_the_matrices_which_are_0_elsewhere_and_an_offset_costs_nothing(penalty):
    for indices in (np.array([0, 1, 2, 4]), np.array([1, 3]), np.array([5])):
        part = penalty.restrict(indices)
        for U in draw_factors(penalty, 4):
            zero = np.zeros_like(U)
            zero[indices] = U[indices]
            assert part.value(U[indices]) == pytest.approx(penalty.value(zero), rel=1e-12)
            assert part.direction_value(U[indices, 0]) == pytest.approx(penalty.direction_value(zero[:, 0]))
    ridged = penalty.with_weights(penalty.c, np.arange(float(D)))
    np.testing.assert_array_equal(ridged.restrict(np.array([1, 3])).a, [1.0, 3.0])
    np.testing.assert_array_equal(ridged.scaled(2.0).with_offset(0.5).a, [*(2.0 * np.arange(D)), 0.5])
    wider = penalty.with_offset()
    assert not wider.nonnegative[-1]
    assert wider.labels[-1] not in penalty.labels
    for U in draw_factors(penalty, 4):
        assert wider.value(np.vstack([U, -np.ones((1, U.shape[1]))])) == pytest.approx(penalty.value(U), rel=1e-12)
    assert np.all(wider.project_safe(np.ones((D + 1, D + 1)))[-1] == 0.0)


@each
def test_a_matrix_is_made_feasible_if_it_is_not_and_left_if_it_is(penalty):
    for U in draw_factors(penalty):
        assert penalty.make_feasible(U) is U
        made = penalty.make_feasible(U - 1.0)
        assert np.isfinite(penalty.value_error_bound(made))
        assert penalty.make_feasible(made) is made


@each
def test_a_multiplier_relative_to_the_reference_weights_is_in_the_dual_set(penalty):
    reference = penalty.reference_weights
    C = penalty.relative.project_safe(draw_symmetric(9)) * np.outer(reference, reference)
    np.testing.assert_allclose(penalty.project_safe(C), C, atol=1e-9)


@even
@pytest.mark.parametrize("least", [0.3, 0.02])
def test_the_multipliers_between_two_sets_of_coordinates_are_those_of_the_dual_set(penalty, least):
    rows, columns, t = np.array([0, 2, 3]), np.array([1, 4, 5]), 0.7  # whole groups
    bounds = t * np.outer(penalty.c[rows], penalty.c[columns]) * sides_of(penalty)[np.ix_(rows, columns)]
    dual, rng = penalty.off_diagonal(rows, columns), np.random.default_rng(3)
    T = 2.0 * rng.standard_normal((3, 3))
    square = penalty.zero()
    square[np.ix_(rows, columns)] = T / t
    expected = t * penalty.project_safe(square + square.T)[np.ix_(rows, columns)]
    np.testing.assert_allclose(dual.project_safe(T, t), expected, atol=1e-12)
    assert len(dual.violated_columns(dual.project_safe(T, t) * 0.5, t)) == 0
    assert len(dual.violated_columns(T, t)) > 0
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    P = (Q * np.array([least, 1.0, 2.0])) @ Q.T
    tC = cp.Variable((3, 3))
    inside = [
        cp.sigma_max(tC[some, :][:, others]) <= bounds[some[0], others[0]]
        for some in blocks_of(penalty.labels[rows])
        for others in blocks_of(penalty.labels[columns])
    ]
    root = np.linalg.cholesky(np.linalg.inv(P))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(root.T @ (tC - T))), inside)
    problem.solve(solver="CLARABEL")
    found = dual.project_safe(dual.best_multiplier(P, T, t), t) - T
    assert float(np.sum((root.T @ found) ** 2)) <= problem.value * (1.0 + 3e-4 / least) + 1e-6


# Penalties that declare something untrue of themselves


def lie(base, *given, **declared):
    """A penalty that differs from its class in what it declares."""
    return type("Lying", (base,), declared)(*given)


def too_large(self, C):
    return 1.01 * PairPenalty.project_safe(self, C)


class FrobeniusBalls(GroupNorms):
    """Balls that are smaller than those of the spectral norm, which proofs rely on."""

    def project_safe(self, C):
        C = np.where(self.same_group, 0.0, (C + C.T) / 2)
        for g, h in combinations(self.groups, 2):
            norm = np.linalg.norm(C[np.ix_(g, h)]) / (self.c[g[0]] * self.c[h[0]])
            C[np.ix_(g, h)] /= max(norm, 1.0)
            C[np.ix_(h, g)] = C[np.ix_(g, h)].T
        return C


R = draw_sides(np.random.default_rng(6), D)
BOX = PairWeights(C, R).half_width
SIGNS, GROUPS = (C, None, SIGNED), (OF_GROUPS, LABELS)
HALF_WIDTHS = test_the_half_widths_are_those_of_the_dual_set_and_of_each_part_of_it
FORM = test_the_dual_set_has_the_form_that_is_declared
VALUE = test_the_value_is_the_definition_and_the_diagonal_plus_the_support_function_of_the_dual_set
NEAREST = test_a_projection_is_in_the_dual_set_nearest_and_its_own_projection
RESTRICTED = test_a_restricted_penalty_is_that_of_the_matrices_which_are_0_elsewhere_and_an_offset_costs_nothing
LIES = {
    "half-widths of the l1 norm": (lie(PairWeights, C, R, half_widths=lambda *_: 1.0, half_width=BOX), HALF_WIDTHS),
    "half-widths a little larger": (lie(PairWeights, C, np.minimum(1.02 * R, 1.0), half_width=BOX), HALF_WIDTHS),
    "half-widths not symmetric": (PairWeights(C, np.triu(R) + np.tril(np.ones((D, D)), -1)), HALF_WIDTHS),
    "half-widths above 1": (PairWeights(C, 1.5 * R - 0.5 * np.eye(D)), HALF_WIDTHS),
    "half-widths 1 of a part": (lie(PairWeights, C, R, restrict=PairPenalty(C).restrict), HALF_WIDTHS),
    "a part with other values": (lie(PairWeights, C, R, restrict=PairPenalty(C).restrict), RESTRICTED),
    "balls of a smaller norm": (FrobeniusBalls(*GROUPS), HALF_WIDTHS),
    "groups are a box": (lie(GroupNorms, *GROUPS, is_box=True), FORM),
    "groups split": (lie(GroupNorms, *GROUPS, splits_into_blocks=True), FORM),
    "a box is none": (lie(PairPenalty, C, is_box=False), FORM),
    "signs are even": (lie(SignConstraints, *SIGNS, is_even=True), FORM),
    "signs split": (lie(SignConstraints, *SIGNS, splits_into_blocks=True), FORM),
    "the l1 norm is not even": (
        lie(PairPenalty, C, is_even=False),
        test_a_direction_has_the_value_of_its_matrix_and_an_infeasible_one_none,
    ),
    "a smaller value": (lie(PairPenalty, C, value=lambda self, U: 0.99 * PairPenalty.value(self, U)), VALUE),
    "the value of the l1 norm": (lie(PairWeights, C, R, has_unit_sides=True), VALUE),
    "a smaller support function": (
        lie(PairPenalty, C, support_function=lambda self, V: 0.99 * PairPenalty.support_function(self, V)),
        VALUE,
    ),
    "a projection outside the dual set": (lie(PairPenalty, C, project_safe=too_large), NEAREST),
    "a projection for steps outside it": (lie(PairPenalty, C, project_inexact=too_large), NEAREST),
    "zeros at the edge": (
        lie(PairPenalty, C, zero_inactive=lambda self, V, C: 0.0 * V),
        test_v_is_left_where_its_multiplier_is_at_the_edge_of_the_dual_set_and_zero_where_it_is_inside,
    ),
    "smaller dual norms": (
        lie(PairPenalty, C, dual_norms=lambda self, G: 0.5 * PairPenalty.dual_norms(self, G)),
        test_a_matrix_whose_dual_norms_are_below_the_bounds_is_in_the_dual_set,
    ),
    "another value in CVXPY": (
        lie(PairPenalty, C, cvxpy_value=lambda self, cp, V: 0.9 * PairPenalty.cvxpy_value(self, cp, V)),
        test_the_cvxpy_expression_has_the_value_and_its_multiplier_attains_it,
    ),
    "multipliers of the l1 norm between": (
        lie(PairWeights, C, R, off_diagonal=PairPenalty(C).off_diagonal),
        partial(test_the_multipliers_between_two_sets_of_coordinates_are_those_of_the_dual_set, least=0.3),
    ),
    "all are feasible": (
        lie(SignConstraints, *SIGNS, make_feasible=lambda self, U: U),
        test_a_matrix_is_made_feasible_if_it_is_not_and_left_if_it_is,
    ),
}


@pytest.mark.parametrize(("penalty", "check"), LIES.values(), ids=LIES)
def test_a_penalty_that_declares_something_untrue_of_itself_is_refused(penalty, check):
    with pytest.raises(AssertionError):
        check(penalty)


# In exact numbers


EDGES = (0.0, 1e-12, 1e-6, 1e-3, 1.0)  # of a singular value to the largest


def blocks_of(labels):
    """The places of each group."""
    return [np.flatnonzero(labels == g) for g in np.unique(labels)]


def is_in_dual_set(C, c, labels):
    """Whether the blocks of C have spectral norms of at most w_g w_h, and those on the diagonal are 0: by fractions."""
    exactly, weights, places = fractions(C), fractions(c), blocks_of(labels)
    if not np.array_equal(C, C.T) or any(np.any(C[np.ix_(g, g)]) for g in places):
        return False
    for i, g in enumerate(places):
        for h in places[i + 1 :]:
            B = exactly[np.ix_(g, h)]
            if not is_semidefinite((weights[g[0]] * weights[h[0]]) ** 2 * fractions(np.eye(len(B))) - B @ B.T):
                return False
    return True


def draw_labels(rng, most=4):
    """Labels of groups of unequal sizes, not in order, and weights, some of which are 0 or far apart."""
    sizes = rng.integers(1, most + 1, rng.integers(2, 5))
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    weights = 10.0 ** rng.uniform(-4, 4, len(sizes)) if rng.integers(2) else rng.uniform(0.5, 1.5, len(sizes))
    weights[rng.random(len(sizes)) < 0.1] = 0.0
    return labels, weights[labels]


def draw_multiplier(rng, c, labels):
    """A symmetric matrix whose blocks have singular values at, just beyond, far beyond and inside their bounds."""
    C = np.zeros((len(c), len(c)))
    for g in blocks_of(labels):
        for h in blocks_of(labels):
            left, _, right = np.linalg.svd(rng.standard_normal((len(g), len(h))), full_matrices=False)
            size = c[g[0]] * c[h[0]] or 10.0 ** rng.uniform(-8, 8)
            far = rng.choice([1.0, 1.0 + 1e-15, 1.0 + 1e-9, 1.1, 1e8, 0.5, 1e-8])
            values = size * far * rng.choice(EDGES, left.shape[1])
            values[rng.integers(len(values))] = size * far
            C[np.ix_(g, h)] = (left * values) @ right
    return np.triu(C) + np.triu(C, 1).T


def draw_factor(rng, known):
    """A factor whose products of known rows are about 0, a little negative, positive, or of rows that are 0."""
    U = rng.standard_normal((len(known), int(rng.integers(1, 6)))) * 10.0 ** rng.uniform(-6, 6)
    kind = rng.integers(4)
    if kind == 0:
        U = np.abs(U)
    if kind == 1:  # orthogonal rows, up to rounding
        U = np.linalg.qr(rng.standard_normal((len(known), len(known))))[0] * 10.0 ** rng.uniform(-8, 8, (len(known), 1))
    if kind == 2:
        U = np.abs(U) - 1e-15 * np.abs(U).max()
        U[rng.integers(len(U))] = 0.0
    return U


@pytest.mark.parametrize("number", range(20))
def test_the_value_of_group_norms_is_off_by_no_more_than_is_said(number):
    rng = np.random.default_rng(number)
    labels, c = draw_labels(rng)
    rank = int(rng.integers(1, 6))
    U = rng.standard_normal((len(c), rank)) * 10.0 ** rng.uniform(-6, 6, rank)
    if number % 2:  # nearly of rank one, with parts that cancel
        U = U[:, :1] * rng.choice([-1.0, 1.0], rank) + 1e-9 * U
    penalty = GroupNorms(c, labels)
    with localcontext() as context:
        context.prec = DIGITS
        rows = exact(U)
        off = abs(Decimal(penalty.value(U)) - group_penalty(rows @ rows.T, exact(c), labels))
    assert off <= Decimal(penalty.value_error_bound(U))


@pytest.mark.parametrize("shape", [(1, 4000), (4000, 1)])
def test_no_singular_value_is_above_its_bound_where_its_sum_of_squares_loses_most(shape):
    """After 32 ones the square of each other entry is less than half a unit of the sums that it is added to."""
    block = np.full(shape, 0.99 * 2.0**-26.5)
    block.ravel()[:32] = 1.0
    (found,), exact = largest_singular_values(block[None]), (fractions(block) ** 2).sum()
    assert exact <= Fraction(found) ** 2 <= exact * (1 + Fraction(1, 10**11))


def test_a_projected_multiplier_is_in_the_set_of_group_norms_to_the_last_bit():
    rng = np.random.default_rng(0)
    for _ in range(100):
        labels, c = draw_labels(rng)
        assert is_in_dual_set(GroupNorms(c, labels).project_safe(draw_multiplier(rng, c, labels)), c, labels)


def has_no_negative_pair(U, known):
    """Whether the entries of UU' for known pairs are nonnegative, without any rounding."""
    rows = fractions(U)[known]
    return bool(np.all(rows @ rows.T >= 0))


@pytest.mark.parametrize("number", range(40))
def test_a_factor_said_or_made_to_be_allowed_has_no_negative_entry_for_known_pairs_and_is_near(number):
    rng = np.random.default_rng(number)
    known = rng.random(int(rng.integers(2, 7))) < 0.8
    if known.sum() < 2:
        known[:2] = True
    penalty, U = SignConstraints(np.zeros(len(known)), nonnegative=known), draw_factor(rng, known)
    found = penalty.make_feasible(U)
    V, W = U @ U.T, found @ found.T
    assert penalty.is_feasible(U) <= has_no_negative_pair(U, known)
    assert has_no_negative_pair(found, known)
    assert penalty.is_feasible(found)
    assert penalty.make_feasible(found) is found
    # What is negative goes, and its size is added to the diagonal.
    negative = np.where(np.outer(known, known) & ~np.eye(len(known), dtype=bool), np.minimum(V, 0.0), 0.0)
    nearest = V - negative - np.diag(negative.sum(axis=0))
    np.testing.assert_allclose(W, nearest, rtol=0.0, atol=1e-7 * max(np.abs(V).max(), 1e-300))


def biased_product():
    """Two numbers whose product is rounded up by nearly a unit, relative to it."""
    for k in range(1, 10**5):
        x, y = 1.0 + k * 2.0**-26, 1.0 + 2.0**-28
        if Fraction(x * y) - Fraction(x) * Fraction(y) > Fraction(0.95 * UNIT_ROUNDOFF) * Fraction(x * y):
            return x, y
    raise AssertionError("none found")


def badly_rounded_factors():
    """Weights and factors: sums that lose what they add, products that are all rounded up, and some at random."""
    rng = np.random.default_rng(3)
    lossy = np.full((128, 1), 0.99 * UNIT_ROUNDOFF)
    lossy[:8] = 1.0
    yield np.ones(128), lossy
    c, x = biased_product()
    yield np.full(1024, c), np.full((1024, 1), x)
    for rank in (1, 2, 5):
        yield 10.0 ** rng.uniform(-3, 3, 9), rng.standard_normal((9, rank)) * 10.0 ** rng.uniform(-6, 6, rank)


@pytest.mark.parametrize("number", range(5))
def test_the_value_of_the_l1_penalty_is_off_by_no_more_than_is_said_however_badly_it_is_rounded(number):
    c, U = list(badly_rounded_factors())[number]
    rows = fractions(U) * fractions(c)[:, None]
    exactly = sum(np.abs(rows[:, 0])) ** 2 if U.shape[1] == 1 else np.abs(rows @ rows.T).sum()
    penalty = PairPenalty(c)
    assert abs(Fraction(penalty.value(U)) - exactly) <= Fraction(penalty.value_error_bound(U))
    if len(c) < 200:
        penalty = PairWeights(c, draw_sides(np.random.default_rng(number), len(c)))
        exactly = (fractions(penalty.r) * np.abs(rows @ rows.T)).sum()
        assert abs(Fraction(penalty.value(U)) - exactly) <= Fraction(penalty.value_error_bound(U))


def test_the_value_of_group_norms_of_many_columns_is_off_by_no_more_than_is_said():
    """Two equal rows, of which each product after 32 ones is less than half a unit of the sum."""
    U = np.full((2, 8000), 0.99 * 2.0**-26.5)
    U[:, :32] = 1.0
    penalty, exact = GroupNorms(np.ones(2), np.arange(2)), 4 * (fractions(U[0]) ** 2).sum()
    lost = exact - Fraction(penalty.value(U))
    assert 100 * Fraction(UNIT_ROUNDOFF) * exact < lost <= Fraction(penalty.value_error_bound(U))


def test_the_error_said_of_group_norms_counts_what_no_sum_of_doubles_loses():
    """Singular values, and a sum over pairs of groups: the closed form, for LAPACK and NumPy lose less."""
    for labels in (np.repeat(np.arange(3), 4), np.arange(5000)):
        norms = np.unique(labels, return_counts=True)[1] ** 0.5
        k = max(32 * float(np.max(norms)) ** 3, len(norms))
        error = GroupNorms(np.ones(len(labels)), labels).value_error_bound(np.ones((len(labels), 1)))
        assert sum_error(k) * np.sum(norms) ** 2 <= error <= sum_error(200 + 5 * k) * np.sum(norms) ** 2
    (found,) = largest_singular_values(np.eye(100)[None])
    assert sum_error(16 * 100) * 100 <= found**2 - 1.0 <= sum_error(20 * 100) * 100


def test_orthogonal_rows_whose_product_is_negative_and_computed_as_zero_are_not_allowed():
    penalty, found = SignConstraints(np.zeros(2), nonnegative=np.ones(2, dtype=bool)), 0
    for seed in range(200):
        a, b, c = np.random.default_rng(seed).uniform(0.5, 1.0, 3)
        U = np.array([[a, b], [c, -a * c / b]])
        if (U @ U.T)[0, 1] >= 0.0 and not has_no_negative_pair(U, np.ones(2, dtype=bool)):
            found += 1
            assert not penalty.is_feasible(U)
            assert penalty.value_error_bound(U) == np.inf
    assert found > 10


def test_what_is_clipped_between_groups_is_in_the_dual_set_to_the_last_bit():
    """Blocks just beyond their bound and far beyond it; without groups entries too, at sides that are rounded up."""
    rng, rounded_up = np.random.default_rng(9), 0
    labels = np.array([0, 0, 1, 2, 2, 2, 3])
    for _ in range(40):
        c, t = rng.uniform(0.5, 1.5, 4)[labels], rng.uniform(0.5, 2.0)
        part, plain = (
            penalty.off_diagonal(np.arange(3), np.arange(3, 7)) for penalty in (GroupNorms(c, labels), PairPenalty(c))
        )
        beyond = rng.choice([1.0, 1.0 + 1e-15, 1.0 + 5e-10, 1.1])
        T = np.outer(c[:3], c[3:]) * t * beyond
        T[:2] *= rng.choice([0.5, 1.0])  # so that the singular value of a block is at its bound, or twice that
        T[:, :3] /= 3.0**0.5
        exactly, r = np.outer(fractions(c[:3]), fractions(c[3:])) * Fraction(t), draw_sides(rng, 7)
        assert np.all(np.abs(fractions(plain.project_safe(rng.choice([-2.0, 2.0]) * T, t))) <= exactly)
        pairs = PairWeights(c, r).off_diagonal(np.arange(3), np.arange(3, 7))
        assert np.all(np.abs(fractions(pairs.project_safe(2.0 * T, t))) <= exactly * fractions(r[:3, 3:]))
        rounded_up += np.sum(fractions(np.outer(c[:3], c[3:]) * t) > exactly)
        inside = fractions(part.project_safe(T, t))
        for g in (np.arange(2), np.array([2])):
            for h in (np.arange(3), np.array([3])):
                B, side = inside[np.ix_(g, h)], exactly[g[0], h[0]]
                assert is_semidefinite(side**2 * fractions(np.eye(len(g))) - B @ B.T)
    assert rounded_up > 0
