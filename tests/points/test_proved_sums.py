"""Bounds on sums include all rounding errors: compared with rational arithmetic in nearly worst cases."""

from fractions import Fraction

import numpy as np
import pytest
from rationals import fractions

from diffrac_cvx.points import floating_point as rounding
from diffrac_cvx.points.constraints import Chunklets
from diffrac_cvx.points.floating_point import (
    UNIT_ROUNDOFF,
    RoundedFactor,
    chunklet_sum_bounds,
    residual_bounds,
    row_norms,
    sum_error,
)

LARGE = 2.0**40  # a unit in which a column is small: errors proportional to the unit are negligible


def one_group(n):
    return Chunklets(np.zeros(n, dtype=int), np.ones(n), -1)


def sums_of(x, factor, counts=None, chunklets=None):
    """Return the lower bound on the sum of sqrt(q_i) of one column, and the upper one on the sum of q_i."""
    table, n = x[:, None], len(x)
    counts, chunklets = np.ones(n) if counts is None else counts, one_group(n) if chunklets is None else chunklets
    return chunklet_sum_bounds(table @ factor.features, row_norms(table, factor.units), factor, counts, chunklets)


def one_column(g=1.0, offset=0.0, unit=LARGE, n=1):
    return RoundedFactor(np.full((1, 1), g), np.full(1, offset), np.full(1, unit), abs(g) / unit + abs(offset), n)


def test_the_sum_of_linked_rows_that_loses_most_counts_its_length_times_their_sizes():
    """After a 1, each row subtracts less than half a unit: the computed sum is 1, the exact sum is smaller."""
    x = np.full(4000, -0.99 * UNIT_ROUNDOFF / 2)
    x[0] = 1.0
    assert one_group(4000).signed_sums(x[:, None]) == 1.0
    (gain, energy), exact = sums_of(x, one_column()), sum(fractions(x))
    assert exact - Fraction(sum_error(8000)) <= Fraction(gain) <= exact
    assert sum(fractions(x) ** 2) <= Fraction(energy) <= 1 + Fraction(sum_error(8000))


@pytest.mark.parametrize("unit", [LARGE, 1.0])
def test_linked_rows_that_cancel_count_what_each_product_is_off(unit):
    """1/3 times a row is rounded; of two rows that cancel, only the rounding error remains."""
    above = [x for x in np.arange(1.0, 400.0) if Fraction(x * (1 / 3)) > Fraction(x) * Fraction(1 / 3)]
    below = [x for x in np.arange(1.0, 400.0) if Fraction(x * (1 / 3)) < Fraction(x) * Fraction(1 / 3)]
    wrong = 0
    for x, y in zip(above[1:], below[:-1], strict=False):
        pair = np.array([max(x, y), -min(x, y)]) if x > y else np.array([x, -y])
        exact = abs(Fraction(pair[0]) + Fraction(pair[1])) * Fraction(1 / 3)
        assert Fraction(sums_of(pair, one_column(1 / 3, unit=unit))[0]) <= exact
        wrong += Fraction(abs(float(np.sum(pair * (1 / 3))))) > exact
    assert wrong > 0


def test_the_root_of_linked_rows_counts_each_of_its_terms(monkeypatch):
    """With a coarse unit: errors of the products, centring, weighted sum of the rows, and root of their sum."""
    monkeypatch.setattr(rounding, "UNIT_ROUNDOFF", 2.0**-30)
    rng, n, r, k, d = np.random.default_rng(0), 40, 300, 20, 3
    table, G, counts = rng.standard_normal((n, d)), rng.standard_normal((d, r)), rng.uniform(0.5, 2.0, n)
    chunklets, offset = Chunklets(np.arange(n) // k, rng.choice([-1.0, 1.0], n), -1), rng.standard_normal(r)
    for points in (1, 10**4):
        factor = RoundedFactor(G, offset, np.ones(d), float(np.linalg.norm(G) + np.linalg.norm(offset)), points)
        norms, rows = row_norms(table, factor.units), (table @ G + offset) * counts[:, None]
        gain, energy = chunklet_sum_bounds(table @ G, norms, factor, counts, chunklets)
        roots, lengths = np.linalg.norm(chunklets.signed_sums(rows), axis=1), np.linalg.norm(rows, axis=1)
        products = counts * (norms + 1.0) * factor.norm
        centering = 4.0 * sum_error(points) * factor.norm * d**0.5 * np.sum(counts)
        least = sum_error(d + r) * np.sum(products) + centering + sum_error(k + r) * np.sum(lengths)
        least += sum_error(r) * np.sum(roots)
        assert least <= np.sum(roots) - gain <= 1.1 * least
        assert energy >= np.sum(counts * np.sum((table @ G + offset) ** 2, axis=1)) + 2.0 * sum_error(d + r)


def test_linked_rows_of_which_rounding_hides_the_sum_have_a_root_of_zero():
    x = np.array([1.0, -1.0, 1.0, -1.0, 3.0])
    chunklets = Chunklets(np.array([0, 0, 1, 1, 2]), np.ones(5), -1)
    assert 3.0 - 1e-13 <= sums_of(x, one_column(unit=1.0), chunklets=chunklets)[0] <= 3.0


def test_a_residual_bound_counts_the_rounding_of_its_target_in_proportion_to_what_is_left():
    """Errors of the targets are multiples of the unit of 1 and of the rounded difference."""
    found = residual_bounds(np.array([-1e6]), np.zeros(1), np.array([1.0]), np.zeros(1), 1)
    assert found[0] ** 0.5 - (1e6 + 1.0) >= UNIT_ROUNDOFF * 1e6
