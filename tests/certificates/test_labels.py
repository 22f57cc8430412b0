"""Bounds on labels by inequalities: rows that hold for all signs, and the rounding errors of their matrix."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from rationals import fractions

from diffrac_cvx.certificates.labels import (
    LabelDual,
    LabelProblem,
    Rows,
    centering_errors,
    clique_rows,
    factorization_error,
    join_rows,
    relative,
)


def test_rows_of_cliques_hold_for_all_signs_with_equality_for_some():
    rng, z = np.random.default_rng(0), np.array(list(product((-1.0, 1.0), repeat=9)))
    for q in (3, 5, 7):
        points = np.sort([rng.permutation(9)[:q] for _ in range(6)], axis=1)
        rows = clique_rows(points, rng.choice(np.array([-1, 1], np.int8), points.shape), np.ones(6))
        assert rows.invalid() == ""
        terms = rows.coefficients * z[:, rows.first] * z[:, rows.second]
        left = np.add.reduceat(terms, np.append(0, rows.ends[:-1]), axis=1)
        assert np.all(left.max(axis=0) == rows.right)


def test_coefficients_of_larger_signs_are_no_row():
    rows = clique_rows(np.array([[0, 1, 2]]), np.array([[1, 2, -2]], np.int8), np.ones(1))
    assert "signs" in rows.invalid()
    assert "right side" in rows._replace(coefficients=-np.ones(3), right=np.array([0.9])).invalid()
    assert "in order" in clique_rows(np.array([[0, 1, 1]]), np.ones((1, 3), np.int8), np.ones(1)).invalid()


def test_a_row_is_on_all_pairs_of_an_odd_number_of_chunklets():
    """Of four signs sum z_i z_j may be -2, below -(q - 1)/2."""
    even = clique_rows(np.arange(4)[None], np.ones((1, 4), np.int8), np.ones(1))
    rows = clique_rows(np.arange(3)[None], np.ones((1, 3), np.int8), np.ones(1))
    four = Rows(rows.kinds, rows.ends + 1, *(np.append(part, part[-1]) for part in rows[2:5]), *rows[5:])
    assert "odd number" in even.invalid()
    assert "odd number" in four.invalid()
    for other in (rows._replace(first=np.array([0, 0, 0])), rows._replace(second=np.array([1, 2, 3]))):
        assert "all pairs of its chunklets" in other.invalid()


def label_problem(X, c=0.0, a=0.0, nu=0.0):
    """The problem of a table without weights and constraints."""
    (n, d), ones = X.shape, np.ones(len(X))
    return LabelProblem(X, nu, a * np.ones(d), c * np.ones(d), ones, np.arange(n), ones, np.ones(d, dtype=bool))


def test_nothing_is_proved_if_the_best_direction_may_be_arbitrarily_long():
    """Of two equal columns without a penalty, however the least eigenvalue of their Gram matrix is rounded."""
    for seed in range(30):
        x = np.random.default_rng(seed).standard_normal((9, 1))
        problem = label_problem(np.hstack([x, x]))
        assert problem.least == 0.0
        assert problem.lower_bound(LabelDual(np.full(9, 10.0))) == -np.inf


def test_the_least_eigenvalue_of_the_metric_is_certified_if_it_exceeds_all_errors():
    """Of 300 equal columns it is the ridge, and a factorisation may be off by more than their sums."""
    X, found = np.repeat(np.random.default_rng(0).standard_normal((3, 1)), 300, axis=1), []
    for a in np.geomspace(1e-7, 1e-4, 40):
        problem = label_problem(X, a=a)
        margin = problem.error + 2.0 * factorization_error(problem.A)
        found.append(problem.least > 0.0)
        assert not found[-1] or problem.ridge[0] >= 1.9 * margin
    assert 0 < sum(found) < 40


def test_the_box_of_a_multiplier_and_its_diagonal_are_inside_the_exact_ones():
    rounded_up = np.zeros(2, dtype=int)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem = label_problem(1e-6 * rng.standard_normal((6, 4)), rng.uniform(0.1, 1.0, 4))
        c, box = fractions(problem.c / problem.scale), problem.box
        M, _, _ = problem.dual_matrix(LabelDual(np.ones(6)))
        diagonal = fractions(np.diag(M)[6:]) - fractions(np.diag(problem.A))
        assert np.all(fractions(box) <= np.outer(c, c))
        assert np.all(diagonal <= fractions(problem.c) ** 2)
        rounded_up += [
            int(np.sum(fractions(np.outer(problem.c, problem.c)) > np.outer(*2 * [fractions(problem.c)]))),
            int(
                np.sum(
                    fractions(np.diag(problem.A) + problem.c**2) - fractions(np.diag(problem.A))
                    > fractions(problem.c) ** 2
                )
            ),
        ]
    assert np.all(rounded_up > 0)


def test_the_error_of_the_matrix_counts_its_three_blocks():
    X = np.random.default_rng(0).standard_normal((8, 3)) + 100.0
    problem = label_problem(X, a=0.3)
    trace, centering, rounding = np.trace(problem.A), np.linalg.norm(problem.column_error), relative(2 * 8 + 32)
    blocks = [rounding, 2.0 * (centering + rounding * trace**0.5)]
    blocks.append(centering * (2.0 * trace**0.5 + centering) + rounding * trace)
    assert min(blocks) > 1e-3 * sum(blocks)
    assert problem.error >= sum(blocks)


def test_each_error_counts_the_terms_of_its_sum():
    X, k = np.random.default_rng(0).standard_normal((300, 2)), 1000
    assert np.all(centering_errors(X) >= 2.0 * relative(300) * np.abs(X).max(axis=0))
    assert factorization_error(np.eye(300)) >= 300 * relative(2 * 300)
    problem, mu = label_problem(X[:5], a=0.3), np.ones(5)
    rows = clique_rows(np.tile([0, 1, 2], (k, 1)), np.ones((k, 3), np.int8), np.ones(k))
    M, error, total = problem.dual_matrix(LabelDual(mu, rows))
    assert error >= problem.error + 2.0 * relative(k) * np.linalg.norm(np.triu(M[:5, :5], 1))
    assert total >= (5.0 + k) * (1.0 + relative(k))


def test_a_bound_is_the_same_in_all_units_of_the_columns():
    rng, unit = np.random.default_rng(0), 2.0 ** np.array([0, 7, -9])
    X, C, mu = (
        rng.standard_normal((10, 3)),
        np.array([[0, 0.02, 0.01], [0.02, 0, -0.02], [0.01, -0.02, 0]]),
        np.ones(10),
    )
    plain, other = (label_problem(X * one, c=0.2 * one, a=0.3 * one) for one in (np.ones(3), unit))
    assert (
        plain.lower_bound(LabelDual(mu, C=C)) == other.lower_bound(LabelDual(mu, C=C * np.outer(unit, unit))) > -np.inf
    )


def test_signs_of_points_in_their_chunklets_turn_the_rows_of_the_matrix():
    X, sign = np.random.default_rng(0).standard_normal((6, 2)), np.array([1.0, -1.0, -1.0, 1.0, -1.0, 1.0])
    ones = np.ones(6)
    plain, turned = (
        LabelProblem(X, 0.3, ones[:2], ones[:2], ones, np.arange(6), one, np.ones(2, dtype=bool)).dual_matrix(
            LabelDual(ones)
        )[0]
        for one in (ones, sign)
    )
    both = np.append(sign, np.ones(2))
    np.testing.assert_array_equal(turned, plain * np.outer(both, both))


def test_the_bound_is_lower_by_all_errors_of_its_matrix_and_nothing_is_proved_by_an_indefinite_one():
    X, weights, a, mu, parts = instance("near zero")
    problem = LabelProblem(X, 0.5, a, np.zeros(3), weights, np.arange(8), np.ones(8), np.ones(3, dtype=bool))
    rows, mu = clique_rows(*parts[0]), mu + 1.0
    for error in (0.0, 1e-3):
        problem.error = error
        M, total_error, total = problem.dual_matrix(LabelDual(mu, rows))
        lost = (total_error + factorization_error(M)) * (8 + 1.0 / problem.least)
        assert lost > 1e-14
        assert Fraction(problem.lower_bound(LabelDual(mu, rows))) <= 1 - Fraction(total) - Fraction(lost)
    assert problem.lower_bound(LabelDual(mu - 10.0, rows)) == -np.inf


def exact_matrix(problem, table, weights, a, mu, parts):
    """Return [[Diag(mu) + T - (1 - nu) ww', B], [B', A]] of points without constraints, and the sum of the bound."""
    m, X, p = len(mu), fractions(table), fractions(weights)
    p = p / p.sum()
    Z = (X - p @ X) * fractions(problem.scale)
    T, total = np.full((m, m), Fraction(0)), fractions(mu).sum()
    for points, signs, multipliers in parts:
        total += fractions(multipliers).sum() * Fraction(points.shape[1] - 1, 2)
        for row, s, g in zip(points.tolist(), signs.tolist(), fractions(multipliers), strict=True):
            for i, j in combinations(range(len(row)), 2):
                T[row[i], row[j]] -= g * s[i] * s[j] / 2
                T[row[j], row[i]] -= g * s[i] * s[j] / 2
    T = T + np.diag(fractions(mu)) - (1 - Fraction(problem.nu)) * np.outer(p, p)
    A = Z.T @ (p[:, None] * Z) + np.diag(fractions(a) ** 2 * fractions(problem.scale) ** 2)
    return np.block([[T, p[:, None] * Z], [(p[:, None] * Z).T, A]]), total


def instance(kind):
    rng = np.random.default_rng(5)
    n, d = (120, 2) if kind == "many" else (8, 3)
    X, weights = rng.standard_normal((n, d)), rng.random(n) + 0.1
    if kind == "far from zero":
        X += 1e6
    points = np.array(list(combinations(range(8), 3)))
    signs = rng.choice(np.array([-1, 1], np.int8), points.shape)
    multipliers = rng.random(len(points)) / 50.0
    parts = [(points, signs, multipliers)]
    if kind == "cancelling":  # all signs of three points, so that T nearly vanishes
        both = np.vstack([signs * np.array(one, np.int8) for one in ([1, 1, 1], [1, -1, -1], [-1, 1, -1], [1, 1, -1])])
        parts = [(np.tile(points, (4, 1)), both, np.tile(1e7 * rng.random(len(points)), 4))]
    return X, weights, np.full(d, 0.3), rng.random(n) * (1e6 if kind == "large" else 1.0 / n), parts


@pytest.mark.parametrize("kind", ["near zero", "far from zero", "cancelling", "many", "large"])
def test_the_matrix_of_a_certificate_is_as_near_to_the_exact_one_as_it_says(kind):
    X, weights, a, mu, parts = instance(kind)
    n, d = X.shape
    ones, all_columns = np.ones(n), np.ones(d, dtype=bool)
    problem = LabelProblem(X, 0.5, a, np.zeros(d), weights, np.arange(n), ones, all_columns)
    rows = join_rows(*(clique_rows(*part) for part in parts))
    M, error, total = problem.dual_matrix(LabelDual(mu, rows))
    exact, exact_total = exact_matrix(problem, X, weights, a, mu, parts)
    distance = float(np.linalg.norm((fractions(M) - exact).astype(float)))
    assert 0.0 < distance <= error
    assert distance >= error * {"far from zero": 1e-3, "cancelling": 1e-4}.get(kind, 1e-6)
    assert exact_total <= Fraction(total)


def test_a_matrix_that_has_a_cholesky_factorisation_may_be_indefinite_by_its_error_at_most():
    indefinite = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        G = rng.integers(-9, 9, (6, 2)).astype(float)
        M = G @ G.T + np.diag(np.full(6, 1e-14 * rng.choice([-1.0, 1.0])))
        least = float(np.linalg.eigvalsh(M)[0])
        try:
            np.linalg.cholesky(M)
        except np.linalg.LinAlgError:
            continue
        indefinite += least < -1e-15
        assert least >= -factorization_error(M)
    assert indefinite > 0
