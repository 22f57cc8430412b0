"""Figures 5 and 6, and the files of Table 1: available and excluded data sets."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import diffrac_cvx as dc
from experiments.choice.findings import findings as choice_findings
from experiments.data.loading import keep_loadable
from experiments.harness.findings import markdown
from experiments.harness.tables import read_table
from experiments.multi_label import cells as multi_label_cells
from experiments.multi_label import data as multi_label_data
from experiments.multi_label import findings as multi_label_claims

ROOT = Path(__file__).parents[2]
MULTI_LABEL = read_table(ROOT / "figures" / "multi_label.csv")


def test_a_set_that_is_damaged_is_left_out_with_its_error(capsys):
    def load(name):
        if name == "damaged":
            raise dc.DataError("its sha256 differs")

    assert keep_loadable(["damaged", "sound"], load) == ["sound"]
    assert capsys.readouterr().out == "damaged is excluded: its sha256 differs\n"


def test_without_the_stand_in_the_correlations_are_those_of_the_first_set_that_is_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DIFFRAC_DATA_HOME", str(tmp_path))
    multi_label_data.load_labeled.cache_clear()
    cells = multi_label_cells.cells_of("full", sets=("corel5k", "digits"))
    assert {cell["data_set"] for cell in cells if cell["method"] == "correlations"} == {"digits"}
    assert "corel5k is excluded" in capsys.readouterr().out


def test_the_heatmap_is_ordered_by_sums_of_squares():
    names, matrix = multi_label_claims.correlation_matrix(MULTI_LABEL)
    assert matrix.shape == (30, 80) == (30, len(names))
    for axis in (0, 1):
        assert np.all(np.diff(np.sum(matrix**2, axis=axis)) <= 1e-12)


def test_a_set_without_correlations_and_other_settings_has_its_traces_alone():
    (only,) = multi_label_claims.findings(MULTI_LABEL[MULTI_LABEL["data_set"] == "digits"])
    assert list(only.verdicts) == ["fig5-trace"]


def test_the_ridge_of_the_table_is_the_weight_of_the_squares_and_not_its_root():
    assert sorted(set(MULTI_LABEL["ridge"])) == list(multi_label_cells.OTHER_RIDGE)
    assert multi_label_cells.OTHER_RIDGE == pytest.approx([0.1**2, 0.3**2, 0.5**2, 0.7**2, 1.0])
    v = np.ones(2)
    used = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dc, "fista", lambda X, nu, penalty, tol: used.append(penalty))
        multi_label_cells.solve_relaxation.__wrapped__("digits", 0.1, 0.09)
    assert np.sum((used[0].a * v) ** 2) == pytest.approx(0.09 * (v @ v))


def test_attributes_of_the_digits_are_what_they_say():
    digits = multi_label_data.load_labeled("digits")
    from sklearn.datasets import load_digits

    number = load_digits().target
    even = digits.Y[:, digits.names.index("even")]
    np.testing.assert_array_equal(even > 0, number % 2 == 0)


def test_the_overlap_of_a_row_is_that_of_its_labels():
    row = multi_label_cells.measure("digits", "random", 3, 0, 0.1, 0.5)
    found = multi_label_cells.labels_of("digits", "random", 3, 0)
    assert row["overlap"] == dc.metrics.label_subspace_overlap(multi_label_data.load_labeled("digits").Y, found)
    assert 0 < row["overlap"] < 3


@pytest.mark.slow
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
    assert {"m.png", "m_correlations.png", "t.png", "t.md"} <= {path.name for path in tmp_path.iterdir()}


def test_a_method_whose_package_is_missing_is_named_in_the_text_and_is_no_number():
    table = read_table(ROOT / "figures" / "choice.csv")
    table["gemclus"] = np.nan
    means = choice_findings(table)[0].table
    assert means.loc["gemclus, linear"].isna().all()
    text = markdown(means)
    assert "|gemclus, linear|none|" in text
    assert "nan" not in text
