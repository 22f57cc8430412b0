"""Figure 1: its cells, its boundaries, its comparison with the oracle."""

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from experiments.phase_transition import cells as phase_cells
from experiments.phase_transition import fit as phase_fit
from experiments.phase_transition.agreement import check_agreement, compare_with_oracle


def cell(panel: str, n: int, d: int, replication: int = 0) -> dict:
    return {"panel": panel, "n": n, "d": d, "replication": replication}


@pytest.mark.parametrize(("n", "rank_one"), [(12, 0), (60, 1)])
def test_the_affine_solution_is_rank_one_above_the_statistical_dimension_only(n, rank_one):
    row = phase_cells.measure_fast(**cell("affine", n, 10))  # d + d(d-1)/4 = 32.5
    assert row["rank_one"] == rank_one
    assert row["gap"] <= phase_cells.TOLERANCES["affine"]


@pytest.mark.parametrize("n", [8, 12, 24, 40])
def test_uniqueness_by_the_linear_program_is_the_rank_that_an_interior_point_finds(n):
    fast = phase_cells.measure_fast(**cell("1-sparse", n, 24))
    oracle = phase_cells.measure_reference(**cell("1-sparse", n, 24))
    assert fast["rank_one"] == oracle["rank_one"]


def test_a_cell_gives_the_same_row_every_time():
    assert phase_cells.measure_fast(**cell("4-sparse", 40, 10)) == phase_cells.measure_fast(**cell("4-sparse", 40, 10))


def test_the_oracle_sample_is_at_least_a_hundred_cells_of_the_grid_and_always_the_same():
    sample = phase_cells.sample_of("full")
    assert len(sample) >= 100
    assert sample == phase_cells.sample_of("full")
    keys = {tuple(c.values()) for c in phase_cells.cells_of("full")}
    assert len({tuple(c.values()) for c in sample} & keys) == len(sample)


def test_the_grid_reaches_where_the_paper_and_its_transitions_are():
    cells = pd.DataFrame(phase_cells.cells_of("full"))
    assert (cells.groupby(["panel", "d", "n"]).size() >= 4).all()
    affine, sparse = cells[cells["panel"] == "affine"], cells[cells["panel"] == "1-sparse"]
    assert affine["d"].min() == 2
    assert affine["d"].max() == 40
    assert affine["n"].max() >= 500
    assert sparse["d"].max() == 300
    assert (sparse["n"] < sparse["d"]).any()


def test_the_boundary_of_a_step_is_where_it_steps():
    n = np.arange(10, 101, 5)
    assert phase_fit.boundary(n, (n > 52).astype(float)) == pytest.approx(52.5)
    assert np.isnan(phase_fit.boundary(n, np.zeros(len(n))))


def test_the_fit_returns_the_power_law_it_was_given():
    rows = [{"d": d, "n": n, "rank_one": int(n >= 0.5 * d**1.8)} for d in range(10, 41, 5) for n in range(2, 500, 2)]
    fit = phase_fit.fit_boundary(pd.DataFrame(rows), "rank_one")
    assert fit.exponent == pytest.approx(1.8, abs=0.03)


def agreement_of(**changes: float) -> bool:
    row = {**cell("affine", 40, 8), "value": 0.5, "lower": 0.49, "upper": 0.5, "gap": 0.01}
    row |= {"eigenvalue_ratio": 1e-5, "rank_one": 1, "verdict": "eigenvalue ratio", "error": 0.0}
    found = compare_with_oracle(pd.DataFrame([row]), pd.DataFrame([{**row, **changes}]))
    return check_agreement(found).passed


@pytest.mark.parametrize(
    ("changes", "agree"),
    [
        ({}, True),
        ({"value": 0.52, "lower": 0.51, "upper": 0.52}, False),
        ({"value": 0.48, "lower": 0.47, "upper": 0.48}, False),
        ({"rank_one": 0, "eigenvalue_ratio": 0.9}, False),
        ({"rank_one": 0, "eigenvalue_ratio": 0.05}, True),  # in the ambiguous band
        ({"error": 0.1}, False),
    ],
)
def test_a_disagreement_with_the_oracle_fails_the_run(changes, agree):
    assert agreement_of(**changes) is agree


def test_the_lambda_of_the_sparse_panels_is_that_of_the_paper():
    row = phase_cells.measure_fast(**cell("1-sparse", 64, 4))
    assert row["lam"] == pytest.approx(1 / 8)
    X, y = phase_cells.data_of("1-sparse", 64, 4, 0)
    np.testing.assert_allclose(np.mean(X**2, axis=0), 1.0)
    assert y.sum() == 0
    assert row["value"] == pytest.approx(row["lam"] / (1 + row["lam"]), abs=1e-4)
    assert dc.metrics.clustering_error(y, np.sign(X[:, 0])) == 0


def test_more_points_of_a_stream_keep_the_ones_before():
    few, y_few = phase_cells.data_of("1-sparse", 20, 6, 1)
    many, y_many = phase_cells.data_of("1-sparse", 60, 6, 1)
    np.testing.assert_array_equal(y_few, y_many[:20])
    np.testing.assert_allclose(np.mean(many**2, axis=0), 1.0)
    head = many[:20] - many[:20].mean(axis=0)
    np.testing.assert_allclose(np.abs(few), np.abs(head / np.sqrt(np.mean(head**2, axis=0))))  # up to signs


@pytest.mark.parametrize(("panel", "support"), [("affine", 4), ("1-sparse", 1), ("4-sparse", 4)])
def test_the_labels_are_a_sparse_combination_of_the_columns(panel, support):
    X, y = phase_cells.data_of(panel, 40, 8, 0)
    v, residual, *_ = np.linalg.lstsq(X[:, :support], y)
    assert residual[0] < 1e-20
    assert np.all(np.abs(v) > 1e-3)
