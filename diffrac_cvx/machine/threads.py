"""How many threads the linear algebra has."""

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def controller() -> ThreadpoolController:
    """Return the controller of the libraries loaded by now; finding them takes milliseconds."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Limit the linear algebra to one thread inside."""
    limiter: AbstractContextManager[object] = controller().limit(limits=1, user_api="blas")
    return limiter


def allowed_threads() -> int:
    """Return how many threads the linear algebra may use: its own limit, such as that of OPENBLAS_NUM_THREADS."""
    return max((blas.num_threads for blas in controller().select(user_api="blas").lib_controllers), default=1)
