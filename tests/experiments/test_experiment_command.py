"""The command shared by all experiments: measure, write, draw, check, record, and print the findings at the end."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import diffrac_cvx as dc
from experiments.harness import provenance
from experiments.harness.command import Experiment, Oracle, Outcome, run
from experiments.harness.findings import Finding, one_row
from experiments.harness.tables import read_table

FIGURES = Path(__file__).parents[2] / "figures"
pytestmark = pytest.mark.usefixtures("folder", "here")


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


def test_a_full_run_writes_to_figures_and_a_smoke_run_to_build_and_both_end_with_the_findings(tmp_path, capsys):
    for grid, folder, largest in (("full", "figures", "0.6"), ("smoke", "build", "0.2")):
        assert run(EXPERIMENT, None, ["--grid", grid]) == 0
        *_, number, _, last = capsys.readouterr().out.splitlines()
        assert number.strip() == largest
        assert last == f"wrote {folder}/toy.csv, .pdf and .png"
        assert list(read_table(tmp_path / folder / "toy.csv").columns) == ["lam", "value"]
        assert not list((tmp_path / "build").glob("*.log"))
    (tmp_path / "figures" / "toy.png").unlink()
    assert run(replace(EXPERIMENT, measure=None), None, ["--draw-only"]) == 0
    assert (tmp_path / "figures" / "toy.png").read_text() == "3 points"


def test_a_column_of_all_rows_together_is_in_the_table_that_is_written(tmp_path):
    def complete(table):
        return table.assign(share=table["value"] / table["value"].sum())

    assert run(replace(EXPERIMENT, complete=complete), None, []) == 0
    assert read_table(tmp_path / "figures" / "toy.csv")["share"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("by", "status"), [(measure, 0), (measure_wrongly, 1)])
def test_the_exit_status_says_whether_the_oracle_agrees(tmp_path, capsys, by, status):
    held = replace(EXPERIMENT, oracle=Oracle(cells, by, compare), check=check)
    assert run(held, None, []) == status
    assert f"largest difference {status}" in capsys.readouterr().out
    assert len(read_table(tmp_path / "figures" / "toy_agreement.csv")) == 3
    assert run(held, None, ["--draw-only"]) == status


# Provenance


def test_every_table_has_a_record():
    recorded = provenance.read_records(FIGURES)
    assert set(recorded) == {path.stem for path in FIGURES.glob("*.csv")}
    for entry in recorded.values():
        assert set(entry) == {"version", "commit", "machine", "seconds"}


def test_a_full_run_records_the_code_the_machine_and_the_processor_seconds_beside_other_tables(tmp_path):
    Path("figures").mkdir()
    provenance.record(["other"], 1.2)
    assert run(EXPERIMENT, None, []) == 0
    entry = provenance.read_records()["toy"]
    assert entry["version"] == dc.__version__
    assert re.fullmatch(r"[0-9a-f]{12}\+?|unknown", entry["commit"])
    assert entry["machine"] == provenance.read_machine()
    assert entry["seconds"] >= 0
    assert provenance.read_records()["other"]["seconds"] == 1
    assert run(EXPERIMENT, None, ["--grid", "smoke"]) == 0
    assert provenance.read_records(Path("build")) == {}


def test_outside_a_repository_the_commit_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.read_commit() == "unknown"
