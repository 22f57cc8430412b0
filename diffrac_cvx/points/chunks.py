"""Chunks of rows of a dask array; functions of a chunk are computed on the worker that stores it."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.threads import in_threads

BATCH = 32  # largest number of chunk results in memory at a time
PATIENCE = 10.0  # seconds without a result after which the workers of the cluster are counted


def is_dask(X: Any) -> bool:
    """Return whether a table is a dask array."""
    return hasattr(X, "dask") and hasattr(X, "chunks")


class Chunks:
    """Dask array in chunks of complete rows, on the cluster of the current client, or otherwise in dask's threads."""

    def __init__(self, X: Any) -> None:
        if np.isnan(X.shape).any():
            raise DataError("X is a dask array with chunks of unknown sizes. Call X.compute_chunk_sizes() first.")
        X = X.rechunk({1: -1})
        self.shape, self.dtype = X.shape, X.dtype
        ends, sizes = np.cumsum(X.chunks[0]).tolist(), X.chunks[0]
        self.bounds = [(end - size, end) for end, size in zip(ends, sizes, strict=True) if size]
        self.blocks = [block for block, size in zip(X.to_delayed().ravel(), sizes, strict=True) if size]
        self.client = client_of(X)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "client": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, client=client_of())

    def map(self, function: Callable[..., Any], *aligned: npt.NDArray[Any]) -> Iterator[Any]:
        """Yield ``function(chunk, *aligned)`` for each chunk, with the rows of aligned arrays that belong to it."""
        return self.run(function, [tuple(values[i:j] for values in aligned) for i, j in self.bounds])

    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield ``function(chunk, *arguments)`` for each chunk, in order, each with its own arguments.

        The function is sent once and called on the worker of each chunk; its results arrive in batches.
        """
        from dask.delayed import delayed

        call, shared = delayed(call_function, pure=False), delayed(function, pure=False, traverse=False)
        tasks = [call(shared, block, given) for block, given in zip(self.blocks, arguments, strict=True)]
        is_on_cluster = self.client is not None
        with clear_errors(is_on_cluster):
            yield from self.on_cluster(tasks) if is_on_cluster else self.in_this_process(tasks)

    def in_this_process(self, tasks: list[Any]) -> Iterator[Any]:
        """Yield the results of tasks, computed by threads of this process, even if a client was closed before."""
        from dask.base import compute

        for start in range(0, len(tasks), BATCH):
            (results,) = in_threads([partial(compute, *tasks[start : start + BATCH], scheduler="threads")], 1)
            yield from results

    def on_cluster(self, tasks: list[Any]) -> Iterator[Any]:
        """Yield the results of tasks computed by the workers, in the order of their chunks."""
        futures = self.client.compute(tasks)
        try:
            for start in range(0, len(tasks), BATCH):
                batch = futures[start : start + BATCH]
                done = threading.Event()
                results, _ = in_threads([partial(self.gather, batch, done), partial(self.watch, done)], 2)
                yield from results
                release(batch)
        finally:
            release(futures)

    def gather(self, futures: list[Any], done: threading.Event) -> Any:
        """Return the results of futures and set the event `done`."""
        try:
            return self.client.gather(futures)
        finally:
            done.set()

    def watch(self, done: threading.Event) -> None:
        """Wait until the results are done; raise DataError if no worker is left to compute them."""
        while not done.wait(PATIENCE):
            if not self.client.scheduler_info()["workers"] and not done.wait(PATIENCE):
                raise DataError("the dask cluster, on which X lies, has no workers. Start workers, and solve again.")


def client_of(X: Any = None) -> Any:
    """Return the client of the cluster that holds chunks of X, otherwise the current one; None without a cluster."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    parts = () if X is None else dict(X.dask).values()
    with suppress(ValueError):  # raised if no client is active
        held = next((part for part in parts if isinstance(part, distributed.Future)), None)
        return distributed.default_client() if held is None else held.client
    return None


@contextmanager
def clear_errors(is_on_cluster: bool) -> Iterator[None]:
    """Raise DataError if a cluster loses chunks, workers, its scheduler or its client, or if files are not readable."""
    distributed = sys.modules.get("distributed")
    lost = () if distributed is None else (distributed.KilledWorker, distributed.client.ClosedClientError)
    try:
        yield
    except (CancelledError, OSError, *lost) as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
        if is_on_cluster:
            raise DataError(f"the dask cluster lost X ({why}). Compute or load X again, and solve again.") from error
        raise DataError(f"chunks of X cannot be computed ({why}). Check the files of X.") from error


def release(futures: list[Any]) -> None:
    """Release futures, including those of a closed client, so that the cluster can forget their tasks."""
    for future in futures:
        with suppress(RuntimeError):
            future.release()


# On a worker


def call_function(function: Callable[..., Any], chunk: Any, arguments: tuple[Any, ...]) -> Any:
    return function(chunk, *arguments)


def as_block(rows: Any) -> npt.NDArray[Any]:
    """Return rows of a table as an array in memory."""
    block = rows.toarray() if hasattr(rows, "toarray") else np.asanyarray(rows)
    if np.ma.is_masked(block):
        raise DataError("X has masked entries. Drop or impute them.")
    return np.asarray(block)
