"""The sweep runner: any order, any number of jobs, any interruption, one table."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from toy import Here

import experiments.harness.sweep as runner
from experiments.harness.sweep import Log, sweep
from experiments.harness.tables import read_table, write_table

CELLS = [{"n": n, "replication": r} for n in (3, 1, 2) for r in range(2)]
VALUES = [30.0, 31.0, 10.0, 11.0, 20.0, 21.0]


def measure(n: int, replication: int) -> dict:
    return {"value": 10.0 * n + replication}


def refuse(n: int, replication: int) -> dict:
    if n == 1:  # the last two in the order of the sweep
        raise RuntimeError("interrupted")
    return measure(n, replication)


def note_and_measure(n: int, replication: int) -> dict:
    with Path(os.environ["NOTED"]).open("a") as file:
        file.write(f"{n}-{replication}\n")
    return measure(n, replication)


def fail(n: int, replication: int) -> dict:
    """One cell crashes, one exceeds the time limit, one the memory limit."""
    if (n, replication) == (3, 1):
        os.kill(os.getpid(), signal.SIGSEGV)
    if (n, replication) == (1, 1):
        time.sleep(60)
    if (n, replication) == (2, 0):
        np.ones(10**10)
    return measure(n, replication)


def run(path, function=measure, jobs=1, **limits):
    return sweep(CELLS, function, Log(path), jobs=jobs, title="test", **limits)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_table_is_in_the_order_of_the_cells_whatever_the_jobs(tmp_path, here, jobs):
    assert list(run(tmp_path / "log", jobs=jobs)["value"]) == VALUES


def test_a_stopped_sweep_measures_only_what_is_missing(tmp_path, monkeypatch):
    log = tmp_path / "log"
    with pytest.raises(RuntimeError, match="interrupted") as caught:
        run(log, refuse)
    assert "in the cell {'n': 1" in caught.value.__notes__[0]
    assert "in refuse" in caught.value.__notes__[0], "where in the other process"
    done = Log(log).rows
    assert 0 < len(done) < len(CELLS)
    log.write_text(log.read_text() + '["half a li')  # killed while writing
    monkeypatch.setenv("NOTED", str(tmp_path / "noted"))
    monkeypatch.setattr(runner, "Worker", Here)
    assert list(run(log, note_and_measure)["value"]) == VALUES
    assert len((tmp_path / "noted").read_text().split()) == len(CELLS) - len(done)


@pytest.mark.slow
def test_a_cell_whose_process_fails_is_a_row_with_a_reason(tmp_path):
    table = run(tmp_path / "log", fail, jobs=2, seconds=5.0, memory=8.0)
    reasons = {1: "the process died: SIGSEGV", 3: "stopped after 5 s", 4: "out of memory: Unable to allocate"}
    for i, reason in reasons.items():
        assert table["reason"][i].startswith(reason)
    assert list(table["value"].drop(list(reasons))) == [VALUES[i] for i in range(6) if i not in reasons]
    assert table["reason"].drop(list(reasons)).isna().all()


def test_a_table_comes_back_as_it_was_written(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "b": [0.1 + 0.2, 1e-300]})
    write_table(table, tmp_path / "table.csv")
    pd.testing.assert_frame_equal(read_table(tmp_path / "table.csv"), table, rtol=1e-8)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
