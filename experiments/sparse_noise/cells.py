"""Figure 1 (b) by the variance of the noise: points for recovery with l1, without, and by principal components."""

import warnings
from typing import Any

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row, cross
from experiments.phase_transition.cells import balanced_signs, rotation_of
from experiments.phase_transition.findings import RECOVERED
from experiments.sparse_regime.cells import ladder, least_points

VARIANCES = (0.25, 0.333, 0.5, 0.7, 1.0)  # m of the noise; the labels have variance 1
KINDS, COLUMNS = ("flat", "rotated"), ("raw", "standardised")
WEIGHTS = {"1/sqrt(n)": -0.5, "1/n": -1.0}  # of |V|_1: powers of n
COMPONENT, WIDEST, PLAIN = "first component", "largest variances", "no penalty"
TOL = {"1/sqrt(n)": 1e-3, "1/n": 1e-2}  # relative to the objective value of the planted direction
PLAIN_TOL = 1e-6
MAX_ITER = 3000
FEWEST, MOST_POINTS = 8, 4096
RATIO = 2**0.25  # of neighbouring n on the grid
SLOW, MOST_SLOW = "1/n", 96  # weight whose solves take seconds in larger dimensions
L = 4  # number of nonzero entries of the direction in Figure 1 (b)
SETTINGS = {
    "tolerances": [*TOL.values(), PLAIN_TOL], "max_iter": MAX_ITER, "points": [FEWEST, MOST_POINTS], "ratio": RATIO,
}  # fmt: skip

GRIDS: dict[str, dict[str, Any]] = {  # dimensions by l, dimensions without a penalty, and replications
    "full": {
        "sparse": {
            4: [8, 12, 16, 24, 32, 48, 64, 96, 128, 256],
            2: [8, 16, 32, 64, 128],
            8: [16, 24, 32, 48, 64, 128],
            16: [32, 64, 128],
        },
        "plain": [8, 12, 16, 24, 32, 48],
        "replications": 12,
    },
    "smoke": {"sparse": {4: [8, 16], 2: [8, 16], 8: [16], 16: [16]}, "plain": [8, 12], "replications": 2},
}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid; only 4-sparse directions are rotated and have rivals."""
    sizes, cells = GRIDS[grid], []
    replications = {"replication": range(sizes["replications"])}
    for l, dimensions in sizes["sparse"].items():
        methods = (*WEIGHTS, COMPONENT, WIDEST) if l == L else tuple(WEIGHTS)
        kinds = KINDS if l == L else KINDS[:1]
        cells += cross(
            method=methods, l=[l], kind=kinds, columns=COLUMNS, variance=VARIANCES, d=dimensions, **replications
        )
    # Without a penalty the relaxation does not depend on an invertible map of the columns.
    one: dict[str, Any] = {"method": [PLAIN], "l": [L], "kind": ["flat"], "columns": ["raw"], "variance": [1.0]}
    cells += cross(**one, d=sizes["plain"], **replications)
    return [cell for cell in cells if is_measured(**cell)]


def is_measured(method: str, columns: str, d: int, **_: object) -> bool:
    """Return whether a cell is affordable and means something: standardised columns have equal variances."""
    if method == WIDEST:
        return columns == "raw"
    return method != SLOW or d <= MOST_SLOW


def planted_of(
    l: int, kind: str, columns: str, variance: float, n: int, d: int, replication: int
) -> tuple[Array, Array, float]:
    """Return X (n, d), balanced labels y (n,), and |v|_1^2 for the direction v with Xv = y.

    The noise is uniform; for a variance of at most 1/3 it is bounded by 1, as in Proposition 2.  A replication is one
    stream of points, and a cell takes its first n.
    """
    rng = np.random.default_rng([2017, 52, d, replication])
    y = balanced_signs(MOST_POINTS, rng)[:n]
    X = np.column_stack([y, (3.0 * variance) ** 0.5 * rng.uniform(-1.0, 1.0, (n, d - 1))])
    X -= X.mean(axis=0)
    rotation = rotation_of(l, kind, d, replication)
    X[:, :l] = X[:, :l] @ rotation
    scale = X.std(axis=0) if columns == "standardised" else np.ones(d)
    return X / scale, y, float(np.sum(np.abs(rotation[0]) * scale[:l]) ** 2)


def labels_by(method: str, X: Array, l: int, spread: float) -> Array:
    """Return the labels that a method finds, by exact 2-means on the principal component of its factor."""
    if method == COMPONENT:
        return dc.rounding.kmeans_centered(X)
    if method == WIDEST:
        return dc.rounding.kmeans_centered(X[:, np.argsort(-X.var(axis=0), kind="stable")[:l]])
    lam = 0.0 if method == PLAIN else float(len(X)) ** WEIGHTS[method]
    planted = lam * spread / (1.0 + lam * spread)  # objective value of the best multiple of v
    tol = PLAIN_TOL if method == PLAIN else TOL[method] * planted
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        result = dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=tol, max_iter=MAX_ITER)
    return dc.rounding.kmeans_centered(result.F)


def measure(method: str, l: int, d: int, **design: Any) -> Row:
    """Search the number of points from which a method recovers the labels, from n = d on or down."""

    def recovers(n: int) -> bool:
        X, y, spread = planted_of(l, n=n, d=d, **design)
        return dc.metrics.clustering_error(y, labels_by(method, X, l, spread)) < RECOVERED

    return least_points(recovers, ladder(FEWEST, MOST_POINTS, RATIO), d)
