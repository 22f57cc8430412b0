"""Figures 5 and 6, and the files of Table 1: available and excluded data sets."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import diffrac_cvx as dc
from experiments.choice.findings import findings as choice_findings
from experiments.data.loading import keep_loadable
from experiments.harness.findings import markdown
from experiments.harness.tables import read_table
from experiments.multi_label import cells as multi_label_cells

ROOT = Path(__file__).parents[2]


def test_a_set_that_is_damaged_is_left_out_with_its_error(capsys):
    def load(name):
        if name == "damaged":
            raise dc.DataError("its sha256 differs")

    assert keep_loadable(["damaged", "sound"], load) == ["sound"]
    assert capsys.readouterr().out == "damaged is excluded: its sha256 differs\n"


def test_without_the_stand_in_the_correlations_are_those_of_the_first_set_that_is_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DIFFRAC_DATA_HOME", str(tmp_path))
    multi_label_cells.load_labeled.cache_clear()
    cells = multi_label_cells.cells_of("full", sets=("corel5k", "digits"))
    assert {cell["data_set"] for cell in cells if cell["method"] == "correlations"} == {"digits"}
    assert "corel5k is excluded" in capsys.readouterr().out


def test_attributes_of_the_digits_are_what_they_say():
    digits = multi_label_cells.load_labeled("digits")
    np.testing.assert_array_equal(digits.Y[:, digits.names.index("even")] > 0, load_digits().target % 2 == 0)


def test_a_method_whose_package_is_missing_is_named_in_the_text_and_is_no_number():
    table = read_table(ROOT / "figures" / "choice.csv")
    table["gemclus"] = np.nan
    means = choice_findings(table)[0].table
    assert means.loc["gemclus, linear"].isna().all()
    text = markdown(means)
    assert "|gemclus, linear|none|" in text
    assert "nan" not in text
