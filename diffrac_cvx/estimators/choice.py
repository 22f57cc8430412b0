"""Model selection without labels: a grid of lam, ridge, nu and n_clusters, half-samples, and criteria."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.estimators.affine import optimality_gap, recentered
from diffrac_cvx.machine.deadlines import is_late, seconds_left
from diffrac_cvx.metrics import adjusted_rand_score
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import mean_of, renormalize_weights, scale_by_sqrt_weights
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding import kmeans_1d, kmeans_centered
from diffrac_cvx.rounding.diagnostics import find_diagnostics
from diffrac_cvx.rounding.directions import LabelRegression
from diffrac_cvx.rounding.many_clusters import AffineScores, cluster_indices, cluster_jointly, explained_variance
from diffrac_cvx.rounding.two_clusters import threshold_between
from diffrac_cvx.solvers import low_rank
from diffrac_cvx.solvers.driver import WIDE_TABLE_RTOL

RowIndices = npt.NDArray[np.intp]
PartitionLabels = npt.NDArray[np.int64]
POINTS_FACTOR = 4  # ridge 0 is tried if n is at least this multiple of `points_needed`
MAX_POINTS = 10_000  # for comparing settings; more if halves would be below POINTS_FACTOR * points_needed(d)
SCORE_DECIMALS = 9  # scores that agree to these decimals are tied
REFERENCE_RIDGE = 0.3  # ridge of the default weights, which have lam = 0
SEPARATION_MARGIN = 0.05  # minimum improvement in the separation of held-out points over the default weights
MIN_STABILITY = 0.8  # minimum agreement of predicted labels, and minimum prediction strength
SINGLE_COLUMN_FRACTION = 0.9  # of the separation, above which a single column determines the clusters
UNIT_PENALTY = Penalty(lam=1.0)


class GridSetting(NamedTuple):
    """Point of the grid: weights of the squared l1 norm, of the ridge and of the imbalance.

    Groups, their relative weights, and sign constraints are the same on the whole grid.
    """

    lam: float
    ridge: float
    nu: float
    columns: Penalty = UNIT_PENALTY

    @property
    def penalty(self) -> Penalty:
        """The penalty of lam and ridge, with groups and sign constraints."""
        return self.columns.with_weights(self.lam * np.asarray(self.columns.lam), self.ridge)


@dataclass(frozen=True, eq=False)
class AffinePartition:
    """Partition of centred points by affine functions, and the solution of the relaxation."""

    setting: GridSetting
    n_clusters: int
    functions: AffineScores
    result: Result

    def label(self, X: Array | Table) -> PartitionLabels:
        """Return clusters 0, 1, ... of points, (n,)."""
        return cluster_indices(self.functions.of(X))


class HeldOutResult(NamedTuple):
    """Result of one setting on a half-sample, evaluated on the held-out half."""

    agreement: float  # adjusted Rand index of the predicted labels and those from all points
    separation: float  # fraction of the variance of the predicted labels that the projections explain
    selected: npt.NDArray[np.bool_]  # features with a nonzero coefficient
    train_labels: PartitionLabels  # of the half-sample
    test_labels: PartitionLabels  # of the held-out half


def points_needed(rank: int) -> float:
    """Return the approximate number of points below which noise of this rank is fitted perfectly without a penalty."""
    return rank + rank * (rank - 1) / 4


def default_setting(settings: Sequence[GridSetting]) -> GridSetting:
    """Return the setting nearest to the default weights: largest nu, smallest lam, ridge near 0.3."""
    return min(settings, key=lambda one: (-one.nu, one.lam, abs(one.ridge - REFERENCE_RIDGE)))


def is_wide_and_sparse(X: Any, setting: GridSetting) -> bool:
    """Return whether features are selected from a wide table."""
    return bool(X.shape[1] > X.shape[0] and setting.lam > 0.0)


def solve_setting(X: Any, setting: GridSetting, start: Result | None, tol: float) -> Result:
    """Solve the relaxation, which is the same for every number of clusters."""
    limits: dict[str, Any] = {"tol": tol, "rtol": WIDE_TABLE_RTOL if is_wide_and_sparse(X, setting) else 0.0}
    return low_rank(X, setting.nu, setting.penalty, start=start, time_limit=seconds_left(), **limits)


def round_to_partition(X: Any, setting: GridSetting, result: Result, n_clusters: int, seed: int) -> AffinePartition:
    """Round a solution and fit affine functions to the labels, as `DiffracClustering` does."""
    weights = weights_of(setting.penalty, X.shape[1])
    if n_clusters > 2:
        functions = cluster_jointly(X, result, n_clusters, weights=weights, rng=seed)
    elif n_clusters == 1:
        functions = AffineScores(np.zeros(X.shape[1]), np.zeros(()))
    else:
        _, v = LabelRegression(X, weights).oriented(kmeans_centered(result.F, X.weights))
        projections = X @ v
        functions = AffineScores(v, np.asarray(-threshold_between(projections, kmeans_1d(projections, X.weights))))
    return AffinePartition(setting, n_clusters, functions, result)


def follow_path(
    X: Table,
    grid: Sequence[tuple[GridSetting, int]],
    *,
    tol: float,
    seed: int,
    starts: Sequence[Result] = (),
) -> list[AffinePartition]:
    """Cluster points at each setting and number of clusters; fewer if the time limit is reached.

    All points are clustered at least once, each setting warm-started from its predecessor.  The warm starts of a
    half-sample are the results for all points, one for each entry of the grid.
    """
    found: list[AffinePartition] = []
    result = last = None
    for k, (setting, count) in enumerate(grid):
        if is_late() and (found or starts):
            break
        if result is None or setting != grid[k - 1][0]:
            # a solution with all features, or with other features than a half-sample, is a bad start for few features
            is_unsuitable = is_wide_and_sparse(X, setting) and (bool(starts) or grid[k - 1][0].lam == 0.0)
            result = solve_setting(X, setting, None if is_unsuitable else starts[k] if starts else last, tol)
            last = result if result.G is not None else last
        found.append(round_to_partition(X, setting, result, count, seed))
    return found


def max_column_r2(X: Array, labels: PartitionLabels, point_weights: Array | None = None) -> float:
    """Return the largest fraction of the variance of a column that labels explain; 1 if a column determines them.

    For two clusters it is the squared correlation of labels and column.
    """
    X = scale_by_sqrt_weights(X - mean_of(X, point_weights), point_weights)
    weights = scale_by_sqrt_weights(np.ones(len(X)), point_weights)
    inside = np.zeros(X.shape[1])
    for label in np.unique(labels):
        indicator = weights * (labels == label)
        inside += (indicator @ X) ** 2 / float(indicator @ indicator)
    total = np.einsum("ij,ij->j", X, X)
    return min(float(np.max(inside / np.where(total > 0.0, total, 1.0))), 1.0)


def subsample_points(X: Table, rng: np.random.Generator) -> tuple[Table, Array]:
    """Return the points for comparing settings, all or a random subsample, and their mean."""
    n, d = X.shape
    max_points = max(MAX_POINTS, int(2 * POINTS_FACTOR * points_needed(d)))
    if n <= max_points:
        return X, np.zeros(d)
    rows = np.sort(rng.choice(n, max_points, replace=False))
    return recentered(X, renormalize_weights(X.weights, rows), rows)


def draw_half_samples(n: int, n_resamples: int, rng: np.random.Generator) -> list[tuple[RowIndices, RowIndices]]:
    """Return half-samples of n points with their held-out points, in complementary pairs; none if n is below 4.

    Source: Shah and Samworth (2013), Variable selection with error control.
    """
    halves = []
    for _ in range((n_resamples + 1) // 2 if n >= 4 else 0):
        order = rng.permutation(n)
        first, second = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        halves += [(first, second), (second, first)]
    return halves[:n_resamples]


def evaluate_half(
    X: Table,
    half: tuple[RowIndices, RowIndices],
    partitions: Sequence[AffinePartition],
    *,
    tol: float,
    seed: int,
) -> list[HeldOutResult]:
    """Cluster a half-sample at each setting and predict the other half; fewer results if the time limit is reached."""
    rows, held_out = half
    points, mean = recentered(X, renormalize_weights(X.weights, rows), rows)
    others, weights = X.array()[held_out], renormalize_weights(X.weights, held_out)
    grid, starts = [(whole.setting, whole.n_clusters) for whole in partitions], [whole.result for whole in partitions]
    found: list[HeldOutResult] = []
    for whole, part in zip(partitions, follow_path(points, grid, tol=tol, seed=seed, starts=starts), strict=False):
        predicted, coef = part.label(others - mean), np.atleast_2d(part.functions.coef)
        found.append(
            HeldOutResult(
                agreement(predicted, whole.label(others)),
                explained_variance((others - mean) @ coef.T, predicted, weights),
                np.any(coef, axis=0),
                part.label(points),
                predicted,
            )
        )
    return found


def agreement(labels: PartitionLabels, other: PartitionLabels) -> float:
    """Return the adjusted Rand index of two partitions, 0 if one of them is a single cluster."""
    return adjusted_rand_score(labels, other) if np.ptp(labels) and np.ptp(other) else 0.0


def prediction_strength(labels: PartitionLabels, predicted: PartitionLabels, n_clusters: int) -> float:
    """Return the minimum over clusters of the fraction of their pairs of points that share a predicted label.

    It is 0 if a cluster is missing.  Clusters of one point have no pairs and are ignored.

    Source: Tibshirani and Walther (2005), Cluster validation by prediction strength.
    """
    counts = np.zeros((n_clusters, n_clusters))
    np.add.at(counts, (labels, predicted), 1.0)
    sizes = counts.sum(axis=1)
    if (sizes == 0.0).any():
        return 0.0
    together = (counts * (counts - 1.0)).sum(axis=1)[sizes > 1.0]
    return float(np.min(together / (sizes * (sizes - 1.0))[sizes > 1.0], initial=1.0))


SELECTION_CRITERIA = {  # each an entry of the table; the largest value is best
    "gain": "separation minus that of the default weights",
    "stability": "agreement of predicted labels",
    "separation": "separation of held-out points",
}


def tabulate(
    X: Table, partitions: Sequence[AffinePartition], halves: Sequence[Sequence[HeldOutResult]], criterion: str
) -> dict[str, Any]:
    """Return the table of all settings, one entry of each array per setting, with the scores of a criterion.

    "stability" and "separation" are NaN for settings that no half-sample reached; if all are, the default weights win.
    """
    settings, results = [one.setting for one in partitions], [one.result for one in partitions]
    counts, labels = np.array([one.n_clusters for one in partitions]), np.stack([one.label(X) for one in partitions])
    several = (counts != 2).any()
    weights = [{name: getattr(setting, name) for name in ("lam", "ridge", "nu")} for setting in settings]
    gaps, diagnostics = [], []
    for one, clusters in zip(partitions, labels, strict=True):
        count, setting = max(one.n_clusters, 2), one.setting
        gaps.append(optimality_gap(X, clusters, one.result, count, nu=setting.nu, penalty=setting.penalty))
        diagnostics.append(tuple(found.code for found in find_diagnostics(X, clusters, n_clusters=count)))
    usable, lower = np.array([not codes for codes in diagnostics]), np.array([result.lower for result in results])
    coef = [one.functions.coef for one in partitions]
    table: dict[str, Any] = {
        **{f"param_{name}": np.array([one[name] for one in weights]) for name in ("lam", "ridge", "nu")},
        "param_n_clusters": counts,
        "params": [{**one, "n_clusters": int(k)} if several else one for one, k in zip(weights, counts, strict=True)],
        **summarize_halves(partitions, halves),
        "cost": lower + gaps,
        "lower_bound": lower,
        "upper_bound": np.array([result.upper for result in results]),
        "n_excluded": np.array([result.n_excluded for result in results]),
        "column_share": np.array([max_column_r2(X.array(), clusters, X.weights) for clusters in labels]),
        "diagnostics": diagnostics,
        "labels": labels,
        "coef": np.stack(coef) if len(set(counts)) == 1 else coef,
    }
    table["gain"] = separation_gains(table, settings)
    table["mean_score"] = table[criterion]
    table["rank_score"] = rank_by_n_clusters(table, rank(table["mean_score"], usable, table["stability"]))
    return table


def separation_gains(table: dict[str, Any], settings: Sequence[GridSetting]) -> Array:
    """Return the separation of held-out points minus that of the default weights and `SEPARATION_MARGIN`.

    It is 0 for the default weights.  Settings with unstable labels, or with clusters determined by a single column, are
    reduced by 1 and so never win.  It is NaN for settings that no half-sample reached.
    """
    found, separation = np.full(len(settings), np.nan), table["separation"]
    for count in np.unique(table["param_n_clusters"]):
        rows = np.flatnonzero(table["param_n_clusters"] == count)
        default = default_setting([settings[int(i)] for i in rows])
        first = next(i for i in rows if settings[int(i)] == default)
        found[rows] = separation[rows] - separation[first] - SEPARATION_MARGIN
        found[first] = 0.0
    by_chance = (table["stability"] < MIN_STABILITY) | (table["column_share"] >= SINGLE_COLUMN_FRACTION * separation)
    return np.where(by_chance & (found != 0.0), found - 1.0, found)


def rank_by_n_clusters(table: dict[str, Any], ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the ranks of settings, beginning with those of the selected number of clusters.

    This is the largest number whose best setting has a prediction strength of at least `MIN_STABILITY`; if there is
    none, the number with the largest prediction strength.
    """
    counts = table["param_n_clusters"]
    best = {int(k): int(min(np.flatnonzero(counts == k), key=lambda i: ranks[i])) for k in np.unique(counts)}
    strength = {count: float(np.nan_to_num(table["prediction_strength"][i])) for count, i in best.items()}
    usable = {count for count, i in best.items() if not table["diagnostics"][i]} or set(best)
    strong = [count for count in usable if strength[count] >= MIN_STABILITY]
    selected = max(strong, default=max(sorted(usable), key=lambda count: strength[count]))
    return np.argsort(np.lexsort((ranks, counts != selected))) + 1


def summarize_halves(
    partitions: Sequence[AffinePartition], halves: Sequence[Sequence[HeldOutResult]]
) -> dict[str, Array]:
    """Return the means over the half-samples of each setting, NaN if there are none."""
    m, d = len(partitions), partitions[0].functions.coef.shape[-1]
    means, strength = np.full((m, 2 + d), np.nan), np.full(m, np.nan)
    solved = [[half[j] for half in halves if j < len(half)] for j in range(m)]
    for j, found in enumerate(solved):
        if found:
            means[j] = np.mean([[one.agreement, one.separation, *one.selected] for one in found], axis=0)
        pairs = [  # complementary half-samples
            (one[j], other[j])
            for pair in zip(halves[::2], halves[1::2], strict=False)
            for one, other in (pair, pair[::-1])
            if j < min(len(one), len(other))
        ]
        if pairs:
            count = partitions[j].n_clusters
            strength[j] = np.mean(
                [prediction_strength(one.train_labels, other.test_labels, count) for one, other in pairs]
            )
    return {
        "stability": means[:, 0],
        "separation": means[:, 1],
        "prediction_strength": strength,
        "n_resamples": np.array([len(found) for found in solved]),
        "selection_frequencies": means[:, 2:],
    }


def rank(score: Array, usable: npt.NDArray[np.bool_], stability: Array) -> npt.NDArray[np.int64]:
    """Return ranks from 1: usable settings first, then by score, then by stability, then by order."""
    keys = [-np.nan_to_num(np.round(values, SCORE_DECIMALS), nan=-np.inf) for values in (stability, score)]
    return np.argsort(np.lexsort((*keys, ~usable))) + 1


def compare_settings(
    X: Table,
    settings: Sequence[GridSetting],
    counts: Sequence[int],
    *,
    criterion: str,
    n_resamples: int,
    tol: float,
    seed: int,
    X_all: Array | None = None,
) -> tuple[list[AffinePartition], dict[str, Any]]:
    """Return the partition of each setting and number of clusters, and their table; fewer if the time limit is reached.

    The table has the labels of all points if these are given as an array, otherwise of the points compared.
    """
    rng = np.random.default_rng(seed)
    points, center = subsample_points(X, rng)
    found = follow_path(points, [*product(settings, counts)], tol=tol, seed=seed)
    drawn = draw_half_samples(len(points), n_resamples, rng)
    halves = [evaluate_half(points, half, found, tol=tol, seed=seed) for half in drawn]
    table = tabulate(points, found, halves, criterion)
    if X_all is not None and len(points) < len(X_all):
        table["labels"] = np.stack([partition.label(X_all - center) for partition in found])
    return found, table
