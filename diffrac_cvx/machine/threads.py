"""Number of threads of the linear algebra libraries."""

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def controller() -> ThreadpoolController:
    """Return the controller of the loaded libraries; finding them takes milliseconds."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which the linear algebra uses one thread."""
    limiter: AbstractContextManager[object] = controller().limit(limits=1, user_api="blas")
    return limiter


def allowed_threads() -> int:
    """Return the number of threads the linear algebra may use, as limited for example by OPENBLAS_NUM_THREADS."""
    return max((blas.num_threads for blas in controller().select(user_api="blas").lib_controllers), default=1)
