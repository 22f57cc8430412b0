"""Tables that change while they are read: memory maps and arrays modified during a solve."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.stress.instances import Instance

COPIES = 6000  # of the rows: so many rows are streamed in blocks
BLOCK, STRETCH = 2000, 512  # rows read at a time, and numbers per checksum to detect a change


class Changed(NamedTuple):
    """Certified bounds for a table that changes, and the table at the start and later (only the start if detected)."""

    lower: float
    upper: float
    result: dc.Result | None
    tables: list[Instance]


def while_it_changes(instance: Instance, after: Array, folder: str, seconds: float) -> Changed:
    """Solve for a table that changes after the first certificate."""
    changed: list[Instance] = []
    n, d = COPIES * len(after), after.shape[1]
    # The change fills whole checksum stretches: in a partly filled one it would be detected.
    chosen = np.flatnonzero(np.arange(n) % BLOCK < BLOCK * d // STRETCH * STRETCH // d)

    def change(progress: dc.Progress) -> None:
        if progress.lower > 0.0 and not changed:
            table[chosen] = after[chosen % len(after)]
            w = np.repeat([n - len(chosen), len(chosen)], len(after)).astype(float)
            changed.append(instance._replace(X=np.vstack([instance.X, after]), w=w))

    table = many_rows(instance, Path(folder) / "table.npy")
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
