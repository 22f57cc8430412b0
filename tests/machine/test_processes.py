"""Calls in another process: their results and termination."""

import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.machine import processes
from diffrac_cvx.machine.processes import Call, CallResult, OutOfTimeError, StoppedError, Worker, WorkerDiedError

MEGA = 1e6


@pytest.fixture(scope="module")
def worker():
    """Process that some tests end; it restarts with the next call."""
    worker = Worker()
    worker.start()
    yield worker
    worker.close()


def works(worker):
    return worker.call(Call(abs, (-3,))).value == 3


def fill(megabytes):
    return float(np.ones(int(megabytes * MEGA / 8)).sum())


def fill_elsewhere(megabytes, filled=None):
    """Fill memory in a child process; if a file is given, stop the child once it has created the file."""
    other = Worker()
    with contextlib.closing(other), contextlib.suppress(StoppedError):
        call = Call(fill, (megabytes,)) if filled is None else Call(fill_and_wait, (megabytes, filled))
        return other.call(call, stopped=bool if filled is None else filled.exists).value


def fill_and_wait(megabytes, filled):
    memory = np.ones(int(megabytes * MEGA / 8))
    filled.touch()
    time.sleep(60)
    return memory


def print_much():
    print("a solver's own words")
    os.system("echo and those of compiled code")
    return "the answer"


class NotReadable:
    """Object that can be pickled, but not unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def test_a_call_there_gives_what_it_gives_here(worker):
    X = dc.datasets.make_planted(24, 4, noise=0.2, rng=0).X
    answer = worker.call(Call(dc.low_rank, (X,), {"tol": 1e-7}))
    assert answer.value.value == dc.low_rank(X, tol=1e-7).value


def test_errors_and_warnings_come_back(worker):
    assert isinstance(worker.call(Call(dc.low_rank, ([[1.0]],))).error, dc.DataError)
    answer = worker.call(Call(dc.low_rank, ([[1.0, 0.0], [1.0, 2.0], [1.0, 5.0]],)))
    assert "constant" in answer.warnings[0]


def test_what_is_printed_there_does_not_come_between_the_answers(worker):
    assert worker.call(Call(print_much)).value == "the answer"


def test_modules_are_found_there_as_they_are_here(tmp_path, monkeypatch, worker):
    (tmp_path / "found_by_path_alone.py").write_text("def answer(): return 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    import found_by_path_alone

    assert isinstance(worker.call(Call(found_by_path_alone.answer)).error, TypeError), "it was started before"
    worker.close()
    assert worker.call(Call(found_by_path_alone.answer)).value == 42


def test_what_cannot_be_sent_is_an_error_and_the_next_call_works(worker):
    for value in (NotReadable(), lambda: None):
        assert isinstance(worker.call(Call(abs, (value,))).error, TypeError)
    assert isinstance(worker.call(Call(NotReadable)).error, TypeError)
    assert works(worker)


def test_stop_kills_a_call_and_the_next_call_works(worker):
    process, started = worker.start(), time.perf_counter()
    with pytest.raises(StoppedError):
        worker.call(Call(time.sleep, (600,)), stopped=lambda: time.perf_counter() - started > 0.3)
    assert time.perf_counter() - started < 15
    assert process.poll() is not None, "it runs on"
    assert works(worker)


def test_a_call_that_is_over_soon_is_not_killed_by_the_stop_switch(worker):
    process, started = worker.start(), time.perf_counter()
    answer = worker.call(Call(time.sleep, (0.3,)), stopped=lambda: time.perf_counter() - started > 0.1)
    assert answer.error is None
    assert process.poll() is None


def test_a_call_that_takes_too_long_is_killed_and_the_start_of_the_next_process_is_not_counted(worker):
    started = time.perf_counter()
    with pytest.raises(OutOfTimeError, match=r"stopped after 0\.2 s"):
        worker.call(Call(time.sleep, (600,)), seconds=0.2)
    assert time.perf_counter() - started < 30
    assert worker.call(Call(abs, (-3,)), seconds=0.2).value == 3


@pytest.mark.parametrize(
    ("call", "exit_code", "name", "message"),
    [
        (Call(os._exit, (3,)), 3, "", "exit code 3"),
        (Call(signal.raise_signal, (signal.SIGKILL,)), -9, "SIGKILL", "SIGKILL"),
    ],
)
def test_a_process_that_dies_is_an_error_with_its_cause_and_the_next_call_works(call, exit_code, name, message, worker):
    with pytest.raises(WorkerDiedError, match=message) as error:
        worker.call(call)
    assert (error.value.exit_code, error.value.signal) == (exit_code, name)
    assert works(worker)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_process_that_ended_before_the_call_is_an_error_like_any_other(monkeypatch, worker):
    process = worker.start()
    process.kill()
    process.wait()
    with monkeypatch.context() as patch:
        patch.setattr(process, "poll", lambda: None)  # it ends just after the poll
        with pytest.raises(WorkerDiedError):
            worker.call(Call(abs, (-3,)))
    assert works(worker)


def test_an_interrupted_call_does_not_answer_the_next_one(worker):
    started = time.perf_counter()

    def stopped():
        if time.perf_counter() - started > 0.3:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        worker.call(Call(time.sleep, (1,)), stopped=stopped)
    assert worker.call(Call(abs, (-7,))).value == 7


def test_ctrl_c_is_not_for_the_workers_and_each_has_one_blas_thread(worker):
    os.kill(worker.start().pid, signal.SIGINT)
    assert worker.call(Call(os.getenv, ("OPENBLAS_NUM_THREADS",))).value == "1"


def test_the_peak_is_that_of_the_call_alone(worker):
    large, small = worker.call(Call(fill, (200,))).peak, worker.call(Call(abs, (-3,))).peak
    assert small < 50 * MEGA
    assert 150 * MEGA < large < 300 * MEGA


@pytest.mark.parametrize("name", [None, "filled"])
def test_the_peak_of_a_call_counts_the_process_that_it_lets_work_for_it_also_where_that_is_stopped(
    worker, name, tmp_path
):
    assert worker.call(Call(fill_elsewhere, (200, name and tmp_path / name))).peak > 150 * MEGA
    assert worker.call(Call(abs, (-3,))).peak < 50 * MEGA


def test_the_memory_before_a_call_is_measured_before_it_however_late_it_is_read(monkeypatch, tmp_path):
    """A caller that is busy reads that the call has started when the call has filled its memory already."""
    receive = processes.read_message

    def late(stream):
        message = receive(stream)
        time.sleep(0.5)
        return message

    monkeypatch.setattr(processes, "read_message", late)
    monkeypatch.setitem(processes.CHILD_MEMORY, "largest", 0.0)
    with contextlib.closing(Worker()) as other, contextlib.suppress(StoppedError):
        other.call(Call(fill_and_wait, (200, tmp_path / "filled")), stopped=(tmp_path / "filled").exists)
    assert processes.CHILD_MEMORY["largest"] > 150 * MEGA


def test_the_memory_limit_is_kept():
    worker = Worker(memory_limit=4e9)
    assert worker.call(Call(fill, (10,))).value == 1.25e6
    assert isinstance(worker.call(Call(fill, (8000,))).error, MemoryError)
    worker.close()


def test_a_worker_that_threads_share_answers_each_of_them(worker):
    with ThreadPoolExecutor(4) as threads:
        values = threads.map(lambda k: worker.call(Call(abs, (-k,))).value, range(40))
        assert list(values) == list(range(40))


def test_the_process_ends_when_its_caller_is_gone(worker):
    process = worker.start()
    assert works(worker)
    process.stdin.close()
    assert process.wait(timeout=20) == 0


def test_a_script_needs_no_guard(tmp_path):
    script = "from diffrac_cvx.machine.processes import Call, Worker\nprint(Worker().call(Call(abs, (-3,))).value)\n"
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(Path(dc.__file__).parents[1])}
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


@pytest.mark.parametrize("content", [b"", pickle.dumps(pickle.dumps(list(range(10_000))))[:-10_000]])
def test_a_process_whose_caller_has_ended_ends_too_also_in_the_middle_of_a_message(content):
    ended = subprocess.run(
        [sys.executable, "-c", processes.WORKER_PROGRAM], input=content, capture_output=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


# The worker's part, run in this process


def warn_and_add(one, two):
    warnings.warn("be careful", UserWarning, stacklevel=1)
    warnings.warn("be careful", UserWarning, stacklevel=1)
    warnings.warn("an overflow", RuntimeWarning, stacklevel=1)
    return one + two


def test_a_call_is_performed_with_its_warnings_once_or_its_error():
    plain = processes.perform(Call(warn_and_add, (1,), {"two": 2}))
    assert (plain.value, plain.error, plain.warnings) == (3, None, ("be careful",))
    failed = processes.perform(Call(warn_and_add, (1, "2")))
    assert (type(failed.error), failed.value) == (TypeError, None)


def test_calls_are_served_in_turn_until_none_comes_for_a_while(monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(processes, "os", SimpleNamespace(_exit=lambda code: ended.set()))
    monkeypatch.setattr(processes, "IDLE_TIMEOUT", 0.2)
    source, sink = io.BytesIO(), io.BytesIO()
    for message in (Call(warn_and_add, (1, 2)), NotReadable(), Call(warn_and_add, (3, 4))):
        processes.write_message(source, pickle.dumps(message))
    source.seek(0)
    processes.serve(source, sink)
    assert ended.wait(10.0)  # the caller has ended
    sink.seek(0)
    said = [processes.read_message(sink) for _ in range(6)]
    assert [type(message) for message in said] == [processes.CallStarted, CallResult] * 3
    assert said[1].value == 3
    assert "cannot be read" in str(said[3].error)
    assert said[5].value == 7
    assert not sink.read()
