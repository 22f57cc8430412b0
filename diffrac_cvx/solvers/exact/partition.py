"""Certified optimal partitions into K clusters, by cutting planes."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.certificate import Certificate
from diffrac_cvx.certificates.certify import certify_clusters
from diffrac_cvx.certificates.checker import label_proof, state
from diffrac_cvx.certificates.consistency import require_consistent
from diffrac_cvx.certificates.labels import LabelProblem, Sets
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.deadlines import Timer, is_late, time_limited
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array, in_unit_interval, nonnegative, positive, positive_int, require_callback
from diffrac_cvx.points.reading import raw_table, read_points
from diffrac_cvx.points.rows import Indices
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.direction_problem import without_collinear
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty, weights_of
from diffrac_cvx.problem.result import Bracket, Bracketed, Status
from diffrac_cvx.rounding.local_search import Partition, descend, simplex_corners, usual_partitions
from diffrac_cvx.rounding.many_clusters import ClusterIndices, renumber
from diffrac_cvx.solvers.exact.cuts import MIN_VIOLATION, NEW_CUTS, STEPS, CutRelaxation
from diffrac_cvx.solvers.exact.portfolio import CUT_BYTES, optimal_labels
from diffrac_cvx.solvers.factored.augmented_lagrangian import Memory

FLOOR_ROUNDS, FLOOR_GAIN = 20, 1e-5  # rounds with floors alone; gain in a round below which these end
SETTLED_GAP = 0.1  # fraction of the first gap below which F is no longer rotated
MAX_SET = 5  # points of the set of an inequality with a center
FEW_NEW, SMALL_VIOLATION = (
    4,
    0.15,
)  # fraction of the new inequalities, and violation, below which larger sets are added
CENTERS, SET_STARTS, NEAREST = 400, 12, 60  # points tried as centers, first members of their sets, and candidates
CLIQUE_STARTS = 3  # for each point


@dataclass(frozen=True, eq=False)
class OptimalPartition(Bracketed):
    """Result of `optimal_partition`: clusters and certified bounds on the optimal objective.

    Attributes
    ----------
    labels : (n,) array of int
        Best clusters found, 0 to K - 1, in the order of their first points; some may be empty.
    lower, upper : float
        Certified bounds, rounding errors included: no partition into at most K clusters has an objective of
        `certify_clusters` below ``lower``, and that of ``labels`` is at most ``upper``.
    status : Status
        Termination status of the search.
    n_cuts : int
        Number of inequalities at the end, in addition to the floors of all pairs.
    root_bound : float
        Lower bound with the floors alone.
    history : list of (seconds, lower, upper)
        Bounds over time; the upper bounds are not corrected for rounding.
    certificate : Certificate
        Proof of the bounds, for `check_certificate`.
    seconds : float
        Wall-clock time in seconds.
    n_excluded : int
        Number of excluded columns, see `Result`.
    """

    labels: ClusterIndices
    lower: float
    upper: float
    status: Status
    n_cuts: int
    root_bound: float
    history: list[tuple[float, float, float]]
    certificate: Certificate
    seconds: float
    n_excluded: int = 0

    def __str__(self) -> str:
        found = f"{self.bracket} with {self.n_cuts} inequalities in {self.seconds:.3g} s"
        if self.status is Status.OPTIMAL:
            return f"certified optimal to within the gap of {found}"
        return f"{self.status}: {found}"


@one_thread()
def optimal_partition(
    X: npt.ArrayLike,
    n_clusters: int,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    ridge: Weight = None,
    tol: float = 1e-4,
    time_limit: float | None = None,
    callback: Callable[[Bracket, int], bool | None] | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> OptimalPartition:
    r"""Return the best partition into at most K clusters, with certified bounds on the optimal objective.

    The objective is that of `certify_clusters`, which is Eq. (9) if K = 2.  With labels at the corners of a simplex,
    that is, with F whose unit rows have products 1 within a cluster and -1/(K - 1) between clusters, it is

    .. math:: 1 - \mathrm{tr}\, F^\top R R^\top F.

    The relaxation allows any unit rows with products of at least -1/(K - 1), and adds violated inequalities that hold
    for all partitions: triangles, one point against a set, and sets of K + 1 points, two of which must share a cluster.
    Upper bounds come from a local search, started from k-means, Ward's method, spectral clustering, and roundings of F.
    There is no branching, so the search may end with a gap.  Memory is O(n^2).

    Source: Eq. (11) and section 4 for the objective; Chopra and Rao, Math. Program. 59, 1993, for the inequalities.
    The method is not in the paper.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    n_clusters : int
        K, from 2 to the number of points.  With K = 2 the labels are those of `optimal_labels`.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.
    penalty : Penalty
        Ridge; for more than two clusters, l1 terms and sign constraints are not supported.
    ridge : float or (d,) array, optional
        Weight of the ridge, short for ``penalty=Penalty(ridge=ridge)``.
    tol : float
        Certified gap ``upper - lower`` at which the search stops, > 0; default 1e-4.
    time_limit : float, optional
        Time limit in seconds; the bounds are valid in any case.
    callback : callable, optional
        Called after each round with the bounds and the number of inequalities; return True to stop.
    sample_weight : (n,) array, optional
        Non-negative weights of the points, on any scale: weight 2 duplicates a point, weight 0 ignores it.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid.
    InvalidBoundError
        If the objective of the clusters is below the lower bound: one of the two is wrong, and neither is returned.
    ResourceError
        If the data of the search would not fit in memory.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 1.0], [5.0, 0.0], [5.1, 0.1], [2.0, 8.0], [2.1, 8.1]]
    >>> optimal_partition(X, 3, ridge=0.1).labels.tolist()
    [0, 0, 1, 1, 2, 2]
    """
    penalty, K = resolve_penalty(penalty, None, ridge), positive_int(n_clusters, "n_clusters")
    timer = Timer(None if time_limit is None else nonnegative(time_limit, "time_limit"))
    nu, tol = in_unit_interval(nu, "nu"), positive(tol, "tol")
    require_callback(callback)
    if K == 2:
        return partition_of_labels(X, nu, penalty, tol, time_limit, callback, sample_weight)
    sample = read_points(X, sample_weight)
    n, points = sample.n_all, without_collinear(sample.X, penalty)
    pair_penalty = weights_of(penalty, points.shape[1])
    if not 2 <= K <= n:
        raise ParameterError(f"n_clusters = {K} is not from 2 to the number {n} of points. Choose another.")
    if not (pair_penalty.is_zero and pair_penalty.is_even):
        raise ParameterError("penalty has an l1 term or known signs, which more than two clusters lack. Pass a ridge.")
    require_memory(CUT_BYTES * n**2, f"the optimal partition of {n} points", "use fewer points")
    counts = np.ones(n) if sample.weights is None else sample.weights.of_all()
    included = np.ones(points.shape[1], dtype=bool)
    included[[] if points.excluded is None else points.excluded.columns] = False
    one_each = np.arange(n), np.ones(n)
    problem = LabelProblem(raw_table(X), nu, pair_penalty.a, pair_penalty.c, counts, *one_each, included, n_clusters=K)
    search = PartitionCuts(problem)
    history: list[tuple[float, float, float]] = []
    with time_limited(timer.deadline):
        for start in usual_partitions(sample.X, K, rng=0):
            search.improve(sample.expand(start.astype(np.float64)))
        trivial = 0.0 if points.used_columns().any() else nu

        def report() -> Status | None:
            bracket = Bracket(max(search.lower, trivial), search.best.objective, points.n_excluded)
            history.append((timer.elapsed, bracket.lower, bracket.upper))
            if timer.is_over:
                return Status.TIME_LIMIT
            is_stopped = callback is not None and callback(bracket, search.n_cuts)
            return Status.STOPPED if is_stopped else None

        status = Status.STALLED
        if problem.least > 0.0 and problem.B.any():
            found = search.solve(lambda: search.best.objective - 0.999 * tol, search.improve, report)
            status = found or (Status.TIME_LIMIT if timer.is_over else Status.STALLED)
    labels = renumber(search.best.clusters)
    lower = max(search.lower, trivial)
    proofs = (label_proof(search.dual),) if search.dual is not None and lower > trivial else ()
    weights = None if sample.weights is None else sample.weights.of_all()
    certified = certify_clusters(X, labels, lower, K, nu=nu, penalty=penalty, sample_weight=weights)
    upper, W = certified.objective, certified.directions
    require_consistent(lower, upper, "these clusters")
    point = {"labels": labels.astype(np.float64), "direction": W, "n_clusters": K}
    fields: dict[str, Any] = {"lower": lower, "upper": upper, "proofs": proofs, **point}
    is_closed = upper - lower <= tol
    return OptimalPartition(
        labels=labels,
        lower=lower,
        upper=upper,
        status=Status.OPTIMAL if is_closed else Status.STALLED if status is Status.OPTIMAL else status,
        n_cuts=search.n_cuts,
        root_bound=max(history[0][1] if history else lower, trivial),
        history=history,
        certificate=state("clusters", nu, penalty, points, sample.weights, **fields),
        seconds=timer.elapsed,
        n_excluded=points.n_excluded,
    )


def bound_with_floors(points: Table, n_clusters: int, nu: float, penalty: PairPenalty) -> float:
    """Return a certified lower bound on the objective of K > 2 clusters, with floors but no other inequalities.

    Points must be centred and without constraints, and the penalty a ridge.
    """
    n = len(points)
    counts = np.ones(n) if points.weights is None else points.weights
    given = penalty.a, penalty.c, counts, np.arange(n), np.ones(n), points.used_columns()
    problem = LabelProblem(points.array(), nu, *given, n_clusters=n_clusters)
    if problem.least == 0.0 or not problem.B.any():
        return 0.0
    search, lower = PartitionCuts(problem), -np.inf
    search.start()
    for _ in range(FLOOR_ROUNDS):
        search.certify()
        if search.lower <= lower + FLOOR_GAIN:
            break
        lower = search.lower
        search.minimize(STEPS, Memory())
        search.update_multipliers()
    return max(search.lower, 0.0)


def partition_of_labels(
    X: npt.ArrayLike,
    nu: float,
    penalty: Penalty,
    tol: float,
    time_limit: float | None,
    callback: Callable[[Bracket, int], bool | None] | None,
    sample_weight: npt.ArrayLike | None,
) -> OptimalPartition:
    """Return the best partition into two clusters, by `optimal_labels`."""
    report = None if callback is None else lambda bracket, _, n_cuts: callback(bracket, n_cuts)
    limits = {"tol": tol, "time_limit": time_limit, "sample_weight": sample_weight}
    found = optimal_labels(X, nu, penalty, callback=report, **limits)  # type: ignore[arg-type]
    assert found.certificate is not None
    return OptimalPartition(
        labels=renumber((found.labels > 0.0).astype(np.int64)),
        lower=found.lower,
        upper=found.upper,
        status=found.status,
        n_cuts=found.n_cuts,
        root_bound=found.root_bound,
        history=found.history,
        certificate=found.certificate,
        seconds=found.seconds,
        n_excluded=found.n_excluded,
    )


class PartitionCuts(CutRelaxation):
    """Cutting planes for K > 2 clusters: floors of all pairs, and `Sets` instead of cliques of signs."""

    def __init__(self, problem: LabelProblem) -> None:
        super().__init__(problem)
        m, K = len(problem.w), problem.n_clusters
        self.floors, self.most_stiffness, self.settled_gap = np.zeros((m, m)), 1.0, SETTLED_GAP
        width = max(K + 1, MAX_SET)
        self.parts = [Sets(np.zeros(0, np.int64), np.zeros((0, width), np.int64), np.zeros(0))]
        self.index()
        self.best = Partition(np.zeros(m, dtype=np.int64), np.inf)

    def improve(self, clusters: Array) -> float:
        """Search locally from clusters, and return the smallest objective so far."""
        found = descend(self.rows, self.problem.n_clusters, clusters.astype(np.int64))
        if found.objective < self.best.objective:
            self.best = found
        return self.best.objective

    def candidates(self) -> list[Array]:
        """Return clusters from F: the nearest corners in random projections, and the nearest of K random rows."""
        (m, k), K = self.F.shape, self.problem.n_clusters
        corners = simplex_corners(K)
        found = [np.argmax(self.F @ self.rng.standard_normal((k, K - 1)) @ corners.T, axis=1) for _ in range(6)]
        chosen = self.F[self.rng.choice(m, K, replace=False)]
        return [*found, np.argmax(self.F @ chosen.T, axis=1)]

    def separate(self, Y: Array, fraction: float) -> tuple[int, float]:
        """Add violated triangles, first of a part of the rows, and larger sets if few triangles are violated."""
        m, limit = len(Y), NEW_CUTS * len(Y)
        n_rows = max(int(fraction * m), 8)
        found, worst = violated_partition_triangles(Y, self.rng.permutation(m)[:n_rows], limit)
        n_new = self.add_sets(*found)
        if fraction < 1.0:
            fraction = min(3.0 * fraction, 1.0) if len(found[0]) < limit // 4 else fraction
        elif worst < SMALL_VIOLATION and n_new < limit // FEW_NEW:
            Z = ((self.problem.n_clusters - 1.0) * Y + 1.0) / self.problem.n_clusters
            n_new += self.add_sets(*violated_sets(Z, self.rng, limit // 2))
            n_new += self.add_sets(*violated_independent_sets(Z, self.problem.n_clusters, self.rng, limit // 2))
        return n_new, fraction

    def add_sets(self, centers: Indices, members: Indices) -> int:
        """Add the inequalities that are new, and return their number."""
        old = self.parts[0]
        assert isinstance(old, Sets)
        padded = np.full((len(members), old.members.shape[1]), -1)
        padded[:, : members.shape[1]] = np.sort(members, axis=1)[:, ::-1]
        together = np.column_stack([np.append(old.centers, centers), np.vstack([old.members, padded])])
        _, first = np.unique(together, axis=0, return_index=True)
        new = np.sort(first[first >= len(old.centers)])
        kept = np.append(np.arange(len(old.centers)), new)
        multipliers = np.append(old.multipliers, np.zeros(len(new)))
        self.parts = [Sets(together[kept, 0], together[kept, 1:], multipliers)]
        self.index()
        return len(new)


Found = tuple[Indices, Indices]  # centers, (k,), and members, (k, w)


def violated_partition_triangles(Y: Array, centers: Indices, limit: int) -> tuple[Found, float]:
    """Return the most violated Y_ij + Y_ik - Y_jk <= 1 at some centers i, and their largest violation."""
    Y = np.ascontiguousarray(Y, dtype=np.float32)
    found, least, n_found = [np.zeros((0, 4))], np.float32(5.0 * MIN_VIOLATION), 0
    for i in centers:
        if is_late():
            break
        near = np.flatnonzero(Y[i] > 0.0)
        near = near[near != i]
        a = Y[i, near]
        left = a[:, None] + a - Y[np.ix_(near, near)]
        j, k = np.divmod(np.flatnonzero(left > 1.0 + least), max(len(near), 1))
        j, k = j[j < k], k[j < k]
        found.append(np.column_stack([np.full(len(j), i), near[j], near[k], left[j, k] - 1.0]))
        n_found += len(j)
        if n_found > 4 * limit:
            found = [most_violated(np.vstack(found), 2 * limit)]
            n_found, least = len(found[0]), max(least, np.float32(found[0][:, 3].min()))
    together = most_violated(np.vstack(found), limit)
    places = together[:, :3].astype(np.int64)
    return (places[:, 0], places[:, 1:]), float(together[:, 3].max(initial=0.0))


def most_violated(found: Array, limit: int) -> Array:
    """Return at most this many rows, those with the largest last entries."""
    return found[np.argpartition(-found[:, -1], limit)[:limit]] if len(found) > limit else found


def violated_sets(Z: Array, rng: np.random.Generator, limit: int) -> Found:
    """Return violated inequalities of a center and a set of at least three points, grown greedily from near points."""
    found: list[tuple[float, int, list[int]]] = []
    for i in rng.permutation(len(Z))[:CENTERS]:
        near = np.argsort(-Z[i])[: NEAREST + 1]
        near = near[(near != i) & (Z[i, near] > 0.1)]
        among, to_center = Z[np.ix_(near, near)], Z[i, near]
        for start in range(min(len(near), SET_STARTS)):
            chosen, gains = [start], to_center - among[:, start]
            value, gains[start] = float(to_center[start]), -np.inf
            while len(chosen) < MAX_SET and gains.max() > MIN_VIOLATION:
                following = int(np.argmax(gains))
                value += float(gains[following])
                chosen.append(following)
                gains = gains - among[:, following]
                gains[following] = -np.inf
            if len(chosen) > 2 and value > 1.0 + 10.0 * MIN_VIOLATION:
                found.append((value, int(i), near[chosen].tolist()))
    found.sort(key=lambda one: -one[0])
    members = np.full((min(len(found), limit), MAX_SET), -1)
    for row, (_, _, chosen) in zip(members, found, strict=False):
        row[: len(chosen)] = chosen
    return np.array([i for _, i, _ in found[:limit]], dtype=np.int64), members


def violated_independent_sets(Z: Array, n_clusters: int, rng: np.random.Generator, limit: int) -> Found:
    """Return sets of K + 1 points with sum Z < 1, by greedy choice and exchange from random pairs."""
    m, size = len(Z), n_clusters + 1
    if m < size:
        return np.zeros(0, np.int64), np.zeros((0, size), np.int64)
    starts = np.arange(CLIQUE_STARTS * min(m, CENTERS))
    chosen = np.empty((len(starts), size), dtype=np.int64)
    chosen[:, 0] = starts // CLIQUE_STARTS if m <= CENTERS else rng.integers(0, m, len(starts))
    chosen[:, 1] = (chosen[:, 0] + rng.integers(1, m, len(starts))) % m
    Z = Z.astype(np.float32)
    grown = [(position, list(range(position))) for position in range(2, size)]
    exchanged = [(position, [q for q in range(size) if q != position]) for position in range(size)]
    for position, others in [*grown, *exchanged, *exchanged]:
        sums = Z[chosen[:, others]].sum(axis=1)
        sums[starts[:, None], chosen[:, others]] = np.inf
        chosen[:, position] = np.argmin(sums, axis=1)
    total = np.sum([Z[chosen[:, a], chosen[:, b]] for a, b in combinations(range(size), 2)], axis=0)
    best = np.flatnonzero(total < 1.0 - 20.0 * MIN_VIOLATION)
    best = best[np.argsort(total[best])[:limit]]
    return np.full(len(best), -1), chosen[best]
