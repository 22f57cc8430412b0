"""Feature groups: recovery of planted groups compared with the l1 penalty and with wrong groups."""

import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import adjusted_rand_score

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row, cross

GROUPS, SIZE, PLANTED = 20, 5, 3
RIDGE = 0.3
WEIGHTS = (1.6, 0.8, 0.4, 0.2, 0.1, 0.05, 0.025)  # lam, for both penalties
RTOL = 0.03
NONZERO = 1e-4  # of the largest coefficient
POINTS, SHIFT = (50, 100, 200, 400), 2.0
AT, SHIFTS = 100, (1.5, 2.5, 3.0)  # number of points for varying shifts
PLACES = {"groups": ("groups", "l1", "wrong groups"), "one of each group": ("groups", "l1")}  # with the penalties tried
REPLICATIONS = 20
SETTINGS = {
    "sizes": [GROUPS, SIZE, PLANTED], "ridge": RIDGE, "weights": WEIGHTS, "rtol": RTOL, "nonzero": NONZERO,
}  # fmt: skip


class Planted(NamedTuple):
    """A standardised (n, d) table, its true labels, its feature groups and the informative columns."""

    X: Array
    y: Array
    groups: npt.NDArray[np.int64]
    used: npt.NDArray[np.bool_]


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid: over the number of points at both places, then over the shift."""
    points, shifts, replications = (POINTS, SHIFTS, REPLICATIONS) if grid == "full" else ((100,), (3.0,), 2)
    parts = [(place, points, (SHIFT,)) for place in PLACES] + [("groups", (AT,), shifts)]
    return [
        cell
        for place, n, shift in parts
        for cell in cross(place=(place,), method=PLACES[place], n=n, shift=shift, replication=range(replications))
    ]


def make_table(place: str, n: int, shift: float, rng: np.random.Generator) -> Planted:
    """Return two clusters whose means differ by twice a shift of a given norm.

    The shift has random signs and sizes in all columns of the first groups, with equal norms of these groups; or random
    signs and equal sizes in one column of every group.
    """
    d = GROUPS * SIZE
    groups = np.repeat(np.arange(GROUPS), SIZE)
    y = rng.permutation(np.resize([-1.0, 1.0], n))
    X, v = rng.standard_normal((n, d)), np.zeros(d)
    if place == "groups":
        parts = rng.standard_normal((PLANTED, SIZE))
        v[: PLANTED * SIZE] = np.ravel(parts / np.linalg.norm(parts, axis=1, keepdims=True) / PLANTED**0.5)
    else:
        v[::SIZE] = rng.choice([-1.0, 1.0], GROUPS) / GROUPS**0.5
    X += shift * y[:, None] * v
    return Planted((X - X.mean(axis=0)) / X.std(axis=0), y, groups, v != 0.0)


def measure(place: str, method: str, n: int, shift: float, replication: int) -> Row:
    """Solve a table at all weights in decreasing order, with warm starts."""
    rng = np.random.default_rng([2017, 27, list(PLACES).index(place), n, int(100 * shift), replication])
    planted = make_table(place, n, shift, rng)
    wrong = rng.permutation(planted.groups)
    groups = {"groups": planted.groups, "l1": None, "wrong groups": wrong}[method]
    row: Row = {}
    found: dc.Result | None = None
    for lam in WEIGHTS:
        penalty = dc.Penalty(lam=lam, ridge=RIDGE, groups=groups)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dc.DegenerateDataWarning)
            found = dc.low_rank(planted.X, 1.0, penalty, rtol=RTOL, start=found)
        row.update({f"{name}_{lam:g}": value for name, value in judge(planted, place, found, penalty).items()})
    return row


def judge(planted: Planted, place: str, found: dc.Result, penalty: dc.Penalty) -> Row:
    """Return the measures of the columns and the labels of one solution.

    Its columns are those of the best direction of the rounded labels.  ``exact`` is whether the groups with selected
    columns are the planted ones; if one column of each group is planted, whether the selected columns are the planted
    ones.  ``overlap`` is the number of columns in both sets over that in either, ``index`` the adjusted Rand index, and
    ``inside`` the fraction of tr V on the planted groups or columns.
    """
    labels = dc.rounding.kmeans_centered(found.F)
    v = np.abs(dc.certify_labels(planted.X, labels, found, penalty=penalty).v)
    used = v > NONZERO * v.max()
    diagonal = np.diag(np.asarray(found.V))
    if place == "groups":
        wanted = np.isin(planted.groups, planted.groups[planted.used])
        touched = np.isin(planted.groups, planted.groups[used])
    else:
        wanted, touched = planted.used, used
    return {
        "exact": int(np.array_equal(wanted, touched)),
        "overlap": float(np.sum(planted.used & used) / np.sum(planted.used | used)),
        "index": float(adjusted_rand_score(planted.y, labels)),
        "inside": float(diagonal[wanted].sum() / diagonal.sum()),
    }
