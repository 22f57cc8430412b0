"""The battery on which the fast solvers are held to the SDP oracles: what is solved, and how one instance is judged."""

import warnings
from itertools import combinations
from typing import Any

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.inputs import Array
from experiments.harness.sweep import Row

SHAPES = [(12, 3), (20, 5), (30, 8), (40, 2), (25, 12), (60, 6), (10, 14), (8, 20), (16, 16), (30, 1)]
NUS = [0.0, 0.25, 0.5, 0.75, 1.0]
PENALTIES = ["none", "ridge", "weak l1", "strong l1", "mixed"]
TRAITS = ["clean", "noisy", "unbalanced", "badly scaled", "degenerate"]
LIFTED_UP_TO = 40  # n + d, for the interior point
LABELS_UP_TO = 40  # n
FORMULATIONS = (
    "low_rank",
    "fista",
    "v_space",
    "v_space SCS",
    "lifted",
    "penalized_nu",
    "normalized",
    "constrained_alpha",
)
SLACK = 1e-9  # of rounding, beyond the proved brackets
ALPHA_SLACK = 1e-4  # the alpha of (7) is read off a solution of (8), whose optimum is flat


def cells_of(grid: str) -> list[dict[str, Any]]:
    """Return the instances: every shape, nu and penalty, the traits dealt out so that each meets each of the others."""
    cells = [
        {"n": n, "d": d, "nu": nu, "penalty": penalty, "trait": TRAITS[(i + 2 * j + 3 * k) % len(TRAITS)]}
        for i, (n, d) in enumerate(SHAPES)
        for j, nu in enumerate(NUS)
        for k, penalty in enumerate(PENALTIES)
    ]
    return cells if grid == "full" else cells[::12]


def instance(n: int, d: int, nu: float, penalty: str, trait: str) -> tuple[Array, dc.Penalty]:
    """Return the data and the penalty of an instance; the seed depends on the instance alone."""
    key = [2017, n, d, int(100 * nu), PENALTIES.index(penalty), TRAITS.index(trait)]
    rng = np.random.default_rng(key)
    noise = {"noisy": 0.5, "clean": 0.0}.get(trait, 0.1)
    imbalance = 0.25 if trait == "unbalanced" else 0.0
    X = dc.datasets.make_planted(n, d, min(2, d), imbalance, noise, rng=rng).X
    units: Array = np.ones(d)
    if trait == "badly scaled":
        units = np.power(10.0, rng.integers(-4, 5, size=d))
    if trait == "degenerate":
        X[0] = 0.0
        X[:, -1] = X[:, 0]
    varied = rng.uniform(0.5, 1.5, size=d)
    weights = {
        "none": dc.Penalty(),
        "ridge": dc.Penalty(a=0.3 * units),
        "weak l1": dc.Penalty(c=0.1 * units),
        "strong l1": dc.Penalty(c=0.6 * units),
        "mixed": dc.Penalty(a=0.2 * units * varied, c=0.3 * units * (varied > 0.8)),
    }
    return X * units, weights[penalty]


def measure(n: int, d: int, nu: float, penalty: str, trait: str) -> Row:
    """Solve one instance every way there is, and return every bracket and the worst disagreement."""
    X, weights = instance(n, d, nu, penalty, trait)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        fast = {
            "low_rank": dc.low_rank(X, nu, weights, tol=1e-6, max_iter=3000),
            "fista": dc.fista(X, nu, weights, tol=1e-4, max_iter=1500),
        }
        oracle = oracles(X, nu, weights)
        worst, pair = disagreement(fast, oracle)
        row: Row = {"violation": worst, "between": pair, "agrees": int(worst <= SLACK)}
        for name, result in {**fast, **oracle}.items():
            row[f"{name} value"], row[f"{name} gap"] = result.value, result.gap
        row.update(related(X, nu, weights, fast["low_rank"]))
    row["agrees"] = int(row["agrees"] and row["normalized agrees"] and row["alpha agrees"])
    return row


def oracles(X: Array, nu: float, weights: dc.Penalty) -> dict[str, dc.Result]:
    """Return the solutions by CVXPY of all formulations whose value is that of (15)."""
    n, d = X.shape
    found = {
        "v_space": dc.solve(dc.v_space(X, nu, weights), "CLARABEL"),
        "v_space SCS": dc.solve(dc.v_space(X, nu, weights), "SCS"),
    }
    if n + d <= LIFTED_UP_TO:
        found["lifted"] = dc.solve(dc.lifted(X, nu, weights), "CLARABEL")
    if n <= LABELS_UP_TO and not weights.has_l1:
        found["penalized_nu"] = dc.solve(dc.penalized_nu(X, nu, weights), "CLARABEL")
    return found


def disagreement(fast: dict[str, dc.Result], oracle: dict[str, dc.Result]) -> tuple[float, str]:
    """Return by how much two proved brackets of the same optimum, or a value and a bracket, fail to meet, and which."""
    worst, pair = -np.inf, ""
    for (a, first), (b, second) in combinations({**fast, **oracle}.items(), 2):
        apart = max(first.lower - second.upper, second.lower - first.upper)
        if apart > worst:
            worst, pair = apart, f"{a} | {b}"
    for (a, quick), (b, slow) in ((f, o) for f in fast.items() for o in oracle.items()):
        outside = max(quick.lower - slow.value, slow.value - slow.gap - quick.upper)
        if outside > worst:
            worst, pair = outside, f"{b} outside {a}"
    return float(worst), pair


def related(X: Array, nu: float, weights: dc.Penalty, best: dc.Result) -> Row:
    """Check the formulations whose value is tied to (15) by a formula: (21) when c = 0, and (7)."""
    row: Row = {"normalized agrees": 1, "alpha agrees": 1}
    if not weights.has_l1 and (nu < 1 or X.any()):
        normalized = dc.solve(dc.v_space_normalized(X, nu, weights), "CLARABEL")
        lower, upper = 1 - normalized.lower**2, 1 - normalized.upper**2  # decreasing on [-1, 0]
        row["normalized value"], row["normalized gap"] = upper, upper - lower
        row["normalized agrees"] = int(lower <= best.upper + SLACK and best.lower <= upper + SLACK)
    if len(X) <= LABELS_UP_TO and not weights.has_l1 and not np.any(weights.a):
        alpha = float(np.clip(np.sum(best.F.mean(axis=0) ** 2), 0.0, 1.0))
        fixed = dc.solve(dc.constrained_alpha(X, alpha))
        row["constrained_alpha value"], row["constrained_alpha gap"] = fixed.value, fixed.gap
        shifted = fixed.lower + nu * alpha
        row["alpha agrees"] = int(
            fixed.upper + nu * alpha >= best.lower - SLACK and shifted <= best.upper + ALPHA_SLACK
        )
    return row
