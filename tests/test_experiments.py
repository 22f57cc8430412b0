"""The experiments of Figure 2 and of the theory: their instances, their exact tests, their words."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from experiments.harness import reproduction
from experiments.harness.tables import read_table
from experiments.theory import cells as theory_cells
from experiments.theory import fit as theory_fit
from experiments.theory import label_recovery, noise_columns, solution_support, spectrum, unique_solution
from experiments.unbalanced import cells as unbalanced_cells

FIGURES = Path(__file__).parent.parent / "figures"
each_section = pytest.mark.parametrize("section", reproduction.SECTIONS, ids=lambda section: section.stem)
each_cells = pytest.mark.parametrize("module", [unbalanced_cells, theory_cells], ids=lambda module: module.__name__)


@each_section
def test_every_statement_has_a_number_and_the_table_is_there(section):
    claims = section.claims(read_table(FIGURES / f"{section.stem}.csv"))
    for claim in claims:
        assert re.search(r"\d", claim.measured), claim.place
        assert "nan" not in claim.measured, claim.place
        assert not re.search(r"Not said|nan", claim.verdict)
    for suffix in (".pdf", ".png"):
        assert (FIGURES / f"{section.stem}{suffix}").exists()


def test_the_page_is_what_the_tables_say():
    assert reproduction.PAGE.read_text() == reproduction.format_page()


def test_a_missing_table_is_named_and_the_rest_is_written(tmp_path):
    page = reproduction.format_page(tmp_path)
    assert page.count("Not measured yet") == len(reproduction.SECTIONS)
    assert "make runtime" in page


@each_cells
@pytest.mark.parametrize("grid", ["full", "smoke"])
def test_a_grid_has_no_cell_twice(module, grid):
    cells = [tuple(cell.items()) for cell in module.cells_of(grid)]
    assert len(set(cells)) == len(cells) > 0


def test_the_grids_are_the_papers_and_more():
    unbalanced = pd.DataFrame(unbalanced_cells.cells_of("full"))
    assert (unbalanced[unbalanced["path"] == "alpha"].groupby(["parameter", "noise"]).size() == 10).all()
    assert {0.0, 1.0, unbalanced_cells.ALPHA_STAR} <= set(unbalanced["parameter"])
    assert 0.0 in set(unbalanced["noise"])


def test_the_planted_imbalance_is_exact_at_eighty_points():
    y = dc.datasets.make_planted(80, 10, imbalance=0.25, rng=0).y
    assert np.mean(y) ** 2 == 0.25


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_penalised_value_is_the_constrained_one_plus_nu_alpha(noise):
    row = unbalanced_cells.measure("dual", 0.03, noise, 0)
    assert row["difference"] == pytest.approx(0.0, abs=1e-7)
    assert row["apart"] == 0.0


def test_between_alpha_star_and_one_the_solution_has_rank_two_and_the_projection_finds_the_labels():
    row = unbalanced_cells.measure("alpha", 0.5, 0.0, 1)
    assert row["rank"] == 2
    assert row["error_sign_centered"] == 0.0


# Uniqueness, exactly.


def balanced(n, d, seed=0):
    return noise_columns.balanced_points(
        lambda rng, shape: rng.standard_normal(shape), n, d, np.random.default_rng(seed)
    )


@pytest.mark.parametrize(("n", "unique"), [(12, False), (20, False), (50, True), (100, True)])
def test_uniqueness_agrees_with_the_rank_that_an_interior_point_finds(n, unique):
    B = balanced(n, 8)  # the statistical dimension is 22
    assert unique_solution.is_unique(B, 1) is unique
    B[:, 1:] -= B[:, 1:].mean(axis=0)
    ratio = dc.metrics.eigenvalue_ratio(dc.solve(dc.v_space(B), "CLARABEL").F)
    assert (ratio < 1e-2) is unique_solution.is_unique(B, 1) is unique


def test_the_quadratic_forms_are_linear_in_the_upper_triangle():
    rng = np.random.default_rng(0)
    B, Delta = rng.standard_normal((7, 4)), rng.standard_normal((4, 4))
    Delta += Delta.T
    rows, columns = np.triu_indices(4)
    entries = Delta[rows, columns] * np.where(rows == columns, 1.0, 2**0.5)
    np.testing.assert_allclose(unique_solution.quadratic_forms(B) @ entries, np.einsum("ij,jk,ik->i", B, Delta, B))


@pytest.mark.parametrize(("D", "planted"), [(8, 1), (9, 2), (11, 4)])
def test_the_threshold_is_near_the_statistical_dimension(D, planted):
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        labels = np.where(rng.random((200, max(planted - 1, 1))) < 0.5, 1.0, -1.0)
        first = labels if planted == 1 else np.column_stack([np.ones(200), labels])
        found.append(
            unique_solution.points_for_uniqueness(
                np.column_stack([first, rng.standard_normal((200, D - planted))]), planted
            )
        )
    assert np.mean(found) == pytest.approx(unique_solution.statistical_dimension(D, planted), rel=0.12)


def test_rademacher_columns_always_leave_another_solution():
    rng = np.random.default_rng(0)
    B = np.where(rng.random((300, 6)) < 0.5, 1.0, -1.0)
    assert unique_solution.points_for_uniqueness(B, 1) == 301


# The theory.


@pytest.mark.parametrize("beta", [1.0, 1.8, 3.0, 9.0])
@pytest.mark.parametrize("m", [0.1, 1.0, 2.0])
def test_the_spectrum_has_the_closed_form_of_the_appendix(m, beta):
    row = spectrum.measure_spectrum(5, m, beta)
    assert row["largest_error"] < 1e-10
    assert row["mu_1"] == pytest.approx(row["mu_1_paper"], abs=1e-10)


@pytest.mark.parametrize(
    "law", ["three-point 1", "three-point 1.3", "three-point 30", "uniform", "gaussian", "laplace"]
)
def test_a_law_of_noise_has_unit_variance_and_its_kurtosis(law):
    beta, draw = noise_columns.LAWS[law]
    z = draw(np.random.default_rng(0), (400_000, 1))
    assert np.mean(z**2) == pytest.approx(1.0, rel=0.03)
    assert np.mean(z**4) == pytest.approx(beta, rel=0.05)


def test_the_places_of_the_laws_which_enter_the_seeds_stay():
    table = read_table(FIGURES / "theory.csv")
    assert list(table["law"].dropna().unique()) == list(noise_columns.LAWS)


def test_signs_are_redrawn_and_not_shifted():
    rng = np.random.default_rng(0)
    Z = noise_columns.with_mean_zero(noise_columns.three_point(1.3)(rng, (40, 5)), rng)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    assert len(np.unique(np.abs(Z))) == 2


@pytest.mark.parametrize("noise", [0.2, 0.6, 1.0])
def test_in_one_dimension_the_labels_are_optimal_exactly_when_the_signs_agree(noise):
    for replication in range(5):
        row = label_recovery.measure_one_dimension(10, noise, replication)
        assert row["agree"] == row["optimal"] == row["recovered"]


@pytest.mark.parametrize(("n", "unique"), [(12, 0), (60, 1)])
def test_the_constrained_relaxation_returns_the_lemmas_matrix_where_it_is_the_only_solution(n, unique):
    row = solution_support.measure_lemma(6, n, 0.6, 0)
    assert row["value"] < 1e-6
    assert row["unique"] == unique
    assert (row["distance"] < 1e-3) == bool(unique)


def test_labels_with_a_dependent_product_have_other_solutions_than_diagonal_ones():
    assert solution_support.measure_family(3, 6, 0)["diagonal"] == 0  # seven members in six dimensions
    rows = [solution_support.measure_family(2, 12, r) for r in range(20)]
    assert all(row["independent"] == row["diagonal"] for row in rows)
    assert 0 < sum(row["diagonal"] for row in rows)


def test_the_sparse_boundary_is_where_the_error_steps():
    rows = [
        {"sparsity": 2, "d": d, "n": n, "error": float(n < 3 * d)} for d in (10, 20) for n in range(d, 6 * d, d // 2)
    ]
    boundaries = theory_fit.sparse_boundaries(pd.DataFrame(rows))
    assert theory_fit.sparse_slopes(boundaries)[2] == pytest.approx(3.0, abs=0.3)
