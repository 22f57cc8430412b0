"""Sweeps on a dask cluster: the same table as a local run, whatever happens to workers, scheduler and command.

The fast tests use a scheduler and workers in threads of this process; the slow ones use processes, which are
killed by process ID.
"""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client, LocalCluster
from toy import (
    EXPERIMENT,
    Here,
    are_gone,
    cells,
    forget_noted,
    interrupted,
    logged,
    measure,
    noted,
    one_error,
    table_is,
    without_seconds,
)  # fmt: skip

import experiments.harness.sweep as runner
from experiments.harness import cluster, command
from experiments.harness.cell import SweepError
from experiments.harness.command import INTERRUPTED, REFUSED
from experiments.harness.sweep import Log, sweep

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
pytestmark = pytest.mark.usefixtures("folder")
LONG = 120.0  # seconds: generous, for busy machines


def measure_and_wait(k, text):
    """Record which process measures the cell, and take a while (forever if the file exists that asks for it)."""
    row = measure(k, text)
    with Path(os.environ["PROCESSES"]).open("a") as file:
        file.write(f"{k} {os.getpid()}\n")
    time.sleep(0.3)
    while k == 5 and Path(os.environ["HALT"]).exists():
        time.sleep(0.05)
    return row


def kill_its_worker(k, text):
    """Cell k = 2 kills the worker of the cluster that measures it."""
    if k == 2:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(LONG)
    return measure(k, text)


def fail_for_two(k, text):
    if k == 2:
        raise OSError("no such data")
    return measure(k, text)


def fail_variously(k, text):
    """One cell crashes, one exceeds the time limit, one the memory limit."""
    if k == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if k == 2:
        time.sleep(LONG)
    if k == 3:
        np.ones(10**11)
    return measure(k, text)


FEW = replace(EXPERIMENT, cells=lambda grid: cells(grid)[:8])
SLOW = replace(FEW, measure=measure_and_wait)


def run(experiment, *arguments):
    return command.run(experiment, None, list(map(str, arguments)))


@pytest.fixture
def expected(monkeypatch, capsys):
    """The table of an undisturbed local run."""
    with monkeypatch.context() as patch:
        patch.setattr(runner, "Worker", Here)
        assert run(FEW, "--out", "local") == 0
    capsys.readouterr()
    forget_noted()
    return without_seconds("local/toy.csv")


def wait_until(holds):
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.05)


# With a cluster of threads


@pytest.fixture(scope="module")
def threads():
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=":0"
    ) as local:
        yield local.scheduler_address


@pytest.fixture
def here(monkeypatch):
    """Cells are measured in the threads of the cluster."""
    monkeypatch.setattr(cluster, "Worker", Here)


def test_the_table_of_a_cluster_is_that_of_a_local_run(threads, here, expected, capsys):
    assert run(FEW, "--scheduler", threads) == 0
    assert table_is(expected)
    assert sorted(noted()) == list(range(8))
    assert "8/8" in capsys.readouterr().err, "the bar"
    assert not cluster.PROCESSES


def test_either_way_completes_what_the_other_began(threads, here, expected, monkeypatch):
    monkeypatch.setattr(runner, "Worker", Here)
    assert run(replace(FEW, measure=interrupted(lambda k: k == 4))) == INTERRUPTED
    done = len(logged())
    assert 0 < done < 8
    forget_noted()
    assert run(FEW, "--scheduler", threads) == 0
    assert sum(noted().values()) == 8 - done
    assert table_is(expected)


def test_what_is_complete_needs_no_cluster(here, expected, monkeypatch):
    monkeypatch.setattr(runner, "Worker", Here)

    def fail(table, stem):
        raise OSError("no room for the figure")

    assert run(replace(FEW, draw=fail)) == REFUSED
    assert run(FEW, "--scheduler", "tcp://127.0.0.1:1") == 0
    assert table_is(expected)


def test_an_error_of_a_cell_keeps_its_traceback(threads, here):
    with pytest.raises(OSError, match="no such data") as caught:
        run(replace(FEW, measure=fail_for_two), "--scheduler", threads)
    assert "in the cell {'k': 2" in caught.value.__notes__[0]
    assert "in fail_for_two" in caught.value.__notes__[0]


def test_a_worker_of_another_version_says_so_at_its_first_cell(monkeypatch):
    monkeypatch.setattr(cluster, "get_worker", lambda: SimpleNamespace(address="tcp://a:1"))
    with pytest.raises(SweepError, match=r"tcp://a:1 has diffrac_cvx 0\.1\.0, this process 9\.9\. Install one version"):
        cluster.measure_there(cluster.Task(measure, None, None, "9.9", ""), {})


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "127.0.0.1:1", "nonsense://x", "tcp://", "tls://127.0.0.1:1"])
def test_a_scheduler_that_cannot_be_reached_is_a_sentence_within_seconds(address, monkeypatch, capsys):
    assert cluster.PATIENCE <= 10.0
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    started = time.perf_counter()
    assert run(FEW, "--scheduler", address) == REFUSED
    assert time.perf_counter() - started < 30.0
    assert f"the scheduler {address} cannot be reached" in one_error(capsys.readouterr().err)


def test_without_dask_the_message_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "experiments.harness.cluster")
    monkeypatch.delattr("experiments.harness.cluster")
    assert run(FEW, "--scheduler", "tcp://127.0.0.1:1") == REFUSED
    assert "distributed, which is missing. Run pip install 'diffrac-cvx[scale]'" in one_error(capsys.readouterr().err)


def test_make_names_the_scheduler_only_where_it_is_set():
    targets = [path.parent.name.replace("_", "-") for path in ROOT.glob("experiments/*/experiment.py")]
    for extra, said in (["SCHEDULER=tcp://a:1"], len(targets)), ([], 0):
        printed = subprocess.run(
            ["make", "-n", *targets, *extra], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        assert printed.count('--scheduler "tcp://a:1"') == said
        assert printed.count("--scheduler") == said


# With clusters of processes


@pytest.fixture
def processes(folder):
    """Two worker processes, with two allowed failures per cell."""
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
    ):
        yield local.scheduler_address


def pids_of(address):
    with Client(address, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


@pytest.mark.slow
def test_workers_killed_in_mid_sweep_change_nothing(processes, expected):
    child = start(SLOW, "--scheduler", processes)
    for rows in (1, 4):
        wait_until(lambda rows=rows: len(logged()) >= rows)
        os.kill(pids_of(processes)[0], signal.SIGKILL)
    assert child.wait(LONG) == 0, Path("err").read_text()
    assert table_is(expected)


@pytest.mark.slow
def test_a_cell_that_kills_every_worker_is_a_row_with_a_reason(processes, expected):
    assert run(replace(FEW, measure=kill_its_worker), "--scheduler", processes, "--jobs", 2) == 0
    rows = without_seconds("figures/toy.csv")
    assert rows[0] == [*expected[0], "reason"]
    assert rows[3][-1] == "2 workers of the cluster died while they measured it"


@pytest.mark.slow
def test_limits_and_deaths_are_those_of_a_local_run(processes, tmp_path):
    tables = []
    for scheduler in (None, processes):
        log = Log(tmp_path / f"{scheduler is None}.log")
        table = sweep(
            FEW.cells("full"), fail_variously, log, jobs=2, title="", seconds=6.0, memory=8.0, scheduler=scheduler
        )
        tables.append(table.drop(columns="seconds"))
    assert tables[0].to_csv() == tables[1].to_csv()
    reasons = tables[1]["reason"]
    assert list(reasons[1:3]) == ["the process died: SIGSEGV", "stopped after 6 s"]
    assert reasons[3].startswith("out of memory: Unable to allocate")
    assert reasons.isna().sum() == 5


def start(experiment, *arguments):
    """Start a command in a separate process, with output in the files out and err."""
    name = next(name for name, value in globals().items() if value is experiment)
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(HERE)!r}]\n"
        "import test_cluster_sweeps as t\n"
        f"raise SystemExit(t.run(t.{name}, *sys.argv[1:]))\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=Path("out").open("w"), stderr=Path("err").open("w"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell's background ignores it
    )  # fmt: skip


def processes_of_cells():
    """The process that measured each cell."""
    return dict(map(int, line.split()) for line in Path("processes").read_text().splitlines())


def is_halted():
    """Return whether the waiting cell is in its process, and all others are logged."""
    return len(logged()) == 7 and len(processes_of_cells()) == 8


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_cells_in_flight_are_canceled_with_the_command(processes, expected, ending):
    Path("halt").touch()
    child = start(SLOW, "--scheduler", processes)
    wait_until(is_halted)
    child.send_signal(ending)
    assert child.wait(30) == (INTERRUPTED if ending == signal.SIGINT else -signal.SIGKILL)
    assert are_gone([processes_of_cells()[5]], 60.0), "the process of the cell that waits"
    if ending == signal.SIGINT:
        assert are_gone(list(processes_of_cells().values()), 60.0), "those of the other cells too"
        *_, last = Path("err").read_text().splitlines()
        assert last == "stopped: the rows so far are kept in build; the same command completes them"
    assert len(logged()) == 7
    Path("halt").unlink()
    forget_noted()
    assert run(FEW, "--scheduler", processes) == 0
    assert sum(noted().values()) == 1
    assert table_is(expected)
