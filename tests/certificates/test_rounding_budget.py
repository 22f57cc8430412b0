"""Rounding errors of the proofs against exact rationals, term by term, on inputs where omitting the term is wrong.

Sums are tried on columns that are summed badly, so that what is lost is near the term; what data or matrices may be off
is made large, so that the worst case is attained up to the rounding of doubles.
"""

from fractions import Fraction

import numpy as np
import pytest
from instances import centered_normal
from penalties import PenaltyOfPairs, draw_sides
from posed import direction_problem
from rationals import centered, fractions, gram, lossy_columns, opposite_columns, size

import diffrac_cvx as dc
from diffrac_cvx.certificates import direction_bounds, screening
from diffrac_cvx.certificates.direction_bounds import bracket_normalized
from diffrac_cvx.certificates.proof import MEAN_ROUNDINGS, Multipliers, bound_at, sums_of_rows
from diffrac_cvx.points import floating_point
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.dense import array_rows
from diffrac_cvx.points.floating_point import (
    UNIT_ROUNDOFF,
    WhiteningErrorBounds,
    outside_norm_bound,
    round_up,
    sum_error,
    whitening_error_bounds,
)
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.points.streamed import BLOCK_ROWS
from diffrac_cvx.problem.direction_problem import Coordinates, DirectionProblem
from diffrac_cvx.problem.penalties.base import PairPenalty

ONE = np.eye(1)


def white_problem(Z, data_error=0.0, right_error=0.0):
    """Problem (15) in coordinates that are said to be off by so much."""
    zeros, ones = np.zeros(Z.shape[1]), np.ones(Z.shape[1])
    X, coordinates = array_rows(Z), Coordinates(ones, has_offset=False, basis=np.diag(ones))
    error = WhiteningErrorBounds(data_error, right_error)
    return DirectionProblem(X, X, PairPenalty(zeros), coordinates, whitened=error)


# The model


@pytest.mark.parametrize("k", [1, 100, 2**12])
def test_gamma_is_not_below_what_k_roundings_make_of_one(k):
    u = Fraction(1, 2**53)
    assert (1 + u) ** k - 1 <= Fraction(sum_error(k)) * (1 + 4 * u)
    assert Fraction(sum_error(k)) <= ((1 + u) ** k - 1) * (1 + (k + 4) * u)


def test_up_is_above_a_number_that_was_computed_by_so_many_operations():
    x = 1.0
    for _ in range(200):
        x *= 1.0 + 2.0**-52  # each product is rounded
    assert Fraction(round_up(x, 200)) >= (1 + Fraction(1, 2**52)) ** 200
    assert 1.0 + 4 * UNIT_ROUNDOFF < round_up(1.0) < 1.0 + 16 * UNIT_ROUNDOFF
    assert round_up(0.0) == 0.0


# Whitened data


def test_centering_in_the_worst_order_is_counted_in_whitened_data():
    n, table = 3000, opposite_columns(3000)
    X = as_data(table)[:, :1]
    exact = centered(table)[:, :1] - fractions(X)
    found = whitening_error_bounds(X, ONE, X, np.zeros(1))
    assert found.data_error / 100 <= size(exact) / n**0.5 <= found.data_error


@pytest.mark.parametrize("outside", [1e-3, 1.0, 10.0])
def test_data_outside_the_span_of_their_coordinates_are_off_by_all_of_it_and_so_is_the_right_side(outside):
    """One column of squares one: longer by so much, its square is (1 + outside)^2."""
    x = np.where(np.arange(10) % 2, 1.0, -1.0)[:, None]
    found = whitening_error_bounds(x, ONE, x, np.zeros(1), outside)
    assert outside <= found.data_error <= outside * (1.0 + 1e-10)
    assert (1.0 + outside) ** 2 - 1.0 <= found.right_error <= ((1.0 + outside) ** 2 - 1.0) * (1.0 + 1e-10)


def test_what_is_left_outside_is_known_up_to_the_rounding_of_the_norm_of_all_data():
    for n, D, outside, length in ((100, 300, 0.0, 3.0), (100, 300, 1e-9, 3.0), (10, 20, 0.5, 0.0)):
        found = outside_norm_bound((np.zeros((D, 1)), outside, length), n)
        least = outside + sum_error(n + D) * n**0.5 * length
        assert least <= found <= 1.1 * least


def test_sums_over_many_columns_count_their_terms(monkeypatch):
    """Of products with W, where the sizes of both are attained by no columns: their closed form, in a coarse unit.

    Of the ridge: after 32 ones each square is less than half a unit of the sum that it is added to.
    """
    D = 8000
    W = np.full((D, 1), 0.99 * 2.0**-26.5)
    W[:32] = 1.0
    exact = (fractions(W) ** 2).sum() / 32 - 1
    found = whitening_error_bounds(np.zeros((2, D)), W, np.zeros((2, 1)), np.full(D, 1.0 / 32.0))
    assert exact <= Fraction(found.right_error) <= exact * 100
    monkeypatch.setattr(floating_point, "UNIT_ROUNDOFF", 2.0**-40)
    found = whitening_error_bounds(np.ones((2, D)), W, np.ones((2, D)) @ W, np.zeros(D))
    assert sum_error(D) <= found.data_error / (D**0.5 * np.linalg.norm(W)) <= sum_error(D + 50)


@pytest.mark.parametrize("D", [1, 3])
def test_whitened_data_are_off_by_the_products_and_the_gram_matrix_by_what_that_and_its_sum_change(D):
    n = 40
    X, W = np.random.default_rng(D).standard_normal((n, D)), np.eye(D) / 4.0
    Z, one = X @ W, fractions(np.eye(D))
    found = whitening_error_bounds(X, W, Z, np.full(D, 0.5))
    data_error = sum_error(D + n + 16) * np.sqrt(np.mean(np.sum(X**2, axis=1)) * D / 16.0)
    assert found.data_error == pytest.approx(data_error, rel=1e-9)
    exact = one - gram(fractions(Z), fractions(np.ones(n)))
    assert found.right_error >= size(fractions(W @ W / 2.0) - exact)
    white = whitening_error_bounds(X, W, Z, 16.0 * np.diag(exact).astype(float))
    others = size(exact - np.diag(np.diag(exact)))
    least = sum_error(n + D) * D + 2.0 * D**0.5 * white.data_error
    assert others + least <= white.right_error <= others + 2.0 * least + 1e-14


def test_rows_that_are_summed_badly_have_a_gram_matrix_off_by_less_than_is_said():
    n, table = 1500, lossy_columns(1500) * np.array([1.0, 3.0])
    table[:, 1] += np.where(np.arange(n) < 2, 0.5, 0.0) - 1.0 / n
    problem = direction_problem(as_rows(table, warn=False), 1.0, dc.Penalty(c=0.1))
    X, W = centered(table) * fractions(problem.coordinates.scale), fractions(problem.W)
    exact = gram(X, fractions(np.ones(n))) + np.diag(fractions(problem.c) ** 2)
    off, right_error = size(W.T @ exact @ W - fractions(np.eye(2))), problem.whitening_error.right_error
    assert right_error / 1000 <= off <= right_error < 1e-11
    terms, W2 = problem.X.accumulation_length, float(np.sum(problem.W**2))
    assert sum_error(terms + 100) * float(np.trace(problem.A + np.diag(problem.c**2)) * W2) <= right_error


# The bound, its mean, and its box


def test_a_bound_is_not_above_that_of_the_exact_mean():
    """A mean in which each small number is lost is below the exact one by much more than its last place."""
    x = np.full(128, 0.99 * 2.0**-53)
    x[:8] = 1.0
    mean, exact = float(np.mean(x)), sum(fractions(x)) / 128
    assert Fraction(mean) < exact
    assert Fraction(bound_at(1.0, mean)) <= 1 - exact
    for t, mean, k in ((0.3, 0.7, MEAN_ROUNDINGS), (1.0, 1.0, MEAN_ROUNDINGS), (3.0, 0.1, 10**5)):
        product, found = Fraction(t) * Fraction(mean), 1 - Fraction(bound_at(t, mean, k))
        assert product * (1 + Fraction(sum_error(k))) + Fraction(UNIT_ROUNDOFF) <= found
        assert found <= product * (1 + Fraction(sum_error(k + 10))) + 4 * Fraction(UNIT_ROUNDOFF)
    assert 1 - Fraction(bound_at(1e-30, 1e-30)) >= Fraction(UNIT_ROUNDOFF)  # the difference itself is rounded
    for t, mean in ((np.inf, 0.5), (np.nan, 0.5), (np.inf, 0.0)):
        assert bound_at(t, mean) == -np.inf


def test_the_bound_of_many_rows_counts_the_terms_of_the_mean(monkeypatch):
    said = []
    monkeypatch.setattr(direction_bounds, "bound_at", lambda t, mean, k: said.append(k) or bound_at(t, mean, k))
    table = np.random.default_rng(0).standard_normal((BLOCK_ROWS + 50, 2))
    problem = direction_problem(as_rows(table), 1.0, dc.Penalty(c=0.2))
    direction_bounds.certify_in_one_pass(problem, np.eye(2), None)
    assert min(said) >= MEAN_ROUNDINGS + BLOCK_ROWS


@pytest.mark.parametrize("least", [1e-9, 1e-1, 1.0])
def test_no_weight_of_one_pass_over_the_rows_is_above_its_bound(least):
    """Of a row whose q is below both floors, between them, or above."""
    x = np.random.default_rng(0).choice([-1.0, 1.0], (40, 1)) * np.append(least, np.ones(39))[:, None]
    problem = direction_problem(as_rows(x - x.mean(axis=0)), 1.0, dc.Penalty())
    sums = sums_of_rows(problem, np.eye(1))
    q, floor = problem.X.quadratic_forms(sums.U), 1e-12 * float(np.sum(sums.U * (problem.A @ sums.U)))
    assert np.max(1.0 / np.sqrt(np.maximum(q, floor))) <= sums.largest[0] * (1.0 + 1e-12)


@pytest.mark.parametrize("least", [1e-9, 1e-1, 1.0])
def test_the_gram_matrix_of_one_pass_over_the_rows_and_its_mean_are_of_the_same_weights(least):
    x = np.random.default_rng(0).choice([-1.0, 1.0], (40, 1)) * np.append(least, np.ones(39))[:, None]
    problem = direction_problem(as_rows(x - x.mean(axis=0)), 1.0, dc.Penalty())
    sums = sums_of_rows(problem, np.eye(1))
    floor = 1e-12 * float(np.sum(sums.U * (problem.A @ sums.U)))
    u = 1.0 / np.sqrt(np.maximum(problem.X.quadratic_forms(sums.U), floor))
    np.testing.assert_allclose(sums.M, problem.X.weighted_gram(u), rtol=1e-12)
    assert sums.inverse_mean == pytest.approx(np.mean(1.0 / u), rel=1e-12)


@pytest.mark.parametrize("kind", ["l1", "pairs"])
def test_the_box_of_a_multiplier_is_inside_the_exact_one(kind):
    rounded_up, off = 0, ~np.eye(4, dtype=bool)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        c, r = rng.uniform(0.1, 1.0, 4), draw_sides(rng, 4) if kind == "pairs" else np.ones((4, 4))
        problem = direction_problem(
            np.zeros((2, 4)), 1.0, PenaltyOfPairs(r, c=c) if kind == "pairs" else dc.Penalty(c=c)
        )
        exact = (fractions(r) * np.outer(fractions(problem.c), fractions(problem.c)))[off]
        box = problem.pair_penalty.half_width[off]
        assert np.all(fractions(box) <= exact)
        assert np.all(box >= exact.astype(float) * (1.0 - 8 * UNIT_ROUNDOFF))
        rounded_up += int(np.sum(fractions(r * np.outer(problem.c, problem.c))[off] > exact))
    assert rounded_up > 0


# The normalised problem (21)


@pytest.mark.parametrize("scale_", [1.0, 1e-3, 1e3])
def test_the_bracket_of_the_normalized_problem_holds_in_rationals_where_it_is_narrow(scale_):
    """With one feature V = 1/A is the only one: the optimum is c^2/A - mean |x| / A^1/2."""
    outside = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        table, a, c = rng.standard_normal((9, 1)) * scale_, 0.2 * scale_, 0.3 * scale_
        problem, U = direction_problem(as_data(table), 1.0, dc.Penalty(a, c)), rng.standard_normal((1, 2))
        found, X = bracket_normalized(problem, U), centered(table)
        A = sum(X[:, 0] ** 2) / 9 + Fraction(a) ** 2
        l1, square = Fraction(c) ** 2 / A, (sum(abs(X[:, 0])) / 9) ** 2 / A  # of the gain at V = 1/A

        def is_above(bound, l1=l1, square=square):
            """Whether a number is above l1 - sqrt(square)."""
            rest = l1 - Fraction(bound)
            return rest < 0 or rest**2 < square

        assert not is_above(found.lower)
        assert is_above(found.upper)
        assert found.upper - found.lower < 1e-10
        V = U / np.linalg.norm(problem.R @ U)
        plain = problem.convex_term(V) - 1.0 - problem.mean_sqrt(V)
        outside += not is_above(plain)
        assert 4.0 * sum_error(9) <= found.upper - plain <= 1e-13
    assert outside > 0  # the value as it is computed is below the exact one


def test_a_bound_on_the_normalized_problem_is_not_above_that_of_the_exact_mean_and_box(monkeypatch):
    """The mean loses small numbers, or is one beside t / 2; what is proved positive is not asked here."""
    seen = []
    monkeypatch.setattr(screening, "eliminate", lambda split, *_: seen.append(split.problem) or seen)
    x = np.full(128, 0.99 * 2.0**-53)
    x[:8] = 1.0
    problem = direction_problem(centered_normal(128, 3), 1.0, dc.Penalty(c=[0.3, 0.7, 0.9]))
    for t, means in ((1e-6, x), (1.0, np.full(128, 2.0**-60))):
        monkeypatch.setattr(DirectionProblem, "mean_inverse", lambda *_, means=means: float(np.mean(means)))
        bound = screening.prove_normalized(problem, Multipliers(np.ones(128), t))
        assert Fraction(bound) <= -(sum(fractions(means)) / 256 + Fraction(t) / 2)
    for t in np.random.default_rng(0).uniform(0.1, 1.0, 50):
        screening.prove_normalized(problem, Multipliers(np.ones(128), float(t)))
        assert np.all(fractions(seen[-1].c) ** 2 * Fraction(float(t)) / 2 <= fractions(problem.c) ** 2)


def test_the_multiplier_of_the_normalized_problem_is_in_its_units():
    X = centered_normal(12, 4)
    X[:, 0] *= 2.0
    for lam in (0.05, 0.5):
        found = dc.solve(dc.v_space_normalized(X, lam=lam, ridge=0.1), "CLARABEL")
        (proof,) = found.certificate.proofs
        assert np.abs(proof.C_values).max() > 0.1 * lam
        assert found.upper - found.lower < 1e-3


def test_what_whitened_data_are_off_is_counted_in_the_bracket_of_the_normalized_problem():
    Z, off = centered_normal(20, 2), 0.01
    Z = Z @ np.linalg.inv(np.linalg.cholesky(Z.T @ Z / 20)).T

    def found(Z, *errors):
        return bracket_normalized(white_problem(Z, *errors), np.eye(2))

    exact, moved = found(Z), found(Z, off)
    assert moved.upper - exact.upper == pytest.approx(2.0 * off, rel=1e-6)  # l1 = 0
    assert moved.lower <= found(Z * (1.0 + off / 2**0.5)).lower < exact.lower
    assert found(Z, 0.0, off).lower <= exact.lower - off / 4
