"""The cells of the phase transition (Figure 1): what is solved, and how one cell is measured."""

import warnings
from itertools import product

import numpy as np
import scipy.optimize
import scipy.stats

import diffrac_cvx as dc
from diffrac_cvx.inputs import Array
from experiments.harness.sweep import Cell, Row

RANK_ONE = 1e-2  # eigenvalue ratio of Y below which a solution counts as rank one
AMBIGUOUS = (1e-3, 0.2)  # ratios between which a verdict is not held against another solver's
LAMBDA_FACTOR = {"affine": 0.0, "1-sparse": 1.0, "4-sparse": 1.0, "4-sparse, small lambda": 0.03}  # times 1/sqrt(n)
SPARSITY = {"affine": 4, "1-sparse": 1, "4-sparse": 4, "4-sparse, small lambda": 4}
TOLERANCES = {"affine": 1e-8, "1-sparse": 1e-4, "4-sparse": 1e-4, "4-sparse, small lambda": 1e-4}
MAX_ITER = 5000
MOST_POINTS = 800
SMALL_D, SMALL_FACTOR = 20, 3  # the affine transition is relatively wide up to here: three times the replications

AFFINE_N = [*range(6, 100, 4), *range(100, 200, 10), *range(200, 601, 20)]
SPARSE_N = [*range(4, 64, 4), *range(70, 181, 10)]
SPARSE_D = [*range(10, 101, 10), 150, 200, 300]
FOUR_N = [20, 40, 60, 80, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800]

GRIDS: dict[str, dict[str, tuple[list[int], list[int], int]]] = {  # panel: dimensions, numbers of points, replications
    "full": {
        "affine": (list(range(2, 41, 2)), AFFINE_N, 4),
        "1-sparse": ([4, *SPARSE_D], SPARSE_N, 24),
        "4-sparse": ([*range(10, 101, 10), 150], FOUR_N, 24),
        "4-sparse, small lambda": (list(range(10, 101, 10)), FOUR_N, 24),
    },
    "smoke": {
        "affine": ([4, 8, 12], [10, 20, 30, 40, 60, 80], 2),
        "1-sparse": ([4, 20, 40], [6, 14, 22, 40], 2),
        "4-sparse": ([10, 30], [40, 100, 200], 2),
        "4-sparse, small lambda": ([10, 30], [40, 100, 200], 2),
    },
}
SETTINGS = {
    "tolerances": TOLERANCES,
    "max_iter": MAX_ITER,
    "most_points": MOST_POINTS,
    "direction": "of the cell",
    "rank_one": RANK_ONE,
}
SAMPLES = {
    "full": {"affine": 50, "1-sparse": 30, "4-sparse": 15, "4-sparse, small lambda": 15},
    "smoke": {"affine": 3, "1-sparse": 3, "4-sparse": 3, "4-sparse, small lambda": 3},
}
ORACLE_SIDE = 40  # the oracle is an interior point: cells up to this dimension and
ORACLE_ROWS = 120_000  # these many nonzeros can be drawn for it


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid, panel by panel; small dimensions get more replications where that is cheap."""
    return [
        {"panel": panel, "n": n, "d": d, "replication": replication}
        for panel, (dimensions, points, replications) in GRIDS[grid].items()
        for d, n in product(dimensions, points)
        for replication in range(replications if panel != "affine" or d > SMALL_D else SMALL_FACTOR * replications)
    ]


def sample_of(grid: str) -> list[Cell]:
    """Return the cells that the oracle solves too: drawn at random, the same every time."""
    chosen = []
    for k, panel in enumerate(GRIDS[grid]):
        able = [c for c in cells_of(grid) if c["panel"] == panel and c["d"] <= ORACLE_SIDE]
        able = [c for c in able if c["n"] * (c["d"] + 1) * (c["d"] + 2) // 2 <= ORACLE_ROWS]
        drawn = np.random.default_rng([2017, k]).choice(
            len(able), size=min(SAMPLES[grid][panel], len(able)), replace=False
        )
        chosen += [able[i] for i in sorted(drawn)]
    return chosen


def data_of(panel: str, n: int, d: int, replication: int) -> tuple[Array, Array]:
    """Return X and y of a cell: balanced, noiseless, unit-variance columns.

    A replication is one stream of points, and a cell takes its first n: more points can only help, so that every
    replication has one threshold in n, and the boundary needs few of them.  The stream is drawn from (d, replication)
    alone.  The sparse direction, a random rotation of the first coordinates, is drawn anew for every cell: some
    directions are harder than others, and a column of cells should not share one.
    """
    sparsity = min(SPARSITY[panel], d)
    rng = np.random.default_rng([2017, d, replication])
    signs = rng.permuted(np.tile([1.0, -1.0], (MOST_POINTS // 2, 1)), axis=1).ravel()  # balanced after every pair
    X = np.column_stack([signs, rng.standard_normal((MOST_POINTS, d - 1))])
    X = X[:n] - X[:n].mean(axis=0)
    direction = np.random.default_rng([2017, sparsity, n, d, replication])
    X[:, :sparsity] = X[:, :sparsity] @ scipy.stats.ortho_group.rvs(sparsity, random_state=direction)
    return X / np.sqrt(np.mean(X**2, axis=0)), signs[:n]


def measure_fast(panel: str, n: int, d: int, replication: int) -> Row:
    """Solve a cell by `low_rank`; in the 1-sparse panel, prove whether the rank-one solution is the only one."""
    X, y = data_of(panel, n, d, replication)
    lam = LAMBDA_FACTOR[panel] * n**-0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)  # n <= d: to be seen in the figure
        result = dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=TOLERANCES[panel], max_iter=MAX_ITER)
    row = describe(result, y, lam)
    if panel == "1-sparse":
        row["rank_one"] = int(is_only_solution(X))
        row["verdict"] = "uniqueness"
    return row


def measure_reference(panel: str, n: int, d: int, replication: int) -> Row:
    """Solve a cell by CVXPY, an interior point where it is affordable."""
    X, y = data_of(panel, n, d, replication)
    lam = LAMBDA_FACTOR[panel] * n**-0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        relaxation = dc.v_space(X, 1.0, dc.Penalty.l1(lam))
    small = relaxation.size.side <= ORACLE_SIDE + 1 and relaxation.size.nonzeros <= 2 * ORACLE_ROWS
    result = dc.solve(relaxation, solver="CLARABEL" if small else "SCS", tol=1e-5)
    return describe(result, y, lam)


def describe(result: dc.Result, y: Array, lam: float) -> Row:
    """Return what the table keeps of a solution."""
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


def is_only_solution(X: Array) -> bool:
    """Decide whether V* = e1 e1'/(1 + lambda)^2 is the only solution of the noiseless 1-sparse problem, for any lambda.

    With unit-variance columns C = lambda X'X/n is dual optimal and inside the box off the diagonal, so every solution
    is diagonal, V = Diag(p); and all have the same q.  V* is the only one if and only if no direction delta, with
    delta_j >= 0 for j > 1, keeps q: a linear program.
    """
    squares = X**2
    n, d = squares.shape
    if d == 1:
        return True
    total = np.append(0.0, np.ones(d - 1))
    found = scipy.optimize.linprog(
        np.zeros(d),
        A_eq=np.vstack([squares, total]),
        b_eq=np.append(np.zeros(n), 1.0),
        bounds=[(None, None), *[(0, None)] * (d - 1)],
        method="highs",
    )
    return bool(found.status == 2)
