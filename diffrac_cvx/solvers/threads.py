"""Threads of the linear algebra library: one for small matrices, on which several would mostly wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

from diffrac_cvx.inputs import Array

LARGE = 2_000_000  # entries of the data, from which several threads are worth it


@cache
def controller() -> ThreadpoolController:
    """Return the controller of the libraries loaded by now; looking for them takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def threads_for(X: Array) -> Iterator[None]:
    """Limit the linear algebra to one thread inside, unless the data are large."""
    if X.size >= LARGE:
        yield
        return
    with controller().limit(limits=1, user_api="blas"):
        yield
