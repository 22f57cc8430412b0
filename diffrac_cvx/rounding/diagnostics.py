"""Why a split may be no answer: said before anything else, with what to change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.metrics import adjusted_rand_score
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.reading import rank_of
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Result, Status

MIN_RELATIVE_GAIN = 1e-4  # of the cost of one cluster: a relaxation that gains less has found no direction
PERFECT_FIT_COST = 1e-3  # of the cost of one cluster: a relaxation that costs less fits the points perfectly
OUTLIER_FRACTION = 0.02  # share of the points below which a cluster is a few outlying ones
STABLE_RAND_INDEX = 0.9  # adjusted Rand index from which two clusterings count as the same
USEFUL_BOUND_FRACTION = 0.1  # share of the cost of labels below which nothing useful is proved of others
N_RANDOM_LABELS, MAX_RANDOM_AS_GOOD = 40, 2  # random labels that are tried, and how many may cost no more
NO_STRUCTURE = "no structure"  # the kind that is about the table, whatever the labels
MAX_RANDOM_LABEL_POINTS = 3000  # points up to which they are
SAME_RAND_INDEX = 0.99  # adjusted Rand index from which on two groupings are called the same
VALUE_RTOL = 1e-9  # of the range of a column: values that differ by less are the same one
MIN_CATEGORY_SIZE = 5  # points of each category, on average: categories of fewer can be joined to nearly any clusters


@dataclass(frozen=True)
class Diagnostic:
    """One reason why a split says nothing about the data: what is the matter, and what to change, a sentence each."""

    code: str  # such as "constant", "one cluster", "no gain", "too few points", "few points", "coin flips"
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}"


CONSTANT_DATA = Diagnostic(
    "constant", "All points are equal in every feature: there is nothing to split.", "Check the table."
)
NO_PREFERENCE = Diagnostic("no preference", "With nu = 0 all points in one cluster cost nothing.", "Set nu to 1.")
ONE_CLUSTER_REQUESTED = Diagnostic(
    "one cluster", "n_clusters = 1 asks for no split: all points are in one cluster.", "Ask for 2 clusters or more."
)
NO_DIRECTION = Diagnostic(
    "no gain",
    "The penalty is so large that no direction is better than none: the split is an accident of the computation.",
    "Make lambda or the ridge smaller.",
)


def find_diagnostics(
    X: Array | Points,
    labels: npt.NDArray[Any],
    result: Result,
    *,
    nu: float,
    penalty: Penalty,
    n_clusters: int = 2,
    sample_weight: Array | None = None,
    objective: float | None = None,
    names: Sequence[object] | None = None,
) -> tuple[Diagnostic, ...]:
    """Return the reasons why labels say nothing about the data, the gravest first; none for an answer.

    X (n, d) is centred and in the units in which the relaxation was solved, labels (n,) are numbers or names,
    n_clusters were asked for, shares (n,) are those of the points of the total weight, None for equal ones, and names
    (d,) those of the columns, where they are known.  X that is read by parts is not searched for columns of two values.
    With the cost of the labels they are held against what is proved, and against labels drawn by coin flips.
    """
    if not X.any():
        return (CONSTANT_DATA,)
    count = len(np.unique(labels))
    table = X if not isinstance(X, Points) else X.array() if X.in_memory else None
    gains_nothing = count > 1 and nu != 0.0 and not result.lower < nu * (1.0 - MIN_RELATIVE_GAIN)
    found = [
        None if nu > 0.0 else NO_PREFERENCE,
        one_cluster(count, penalty),
        fewer_clusters(count, n_clusters),
        NO_DIRECTION if gains_nothing else None,
        too_few_points(X, result, nu),
        one_column(table, labels, names) if table is not None else None,
        outlier_cluster(labels, sample_weight),
    ]
    if objective is not None and count == n_clusters and not any(found):
        found += [
            random_labels(X, labels, penalty) if count == 2 and sample_weight is None else None,
            weak_bound(result, objective),
        ]
    return tuple(reason for reason in found if reason is not None)


def find_label_diagnostics(labels: Array, penalty: Penalty) -> tuple[Diagnostic, ...]:
    """Return the reasons that can be seen in labels (n,) alone, numbers or names, whatever method found them."""
    found = one_cluster(len(np.unique(labels)), penalty), outlier_cluster(labels)
    return tuple(reason for reason in found if reason is not None)


def one_cluster(count: int, penalty: Penalty) -> Diagnostic | None:
    """Where there is one cluster."""
    if count > 1:
        return None
    penalized = penalty.has_l1 or np.any(np.asarray(penalty.a) > 0.0)
    remedy = "Make lambda or the ridge smaller, or nu larger." if penalized else "Make nu larger, 1 at most."
    return Diagnostic(
        "one cluster", "No split was found: all points are in one cluster, which is the cheapest here.", remedy
    )


def fewer_clusters(count: int, n_clusters: int) -> Diagnostic | None:
    """Where fewer clusters were found than were asked for."""
    if count in (1, n_clusters):
        return None
    return Diagnostic(
        "fewer clusters",
        f"Only {count} of the {n_clusters} clusters that were asked for have points.",
        "Ask for fewer clusters, or make lambda or the ridge smaller.",
    )


def outlier_cluster(labels: Array, sample_weight: Array | None = None) -> Diagnostic | None:
    """Where a cluster holds a few points, or as little of the weight as a few of as many points of equal weight."""
    _, which, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    weights = None if sample_weight is None else np.bincount(which, sample_weight)
    counts = sizes if weights is None else weights * sizes.sum()
    least = int(np.argmin(counts))
    if len(sizes) == 1 or counts[least] > max(1.0, OUTLIER_FRACTION * sizes.sum()):
        return None
    points = "one point" if sizes[least] == 1 else f"{sizes[least]} of {sizes.sum()} points"
    points += "" if weights is None else f", with {weights[least]:.2g} of the weight"
    return Diagnostic(
        "few points",
        f"The split sets apart {points}: outliers, perhaps, and not a cluster.",
        "Look at these rows, leave them out if they are errors, or make the ridge larger.",
    )


def points_needed(rank: int) -> float:
    """Return the number of points below about which noise of a rank is fitted perfectly without a penalty."""
    return rank + rank * (rank - 1) / 4


def too_few_points(X: Array | Points, result: Result, nu: float) -> Diagnostic | None:
    """Where a perfect fit is no evidence, for the points are fewer than the relaxation has freedom.

    Without a penalty noise alone is fitted perfectly below about d + d(d-1)/4 points, d the rank.
    """
    if result.upper > PERFECT_FIT_COST * nu:
        return None
    n, rank = len(X), rank_of(X if isinstance(X, Points) else array_points(X))
    needed = points_needed(rank)
    if n - 1 > needed:
        return None
    return Diagnostic(
        "too few points",
        f"{n} points in {rank} dimensions can be split perfectly whatever they are (about {needed:.0f} points would be "
        "needed): this split is no evidence of clusters.",
        "Make lambda or the ridge larger, or use fewer features.",
    )


def random_labels(X: Array | Points, labels: Array, penalty: Penalty) -> Diagnostic | None:
    """Where labels of the same sizes, drawn at random, cost as little: y'(I - X(X'X + nA)^-1 X')y / n, A the ridge.

    That happens where there are about as many features as points or more; elsewhere, and with an l1 part or without a
    ridge, nothing is tried.
    """
    points = X if isinstance(X, Points) else array_points(X)
    n, d = points.shape
    a, c = penalty.weights(d)
    if 2 * d < n or n > MAX_RANDOM_LABEL_POINTS or c.any() or not np.all(a > 0.0) or not points.in_memory:
        return None
    rng, y = np.random.default_rng(0), np.where(labels == np.max(labels), 1.0, -1.0)
    Y = np.stack([y, *(rng.permutation(y) for _ in range(N_RANDOM_LABELS))], axis=1)
    Y -= Y.mean(axis=0)
    scaled = points.array() / a
    costs = np.sum(Y * np.linalg.solve(scaled @ scaled.T + n * np.eye(n), Y), axis=0)
    n_as_good = int(np.count_nonzero(costs[1:] <= costs[0]))
    if n_as_good <= MAX_RANDOM_AS_GOOD:
        return None
    return Diagnostic(
        "coin flips",
        f"Labels drawn by coin flips cost no more in {n_as_good} of {N_RANDOM_LABELS} draws: {d} features explain nearly any labels "
        f"of {n} points, and the cost says nothing for this split.",
        "Use an l1 weight (lambda), fewer features, or a larger ridge.",
    )


def weak_bound(result: Result, objective: float) -> Diagnostic | None:
    """Where so little is proved, not for want of time, that other labels may cost a tenth."""
    ended = result.status not in (Status.TIME_LIMIT, Status.STOPPED)
    if not ended or objective <= PERFECT_FIT_COST or result.lower >= USEFUL_BOUND_FRACTION * objective:
        return None
    return Diagnostic(
        "hardly proved",
        "Less than a tenth of the cost is proved to be needed: quite other labels may cost far less.",
        "Give it more time or a smaller tolerance, make the ridge larger, or use fewer features.",
    )


def no_structure(message: str) -> Diagnostic:
    """Where tables without structure split as well."""
    return Diagnostic(NO_STRUCTURE, message, "Do not use these clusters; try other features, or other weights.")


def unstable(changed: str, index: float) -> Diagnostic | None:
    """Where the labels are others after a change that should not matter; the index is the adjusted Rand index."""
    if index >= STABLE_RAND_INDEX:
        return None
    return Diagnostic(
        "unstable",
        f"With {changed} the clusters are others: the adjusted Rand index between the two is {index:.2f}.",
        "Do not rely on single points; make the ridge larger, or use fewer features.",
    )


def one_column(X: Array, labels: npt.ArrayLike, names: Sequence[object] | None = None) -> Diagnostic | None:
    """Return the reservation that clusters are the values of one column of two, or the categories of one group.

    A table with such a column is split along it at next to no cost, whatever the others hold, so that its low cost is
    no evidence of clusters.  A group is of neighbouring columns of two values each, of which exactly one has the larger
    value in every row, as one-hot coding makes them; clusters may each be several of its categories.

    Parameters
    ----------
    X : (n, d) array
        The table, in any units.
    labels : (n,) array
        The clusters of its rows, numbers or names.
    names : sequence of d names, optional
        Those of the columns; by default they are counted from 0.

    Returns
    -------
    Reservation or None
        None where there is no such column or group (an adjusted Rand index of at least .99 counts as equal), and where
        X has one column only, for a table of one column has nothing else to say.
    """
    found, which = np.unique(np.asarray(labels), return_inverse=True)
    if X.shape[1] < 2 or len(found) < 2:
        return None
    columns, high = two_valued_columns(X)
    titles = [str(j) if names is None else repr(str(names[j])) for j in columns]
    counted = " (counted from 0)" if names is None else ""
    if len(found) == 2:
        for j in np.flatnonzero(
            n_disagreements(high, which == 1) <= (1.0 - SAME_RAND_INDEX) * len(X)
        ):  # at most that many, if so equal
            if adjusted_rand_score(which, high[:, j].astype(np.int64)) >= SAME_RAND_INDEX:
                return Diagnostic(
                    "one column",
                    f"The clusters are the two values of column {titles[j]}{counted} and no more: any column of two "
                    "values can be split along so well.",
                    "Leave it out of the features, and see what the others say.",
                )
    for start, end in one_hot_groups(columns, high):
        category = np.argmax(high[:, start:end], axis=1)
        counts = np.zeros((end - start, len(found)))
        np.add.at(counts, (category, which), 1.0)
        joined = np.argmax(counts, axis=1)[category]
        if len(X) >= MIN_CATEGORY_SIZE * (end - start) and adjusted_rand_score(which, joined) >= SAME_RAND_INDEX:
            return Diagnostic(
                "one column",
                f"The clusters are the categories of one group of columns, {titles[start]} to {titles[end - 1]}"
                f"{counted}, and no more: any such group can be split along so well.",
                "Leave them out of the features, and see what the others say.",
            )
    return None


def with_names(
    diagnostics: Sequence[Diagnostic], X: Array, labels: npt.ArrayLike, names: Sequence[object]
) -> tuple[Diagnostic, ...]:
    """Return reservations about labels of X that name the columns they are about, where they only number them."""
    return tuple((one.code == "one column" and one_column(X, labels, names)) or one for one in diagnostics)


def two_valued_columns(X: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the columns that hold two values, and where they hold the larger one, (n, number of them)."""
    low, high = X.min(axis=0), X.max(axis=0)
    slack = VALUE_RTOL * (high - low)
    columns = np.flatnonzero(high > low)
    for rows in (X[:64], X):  # few columns pass the first look
        part = rows[:, columns]
        ends = (part <= (low + slack)[columns]) | (part >= (high - slack)[columns])
        columns = columns[ends.all(axis=0)]
    return columns, X[:, columns] >= (high - slack)[columns]


def n_disagreements(high: npt.NDArray[np.bool_], cluster: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return in how many rows each column differs from a group or, if that is less, from what is not in it."""
    n_different = np.sum(high != cluster[:, None], axis=0)
    return np.asarray(np.minimum(n_different, len(cluster) - n_different))


def one_hot_groups(columns: npt.NDArray[np.intp], high: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last, exclusive, of neighbouring columns of which exactly one is high in every row."""
    ends = np.append(0, np.cumsum(high.sum(axis=0)))
    for start in range(len(columns)):
        end = int(np.searchsorted(ends, ends[start] + len(high)))
        if (
            start + 2 < end < len(ends)
            and ends[end] - ends[start] == len(high)
            and columns[end - 1] - columns[start] == end - 1 - start
            and (high[:, start:end].sum(axis=1) == 1).all()
        ):
            yield start, end
