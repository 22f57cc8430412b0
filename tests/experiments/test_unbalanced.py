"""Figure 2: its instances, and the duality of alpha and nu."""

import pytest

import diffrac_cvx as dc
from experiments.unbalanced import cells as unbalanced_cells


def test_the_penalized_value_is_the_constrained_one_at_the_imbalance_of_its_solution_plus_nu_alpha():
    X = dc.datasets.make_planted(24, 5, sparsity=2, imbalance=0.1, noise=0.3, rng=5).X
    for nu in (0.003, 0.1, 1.0):
        penalized = dc.low_rank(X, nu, tol=1e-6)
        alpha = dc.metrics.factor_imbalance(penalized.F)
        constrained = dc.solve(dc.constrained_alpha(X, alpha), "CLARABEL")
        assert constrained.lower + nu * alpha <= penalized.upper + 1e-9
        assert constrained.upper + nu * alpha >= penalized.lower - 1e-9
        assert constrained.value + nu * alpha == pytest.approx(penalized.value, abs=1e-4)


def test_between_alpha_star_and_one_the_solution_has_rank_two_and_the_projection_finds_the_labels(monkeypatch):
    monkeypatch.setattr(unbalanced_cells, "N", 40)
    monkeypatch.setattr(unbalanced_cells, "D", 5)
    row = unbalanced_cells.measure("alpha", 0.5, 0.0, 1)
    assert row["rank"] == 2
    assert row["error_sign_centered"] == 0.0
