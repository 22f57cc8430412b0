"""What the solvers and certificates take for X: an array, or a table that is read by parts."""

from typing import Any

from diffrac_cvx.chunks import is_chunked
from diffrac_cvx.inputs import as_data
from diffrac_cvx.linalg import allowed_threads, one_thread
from diffrac_cvx.rows import Poll, as_rows, do_nothing
from diffrac_cvx.shifted import Points, as_shifted


def read_by_parts(X: Any) -> bool:
    """Whether a table is kept as it is, whatever its size: a dask array, or a sparse matrix."""
    return is_chunked(X) or hasattr(X, "toarray")


def as_points(
    X: Any,
    *,
    by_rows: bool = False,
    by_columns: bool = False,
    warn: bool = True,
    depth: int = 4,
    poll: Poll = do_nothing,
) -> Points:
    """Return data, checked and centred: an array as a copy, others as `Rows` or, sparse, as `Shifted` columns.

    Parameters
    ----------
    X : (n, d) array, memory map, sparse matrix or dask array
        Data.
    by_rows : bool
        Whether an array or a memory map is read by parts too, and not copied.
    by_columns : bool
        Whether a sparse matrix is kept by columns.
    warn, depth : bool, int
        Whether constant columns are warned of, at the user's line, so many calls up.
    poll : callable
        Called while a table is read by parts; it may raise to leave.

    Raises
    ------
    DataError
        If the table is not usable; the message names the value and the remedy.
    """
    if by_columns and hasattr(X, "toarray"):
        return as_shifted(X, warn=warn, depth=depth + 1)
    if not by_rows and not read_by_parts(X):
        return as_data(X, warn=warn, depth=depth + 1)
    threads = allowed_threads()
    with one_thread():
        return as_rows(X, threads=threads, warn=warn, depth=depth + 1, poll=poll)
