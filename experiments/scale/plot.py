"""Draw time and memory against the size of a table, and the traffic between processes."""

from pathlib import Path

import pandas as pd
from matplotlib.ticker import NullFormatter

from experiments.harness.beyond import panels
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY

WORKERS = {1: ("o", SECONDARY), 2: ("s", GREEN), 4: ("^", ACCENT)}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw three panels: time, memory, and bytes transferred per pass."""
    rows, words, cluster = (table[table["kind"] == kind] for kind in ("rows", "words", "cluster"))
    with panels(stem, 1, 3, 2.3) as (_, (seconds, memory, moved)):
        for part, label, color, marker in ((rows, "file, 50 columns", SECONDARY, "o"), (words, "sparse", ACCENT, "s")):
            entries = part["n"] * part["d"]
            seconds.plot(entries, part["seconds"], marker, color=color, ms=4, label=label)
            memory.plot(entries, part["memory"].clip(lower=1e6) / 1e9, marker, color=color, ms=4, label=label)
        sizes = pd.concat([rows["n"] * rows["d"], words["n"] * words["d"]])
        ends = [sizes.min(), sizes.max()]
        memory.plot(ends, [8 * size / 1e9 for size in ends], color=GRAY, lw=0.8, label="dense array of doubles")
        memory.axhline(2.0, color=GRAY, lw=0.8, ls=":", label="2 GB")
        for ax, title in (
            (seconds, "(a) time"),
            (memory, "(b) memory (at least 1 MB)"),
            (moved, "(c) traffic between processes"),
        ):
            ax.set_title(title)
        for ax, words in ((seconds, "time to a gap of 0.001 (s)"), (memory, "memory in addition to the data (GB)")):
            ax.set(xscale="log", yscale="log", xlabel="entries $n d$", ylabel=words)
            ax.legend(frameon=False)
        memory.set_ylim(top=1000.0)
        for workers, part in cluster.groupby("workers"):
            marker, color = WORKERS.get(int(workers), ("d", GRAY))
            label = f"{workers} process{'' if workers == 1 else 'es'}"
            moved.plot(part["n"], part["moved_per_pass"] / 1e6, marker + "-", color=color, ms=4, label=label)
        moved.set(xscale="log", xlabel="rows $n$, 20 columns", ylabel="traffic per pass (MB)")
        moved.xaxis.set_minor_formatter(NullFormatter())
        ticks = sorted(cluster["n"].unique())
        moved.set_xticks(ticks, [f"{n:.1e}".replace("e+0", "e") for n in ticks])
        if len(cluster):
            moved.set_ylim(0, 1.5e-6 * cluster["moved_per_pass"].max())
            moved.legend(frameon=False, loc="best")
