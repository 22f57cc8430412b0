"""Labels proved optimal for Eq. (9): branch and bound on links, with a bracket at every moment."""

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.contradictions import require_consistent
from diffrac_cvx.certificates.values import or_no_direction, proved_labels_value
from diffrac_cvx.points.checks import Array, in_unit_interval, nonnegative, positive
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.links import Groups, Links
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import direction_problem, without_collinear
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, penalty_of, weights_of
from diffrac_cvx.problem.result import Bracket, Status
from diffrac_cvx.rounding.directions import oriented_direction
from diffrac_cvx.solvers.branching.search import Search, Watch
from diffrac_cvx.solvers.branching.sparse_tree import SparseTree
from diffrac_cvx.solvers.branching.tree import Tree


@dataclass(frozen=True, eq=False)
class OptimalLabels:
    """Labels, and what is proved about all others.

    Attributes
    ----------
    labels : (n,) array
        The best labels found, -1 or +1; they obey the links.
    lower, upper : float
        No labels that obey the links cost less than the first in Eq. (9), and these cost at most the second; rounding
        is counted in both.
    status : Status
        Why the search ended; or what ended that for points that are certain, if it is not complete.
    nodes : int
        How many relaxations were solved.
    root : float
        The lower bound of the first one, without a branch.
    history : list of (seconds, lower, upper)
        The bounds as the search went on; the upper ones as computed.
    seconds : float
        Wall-clock time.
    certain : (n,) array of bool, or None
        Where it was asked for: points whose labels, up to one sign for all, are the same in every labelling that costs
        at most so much more than these; proved.  With known labels, the sign is theirs.  Points that were not decided
        when the limit or the callback ended the search are not among them.
    n_excluded : int
        Number of columns that are excluded, see `Result`: all that is stated is about the table without them.
    """

    labels: Array
    lower: float
    upper: float
    status: Status
    nodes: int
    root: float
    history: list[tuple[float, float, float]]
    seconds: float
    certain: npt.NDArray[np.bool_] | None = None
    n_excluded: int = 0

    @property
    def gap(self) -> float:
        """Width of the bracket, not below the exact one."""
        return self.bracket.gap

    @property
    def bracket(self) -> Bracket:
        """The lower and the upper bound."""
        return Bracket(self.lower, self.upper, self.n_excluded)

    def __str__(self) -> str:
        found = f"{self.bracket} after {self.nodes} relaxations in {self.seconds:.3g} s"
        if self.status is Status.OPTIMAL:
            return f"proved optimal: no labels cost less by more than the width of {found}"
        return f"{self.status}: {found}"


def optimal_labels(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    links: Links | None = None,
    tol: float = 1e-4,
    time_limit: float | None = None,
    callback: Callable[[Bracket, int], bool | None] | None = None,
    sample_weight: npt.ArrayLike | None = None,
    certain_within: float | None = None,
    executor: Executor | None = None,
) -> OptimalLabels:
    r"""Find labels that are proved to be the best of all, or a bracket on the cost of the best ones.

    .. math::
        \min_{y \in \{-1, 1\}^n,\ v}\ \tfrac1n \|\Pi_n y - X v\|_2^2 + \nu (1^\top y / n)^2 + \sum_j a_j^2 v_j^2
        + \Big( \sum_j c_j |v_j| \Big)^2

    Branch and bound: each node is the relaxation (15) in which some points are linked, whose lower bound is proved, and
    a node is closed when no labels there can cost less than the best ones found by more than tol.  The time it takes
    may grow exponentially with n, and with the gap of the relaxation; at every moment there is a bracket.  With an l1
    part the nodes are solved one at a time by `low_rank`, by components where there are some: a node takes a hundredth
    of a second or more, and a thousand times less without.

    Source: Eq. (9) with links; branch and bound is not in the paper.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Weights a and c.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, instead of a penalty: ``Penalty(lam=lam, ridge=ridge)``.
    links : Links, optional
        What is known of some points: labels that do not obey it are not looked at.
    tol : float
        Gap at which the labels count as optimal, > 0.
    time_limit : float, optional
        Seconds, for all of it.  If they end the search for points that are certain, the labels may be proved optimal
        all the same: see the bracket.
    callback : callable, optional
        Called with the bracket and the number of nodes now and then; it ends the search by returning True.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0 and of any scale: a weight of 2 counts as the same point twice, 0 as none.
    certain_within : float, optional
        Say, too, which points have the same label in every labelling whose cost is at most so much above that of the
        best one found: one relaxation more a point, after the search and within its limit.
    executor : concurrent.futures.Executor, optional
        What solves the relaxations, several at a time, as a ``ProcessPoolExecutor`` with one thread of linear algebra
        each, or the ``get_executor()`` of a dask client.  More nodes are taken at once, so that the number of
        relaxations is not that without one.

    Returns
    -------
    OptimalLabels
        Labels with their bracket.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable, or the links contradict each other.
    ContradictionError
        If the labels cost less than the lower bound: one of the two is wrong, and neither is returned.
    ResourceError
        If the rows would not fit in memory.

    Examples
    --------
    >>> found = optimal_labels([[0.0], [1.0], [2.0], [9.0]], ridge=0.1)
    >>> found.labels.tolist()
    [1.0, 1.0, 1.0, -1.0]
    """
    start = time.perf_counter()
    penalty = penalty_of(penalty, lam, ridge)
    nu, tol = in_unit_interval(nu, "nu"), positive(tol, "tol")
    if time_limit is not None:
        nonnegative(time_limit, "time_limit")
    links = links or Links()
    sample = read_points(X, sample_weight, links=links)
    given = links.groups_of(sample.given)
    inside = Groups(sample.of_points(given.owner), sample.of_points(given.sign), given.known)
    kept = without_collinear(sample.X, penalty)
    points = array_points(kept.array(), kept.shares)
    tree: Search
    if penalty.is_coupled:
        tree = SparseTree(points, nu, penalty, inside, given.n_groups, tol, executor)
    else:
        problem = direction_problem(points, nu, penalty)
        tree = Tree(problem, inside, given.n_groups, tol, executor, is_varied=points.any())
    if certain_within is not None:
        nonnegative(certain_within, "certain_within")
    tree.n_excluded = kept.n_excluded
    watch = Watch(start, time_limit, callback)
    status = tree.search(watch)
    certain = None
    if certain_within is not None:
        decided, status = tree.certain(certain_within, given.known, status)
        certain = decided[given.owner]
    labels = given.labels(tree.signs)
    labels = labels if given.known >= 0 else labels * labels[0]
    weights = weights_of(penalty, points.shape[1])
    chosen, v = oriented_direction(points, sample.of_points(labels), weights)
    upper, _ = or_no_direction(proved_labels_value(points, chosen, v, nu, weights), v)
    lower = max(tree.lower, 0.0)
    require_consistent(lower, upper, "these labels")
    if status is Status.OPTIMAL and upper - lower > tol:
        status = Status.STALLED
    found = OptimalLabels(labels, lower, upper, status, tree.nodes, tree.root, tree.history, watch.seconds, certain)
    return replace(found, n_excluded=kept.n_excluded)
