"""Table 1 and Figures 5 and 6: what is chosen, what is left out, and a user's own data."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import diffrac_cvx as dc
from experiments.data.loading import keep_loadable
from experiments.harness.command import run
from experiments.harness.tables import read_table
from experiments.multi_label import cells as multi_label_cells
from experiments.multi_label import claims as multi_label_claims
from experiments.multi_label import data as multi_label_data
from experiments.multi_label.__main__ import EXPERIMENT as MANY_LABELS
from experiments.two_class import cells as two_class_cells
from experiments.two_class import claims as two_class_claims
from experiments.two_class import table as two_class_table

ROOT = Path(__file__).parent.parent
TWO_CLASS = read_table(ROOT / "figures" / "two_class.csv")
MULTI_LABEL = read_table(ROOT / "figures" / "multi_label.csv")
ROWS = two_class_table.summary(TWO_CLASS).set_index("data_set")


# Table 1


def test_the_table_has_all_nine_sets_in_the_papers_order():
    assert tuple(ROWS.index) == dc.datasets.names() == tuple(two_class_table.PAPER)


@pytest.mark.parametrize("name", ["heart", "diabetes", "breast_cancer", "australian"])
def test_the_sparse_column_reaches_the_papers_figure(name):
    assert ROWS.loc[name, "sparse"] <= ROWS.loc[name, "paper sparse"] + 0.02


def test_the_grid_is_the_papers():
    grid = TWO_CLASS[TWO_CLASS["method"] == "relaxation"]
    assert set(grid["a"]) == {1e-3, 1e-2, 1e-1}
    assert set(grid["c"]) == {0.0, 1e-3, 1e-2, 1e-1}
    assert set(grid["nu"]) == {0.01, 0.25, 0.5, 0.75, 1.0}
    assert (grid.groupby("data_set").size() == 60).all()
    assert (TWO_CLASS[TWO_CLASS["method"] == "k-means"].groupby("data_set").size() == 10).all()


def test_no_constant_labelling_is_among_the_figures():
    kept = two_class_table.two_clusters(TWO_CLASS)
    assert kept["size_of_smaller"].min() >= 0.01
    assert (ROWS["smaller cluster"] >= 0.01).all()
    left_out = TWO_CLASS[(TWO_CLASS["method"] == "relaxation") & (TWO_CLASS["size_of_smaller"] < 0.01)]
    assert len(left_out) > 0
    assert ROWS.loc["w1a", "sparse"] > left_out[left_out["data_set"] == "w1a"]["error"].min()


def test_where_the_papers_figure_is_one_cluster_the_constant_error_is_no_higher():
    for name in two_class_claims.ONE_CLUSTER:
        assert ROWS.loc[name, "constant"] <= ROWS.loc[name, "paper sparse"] + 0.01


def test_a_choice_without_labels_is_never_better_than_the_best_with_them():
    best = ROWS[["sparse", "non-sparse"]].min(axis=1)
    for choice in two_class_table.CHOICES:
        assert (ROWS[choice] >= best - 1e-12).all()


def test_a_measured_row_is_what_the_functions_say():
    X, y = two_class_cells.load_scaled("heart")
    np.testing.assert_allclose(np.sum(X**2, axis=0), 1.0)
    row = two_class_cells.measure_relaxation(X, y, 1.0, two_class_cells.penalty_of(1e-3, 1e-3))
    stored = TWO_CLASS.query(
        "data_set == 'heart' and method == 'relaxation' and a == 1e-3 and c == 1e-3 and nu == 1"
    ).iloc[0]
    assert row["error"] == pytest.approx(stored["error"])
    assert row["value"] == pytest.approx(stored["value"], abs=2 * two_class_cells.TOLERANCE)
    assert -1e-12 <= row["gap"] <= two_class_cells.TOLERANCE
    assert row["label_gap"] >= -1e-9


def test_two_valued_columns_and_the_points_needed_are_counted():
    heart = two_class_cells.measure_facts(*two_class_cells.load_scaled("heart"))
    assert heart["two_valued"] == 3
    assert heart["points_needed"] == 13 + 13 * 12 / 4
    assert heart["constant_error"] == pytest.approx(1 - (30 / 270) ** 2)


def test_both_texts_hold_every_set_and_every_caption():
    markdown = two_class_table.markdown(ROWS.reset_index())
    latex = two_class_table.latex(ROWS.reset_index())
    for name in ROWS.index:
        assert markdown.count(f"| {name.replace('_', ' ')} |") == latex.count(f"\n{name.replace('_', ' ')} &") == 3
    assert "by the true labels" in markdown
    assert markdown == (ROOT / "figures" / "two_class.md").read_text()
    assert latex == (ROOT / "figures" / "two_class.tex").read_text()


def test_a_set_that_is_not_there_is_left_out_and_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DIFFRAC_DATA_HOME", str(tmp_path))
    sets = {cell["data_set"] for cell in two_class_cells.cells_of("full")}
    assert sets == {name for name in dc.datasets.names() if dc.datasets.describe(name).shipped}
    printed = capsys.readouterr().out
    assert 'fetch("australian")' in printed
    assert 'fetch("w1a")' in printed


# Figures 5 and 6


def test_the_relaxation_is_ahead_of_kmeans_on_the_stand_in_with_and_without_the_constant_vector():
    at = MULTI_LABEL[(MULTI_LABEL["data_set"] == "corel5k") & (MULTI_LABEL["k"] == 30)].groupby("method")
    for column in ("overlap", "overlap_centred"):
        mean = at[column].mean()
        assert mean["relaxation"] > mean["k-means"] > mean["random"]


def test_a_set_that_is_damaged_is_left_out_with_its_error(capsys):
    def load(name):
        if name == "damaged":
            raise dc.DataError("its sha256 differs")

    assert keep_loadable(["damaged", "sound"], load) == ["sound"]
    assert capsys.readouterr().out == "damaged is left out: its sha256 differs\n"


def test_without_the_stand_in_the_correlations_are_those_of_the_first_set_that_is_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DIFFRAC_DATA_HOME", str(tmp_path))
    multi_label_data.load_labelled.cache_clear()
    cells = multi_label_cells.cells_of("full", sets=("corel5k", "digits"))
    assert {cell["data_set"] for cell in cells if cell["method"] == "correlations"} == {"digits"}
    assert "corel5k is left out" in capsys.readouterr().out


def test_the_stand_in_has_the_papers_sizes():
    rows = MULTI_LABEL[(MULTI_LABEL["data_set"] == "corel5k") & (MULTI_LABEL["method"] == "relaxation")]
    assert set(rows["n"]) == {2000}
    assert set(rows["labels"]) == {80}


def test_the_heatmap_is_ordered_by_sums_of_squares():
    names, matrix = multi_label_claims.correlation_matrix(MULTI_LABEL)
    assert matrix.shape == (30, 80) == (30, len(names))
    for axis in (0, 1):
        assert np.all(np.diff(np.sum(matrix**2, axis=axis)) <= 1e-12)


def test_attributes_of_the_digits_are_what_they_say():
    digits = multi_label_data.load_labelled("digits")
    from sklearn.datasets import load_digits

    number = load_digits().target
    even = digits.Y[:, digits.names.index("even")]
    np.testing.assert_array_equal(even > 0, number % 2 == 0)


def test_the_overlap_of_a_row_is_that_of_its_labels():
    row = multi_label_cells.measure("digits", "random", 3, 0, 0.1, 0.5)
    found = multi_label_cells.labels_of("digits", "random", 3, 0)
    assert row["overlap"] == dc.metrics.label_subspace_overlap(multi_label_data.load_labelled("digits").Y, found)
    assert 0 < row["overlap"] < 3


def own_files(folder, Y):
    planted = dc.datasets.make_planted(60, 5, rng=0)
    X = folder / "features.npy"
    np.save(X, planted.X)
    labels = folder / "labels.csv"
    np.savetxt(labels, np.column_stack([planted.y, Y]), delimiter=",")
    return str(X), str(labels)


def test_own_features_and_labels_run_through_the_same_cells(tmp_path):
    x, y = own_files(tmp_path, np.where(np.arange(60) % 3, 1.0, -1.0))
    name = f"{x}{multi_label_data.OWN}{y}"
    cells = multi_label_cells.cells_of("smoke", sets=(name,))
    assert {cell["method"] for cell in cells} == {*multi_label_cells.METHODS, "correlations"}
    row = multi_label_cells.measure(**next(cell for cell in cells if cell["method"] == "relaxation"))
    assert row["labels"] == 2
    assert 0 <= row["overlap"] <= 1 + 1e-9


def test_own_labels_that_are_not_two_valued_are_refused_in_words(tmp_path, capsys):
    x, y = own_files(tmp_path, np.arange(60) % 3)
    assert run(MANY_LABELS, None, ["--x", x, "--y", y]) == 2
    assert "column 1" in capsys.readouterr().err


@pytest.mark.parametrize(("x", "y"), [("nowhere.npy", "nowhere.csv"), ("", "nowhere.csv")])
def test_own_files_that_are_not_there_are_named(x, y, capsys):
    assert run(MANY_LABELS, None, ["--x", x, "--y", y]) == 2
    assert "is not a file" in capsys.readouterr().err


def test_the_figure_is_drawn_from_the_table_alone(tmp_path):
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from experiments.harness.tables import read_table\n"
        "from experiments.multi_label.plot import draw as draw_many\n"
        "from experiments.two_class.plot import draw as draw_two\n"
        "draw_many(read_table(Path('figures/multi_label.csv')), Path(sys.argv[1]) / 'm')\n"
        "draw_two(read_table(Path('figures/two_class.csv')), Path(sys.argv[1]) / 't')\n"
    )
    environment = {"PATH": "/usr/bin:/bin", "DIFFRAC_DATA_HOME": str(tmp_path), "MPLCONFIGDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, env=environment, check=True)
    assert {"m.png", "m_correlations.png", "t.png", "t.md", "t.tex"} <= {path.name for path in tmp_path.iterdir()}
