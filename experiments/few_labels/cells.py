"""The cells: a set, a number of known labels, a draw of them; each method's accuracy on the points without labels."""

import time
import zlib
from functools import cache

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.choice.sets import DESIGN, HELD_OUT, read_set
from experiments.data.loading import keep_loadable
from experiments.few_labels.methods import RIVALS, Labels, classify
from experiments.harness.sweep import Cell, Row, cross

SETS = {  # on the first the defaults were chosen, the second were named before, and no method was run on them
    "design": (
        "heart", "diabetes", "breast_cancer", "liver_disorders", "sonar", "a1a", "iris 1 or 2", "wine 0 or 1",
        "wine 1 or 2", "digits 3 or 8", "digits 4 or 9", "wdbc",
    ),
    "held-out": tuple(HELD_OUT),
}  # fmt: skip
KNOWN: tuple[int, ...] = (2, 6, 20, 60)
AT_RANDOM = (6, 20)  # numbers at which labels are drawn at random, too
DRAWS = ("balanced", "random")
REPLICATIONS = 20
MOST_POINTS = 600
MOST_KNOWN = 0.6  # of a class; where more would be known, there is no cell
SETTINGS = {"most points": MOST_POINTS, "rivals": list(RIVALS)}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    if grid == "smoke":
        sets = [("design", "iris 1 or 2"), ("design", "wine 0 or 1")]
        known, replications = (6, 20), range(2)
    else:
        loadable = {
            "design": keep_loadable(SETS["design"], lambda name: DESIGN[name]()),
            "held-out": keep_loadable(SETS["held-out"], lambda name: HELD_OUT[name]()),
        }
        sets = [(kind, name) for kind, names in loadable.items() for name in names]
        known, replications = KNOWN, range(REPLICATIONS)
    fitting = [(kind, name, m) for kind, name in sets for m in known if m / 2 <= MOST_KNOWN * smallest(kind, name)]
    return [
        {"kind": kind, "name": name, "known": m, **cell}
        for kind, name, m in fitting
        for cell in cross(draw=DRAWS if m in AT_RANDOM else DRAWS[:1], replication=replications)
    ]


def smallest(kind: str, name: str) -> int:
    """Return how many points the smaller class has."""
    return int(np.bincount(read_table(kind, name)[1]).min())


@cache
def read_table(kind: str, name: str) -> tuple[Array, Labels]:
    """Return standardised columns, and classes 0 and 1, of a set, of a large one a sample."""
    X, y = read_set(kind, name, 0)
    if len(X) > MOST_POINTS:
        chosen = np.random.default_rng([2017, 27, zlib.crc32(name.encode())]).permutation(len(X))[:MOST_POINTS]
        X, y = X[chosen], y[chosen]
    X = X[:, X.std(axis=0) > 0.0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def draw_labels(y: Labels, known: int, draw: str, replication: int) -> Labels:
    """Return classes of which so many are known, -1 elsewhere: as many of each, or at random, at least one of each."""
    rng = np.random.default_rng([2017, 28, known, DRAWS.index(draw), replication])
    if draw == "balanced":
        chosen = np.concatenate([rng.permutation(np.flatnonzero(y == k))[: known // 2] for k in (0, 1)])
    else:
        chosen = rng.permutation(len(y))[:known]
        while len(set(y[chosen])) < 2:
            chosen = rng.permutation(len(y))[:known]
    return np.where(np.isin(np.arange(len(y)), chosen), y, -1)


def measure(kind: str, name: str, known: int, draw: str, replication: int) -> Row:
    """Measure all methods on one draw."""
    X, y = read_table(kind, name)
    few = draw_labels(y, known, draw, replication)
    hidden = few < 0
    start = time.process_time()
    model = dc.DiffracClassifier().fit(X, few)
    seconds = time.process_time() - start
    found = {
        "relaxation": model.transduction_,
        "of equal weights": dc.DiffracClassifier(share=0.0).fit(X, few).transduction_,
    }
    found |= {method: classify(method, X, few) for method in RIVALS}
    return {
        "points": len(X), "columns": X.shape[1], "seconds": seconds, "share": model.share_,
        "lower": model.lower_bound_, "upper": model.upper_bound_, "label gap": model.label_gap_,
        **{method: float(np.mean((classes == y)[hidden])) for method, classes in found.items()},
    }  # fmt: skip
