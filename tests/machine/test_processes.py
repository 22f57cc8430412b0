"""Calls in another process: their results and termination."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.machine import processes
from diffrac_cvx.machine.processes import OutOfTimeError, StoppedError, Worker, WorkerDiedError

MEGA = 1e6


@pytest.fixture(scope="module")
def worker():
    """Process that some tests end; it restarts with the next call."""
    with contextlib.closing(Worker()) as worker:
        yield worker


def fill(megabytes):
    return float(np.ones(int(megabytes * MEGA / 8)).sum())


def fill_and_wait(filled):
    memory = np.ones(int(200 * MEGA / 8))
    filled.touch()
    time.sleep(60)
    return memory


def fill_elsewhere(filled):
    """Fill memory in a child process; if a file is given, stop the child once it has created the file."""
    with contextlib.closing(Worker()) as other, contextlib.suppress(StoppedError):
        return other.call(fill, 200) if filled is None else other.call(fill_and_wait, filled, stopped=filled.exists)


def print_much():
    print("a solver's own words")
    os.system("echo and those of compiled code")
    return os.getenv("OPENBLAS_NUM_THREADS")


def after(seconds, error=None):
    """Return a switch that is on, or raises an error, after some seconds."""
    started = time.perf_counter()

    def stopped():
        is_on = time.perf_counter() - started > seconds
        if is_on and error is not None:
            raise error
        return is_on

    return stopped


class NotReadable:
    """Object that can be pickled, but not unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def test_a_call_there_gives_what_it_gives_here_on_one_thread_and_its_errors_whatever_is_printed(worker):
    assert worker.call(dc.Penalty, 0.5) == dc.Penalty(0.5)
    assert worker.call(print_much) == "1"
    with pytest.raises(dc.DataError):
        worker.call(dc.low_rank, [[1.0]])


def test_modules_are_found_there_as_they_are_here(tmp_path, monkeypatch, worker):
    (tmp_path / "found_by_path_alone.py").write_text("def answer(): return 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    import found_by_path_alone

    worker.close()  # a process that was started before would not find it
    assert worker.call(found_by_path_alone.answer) == 42


@pytest.mark.parametrize(("function", "argument"), [(abs, NotReadable()), (abs, lambda: None), (NotReadable, None)])
def test_what_cannot_be_sent_is_an_error_and_the_next_call_works(worker, function, argument):
    with pytest.raises((AttributeError, TypeError, ValueError, pickle.PicklingError)):
        worker.call(function, argument)
    assert worker.call(abs, -3) == 3


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        (lambda: {"stopped": after(0.3)}, StoppedError),
        (lambda: {"stopped": after(0.3, KeyboardInterrupt)}, KeyboardInterrupt),
        (lambda: {"seconds": 0.2}, OutOfTimeError),
    ],
)
def test_a_call_is_killed_when_it_is_stopped_or_late_and_the_next_one_gets_its_own_answer(worker, limits, error):
    worker.call(abs, -3)
    process, started = worker.process, time.perf_counter()
    with pytest.raises(error):
        worker.call(time.sleep, 600, **limits())
    assert time.perf_counter() - started < 15
    assert process.poll() is not None
    assert worker.call(abs, -7, seconds=0.2) == 7  # the start of the next process is not counted


def test_a_call_that_is_over_soon_is_not_killed_by_the_stop_switch_nor_by_ctrl_c(worker):
    process = worker.start()
    os.kill(process.pid, signal.SIGINT)
    assert worker.call(time.sleep, 0.3, stopped=after(0.1)) is None
    assert process.poll() is None
    with pytest.raises(StoppedError):
        worker.call(abs, -3, stopped=lambda: True)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ((os._exit, 3), "exit code 3"),
        ((signal.raise_signal, signal.SIGKILL), "SIGKILL"),
        (None, "SIGKILL"),  # the process ends before the call, just after it was seen running
    ],
)
def test_a_process_that_dies_is_an_error_with_its_cause_and_the_next_call_works(monkeypatch, call, message, worker):
    process = worker.start()
    with monkeypatch.context() as patch:
        if call is None:
            process.kill()
            process.wait()
            patch.setattr(process, "poll", lambda: None)
        with pytest.raises(WorkerDiedError, match=message) as error:
            worker.call(*call or (abs, -3))
    assert error.value.signal == ("SIGKILL" if message == "SIGKILL" else "")
    assert worker.call(abs, -3) == 3


def test_the_peak_is_that_of_the_call_alone_within_the_limit_of_memory():
    with contextlib.closing(Worker(memory_limit=4e9)) as limited:
        assert limited.call(fill, 200) == 2.5e7
        assert 150 * MEGA < limited.peak < 300 * MEGA
        assert limited.call(abs, -3) == 3
        assert limited.peak < 50 * MEGA
        with pytest.raises(MemoryError):
            limited.call(fill, 8000)


@pytest.mark.parametrize("name", [None, "filled"])
def test_the_peak_of_a_call_counts_the_process_that_it_lets_work_for_it_also_where_that_is_stopped(
    worker, name, tmp_path
):
    worker.call(fill_elsewhere, name and tmp_path / name)
    assert worker.peak > 150 * MEGA
    worker.call(abs, -3)
    assert worker.peak < 50 * MEGA


def test_a_closed_worker_leaves_no_pipe_open(worker):
    worker.call(abs, -3)
    worker.close()
    assert worker.process.stdin.closed
    assert worker.process.stdout.closed
    assert worker.call(abs, -3) == 3


def test_a_script_needs_no_guard(tmp_path):
    script = "from diffrac_cvx.machine.processes import Worker\nprint(Worker().call(abs, -3))\n"
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(Path(dc.__file__).parents[1])}
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


@pytest.mark.parametrize("content", [b"", pickle.dumps(pickle.dumps((abs, (-3,)))), pickle.dumps(b"cut" * 9999)[:-99]])
def test_a_process_whose_caller_has_ended_ends_too_also_in_the_middle_of_a_message(content):
    ended = subprocess.run(
        [sys.executable, "-c", processes.WORKER_PROGRAM], input=content, capture_output=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
