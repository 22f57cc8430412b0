"""Tables measured again: what is compared, and cells falsified by hand that are found."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from experiments import recheck
from experiments.harness import provenance
from experiments.harness.command import load
from experiments.harness.tables import read_table, write_table

DAY = "2026-11-26"
SMOKE = {  # experiment: the cells measured here, a column, and a false entry of it
    "unbalanced": (lambda cell: cell["path"] == "nu", "value", lambda value: value + 0.01),
    "phase_transition": (lambda one: (one["panel"], one["n"]) == ("4-sparse flat, 1/n", 100), "upper", lambda u: u / 2),
    "runtime": (lambda one: (one["method"], one["goal"]) == ("low_rank", "own"), "value", lambda value: value + 0.01),
    "affine_law": (lambda cell: cell["d"] <= 8, "only", lambda value: value + 2),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SMOKE)
def test_a_falsified_cell_is_found_and_a_true_table_agrees(name, tmp_path, here):
    chosen, column, falsify = SMOKE[name]
    cells = [cell for cell in load(name).cells("smoke") if chosen(cell)]
    experiment, path, count = replace(load(name), cells=lambda grid: cells), tmp_path / "table.csv", len(cells)
    write_table(pd.DataFrame([{**cell, **experiment.measure(**cell)} for cell in cells]), path)
    true = recheck.recheck(experiment, path, DAY, count)
    assert (true.cells, true.compared, true.disagreements) == (count, count, [])
    table = read_table(path)
    table.loc[0, column] = falsify(table.loc[0, column])
    write_table(table, path)
    (sentence,) = recheck.recheck(experiment, path, DAY, count).disagreements
    assert column in sentence


def rows(**columns):
    return pd.DataFrame({"panel": ["a"] * 6, "replication": range(6), **columns})


def disagreements(before, again):
    return list(recheck.compare(before, again, ["panel", "replication"]))


def test_errors_are_compared_as_means_of_a_panel():
    error = np.linspace(0.0, 0.5, 6)
    assert disagreements(rows(error=error), rows(error=error[::-1])) == []
    (sentence,) = disagreements(rows(error=error), rows(error=error + 0.3))
    assert "the mean of error over 6 cells has changed by 0.3" in sentence


def test_bounds_that_are_now_ten_times_as_close_say_that_the_table_is_of_code_that_proves_less():
    assert "lower was 1 and is 3" in disagreements(rows(lower=1, upper=0), rows(lower=3, upper=0))[0]  # counts
    table = rows(lower=0.2, upper=[0.20001, 0.205, 0.25, 0.3, 0.4, 0.5])
    now = table.assign(upper=[0.2000001, 0.20001, 0.24, 0.22, 0.205, 0.25])
    assert [sentence.split(":")[0][-1] for sentence in disagreements(table, now)] == ["4"]
    assert "were 0.2 apart and are 0.005" in disagreements(table, now)[0]
    assert disagreements(now, table) == []


def test_times_are_not_compared_and_other_entries_are_compared_one_by_one():
    before = rows(seconds=1.0, points=[10, 12, 14, 16, 18, 20], verdict="x")
    assert disagreements(before, before.assign(seconds=9.0)) == []
    assert len(disagreements(before, before.assign(points=[10, 12, 14, 16, 18, 22]))) == 1
    assert len(disagreements(before, before.assign(verdict="y"))) == 6


def cells(grid):
    return [{"part": part, "k": k} for part in ("a", "b") for k in range(20)]


def measure(part, k):
    if (part, k) == ("a", 3):
        raise ImportError("no such package")
    return {"value": float(k), "lower": 0.0, "upper": 1.0}


def test_the_sample_is_drawn_from_the_date_and_a_cell_that_fails_does_not_count(tmp_path, here):
    table = pd.DataFrame([{**cell, "value": float(cell["k"]), "lower": 0.0, "upper": 1.0} for cell in cells("full")])
    drawn = [recheck.draw_cells(table, cells("full"), day, 5)[0] for day in (DAY, DAY, "2026-11-27")]
    assert drawn[0] == drawn[1] != drawn[2]
    write_table(table, tmp_path / "toy.csv")
    toy = recheck.Experiment("toy", cells, measure, None, lambda table: [])
    found = recheck.recheck(toy, tmp_path / "toy.csv", DAY, 40)
    assert (found.cells, found.chosen, found.compared, found.disagreements) == (40, 40, 39, [])


def test_a_column_without_entries_is_not_compared_and_named(tmp_path, capsys, here):
    table = pd.DataFrame([{**cell, "value": float(cell["k"]), "rival": 1.0} for cell in cells("full")])
    write_table(table, tmp_path / "toy.csv")
    toy = recheck.Experiment(
        "toy", cells, lambda part, k: {**measure(part, k), "rival": np.nan}, None, lambda table: []
    )
    assert recheck.recheck(toy, tmp_path / "toy.csv", DAY, 40).disagreements == []
    assert "not measured here: rival" in capsys.readouterr().out


def test_a_table_whose_cells_need_what_is_not_here_is_not_compared(tmp_path, capsys):
    def absent(grid):
        raise recheck.DataError("build/tests.xml is missing")

    write_table(pd.DataFrame({"k": [1, 2]}), tmp_path / "toy.csv")
    toy = recheck.Experiment("toy", absent, measure, None, lambda table: [])
    found = recheck.recheck(toy, tmp_path / "toy.csv", DAY)
    assert (found.cells, found.compared, found.disagreements) == (2, 0, [])
    assert "build/tests.xml is missing" in capsys.readouterr().out


def test_the_command_records_the_date_and_the_disagreements(tmp_path, monkeypatch, capsys):
    experiment = load("affine_law")
    found = recheck.Recheck(100, 5, 4, ["d = 8: only was 3 and is 4"])
    monkeypatch.setattr(recheck, "recheck", lambda *_: found)
    (tmp_path / f"{experiment.name}.csv").write_text("d\n8\n")
    assert recheck.main(["affine-law", "--date", DAY, "--out", str(tmp_path)]) == 1
    assert "4 of 5 cells compared, 1 disagreements" in capsys.readouterr().out
    record = json.loads((tmp_path / provenance.RECHECKS).read_text())["affine_law"]
    assert record == {"date": DAY, **found._asdict()}
