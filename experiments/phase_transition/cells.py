"""Figure 1: phase transitions of the rank and of the clustering error."""

import warnings
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.stats

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row
from experiments.phase_transition.uniqueness import is_only_solution
from experiments.theory.unique_solution import statistical_dimension

RANK_ONE = 1e-2  # eigenvalue ratio of Y below which a solution counts as rank one
AFFINE_TOL = 1e-8
LOOSE_TOL = 1e-4  # for a second solution of the affine cells: accuracy that cvx calls inaccurate by default, eps^(1/4)
FINE_TOL, SPARSE_TOL, LARGE_TOL = 5e-4, 0.05, 0.1  # relative to lambda l, about the value of the planted solution
MAX_ITER = 5000
MOST_POINTS = 8192
MOST_SLOW = 4096  # at weight 1/n
MOST_ROTATED = 80  # largest dimension of a rotated direction at weight 1/n
SMALL_D, SMALL_FACTOR = 20, 3  # up to here the affine transition is relatively wide: three times the replications
INTERIOR, INTERIOR_D = "affine, interior point", 20  # no penalty, solved by an interior point, up to this d and
INTERIOR_MULTIPLE, INTERIOR_TOL = 2.0, 1e-8  # up to this multiple of d + d(d-1)/4 points: above, the solution is unique
LARGE_D = 100  # from here on a solve at weight 1/n takes seconds: only every second n, to `LARGE_TOL`


class Panel(NamedTuple):
    """Problem of a panel.

    Attributes
    ----------
    sparsity : int
        Number of nonzero entries of the planted direction.
    weight : float or None
        Exponent: |V|_1 has weight n to this power; None without a penalty.
    kind : {"flat", "rotated"}
        Whether the entries have equal size, or those of a random rotation.
    """

    sparsity: int
    weight: float | None
    kind: str = "flat"


PANELS = {
    "affine": Panel(4, None),
    "1-sparse, 1/sqrt(n)": Panel(1, -0.5),
    "1-sparse, 1/n": Panel(1, -1.0),
    "4-sparse flat, 1/sqrt(n)": Panel(4, -0.5),
    "4-sparse flat, 1/n": Panel(4, -1.0),
    "4-sparse rotated, 1/sqrt(n)": Panel(4, -0.5, "rotated"),
    "4-sparse rotated, 1/n": Panel(4, -1.0, "rotated"),
    INTERIOR: Panel(4, None),
}

AFFINE_N = [*range(6, 100, 4), *range(100, 200, 10), *range(200, 601, 20)]
ONE_N = [4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256]
FOUR_N = [16, 24, 32, 44, 64, 90, 128, 180, 256, 362, 512, 724, 1024, 1448, 2048, 2896, 4096, 5792, 8192]
ONE_D, FOUR_D = [4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256], [8, 10, 14, 20, 28, 40, 56, 80, 112, 160, 224]

GRIDS: dict[str, dict[str, tuple[list[int], list[int], int]]] = {  # family of panels: dimensions, points, replications
    "full": {
        "affine": (list(range(2, 41, 2)), AFFINE_N, 4),
        "1-sparse": (ONE_D, ONE_N, 16),
        "4-sparse": (FOUR_D, FOUR_N, 16),
    },
    "smoke": {
        "affine": ([4, 8, 12], [10, 20, 30, 40, 60, 80], 2),
        "1-sparse": ([4, 20, 40], [6, 14, 22, 40], 2),
        "4-sparse": ([10, 30], [40, 100, 200], 2),
    },
}
SETTINGS = {
    "tolerances": [AFFINE_TOL, LOOSE_TOL, FINE_TOL, SPARSE_TOL, LARGE_TOL],
    "max_iter": MAX_ITER,
    "rank_one": RANK_ONE,
}
INTERIOR_SIDE, INTERIOR_NONZEROS = 41, 240_000  # largest semidefinite cone and problem for an interior point


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid; small dimensions get more replications if that is cheap."""
    cells: list[Cell] = []
    for panel, (sparsity, weight, _) in PANELS.items():
        dimensions, points, replications = GRIDS[grid]["affine" if weight is None else f"{sparsity}-sparse"]
        cells += [
            {"panel": panel, "n": n, "d": d, "replication": replication}
            for d, n in product(dimensions, points)
            if is_measured(panel, n, d)
            for replication in range(
                SMALL_FACTOR * replications if panel == "affine" and d <= SMALL_D else replications
            )
        ]
    return cells


def is_measured(panel: str, n: int, d: int) -> bool:
    """Return whether a cell is affordable and undecided: at weight 1/n and n = 3d, lambda (s - 1) d is 1 for s = 4."""
    sparsity, weight, kind = PANELS[panel]
    if panel == INTERIOR:
        return d <= INTERIOR_D and n <= INTERIOR_MULTIPLE * statistical_dimension(d)
    if sparsity == 1 or weight != -1.0:
        return True
    if kind == "rotated" and d > MOST_ROTATED:
        return False
    return (3 * d if kind == "flat" else d) <= n <= MOST_SLOW and (d < LARGE_D or n.bit_count() == 1)


def balanced_signs(n: int, rng: np.random.Generator) -> Array:
    """Return n random labels, 1 and -1, n even, balanced after each pair."""
    return np.asarray(rng.permuted(np.tile([1.0, -1.0], (n // 2, 1)), axis=1).ravel())


def rotation_of(sparsity: int, kind: str, d: int, replication: int) -> Array:
    """Return the (sparsity, sparsity) rotation of a direction: Hadamard's matrix if flat, otherwise a random one."""
    if kind == "flat":
        return np.asarray(scipy.linalg.hadamard(sparsity) / sparsity**0.5)
    rng = np.random.default_rng([2017, sparsity, d, replication])
    return scipy.stats.ortho_group.rvs(sparsity, random_state=rng) if sparsity > 1 else np.ones((1, 1))


def points_of(sparsity: int, kind: str, n: int, d: int, replication: int) -> tuple[Array, Array, Array]:
    """Return X, y and v with Xv = y: n points, n even, balanced, noiseless, unit-variance columns.

    A replication is one stream of points, and a cell takes its first n: more points only help, so every replication
    has one threshold in n, and the boundary needs few of them.  The stream depends only on (d, replication), a rotated
    direction on (sparsity, d, replication).

    Parameters
    ----------
    sparsity : int
        Number l of nonzero entries of v, the first ones; a power of two for flat directions.
    kind : {"flat", "rotated"}
        Flat: X_J = [y, Z] H with Hadamard's matrix H, so that the entries of v have equal size, except for the change
        by the unit variance of the columns at finite n.  Rotated: a random rotation instead of H.
    """
    rng = np.random.default_rng([2017, d, replication])
    signs = balanced_signs(MOST_POINTS, rng)[:n]
    X = np.column_stack([signs, rng.standard_normal((n, d - 1))])
    X -= X.mean(axis=0)
    rotation = rotation_of(sparsity, kind, d, replication)
    X[:, :sparsity] = X[:, :sparsity] @ rotation
    v = np.zeros(d)
    v[:sparsity] = rotation[0]
    scale = np.sqrt(np.mean(X**2, axis=0))
    return X / scale, signs, v * scale


def data_of(panel: str, n: int, d: int, replication: int) -> tuple[Array, Array, Array]:
    """Return X, y and v of a cell."""
    sparsity, _, kind = PANELS[panel]
    kind = kind if sparsity <= d else "rotated"  # no Hadamard matrix of size 3 exists
    return points_of(min(sparsity, d), kind, n, d, replication)


def weight_of(panel: str, n: int) -> float:
    """Return the weight of |V|_1."""
    power = PANELS[panel].weight
    return 0.0 if power is None else float(n) ** power


def tolerance_of(panel: str, lam: float, d: int) -> float:
    """Return the required certified gap: absolute without a penalty, otherwise relative to the planted value."""
    sparsity, power, _ = PANELS[panel]
    if panel == "affine":
        return AFFINE_TOL
    fine = sparsity == 1 or power == -0.5
    return (FINE_TOL if fine else SPARSE_TOL if d < LARGE_D else LARGE_TOL) * lam * sparsity


def measure(panel: str, n: int, d: int, replication: int) -> Row:
    """Solve a cell by `low_rank`; 1-sparse cells whose unique solution is the planted one are not solved."""
    if panel == INTERIOR:
        return measure_reference(panel, n, d, replication)
    X, y, _ = data_of(panel, n, d, replication)
    lam = weight_of(panel, n)
    by_uniqueness = {"rank_one": 1, "verdict": "uniqueness"}
    if PANELS[panel].sparsity == 1 and is_only_solution(X):  # it is e1 e1'/(1 + lam)^2
        bracket = dict.fromkeys(("value", "lower", "upper"), lam / (1.0 + lam))
        row: Row = {"lam": lam, "solver": "theorem", **bracket, "gap": 0.0, "eigenvalue_ratio": 0.0, "error": 0.0}
        return row | by_uniqueness
    row = describe(solve(X, lam, tolerance_of(panel, lam, d)), y, lam)
    if PANELS[panel].sparsity == 1:
        row |= by_uniqueness | {"rank_one": 0}
    if panel == "affine":
        row["loose_ratio"] = dc.metrics.eigenvalue_ratio(solve(X, lam, LOOSE_TOL).F)
    return row


def solve(X: Array, lam: float, tol: float) -> dc.Result:
    """Solve by `low_rank`."""
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):  # n <= d is part of the figure
        return dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=tol, max_iter=MAX_ITER)


def measure_reference(panel: str, n: int, d: int, replication: int) -> Row:
    """Solve a cell with CVXPY, by an interior point if affordable."""
    X, y, _ = data_of(panel, n, d, replication)
    lam = weight_of(panel, n)
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        relaxation = dc.v_space(X, 1.0, dc.Penalty.l1(lam))
    small = relaxation.size.side <= INTERIOR_SIDE and relaxation.size.nonzeros <= INTERIOR_NONZEROS
    tol = INTERIOR_TOL if panel == INTERIOR else 1e-5
    result = dc.solve(relaxation, solver="CLARABEL" if small else "SCS", tol=tol)
    if result.status is dc.Status.FAILED:
        result = dc.solve(relaxation, solver="SCS", tol=1e-5)
    return describe(result, y, lam)


def describe(result: dc.Result, y: Array, lam: float) -> Row:
    """Return the recorded fields of a solution."""
    ratio = dc.metrics.eigenvalue_ratio(result.F)
    return {
        "lam": lam,
        "solver": result.solver,
        "value": result.value,
        "lower": result.lower,
        "upper": result.upper,
        "gap": result.gap,
        "eigenvalue_ratio": ratio,
        "rank_one": int(ratio < RANK_ONE),
        "verdict": "eigenvalue ratio",
        "error": dc.metrics.clustering_error(y, dc.rounding.kmeans_centered(result.F)),
    }
