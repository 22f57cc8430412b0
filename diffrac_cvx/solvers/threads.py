"""Threads of the linear algebra library: one.

The matrices are d x d or a few columns wide.  Several threads gain little on them and, where another process holds a
core, wait for each other: a hundred times slower was measured.  Run several problems in several processes instead.
"""

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def controller() -> ThreadpoolController:
    """Return the controller of the libraries loaded by now; looking for them takes milliseconds."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Limit the linear algebra to one thread inside."""
    limiter: AbstractContextManager[object] = controller().limit(limits=1, user_api="blas")
    return limiter
