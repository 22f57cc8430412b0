"""Choose lam, ridge and nu without labels: splits along a grid, splits of halves of the points, and criteria."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.machine.time_budget import Clock, spend
from diffrac_cvx.metrics import eigenvalue_ratio
from diffrac_cvx.points.checks import Array, as_data, every_point
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.linear_algebra import mean_of, shares_within, weigh_rows
from diffrac_cvx.points.points import Points
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding import kmeans_centered
from diffrac_cvx.rounding.caveats import Reservation, find_reservations
from diffrac_cvx.rounding.directions import best_direction, threshold
from diffrac_cvx.solvers import low_rank
from diffrac_cvx.solvers.stopping import WIDE_GAP

Indices = npt.NDArray[np.intp]
TIE = 9  # decimals in which scores may differ


class Setting(NamedTuple):
    """One point of the grid: the weights of the squared l1 norm, of the ridge and of the imbalance."""

    lam: float
    ridge: float
    nu: float

    @property
    def penalty(self) -> Penalty:
        """The two first."""
        return Penalty(lam=self.lam, ridge=self.ridge)


@dataclass(frozen=True, eq=False)
class Split:
    """A split of centred points in two by a threshold on the projections X v, and the relaxation's solution."""

    setting: Setting
    v: Array
    cut: float
    result: Result

    def label(self, X: Array | Points) -> Array:
        """Return labels in {-1, 1} of points, (n,)."""
        return np.where(X @ self.v > self.cut, 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class PathEntry:
    """What is known of one setting from all points."""

    split: Split
    labels: Array  # (n,), in {-1, 1}
    label_gap: float  # their proved distance from the optimum of Eq. (9)
    eigenvalue_ratio: float  # second eigenvalue of Y over the first
    reservations: tuple[Reservation, ...]


class HeldOut(NamedTuple):
    """What one half of the points says about the other at one setting."""

    agreement: float  # of the labels predicted with those of the split of all points: their adjusted Rand index
    separation: float  # squared correlation of the labels predicted and the projections
    selected: npt.NDArray[np.bool_]  # features with a nonzero coefficient


def list_settings(lams: Sequence[float], ridges: Sequence[float], nus: Sequence[float]) -> list[Setting]:
    """Return the grid in the order in which it is solved: each setting is near the one before, large weights first."""
    down = (sorted(set(values), reverse=True) for values in (nus, ridges, lams))
    return [Setting(lam, ridge, nu) for nu, ridge, lam in product(*down)]


def split_points(
    X: Any, setting: Setting, *, start: Result | None = None, tol: float = 1e-3, time_limit: float | None = None
) -> Split:
    """Solve the relaxation, round it, and split along the direction of the labels, as `DiffracClustering` does."""
    rtol = WIDE_GAP if X.shape[1] > X.shape[0] and setting.lam > 0.0 else 0.0
    result = low_rank(X, setting.nu, setting.penalty, start=start, tol=tol, time_limit=time_limit, rtol=rtol)
    y = kmeans_centered(result.F, X.shares)
    v = best_direction(X, y - X.mean_of(y), *setting.penalty.weights(X.shape[1]))
    return Split(setting, v, threshold(X @ v, X.shares), result)


def follow_path(X: Points, settings: Sequence[Setting], *, tol: float, clock: Clock) -> list[PathEntry]:
    """Split all points at each setting, in the order of `list_settings`, each solved from the one before.

    Where the time is over there are fewer entries, but always one.
    """
    entries: list[PathEntry] = []
    start = None
    for setting in settings:
        if entries and clock.is_over:
            break
        with spend(clock.budget):
            split = split_points(X, setting, start=start, tol=tol, time_limit=clock.left)
            entries.append(judge_split(X, split))
        start = split.result if split.result.G is not None else start
    return entries


def judge_split(X: Any, split: Split) -> PathEntry:
    """Return what is known of a split of all points."""
    setting, labels = split.setting, split.label(X)
    known: dict[str, Any] = {"nu": setting.nu, "penalty": setting.penalty}
    return PathEntry(
        split,
        labels,
        certify_labels(X, labels, split.result, **known).gap,
        eigenvalue_ratio(weigh_rows(split.result.F, X.shares)),
        find_reservations(X, labels, split.result, **known, shares=X.shares),
    )


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
    X: Points, half: tuple[Indices, Indices], entries: Sequence[PathEntry], *, tol: float, clock: Clock
) -> list[HeldOut]:
    """Split half of the points at each setting and predict the others; fewer entries where the time is over."""
    kept, left_out = (X.array()[part] for part in half)
    inside, outside = (shares_within(X.shares, part) for part in half)
    points = array_points(as_data(kept, every_point(inside), warn=False), inside)
    left_out = left_out - mean_of(kept, inside)
    found = []
    for entry in entries:
        if clock.is_over:
            break
        limits: dict[str, Any] = {"tol": tol, "time_limit": clock.left}
        with spend(clock.budget):
            split = split_points(points, entry.split.setting, start=entry.split.result, **limits)
        predicted = split.label(left_out)
        found.append(
            HeldOut(
                float(agreements(np.stack([predicted, entry.labels[half[1]]]), outside)[0, 1]),
                squared_correlation(left_out @ split.v, predicted, outside),
                split.v != 0.0,
            )
        )
    return found


def squared_correlation(values: Array, labels: Array, shares: Array | None = None) -> float:
    """Return the squared correlation of numbers and labels, 0 where one of them is constant."""
    values, labels = (weigh_rows(part - mean_of(part, shares), shares) for part in (values, labels))
    scale = float(values @ values) * float(labels @ labels)
    return min(float(values @ labels) ** 2 / scale, 1.0) if scale > 0.0 else 0.0


def agreements(labels: Array, shares: Array | None = None) -> Array:
    r"""Return the adjusted Rand index of each pair of splits in two, 0 where one of the pair is a single cluster.

    With :math:`\binom{\cdot}{2}` the pairs of points, it is the number of pairs together in both, minus its mean under
    random labels with the same sizes, over what two equal splits would give.  Where the points have shares of the
    weight, pairs are drawn by these, with replacement, so that only the proportions count.  Labels are (m, n), in
    {-1, 1}; the result is (m, m), 1 for equal splits and about 0 for independent ones.
    """
    m, n = labels.shape
    above = (labels > 0).astype(float)
    weighed, total = (above, float(n)) if shares is None else (above * shares, 1.0)
    both = weighed @ above.T
    sizes = weighed.sum(axis=1)
    pairs: Callable[[Any], Any] = (lambda count: count * (count - 1.0) / 2.0) if shares is None else np.square
    first = np.broadcast_to(sizes[:, None], (m, m))
    second = first.T
    cells = np.stack([both, first - both, second - both, total - first - second + both])
    together = pairs(cells).sum(axis=0)
    within = pairs(sizes) + pairs(total - sizes)
    expected = np.outer(within, within) / pairs(total)
    spread = (within[:, None] + within[None, :]) / 2 - expected
    single = np.asarray(~above.any(axis=1) | above.all(axis=1))
    usable = (spread > 0.0) & ~single[:, None] & ~single[None, :]
    return np.where(usable, (together - expected) / np.where(usable, spread, 1.0), 0.0)


CRITERIA = {  # each an entry of the table; the largest is best
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
    labels = np.stack([entry.labels for entry in entries])
    usable = np.array([not entry.reservations for entry in entries])
    table: dict[str, Any] = {
        **{f"param_{name}": np.array([getattr(setting, name) for setting in settings]) for name in Setting._fields},
        "params": [setting._asdict() for setting in settings],
        **table_of_halves(entries, halves),
        "consensus": mean_agreement(labels, usable, shares),
        "eigenvalue_ratio": np.array([-entry.eigenvalue_ratio for entry in entries]),
        "label_gap": np.array([-entry.label_gap for entry in entries]),
        "lower_bound": np.array([entry.split.result.lower for entry in entries]),
        "upper_bound": np.array([entry.split.result.upper for entry in entries]),
        "smallest_cluster": np.minimum((labels > 0).sum(axis=1), (labels < 0).sum(axis=1)),
        "reservations": [tuple(reservation.kind for reservation in entry.reservations) for entry in entries],
        "labels": (labels > 0).astype(np.int64),
        "coef": np.stack([entry.split.v for entry in entries]),
    }
    score = table[criterion]
    table["mean_score"] = table["consensus"] if np.isnan(score).all() else score
    table["rank_score"] = rank(table["mean_score"], usable, table["stability"])
    return table


def table_of_halves(entries: Sequence[PathEntry], halves: Sequence[Sequence[HeldOut]]) -> dict[str, Array]:
    """Return what the halves say of each setting: means over those that were solved there, NaN where none was."""
    m, d = len(entries), len(entries[0].split.v)
    means, spread = np.full((m, 2 + d), np.nan), np.full(m, np.nan)
    solved = [[half[j] for half in halves if j < len(half)] for j in range(m)]
    for j, found in enumerate(solved):
        if found:
            values = np.array([[one.agreement, one.separation, *one.selected] for one in found])
            means[j], spread[j] = values.mean(axis=0), values[:, 0].std()
    return {
        "stability": means[:, 0],
        "std_stability": spread,
        "separation": means[:, 1],
        "n_resamples": np.array([len(found) for found in solved]),
        "selection_frequencies": means[:, 2:],
    }


def mean_agreement(labels: Array, usable: npt.NDArray[np.bool_], shares: Array | None = None) -> Array:
    """Return the mean adjusted Rand index of each split with the usable ones, itself left out."""
    weights = np.tile(usable if usable.any() else ~usable, (len(labels), 1)) * (1.0 - np.eye(len(labels)))
    total = weights.sum(axis=1)
    means = (agreements(labels, shares) * weights).sum(axis=1) / np.maximum(total, 1.0)
    return np.asarray(np.where(total > 0.0, means, 1.0))


def rank(score: Array, usable: npt.NDArray[np.bool_], stability: Array) -> npt.NDArray[np.int64]:
    """Return ranks from 1: usable settings first, the larger score first; of equal ones the more stable, the first."""
    keys = [-np.nan_to_num(np.round(values, TIE), nan=-np.inf) for values in (stability, score)]
    return np.argsort(np.lexsort((*keys, ~usable))) + 1


def find_best(table: dict[str, Any]) -> int:
    """Return the setting of rank 1."""
    return int(np.argmin(table["rank_score"]))
