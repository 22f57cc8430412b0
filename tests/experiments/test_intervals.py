"""Simulated coverage of the 95 % intervals, at the numbers of units that the experiments have."""

import numpy as np
import pandas as pd
import pytest

from experiments.harness.boundary import find_boundary
from experiments.harness.intervals import Interval, Proportion, bootstrap, mean_of, median_of, proportion_of


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


def test_the_interval_of_a_boundary_covers_it():
    replications = 4
    n = np.unique(np.geomspace(20, 80, 60).astype(int))

    def thresholds(rng):
        at = 40.0 * np.exp(0.15 * rng.standard_normal(replications))
        rows = pd.MultiIndex.from_product([[1], n, range(replications)], names=["d", "n", "replication"]).to_frame(
            False
        )
        return rows.assign(success=(rows["n"] >= at[rows["replication"]]).astype(int))

    def interval(table):
        found = find_boundary(table, "success")
        return Interval(*(float(end[0]) for end in (found.n50, found.low, found.high)))

    assert coverage(thresholds, interval, 40.0, repetitions=100) >= 0.88


def test_the_interval_of_a_statistic_covers_it():
    def ratio(sample, axis):
        return np.sum(sample[..., 0], axis=-1) / np.sum(sample[..., 1], axis=-1)

    def draw(rng):
        return 1.0 + rng.random((10, 2))

    assert coverage(draw, lambda sample: bootstrap(sample, ratio), 1.0, repetitions=500) >= 0.92


def test_a_number_is_shown_with_as_many_digits_as_its_interval_has():
    assert str(Proportion(0.5, 0.4, 0.6)) == "50 % (40 to 60)"
    assert str(proportion_of(np.ones(2000))) == "100.00 % (99.81 to 100.00)"
    assert str(proportion_of(np.ones(4))) == "100 % (51 to 100)"

    assert str(Interval(1.874, 1.80, 1.95)) == "1.87 (1.80 to 1.95)"
    assert str(Interval(261.2, 251.0, 276.0)) == "261 (251 to 276)"
    assert str(Interval(0.0, 0.0, 0.0)) == "0"
    assert str(Interval(2.0, -np.inf, np.inf)) == "2 (no interval)"
