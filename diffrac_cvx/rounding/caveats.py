"""Why a split may be no answer: said before anything else, with what to change."""

from dataclasses import dataclass

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.reading import rank_of
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Result, Status

NO_GAIN = 1e-4  # of the cost of one cluster: a relaxation that gains less has found no direction
NOTHING = 1e-3  # of the cost of one cluster: a relaxation that costs less fits the points perfectly
FEW = 0.02  # share of the points below which a cluster is a few outlying ones
STABLE = 0.9  # adjusted Rand index from which two clusterings count as the same
PROVED = 0.1  # share of the cost of labels below which nothing useful is proved of others
FLIPS, LUCKY = 40, 2  # random labels that are tried, and how many may cost no more
NO_STRUCTURE = "no structure"  # the kind that is about the table, whatever the labels
MOST_FLIPPED = 3000  # points up to which they are


@dataclass(frozen=True)
class Reservation:
    """One reason why a split says nothing about the data: what is the matter, and what to change, a sentence each."""

    kind: str  # such as "constant", "one cluster", "no gain", "too few points", "few points", "coin flips"
    says: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.says} {self.remedy}"


CONSTANT = Reservation(
    "constant", "All points are equal in every feature: there is nothing to split.", "Check the table."
)
NO_PREFERENCE = Reservation("no preference", "With nu = 0 all points in one cluster cost nothing.", "Set nu to 1.")
NO_DIRECTION = Reservation(
    "no gain",
    "The penalty is so large that no direction is better than none: the split is an accident of the computation.",
    "Make lambda or the ridge smaller.",
)


def find_reservations(
    X: Array | Points,
    labels: Array,
    result: Result,
    *,
    nu: float,
    penalty: Penalty,
    n_clusters: int = 2,
    shares: Array | None = None,
    cost: float | None = None,
) -> tuple[Reservation, ...]:
    """Return the reasons why labels say nothing about the data, the gravest first; none for an answer.

    X (n, d) is centred and in the units in which the relaxation was solved, labels (n,) are numbers or names,
    n_clusters were asked for, and shares (n,) are those of the points of the total weight, None for equal ones.  With
    the cost of the labels they are held against what is proved, and against labels drawn by coin flips.
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
    if cost is not None and count == n_clusters and not any(found):
        found += [coin_flips(X, labels, penalty) if count == 2 and shares is None else None, unproved(result, cost)]
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


def freedom(X: Array | Points, result: Result, nu: float) -> Reservation | None:
    """Where a perfect fit is no evidence, for the points are fewer than the relaxation has freedom.

    Without a penalty noise alone is fitted perfectly below about d + d(d-1)/4 points, d the rank.
    """
    if result.upper > NOTHING * nu:
        return None
    n, rank = len(X), rank_of(X if isinstance(X, Points) else array_points(X))
    needed = rank + rank * (rank - 1) / 4
    if n - 1 > needed:
        return None
    return Reservation(
        "too few points",
        f"{n} points in {rank} dimensions can be split perfectly whatever they are (about {needed:.0f} points would be "
        "needed): this split is no evidence of clusters.",
        "Make lambda or the ridge larger, or use fewer features.",
    )


def coin_flips(X: Array | Points, labels: Array, penalty: Penalty) -> Reservation | None:
    """Where labels of the same sizes, drawn at random, cost as little: y'(I - X(X'X + nA)^-1 X')y / n, A the ridge.

    That happens where there are about as many features as points or more; elsewhere, and with an l1 part or without a
    ridge, nothing is tried.
    """
    points = X if isinstance(X, Points) else array_points(X)
    n, d = points.shape
    a, c = penalty.weights(d)
    if 2 * d < n or n > MOST_FLIPPED or c.any() or not np.all(a > 0.0) or not points.in_memory:
        return None
    rng, y = np.random.default_rng(0), np.where(labels == np.max(labels), 1.0, -1.0)
    Y = np.stack([y, *(rng.permutation(y) for _ in range(FLIPS))], axis=1)
    Y -= Y.mean(axis=0)
    scaled = points.array() / a
    costs = np.sum(Y * np.linalg.solve(scaled @ scaled.T + n * np.eye(n), Y), axis=0)
    lucky = int(np.count_nonzero(costs[1:] <= costs[0]))
    if lucky <= LUCKY:
        return None
    return Reservation(
        "coin flips",
        f"Labels drawn by coin flips cost no more in {lucky} of {FLIPS} draws: {d} features explain nearly any labels "
        f"of {n} points, and the cost says nothing for this split.",
        "Use an l1 weight (lambda), fewer features, or a larger ridge.",
    )


def unproved(result: Result, cost: float) -> Reservation | None:
    """Where so little is proved, not for want of time, that other labels may cost a tenth."""
    ended = result.status not in (Status.TIME_LIMIT, Status.STOPPED)
    if not ended or cost <= NOTHING or result.lower >= PROVED * cost:
        return None
    return Reservation(
        "hardly proved",
        "Less than a tenth of the cost is proved to be needed: quite other labels may cost far less.",
        "Give it more time or a smaller tolerance, make the ridge larger, or use fewer features.",
    )


def no_structure(says: str) -> Reservation:
    """Where tables without structure split as well."""
    return Reservation(NO_STRUCTURE, says, "Do not use these clusters; try other features, or other weights.")


def unstable(changed: str, index: float) -> Reservation | None:
    """Where the labels are others after a change that should not matter; the index is the adjusted Rand index."""
    if index >= STABLE:
        return None
    return Reservation(
        "unstable",
        f"With {changed} the clusters are others: the adjusted Rand index between the two is {index:.2f}.",
        "Do not rely on single points; make the ridge larger, or use fewer features.",
    )
