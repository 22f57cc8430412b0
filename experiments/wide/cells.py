"""Tables with far more columns than rows: the relaxation compared with methods for such tables.

The real tables are read from packages that pip and apt-get download into build/packages.
"""

import warnings
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from experiments.data.loading import keep_loadable
from experiments.harness.sweep import Cell, Row, cross
from experiments.problems import WideTable, make_wide
from experiments.wide.methods import ALIVE, GOAL, METHODS, OPERATIONS, RIDGE, Found, Method
from experiments.wide.sources import DESIGN, HELD_OUT, MOST_COLUMNS, PAIRS, SOURCES

N, D, K, SHIFT = 100, 2000, 20, 1.2
SHIFTS = (0.4, 0.8, 1.2, 2.0)
CURVES = (  # noise, and number of informative columns
    ("factors", 5), ("factors", K), ("factors", 60), ("factors", 200), ("independent", K), ("words", 60),
)  # fmt: skip
USUAL: dict[str, Any] = {"n": N, "d": D, "k": K, "noise": "factors", "share": 0.5, "shift": SHIFT}
VARIANTS: dict[str, dict[str, Any]] = {  # changes of the default table
    "3 of 10 in a group": {"share": 0.3},
    "15 of 100 in a group": {"share": 0.15},
    "heavy tails": {"noise": "heavy tails"},
    "blocks": {"noise": "blocks"},
    "5000 columns": {"d": 5000},
}
MADE = [
    *({**USUAL, "noise": noise, "k": k, "shift": shift} for (noise, k), shift in product(CURVES, SHIFTS)),
    *({**USUAL, **changed} for changed in VARIANTS.values()),
]
DRAWS = 10
SETTINGS = {"goal": GOAL, "operations": OPERATIONS, "ridge": RIDGE, "alive": ALIVE, "columns": MOST_COLUMNS}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid, over the tables that can be read; the smoke grid downloads nothing."""
    if grid != "full":
        small = [{**USUAL, "n": 40, "d": 150, "noise": noise, "shift": 2.0} for noise in ("factors", "words")]
        return made_cells(small, 2)
    tables = keep_loadable(SOURCES, lambda name: SOURCES[name].read())
    readable = {kind: [pair for pair in pairs if pair.split(",")[0] in tables] for kind, pairs in KINDS.items()}
    pairs = [cell for kind, pairs in readable.items() for cell in cross(kind=[kind], method=METHODS, name=pairs)]
    return made_cells(MADE, DRAWS) + pairs


def made_cells(made: list[dict[str, Any]], draws: int) -> list[Cell]:
    """Return the cells of simulated tables."""
    drawn = product(made, METHODS, range(draws))
    return [{"kind": "made", "method": method, **setting, "replication": k} for setting, method, k in drawn]


KINDS = {"design": DESIGN, "held-out": HELD_OUT}
read_once = cache(lambda name: PAIRS[name]())


def measure(kind: str, method: str, **where: Any) -> Row:
    """Measure a cell: cluster one table by one method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return judge_method(METHODS[method], table_of(**where) if kind == "made" else read_once(**where))


def table_of(replication: int, *, n: int, d: int, k: int, noise: str, share: float, shift: float) -> WideTable:
    """Return a simulated table; replications with the same noise differ only in the shift."""
    rng = np.random.default_rng([2017, 31, n, d, k, sum(noise.encode()), round(100 * share), replication])
    return make_wide(n, d, k, noise, share, shift, rng=rng)


def judge_method(method: Method, table: WideTable) -> Row:
    """Return the index of a method on a table, with its own choice and with its best parameters by the labels."""
    found = method.own(table.X, np.random.default_rng(0))
    tuned = method.tuned(table.X, np.random.default_rng(0))
    scores = [float(adjusted_rand_score(table.y, one.labels)) for one in (found, *tuned)]
    return {"index": scores[0], "best": max(scores), "gap": found.gap, **judge_columns(found, table)}


def judge_columns(found: Found, table: WideTable) -> Row:
    """Return the number of selected columns and, if the informative ones are known, precision and recall.

    ``top`` is the recall among the same number of most important columns.
    """
    if found.columns is None:
        return {}
    chosen, k = found.columns, len(table.informative)
    if k == 0:
        return {"chosen": len(chosen)}
    right = np.isin(chosen, table.informative)
    return {
        "chosen": len(chosen),
        "precision": float(right.mean()) if len(chosen) else 0.0,
        "recall": float(right.sum()) / k,
        "top": float(right[:k].sum()) / k,
    }
