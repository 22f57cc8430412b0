"""Certificates of optimal labels: files that are accepted, tampered ones that are refused, and the rounding errors."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from rationals import fractions

import diffrac_cvx as dc
from diffrac_cvx.certificates.cut_certificate import Cliques, LabelProblem, factorization_error


@cache
def searched():
    return certified()


def certified(nu=1.0, lam=0.0, seed=0, **options):
    X = dc.datasets.make_planted(24, 4, noise=0.6, rng=seed).X + 3.0
    found = dc.optimal_labels(X, nu, ridge=0.1, lam=lam, certificate=True, **options)
    assert found.certificate is not None
    return X, found


SITUATIONS = {
    "plain": {},
    "imbalance": {"nu": 0.4},
    "l1": {"lam": 0.05, "tol": 1e-2},
    "weights": {"sample_weight": np.arange(24) % 3},
    "constraints": {
        "constraints": dc.Constraints([(0, 5), (1, 7)], [(2, 9)], labels=np.where(np.arange(24) < 3, 1, np.nan))
    },
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_certificate_is_accepted_by_the_checker_as_it_is_and_from_a_file(tmp_path, situation):
    X, found = certified(**SITUATIONS[situation])
    given = found.certificate
    assert given.bracket.gap <= 1.01e-4 + 1e-2 * (situation == "l1")
    given.save(tmp_path / "labels.npz")
    read = dc.check_certificate(X, tmp_path / "labels.npz")
    assert read.bracket == given.bracket
    assert np.array_equal(read.labels, found.labels)
    assert str(read) == str(dc.check_certificate(X, given))


def largest(part, change):
    """Return a change of the points, signs or multiplier of the inequality that has the largest multiplier."""

    def tamper(given):
        at = max(range(len(given.cliques)), key=lambda k: given.cliques[k].multipliers.max())
        parts = [array.copy() for array in given.cliques[at]]
        k = int(np.argmax(parts[2]))
        parts[part][k] = change(parts[part][k])
        return replace(given, cliques=(*given.cliques[:at], Cliques(*parts), *given.cliques[at + 1 :]))

    return tamper


def with_label(given):
    labels = given.labels.copy()
    labels[3] *= -1.0
    return replace(given, labels=labels)


TAMPERED = {
    "a sign": largest(1, lambda row: [-row[0], *row[1:]]),
    "a larger multiplier": largest(2, lambda g: 1.5 * g),
    "a multiplier left out": largest(2, lambda g: 0.0 * g),
    "a negative multiplier": largest(2, lambda g: -g),
    "another point": largest(0, lambda row: [next(i for i in range(24) if i not in row), *row[1:]]),
    "a point twice": largest(0, lambda row: [row[1], *row[1:]]),
    "a label": with_label,
    "a larger lower bound": lambda given: replace(given, lower=given.lower + 1e-6),
    "a smaller upper bound": lambda given: replace(given, upper=given.upper - 1e-6),
    "a smaller diagonal": lambda given: replace(given, diagonal=given.diagonal - 1e-4),
    "another ridge": lambda given: replace(given, ridge=0.5 * given.ridge),
    "another imbalance penalty": lambda given: replace(given, nu=0.5),
    "four points": lambda given: replace(
        given, cliques=(Cliques(np.arange(4)[None], np.ones((1, 4), np.int8), np.ones(1)),)
    ),
    "a chunklet too many": lambda given: replace(given, membership=given.membership + 1),
    "a C outside its box": lambda given: replace(given, C=np.eye(4)),
    "a chunklet without a point": lambda given: replace(given, diagonal=np.append(given.diagonal, 0.1)),
    "columns by number": lambda given: replace(given, columns=np.zeros(4, dtype=np.int64)),
    "not a number": lambda given: replace(given, diagonal=given.diagonal * np.nan),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_certificate_that_was_tampered_with_is_refused(what):
    X, found = searched()
    with pytest.raises(dc.DataError, match="refused"):
        dc.check_certificate(X, TAMPERED[what](found.certificate))


def test_a_certificate_is_refused_for_another_table_and_a_file_that_is_none():
    X, found = searched()
    moved = X.copy()
    moved[3, 2] += 0.5
    for other in (moved, X[:-1], X[:, :-1], X[::-1]):
        with pytest.raises(dc.DataError, match="refused"):
            dc.check_certificate(other, found.certificate)
    with pytest.raises(dc.DataError, match="not a certificate"):
        dc.check_certificate(X, __file__)


def test_the_certificate_of_a_table_with_a_collinear_column_is_about_the_other_columns():
    X, _ = certified()
    found = dc.optimal_labels(np.column_stack([X, X[:, 0] - X[:, 1]]), certificate=True, tol=1e-3)
    assert found.certificate.bracket.n_excluded == found.n_excluded == 1
    assert dc.check_certificate(np.column_stack([X, X[:, 0] - X[:, 1]]), found.certificate).bracket.gap <= 1.1e-3


# Rounding errors, by rational arithmetic


def exact_matrix(problem, table, weights, ridge, mu, cliques):
    """Return [[Diag(mu) + T - (1 - nu) ww', B], [B', A]] of points without constraints, and the sum of the bound."""
    m, X, p = len(mu), fractions(table), fractions(weights)
    p = p / p.sum()
    Z = (X - p @ X) * fractions(problem.scale)
    T, total = np.full((m, m), Fraction(0)), fractions(mu).sum()
    for points, signs, multipliers in cliques:
        total += fractions(multipliers).sum() * Fraction(points.shape[1] - 1, 2)
        for row, s, g in zip(points.tolist(), signs.tolist(), fractions(multipliers), strict=True):
            for i, j in combinations(range(len(row)), 2):
                T[row[i], row[j]] -= g * s[i] * s[j] / 2
                T[row[j], row[i]] -= g * s[i] * s[j] / 2
    T = T + np.diag(fractions(mu)) - (1 - Fraction(problem.nu)) * np.outer(p, p)
    A = Z.T @ (p[:, None] * Z) + np.diag(fractions(ridge) * fractions(problem.scale) ** 2)
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
    cliques = [Cliques(points, signs, multipliers)]
    if kind == "cancelling":  # opposite signs of two points each, so that T nearly vanishes
        both = np.vstack([signs, signs * np.array([1, -1, -1], np.int8), -signs * np.array([1, -1, 1], np.int8)])
        cliques = [Cliques(np.tile(points, (3, 1)), both, np.tile(1e7 * rng.random(len(points)), 3))]
    ridge = np.full(d, 0.1)
    return X, weights, ridge, rng.random(n) / n, cliques


@pytest.mark.parametrize("kind", ["near zero", "far from zero", "cancelling", "many"])
def test_the_matrix_of_a_certificate_is_as_near_to_the_exact_one_as_it_says(kind):
    X, weights, ridge, mu, cliques = instance(kind)
    n, d = X.shape
    ones, all_columns = np.ones(n), np.ones(d, dtype=bool)
    problem = LabelProblem(X, 0.5, ridge, np.zeros(d), weights, np.arange(n), ones, all_columns)
    M, error, total = problem.dual_matrix(mu, cliques, None)
    exact, exact_total = exact_matrix(problem, X, weights, ridge, mu, cliques)
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


def test_labels_cost_no_more_than_the_checker_says_by_rational_arithmetic():
    X, found = certified(nu=0.4, lam=0.05, tol=1e-2)
    given = found.certificate
    problem = LabelProblem(
        X, given.nu, given.ridge, given.lam, given.weights, given.membership, given.sign, given.columns
    )
    Z, y, v = fractions(X), fractions(given.labels), fractions(given.direction)
    Z, mean = Z - Z.sum(axis=0) / len(X), y.sum() / len(X)
    residual = ((y - mean - Z @ v) ** 2).sum() / len(X)
    penalty = Fraction(0.1) * (v**2).sum() + Fraction(0.05) * np.abs(v).sum() ** 2
    exact = residual + Fraction(0.4) * mean**2 + penalty
    computed = problem.upper_bound(given.labels, given.direction)
    assert exact - Fraction(1e-15) <= Fraction(computed) <= exact + Fraction(1e-11)
