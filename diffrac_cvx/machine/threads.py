"""Number of threads of the linear algebra libraries."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from threadpoolctl import ThreadpoolController

threads_outside: ContextVar[int | None] = ContextVar("threads outside one_thread", default=None)


@cache
def controller() -> ThreadpoolController:
    """Return the controller of the loaded libraries; finding them takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Enter a context, or decorate a function, in which the linear algebra uses one thread.

    Several threads do not speed up many small products, and on a busy machine slow them down tenfold.
    """
    token = threads_outside.set(allowed_threads())
    try:
        with controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        threads_outside.reset(token)


def allowed_threads() -> int:
    """Return the number of threads that may be used, as limited for example by OPENBLAS_NUM_THREADS.

    Inside `one_thread` it is the number outside, for passes over streamed tables, whose threads are ours.
    """
    outside = threads_outside.get()
    if outside is not None:
        return outside
    return max((blas.num_threads for blas in controller().select(user_api="blas").lib_controllers), default=1)
