"""Calls in a separate process, which can be stopped and limited in time and memory without affecting the caller.

The pools of concurrent.futures and multiprocessing cannot terminate one running call without breaking the pool, and
their "spawn" imports the caller's script again, which needs a guard in every script.

A worker process reads pickled calls from its standard input and writes pickled messages to its original standard
output; output printed by solvers is redirected to its standard error.
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
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any, NamedTuple

import numpy as np

from diffrac_cvx.machine.memory import reset_peak_memory, resident_memory

STOP_SECONDS = 0.7  # for a call to end after a stop request; starting a new process takes longer
POLL_SECONDS = 0.05
IDLE_TIMEOUT = 1800.0  # seconds without a call after which a process exits
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
WORKER_PROGRAM = (  # only the caller handles Ctrl-C; the process ignores it from the start
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from diffrac_cvx.machine.processes import main; main()"
)


CHILD_MEMORY = {"largest": 0.0}  # largest memory growth of a child process since the last reset


class StoppedError(Exception):
    """The call was stopped on request before it returned a result."""


class OutOfTimeError(Exception):
    """The call exceeded its time limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"stopped after {seconds:g} s")


class WorkerDiedError(Exception):
    """The process died during a call, for example out of memory."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code  # negative if a signal ended it,
        self.signal = ""  # with this name
        with contextlib.suppress(ValueError):
            self.signal = signal.Signals(-exit_code).name
        super().__init__(f"the process died: {self.signal or f'exit code {exit_code}'}")


@dataclass(frozen=True)
class Call:
    """Call of an importable function with its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CallResult:
    """Return value or exception of a call, its warnings, and the growth of resident memory in bytes, NaN if unknown.

    The growth includes the largest growth of a child process of the call, such as `solve` starts with a time limit.
    """

    value: Any = None
    error: Exception | None = None
    warnings: tuple[str, ...] = ()
    peak: float = np.nan


class CallStarted(NamedTuple):
    """Message that a call has started, with the memory of the process before it, in bytes."""

    memory_before: float


Message = CallStarted | CallResult


class Worker:
    """Process for sequential calls, which starts when first needed and restarts after it has ended.

    Its address space, including libraries, is limited to ``memory_limit`` bytes.
    """

    def __init__(self, memory_limit: float | None = None) -> None:
        self.memory_limit = memory_limit
        self.process: subprocess.Popen[bytes] | None = None
        self.memory_before = np.nan  # memory of the process at the start of the call, in bytes
        self.messages: queue.Queue[Message | None] = queue.Queue()
        self.lock = threading.Lock()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process unless it is running, and return it without waiting for its imports."""
        if self.process is None or self.process.poll() is not None:
            self.messages = queue.Queue()
            limit = [] if self.memory_limit is None else [str(int(self.memory_limit))]
            path_entries = os.pathsep.join(place or os.getcwd() for place in sys.path)
            self.process = subprocess.Popen(
                [sys.executable, "-c", WORKER_PROGRAM, *limit],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": path_entries},
            )
            threading.Thread(target=receive_messages, args=(self.process, self.messages), daemon=True).start()
        return self.process

    def call(
        self,
        call: Call,
        *,
        stopped: Callable[[], bool] = bool,
        seconds: float | None = None,
    ) -> CallResult:
        """Run a call in the process and return its result.

        Parameters
        ----------
        call : Call
            Function and arguments.
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
        try:
            content = pickle.dumps(call)
        except Exception as error:  # pickle raises various exceptions
            return CallResult(error=TypeError(f"the call cannot be sent to another process: {error}"))
        with self.lock:
            if stopped():
                raise StoppedError
            process, self.memory_before = self.start(), np.nan
            try:
                # without waiting: the process may still be starting
                threading.Thread(target=send_call, args=(process, content), daemon=True).start()
                answer = self.wait(stopped, seconds)
            except BaseException:  # a late result must not be mistaken for that of the next call
                record_child_memory(resident_memory("VmHWM", process.pid) - self.memory_before)
                self.close()
                raise
            record_child_memory(answer.peak)
            return answer

    def wait(self, stopped: Callable[[], bool], seconds: float | None) -> CallResult:
        """Return the result of the call that was sent; after a stop request, it has `STOP_SECONDS` to end."""
        limit, kill_time = np.inf, np.inf  # times at which the call exceeds its limit, and at which a stop is enforced
        while True:
            with contextlib.suppress(queue.Empty):
                message = self.messages.get(timeout=POLL_SECONDS)
                if isinstance(message, CallResult):
                    return message
                if message is None:
                    assert self.process is not None
                    raise WorkerDiedError(self.process.wait())
                self.memory_before = message.memory_before
                limit = np.inf if seconds is None else time.perf_counter() + seconds
            now = time.perf_counter()
            if now > kill_time:
                raise StoppedError
            if now > limit:
                assert seconds is not None
                raise OutOfTimeError(seconds)
            if kill_time == np.inf and stopped():
                kill_time = now + STOP_SECONDS

    def close(self) -> None:
        """Kill the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def record_child_memory(growth: float) -> None:
    """Record the memory growth of a child process, NaN if unknown."""
    CHILD_MEMORY["largest"] = float(np.fmax(CHILD_MEMORY["largest"], growth))


def write_message(stream: IO[bytes], content: bytes) -> None:
    """Write a pickled message inside a pickle of bytes, so that one that cannot be loaded does not block the next."""
    pickle.dump(content, stream)
    stream.flush()


def read_message(stream: IO[bytes]) -> Any:
    """Return the next message, or a `CallResult` with an error if it cannot be unpickled."""
    content = pickle.load(stream)
    try:
        return pickle.loads(content)
    except Exception as error:  # pickle raises various exceptions
        return CallResult(error=TypeError(f"the message from another process cannot be read: {error}"))


def receive_messages(process: subprocess.Popen[bytes], messages: queue.Queue[Message | None]) -> None:
    """Forward the messages of the process, and None when it has ended."""
    assert process.stdout is not None
    try:
        while True:
            messages.put(read_message(process.stdout))
    except (EOFError, OSError, ValueError, pickle.UnpicklingError):
        messages.put(None)


def send_call(process: subprocess.Popen[bytes], content: bytes) -> None:
    """Write a call to the process, unless this has ended, which `receive_messages` reports."""
    assert process.stdin is not None
    try:
        write_message(process.stdin, content)
    except OSError:
        with contextlib.suppress(OSError):
            process.stdin.close()


# In the worker process


def perform(call: Call) -> CallResult:
    """Run a call and return its result, which includes any exception."""
    memory_before, CHILD_MEMORY["largest"] = reset_peak_memory(), 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            answer = CallResult(call.function(*call.arguments, **call.options))
        except Exception as error:  # the caller reports any exception
            answer = CallResult(error=error)
    texts = tuple(dict.fromkeys(str(warning.message) for warning in caught if warning.category is not RuntimeWarning))
    return replace(answer, warnings=texts, peak=resident_memory("VmHWM") - memory_before + CHILD_MEMORY["largest"])


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Perform incoming calls sequentially until the source ends or is idle for `IDLE_TIMEOUT` seconds."""
    calls: queue.Queue[Call | CallResult] = queue.Queue()

    def listen() -> None:
        try:
            while True:
                calls.put(read_message(source))
        except (EOFError, OSError, pickle.UnpicklingError):
            pass  # the caller has ended, perhaps in the middle of a message; no one reads the result
        finally:
            os._exit(0)

    def send(message: Message) -> None:
        try:
            content = pickle.dumps(message)
        except Exception as error:  # pickle raises various exceptions
            failure = TypeError(f"the result cannot be sent to another process: {error}")
            content = pickle.dumps(CallResult(error=failure))
        try:
            write_message(sink, content)
        except BrokenPipeError:
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            call = calls.get(timeout=IDLE_TIMEOUT)
        except queue.Empty:
            return
        send(CallStarted(resident_memory("VmRSS")))
        send(call if isinstance(call, CallResult) else perform(call))


def main() -> None:
    """Run as a worker process; the optional command-line argument is the address space limit in bytes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output printed by solvers must not mix with the messages
    if sys.argv[1:]:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY))
    serve(sys.stdin.buffer, answers)
