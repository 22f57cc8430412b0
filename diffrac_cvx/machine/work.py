"""Work of a computation, counted in operations and never timed, so that what depends on it is equal on every machine.

The functions that compute count what they do: one operation is a floating-point operation of a large matrix product,
and slower ones, as those of an eigendecomposition, count several times.
"""

import threading

CALL_OPERATIONS = 1.2e6  # operations of a product in the time of a call from Python


counter = threading.local()


def count_work(operations: float) -> None:
    """Count a call with this number of operations."""
    counter.operations = work_done() + operations + CALL_OPERATIONS


def work_done() -> float:
    """Return the number of operations counted so far in this thread."""
    return float(getattr(counter, "operations", 0.0))
