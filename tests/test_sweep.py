"""The sweep runner: any order, any number of jobs, any interruption, one table."""

import json

import pandas as pd
import pytest

from experiments.sweep import finish, read_log, sweep, write_table

CELLS = [{"n": n, "replication": r} for n in (3, 1, 2) for r in range(2)]


def measure(n: int, replication: int) -> dict:
    return {"value": 10.0 * n + replication}


def refuse(n: int, replication: int) -> dict:
    if n == 2:
        raise RuntimeError("interrupted")
    return measure(n, replication)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_table_is_in_the_order_of_the_cells_whatever_the_jobs(tmp_path, jobs):
    table = sweep(CELLS, measure, tmp_path / "log", jobs=jobs, settings={}, title="test")
    assert list(table["value"]) == [30.0, 31.0, 10.0, 11.0, 20.0, 21.0]


def test_a_stopped_sweep_measures_only_what_is_missing(tmp_path):
    log = tmp_path / "log"
    with pytest.raises(RuntimeError, match="interrupted"):
        sweep(CELLS, refuse, log, jobs=1, settings={}, title="test")
    done = read_log(log, {})
    assert 0 < len(done) < len(CELLS)
    log.write_text(log.read_text() + '["half a li')  # killed while writing

    def only_missing(n: int, replication: int) -> dict:
        assert json.dumps({"n": n, "replication": replication}) not in done
        return measure(n, replication)

    table = sweep(CELLS, only_missing, log, jobs=1, settings={}, title="test")
    assert list(table["value"]) == [30.0, 31.0, 10.0, 11.0, 20.0, 21.0]


def test_a_log_of_other_settings_is_not_continued(tmp_path):
    log = tmp_path / "log"
    sweep(CELLS, measure, log, jobs=1, settings={"tol": 1}, title="test")
    assert len(read_log(log, {"tol": 1})) == len(CELLS)
    assert read_log(log, {"tol": 2}) == {}


def test_a_finished_sweep_leaves_no_log(tmp_path):
    sweep(CELLS, measure, tmp_path / "log", jobs=1, settings={}, title="test")
    finish(tmp_path / "log")
    assert not (tmp_path / "log").exists()


def test_a_table_comes_back_as_it_was_written(tmp_path):
    table = pd.DataFrame({"a": [1, 2], "b": [0.1 + 0.2, 1e-300]})
    write_table(table, tmp_path / "table.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "table.csv"), table, rtol=1e-8)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
