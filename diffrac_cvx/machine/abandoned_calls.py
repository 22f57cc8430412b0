"""Calls of a user's function that are abandoned at a time limit.

The package's own computations check deadlines themselves (`deadlines`), and reference solvers run in a process that can
be ended (`processes`).  A user's function does not check deadlines, and it need not be importable in another process.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from diffrac_cvx.machine.processes import OutOfTimeError


class GivenUpError(BaseException):
    """Raised in a thread whose result is no longer needed; not an Exception, because the function might handle that."""


def call_within(seconds: float | None, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the value of a function, or raise its exception; raise OutOfTimeError after the time limit in seconds.

    With a limit the function runs in a thread.  After the limit the thread is asked to end, which it does at its next
    Python instruction.  Until then, for example during a long call of a compiled library, it continues in the
    background.
    """
    if seconds is None:
        return function(*arguments)
    values: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            values.append(function(*arguments))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(GivenUpError))
        raise OutOfTimeError(f"stopped after {seconds:g} s")
    if errors:
        raise errors[0]
    return values[0]
