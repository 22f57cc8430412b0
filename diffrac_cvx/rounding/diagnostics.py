"""Diagnostics: warnings that a clustering may not be meaningful, each with a remedy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.table import Table, array_table
from diffrac_cvx.problem.result import Result, Status

OUTLIER_FRACTION = 0.02  # of the points: a smaller cluster may consist of outliers
USEFUL_BOUND_FRACTION = 0.1  # of the objective of the labels; a smaller lower bound is too weak to be useful
SMALL_COST = 1e-3  # objective up to which no lower bound is reported as weak


@dataclass(frozen=True)
class Diagnostic:
    """Warning that a clustering may not be meaningful: the finding and a remedy, one sentence each."""

    code: str  # "small cluster", "weak bound" or "not separated"
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}"


def find_diagnostics(
    X: Array | Table,
    labels: npt.NDArray[Any],
    result: Result | None = None,
    *,
    n_clusters: int = 2,
    objective: float = 0.0,
    lower: float = 0.0,
) -> tuple[Diagnostic, ...]:
    """Return the warnings about labels: an empty or tiny cluster or, if there is none, a weak lower bound.

    X, (n, d), includes the sample weights if it is a `Table`.  The larger of the lower bound of a result of (15) and
    the given one is compared with the objective of the labels, (n,) numbers or names.
    """
    found = small_cluster(X if isinstance(X, Table) else array_table(X), labels, n_clusters)
    if found is None and result is not None:
        found = weak_bound(result, objective, lower)
    return () if found is None else (found,)


def small_cluster(X: Table, labels: npt.NDArray[Any], n_clusters: int) -> Diagnostic | None:
    """Return a warning if a requested cluster is empty, or a cluster has at most 2 % of the weight or one point."""
    _, which, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    n, count, code = len(labels), len(sizes), "small cluster"
    if count < n_clusters:
        found = f"Only {count} of the {n_clusters} requested clusters have points."
        found = "All points are in one cluster." if count == 1 else found
        fewer = ", or request fewer clusters" if n_clusters > 2 else ""
        return Diagnostic(code, found, f"Decrease lambda or the ridge, increase nu (at most 1){fewer}.")
    counts = X.times_counts(np.ones(n))  # a point of n times the mean weight counts as n points
    weighted = np.bincount(which, counts)
    least = int(np.argmin(weighted))
    if weighted[least] > max(1.0, OUTLIER_FRACTION * n):
        return None
    points = "one point" if sizes[least] == 1 else f"{sizes[least]} of {n} points"
    points += f", with {weighted[least] / n:.2g} of the weight" if np.ptp(counts) else ""
    message = f"One cluster has only {points}; it may consist of outliers."
    return Diagnostic(code, message, "Inspect these rows, remove them if they are errors, or increase the ridge.")


def weak_bound(result: Result, objective: float, lower: float) -> Diagnostic | None:
    """Return a warning if the lower bound is below a tenth of the objective, unless the solver was stopped early."""
    ended = result.status not in (Status.TIME_LIMIT, Status.STOPPED)
    if not ended or objective <= SMALL_COST or max(result.lower, lower) >= USEFUL_BOUND_FRACTION * objective:
        return None
    return Diagnostic(
        "weak bound",
        "The lower bound is below 10 % of the cost, so a very different partition may have a much lower cost.",
        "Increase the time limit or the ridge, decrease the tolerance, or use fewer features.",
    )
