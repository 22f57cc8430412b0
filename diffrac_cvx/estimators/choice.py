"""Choose lam, ridge, nu and the number of clusters without labels: a grid, halves of the points, and criteria."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.estimators.affine import proved_gap
from diffrac_cvx.machine.time_budget import Clock, spend
from diffrac_cvx.metrics import eigenvalue_ratio
from diffrac_cvx.points.checks import Array, centred_data, every_point
from diffrac_cvx.points.dense import weighted_points
from diffrac_cvx.points.linear_algebra import mean_of, shares_within, weigh_rows
from diffrac_cvx.points.points import Points
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding import kmeans_centered
from diffrac_cvx.rounding.caveats import Reservation, find_reservations
from diffrac_cvx.rounding.directions import oriented_direction, threshold
from diffrac_cvx.rounding.many_clusters import AffineScores, cluster_together, explained_share
from diffrac_cvx.solvers import low_rank
from diffrac_cvx.solvers.stopping import WIDE_GAP

Indices = npt.NDArray[np.intp]
Labels = npt.NDArray[np.int64]
Say = Callable[[str], object]  # is told what begins, and returns whether to stop
TIE = 9  # decimals in which scores may differ
STARTS = 10  # of k-means, for more than two clusters
USUAL_RIDGE = 0.3  # of the default weights, without an l1 part
MARGIN = 0.05  # by which points left out have to be separated better than with the default weights
STABLE = 0.8  # least agreement of predicted labels, and least share of pairs of a cluster found again
ONE_COLUMN = 0.9  # share of the separation from which on a single column makes the split


WEIGHTS = ("lam", "ridge", "nu")
PLAIN = Penalty(lam=1.0)


class Setting(NamedTuple):
    """One point of the grid: the weights of the squared l1 norm, of the ridge and of the imbalance.

    The groups and the known signs of the columns, and the relative weights of the groups, are the same on the grid.
    """

    lam: float
    ridge: float
    nu: float
    columns: Penalty = PLAIN

    @property
    def penalty(self) -> Penalty:
        """The two first, with the groups and the signs."""
        return self.columns.with_weights(self.lam * np.asarray(self.columns.lam), self.ridge)

    @property
    def weights(self) -> dict[str, float]:
        """The three weights by name."""
        return {name: getattr(self, name) for name in WEIGHTS}


@dataclass(frozen=True, eq=False)
class Split:
    """A split of centred points by affine functions of them, and the relaxation's solution."""

    setting: Setting
    n_clusters: int
    functions: AffineScores  # one for two clusters, else K
    result: Result

    @property
    def v(self) -> Array:
        """The directions, (d,) for two clusters, else (K, d)."""
        return self.functions.coef if self.n_clusters > 2 else self.functions.coef[0]

    def label(self, X: Array | Points) -> Labels:
        """Return clusters 0, 1, ... of points, (n,)."""
        values = X @ self.functions.coef.T + self.functions.intercept
        found = np.argmax(values, axis=1) if self.n_clusters > 2 else values[:, 0] > 0.0
        return np.asarray(found).astype(np.int64)


@dataclass(frozen=True, eq=False)
class PathEntry:
    """What is known of one setting from all points."""

    split: Split
    labels: Labels  # (n,)
    label_gap: float  # their proved distance from the optimum of Eq. (9)
    eigenvalue_ratio: float  # second eigenvalue of Y over the first
    column_share: float  # share of the variance of a single column that the clusters explain, the largest
    reservations: tuple[Reservation, ...]


class HeldOut(NamedTuple):
    """What one half of the points says about the other at one setting."""

    agreement: float  # of the labels predicted with those of the split of all points: their adjusted Rand index
    separation: float  # share of the variance of the labels predicted that the projections explain
    selected: npt.NDArray[np.bool_]  # features with a nonzero coefficient
    own: Labels  # of the points of the half
    predicted: Labels  # of the others


def list_settings(lams: Sequence[float], ridges: Sequence[float], nus: Sequence[float]) -> list[Setting]:
    """Return the grid in the order in which it is solved: each setting is near the one before, large weights first."""
    down = (sorted(set(values), reverse=True) for values in (nus, ridges, lams))
    return [Setting(lam, ridge, nu) for nu, ridge, lam in product(*down)]


def usual_setting(settings: Sequence[Setting]) -> Setting:
    """Return the setting that is nearest to the default weights: few l1, ridge 0.3, nu 1."""
    return min(settings, key=lambda one: (-one.nu, one.lam, abs(one.ridge - USUAL_RIDGE)))


def is_wide_and_sparse(X: Any, setting: Setting) -> bool:
    """Whether a few of many features are looked for."""
    return bool(X.shape[1] > X.shape[0] and setting.lam > 0.0)


def relax(X: Any, setting: Setting, *, start: Result | None, tol: float, time_limit: float | None) -> Result:
    """Solve the relaxation, which is the same for every number of clusters."""
    rtol = WIDE_GAP if is_wide_and_sparse(X, setting) else 0.0
    return low_rank(X, setting.nu, setting.penalty, start=start, tol=tol, time_limit=time_limit, rtol=rtol)


def round_result(X: Any, setting: Setting, result: Result, n_clusters: int = 2, seed: int = 0) -> Split:
    """Round a solution, and split along the directions of the labels, as `DiffracClustering` does."""
    weights = weights_of(setting.penalty, X.shape[1])
    if n_clusters > 2:
        known: dict[str, Any] = {"restarts": STARTS, "seed": seed, "shares": X.shares}
        functions = cluster_together(X.array(), result, n_clusters, weights=weights, **known)
        return Split(setting, n_clusters, functions, result)
    if n_clusters == 1:
        return Split(setting, 1, AffineScores(np.zeros((1, X.shape[1])), np.zeros(1)), result)
    _, v = oriented_direction(X, kmeans_centered(result.F, X.shares), weights)
    return Split(setting, 2, AffineScores(v[None], -np.array([threshold(X @ v, X.shares)])), result)


def follow_path(
    X: Points,
    settings: Sequence[Setting],
    *,
    tol: float,
    clock: Clock,
    counts: Sequence[int] = (2,),
    seed: int = 0,
    say: Say | None = None,
) -> list[PathEntry]:
    """Split all points at each setting into each number of clusters, each setting solved from the one before.

    Where the time is over, or ``say`` returns true, there are fewer entries, but always one.
    """
    entries: list[PathEntry] = []
    start = None
    for k, setting in enumerate(settings):
        stop = say is not None and say(f"setting {k + 1} of {len(settings)}")
        if entries and (stop or clock.is_over):
            break
        with spend(clock.budget):
            all_used = is_wide_and_sparse(X, setting) and settings[k - 1].lam == 0.0  # no start for a few features
            near = None if all_used else start
            result = relax(X, setting, start=near, tol=tol, time_limit=clock.left)
            for count in counts if entries or not clock.is_over else counts[:1]:
                entries.append(judge_split(X, round_result(X, setting, result, count, seed)))
        start = result if result.G is not None else start
    return entries


def judge_split(X: Any, split: Split) -> PathEntry:
    """Return what is known of a split of all points."""
    setting, labels, count = split.setting, split.label(X), split.n_clusters
    known: dict[str, Any] = {"nu": setting.nu, "penalty": setting.penalty}
    return PathEntry(
        split,
        labels,
        proved_gap(X, labels, split.result, max(count, 2), **known),
        eigenvalue_ratio(weigh_rows(split.result.F, X.shares)),
        column_share(X.array(), labels, X.shares),
        find_reservations(X, labels, split.result, **known, n_clusters=count, shares=X.shares),
    )


def column_share(X: Array, labels: Labels, shares: Array | None = None) -> float:
    """Return the share of the variance of a column that labels explain, the largest of all: 1 where one makes them.

    For two clusters it is the squared correlation of labels and column.
    """
    X = weigh_rows(X - mean_of(X, shares), shares)
    weights = np.ones(len(X)) if shares is None else np.sqrt(len(X) * shares)
    inside = np.zeros(X.shape[1])
    for label in np.unique(labels):
        chosen = weights * (labels == label)
        inside += (chosen @ X) ** 2 / float(chosen @ chosen)
    total = np.einsum("ij,ij->j", X, X)
    return min(float(np.max(inside / np.where(total > 0.0, total, 1.0))), 1.0)


def part_of(X: Points, rows: Indices) -> tuple[Points, Array]:
    """Return some of the points, centred by themselves, and the mean that was taken off."""
    kept, shares = X.array()[rows], shares_within(X.shares, rows)
    weights = every_point(shares)
    return weighted_points(centred_data(kept, weights, means=X.means, warn=False), weights), mean_of(kept, shares)


def draw_halves(n: int, n_resamples: int, rng: np.random.Generator) -> list[tuple[Indices, Indices]]:
    """Return halves of n points with the points left out: in pairs, each half being what the other leaves out.

    Source: complementary pairs, Shah and Samworth (2013), Variable selection with error control.
    """
    halves = []
    for _ in range((n_resamples + 1) // 2):
        order = rng.permutation(n)
        first, second = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        halves += [(first, second), (second, first)]
    return halves[:n_resamples]


def judge_half(
    X: Points, half: tuple[Indices, Indices], entries: Sequence[PathEntry], *, tol: float, clock: Clock, seed: int = 0
) -> list[HeldOut]:
    """Split half of the points at each setting and predict the others; fewer entries where the time is over."""
    (points, mean), outside = part_of(X, half[0]), shares_within(X.shares, half[1])
    left_out = X.array()[half[1]] - mean
    found: list[HeldOut] = []
    result = None
    for k, entry in enumerate(entries):
        if clock.is_over:
            break
        setting, count, whole = entry.split.setting, entry.split.n_clusters, entry.split.result
        with spend(clock.budget):
            if result is None or setting != entries[k - 1].split.setting:
                near = None if is_wide_and_sparse(points, setting) else whole  # other features are used in the half
                result = relax(points, setting, start=near, tol=tol, time_limit=clock.left)
            split = round_result(points, setting, result, count, seed)
        predicted = split.label(left_out)
        found.append(
            HeldOut(
                float(agreements(np.stack([predicted, entry.labels[half[1]]]), outside)[0, 1]),
                separation_of(left_out, split, predicted, outside),
                np.any(split.functions.coef, axis=0),
                split.label(points),
                predicted,
            )
        )
    return found


def separation_of(X: Array, split: Split, labels: Labels, shares: Array | None = None) -> float:
    """Return the share of the variance of labels that the projections explain: their squared correlation, for two."""
    projected = X @ np.transpose(split.v)
    if split.n_clusters > 2:
        return explained_share(projected, labels, shares)
    return squared_correlation(projected, labels.astype(float), shares)


def squared_correlation(values: Array, labels: Array, shares: Array | None = None) -> float:
    """Return the squared correlation of numbers and labels, 0 where one of them is constant."""
    values, labels = (weigh_rows(part - mean_of(part, shares), shares) for part in (values, labels))
    scale = float(values @ values) * float(labels @ labels)
    return min(float(values @ labels) ** 2 / scale, 1.0) if scale > 0.0 else 0.0


def agreements(labels: Array | Labels, shares: Array | None = None) -> Array:
    r"""Return the adjusted Rand index of each pair of splits, 0 where one of the pair is a single cluster.

    With :math:`\binom{\cdot}{2}` the pairs of points, it is the number of pairs together in both, minus its mean under
    random labels with the same sizes, over what two equal splits would give.  Where the points have shares of the
    weight, pairs are drawn by these, with replacement, so that only the proportions count.  Labels are (m, n); the
    result is (m, m), 1 for equal splits and about 0 for independent ones.
    """
    m, n = labels.shape
    values = np.unique(labels)
    inside = (labels[:, None, :] == values[:, None]).astype(float).reshape(m * len(values), n)
    weighed, total = (inside, float(n)) if shares is None else (inside * shares, 1.0)
    cells = (weighed @ inside.T).reshape(m, len(values), m, len(values))
    sizes = weighed.sum(axis=1).reshape(m, len(values))
    pairs: Callable[[Any], Any] = (lambda count: count * (count - 1.0) / 2.0) if shares is None else np.square
    together, within = pairs(cells).sum(axis=(1, 3)), pairs(sizes).sum(axis=1)
    expected = np.outer(within, within) / pairs(total)
    spread = (within[:, None] + within[None, :]) / 2 - expected
    single = np.asarray((sizes > 0.0).sum(axis=1) <= 1)
    usable = (spread > 0.0) & ~single[:, None] & ~single[None, :]
    return np.where(usable, (together - expected) / np.where(usable, spread, 1.0), 0.0)


def prediction_strength(own: Labels, predicted: Labels, n_clusters: int) -> float:
    """Return the share of the pairs of a cluster that predicted labels put together, the least of all clusters.

    It is 0 where a cluster is missing.  A cluster of one point has no pair, and is not counted.

    Source: Tibshirani and Walther (2005), Cluster validation by prediction strength.
    """
    counts = np.zeros((n_clusters, n_clusters))
    np.add.at(counts, (own, predicted), 1.0)
    sizes = counts.sum(axis=1)
    if (sizes == 0.0).any():
        return 0.0
    together = (counts * (counts - 1.0)).sum(axis=1)[sizes > 1.0]
    return float(np.min(together / (sizes * (sizes - 1.0))[sizes > 1.0], initial=1.0))


CRITERIA = {  # each an entry of the table; the largest is best
    "gain": "separation, less that of the default weights",
    "consensus": "agreement with other settings",
    "stability": "agreement of predicted labels",
    "separation": "separation of the points left out",
    "eigenvalue_ratio": r"minus $\lambda_2 / \lambda_1$ of $Y$",
    "label_gap": "minus the proved gap of the labels",
}


def tabulate(
    entries: Sequence[PathEntry],
    halves: Sequence[Sequence[HeldOut]],
    criterion: str,
    shares: Array | None = None,
) -> dict[str, Any]:
    """Return all that is known of the settings, an entry of each array for each, with scores by a criterion.

    Where no half was solved at a setting, its "stability" and "separation" are NaN; where that holds for all settings
    and one of these is asked for, the consensus chooses.
    """
    settings = [entry.split.setting for entry in entries]
    counts = np.array([entry.split.n_clusters for entry in entries])
    several = [{"n_clusters": int(count)} if (counts != 2).any() else {} for count in counts]
    labels = np.stack([entry.labels for entry in entries])
    usable = np.array([not entry.reservations for entry in entries])
    lower, gaps = (
        np.array(values) for values in zip(*[(e.split.result.lower, e.label_gap) for e in entries], strict=True)
    )
    coef = [entry.split.v for entry in entries]
    table: dict[str, Any] = {
        **{f"param_{name}": np.array([getattr(setting, name) for setting in settings]) for name in WEIGHTS},
        "param_n_clusters": counts,
        "params": [setting.weights | more for setting, more in zip(settings, several, strict=True)],
        **table_of_halves(entries, halves),
        "consensus": mean_agreement(labels, usable, shares),
        "eigenvalue_ratio": np.array([-entry.eigenvalue_ratio for entry in entries]),
        "label_gap": -gaps,
        "cost": lower + gaps,
        "lower_bound": lower,
        "upper_bound": np.array([entry.split.result.upper for entry in entries]),
        "n_excluded": np.array([entry.split.result.n_excluded for entry in entries]),
        "column_share": np.array([entry.column_share for entry in entries]),
        "smallest_cluster": np.array([np.bincount(e.labels, minlength=e.split.n_clusters).min() for e in entries]),
        "reservations": [tuple(reservation.kind for reservation in entry.reservations) for entry in entries],
        "labels": labels,
        "coef": np.stack(coef) if len(set(counts)) == 1 else coef,
    }
    table["gain"] = gains(table, settings)
    score = table[criterion]
    table["mean_score"] = table["consensus"] if np.isnan(score).all() else score
    table["rank_score"] = rank_counts(table, rank(table["mean_score"], usable, table["stability"]))
    return table


def gains(table: dict[str, Any], settings: Sequence[Setting]) -> Array:
    """Return by how much more than `MARGIN` each setting separates the points left out better than the default weights.

    These have 0.  A setting whose labels the halves do not predict, or that a single column makes, has 1 less, and so
    never wins.  Where no half was solved at a setting it is NaN.
    """
    found, separation = np.full(len(settings), np.nan), table["separation"]
    for count in np.unique(table["param_n_clusters"]):
        rows = np.flatnonzero(table["param_n_clusters"] == count)
        usual = usual_setting([settings[int(i)] for i in rows])
        first = next(i for i in rows if settings[int(i)] == usual)
        found[rows] = separation[rows] - separation[first] - MARGIN
        found[first] = 0.0
    by_chance = (table["stability"] < STABLE) | (table["column_share"] >= ONE_COLUMN * separation)
    return np.where(by_chance & (found != 0.0), found - 1.0, found)


def rank_counts(table: dict[str, Any], ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the ranks of settings with those of one number of clusters first, which the best setting of each decides.

    It is the largest number whose prediction strength is at least `STABLE`; where there is none, that of the largest.
    """
    counts, best = table["param_n_clusters"], best_by_count(table, ranks)
    strength = {count: float(np.nan_to_num(table["prediction_strength"][i])) for count, i in best.items()}
    usable = {count for count, i in best.items() if not table["reservations"][i]} or set(best)
    strong = [count for count in usable if strength[count] >= STABLE]
    chosen = max(strong, default=max(sorted(usable), key=lambda count: strength[count]))
    return np.argsort(np.lexsort((ranks, counts != chosen))) + 1


def table_of_halves(entries: Sequence[PathEntry], halves: Sequence[Sequence[HeldOut]]) -> dict[str, Array]:
    """Return what the halves say of each setting: means over those that were solved there, NaN where none was."""
    m, d = len(entries), entries[0].split.v.shape[-1]
    means, spread, strength = np.full((m, 2 + d), np.nan), np.full(m, np.nan), np.full(m, np.nan)
    solved = [[half[j] for half in halves if j < len(half)] for j in range(m)]
    for j, found in enumerate(solved):
        if found:
            values = np.array([[one.agreement, one.separation, *one.selected] for one in found])
            means[j], spread[j] = values.mean(axis=0), values[:, 0].std()
        count = entries[j].split.n_clusters
        both = [
            (first[j], second[j])
            for first, second in zip(halves[::2], halves[1::2], strict=False)
            if j < min(len(first), len(second))
        ]
        if both:  # each of a pair leaves out what the other keeps
            pairs = both + [(second, first) for first, second in both]
            strength[j] = np.mean([prediction_strength(one.own, other.predicted, count) for one, other in pairs])
    return {
        "stability": means[:, 0],
        "std_stability": spread,
        "separation": means[:, 1],
        "prediction_strength": strength,
        "n_resamples": np.array([len(found) for found in solved]),
        "selection_frequencies": means[:, 2:],
    }


def mean_agreement(labels: Labels, usable: npt.NDArray[np.bool_], shares: Array | None = None) -> Array:
    """Return the mean adjusted Rand index of each split with the usable ones, itself left out."""
    weights = np.tile(usable if usable.any() else ~usable, (len(labels), 1)) * (1.0 - np.eye(len(labels)))
    total = weights.sum(axis=1)
    means = (agreements(labels, shares) * weights).sum(axis=1) / np.maximum(total, 1.0)
    return np.asarray(np.where(total > 0.0, means, 1.0))


def rank(score: Array, usable: npt.NDArray[np.bool_], stability: Array) -> npt.NDArray[np.int64]:
    """Return ranks from 1: usable settings first, the larger score first; of equal ones the more stable, the first."""
    keys = [-np.nan_to_num(np.round(values, TIE), nan=-np.inf) for values in (stability, score)]
    return np.argsort(np.lexsort((*keys, ~usable))) + 1


def best_by_count(table: dict[str, Any], ranks: npt.NDArray[np.int64]) -> dict[int, int]:
    """Return the row of the best setting for each number of clusters."""
    counts = table["param_n_clusters"]
    return {int(k): int(min(np.flatnonzero(counts == k), key=lambda i: ranks[i])) for k in np.unique(counts)}


def find_best(table: dict[str, Any]) -> int:
    """Return the setting of rank 1."""
    return int(np.argmin(table["rank_score"]))
