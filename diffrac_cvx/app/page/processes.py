"""Calls in another process, which a stop switch ends for certain."""

import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from diffrac_cvx.app.page.messages import Answer, Call, Stop, Told

GRACE = 2.0  # seconds that a solver has to stop by its callback and return its point,
PATIENCE = 0.7  # and that a call without one has to end by itself: a new process takes longer to start
POLL = 0.05


class StoppedError(Exception):
    """The call was ended by the stop switch and has no answer."""


class Worker:
    """One process that computes for one page; it starts when first needed, and again after it was killed."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.messages: queue.Queue[Told | Answer | None] = queue.Queue()
        self.turn = threading.Lock()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process unless it runs, and return it; imports go on while the caller does other things."""
        if self.process is None or self.process.poll() is not None:
            self.messages = queue.Queue()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "diffrac_cvx.app.page.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            )
            threading.Thread(target=forward, args=(self.process, self.messages), daemon=True).start()
        return self.process

    def call(self, call: Call, *, stopped: Callable[[], bool], tell: Callable[[Any], object] = bool) -> Answer:
        """Do a call there and wait for its answer.

        Parameters
        ----------
        call : Call
            What to do.
        stopped : callable
            Asked many times a second whether to stop.
        tell : callable
            Is passed what the call's callback was told.

        Raises
        ------
        StoppedError
            If it was stopped and has no answer to give.
        RuntimeError
            If the process died, as it does when the memory does not suffice.
        """
        with self.turn:
            if stopped():
                raise StoppedError
            process = self.start()
            self.send(call)
            asked: float | None = None
            while True:
                try:
                    message = self.messages.get(timeout=POLL)
                except queue.Empty:
                    message = Told(None)
                if isinstance(message, Answer):
                    return message
                if message is None:
                    raise RuntimeError(f"the computing process ended unexpectedly (exit status {process.wait()})")
                if message.progress is not None and asked is None:
                    tell(message.progress)
                if stopped() and asked is None:
                    asked = time.perf_counter()
                    self.send(Stop())
                if asked is not None and time.perf_counter() - asked > (GRACE if call.reports else PATIENCE):
                    self.close()
                    raise StoppedError

    def send(self, message: Call | Stop) -> None:
        """Send a message to the process."""
        assert self.process is not None
        assert self.process.stdin is not None
        pickle.dump(message, self.process.stdin)
        self.process.stdin.flush()

    def close(self) -> None:
        """Kill the process, whatever it does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


WAITING: list[Worker] = []  # started before there is a page, so that the first one need not wait for its imports


def waiting_worker() -> Worker:
    """Return a worker whose process is starting, or has started ahead of time."""
    worker = WAITING.pop() if WAITING else Worker()
    worker.start()
    return worker


def forward(process: "subprocess.Popen[bytes]", messages: "queue.Queue[Told | Answer | None]") -> None:
    """Pass on what the process says; None when it has ended."""
    assert process.stdout is not None
    try:
        while True:
            messages.put(pickle.load(process.stdout))
    except (EOFError, OSError, pickle.UnpicklingError):
        pass
    finally:
        messages.put(None)
