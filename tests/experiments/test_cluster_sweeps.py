"""Sweeps on a dask cluster: the same table as a local run, whatever happens to workers, scheduler and command."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from distributed import Client, LocalCluster
from toy import (
    COUNT,
    Here,
    are_gone,
    assert_rest_is_measured,
    fail_for_two,
    fail_variously,
    interrupted,
    logged,
    one_error,
    run,
    without_seconds,
)

import experiments.harness.sweep as runner
from experiments.harness.command import INTERRUPTED, REFUSED, find_experiments

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture(scope="module")
def threads():
    """A scheduler and two workers in threads of this process."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=":0"
    ) as local:
        yield local.scheduler_address


def test_a_cluster_completes_what_a_local_run_began_and_the_table_is_the_same(threads, here, expected):
    assert run(measure=interrupted(lambda k: k == 4)) == INTERRUPTED
    done = len(logged())
    assert 0 < done < COUNT
    assert_rest_is_measured(expected, done, "--scheduler", threads)
    assert not runner.PROCESSES


@pytest.mark.parametrize("on_cluster", [False, True])
def test_an_error_names_its_cell_and_the_place_in_the_other_process_and_the_rest_is_measured_later(
    threads, expected, monkeypatch, on_cluster
):
    if on_cluster:
        monkeypatch.setattr(runner, "Worker", Here)
    arguments = ["--scheduler", threads] if on_cluster else ["--jobs", 1]
    with pytest.raises(OSError, match="no such data") as caught:
        run(*arguments, measure=fail_for_two)
    assert "in the cell {'k': 2" in caught.value.__notes__[0]
    assert "in fail_for_two" in caught.value.__notes__[0]
    monkeypatch.setattr(runner, "Worker", Here)
    assert_rest_is_measured(expected, len(logged()))


def test_a_worker_of_another_version_says_so_at_its_first_cell():
    with pytest.raises(runner.SweepError, match=r"has diffrac_cvx 0\.1\.0, the command 9\.9\. Install one version"):
        runner.measure_cell(runner.Task(fail_for_two, version="9.9"), {})


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x", "tls://127.0.0.1:1"])
def test_a_scheduler_that_cannot_be_reached_is_a_sentence_within_seconds(address, monkeypatch, capsys):
    assert runner.PATIENCE <= 10.0
    monkeypatch.setattr(runner, "PATIENCE", 0.1)
    assert run("--scheduler", address) == REFUSED
    assert f"the scheduler {address} cannot be reached" in one_error(capsys.readouterr().err)


def test_without_dask_the_message_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run("--scheduler", "tcp://127.0.0.1:1") == REFUSED
    assert "distributed, which is missing. Run pip install 'diffrac-cvx[scale]'" in one_error(capsys.readouterr().err)


def test_make_names_the_scheduler_only_where_it_is_set():
    targets = [name.replace("_", "-") for name in find_experiments()]
    for extra, said in (["SCHEDULER=tcp://a:1"], len(targets)), ([], 0):
        made = subprocess.run(["make", "-n", *targets, *extra], cwd=ROOT, capture_output=True, text=True, check=True)
        assert made.stdout.count('--scheduler "tcp://a:1"') == made.stdout.count("--scheduler") == said


# With worker processes


@pytest.fixture
def processes(folder, monkeypatch):
    monkeypatch.setenv("PAUSE", "0.3")
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local:
        yield local.scheduler_address


def start(*arguments):
    """Start the command in a separate process, with errors in the file err."""
    code = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(HERE)!r}]; import toy; sys.exit(toy.run(*sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stderr=Path("err").open("w"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell's background ignores it
    )  # fmt: skip


def wait_until_logged(rows):
    deadline = time.monotonic() + 120.0
    while len(logged()) < rows:
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.05)


@pytest.mark.slow
def test_workers_killed_in_mid_sweep_change_nothing(expected, processes):
    child = start("--scheduler", processes)
    for rows in (1, 4):
        wait_until_logged(rows)
        with Client(processes, set_as_default=False) as client:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    assert child.wait(120) == 0, Path("err").read_text()
    assert without_seconds() == expected


@pytest.mark.slow
@pytest.mark.parametrize("on_cluster", [False, True])
def test_a_cell_whose_process_fails_is_a_row_with_a_reason(processes, tmp_path, on_cluster):
    log, where = runner.Log(tmp_path / "log"), processes if on_cluster else None
    eight = [{"k": k, "text": ""} for k in range(8)]
    table = runner.sweep(eight, runner.Task(fail_variously, 6.0, 8.0), log, jobs=2, title="", scheduler=where)
    reasons = table["reason"]
    assert list(reasons[1:3]) == ["the process died: SIGSEGV", "stopped after 6 s"]
    assert reasons[3].startswith("out of memory: Unable to allocate")
    assert reasons.isna().sum() == table["value"].notna().sum() == 5


@pytest.mark.slow
def test_control_c_ends_the_processes_of_a_cluster_and_keeps_the_rows(expected, processes):
    child = start("--scheduler", processes)
    wait_until_logged(2)
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == INTERRUPTED
    assert are_gone({int(line.split()[1]) for line in Path("noted").read_text().splitlines()}, 60.0)
    *_, last = Path("err").read_text().splitlines()
    assert last == "stopped: the rows so far are kept in build; the same command completes them"
    assert_rest_is_measured(expected, len(logged()), "--scheduler", processes)
