"""The command shared by all experiments: measure, write, draw, check, record, and print the findings at the end."""

import re
from pathlib import Path

import pytest
from toy import measure, noted, run

import diffrac_cvx as dc
from experiments.harness import provenance
from experiments.harness.command import Outcome
from experiments.harness.tables import read_table

FIGURES = Path(__file__).parents[2] / "figures"
pytestmark = pytest.mark.usefixtures("folder", "here")


def check(table):
    return Outcome(f"{len(table)} cells", bool((table["value"] == 1.0).all()))


def test_a_full_run_writes_to_figures_and_a_smoke_run_to_build_and_both_end_with_the_findings(capsys):
    for grid, folder, count in (("full", "figures", "24"), ("smoke", "build", "3")):
        assert run("--grid", grid) == 0
        *_, number, _, last = capsys.readouterr().out.splitlines()
        assert number == f"|{count}|"
        assert last == f"wrote {folder}/toy.csv, .pdf and .png"
        assert not list(Path("build").glob("*.log"))
    counts = noted()
    Path("figures/toy.png").unlink()
    assert run("--draw-only") == 0
    assert Path("figures/toy.png").exists()
    assert noted() == counts, "nothing is measured"


def test_a_column_of_all_rows_together_is_in_the_table_that_is_written():
    def complete(table):
        return table.assign(share=table["k"] / table["k"].sum())

    assert run(complete=complete) == 0
    assert read_table(Path("figures/toy.csv"))["share"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("reference", "status"), [([], 1), (["--reference"], 0)])
def test_the_exit_status_is_that_of_the_check_and_another_implementation_has_its_own_table(capsys, reference, status):
    fields = {"reference": lambda k, text: measure(k, text) | {"value": 1.0}, "check": check}
    assert run(*reference, **fields) == status
    assert "24 cells" in capsys.readouterr().out
    assert Path("figures/toy_reference.csv").exists() == (status == 0)
    assert run("--draw-only", *reference, **fields) == status


# Provenance


def test_every_table_has_a_record():
    recorded = provenance.read_records(FIGURES)
    assert set(recorded) == {path.stem for path in FIGURES.glob("*.csv")}
    for entry in recorded.values():
        assert set(entry) == {"version", "commit", "machine", "seconds"}


def test_a_full_run_records_the_code_the_machine_and_the_processor_seconds_beside_other_tables():
    Path("figures").mkdir()
    provenance.record(["other"], 1.2)
    assert run() == 0
    entry = provenance.read_records()["toy"]
    assert entry["version"] == dc.__version__
    assert re.fullmatch(r"[0-9a-f]{12}\+?|unknown", entry["commit"])
    assert entry["machine"] == provenance.read_machine()
    assert entry["seconds"] >= 0
    assert provenance.read_records()["other"]["seconds"] == 1
    assert run("--grid", "smoke") == 0
    assert provenance.read_records(Path("build")) == {}


def test_outside_a_repository_the_commit_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.read_commit() == "unknown"
