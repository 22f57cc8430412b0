"""The process that computes for the page: it can be asked to stop, and it can be killed.

It reads pickled calls from its standard input and writes pickled messages to its standard output.
"""

import os
import pickle
import queue
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, BinaryIO

from diffrac_cvx.app.page.messages import Answer, Call, Stop, Told

IDLE = 1800.0  # seconds without a call after which it ends by itself


def perform(call: Call, tell: Callable[[Told], None], stopped: Callable[[], bool]) -> Answer:
    """Do a call; its errors are part of the answer."""

    def callback(progress: Any) -> bool:
        tell(Told(progress))
        return stopped()

    options = {**call.options, "callback": callback} if call.reports else call.options
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            value, error = call.function(*call.arguments, **options), None
        except Exception as raised:  # whatever it is, the page has to say it
            value, error = None, raised
    said = tuple(dict.fromkeys(str(warning.message) for warning in caught if warning.category is not RuntimeWarning))
    return Answer(value, error, said)


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Perform the calls that come in, one after the other, until the source ends or nothing comes for a while."""
    calls: queue.Queue[Call | None] = queue.Queue()
    asked = threading.Event()

    def listen() -> None:
        try:
            while True:
                message = pickle.load(source)
                if isinstance(message, Stop):
                    asked.set()
                else:
                    calls.put(message)
        except EOFError:
            os._exit(0)  # the page is gone: nobody waits for the call under way

    def send(message: Told | Answer) -> None:
        sink.write(packed(message))
        sink.flush()

    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            call = calls.get(timeout=IDLE)
        except queue.Empty:
            return
        if call is not None:
            asked.clear()
            send(perform(call, send, asked.is_set))


def packed(message: Told | Answer) -> bytes:
    """Return the pickle of a message; what cannot be pickled becomes an error that says so."""
    try:
        return pickle.dumps(message)
    except Exception as error:
        return pickle.dumps(Answer(error=RuntimeError(f"the answer cannot be passed on: {error}")))


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a solver prints must not come between the answers
    serve(sys.stdin.buffer, answers)
