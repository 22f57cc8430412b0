"""Calls in another process, which can be stopped and limited in time and memory; its end does not end the caller.

The pools of concurrent.futures and multiprocessing cannot end one running call without breaking the pool, and their
"spawn" imports the caller's script again, which needs a guard in every script.

A worker's process reads pickled calls from its standard input and writes pickled messages to what was its standard
output; what solvers print goes to its standard error.
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

CALLBACK_STOP_SECONDS = 2.0  # seconds that a solver has to stop by its callback and return its point,
STOP_SECONDS = 0.7  # and that a call without one has to end by itself: a new process takes longer to start
POLL_SECONDS = 0.05
IDLE_TIMEOUT = 1800.0  # seconds without a call after which a process ends by itself
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
WORKER_PROGRAM = (  # only the caller handles Ctrl-C, so the process ignores it from its start
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from diffrac_cvx.machine.processes import main; main()"
)


CHILD_MEMORY = {
    "largest": 0.0
}  # growth of memory in other processes, of the calls made from this one since it was set to 0


class StoppedError(Exception):
    """The call was ended because it was asked to stop, and has no answer."""


class OutOfTimeError(Exception):
    """The call took more than its seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"stopped after {seconds:g} s")


class WorkerDiedError(Exception):
    """The process ended during a call, as it may when memory does not suffice."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code  # negative where a signal ended it,
        self.signal = ""  # which has this name
        with contextlib.suppress(ValueError):
            self.signal = signal.Signals(-exit_code).name
        super().__init__(f"the process died: {self.signal or f'exit code {exit_code}'}")


@dataclass(frozen=True)
class Call:
    """A function of a module and what it is called with; `takes_callback` if it takes a `callback` that can stop it."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    takes_callback: bool = False


@dataclass(frozen=True)
class CallResult:
    """What the call returned or raised, what it warned of, and the growth of resident memory, NaN where unknown.

    To the growth of its process the largest of those is added that it has let work for it, as `solve` does where there
    is a limit of time.
    """

    value: Any = None
    error: Exception | None = None
    warnings: tuple[str, ...] = ()
    peak: float = np.nan


class CallStarted(NamedTuple):
    """Says that a call begins."""


class ProgressReport(NamedTuple):
    """What a call's callback was passed."""

    progress: Any


class StopRequest(NamedTuple):
    """Asks the running call to stop by its callback."""


Message = CallStarted | ProgressReport | CallResult


def never_stop() -> bool:
    return False


class Worker:
    """One process for calls, one after the other; it starts when first needed, and again after it has ended.

    It may take ``memory_limit`` bytes of address space, its libraries included.
    """

    def __init__(self, memory_limit: float | None = None) -> None:
        self.memory_limit = memory_limit
        self.process: subprocess.Popen[bytes] | None = None
        self.memory_before = np.nan  # its memory when the call began, in bytes
        self.messages: queue.Queue[Message | None] = queue.Queue()
        self.outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.lock = threading.Lock()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process unless it runs, and return it; it imports while the caller does other things."""
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
            self.outbox.put(None)
            self.outbox = queue.SimpleQueue()
            threading.Thread(target=receive_messages, args=(self.process, self.messages), daemon=True).start()
            threading.Thread(target=send_messages, args=(self.process, self.outbox), daemon=True).start()
        return self.process

    def call(
        self,
        call: Call,
        *,
        stopped: Callable[[], bool] = never_stop,
        callback: Callable[[Any], object] = lambda _: None,
        seconds: float | None = None,
    ) -> CallResult:
        """Do a call there and wait for its answer.

        Parameters
        ----------
        call : Call
            What to do.
        stopped : callable
            Asked many times a second whether to stop.
        callback : callable
            Is passed what the call's callback is passed.
        seconds : float, optional
            What the call may take, the start of the process not counted.

        Raises
        ------
        StoppedError, OutOfTimeError, WorkerDiedError
            If it was stopped and has no answer to give, took too long, or ended its process.
        """
        try:
            content = pickle.dumps(call)
        except Exception as error:  # pickle raises errors of many kinds
            return CallResult(error=TypeError(f"the call cannot be sent to another process: {error}"))
        with self.lock:
            if stopped():
                raise StoppedError
            process, self.memory_before = self.start(), np.nan
            try:
                self.outbox.put(content)  # without waiting for the process to read: it may still be starting
                answer = self.wait(
                    CALLBACK_STOP_SECONDS if call.takes_callback else STOP_SECONDS, stopped, callback, seconds
                )
            except BaseException:  # a late answer must not be taken for that of the next call
                record_child_memory(resident_memory("VmHWM", process.pid) - self.memory_before)
                self.close()
                raise
            record_child_memory(answer.peak)
            return answer

    def wait(
        self, grace: float, stopped: Callable[[], bool], callback: Callable[[Any], object], seconds: float | None
    ) -> CallResult:
        """Wait for the answer to the call that was sent, which has `grace` seconds to end once it is asked to."""
        limit, kill_time = np.inf, np.inf  # times at which it is out of time, and at which a stop is enforced
        while True:
            with contextlib.suppress(queue.Empty):
                message = self.messages.get(timeout=POLL_SECONDS)
                if isinstance(message, CallResult):
                    return message
                if message is None:
                    assert self.process is not None
                    raise WorkerDiedError(self.process.wait())
                if isinstance(message, CallStarted):
                    assert self.process is not None
                    self.memory_before = resident_memory("VmRSS", self.process.pid)
                    limit = np.inf if seconds is None else time.perf_counter() + seconds
                if isinstance(message, ProgressReport) and kill_time == np.inf:
                    callback(message.progress)
            now = time.perf_counter()
            if now > kill_time:
                raise StoppedError
            if now > limit:
                assert seconds is not None
                raise OutOfTimeError(seconds)
            if kill_time == np.inf and stopped():
                kill_time = now + grace
                self.outbox.put(pickle.dumps(StopRequest()))

    def close(self) -> None:
        """Kill the process, whatever it does."""
        if self.process is not None:
            self.outbox.put(None)
            self.process.kill()
            self.process.wait()


def record_child_memory(growth: float) -> None:
    """Take note of the growth of another process's memory, NaN where it is not known."""
    CHILD_MEMORY["largest"] = float(np.fmax(CHILD_MEMORY["largest"], growth))


def write_message(stream: IO[bytes], content: bytes) -> None:
    """Write a pickled message, itself as one pickle of bytes: after one that cannot be read, the next still can."""
    pickle.dump(content, stream)
    stream.flush()


def read_message(stream: IO[bytes]) -> Any:
    """Return the next message; one that cannot be read is an answer that says so."""
    content = pickle.load(stream)
    try:
        return pickle.loads(content)
    except Exception as error:  # pickle raises errors of many kinds
        return CallResult(error=TypeError(f"what was sent from another process cannot be read: {error}"))


def receive_messages(process: subprocess.Popen[bytes], messages: queue.Queue[Message | None]) -> None:
    """Pass on the messages of the process, and None when it has ended."""
    assert process.stdout is not None
    try:
        while True:
            messages.put(read_message(process.stdout))
    except (EOFError, OSError, ValueError, pickle.UnpicklingError):
        messages.put(None)


def send_messages(process: subprocess.Popen[bytes], outbox: "queue.SimpleQueue[bytes | None]") -> None:
    """Write what is sent to the process until it ends, which `receive_messages` reports, or nothing more is to be sent."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        while (content := outbox.get()) is not None:
            write_message(process.stdin, content)
    with contextlib.suppress(OSError):
        process.stdin.close()


# In the other process


def perform(call: Call, report: Callable[[Any], object], stopped: Callable[[], bool]) -> CallResult:
    """Do a call; its errors are part of the answer."""

    def callback(progress: Any) -> bool:
        report(progress)
        return stopped()

    options = {**call.options, "callback": callback} if call.takes_callback else call.options
    memory_before, CHILD_MEMORY["largest"] = reset_peak_memory(), 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            answer = CallResult(call.function(*call.arguments, **options))
        except Exception as error:  # whatever it is, the caller reports it
            answer = CallResult(error=error)
    texts = tuple(dict.fromkeys(str(warning.message) for warning in caught if warning.category is not RuntimeWarning))
    return replace(answer, warnings=texts, peak=resident_memory("VmHWM") - memory_before + CHILD_MEMORY["largest"])


def pack_message(message: Message) -> bytes:
    """Return the pickle of a message; what cannot be pickled becomes an error that says so."""
    try:
        return pickle.dumps(message)
    except Exception as error:
        return pickle.dumps(CallResult(error=TypeError(f"the answer cannot be sent to another process: {error}")))


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Perform the calls that come in, one after the other, until the source ends or nothing comes for a while."""
    calls: queue.Queue[Call | CallResult] = queue.Queue()
    stopping = threading.Event()

    def listen() -> None:
        try:
            while True:
                message = read_message(source)
                if isinstance(message, StopRequest):
                    stopping.set()
                else:
                    calls.put(message)
        except (EOFError, OSError, pickle.UnpicklingError):
            pass  # the caller has ended, perhaps in the middle of a message, so nobody reads the answer
        finally:
            os._exit(0)

    def send(message: Message) -> None:
        content = pack_message(message)
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
        stopping.clear()
        send(CallStarted())
        send(
            call
            if isinstance(call, CallResult)
            else perform(call, lambda progress: send(ProgressReport(progress)), stopping.is_set)
        )


def main() -> None:
    """Serve as the process of a worker; the argument, if there is one, is its limit of address space in bytes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a solver prints must not be mixed with the answers
    if sys.argv[1:]:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), resource.RLIM_INFINITY))
    serve(sys.stdin.buffer, answers)
