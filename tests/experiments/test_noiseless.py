"""Figure 2: its instances and their exact tests."""

import pandas as pd
import pytest

from experiments.unbalanced import cells as unbalanced_cells


def test_the_grids_are_the_papers_and_more():
    unbalanced = pd.DataFrame(unbalanced_cells.cells_of("full"))
    assert (unbalanced[unbalanced["path"] == "alpha"].groupby(["parameter", "noise"]).size() == 10).all()
    assert {0.0, 1.0, unbalanced_cells.ALPHA_STAR} <= set(unbalanced["parameter"])
    assert 0.0 in set(unbalanced["noise"])


@pytest.fixture(autouse=True)
def _half_the_size(monkeypatch):
    monkeypatch.setattr(unbalanced_cells, "N", 40)
    monkeypatch.setattr(unbalanced_cells, "D", 5)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_penalized_value_is_the_constrained_one_plus_nu_alpha(noise):
    row = unbalanced_cells.measure("dual", 0.03, noise, 0)
    assert row["difference"] == pytest.approx(0.0, abs=1e-7)
    assert row["apart"] == 0.0


def test_between_alpha_star_and_one_the_solution_has_rank_two_and_the_projection_finds_the_labels():
    row = unbalanced_cells.measure("alpha", 0.5, 0.0, 1)
    assert row["rank"] == 2
    assert row["error_sign_centered"] == 0.0
