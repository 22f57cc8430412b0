"""Labels proved optimal for Eq. (9): branch and bound on constraints, with a bracket at every moment."""

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.consistency import require_consistent
from diffrac_cvx.certificates.values import certified_labels_value, or_zero_direction
from diffrac_cvx.points.checks import Array, in_unit_interval, nonnegative, positive
from diffrac_cvx.points.constraints import Chunklets, Constraints
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import direction_problem, without_collinear
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty, weights_of
from diffrac_cvx.problem.result import Bracket, Status
from diffrac_cvx.rounding.directions import oriented_direction
from diffrac_cvx.solvers.branching.branch_and_bound import BranchAndBound, SearchTimer
from diffrac_cvx.solvers.branching.sparse_tree import SparseTree
from diffrac_cvx.solvers.branching.tree import Tree


@dataclass(frozen=True, eq=False)
class OptimalLabels:
    """Labels, and what is proved about all others.

    Attributes
    ----------
    labels : (n,) array
        The best labels found, -1 or +1; they obey the constraints.
    lower, upper : float
        No labels that obey the constraints cost less than the first in Eq. (9), and these cost at most the second; rounding
        is counted in both.
    status : Status
        Why the search ended; or what ended that for points that are certain, if it is not complete.
    n_nodes : int
        How many relaxations were solved.
    root_bound : float
        The lower bound of the first one, without a branch.
    history : list of (seconds, lower, upper)
        The bounds as the search went on; the upper ones as computed.
    seconds : float
        Wall-clock time.
    persistent : (n,) array of bool, or None
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
    n_nodes: int
    root_bound: float
    history: list[tuple[float, float, float]]
    seconds: float
    persistent: npt.NDArray[np.bool_] | None = None
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
        found = f"{self.bracket} after {self.n_nodes} relaxations in {self.seconds:.3g} s"
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
    constraints: Constraints | None = None,
    tol: float = 1e-4,
    time_limit: float | None = None,
    callback: Callable[[Bracket, int], bool | None] | None = None,
    sample_weight: npt.ArrayLike | None = None,
    persistency_slack: float | None = None,
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

    Source: Eq. (9) with constraints; branch and bound is not in the paper.

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
    constraints : Constraints, optional
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
    persistency_slack : float, optional
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
        If an input is not usable, or the constraints contradict each other.
    InvalidBoundError
        If the labels cost less than the lower bound: one of the two is wrong, and neither is returned.
    ResourceError
        If the rows would not fit in memory.

    Examples
    --------
    >>> found = optimal_labels([[0.0], [1.0], [2.0], [9.0]], ridge=0.1)
    >>> found.labels.tolist()
    [1.0, 1.0, 1.0, -1.0]
    """
    start_time = time.perf_counter()
    penalty = resolve_penalty(penalty, lam, ridge)
    nu, tol = in_unit_interval(nu, "nu"), positive(tol, "tol")
    if time_limit is not None:
        nonnegative(time_limit, "time_limit")
    constraints = constraints or Constraints()
    sample = read_points(X, sample_weight, constraints=constraints)
    all_chunklets = constraints.chunklets_of(sample.n_all)
    chunklets = Chunklets(
        sample.with_weight(all_chunklets.membership), sample.with_weight(all_chunklets.sign), all_chunklets.labeled
    )
    reduced = without_collinear(sample.X, penalty)
    points = array_points(reduced.array(), reduced.weights)
    tree: BranchAndBound
    if penalty.has_l1:
        tree = SparseTree(points, nu, penalty, chunklets, all_chunklets.n_chunklets, tol, executor)
    else:
        problem = direction_problem(points, nu, penalty)
        tree = Tree(problem, chunklets, all_chunklets.n_chunklets, tol, executor, is_varied=points.any())
    if persistency_slack is not None:
        nonnegative(persistency_slack, "persistency_slack")
    tree.n_excluded = reduced.n_excluded
    timer = SearchTimer(start_time, time_limit, callback)
    status = tree.search(timer)
    persistent = None
    if persistency_slack is not None:
        persistent_chunklets, status = tree.persistent(persistency_slack, all_chunklets.labeled, status)
        persistent = persistent_chunklets[all_chunklets.membership]
    labels = all_chunklets.labels_from_signs(tree.signs)
    labels = labels if all_chunklets.labeled >= 0 else labels * labels[0]
    weights = weights_of(penalty, points.shape[1])
    oriented, v = oriented_direction(points, sample.with_weight(labels), weights)
    upper, _ = or_zero_direction(certified_labels_value(points, oriented, v, nu, weights), v)
    lower = max(tree.lower, 0.0)
    require_consistent(lower, upper, "these labels")
    if status is Status.OPTIMAL and upper - lower > tol:
        status = Status.STALLED
    found = OptimalLabels(
        labels, lower, upper, status, tree.n_nodes, tree.root_bound, tree.history, timer.seconds, persistent
    )
    return replace(found, n_excluded=reduced.n_excluded)
