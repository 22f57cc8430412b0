"""Cells: p-values of the structure test without groups, and its power with groups, compared with other tests."""

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row, cross

N, D = 200, 10  # points and features
WIDE_N, WIDE = 60, 400  # of wide tables
DRAWS = 19
RESTARTS = 5  # of k-means in the rivals
NONE = ("normal", "heavy tails", "two values", "common factor", "wide")
GROUPS = ("direction", "means", "common factor and direction")
STRENGTHS = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)  # fraction of a direction's standard deviation that is between the groups
RIDGES = {"ridge": 0.3, "none": 0.0}
REPLICATIONS, POWER_REPLICATIONS = 150, 40
SETTINGS = {"draws": DRAWS, "n_init": RESTARTS}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    many, few, shown = (REPLICATIONS, POWER_REPLICATIONS, STRENGTHS) if grid == "full" else (2, 2, (0.5, 1.0))
    return cross(family=NONE, strength=(0.0,), replication=range(many)) + cross(
        family=GROUPS, strength=shown, replication=range(few)
    )


def make_table(family: str, strength: float, rng: np.random.Generator) -> Array:
    """Return a table of a family; groups differ along a direction hidden in all columns, or in the means of all."""
    n, d = (WIDE_N, WIDE) if family == "wide" else (N, D)
    X = rng.standard_normal((n, d))
    y = rng.permutation(np.resize([-1.0, 1.0], n))
    match family:
        case "heavy tails":
            X = rng.standard_t(3, (n, d))
        case "two values":
            X = rng.choice([-1.0, 1.0], (n, d))
        case "common factor":
            X += 1.5 * rng.standard_normal((n, 1)) * rng.choice([-1.0, 1.0], d)
        case "means":
            X += strength / d**0.5 * 2.0 * y[:, None]
        case "direction" | "common factor and direction":
            X[:, 0] = strength * y + (1.0 - strength**2) ** 0.5 * X[:, 0]
            X = X @ np.linalg.qr(rng.standard_normal((d, d)))[0]
            if family != "direction":
                X += 1.5 * rng.standard_normal((n, 1)) * rng.choice([-1.0, 1.0], d)
    return np.asarray(X)


def measure(family: str, strength: float, replication: int) -> Row:
    """Apply all tests to one table."""
    names = (*NONE, *GROUPS)
    rng = np.random.default_rng([2017, 25, names.index(family), int(100 * strength), replication])
    X = make_table(family, strength, rng)
    row: Row = {}
    for name, ridge in RIDGES.items():
        if family == "wide" and ridge == 0.0:
            continue
        for null in ("columns", "covariance"):
            tested = dc.structure_test(
                X, null=null, n_resamples=DRAWS, penalty=dc.Penalty(ridge=ridge), rng=replication
            )
            row[f"p_{null}_{name}"] = tested.pvalue
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row["p_sigclust"] = sigclust(Z, rng)
        row["p_gap"] = gap_statistic(Z, rng)
        row["p_dip of the first component"] = dip_p(Z @ np.linalg.svd(Z, full_matrices=False)[2][0])
        row["p_dip of the score"] = dip_p(dc.DiffracClustering().fit(X).decision_function(X))
    return row


def dip_p(values: Array) -> float:
    """Return the p-value of Hartigan and Hartigan's dip test of unimodality, from its table."""
    from diptest import diptest  # the documentation needs the rest of this file without this package

    return float(diptest(np.asarray(values))[1])


def within(X: Array, k: int) -> float:
    """Return the within-cluster sum of squares of k-means with k clusters."""
    return float(KMeans(k, n_init=RESTARTS, random_state=0).fit(X).inertia_)


def p_of(value: float, draws: Callable[[], float]) -> float:
    """Return the p-value of a statistic that is small if there are groups."""
    return (1 + sum(draws() <= value for _ in range(DRAWS))) / (1 + DRAWS)


def sigclust(X: Array, rng: np.random.Generator) -> float:
    """Return the p-value of the cluster index against a Gaussian cloud with the eigenvalues of the covariance.

    Source: Liu, Hayes, Nobel and Marron (2008), with the sample's eigenvalues.
    """
    deviations = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) / len(X) ** 0.5
    index = within(X, 2) / within(X, 1)

    def draw() -> float:
        Z = rng.standard_normal((len(X), len(deviations))) * deviations
        return within(Z, 2) / within(Z, 1)

    return p_of(index, draw)


def gap_statistic(X: Array, rng: np.random.Generator) -> float:
    """Return the p-value of log W_2 - log W_1 against points in the bounding box of the principal components.

    Source: Tibshirani, Walther and Hastie (2001), with null samples instead of their one-standard-error rule.
    """
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    scores = U * s
    low, high = scores.min(axis=0), scores.max(axis=0)

    def change(Z: Array) -> float:
        return float(np.log(within(Z, 2)) - np.log(within(Z, 1)))

    return p_of(change(scores), lambda: change(rng.uniform(low, high, scores.shape)))
