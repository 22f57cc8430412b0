"""Tables in chunks: dask arrays, read chunk by chunk here, or by the workers of a cluster, which send sums."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.errors import ClusterConnectionError, DataError, ParameterError, ResourceError
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array, require_table

DOUBLE_EPS = float(np.finfo(float).eps)
SUM_BLOCK_ROWS = 2000  # rows of a chunk that are added at a time
CLUSTER_POLL_SECONDS = 0.2  # seconds between looks at the cluster
SCHEDULER_TIMEOUT = 20.0  # seconds for which the scheduler may be out of reach
DASK_MISSING = "a dask array needs dask: pip install 'diffrac-cvx[scale]'"
N_READERS = 2  # chunks that are read at the same time where there is no cluster

CONNECTION_ERRORS = {
    "KilledWorker",
    "CancelledError",
    "FutureCancelledError",
    "FuturesCancelledError",
    "CommClosedError",
}

Indices = npt.NDArray[np.intp]


def is_chunked(X: object) -> bool:
    """Whether something is a collection of dask; dask is not imported for the answer."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "dask")


class ChunkChecksum(NamedTuple):
    """Weighted sums of the columns of a chunk, and the norms of the columns.

    A chunk is computed whenever it is read, perhaps on another machine: it is the same where the sums differ by no more
    than rounding in the type of its entries.  A column of norm s that changes by a vector of norm t > 32 eps s, in
    whatever places and signs, is seen but for a chance of about (32 eps s/t)^3.
    """

    sums: Array  # over its rows, with three random weights for each, (3, d)
    norms: Array  # (d,), to which the rounding of the sums is in proportion
    eps: float  # the distance of 1 to the next number of the type

    def matches(self, table: Any) -> bool:
        """Whether a chunk that was read again is the same."""
        difference = np.abs(checksum_sums(table) - self.sums)
        return bool(np.all(difference <= max(32.0 * self.eps, 256.0 * DOUBLE_EPS) * self.norms))


def checksum_chunk(table: Any) -> ChunkChecksum:
    """Return what tells whether a chunk is the same when it is read again."""
    if hasattr(table, "toarray"):
        squares = table.astype(np.float64).power(2).sum(axis=0)
    else:
        parts = (
            np.asarray(table[i : i + SUM_BLOCK_ROWS], dtype=np.float64) for i in range(0, len(table), SUM_BLOCK_ROWS)
        )
        squares = sum(np.einsum("ij,ij->j", part, part) for part in parts)
    eps = float(np.finfo(table.dtype).eps) if table.dtype.kind == "f" else 0.0
    return ChunkChecksum(checksum_sums(table), np.sqrt(np.asarray(squares)).ravel(), eps)


def checksum_sums(table: Any) -> Array:
    """Return three sums of each column, with weights from -1 to 1 that are random, and the same on any machine.

    Weights in a pattern, such as sin(1), sin(2), ..., nearly repeat: rows 710 apart could change places unseen.
    """
    n, d = table.shape
    weights: Array = np.random.PCG64(2017).random_raw(3 * n).reshape(3, n) / 2.0**63 - 1.0
    if hasattr(table, "toarray"):
        return np.asarray(weights @ table)
    total = np.zeros((3, d))
    for i in range(0, n, SUM_BLOCK_ROWS):
        total += weights[:, i : i + SUM_BLOCK_ROWS] @ np.asarray(table[i : i + SUM_BLOCK_ROWS], dtype=np.float64)
    return total


def changed_rows_error(first: int, stop: int) -> DataError:
    return DataError(
        f"X changed while it was read: rows {first} to {stop - 1} are not what they were when they were read first; "
        "keep it as it is until all is computed"
    )


class ChunkSpec(NamedTuple):
    """The first row of a chunk, its shape, and what it was when it was read first, where it was."""

    first: int
    shape: tuple[int, int]
    checksum: ChunkChecksum | None


@dataclass(frozen=True, eq=False)
class Chunks:
    """A dask array in chunks of whole rows."""

    array: Any  # (n, d); it must give the same entries, up to rounding, whenever it is computed
    bounds: list[tuple[int, int]]  # where the chunks begin and end
    checksums: tuple[ChunkChecksum, ...] = ()  # what the chunks were when they were read first; empty until they are

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return int(self.array.shape[0]), int(self.array.shape[1])

    @cached_property
    def blocks(self) -> list[Any]:
        """The chunks, not read yet."""
        return list(self.array.to_delayed().ravel())

    def spec(self, number: int) -> ChunkSpec:
        """Return where a chunk is, and what it has to be."""
        i, j = self.bounds[number]
        return ChunkSpec(i, (j - i, self.shape[1]), self.checksums[number] if self.checksums else None)

    def tasks(self, function: Callable[..., Any], common: Any, own: list[tuple[Any, ...]]) -> list[Any]:
        """Return the tasks for the workers of a cluster: ``function(chunk, common, own)`` for all chunks.

        A chunk that workers hold is read there: else the scheduler would send it to whoever is idle.
        """
        import distributed
        from dask.base import annotate
        from dask.delayed import delayed

        shared, run = delayed(common, traverse=False), delayed(run_on_chunk, pure=False)
        held = distributed.futures_of(self.array)  # by a cluster that keeps the array
        holders = dict(translate_errors(lambda: current_client().who_has(held))) if held else {}
        found = []
        for number, block in enumerate(self.blocks):
            workers = holders.get(block.key, ())
            pinned = {"workers": list(workers), "allow_other_workers": True} if workers else {}
            with annotate(**pinned):
                found.append(run(block, self.spec(number), function, shared, own[number]))
        return found

    def map_parts(self, function: Callable[..., Any], common: Any, own: list[tuple[Any, ...]]) -> list[Any]:
        """Return ``function(chunk, common, own)`` for all chunks, in their order."""
        client = current_client()
        if client is not None:
            return wait_for(client, client.compute(self.tasks(function, common, own)))
        return list(self.read_locally(function, common, own))

    def sum_parts(self, function: Callable[..., Any], common: Any, own: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return the sum of the tuples that `map_parts` gives; on a cluster the workers add, in pairs of pairs."""
        client = current_client()
        if client is not None:
            from dask.delayed import delayed

            tasks, join = self.tasks(function, common, own), delayed(add_tuples, pure=False)
            while len(tasks) > 1:
                odd = tasks[-1:] if len(tasks) % 2 else []
                tasks = [join(*pair) for pair in zip(tasks[0::2], tasks[1::2], strict=False)] + odd
            (found,) = wait_for(client, client.compute(tasks))
            return tuple(found)
        return reduce(add_tuples, self.read_locally(function, common, own))

    def take(self, indices: Indices) -> Any:
        """Return the chosen rows, which increase, as an array."""
        ends = np.searchsorted(indices, [j for _, j in self.bounds])
        starts = np.concatenate([[0], ends[:-1]])
        own = [(indices[a:b] - i,) for a, b, (i, _) in zip(starts, ends, self.bounds, strict=True)]
        return concatenate_rows(self.map_parts(take_rows, None, own))

    def read_locally(self, function: Callable[..., Any], common: Any, own: list[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield ``function(chunk, common, own)`` for all chunks, in their order; a few are in memory at a time."""
        stopped = threading.Event()

        def run(number: int) -> Any:
            if stopped.is_set():
                raise ClusterConnectionError("the reading was stopped")
            chunk = translate_errors(lambda: self.blocks[number].compute(scheduler="synchronous"))
            return run_on_chunk(chunk, self.spec(number), function, common, own[number])

        pool = ThreadPoolExecutor(min(N_READERS, len(own)))
        waiting = [pool.submit(run, number) for number in range(len(own))]
        try:
            for task in waiting:
                while not wait([task], timeout=CLUSTER_POLL_SECONDS).done:
                    check_deadline()
                check_deadline()
                yield task.result()
        finally:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)  # a chunk that takes long does not hold who leaves


def known_shape(X: Any) -> Any:
    """Return a table as it is, but a dask collection as an array whose shape is known, read where it has to be."""
    if not is_chunked(X):
        return X
    try:
        import dask.array as da
    except ImportError:
        raise ParameterError(DASK_MISSING) from None
    if not isinstance(X, da.Array) and not hasattr(type(X), "to_dask_array"):
        raise DataError(f"X is a dask {type(X).__name__}; pass a dask array, such as dask.array.from_delayed gives")
    array = X if isinstance(X, da.Array) else X.to_dask_array()
    require_table(array)
    if np.isnan(array.shape[1]):
        raise DataError("X has an unknown number of columns; give the chunks their width")
    if np.isnan(array.shape[0]):
        array = translate_errors(array.compute_chunk_sizes)
        require_table(array)
    return array


def as_chunks(X: Any) -> Chunks:
    """Return a dask array or data frame as chunks of whole rows."""
    array = known_shape(X)
    if array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    ends = np.cumsum([0, *array.chunks[0]])
    return Chunks(array, [(int(i), int(j)) for i, j in pairwise(ends)])


# On the workers


def run_on_chunk(chunk: Any, spec: ChunkSpec, function: Callable[..., Any], common: Any, own: tuple[Any, ...]) -> Any:
    """Return what a function gives of a chunk, after a look at its shape, and whether it is what it was."""
    first, shape, checksum = spec
    if np.ma.is_masked(chunk):
        raise DataError(f"the chunk of X from row {first} on has masked entries; drop or impute them")
    table: Any = scipy.sparse.csr_array(chunk) if hasattr(chunk, "toarray") else np.asarray(chunk)
    if table.shape != shape:
        raise DataError(
            f"the chunk of X from row {first} on has shape {table.shape} in place of {shape}; "
            "make the chunks as the array says that they are"
        )
    if table.dtype.kind not in "biuf":
        raise DataError(f"the chunk of X from row {first} on has entries of type {table.dtype}; encode them as numbers")
    if checksum is not None and not checksum.matches(table):
        raise changed_rows_error(first, first + shape[0])
    return function(table, common, own)


def take_rows(table: Any, common: None, own: tuple[Indices]) -> Any:  # noqa: ARG001  # nothing is common
    return table[own[0]]


def concatenate_rows(parts: list[Any]) -> Any:
    """Return parts one below the other; a single one as it is."""
    if len(parts) == 1:
        return parts[0]
    if any(scipy.sparse.issparse(part) for part in parts):
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts))
    return np.concatenate(parts)


def add_tuples(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))


# The cluster


def current_client() -> Any:
    """Return the client of dask's cluster that is in use, or None where there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client(timeout=1)
    except ValueError:
        return None


def wait_for(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of futures; look at the limits and at the cluster while they are made."""
    try:
        silent = 0.0
        while not finished(futures):
            check_deadline()
            # The client asks for news of the workers in the background.
            workers = client.status == "running" and client.scheduler_info(n_workers=-1)["workers"]
            silent = 0.0 if workers else silent + CLUSTER_POLL_SECONDS
            if silent > SCHEDULER_TIMEOUT or client.status == "closed":
                address = getattr(client.scheduler, "address", "an unknown address")
                raise ClusterConnectionError(f"the scheduler at {address}, or all of its workers, are lost")
        return list(translate_errors(lambda: client.gather(futures)))
    finally:
        for future in futures:
            future.release()


def finished(futures: list[Any]) -> bool:
    """Return whether futures are finished, or have failed, within a moment."""
    from distributed import wait

    try:
        wait(futures, timeout=CLUSTER_POLL_SECONDS)
    except TimeoutError:
        return False
    except Exception as error:
        raise translated_error(error) from error
    return True


def translate_errors(function: Callable[[], Any]) -> Any:
    """Return what a function gives; errors of dask, of files and of users' functions become those of this package."""
    try:
        return function()
    except (DataError, ClusterConnectionError, ResourceError):
        raise
    except Exception as error:
        raise translated_error(error) from error


def translated_error(error: Exception) -> Exception:
    """Return the error of this package that says what an error in reading data does."""
    names = {kind.__name__ for kind in type(error).__mro__}
    message = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if names & CONNECTION_ERRORS:
        return ClusterConnectionError(f"the cluster did not finish: {message}")
    if isinstance(error, MemoryError):
        return ResourceError(f"a chunk of X does not fit in memory: {message}; make the chunks smaller")
    if isinstance(error, OSError | EOFError):
        return DataError(f"X cannot be read: {message}")
    return DataError(f"X cannot be read: {type(error).__name__}: {message}")
