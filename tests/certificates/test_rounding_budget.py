"""What rounding may change is counted, term by term: each term against rationals, where leaving it out would be wrong.

Sums are tried on columns that are summed badly, so that what is lost is near the term; what data or matrices may be off
is made large, so that the worst case is attained up to the rounding of doubles.
"""

from fractions import Fraction

import numpy as np
import pytest
from posed import direction_problem, proved_shift
from rationals import badly_centred_column, centred, fractions, gram, is_semidefinite, lossy_columns, size

import diffrac_cvx as dc
from diffrac_cvx.certificates import direction_bounds, proof
from diffrac_cvx.certificates.direction_bounds import Dual, bracket_normalized, least_ratio, lower_bound
from diffrac_cvx.certificates.proof import (
    OF_MEANS,
    Inexact,
    Pencil,
    bound_at,
    is_positive,
    moment_of_sums,
    proved_multiple,
    proved_ratio,
    succeeds,
)
from diffrac_cvx.certificates.search import normalized_multiplier
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.dense import DensePoints
from diffrac_cvx.points.floating_point import UNIT, Whitening, round_up, rounding_of_whitening, sum_error, summands
from diffrac_cvx.points.linear_algebra import moment, symmetric
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.points.streamed import BLOCK
from diffrac_cvx.problem.direction_problem import DirectionProblem

ONE = np.eye(1)


def white_problem(Z, data_error=0.0, right_error=0.0):
    """Problem (15) in coordinates that are said to be off by so much."""
    D = Z.shape[1]
    return DirectionProblem(
        X=DensePoints(Z),
        a=np.zeros(D),
        c=np.zeros(D),
        scale=np.ones(D),
        has_offset=False,
        basis=np.eye(D),
        whitened=Whitening(data_error, right_error),
    )


# The model


@pytest.mark.parametrize("k", [1, 100, 2**12])
def test_gamma_is_not_below_what_k_roundings_make_of_one(k):
    u = Fraction(1, 2**53)
    assert (1 + u) ** k - 1 <= Fraction(sum_error(k)) * (1 + 4 * u)
    assert Fraction(sum_error(k)) <= ((1 + u) ** k - 1) * (1 + (k + 4) * u)


def test_a_sum_of_squares_in_the_worst_order_is_off_by_nearly_gamma():
    """So that a moment which is said to be exact, or off by a fewth of its terms, is not."""
    for n in (300, BLOCK + 500):
        X, u = lossy_columns(n), np.ones(n)
        lost = size(gram(fractions(X), fractions(u)) - fractions(moment(X, u)))
        said = white_problem(X).moment_error(moment(X, u), 1.0)
        assert said / 20 <= lost <= said
        assert said == pytest.approx(sum_error(summands(n) + 8) * np.mean(X**2, axis=0).sum(), rel=1e-9)


# A factorisation


def test_a_factorisation_that_rounding_lets_succeed_proves_nothing():
    lucky = 0
    for seed in range(120):
        B = np.random.default_rng(seed).standard_normal((5, 3))
        S = symmetric(B @ B.T)
        if succeeds(S) and not is_semidefinite(fractions(S)):
            lucky += 1
            assert not is_positive(S, 0.0)
    assert lucky > 0


@pytest.mark.parametrize("off", [0.0, 0.1])
def test_a_matrix_is_positive_where_all_that_are_so_near_to_it_are(off):
    for value in (0.5 * off, 0.99 * off, 1.01 * off + 1e-12, 2.0 * off + 1e-12):
        assert is_positive(np.diag([value, 1.0]), off) == (value > off)
    for n in (2, 6):
        S = np.eye(n)
        changed = sum_error(2 * n + 8) * (n - 1 + off)  # by Cholesky's own rounding, by the trace
        S[0, 0] = off + 0.8 * changed
        assert not is_positive(S, off)
        S[0, 0] = off + 1.3 * changed + UNIT
        assert is_positive(S, off)


def test_a_ratio_proved_for_a_singular_difference_holds_in_rationals():
    lucky = 0
    for seed in range(60):
        B = np.random.default_rng(seed).standard_normal((5, 3))
        S = symmetric(B @ B.T)
        S /= 2.0 ** np.ceil(np.log2(np.trace(S)))
        M = np.eye(5) - S
        lucky += succeeds(np.eye(5) - M) and not is_semidefinite(fractions(np.eye(5)) - fractions(M))
        t = Fraction(proved_ratio(Pencil(M, np.eye(5), 0.0, 0.0), 1.0, 1.0))
        assert is_semidefinite(t * fractions(np.eye(5)) - fractions(M))
    assert lucky > 0


@pytest.mark.parametrize("about", np.linspace(0.98, 1.01, 13))
@pytest.mark.parametrize("off", [(1e-3, 0.0), (0.0, 2e-3), (1e-3, 2e-3)])
def test_a_ratio_holds_for_all_matrices_as_near_as_is_said_however_it_is_guessed(about, off):
    off_M, right_error = off
    found = proved_ratio(Pencil(np.eye(2), np.eye(2), off_M, right_error), about, 1.0)
    assert found * (1.0 - right_error) >= 1.0 + off_M
    assert about < 0.999 or found < 1.02


@pytest.mark.parametrize("t", [0.5, 1.0, 40.0])
@pytest.mark.parametrize("n", [1, 4])
def test_a_ratio_is_raised_by_twice_what_forming_and_factorising_may_change(t, n):
    M, right = t * np.eye(n), np.eye(n)
    raised = proved_ratio(Pencil(M, right, 0.0, 0.0), t, 1.0) - t
    formed = sum_error(4) * 2.0 * t * n**0.5  # t R - M: a product and a difference, by their norms
    factorised = sum_error(2 * n + 8) * 2.0 * t * n  # Rump's bound, by the traces
    assert 2.0 * (formed + factorised) * (1.0 - 0.1) <= raised <= 2.0 * (formed + factorised) * 1.2


def test_a_right_side_of_which_rounding_hides_nearly_all_is_used_for_what_is_left():
    """t (1 - 0.99) >= 1: the steps are as long as what is left is small."""
    found = proved_ratio(Pencil(ONE, ONE, 0.0, 0.99), 1.0, 1.0)
    assert 100.0 <= found <= 1000.0
    assert proved_ratio(Pencil(ONE, ONE, 0.0, 1.0), 1.0, 1.0) == np.inf


@pytest.mark.parametrize("off", [(1e-3, 0.0), (0.0, 2e-3), (1e-3, 2e-3)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_shift_holds_for_all_matrices_as_near_as_is_said_however_it_is_guessed(sign, off):
    off_rest, off_A = off
    for about in np.linspace(-0.02, 0.01, 13) + sign:
        found = proved_shift(-sign * np.eye(2), np.eye(2), off_rest, off_A, about)
        assert -sign + found - abs(found) * off_A >= off_rest * (1.0 - 1e-12)
        assert about < sign - 1e-3 or found < sign + 0.03


def test_a_shift_that_has_to_be_much_larger_than_was_guessed_counts_what_that_makes_off():
    for about in np.linspace(0.3, 3.4, 100):
        assert proved_shift(-3.0 * np.eye(2), np.eye(2), 0.0, 0.1, about) * (1.0 - 0.1) >= 3.0 * (1.0 - 1e-12)


def test_a_shift_is_raised_by_twice_what_factorising_may_change():
    for n, theta in ((1, 2.0), (4, 2.0), (4, -3.0)):
        raised = proved_shift(-theta * np.eye(n), np.eye(n), 0.0, 0.0, theta) - theta
        formed = sum_error(4) * 2.0 * abs(theta) * n**0.5
        factorised = sum_error(2 * n + 8) * 2.0 * abs(theta) * n
        assert 2.0 * (formed + factorised) * (1.0 - 0.1) <= raised <= 2.0 * (formed + factorised) * 1.2


def test_a_shift_proved_for_a_singular_sum_holds_in_rationals():
    lucky = 0
    for seed in range(60):
        B = np.random.default_rng(seed).standard_normal((5, 3))
        rest = symmetric(B @ B.T) - np.eye(5)
        exact = fractions(rest)
        lucky += succeeds(rest + np.eye(5)) and not is_semidefinite(exact + fractions(np.eye(5)))
        found = Fraction(proved_shift(rest, np.eye(5), 0.0, 0.0, 1.0))
        assert is_semidefinite(exact + found * fractions(np.eye(5)))
    assert lucky > 0


# Whitened data


def test_whitened_data_that_are_off_as_far_as_is_said_have_moments_off_as_far_as_is_said():
    """One coordinate, and all of the weight where the data are: the bound is attained."""
    n, off = 10, 0.1
    for z, top in ((np.ones(n), 3.0), (np.eye(n)[0] * 2.0, 5.0)):
        u = np.where(z > 0.0, top, 1.0)
        rms = np.mean(z**2) ** 0.5
        moved = z * (1.0 + off / rms)
        problem = white_problem(z[:, None], data_error=off)
        M = moment(z[:, None], u)
        worst = float(np.mean(u * moved**2) - np.mean(u * z**2))
        assert worst <= problem.moment_error(M, top) <= worst * (1.0 + 1e-9)


def test_centring_in_the_worst_order_is_counted_in_whitened_data():
    n = 3000
    x = badly_centred_column(n)
    table = np.column_stack([x, -x])
    X = as_data(table)
    exact = (centred(table) - fractions(X))[:, :1]
    found = rounding_of_whitening(X[:, :1], ONE, X[:, :1], np.zeros(1))
    assert found.data_error / 100 <= size(exact) / n**0.5 <= found.data_error


@pytest.mark.parametrize("D", [1, 3])
def test_whitened_data_are_off_by_the_products_and_the_gram_matrix_by_what_that_and_its_sum_change(D):
    n = 40
    X = np.random.default_rng(D).standard_normal((n, D))
    W, diagonal = np.eye(D) / 4.0, np.full(D, 0.5)
    found = rounding_of_whitening(X, W, X @ W, diagonal)
    data_error = sum_error(D + n + 16) * np.sqrt(np.mean(np.sum(X**2, axis=1)) * D / 16.0)
    assert found.data_error == pytest.approx(data_error, rel=1e-9)
    mass = np.mean(np.sum((X @ W) ** 2, axis=1)) + 0.5 * D / 16.0
    residual = size(gram(fractions(X @ W), fractions(np.ones(n))) + fractions(W @ W / 2.0) - fractions(np.eye(D)))
    assert found.right_error >= residual
    exact = fractions(np.eye(D)) - gram(fractions(X @ W), fractions(np.ones(n)))
    white = rounding_of_whitening(X, W, X @ W, 16.0 * np.diag(exact).astype(float))
    mass = float(np.trace(np.eye(D)))
    others = size(exact - np.diag(np.diag(exact)))
    least = sum_error(n + D) * mass + 2.0 * mass**0.5 * white.data_error
    assert others + least <= white.right_error <= others + 2.0 * least + 1e-14


def test_rows_that_are_summed_badly_have_moments_and_a_gram_matrix_off_by_less_than_is_said():
    n = 1500
    table = lossy_columns(n) * np.array([1.0, 3.0])
    table[:, 1] += np.where(np.arange(n) < 2, 0.5, 0.0) - 1.0 / n
    rows, u = as_rows(table, warn=False), np.where(np.arange(n) < 2, 1.0, 2.0**-0.5)
    problem = direction_problem(rows, 1.0, dc.Penalty(c=0.1))
    X = centred(table) * fractions(problem.scale)
    W = fractions(problem.W)
    exact = gram(X, fractions(np.ones(n))) + np.diag(fractions(problem.c) ** 2)
    off = size(W.T @ exact @ W - fractions(np.eye(2)))
    assert problem.rounding.right_error / 1000 <= off <= problem.rounding.right_error < 1e-11
    M = problem.X.moment(u)
    Mz = symmetric(problem.W.T @ M @ problem.W)
    off = size(W.T @ gram(X, fractions(u)) @ W - fractions(Mz))
    said = problem.moment_error(Mz, 1.0, float(np.trace(M)))
    assert said / 1000 <= off <= said
    assert problem.moment_error(Mz, 1.0) == problem.moment_error(Mz, 1.0, float(np.trace(problem.A)))
    assert problem.moment_error(Mz, 2.0) == pytest.approx(2.0 * problem.moment_error(Mz, 1.0))
    least = sum_error(problem.X.summands + 16) * float(np.trace(M)) * float(np.sum(problem.W**2))
    assert least <= said <= 1.1 * least
    gram_size = float(np.trace(problem.A + np.diag(problem.c**2)) * np.sum(problem.W**2))
    assert sum_error(problem.X.summands + 100) * gram_size <= problem.rounding.right_error


def recorded_pencils(monkeypatch, module=proof):
    """The pencils that are to be proved."""
    found = []

    def record(pencil, t, least):
        found.append(pencil)
        return proved_ratio(pencil, t, least)

    monkeypatch.setattr(module, "proved_ratio", record)
    return found


def test_a_multiplier_in_whitened_coordinates_is_off_by_less_than_is_said_and_by_something(monkeypatch):
    """W'CW is computed, and what its rounding changes is added to what the right side may be off."""
    pencils, off = recorded_pencils(monkeypatch), 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = as_data(rng.standard_normal((30, 4)) @ rng.standard_normal((4, 4)))
        problem = direction_problem(X, 1.0, dc.Penalty(c=0.5))
        C = symmetric(problem.coupling.box * rng.uniform(-1.0, 1.0, (4, 4)))
        M = problem.Z.moment(np.ones(30))
        least_ratio(problem, Inexact(symmetric(M), 1e-15), C)
        pencil = pencils[-1]
        share = Fraction(float(pencil.right[0, 1]) / float(symmetric(problem.W.T @ C @ problem.W)[0, 1]))
        W = fractions(problem.W)
        exact = fractions(np.eye(4)) + W.T @ fractions(C) @ W
        lost = size(exact - fractions(pencil.right))
        allowed = pencil.right_error - problem.rounding.right_error
        assert share == 1
        assert 0.0 < lost <= allowed
        mass = float(np.sum(problem.W**2) * np.linalg.norm(C))
        assert sum_error(2 * 4) * mass <= allowed <= sum_error(2 * 4 + 20) * mass
        assert pencil.off_M == 1e-15
        off += lost > 0.0
    assert off == 3


@pytest.mark.parametrize("penalty", [dc.Penalty(a=0.2), dc.Penalty(c=0.2)])
def test_a_lower_bound_counts_what_its_moment_and_its_right_side_may_be_off(monkeypatch, penalty):
    X, u = as_data(np.random.default_rng(0).standard_normal((30, 3))), np.ones(30)
    problem, pencils = direction_problem(X, 1.0, penalty), recorded_pencils(monkeypatch)
    lower_bound(problem, 2.0 * u, 0.5, None)
    assert pencils[-1].off_M == problem.moment_error(problem.Z.moment(2.0 * u), 2.0) > 0.0
    assert pencils[-1].right_error == problem.rounding.right_error > 0.0


def test_the_bound_of_many_rows_counts_what_their_moment_may_be_off(monkeypatch):
    table = np.random.default_rng(0).standard_normal((50, 3))
    problem, pencils = direction_problem(as_rows(table), 1.0, dc.Penalty(c=0.2)), recorded_pencils(monkeypatch)
    M = problem.X.moment(np.ones(50))
    least_ratio(problem, moment_of_sums(problem, M), np.full((3, 3), 7.0))
    Mz = symmetric(problem.W.T @ M @ problem.W)
    assert pencils[-1].off_M == problem.moment_error(Mz, 0.0, float(np.trace(M))) > 0.0
    inside = np.linalg.inv(problem.W).T @ (pencils[-1].right - np.eye(3)) @ np.linalg.inv(problem.W)
    assert np.all(np.abs(inside) <= problem.coupling.box + 1e-12)  # a multiplier outside its box is clipped


# The bound, its mean, and its box


def test_a_bound_is_not_above_that_of_the_exact_mean():
    """A mean in which each small number is lost is below the exact one by much more than its last place."""
    x = np.full(128, 0.99 * 2.0**-53)
    x[:8] = 1.0
    mean = float(np.mean(x))
    exact = sum(fractions(x)) / 128
    assert Fraction(mean) < exact
    assert Fraction(bound_at(1.0, mean)) <= 1 - exact
    for t, mean, k in ((0.3, 0.7, OF_MEANS), (1.0, 1.0, OF_MEANS), (3.0, 0.1, 10**5)):
        product = Fraction(t) * Fraction(mean)
        found = 1 - Fraction(bound_at(t, mean, k))
        assert product * (1 + Fraction(sum_error(k))) + Fraction(UNIT) <= found
        assert found <= product * (1 + Fraction(sum_error(k + 10))) + 4 * Fraction(UNIT)
    assert 1 - Fraction(bound_at(1e-30, 1e-30)) >= Fraction(UNIT)  # the difference itself is rounded


def test_the_bound_of_many_rows_counts_the_terms_of_the_mean(monkeypatch):
    said = []
    monkeypatch.setattr(direction_bounds, "bound_at", lambda t, mean, k: said.append(k) or bound_at(t, mean, k))
    table = np.random.default_rng(0).standard_normal((BLOCK + 50, 2))
    problem = direction_problem(as_rows(table), 1.0, dc.Penalty(c=0.2))
    direction_bounds.certify_in_one_pass(problem, np.eye(2), None)
    assert min(said) >= OF_MEANS + BLOCK


def test_poor_weights_of_a_solver_take_nothing_from_the_bound_of_many_rows():
    problem = direction_problem(as_rows(np.random.default_rng(0).standard_normal((60, 1))), 1.0, dc.Penalty(c=0.05))
    plain = direction_bounds.bracket_rows(problem, ONE, Dual(C=0.0 * ONE)).lower
    assert plain > 0.0
    assert direction_bounds.bracket_rows(problem, ONE, Dual(np.linspace(1.0, 9.0, 60), 0.0 * ONE)).lower >= plain


def test_the_box_of_a_multiplier_is_inside_the_exact_one():
    rounded_up = 0
    for seed in range(20):
        c = np.random.default_rng(seed).uniform(0.1, 1.0, 4)
        problem = direction_problem(np.zeros((2, 4)), 1.0, dc.Penalty(c=c))
        exact = np.outer(fractions(problem.c), fractions(problem.c))
        off = ~np.eye(4, dtype=bool)
        assert np.all(fractions(problem.coupling.box)[off] <= exact[off])
        assert np.all(problem.coupling.box[off] >= exact[off].astype(float) * (1.0 - 8 * UNIT))
        rounded_up += int(np.sum(fractions(np.outer(problem.c, problem.c))[off] > exact[off]))
    assert rounded_up > 0


# The normalised problem (21)


@pytest.mark.parametrize("scale_", [1.0, 1e-3, 1e3])
def test_the_bracket_of_the_normalised_problem_holds_in_rationals_where_it_is_narrow(scale_):
    """With one feature V = 1/A is the only one: the optimum is c^2/A - mean |x| / A^1/2."""
    outside = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        table = rng.standard_normal((9, 1)) * scale_
        a, c = 0.2 * scale_, 0.3 * scale_
        problem = direction_problem(as_data(table), 1.0, dc.Penalty(a, c))
        U = rng.standard_normal((1, 2))
        found = bracket_normalized(problem, U)
        X = centred(table)
        A = sum(X[:, 0] ** 2) / 9 + Fraction(a) ** 2
        gain, l1 = sum(abs(X[:, 0])) / 9, Fraction(c) ** 2 / A
        square = gain**2 / A  # of the gain at V = 1/A

        def is_above(bound, l1=l1, square=square):
            """Whether a number is above l1 - sqrt(square)."""
            rest = l1 - Fraction(bound)
            return rest < 0 or rest**2 < square

        assert not is_above(found.lower)
        assert found.upper - found.lower < 1e-10
        assert is_above(found.upper)
        plain = problem.cost(U / np.linalg.norm(problem.R @ U)) - 1.0 - problem.gain(U / np.linalg.norm(problem.R @ U))
        outside += not is_above(plain)
        assert 4.0 * sum_error(9) <= found.upper - plain <= 1e-13
    assert outside > 0  # the value as it is computed is below the exact one


def test_what_whitened_data_are_off_is_counted_in_the_bracket_of_the_normalised_problem():
    Z = as_data(np.random.default_rng(0).standard_normal((20, 2)))
    Z = Z @ np.linalg.inv(np.linalg.cholesky(Z.T @ Z / 20)).T
    U, off = np.eye(2), 0.01
    exact, moved = (bracket_normalized(white_problem(Z, by), U) for by in (0.0, off))
    assert moved.upper - exact.upper == pytest.approx(2.0 * off, rel=1e-6)  # l1 = 0
    worst = bracket_normalized(white_problem(Z * (1.0 + off / 2**0.5), 0.0), U)
    assert moved.lower <= worst.lower < exact.lower
    aside = bracket_normalized(white_problem(Z, 0.0, off), U)
    assert aside.lower <= exact.lower - off / 4


def test_a_multiplier_of_the_normalised_problem_holds_where_its_matrices_are_off():
    """M/2 - C - Diag(c)^2 <= theta A, with a moment that is off by so much in the coordinates W."""
    problem = direction_problem(as_data(np.random.default_rng(1).standard_normal((20, 3))), 1.0, dc.Penalty(c=0.3))
    half = problem.X.moment(np.ones(20)) / 2
    C = np.zeros((3, 3))
    W, c2 = problem.W, np.diag(problem.c**2)
    for off in (0.0, 0.05):
        theta = normalized_multiplier(problem, half, C, off)
        S = W.T @ (theta * problem.A + c2 - half) @ W
        assert np.linalg.eigvalsh(S)[0] >= off
        exact = fractions(W).T @ (Fraction(theta) * fractions(problem.A) + fractions(c2 - half)) @ fractions(W)
        assert is_semidefinite(exact - Fraction(off) * fractions(np.eye(3)))


def test_what_a_multiplier_of_the_normalised_problem_is_made_of_is_off_by_less_than_is_said(monkeypatch):
    """W'(C + Diag(c)^2 - M/2)W is computed, and its rounding is added to what the moment may be off."""
    said = []
    monkeypatch.setattr(proof, "proved_multiple", lambda *given: said.append(given[0]) or proved_multiple(*given))
    rng = np.random.default_rng(1)
    problem = direction_problem(as_data(rng.standard_normal((20, 3))), 1.0, dc.Penalty(c=0.3))
    half = problem.X.moment(np.ones(20)) / 2
    C = symmetric(problem.coupling.box * rng.uniform(-1.0, 1.0, (3, 3)))
    for off_M in (0.0, 1e-3):
        normalized_multiplier(problem, half, C, off_M)
        rest, off_rest = -said[-1].M, said[-1].off_M
        shrunk = C + np.diag(problem.c**2)
        W = fractions(problem.W)
        lost = size(W.T @ (fractions(shrunk) - fractions(half)) @ W - fractions(rest))
        mass = float(np.sum(problem.W**2) * (np.linalg.norm(shrunk) + np.linalg.norm(half)))
        assert 0.0 < lost <= off_rest - off_M
        assert sum_error(4 * 3) * mass <= off_rest - off_M <= sum_error(4 * 3 + 30) * mass
        assert said[-1].right_error == problem.rounding.right_error > 0.0


def test_up_is_above_a_number_that_was_computed_by_so_many_operations():
    x = 1.0
    for _ in range(200):
        x *= 1.0 + 2.0**-52  # each product is rounded
    exact = (1 + Fraction(1, 2**52)) ** 200
    assert Fraction(round_up(x, 200)) >= exact
