"""Why a split may be no answer: said before anything else, with what to change."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.reading import rank_of
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Result

NO_GAIN = 1e-4  # of the cost of one cluster: a relaxation that gains less has found no direction
NOTHING = 1e-3  # of the cost of one cluster: a relaxation that costs less fits the points perfectly
FEW = 0.02  # share of the points below which a cluster is a few outlying ones


@dataclass(frozen=True)
class Reservation:
    """One reason why a split says nothing about the data: what is the matter, and what to change, a sentence each."""

    kind: str  # "constant", "no preference", "one cluster", "fewer clusters", "no gain", "too few points", "few points"
    says: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.says} {self.remedy}"


CONSTANT = Reservation(
    "constant", "All points are equal in every feature: there is nothing to split.", "Check the table."
)
NO_PREFERENCE = Reservation("no preference", "With nu = 0 all points in one cluster cost nothing.", "Set nu to 1.")
ONE_ASKED = Reservation(
    "one cluster", "n_clusters = 1 asks for no split: all points are in one cluster.", "Ask for 2 clusters or more."
)
NO_DIRECTION = Reservation(
    "no gain",
    "The penalty is so large that no direction is better than none: the split is an accident of the computation.",
    "Make lambda or the ridge smaller.",
)


def find_reservations(
    X: Array | Points,
    labels: npt.NDArray[Any],
    result: Result,
    *,
    nu: float,
    penalty: Penalty,
    n_clusters: int = 2,
    shares: Array | None = None,
) -> tuple[Reservation, ...]:
    """Return the reasons why labels say nothing about the data, the gravest first; none for an answer.

    X (n, d) is centred and in the units in which the relaxation was solved, labels (n,) are numbers or names,
    n_clusters were asked for, and shares (n,) are those of the points of the total weight, None for equal ones.
    """
    if not X.any():
        return (CONSTANT,)
    count = len(np.unique(labels))
    gains_nothing = count > 1 and nu != 0.0 and not result.lower < nu * (1.0 - NO_GAIN)
    found = [
        None if nu > 0.0 else NO_PREFERENCE,
        one_cluster(count, penalty),
        fewer_clusters(count, n_clusters),
        NO_DIRECTION if gains_nothing else None,
        freedom(X, result, nu),
        outlying(labels, shares),
    ]
    return tuple(reason for reason in found if reason is not None)


def find_reservations_on_labels(labels: Array, penalty: Penalty) -> tuple[Reservation, ...]:
    """Return the reasons that can be seen in labels (n,) alone, numbers or names, whatever method found them."""
    found = one_cluster(len(np.unique(labels)), penalty), outlying(labels)
    return tuple(reason for reason in found if reason is not None)


def one_cluster(count: int, penalty: Penalty) -> Reservation | None:
    """Where there is one cluster."""
    if count > 1:
        return None
    penalised = penalty.has_l1 or np.any(np.asarray(penalty.a) > 0.0)
    remedy = "Make lambda or the ridge smaller, or nu larger." if penalised else "Make nu larger, 1 at most."
    return Reservation(
        "one cluster", "No split was found: all points are in one cluster, which is the cheapest here.", remedy
    )


def fewer_clusters(count: int, n_clusters: int) -> Reservation | None:
    """Where fewer clusters were found than were asked for."""
    if count in (1, n_clusters):
        return None
    return Reservation(
        "fewer clusters",
        f"Only {count} of the {n_clusters} clusters that were asked for have points.",
        "Ask for fewer clusters, or make lambda or the ridge smaller.",
    )


def outlying(labels: Array, shares: Array | None = None) -> Reservation | None:
    """Where a cluster holds a few points, or as little of the weight as a few of as many points of equal weight."""
    _, which, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    weights = None if shares is None else np.bincount(which, shares)
    counts = sizes if weights is None else weights * sizes.sum()
    least = int(np.argmin(counts))
    if len(sizes) == 1 or counts[least] > max(1.0, FEW * sizes.sum()):
        return None
    points = "one point" if sizes[least] == 1 else f"{sizes[least]} of {sizes.sum()} points"
    points += "" if weights is None else f", with {weights[least]:.2g} of the weight"
    return Reservation(
        "few points",
        f"The split sets apart {points}: outliers, perhaps, and not a cluster.",
        "Look at these rows, leave them out if they are errors, or make the ridge larger.",
    )


def points_needed(rank: int) -> float:
    """Return the number of points below about which noise of a rank is fitted perfectly without a penalty."""
    return rank + rank * (rank - 1) / 4


def freedom(X: Array | Points, result: Result, nu: float) -> Reservation | None:
    """Where a perfect fit is no evidence, for the points are fewer than the relaxation has freedom.

    Without a penalty noise alone is fitted perfectly below about d + d(d-1)/4 points, d the rank.
    """
    if result.upper > NOTHING * nu:
        return None
    n, rank = len(X), rank_of(X if isinstance(X, Points) else array_points(X))
    needed = points_needed(rank)
    if n - 1 > needed:
        return None
    return Reservation(
        "too few points",
        f"{n} points in {rank} dimensions can be split perfectly whatever they are (about {needed:.0f} points would be "
        "needed): this split is no evidence of clusters.",
        "Make lambda or the ridge larger, or use fewer features.",
    )
