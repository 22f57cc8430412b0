"""Diagnostics: warnings that a clustering may not be meaningful, each with a remedy."""

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

MIN_RELATIVE_GAIN = 1e-4  # of the cost of one cluster: with a smaller gain the relaxation has found no direction
PERFECT_FIT_COST = 1e-3  # of the cost of one cluster: at a lower cost the relaxation fits the points perfectly
OUTLIER_FRACTION = 0.02  # of the points: a smaller cluster may consist of outliers
STABLE_RAND_INDEX = 0.9  # adjusted Rand index above which clusters count as unchanged
USEFUL_BOUND_FRACTION = 0.1  # of the cost of the labels: a smaller lower bound is too weak to be useful
NO_STRUCTURE = "no structure"  # the only code that concerns the table and not the labels
SAME_RAND_INDEX = 0.99  # adjusted Rand index from which two partitions count as equal
VALUE_RTOL = 1e-9  # of the range of a column: values that differ by less count as equal
MIN_CATEGORY_SIZE = 5  # mean number of points per category: smaller categories can be merged into nearly any clusters


@dataclass(frozen=True)
class Diagnostic:
    """Warning that a clustering may not be meaningful: the finding and a remedy, one sentence each."""

    code: str  # such as "constant", "one cluster", "no gain", "too few points", "few points"
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}"


CONSTANT_DATA = Diagnostic(
    "constant", "All points are equal in every feature, so there are no clusters.", "Check the table."
)
ONE_CLUSTER_REQUESTED = Diagnostic(
    "one cluster", "n_clusters = 1 puts all points in one cluster.", "Set n_clusters to at least 2."
)


def find_diagnostics(
    X: Array | Points,
    labels: npt.NDArray[Any],
    result: Result | None,
    *,
    nu: float,
    penalty: Penalty,
    n_clusters: int = 2,
    objective: float | None = None,
    names: Sequence[object] | None = None,
) -> tuple[Diagnostic, ...]:
    """Return the warnings about labels, most serious first; empty if there are none.

    X (n, d) is centred and in the units of the relaxation, with its weights if it is `Points`, labels (n,) are numbers
    or names, result is that of the relaxation (15), if there is one, n_clusters is the number requested, and names (d,)
    are the columns' names, if known.  Binary columns are not searched for if X is streamed.  If the objective of the
    labels is given, it is compared with the lower bound.
    """
    X = X if isinstance(X, Points) else array_points(X)
    if not X.used_columns().any():
        return (CONSTANT_DATA,)
    _, which, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    n, count, found = len(X), len(sizes), list[Diagnostic]()
    if nu == 0.0:
        message = "At nu = 0 a single cluster with all points has cost 0."
        found.append(Diagnostic("no preference", message, "Set nu to 1."))
    if count == 1:
        penalized = penalty.has_l1 or np.any(np.asarray(penalty.a) > 0.0)
        message = "All points are in one cluster, which has the lowest cost at these parameters."
        remedy = "Decrease lambda or the ridge, or increase nu." if penalized else "Increase nu (at most 1)."
        found.append(Diagnostic("one cluster", message, remedy))
    if count not in (1, n_clusters):
        message = f"Only {count} of the {n_clusters} requested clusters have points."
        found.append(Diagnostic("fewer clusters", message, "Request fewer clusters, or decrease lambda or the ridge."))
    if result is not None and count > 1 and nu != 0.0 and not result.lower < nu * (1.0 - MIN_RELATIVE_GAIN):
        message = "The penalty is so large that no direction lowers the cost: the clusters are arbitrary."
        found.append(Diagnostic("no gain", message, "Decrease lambda or the ridge."))
    if result is not None and result.upper <= PERFECT_FIT_COST * nu:
        needed = points_needed(rank := rank_of(X))
        if n - 1 <= needed:
            message = (
                f"Any {n} points in {rank} dimensions can be split perfectly, so the low cost is no evidence of "
                f"clusters (about {needed:.0f} points are needed)."
            )
            found.append(Diagnostic("too few points", message, "Increase lambda or the ridge, or use fewer features."))
    if (reason := one_column(X, labels, names)) is not None:
        found.append(reason)
    counts = X.times_counts(np.ones(n))  # a point of n times the mean weight counts as n points
    weighted = np.bincount(which, counts)
    least = int(np.argmin(weighted))
    if count > 1 and weighted[least] <= max(1.0, OUTLIER_FRACTION * n):
        points = "one point" if sizes[least] == 1 else f"{sizes[least]} of {n} points"
        points += f", with {weighted[least] / n:.2g} of the weight" if np.ptp(counts) else ""
        message = f"One cluster has only {points}; it may consist of outliers."
        remedy = "Inspect these rows, remove them if they are errors, or increase the ridge."
        found.append(Diagnostic("few points", message, remedy))
    if result is not None and objective is not None and count == n_clusters and not found:
        return () if (weak := weak_bound(result, objective)) is None else (weak,)
    return tuple(found)


def points_needed(rank: int) -> float:
    """Return the approximate number of points below which noise of this rank is fitted perfectly without a penalty."""
    return rank + rank * (rank - 1) / 4


def weak_bound(result: Result, objective: float) -> Diagnostic | None:
    """Return a warning if the lower bound is below a tenth of the objective, unless the time limit is the reason."""
    ended = result.status not in (Status.TIME_LIMIT, Status.STOPPED)
    if not ended or objective <= PERFECT_FIT_COST or result.lower >= USEFUL_BOUND_FRACTION * objective:
        return None
    return Diagnostic(
        "hardly proved",
        "The lower bound is below 10 % of the cost, so a very different partition may have a much lower cost.",
        "Increase the time limit or the ridge, decrease the tolerance, or use fewer features.",
    )


def no_structure(message: str) -> Diagnostic:
    """Return the warning that null data sets have as low a cost."""
    return Diagnostic(NO_STRUCTURE, message, "Do not use these clusters; try other features or penalty weights.")


def unstable(changed: str, index: float) -> Diagnostic | None:
    """Return a warning if a change that should not matter changes the clusters, by their adjusted Rand index."""
    if index >= STABLE_RAND_INDEX:
        return None
    return Diagnostic(
        "unstable",
        f"The clusters are unstable: with {changed} they change (adjusted Rand index {index:.2f}).",
        "Do not rely on the labels of single points; increase the ridge, or use fewer features.",
    )


def one_column(X: Array | Points, labels: npt.ArrayLike, names: Sequence[object] | None = None) -> Diagnostic | None:
    """Return a warning if the values of a binary column, or the categories of one-hot columns, make the clusters.

    That is so if each cluster has one value of the column, or each category is in one cluster.  A split along such a
    column has a cost near 0 whatever the other columns contain, so the low cost is no evidence of clusters.  One-hot
    columns are adjacent binary columns of which exactly one has the larger value in each row; a cluster may consist of
    several of their categories.

    Parameters
    ----------
    X : (n, d) array
        Table, in any units.
    labels : (n,) array
        Clusters of its rows, numbers or names.
    names : sequence of d names, optional
        Names of the columns; by default they are counted from 0.

    Returns
    -------
    Diagnostic or None
        None if there are no such columns (an adjusted Rand index of at least 0.99 counts as equal), or if X has only
        one column.
    """
    found, which = np.unique(np.asarray(labels), return_inverse=True)
    if X.shape[1] < 2 or len(found) < 2:
        return None
    if isinstance(X, Points) and not X.in_memory:
        return None
    columns, high = binary_columns(X.array() if isinstance(X, Points) else X)
    titles = [str(j) if names is None else repr(str(names[j])) for j in columns]
    counted = " (counted from 0)" if names is None else ""
    diagnostics: list[Diagnostic] = []
    sizes = np.bincount(which)[:, None]
    n_high = np.array([high[which == k].sum(axis=0) for k in range(len(found))])
    joined = 2 * n_high > sizes  # the more frequent value in each cluster
    n_different = np.sum(np.where(joined, sizes - n_high, n_high), axis=0)  # few are necessary for equality
    n_allowed = (1.0 - SAME_RAND_INDEX) * len(X)
    for j in np.flatnonzero(joined.any(axis=0) & ~joined.all(axis=0) & (n_different <= n_allowed)):
        if adjusted_rand_score(high[:, j], joined[which, j]) >= SAME_RAND_INDEX:
            values = f"two values of column {titles[j]}{counted}"
            made = f"The clusters are exactly the {values}"
            made = made if len(found) == 2 else f"The {values} separate the clusters exactly"
            message = f"{made}: a split along any binary column has a low cost."
            diagnostics.append(Diagnostic("one column", message, "Exclude this column and cluster again."))
    for start, end in one_hot_groups(columns, high):
        category, counts = np.argmax(high[:, start:end], axis=1), np.zeros((end - start, len(found)))
        np.add.at(counts, (category, which), 1.0)
        index = adjusted_rand_score(which, np.argmax(counts, axis=1)[category])
        if len(X) >= MIN_CATEGORY_SIZE * (end - start) and index >= SAME_RAND_INDEX:
            what = f"the categories of the one-hot columns {titles[start]} to {titles[end - 1]}{counted}"
            message = f"The clusters are exactly {what}: a split along any categories has a low cost."
            diagnostics.append(Diagnostic("one column", message, "Exclude these columns and cluster again."))
    if not diagnostics:
        return None
    return diagnostics[0] if len(found) == 2 else diagnostics[-1]  # of many clusters, all categories say more than one


def binary_columns(X: Array) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the m columns with two values, up to VALUE_RTOL times their range, and where they have the larger."""
    low, high = X.min(axis=0), X.max(axis=0)
    slack, columns = VALUE_RTOL * (high - low), np.flatnonzero(high > low)
    for rows in (X[:64], X):  # the first rows exclude most columns
        part = rows[:, columns]
        ends = (part <= (low + slack)[columns]) | (part >= (high - slack)[columns])
        columns = columns[ends.all(axis=0)]
    return columns, X[:, columns] >= (high - slack)[columns]


def one_hot_groups(columns: npt.NDArray[np.intp], high: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield start and end (exclusive) of adjacent columns of which exactly one is high in each row."""
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
