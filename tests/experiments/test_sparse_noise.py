"""Figure 1 (b) by the variance of the noise: its instances, its methods compared with CVXPY, and its tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from experiments.harness.tables import read_table
from experiments.sparse_noise import cells
from experiments.sparse_noise.findings import (
    AT,
    OTHER,
    PAPERS,
    boundaries_of,
    growth_in_dimension,
    growth_in_entries,
    points_at,
)
from experiments.sparse_regime.models import FASTER, LINEAR, LOGARITHM, OPEN, boundary_of, dimension_bound, growth_of


@pytest.mark.parametrize("columns", cells.COLUMNS)
@pytest.mark.parametrize("kind", cells.KINDS)
def test_the_labels_are_a_combination_of_the_first_columns_with_the_stated_l1_norm(kind, columns):
    X, y, spread = cells.planted_of(4, kind, columns, 0.5, 60, 9, 1)
    v, residual, *_ = np.linalg.lstsq(X, y, rcond=None)
    assert y.sum() == 0
    np.testing.assert_allclose(residual, 0.0, atol=1e-20)
    np.testing.assert_allclose(v[4:], 0.0, atol=1e-12)
    assert spread == pytest.approx(np.abs(v).sum() ** 2)
    if columns == "standardised":
        np.testing.assert_allclose(X.std(axis=0), 1.0)


def test_noise_of_variance_one_third_is_bounded_by_one_and_more_points_keep_the_ones_before():
    few, y_few, _ = cells.planted_of(4, "flat", "raw", 0.333, 40, 8, 0)
    many, y_many, _ = cells.planted_of(4, "flat", "raw", 0.333, 4000, 8, 0)
    np.testing.assert_array_equal(y_few, y_many[:40])
    np.testing.assert_allclose(few, many[:40] - many[:40].mean(axis=0))
    noise = many[:, 4:]
    assert np.ptp(noise, axis=0).max() <= 2.0
    assert noise.var() == pytest.approx(0.333, abs=0.01)


@pytest.mark.parametrize(("variance", "least", "most"), [(0.333, 4, 4), (1.0, 0, 1)])
def test_recovery_by_the_fast_solver_is_that_by_cvxpy(variance, least, most):
    """At 24 points in 12 dimensions and weight 1/sqrt(n), raw columns."""
    fast, reference = [], []
    for replication in range(4):
        X, y, spread = cells.planted_of(4, "flat", "raw", variance, 24, 12, replication)
        oracle = dc.solve(dc.v_space(X, 1.0, dc.Penalty.l1(24**-0.5)), "CLARABEL").F
        for found, labels in (
            (fast, cells.labels_by("1/sqrt(n)", X, 4, spread)),
            (reference, dc.rounding.kmeans_centered(oracle)),
        ):
            found.append(dc.metrics.clustering_error(y, labels) < cells.RECOVERED)
    assert fast == reference
    assert least <= sum(fast) <= most


def test_the_rivals_use_the_variances_that_they_are_named_after():
    rng, y = np.random.default_rng(0), np.repeat([1.0, -1.0], 40)
    X = np.column_stack([3.0 * rng.standard_normal((80, 1)), 0.1 * rng.standard_normal((80, 4)), y, y, y, y])
    X += 0.05 * rng.standard_normal(X.shape)

    def error_of(method, l):
        return dc.metrics.clustering_error(y, cells.labels_by(method, X, l, 4.0))

    assert error_of(cells.COMPONENT, 4) > 0.5  # the column of the largest variance is noise
    assert error_of(cells.WIDEST, 1) > 0.5
    X[:, 0] /= 10.0
    assert error_of(cells.COMPONENT, 4) == error_of(cells.WIDEST, 4) == 0.0


def made(n_of_d, dimensions=(8, 12, 16, 24, 32, 64), variance=1.0):
    """The table of the searches of a design whose n is a function of d, with some noise."""
    rng, rows = np.random.default_rng(0), []
    for d in dimensions:
        for replication in range(8):
            n = n_of_d(d) * np.exp(0.02 * rng.standard_normal())
            outside = int(n > cells.MOST_POINTS) - int(n <= cells.FEWEST)
            entry = {"points": float(np.clip(n, cells.FEWEST, cells.MOST_POINTS)), "outside": outside}
            rows.append({"method": "1/n", "l": 4, "kind": "flat", "columns": "raw", "variance": variance, "d": d})
            rows[-1] |= {"replication": replication, **entry}
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (lambda d: 2.0 * d, LINEAR), (lambda d: 0.1 * d, LINEAR), (lambda d: 5.0, LINEAR),
        (lambda d: 1.0 + dimension_bound(4, d), LOGARITHM), (lambda d: d**1.9, FASTER), (lambda d: d**2.3, FASTER),
    ],
)  # fmt: skip
def test_the_growth_is_that_of_the_law_of_the_table(law, expected):
    (found,) = boundaries_of(made(law)).values()
    assert growth_of(found, 4)[1] == expected


def test_points_beyond_the_grid_are_faster_if_fewer_are_needed_without_a_penalty_and_open_otherwise():
    table = made(lambda d: 20.0 * d if d < 32 else 1e9)
    assert growth_of(boundary_of(table), 4)[1] == FASTER
    (found,) = boundaries_of(made(lambda d: 3000.0 + d if d < 200 else 1e9, (8, 64, 80, AT, 128, 256))).values()
    assert growth_of(found, 4)[1] == OPEN
    assert 3000 < int(points_at(found)) < 3200
    assert points_at(None) == "-"


def test_the_results_of_figure_1_b_and_of_the_conjecture_are_those_of_the_committed_table():
    found = boundaries_of(read_table(Path(__file__).parents[2] / "figures" / "sparse_noise.csv"))
    growth = growth_in_dimension(found)[f"growth, {PAPERS}"].groupby(level="m").agg(set)
    assert growth[0.25] == growth[0.333] == {LINEAR}
    assert growth[0.5] | growth[0.7] == {LINEAR, LOGARITHM}
    assert FASTER in growth[1.0]
    assert not growth[1.0] & {LINEAR, LOGARITHM}
    entries = growth_in_entries(found)
    assert entries.loc[(OTHER, "raw"), "holds"].to_dict() == {
        0.25: True,
        0.333: True,
        0.5: True,
        0.7: False,
        1.0: False,
    }
    assert not entries.xs("standardised", level="columns")["holds"].any()
    equal = entries.xs(1.0, level="m")["growth in d"]
    assert set(equal[OTHER]) == {"/".join([LOGARITHM] * 3)}
    assert set(equal[PAPERS]) == {"/".join([FASTER] * 3)}
