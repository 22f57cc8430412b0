"""Figure 1: its cells, and the rules of its verdicts on constructed tables."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from experiments.phase_transition import cells as phase_cells
from experiments.phase_transition import findings as phase_claims
from experiments.phase_transition.uniqueness import is_only_solution

LITERAL = "1-sparse, 1/sqrt(n)"
pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.mark.parametrize(("n", "rank_one"), [(12, 0), (60, 1)])
def test_the_affine_solution_is_rank_one_above_the_statistical_dimension_only(n, rank_one):
    row = phase_cells.measure("affine", n, 10, 0)  # d + d(d-1)/4 = 32.5
    assert row["rank_one"] == rank_one
    assert row["gap"] <= phase_cells.AFFINE_TOL


@pytest.mark.parametrize("n", [8, 12, 24, 40])
def test_uniqueness_by_the_linear_program_is_the_rank_that_an_interior_point_finds(n):
    fast = phase_cells.measure(LITERAL, n, 24, 0)
    oracle = phase_cells.measure_reference(LITERAL, n, 24, 0)
    assert fast["rank_one"] == oracle["rank_one"]


def test_the_solver_does_not_decide_a_1_sparse_cell():
    """A solver that prefers sparse solutions returns the planted one here, although it is not unique."""
    X, _, _ = phase_cells.data_of(LITERAL, 8, 44, 0)
    lam = phase_cells.weight_of(LITERAL, 8)
    assert not is_only_solution(X)
    first, generic = (dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=1e-4, working_set=w) for w in (True, False))
    assert first.value == pytest.approx(generic.value, abs=2e-4)
    assert phase_cells.measure(LITERAL, 8, 44, 0)["rank_one"] == 0


def test_the_reference_has_a_second_solver_where_the_first_fails():
    row = phase_cells.measure_reference("1-sparse, 1/n", 14, 40, 0)
    assert row["gap"] < 1e-3 * row["value"]


@pytest.mark.parametrize(("panel", "lam"), [(LITERAL, 1 / 8), ("1-sparse, 1/n", 1 / 64)])
def test_the_weight_is_that_of_the_reading_and_the_value_that_of_the_planted_solution(panel, lam):
    row = phase_cells.measure(panel, 64, 4, 0)
    assert row["lam"] == pytest.approx(lam)
    X, y, v = phase_cells.data_of(panel, 64, 4, 0)
    np.testing.assert_allclose(np.mean(X**2, axis=0), 1.0)
    assert y.sum() == 0
    assert row["value"] == pytest.approx(lam / (1 + lam), abs=1e-4)
    np.testing.assert_allclose(X @ v, y)


def test_more_points_of_a_stream_keep_the_ones_before():
    few, y_few, _ = phase_cells.data_of(LITERAL, 20, 6, 1)
    many, y_many, _ = phase_cells.data_of(LITERAL, 60, 6, 1)
    np.testing.assert_array_equal(y_few, y_many[:20])
    head = many[:20] - many[:20].mean(axis=0)
    np.testing.assert_allclose(np.abs(few), np.abs(head / np.sqrt(np.mean(head**2, axis=0))))  # up to signs


@pytest.mark.parametrize(("kind", "least", "most"), [("flat", 3.9, 4.0), ("rotated", 1.0, 4.0)])
def test_the_spread_of_a_direction_is_that_of_its_kind(kind, least, most):
    spreads = []
    for replication in range(8):
        X, y, v = phase_cells.data_of(f"4-sparse {kind}, 1/n", 200, 12, replication)
        np.testing.assert_allclose(X @ v, y, atol=1e-12)
        assert np.all(np.abs(v[:4]) > 1e-3)
        assert np.all(v[4:] == 0.0)
        spreads.append(np.sum(np.abs(v)) ** 2 / np.sum(v**2))
    assert least <= min(spreads) <= max(spreads) <= most
    assert (np.ptp(spreads) > 0.5) == (kind == "rotated")


# The findings, on tables with known boundaries


@cache
def stream(panel: str, power: float, *, factor: float = 1.0, rank_lag: float = 1.0) -> pd.DataFrame:
    """Return a table whose error crosses 1/2 at about factor d^power, and whose rank does at rank_lag times that."""
    rng, rows = np.random.default_rng(0), []
    for d in (10, 14, 20, 28, 40):
        for replication in range(4):
            at = factor * d**power * np.exp(0.05 * rng.standard_normal())
            for n in np.geomspace(0.5, 400_000, 70):
                one = n >= rank_lag * at
                rows.append({"panel": panel, "d": d, "n": n, "replication": replication, "rank_one": int(one)})
                rows[-1] |= {"error": 0.0 if n >= at else 0.9, "recovered": int(n >= at)}
                rows[-1] |= {"eigenvalue_ratio": 1e-5 if one else 0.8, "loose_ratio": 1e-5 if one else 0.8}
    return pd.DataFrame(rows)


def test_the_exponents_and_ratios_of_the_boundaries_are_those_of_the_table():
    streams = {name: stream(name, 1.8) for name in phase_cells.PANELS}
    streams["affine"] = stream("affine", 1.8, rank_lag=2.0)
    found = phase_claims.laws(streams, stream("affine", 1.3))
    assert found.loc[phase_claims.AFFINE_RANK, "exponent"].value == pytest.approx(1.8, abs=0.1)  # n has steps of 21 %
    assert found.loc[phase_claims.AFFINE_RANK, "dimensions"] == 5
    assert found.loc[phase_claims.INTERIOR_OVER_FAST, "exponent"].value == pytest.approx(-0.5, abs=0.1)
    assert found.loc[phase_claims.ERROR_OVER_RANK["low_rank"], "at d = 20"] == pytest.approx(0.5, abs=0.05)


def test_the_proportions_are_those_of_the_table():
    affine = stream("affine", 1.8, rank_lag=2.4)
    fifth = np.arange(len(affine)) % 5 == 0
    affine = affine.assign(eigenvalue_ratio=affine["eigenvalue_ratio"].mask(fifth, 0.02))
    found = phase_claims.proportions({"affine": affine, LITERAL: stream(LITERAL, 1.0, factor=0.5)}, affine)[
        "proportion"
    ]
    assert found[phase_claims.BY_THRESHOLD].value == pytest.approx(0.2, abs=1e-3)
    assert found[phase_claims.BOTH_FAST].value == phase_claims.is_both(affine).mean() > 0.01
    assert found[phase_claims.ONE_ENOUGH].value == 1.0 > found[phase_claims.ONE_EVERYWHERE].value
    assert found[phase_claims.ONE_ENOUGH].low == pytest.approx(1 - 1.96**2 / (20 + 1.96**2), abs=1e-3)  # 20 streams


def test_the_interior_points_instances_replace_the_same_ones_of_low_rank():
    keys = ["n", "d", "replication"]
    affine = stream("affine", 1.8).query("n < 100")
    interior = affine.query("d <= 14").assign(panel=phase_cells.INTERIOR, error=0.0, rank_one=0)
    found = phase_claims.by_interior_point(pd.concat([affine, interior]))
    assert not found.duplicated(keys).any()
    assert len(found) == len(affine.query("d <= 20"))
    assert (found["panel"] == phase_cells.INTERIOR).sum() == len(interior)
