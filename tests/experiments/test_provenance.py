"""Provenance of the tables: what is recorded when one is measured."""

import re
from pathlib import Path

import pandas as pd
import pytest

import diffrac_cvx as dc
from experiments.harness import provenance
from experiments.harness.command import Experiment, run

FIGURES = Path(__file__).parents[2] / "figures"


def measure(k):
    return {"value": sum(i * i for i in range(300_000 * k))}


TOY = Experiment("toy", lambda grid: [{"k": k} for k in (1, 2)], measure, None, lambda table: [])


def test_every_table_has_a_record():
    recorded = provenance.read_records(FIGURES)
    assert set(recorded) == {path.stem for path in FIGURES.glob("*.csv")}
    for entry in recorded.values():
        assert set(entry) == {"version", "commit", "machine", "seconds"}


@pytest.mark.usefixtures("folder", "here")
def test_a_full_run_records_the_code_the_machine_and_the_processor_seconds_of_its_cells():
    assert run(TOY, None, []) == 0
    assert list(pd.read_csv("figures/toy.csv").columns) == ["k", "value"]
    entry = provenance.read_records()["toy"]
    assert entry["version"] == dc.__version__
    assert re.fullmatch(r"[0-9a-f]{12}\+?|unknown", entry["commit"])
    assert entry["machine"] == provenance.read_machine()
    assert entry["seconds"] >= 0
    assert run(TOY, None, ["--grid", "smoke"]) == 0
    assert provenance.read_records(Path("build")) == {}


def test_outside_a_repository_the_commit_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.read_commit() == "unknown"


def test_records_of_other_tables_are_kept(tmp_path):
    provenance.record(["a", "b"], 1.2, tmp_path)
    provenance.record(["b"], 7.6, tmp_path)
    found = provenance.read_records(tmp_path)
    assert (found["a"]["seconds"], found["b"]["seconds"]) == (1, 8)
