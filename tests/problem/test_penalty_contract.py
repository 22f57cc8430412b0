"""The contract of a penalty on pairs of coordinates: one suite for all classes, against CVXPY and definitions."""

import cvxpy as cp
import numpy as np
import oracles
import pytest
from rationals import fractions

from diffrac_cvx.points.dense import array_points
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalties.group import GroupNorms
from diffrac_cvx.problem.penalties.sign import SignConstraints
from diffrac_cvx.rounding.directions import best_direction
from diffrac_cvx.solvers.smoothed_dual import BoxWithDiagonal

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
}
each = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
without_diagonal = pytest.mark.parametrize(
    "penalty",
    [one for one in PENALTIES.values() if not isinstance(one, BoxWithDiagonal)],
    ids=[n for n in PENALTIES if "diag" not in n],
)


def subclasses(cls):
    return {cls}.union(*(subclasses(sub) for sub in cls.__subclasses__()))


def draw_factors(penalty, count=12):
    """Factors of feasible V: of one, two, three or eight columns."""
    rng = np.random.default_rng(0)
    for k in range(count):
        U = rng.standard_normal((D, (1, 3, 2, 8)[k % 4]))
        yield np.where(penalty.nonnegative[:, None], np.abs(U), U)


def draw_symmetric(seed, size=2.0):
    Z = size * np.random.default_rng(seed).standard_normal((D, D))
    return (Z + Z.T) / 2


def maximum(penalty, U):
    """The maximum of tr CV over the dual set, by the value."""
    return penalty.value(U) - float(penalty.c**2 @ np.sum(U**2, axis=1)) * (not isinstance(penalty, BoxWithDiagonal))


def test_every_class_of_penalties_is_in_this_suite():
    found = {cls for cls in subclasses(PairPenalty) if cls.__module__.startswith("diffrac_cvx.")}
    assert {type(penalty) for penalty in PENALTIES.values()} == found


@each
def test_the_value_is_the_definition_and_the_diagonal_plus_the_support_function_of_the_dual_set(penalty):
    for U in draw_factors(penalty):
        expected = oracles.group_penalty(U @ U.T, penalty.groups, penalty.weights**2)
        assert penalty.value(U) == pytest.approx(expected, rel=1e-12)
        assert penalty.support_function(U @ U.T) == pytest.approx(maximum(penalty, U), rel=1e-10)
        assert penalty.value_error_bound(U) <= 1e-11 * (1.0 + expected)


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
def test_where_the_multiplier_is_inside_the_dual_set_nothing_of_the_penalty_is_left(penalty):
    V = next(U for U in draw_factors(penalty) if U.shape[1] > 1)
    assert penalty.support_function(penalty.zero_inactive(V @ V.T, penalty.zero())) == 0.0


@without_diagonal
def test_a_matrix_whose_dual_norms_are_below_the_bounds_is_in_the_dual_set(penalty):
    apart = np.ones((D, D), dtype=bool)
    for group in penalty.groups:
        apart[np.ix_(group, group)] = False
    bounds = np.outer(penalty.weights, penalty.weights)
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
        found = best_direction(array_points(X), y, scaled.with_weights(scaled.c, a))
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


@pytest.mark.parametrize("least", [0.3, 0.02])
@pytest.mark.parametrize("name", [name for name in PENALTIES if PENALTIES[name].is_even])
def test_the_multipliers_between_two_sets_of_coordinates_are_those_of_the_dual_set(name, least):
    penalty, t = PENALTIES[name], 0.7
    rows, columns = np.array([0, 2, 3]), np.array([1, 4, 5])  # whole groups
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
        cp.sigma_max(tC[some, :][:, others]) <= t * penalty.c[rows[some[0]]] * penalty.c[columns[others[0]]]
        for some in blocks_among(penalty, rows)
        for others in blocks_among(penalty, columns)
    ]
    root = np.linalg.cholesky(np.linalg.inv(P))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(root.T @ (tC - T))), inside)
    problem.solve(solver="CLARABEL")
    found = dual.project_safe(dual.best_multiplier(P, T, t), t) - T
    assert float(np.sum((root.T @ found) ** 2)) <= problem.value * (1.0 + 3e-4 / least) + 1e-6


def test_no_multipliers_are_chosen_between_two_parts_of_one_group():
    """C is 0 inside a group, so that a clipped block of it would prove too much."""
    with pytest.raises(ValueError, match="a group is split between rows and columns"):
        PENALTIES["groups"].off_diagonal(np.array([0, 3]), np.array([1, 2]))


def blocks_among(penalty, indices):
    """The positions of each group among some coordinates."""
    return [np.flatnonzero(np.isin(indices, group)) for group in penalty.groups if np.isin(indices, group).any()]


def test_groups_of_one_are_the_l1_norm():
    groups, l1 = GroupNorms(C, np.arange(D)), PairPenalty(C)
    Z, order = draw_symmetric(0), np.array([4, 0, 5, 2])
    for U in draw_factors(l1, 4):
        assert groups.value(U) == pytest.approx(l1.value(U), rel=1e-13)
    for name in ("project_safe", "dual_norms", "support_function", "group_norms", "direction_norm"):
        np.testing.assert_allclose(getattr(groups, name)(Z), getattr(l1, name)(Z), rtol=1e-12, atol=1e-14)
    assert np.all(np.abs(fractions(groups.project_inexact(9.0 * Z))) <= np.outer(fractions(C), fractions(C)))
    for limit in range(5):
        np.testing.assert_array_equal(groups.first_groups(order, limit), order[:limit])
        np.testing.assert_array_equal(l1.first_groups(order, limit), order[:limit])
    np.testing.assert_array_equal(l1.group_sums(C), C)
    np.testing.assert_array_equal(l1.group_max(C), C)
