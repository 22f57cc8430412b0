"""Tables that change while they are read: memory maps, arrays and chunks, solved while they are changed."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.stress.instances import Instance

COPIES = 8000  # of the rows: as many rows are read by parts
READS = 3  # of a chunk, after which it is another one


class Changed(NamedTuple):
    """What was proved of a table that has changed, and the table that was read then; None if it was never read."""

    lower: float
    upper: float
    result: dc.Result | None
    after: Array | None


def while_it_changes(instance: Instance, folder: str, seconds: float) -> Changed:
    """Solve for a table that changes after a few passes, or as soon as something is proved."""
    given: dict[str, Any] = {"nu": instance.nu, "penalty": instance.penalty, "tol": 1e-9, "max_iter": 500}
    after, reads = instance.after, Reads()
    assert after is not None
    table = in_chunks(instance, reads) if instance.form == "dask" else as_many(instance, Path(folder) / "table.npy")

    def change(progress: dc.Progress) -> None:
        if instance.form != "dask" and progress.lower > 0.0 and not reads.changed:
            table[...] = np.tile(after, (COPIES, 1))
            reads.changed = True

    try:
        result = dc.low_rank(table, time_limit=seconds, callback=change, **given)
    except dc.DataError as error:
        bracket = getattr(error, "bracket", None) or (0.0, 1.0)
        return Changed(*bracket, None, None)
    return Changed(result.lower, result.upper, result, after if reads.changed else None)


class Reads:
    """Whether a table has changed, and how often its chunks were read."""

    def __init__(self) -> None:
        self.changed, self.counts = False, dict[int, int]()


def as_many(instance: Instance, path: Path) -> Any:
    """Return many copies of the rows, as an array or a memory map, of doubles or integers."""
    table = np.tile(instance.X, (COPIES, 1)).astype(np.int64 if instance.form.endswith("integers") else np.float64)
    if instance.form.startswith("rows"):
        return table
    np.save(path, table)
    return np.load(path, mmap_mode="r+")


def in_chunks(instance: Instance, reads: Reads) -> Any:
    """Return the rows as chunks that are others once they have been read a few times."""
    import dask
    import dask.array

    def load(first: int) -> Array:
        reads.counts[first] = reads.counts.get(first, 0) + 1
        now = reads.counts[first] > READS
        reads.changed |= now
        return (instance.after if now else instance.X)[first : first + height]

    n, d = instance.X.shape
    height = -(-n // 2)
    parts = [dask.delayed(load)(first) for first in (0, height)]
    shapes = [(height, d), (n - height, d)]
    return dask.array.concatenate(
        [dask.array.from_delayed(part, shape, float) for part, shape in zip(parts, shapes, strict=True)]
    )
