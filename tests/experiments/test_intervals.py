"""Simulated coverage of the 95 % intervals, at the numbers of units that the experiments have; boundaries."""

import numpy as np
import pandas as pd
import pytest

from experiments.harness.boundary import crossing, find_boundary, fit_power
from experiments.harness.intervals import (
    Interval,
    Proportion,
    bootstrap,
    interval_of,
    mean_of,
    median_of,
    proportion_of,
)


def coverage(draw, interval, truth, repetitions=2000):
    """The fraction of samples whose interval contains the truth."""
    rng = np.random.default_rng(0)
    return np.mean([interval(draw(rng)).meets(truth, truth) for _ in range(repetitions)])


@pytest.mark.parametrize("n", [4, 10])
def test_the_t_interval_covers_the_mean_of_normal_units_at_its_level(n):
    assert coverage(lambda rng: rng.standard_normal(n), mean_of, 0.0) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(("n", "least"), [(4, 0.86), (10, 0.88)])
def test_it_covers_that_of_skewed_units_less_often_and_better_than_percentiles_do(n, least):
    found = coverage(lambda rng: rng.exponential(size=n), mean_of, 1.0)
    chosen = np.random.default_rng(1).integers(n, size=(400, n))

    def percentiles(sample):
        return Interval(sample.mean(), *np.quantile(sample[chosen].mean(axis=1), [0.025, 0.975]))

    assert found >= least
    assert found > coverage(lambda rng: rng.exponential(size=n), percentiles, 1.0) + 0.01


@pytest.mark.parametrize("n", [6, 9, 30])
def test_order_statistics_cover_the_median_of_any_law(n):
    assert coverage(lambda rng: rng.exponential(size=n) ** 2, median_of, np.log(2.0) ** 2) >= 0.945
    assert median_of(np.arange(5))[1:] == (-np.inf, np.inf)


@pytest.mark.parametrize(("n", "p"), [(10, 0.1), (10, 0.5), (30, 0.02), (100, 0.98)])
def test_wilsons_interval_covers_a_proportion(n, p):
    assert coverage(lambda rng: rng.random(n) < p, proportion_of, p) >= 0.92


def test_wilsons_interval_of_dependent_rows_is_that_of_their_effective_number():
    groups = np.repeat(np.arange(20), 30)
    dependent = coverage(lambda rng: rng.random(20)[groups] < 0.3, lambda rows: proportion_of(rows, groups), 0.3)
    assert dependent == pytest.approx(0.95, abs=0.03)
    assert coverage(lambda rng: rng.random(20)[groups] < 0.3, proportion_of, 0.3) < 0.6
    assert proportion_of(np.ones(600), groups) == proportion_of(np.ones(20))


def test_the_interval_of_a_statistic_covers_it():
    def ratio(sample, axis):
        return np.sum(sample[..., 0], axis=-1) / np.sum(sample[..., 1], axis=-1)

    def draw(rng):
        return 1.0 + rng.random((10, 2))

    assert coverage(draw, lambda sample: bootstrap(sample, ratio), 1.0, repetitions=500) >= 0.92


def test_a_number_is_shown_with_as_many_digits_as_its_interval_has():
    assert str(Proportion(0.5, 0.4, 0.6)) == "50 % [40, 60]"
    assert str(proportion_of(np.ones(2000))) == "100.00 % [99.81, 100.00]"
    assert str(proportion_of(np.ones(4))) == "100 % [51, 100]"

    assert str(Interval(1.874, 1.80, 1.95)) == "1.87 [1.80, 1.95]"
    assert str(Interval(261.2, 251.0, 276.0)) == "261 [251, 276]"
    assert str(Interval(0.0, 0.0, 0.0)) == "0"
    assert str(Interval(2.0, -np.inf, np.inf)) == "2 (no interval)"


def test_an_empty_sample_has_no_interval_and_undetermined_draws_have_an_infinite_one():
    draws = np.where(np.arange(100) % 2, np.nan, 1.0)
    assert interval_of(1.0, draws, 9)[1:] == (-np.inf, np.inf)
    assert interval_of(1.0, draws, 9, least=0.4)[1:] == (1.0, 1.0)
    for found in (mean_of([]), median_of([]), proportion_of([])):
        assert np.isnan(found.value)
        assert str(found) == "none"
        assert not found.within(-1e9, 1e9)


# Boundaries


@pytest.mark.parametrize(
    ("rate", "expected"),
    [([0, 0.25, 0.75, 1], (25.0, 0)), ([0.5, 1, 1, 1], (10.0, -1)), ([0, 0, 0.2, 0.4], (40.0, 1))],
)
def test_the_crossing_is_inside_the_grid_or_on_the_side_where_it_must_lie(rate, expected):
    assert crossing(np.array([10.0, 20.0, 30.0, 40.0]), np.array(rate, dtype=float)) == expected


def made_boundary(power, factor=1.0, dimensions=(8, 12, 16, 24, 32), replications=20, most=4000, rng=None):
    """A table of successes whose thresholds are factor d^power, times a lognormal variable per replication."""
    rng, rows = rng or np.random.default_rng(1), []
    for d in dimensions:
        for replication, scale in enumerate(np.exp(0.15 * rng.standard_normal(replications))):
            for n in np.unique(np.geomspace(most / 2000, most, 60).astype(int)):
                rows.append((d, n, replication, int(n >= factor * d**power * scale)))
    return pd.DataFrame(rows, columns=["d", "n", "replication", "success"])


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_a_power_law_is_found_with_its_interval(power):
    fit = fit_power(find_boundary(made_boundary(power), "success"))
    assert fit.dimensions == 5
    assert fit.exponent.meets(power, power)
    assert fit.exponent.high - fit.exponent.low < 0.4


def test_nothing_is_fitted_through_three_boundaries_and_those_outside_the_grid_do_not_count():
    assert np.isnan(fit_power(find_boundary(made_boundary(1.0, dimensions=(8, 12, 16)), "success")).exponent.value)
    found = find_boundary(made_boundary(2.0, factor=8.0), "success")
    assert found.outside[-1] == 1
    assert found.n50[-1] == 4000
    assert fit_power(found).dimensions == (found.outside == 0).sum() < 5


def test_the_interval_of_a_boundary_covers_it():
    def interval(table):
        found = find_boundary(table, "success")
        return Interval(*(float(end[0]) for end in (found.n50, found.low, found.high)))

    def draw(rng):
        return made_boundary(0.0, factor=40.0, dimensions=[1], replications=4, most=80, rng=rng)

    assert coverage(draw, interval, 40.0, repetitions=50) >= 0.88
