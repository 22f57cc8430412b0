"""Chunked tables: dask arrays, read chunk by chunk locally, or on the workers of a cluster, which return sums."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.errors import ClusterConnectionError, DataError, ParameterError, ResourceError
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array, require_table
from diffrac_cvx.points.linear_algebra import BLOCK_ROWS, EPS

POLL_SECONDS = 0.2  # seconds between checks of the deadline while others read
DASK_MISSING = "X is a dask array, but dask is not installed. Run pip install 'diffrac-cvx[scale]'."

CONNECTION_ERRORS = {
    "KilledWorker",
    "CancelledError",
    "FutureCancelledError",
    "FuturesCancelledError",
    "CommClosedError",
}

Indices = npt.NDArray[np.intp]


def is_chunked(X: object) -> bool:
    """Return whether X is a dask collection, without importing dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "dask")


def checksum_chunk(table: Any) -> Array:
    """Return the checksum of a chunk, (4, d): random weighted sums of its columns, and their rounding errors.

    A chunk is recomputed whenever it is read, perhaps on another machine; it is unchanged if the sums differ by no more
    than rounding in the type of its entries.  A change of a column of norm s by a vector of norm t > 32 eps s, with any
    pattern of places and signs, is missed with probability about (32 eps s/t)^3.
    """
    if hasattr(table, "toarray"):
        squares = table.astype(np.float64).power(2).sum(axis=0)
    else:
        parts = (np.asarray(table[i : i + BLOCK_ROWS], dtype=np.float64) for i in range(0, len(table), BLOCK_ROWS))
        squares = sum(np.einsum("ij,ij->j", part, part) for part in parts)
    eps = float(np.finfo(table.dtype).eps) if table.dtype.kind == "f" else 0.0
    norms = np.sqrt(np.asarray(squares)).ravel()
    return np.vstack([checksum_sums(table), max(32.0 * eps, 256.0 * EPS) * norms])


def is_unchanged(checksum: Array, table: Any) -> bool:
    """Return whether a chunk that was read again has this checksum, up to rounding."""
    return bool(np.all(np.abs(checksum_sums(table) - checksum[:3]) <= checksum[3]))


def checksum_sums(table: Any) -> Array:
    """Return three sums of each column with random weights in [-1, 1] that are the same on all machines.

    Regular weights such as sin(1), sin(2), ... nearly repeat: swapped rows 710 apart would not be detected.
    """
    n, d = table.shape
    weights: Array = np.random.PCG64(2017).random_raw(3 * n).reshape(3, n) / 2.0**63 - 1.0
    if hasattr(table, "toarray"):
        return np.asarray(weights @ table)
    total = np.zeros((3, d))
    for i in range(0, n, BLOCK_ROWS):
        total += weights[:, i : i + BLOCK_ROWS] @ np.asarray(table[i : i + BLOCK_ROWS], dtype=np.float64)
    return total


def changed_rows_error(first: int, stop: int) -> DataError:
    return DataError(
        f"X changed while it was being read: rows {first} to {stop - 1} differ from the first pass; "
        "do not modify X until the solver returns"
    )


# First row and shape of a chunk, and its checksum from the first pass, or None before it.
ChunkSpec = tuple[int, tuple[int, int], Array | None]


@dataclass(frozen=True, eq=False)
class Chunks:
    """Dask array in chunks of complete rows."""

    array: Any  # (n, d); each evaluation must give the same entries up to rounding
    bounds: list[tuple[int, int]]  # first row of each chunk, and one past its last
    checksums: tuple[Array, ...] = ()  # of the chunks in the first pass; empty before it

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return int(self.array.shape[0]), int(self.array.shape[1])

    @cached_property
    def blocks(self) -> list[Any]:
        """Chunks as delayed objects."""
        return list(self.array.to_delayed().ravel())

    def spec(self, number: int) -> ChunkSpec:
        """Return the position, shape and checksum of a chunk."""
        i, j = self.bounds[number]
        return i, (j - i, self.shape[1]), self.checksums[number] if self.checksums else None

    def results(
        self, function: Callable[..., Any], common: Any, own: list[tuple[Any, ...]], *, summed: bool = False
    ) -> Iterator[Any]:
        """Yield ``function(chunk, common, own)`` for all chunks, in order, or sums of these tuples of a cluster."""
        client = current_client()
        if client is None:
            yield from self.read_locally(function, common, own)
            return
        from dask.delayed import delayed

        tasks, join = self.tasks(function, common, own), delayed(add_tuples, pure=False)
        while summed and len(tasks) > 1:
            odd = tasks[-1:] if len(tasks) % 2 else []
            tasks = [join(*pair) for pair in zip(tasks[0::2], tasks[1::2], strict=False)] + odd
        yield from wait_for(client, client.compute(tasks))

    def tasks(self, function: Callable[..., Any], common: Any, own: list[tuple[Any, ...]]) -> list[Any]:
        """Return the tasks for the workers of a cluster: ``function(chunk, common, own)`` for all chunks.

        A chunk that a worker holds is read there; otherwise the scheduler would send it to any idle worker.
        """
        import distributed
        from dask.base import annotate
        from dask.delayed import delayed

        shared, run = delayed(common, traverse=False), delayed(run_on_chunk, pure=False)
        held = distributed.futures_of(self.array)  # by a cluster on which the array is persisted
        holders = dict(translate_errors(lambda: current_client().who_has(held))) if held else {}
        found = []
        for number, block in enumerate(self.blocks):
            workers = holders.get(block.key, ())
            pinned = {"workers": list(workers), "allow_other_workers": True} if workers else {}
            with annotate(**pinned):
                found.append(run(block, self.spec(number), function, shared, own[number]))
        return found

    def map_parts(self, function: Callable[..., Any], common: Any, own: list[tuple[Any, ...]]) -> list[Any]:
        """Return ``function(chunk, common, own)`` for all chunks, in order."""
        return list(self.results(function, common, own))

    def sum_parts(self, function: Callable[..., Any], common: Any, own: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return the sum of the tuples that `map_parts` returns; the workers of a cluster sum them pairwise."""
        found: tuple[Any, ...] = reduce(add_tuples, self.results(function, common, own, summed=True))
        return found

    def take(self, indices: Indices) -> Any:
        """Return the rows at increasing indices as an array."""
        ends = np.searchsorted(indices, [j for _, j in self.bounds])
        starts = np.concatenate([[0], ends[:-1]])
        own = [(indices[a:b] - i,) for a, b, (i, _) in zip(starts, ends, self.bounds, strict=True)]
        return concatenate_rows(self.map_parts(take_rows, None, own))

    def read_locally(self, function: Callable[..., Any], common: Any, own: list[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield ``function(chunk, common, own)`` for all chunks, in order, with few chunks in memory at a time."""
        stopped = threading.Event()

        def run(number: int) -> Any:
            if stopped.is_set():
                raise ClusterConnectionError("reading was stopped")
            chunk = translate_errors(lambda: self.blocks[number].compute(scheduler="synchronous"))
            return run_on_chunk(chunk, self.spec(number), function, common, own[number])

        pool = ThreadPoolExecutor(min(2, len(own)))  # one reads while the other computes
        waiting = [pool.submit(run, number) for number in range(len(own))]
        try:
            for task in waiting:
                while not wait([task], timeout=POLL_SECONDS).done:
                    check_deadline()
                check_deadline()
                yield task.result()
        finally:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)  # do not wait for a slow chunk


def known_shape(X: Any) -> Any:
    """Return the table unchanged, or a dask collection as an array of known shape, read only if necessary."""
    if not is_chunked(X):
        return X
    try:
        import dask.array as da
    except ImportError:
        raise ParameterError(DASK_MISSING) from None
    if not isinstance(X, da.Array) and not hasattr(type(X), "to_dask_array"):
        raise DataError(f"X is a dask {type(X).__name__}. Pass a dask array, for example from dask.array.from_delayed.")
    array = X if isinstance(X, da.Array) else X.to_dask_array()
    require_table(array)
    if np.isnan(array.shape[1]):
        raise DataError("X has an unknown number of columns. Specify the number of columns of its chunks.")
    if np.isnan(array.shape[0]):
        array = translate_errors(array.compute_chunk_sizes)
        require_table(array)
    return array


def as_chunks(X: Any) -> Chunks:
    """Return a dask array or data frame as chunks of complete rows."""
    array = known_shape(X)
    if array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    ends = np.cumsum([0, *array.chunks[0]])
    return Chunks(array, [(int(i), int(j)) for i, j in pairwise(ends)])


# On the workers


def run_on_chunk(chunk: Any, spec: ChunkSpec, function: Callable[..., Any], common: Any, own: tuple[Any, ...]) -> Any:
    """Return the value of a function at a chunk, after checks of its shape, its type and its checksum."""
    first, shape, checksum = spec
    if np.ma.is_masked(chunk):
        raise DataError(f"the chunk of X from row {first} on has masked entries; drop or impute these entries")
    table: Any = scipy.sparse.csr_array(chunk) if hasattr(chunk, "toarray") else np.asarray(chunk)
    if table.shape != shape:
        raise DataError(
            f"the chunk of X from row {first} on has shape {table.shape} instead of {shape}; "
            "make its shape equal to that declared by the dask array"
        )
    if table.dtype.kind not in "biuf":
        raise DataError(f"the chunk of X from row {first} on has entries of type {table.dtype}; encode them as numbers")
    if checksum is not None and not is_unchanged(checksum, table):
        raise changed_rows_error(first, first + shape[0])
    return function(table, common, own)


def take_rows(table: Any, common: None, own: tuple[Indices]) -> Any:  # noqa: ARG001  # nothing is common
    return table[own[0]]


def concatenate_rows(parts: list[Any]) -> Any:
    """Return the parts stacked vertically; a single part is not copied."""
    if len(parts) == 1:
        return parts[0]
    if any(scipy.sparse.issparse(part) for part in parts):
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts))
    return np.concatenate(parts)


def add_tuples(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))


# Communication with the cluster


def current_client() -> Any:
    """Return the client of the active dask cluster, or None without a cluster."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client(timeout=1)
    except ValueError:
        return None


def wait_for(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of the futures; check the deadline and the cluster while waiting."""
    try:
        silent = 0.0
        while translate_errors(lambda: is_waiting(futures)):
            check_deadline()
            # The client updates its information on the workers in the background.
            workers = client.status == "running" and client.scheduler_info(n_workers=-1)["workers"]
            silent = 0.0 if workers else silent + POLL_SECONDS
            if silent > 20.0 or client.status == "closed":
                address = getattr(client.scheduler, "address", "an unknown address")
                raise ClusterConnectionError(f"connection lost to the scheduler at {address} or to all of its workers")
        return list(translate_errors(lambda: client.gather(futures)))
    finally:
        for future in futures:
            future.release()


def is_waiting(futures: list[Any]) -> bool:
    """Wait briefly, and return whether some futures have neither finished nor failed."""
    from distributed import wait

    try:
        wait(futures, timeout=POLL_SECONDS)
    except TimeoutError:
        return True
    return False


def translate_errors(function: Callable[[], Any]) -> Any:
    """Return the result of a function; translate errors of dask, of files and of user functions."""
    try:
        return function()
    except (DataError, ClusterConnectionError, ResourceError):
        raise
    except Exception as error:
        raise translated_error(error) from error


def translated_error(error: Exception) -> Exception:
    """Return the exception of this package that corresponds to an error during reading."""
    names = {kind.__name__ for kind in type(error).__mro__}
    message = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if names & CONNECTION_ERRORS:
        return ClusterConnectionError(f"the cluster did not finish the computation: {message}")
    if isinstance(error, MemoryError):
        return ResourceError(f"a chunk of X does not fit in memory: {message}; make the chunks smaller")
    if isinstance(error, OSError | EOFError):
        return DataError(f"X cannot be read: {message}")
    return DataError(f"X cannot be read: {type(error).__name__}: {message}")
