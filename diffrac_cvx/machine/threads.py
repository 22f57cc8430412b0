"""Threads: control of those of linear algebra libraries, and calls in threads of this package."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from diffrac_cvx.machine.deadlines import check_deadline

POLL_SECONDS = 0.2  # seconds between checks of the deadline while other threads compute

threads_outside: ContextVar[int | None] = ContextVar("threads outside one_thread", default=None)


@cache
def controller() -> ThreadpoolController:
    """Return the controller of the loaded libraries; finding them takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Enter a context, or decorate a function, in which the linear algebra uses one thread.

    Several threads do not speed up many small products, and on a busy machine can make them ten times slower.
    """
    token = threads_outside.set(allowed_threads())
    try:
        with controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        threads_outside.reset(token)


def allowed_threads() -> int:
    """Return the number of threads that may be used, as limited for example by OPENBLAS_NUM_THREADS.

    Inside `one_thread` it is the number outside, for passes over streamed tables, which use threads of this package.
    """
    outside = threads_outside.get()
    if outside is not None:
        return outside
    return max((blas.num_threads for blas in controller().select(user_api="blas").lib_controllers), default=1)


def in_threads(calls: Sequence[Callable[[], Any]], workers: int) -> list[Any]:
    """Return the values of calls, in order, from threads with the caller's deadline, which is checked while waiting."""
    pool = ThreadPoolExecutor(workers)
    tasks = [pool.submit(copy_context().run, call) for call in calls]
    running: set[Future[Any]] = set(tasks)
    try:
        while running:
            done, running = wait(running, timeout=POLL_SECONDS, return_when=FIRST_EXCEPTION)
            for task in done:
                task.result()  # raises its error, if any, without waiting for the others
            if running:
                check_deadline()
        return [task.result() for task in tasks]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # do not wait for a slow disk
