"""Calls in a separate process, which can be stopped and limited in time and memory without affecting the caller.

Pools (concurrent.futures, multiprocessing, loky) can neither end a single running call nor name the signal that ended
it, and their processes outlive a caller that is killed.

A worker process reads pickled calls from its standard input and writes pickled messages to its original standard
output; output printed by solvers is redirected to its standard error.  It exits when its input ends.
"""

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from diffrac_cvx.machine.memory import reset_peak_memory, resident_memory

STOP_SECONDS = 0.7  # time for a call to end after a stop request; starting a new process takes longer
POLL_SECONDS = 0.05
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
WORKER_PROGRAM = (  # only the caller handles Ctrl-C; the process ignores it from the start
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from diffrac_cvx.machine.processes import main; main()"
)

child_memory = {"largest": 0.0}  # largest memory growth of a child process since the last reset, in bytes


class StoppedError(Exception):
    """The call was stopped on request before it returned a result."""


class OutOfTimeError(Exception):
    """The call exceeded its time limit."""


class WorkerDiedError(Exception):
    """The process died during a call, for example out of memory."""

    def __init__(self, exit_code: int) -> None:
        self.signal = ""  # name of the signal that ended it; the exit code is then minus its number
        with contextlib.suppress(ValueError):
            self.signal = signal.Signals(-exit_code).name
        super().__init__(f"the process died: {self.signal or f'exit code {exit_code}'}")


class Worker:
    """Process for sequential calls, which starts when first needed and restarts after it has ended.

    Its address space, including libraries, is limited to ``memory_limit`` bytes.  After a call, ``peak`` is the growth
    of its resident memory in bytes, NaN if unknown, including the largest growth of a child process of the call
    (`solve` starts one if it has a time limit).
    """

    def __init__(self, memory_limit: float | None = None) -> None:
        self.memory_limit, self.peak = memory_limit, np.nan
        self.process: subprocess.Popen[bytes] | None = None
        self.started, self.memory_before = np.inf, np.nan  # time and memory at the start of the current call

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process unless it is running, and return it without waiting for its imports."""
        if self.process is None or self.process.poll() is not None:
            limit = [] if self.memory_limit is None else [str(int(self.memory_limit))]
            path_entries = os.pathsep.join(place or os.getcwd() for place in sys.path)
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", WORKER_PROGRAM, *limit],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": path_entries},
            )
        return self.process

    def call(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        stopped: Callable[[], bool] = bool,
        seconds: float | None = None,
    ) -> Any:
        """Call an importable function in the process and return its value, or raise its exception.

        Parameters
        ----------
        function, *arguments
            Function and its arguments, all of which are pickled.
        stopped : callable
            Polled many times per second; the process is killed 0.7 s after it returns True, unless the call has ended.
            By default never.
        seconds : float, optional
            Time limit of the call in seconds, without the start of the process.

        Raises
        ------
        StoppedError, OutOfTimeError, WorkerDiedError
            If the call was stopped without a result, exceeded its time limit, or ended the process.
        """
        if stopped():
            raise StoppedError
        content, kill_time, process = pickle.dumps((function, arguments)), np.inf, self.start()
        self.started, self.memory_before = np.inf, np.nan
        with ThreadPoolExecutor(1) as thread:
            answer = thread.submit(self.exchange, process, content)
            try:
                while not wait([answer], timeout=POLL_SECONDS).done:
                    now = time.perf_counter()
                    if now > kill_time:
                        raise StoppedError
                    if seconds is not None and now > self.started + seconds:
                        raise OutOfTimeError(f"stopped after {seconds:g} s")
                    if kill_time == np.inf and stopped():
                        kill_time = now + STOP_SECONDS
                value, error, self.peak = answer.result()
            except BaseException:  # a late result must not be mistaken for the result of the next call
                self.peak = resident_memory("VmHWM", process.pid) - self.memory_before
                self.close()
                raise
            finally:
                child_memory["largest"] = float(np.fmax(child_memory["largest"], self.peak))
        if error is not None:
            raise error
        return value

    def exchange(self, process: subprocess.Popen[bytes], content: bytes) -> Any:
        """Send a call and return its value, its exception and the growth of memory."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(content, process.stdin)
            process.stdin.flush()
            self.memory_before, self.started = pickle.load(process.stdout), time.perf_counter()
            answer = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            with contextlib.suppress(OSError):
                process.stdin.close()
            raise WorkerDiedError(process.wait()) from None
        return pickle.loads(answer)

    def close(self) -> None:
        """Kill the process and close its pipes."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(OSError):  # a message was not sent completely
                    pipe.close()  # type: ignore[union-attr]  # both are pipes


def main() -> None:
    """Run as a worker process; the optional command-line argument is the address space limit in bytes.

    For each pickled call it writes the memory before the call, then its value, its exception and the growth of memory.
    """
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                calls.put(pickle.load(sys.stdin.buffer))
        finally:
            os._exit(0)  # the caller has ended, perhaps in the middle of a message; no one reads the result

    def send(message: float | bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the caller has ended
            pickle.dump(message, sink)
            sink.flush()

    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output printed by solvers must not mix with the messages
    if sys.argv[1:]:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY))
    threading.Thread(target=listen, daemon=True).start()
    while True:
        value = error = arguments = answer = None  # free the memory of the last call
        try:
            try:
                function, arguments = pickle.loads(calls.get())
            finally:
                memory_before, child_memory["largest"] = reset_peak_memory(), 0.0
                send(memory_before)
            value = function(*arguments)
        except Exception as failure:  # the caller raises any exception
            error = failure
        peak = resident_memory("VmHWM") - memory_before + child_memory["largest"]
        try:
            answer = pickle.dumps((value, error, peak))
        except Exception as failure:  # pickle raises various exceptions
            answer = pickle.dumps((None, TypeError(f"the result cannot be sent to another process: {failure}"), peak))
        send(answer)
