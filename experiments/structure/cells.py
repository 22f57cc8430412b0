"""Structure test: its verdicts on tables with and without groups, compared with other tests."""

import warnings
import zlib
from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans

import diffrac_cvx as dc
from diffrac_cvx.comparison.held_out import scaled
from diffrac_cvx.comparison.null_tables import NULL_MODELS
from diffrac_cvx.comparison.splits import Split
from diffrac_cvx.points.table import array_table
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row, cross
from experiments.structure.families import WITH, WITHOUT

DRAWS = 19  # null tables of the other tests
RESTARTS = 5  # of k-means
REPLICATIONS, COMPARED = 20, 3  # tables of each family, and those to which the other tests are applied too
SMOKE = ("normal", "cube", "halves", "15 to 85")
SETTINGS = {"draws": DRAWS, "n_init": RESTARTS}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    if grid == "full":
        families = (*WITHOUT, *WITH)
        return [{"family": family, "replication": k} for k in range(REPLICATIONS) for family in families]
    return cross(family=SMOKE, replication=range(2))


def measure(family: str, replication: int) -> Row:
    """Apply the test to one table, and the others to the first ones of each family.

    The dip is that of the first principal component (Hartigan and Hartigan, 1985).
    """
    from diptest import diptest  # the documentation needs the rest of this file without this package

    rng = np.random.default_rng([2017, 25, zlib.crc32(family.encode()), replication])
    X = (WITHOUT | WITH)[family](rng)
    found = dc.structure_test(X, rng=replication)
    row: Row = {"groups": int(family in WITH), "n": len(X), "d": X.shape[1]}
    row |= {"verdict": found.verdict, "p": found.pvalue, "given_weights": int(found.has_given_weights)}
    row |= {"units": found.n_units, "splits_better": int(found.splits_better)}
    if replication >= COMPARED:
        return row
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for null in NULL_MODELS:
            row[f"p_{null.__name__}"] = p_of_cost(X, null, rng)
        deviation = X.std(axis=0)
        Z = (X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
        row["p_sigclust"] = sigclust(Z, rng)
        row["p_dip"] = float(diptest(Z @ np.linalg.svd(Z, full_matrices=False)[2][0])[1])
    return row


def p_of_cost(X: Array, null: Callable[..., Callable[[np.random.Generator], Array]], rng: np.random.Generator) -> float:
    """Return the p-value of the cost of the split in two among those of null tables."""
    penalty = dc.Penalty(ridge=0.3)
    split, points = Split(1.0, penalty), scaled(array_table(X), standardize=True)[0]
    draw = null(points.array(), penalty.feature_groups(X.shape[1]))
    return p_of(split.objective(points), lambda: split.objective(array_table(draw(rng))))


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
