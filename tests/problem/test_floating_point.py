"""Brackets in floating point: what is proved holds for the numbers in the computer, checked in sixty digits."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from posed import drop_beside_the_largest, proved_value
from rationals import fractions, is_semidefinite

import diffrac_cvx as dc
from diffrac_cvx.certificates import proof, values
from diffrac_cvx.certificates.label_proof import projection_of
from diffrac_cvx.certificates.proof import Pencil, proved_ratio
from diffrac_cvx.points.floating_point import rounding_of_whitening
from diffrac_cvx.points.linear_algebra import power_of_two, whitener
from diffrac_cvx.problem import direction_problem
from experiments.stress import cells as stress_cells
from experiments.stress import exact as exact_values
from experiments.stress.cells import ROUNDED, check_instance, measure
from experiments.stress.claims import check_bounds
from experiments.stress.exact import best_labels_value, direction_value, labels_value, solve
from experiments.stress.instances import DROPPED, FAMILIES, WHOLE, Instance, make_instance

each_family = pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name.endswith("outwards") else [])
        for name in sorted([*FAMILIES, *WHOLE])
    ],
)


# What is proved by a factorisation


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e8])
@pytest.mark.parametrize("size", [1, 3, 6])
def test_the_ratio_proved_is_a_little_above_the_largest_and_holds_without_rounding(size, condition):
    rng = np.random.default_rng([size, int(condition)])
    for _ in range(5):
        right = np.linalg.qr(rng.standard_normal((size, size)))[0]
        right = (right * np.geomspace(1.0, 1.0 / condition, size)) @ right.T
        right = (right + right.T) / 2
        M = rng.standard_normal((size, size))
        M = M @ M.T
        least = np.linalg.eigvalsh(right)[0]
        L = np.linalg.cholesky(right)
        inverse = np.linalg.inv(L)
        about = np.linalg.eigvalsh(inverse @ M @ inverse.T)[-1]
        t = proved_ratio(Pencil(M, right, 0.0, 0.0), about, least)
        assert about <= t <= about * (1 + 1e-9 * condition)
        assert is_semidefinite(Fraction(t) * fractions(right) - fractions(M))


def test_a_side_hidden_by_rounding_proves_nothing():
    M, right = np.eye(2), np.diag([1.0, 1e-20])
    assert proved_ratio(Pencil(M, right, 0.0, 1e-16), 1e20, 1e-20) == np.inf


def test_a_ratio_that_was_too_small_is_raised_or_given_up():
    assert proved_ratio(Pencil(np.eye(2), np.eye(2), 0.0, 0.0), 1.0 - 1e-15, 1.0) >= 1.0
    assert proved_ratio(Pencil(np.eye(2), np.eye(2), 0.0, 0.0), 0.5, 1.0) == np.inf


# What rounding may change


def test_powers_of_two_are_next_to_the_numbers_and_round_nothing():
    x = np.array([1e-90, 0.3, 1.0, 1.5, 7e80])
    found = power_of_two(x)
    np.testing.assert_array_equal(np.frexp(found)[0], 0.5)
    assert np.all((found / x >= 0.7) & (found / x <= 1.42))
    y = np.random.default_rng(0).standard_normal(5)
    np.testing.assert_array_equal(y * found / found, y)


@pytest.mark.parametrize("condition", [1.0, 1e4, 1e8])
def test_whitened_data_are_off_by_less_than_is_said(condition):
    rng = np.random.default_rng(3)
    X = (np.linalg.qr(rng.standard_normal((30, 4)))[0] * np.geomspace(1, 1 / condition, 4)) @ rng.standard_normal(
        (4, 4)
    )
    W = whitener(X / 30**0.5)
    Z = X @ W
    found = rounding_of_whitening(X, W, Z, np.zeros(4))
    exact = [
        [sum((Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True)), Fraction(0)) for column in W.T]
        for row in X
    ]
    off = (
        sum((e - Fraction(z)) ** 2 for row, zs in zip(exact, Z, strict=True) for e, z in zip(row, zs, strict=True)) / 30
    )
    assert float(off) ** 0.5 <= found.data_error <= 1e-11 * condition
    gram = [[sum(row[i] * row[j] for row in exact) / 30 - (i == j) for j in range(4)] for i in range(4)]
    assert float(sum(entry**2 for row in gram for entry in row)) ** 0.5 <= found.right_error <= 1e-10 * condition


# Values in sixty digits


def test_values_in_sixty_digits_are_those_in_double_precision_where_these_are_accurate():
    inst = dc.datasets.make_planted(8, 2, noise=0.3, rng=0)
    a, c = np.array([0.1, 0.2]), np.array([0.3, 0.0])
    result = dc.low_rank(inst.X, 0.7, dc.Penalty(a, c), tol=1e-9)
    assert float(direction_value(inst.X, 0.7, a, c, result.G)) == pytest.approx(result.value, abs=1e-12)
    labels = dc.rounding.kmeans_centered(result.F)
    proof = dc.certify_labels(inst.X, labels, result, nu=0.7, penalty=dc.Penalty(a, c))
    assert float(labels_value(inst.X, 0.7, a, c, labels, proof.v)) == pytest.approx(proof.objective, abs=1e-12)
    best = best_labels_value(inst.X, 0.7, a)
    plain = dc.low_rank(inst.X, 0.7, dc.Penalty(a), tol=1e-9)
    brute = dc.certify_labels(
        inst.X, dc.rounding.kmeans_centered(plain.F), plain, nu=0.7, penalty=dc.Penalty(a)
    ).objective
    assert plain.lower <= float(best) <= brute + 1e-12


def test_a_singular_system_has_no_solution():
    one = Decimal(1)
    assert solve(np.array([[one, one], [one, one]], dtype=object), np.array([one, one], dtype=object)) is None


@each_family
def test_no_bound_is_on_the_wrong_side_of_an_exact_value(family):
    for number in range(1000, 1003):
        for bound in check_instance(make_instance(family, number))[0]:
            assert bound.excess <= ROUNDED, (number, bound)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_a_value_is_not_below_the_exact_one_and_close_to_it(scale):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((20, 3)) * scale
    X -= X.mean(axis=0)
    G = rng.standard_normal((4, 2)) / scale
    a, c = np.full(3, 0.1 * scale), np.array([0.0, 0.2, 0.3]) * scale
    found = proved_value(X, 0.5, dc.Penalty(a, c), G)
    exact = float(direction_value(X, 0.5, a, c, G))
    assert 0.0 <= found - exact <= 1e-11 * max(exact, 1.0)


# The check can fail


def test_a_lower_bound_that_forgets_rounding_is_found_out(monkeypatch):
    def unproved(pencil, t, least):
        del pencil, least
        return t * (1.0 - 1e-12)

    monkeypatch.setattr(proof, "proved_ratio", unproved)
    monkeypatch.setattr(stress_cells, "BATCH", 6)
    row = measure("planted", 0)
    assert row["violations"] > 0
    assert not check_bounds(pd.DataFrame([{"family": "planted", **row}])).passed


def test_columns_dropped_beside_larger_ones_are_found_out(monkeypatch):
    for number, instance in enumerate(DROPPED):
        assert make_instance("large_columns", number) is instance
        with monkeypatch.context() as patched:
            patched.setattr(direction_problem, "whitener_with_ridge", drop_beside_the_largest)
            bounds, left_out = check_instance(instance)
            assert left_out == 0
            assert max(bound.excess for bound in bounds if bound.kind == "lower") > 0.02
        assert all(bound.excess <= ROUNDED for bound in check_instance(instance)[0])


@pytest.mark.parametrize(("n", "d"), [(5, 3), (4, 9)])
def test_the_best_labels_of_weighted_points_are_those_of_repeated_ones(n, d):
    rng = np.random.default_rng(n)
    X, a, w = rng.standard_normal((n, d)), np.full(d, 0.3), np.array([1.0, 2.0, *np.ones(n - 2)])
    repeated = np.vstack([X, X[1:2]])
    assert abs(best_labels_value(X, 0.5, a, w) - best_labels_value(repeated, 0.5, a)) < Decimal("1e-50")
    y, v, G = np.sign(X[:, 0]), rng.standard_normal(d), rng.standard_normal((d, 2))
    twice = labels_value(repeated, 0.5, a, a, np.append(y, y[1]), v)
    assert abs(labels_value(X, 0.5, a, a, y, v, w) - twice) < Decimal("1e-50")
    assert abs(direction_value(X, 1.0, a, a, G, w) - direction_value(repeated, 1.0, a, a, G)) < Decimal("1e-50")


def test_the_two_ways_to_the_best_labels_agree():
    X, a = np.random.default_rng(0).standard_normal((5, 7)), np.full(7, 0.3)
    data, shares = exact_values.centred(X), exact_values.shares_of(X, None)
    by_rows = exact_values.misfit_by_rows(data, exact_values.exact(a), shares)
    by_columns = exact_values.misfit_by_columns(data, exact_values.exact(a), shares)
    y = exact_values.exact(np.sign(X[:, 0])) - exact_values.exact(np.sign(X[:, 0])).sum() / 5
    with localcontext() as context:
        context.prec = 100
        assert abs(y @ (by_rows @ y) - y @ (by_columns @ y)) < Decimal("1e-20")


def test_an_upper_bound_that_forgets_rounding_is_found_out(monkeypatch):
    monkeypatch.setattr(values, "round_up", lambda *_: -1e-12)
    bounds, _ = check_instance(make_instance("gaussian", 2))
    assert any(bound.excess > ROUNDED for bound in bounds if bound.kind == "upper")


# For which data


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
def test_directions_left_out_are_counted_and_no_others():
    rng = np.random.default_rng(0)
    x, y, z = rng.standard_normal((3, 12))
    assert dc.low_rank(np.column_stack([x, x, z]), tol=1e-6).left_out == 1
    assert dc.low_rank(np.column_stack([x, x + 2.0**-50 * y]), tol=1e-6).left_out == 1
    assert "left_out=1" in repr(dc.low_rank(np.column_stack([x, x, z]), 0.5, dc.Penalty(0, [0, 0, 0.1]), tol=1e-6))
    for penalty in (dc.Penalty(0.1), dc.Penalty.l1(0.1)):
        assert dc.low_rank(np.column_stack([x, x, z]), penalty=penalty, tol=1e-6).left_out == 0
    assert dc.low_rank(np.column_stack([x, y, np.zeros(12)]), tol=1e-6).left_out == 0
    assert dc.low_rank(rng.standard_normal((4, 9)), penalty=dc.Penalty(0.3), tol=1e-6).left_out == 0


def test_a_direction_that_only_the_space_of_labels_leaves_out_is_counted(monkeypatch):
    """With the offset among the columns a direction may be kept, at a relative size of 1e-13, and without it not."""
    instance = make_instance("gaussian", 3)
    assert check_instance(instance)[1] == 0
    monkeypatch.setattr(stress_cells, "projection_of", lambda X, a: projection_of(X, a)._replace(left_out=1))
    bounds, left_out = check_instance(instance)
    assert left_out == 1
    assert {bound.kind for bound in bounds} == {"upper"}  # the lower ones are those of other data


def test_an_instance_is_the_same_each_time():
    first, second = (make_instance("wild_entries", 7) for _ in range(2))
    assert isinstance(first, Instance)
    for one, other in zip(first[:4], second[:4], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize("builder", [dc.v_space, dc.lifted, dc.penalized_nu, dc.v_space_normalized])
def test_every_relaxation_says_what_is_left_out(builder):
    x, y = np.random.default_rng(0).standard_normal((2, 12))
    collinear = dc.solve(builder(np.column_stack([x, x + y * 2.0**-60])))
    other = dc.solve(builder(np.column_stack([x, y])))
    assert (collinear.left_out, other.left_out) == (1, 0)
