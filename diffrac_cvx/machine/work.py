"""Work of a computation, counted in operations instead of seconds, so that decisions are equal on every machine.

Computing functions count their own operations.  One operation is a floating-point operation of a large matrix product;
slower ones, such as those of an eigendecomposition, count several times.
"""

import threading

CALL_OPERATIONS = 1.2e6  # operations of a product that take as long as a call from Python


counter = threading.local()


def count_work(operations: float) -> None:
    """Count a call with this number of operations."""
    counter.operations = work_done() + operations + CALL_OPERATIONS


def work_done() -> float:
    """Return the number of operations counted so far in this thread."""
    return float(getattr(counter, "operations", 0.0))
