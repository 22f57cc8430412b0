"""The command shared by all experiments: measure, write, draw, check, and print the findings at the end."""

from dataclasses import replace

import pandas as pd
import pytest

import diffrac_cvx as dc
from experiments.harness.command import Experiment, Oracle, Outcome, run
from experiments.harness.findings import Finding, one_row
from experiments.harness.tables import read_table


def cells(grid):
    return [{"lam": lam} for lam in ([0.1, 0.2, 0.3] if grid == "full" else [0.1])]


def measure(lam):
    return {"value": 2.0 * lam}


def measure_wrongly(lam):
    return {"value": 2.0 * lam + 1.0}


def draw(table, stem):
    stem.with_suffix(".png").write_text(f"{len(table)} points")


def findings(table):
    return [Finding("The value doubles lambda", one_row(largest=table["value"].max()))]


def compare(table, oracle):
    return pd.DataFrame({"difference": (table["value"] - oracle["value"]).abs()})


def check(agreement):
    return Outcome(f"largest difference {agreement['difference'].max():g}", bool((agreement["difference"] == 0).all()))


EXPERIMENT = Experiment("toy", cells, measure, draw, findings)


pytestmark = pytest.mark.usefixtures("folder")


def test_a_full_run_writes_to_figures_and_a_smoke_run_to_build_and_both_end_with_the_findings(here, tmp_path, capsys):
    for grid, folder, largest in (("full", "figures", "0.6"), ("smoke", "build", "0.2")):
        assert run(EXPERIMENT, None, ["--grid", grid]) == 0
        *_, number, _, last = capsys.readouterr().out.splitlines()
        assert number.strip() == largest
        assert last == f"wrote {folder}/toy.csv, .pdf and .png"
        assert list(read_table(tmp_path / folder / "toy.csv").columns) == ["lam", "value"]
        assert not list((tmp_path / "build").glob("*.log"))


def test_draw_only_measures_nothing(here, tmp_path):
    run(EXPERIMENT, None, [])
    (tmp_path / "figures" / "toy.png").unlink()
    assert run(replace(EXPERIMENT, measure=None), None, ["--draw-only"]) == 0
    assert (tmp_path / "figures" / "toy.png").read_text() == "3 points"


def test_a_column_of_all_rows_together_is_in_the_table_that_is_written(here, tmp_path):
    def complete(table):
        return table.assign(share=table["value"] / table["value"].sum())

    assert run(replace(EXPERIMENT, complete=complete), None, []) == 0
    assert read_table(tmp_path / "figures" / "toy.csv")["share"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("by", "status"), [(measure, 0), (measure_wrongly, 1)])
def test_the_exit_status_says_whether_the_oracle_agrees(here, tmp_path, capsys, by, status):
    held = replace(EXPERIMENT, oracle=Oracle(cells, by, compare), check=check)
    assert run(held, None, []) == status
    assert f"largest difference {status}" in capsys.readouterr().out
    assert len(read_table(tmp_path / "figures" / "toy_agreement.csv")) == 3
    assert run(held, None, ["--draw-only"]) == status


def test_an_option_of_its_own_chooses_the_variant_that_is_run(here, tmp_path, capsys):
    def by_name(name):
        if not name:
            raise dc.DataError("name is empty; give one")
        return replace(EXPERIMENT, name=name, folder="mine")

    own = replace(EXPERIMENT, options={"name": {"default": "toy"}}, variant=by_name)
    assert run(own, None, ["--name", "other"]) == 0
    assert (tmp_path / "mine" / "other.csv").exists()
    assert run(own, None, ["--name", ""]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "error: name is empty; give one"
