"""Tables that change while they are read: memory maps, arrays and chunks modified during a solve."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.stress.instances import Instance

COPIES = 6000  # of the rows: so many rows are streamed in blocks
BLOCK, STRETCH = 2000, 512  # rows read at a time, and numbers per checksum to detect a change
READS = 30  # of a chunk, after which it changes


class Changed(NamedTuple):
    """Certified bounds for a table that changes, and the table at the start and later (only the start if detected)."""

    lower: float
    upper: float
    result: dc.Result | None
    tables: list[Instance]


def while_it_changes(instance: Instance, after: Array, folder: str, seconds: float) -> Changed:
    """Solve for a table that changes after the first certificate; in chunks, after a few passes."""
    changed: list[Instance] = []
    n, d = COPIES * len(after), after.shape[1]
    # The change fills whole checksum stretches: in a partly filled one it would be detected.
    chosen = np.flatnonzero(np.arange(n) % BLOCK < BLOCK * d // STRETCH * STRETCH // d)

    def change(progress: dc.Progress) -> None:
        if instance.form != "dask" and progress.lower > 0.0 and not changed:
            table[chosen] = after[chosen % len(after)]
            w = np.repeat([n - len(chosen), len(chosen)], len(after)).astype(float)
            changed.append(instance._replace(X=np.vstack([instance.X, after]), w=w))

    chunked = instance.form == "dask"
    table = in_chunks(instance, after, changed) if chunked else many_rows(instance, Path(folder) / "table.npy")
    given: dict[str, Any] = {"nu": instance.nu, "penalty": instance.penalty, "tol": 1e-9, "max_iter": 500}
    try:
        result = dc.low_rank(table, time_limit=seconds, callback=change, **given)
    except dc.DataError as error:
        lower, upper = getattr(error, "bracket", None) or (0.0, 1.0)
        return Changed(lower, upper, None, [instance])
    return Changed(result.lower, result.upper, result, [instance, *changed[:1]])


def many_rows(instance: Instance, path: Path) -> Any:
    """Return many copies of the rows, as an array or a memory map, of doubles or integers."""
    table = np.tile(instance.X, (COPIES, 1)).astype(np.int64 if instance.form.endswith("integers") else np.float64)
    if instance.form.startswith("rows"):
        return table
    np.save(path, table)
    return np.load(path, mmap_mode="r+", allow_pickle=False)


def in_chunks(instance: Instance, after: Array, changed: list[Instance]) -> Any:
    """Return the rows in two chunks that change after they have been read a few times."""
    import dask.array

    half, reads = len(after) // 2, dict[tuple[int, int], int]()

    def load(_: Array, block_id: tuple[int, int]) -> Array:
        reads[block_id] = reads.get(block_id, 0) + 1
        if reads[block_id] > READS:
            changed.append(instance._replace(X=after))
        rows = after if reads[block_id] > READS else instance.X
        return rows[half * block_id[0] : half * (block_id[0] + 1)]

    table = dask.array.from_array(instance.X, chunks=(half, -1))  # type: ignore[no-untyped-call]
    return table.map_blocks(load, dtype=float, meta=np.zeros((0, 0)))
