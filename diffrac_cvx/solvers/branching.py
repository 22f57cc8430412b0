"""Labels proved optimal for Eq. (9): branch and bound on links, each node a relaxation with fewer rows.

Without an l1 part, in whitened coordinates, labels y cost 1 - |sum_i y_i r_i|^2 at the best direction.  A node fixes
the labels of some groups of points: they are one row, a, and its relaxation is  min over V of
1 - 2 sqrt(a'Va) - 2 sum_g sqrt(r_g'Vr_g) + tr V  over the rows left.  The children of a node fix one row more, with
either sign.  Many nodes are solved at once, by steps that multiply one table of products of the rows.
"""

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.certificates.contradictions import require_consistent
from diffrac_cvx.certificates.proof import bounds_of_groups
from diffrac_cvx.certificates.values import proved_labels_value
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.memory import available_memory, require_memory
from diffrac_cvx.points.checks import Array, in_unit_interval, nonnegative, positive
from diffrac_cvx.points.links import Groups, Links
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import DirectionProblem, direction_problem
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, penalty_of, weights_of
from diffrac_cvx.problem.result import Bracket, Status
from diffrac_cvx.rounding.directions import best_direction

Mask = npt.NDArray[np.bool_]

AT_ONCE = 32  # nodes that are solved together
STEPS, ROOT_STEPS = 40, 400  # of the iteration, at most
CHECKED = 3  # steps between looks at the bounds
LENGTH = 1.5  # of a step, in units of the fixed-point step
CLOSE = 0.15  # of what is missing to the goal, below which the gap of a node that cannot reach it is narrow enough
SLIGHT = 1e-5  # change of a child's start
FLOOR = 1e-9  # of the mean energy, below which u = 1/sqrt(q) does not grow
STARTS, ALTERNATIONS, IMPROVED = 500, 8, 5  # roundings of the root, their alternations, those improved to the end
PROMISING = 1e-3  # labels that cost this much more than the best are improved by single changes
SHARE_OF_MEMORY = 0.5  # that the open nodes may take


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
        Why the search ended.
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
        at most so much more than these; proved.  With known labels, the sign is theirs.
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

    @property
    def gap(self) -> float:
        """Width of the bracket, not below the exact one."""
        return self.bracket.gap

    @property
    def bracket(self) -> Bracket:
        """The lower and the upper bound."""
        return Bracket(self.lower, self.upper)

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
) -> OptimalLabels:
    r"""Find labels that are proved to be the best of all, or a bracket on the cost of the best ones.

    .. math::
        \min_{y \in \{-1, 1\}^n,\ v}\ \tfrac1n \|\Pi_n y - X v\|_2^2 + \nu (1^\top y / n)^2 + \sum_j a_j^2 v_j^2

    Branch and bound: each node is the relaxation (15) in which some points are linked, whose lower bound is proved, and
    a node is closed when no labels there can cost less than the best ones found by more than tol.  The time it takes
    may grow exponentially with n, and with the gap of the relaxation; at every moment there is a bracket.

    Source: Eq. (9) with links; branch and bound is not in the paper.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        The ridge; an l1 part is not taken.
    lam, ridge : float or (d,) array, optional
        Weights instead of a penalty; lam has to be 0.
    links : Links, optional
        What is known of some points: labels that do not obey it are not looked at.
    tol : float
        Gap at which the labels count as optimal, > 0.
    time_limit : float, optional
        Seconds.
    callback : callable, optional
        Called with the bracket and the number of nodes now and then; it ends the search by returning True.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0 and of any scale: a weight of 2 counts as the same point twice, 0 as none.
    certain_within : float, optional
        Say, too, which points have the same label in every labelling whose cost is at most so much above that of the
        best one found: one relaxation more a point, after the search and whatever its limit.

    Returns
    -------
    OptimalLabels
        Labels with their bracket.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable, the links contradict each other, or there is an l1 part.
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
    if penalty.has_l1:
        raise ParameterError("optimal_labels takes a ridge and no l1 part; give lam = 0")
    nu, tol = in_unit_interval(nu, "nu"), positive(tol, "tol")
    if time_limit is not None:
        nonnegative(time_limit, "time_limit")
    points = read_points(X, sample_weight)
    given = (links or Links()).groups_of(points.given)
    inside = Groups(points.of_points(given.owner), points.of_points(given.sign), given.known)
    problem = direction_problem(points.X, nu, penalty)
    if certain_within is not None:
        nonnegative(certain_within, "certain_within")
    tree = Tree(problem, inside, given.n_groups, tol, is_varied=points.X.any())
    status = tree.search(Watch(start, time_limit, callback))
    certain = None if certain_within is None else tree.certain(certain_within, given.known)[given.owner]
    labels = given.labels(tree.signs)
    labels = labels if given.known >= 0 else labels * labels[0]
    a, c = weights_of(penalty, points.X.shape[1])
    chosen = points.of_points(labels)
    v = best_direction(points.X, chosen - points.X.mean_of(chosen), a, c)
    upper = proved_labels_value(points.X, chosen, v, nu, a, c)
    lower = max(tree.lower, 0.0)
    require_consistent(lower, upper, "these labels")
    if status is Status.OPTIMAL and upper - lower > tol:
        status = Status.STALLED
    seconds = time.perf_counter() - start
    return OptimalLabels(labels, lower, upper, status, tree.nodes, tree.root, tree.history, seconds, certain)


class Watch(NamedTuple):
    """When the search began, its limit in seconds, and what the user is told by."""

    start: float
    time_limit: float | None
    callback: Callable[[Bracket, int], bool | None] | None

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self.start

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return self.time_limit is not None and self.seconds >= self.time_limit


class Node(NamedTuple):
    """Groups whose signs are fixed, their sum a, a proved lower bound on labels with these signs, and a start for U."""

    lower: float
    number: int
    fixed: npt.NDArray[np.int32]
    signs: npt.NDArray[np.int8]
    a: Array
    U: npt.NDArray[np.float32]


class Solved(NamedTuple):
    """Relaxations of k nodes: proved lower bounds, and factors U."""

    lower: Array
    U: Array


class Sums(NamedTuple):
    """Of k nodes: M = sum of u r r' at u = 1/sqrt(q), the sum of sqrt(q), and sqrt(q) of all rows and of a."""

    M: Array
    total: Array
    q: Array
    q_fixed: Array


class Rows:
    """Rows r_g, shape (m, D), and sums over them for many nodes at a time: free (k, m) says which are not fixed."""

    def __init__(self, R: Array) -> None:
        self.R, self.size = R, R.shape[1]
        self.upper = np.triu_indices(self.size)
        self.twice = np.where(self.upper[0] == self.upper[1], 1.0, 2.0)
        entries = len(R) * len(self.twice)
        require_memory(8.0 * entries, f"the products of {len(R)} rows in {self.size} dimensions", "take fewer columns")
        self.products = np.ascontiguousarray((R[:, self.upper[0]] * R[:, self.upper[1]]).T)

    def energies(self, U: Array) -> Array:
        """Return sqrt(r_g'UU'r_g), shape (k, m)."""
        V = U @ U.transpose(0, 2, 1)
        q = (V[:, self.upper[0], self.upper[1]] * self.twice) @ self.products
        return np.asarray(np.sqrt(np.maximum(q, 1e-300)))

    def moments(self, u: Array) -> Array:
        """Return sum_g u_g r_g r_g', shape (k, D, D)."""
        M = np.empty((len(u), self.size, self.size))
        M[:, self.upper[0], self.upper[1]] = M[:, self.upper[1], self.upper[0]] = u @ self.products.T
        return M

    def sums(self, free: Array, a: Array, U: Array, floor: float = 0.0) -> Sums:
        """Return the sums of nodes at their factors; energies are kept above floor times their mean."""
        q = self.energies(U)
        q_fixed = np.sqrt(np.maximum(np.sum(np.einsum("kd,kdr->kr", a, U) ** 2, axis=1), 1e-300))
        if floor:
            mean = ((free * q).sum(axis=1) + q_fixed) / (free.sum(axis=1) + 1.0)
            q, q_fixed = np.maximum(q, floor * mean[:, None]), np.maximum(q_fixed, floor * mean)
        M = self.moments(free / q) + a[:, :, None] * (a / q_fixed[:, None])[:, None, :]
        return Sums(M, (free * q).sum(axis=1) + q_fixed, q, q_fixed)


class Tree:
    """The search: open nodes, the best labels, and the least bound of the nodes that are closed.

    Parameters
    ----------
    problem : DirectionProblem
        The problem of the points without an l1 part.
    groups : Groups
        The groups of the points.
    count : int
        How many groups there are; some may have no points of positive weight.
    tol : float
        By how much the best labels may be beaten.
    is_varied : bool
        Whether any column varies.
    """

    def __init__(
        self, problem: DirectionProblem, groups: Groups, count: int, tol: float, *, is_varied: bool = True
    ) -> None:
        n = len(problem.X)
        shares = np.full(n, 1.0 / n) if problem.counts is None else problem.counts / n
        S = scipy.sparse.csr_array((groups.sign, (groups.owner, np.arange(n))), shape=(count, n))
        self.problem, self.tol, self.rows = problem, tol, Rows(np.asarray(S @ problem.X.array()) / n)
        self.shares = np.asarray(abs(S) @ shares)
        self.best, self.signs = np.inf, np.ones(count)
        self.open: list[Node] = []
        self.taken: list[Node] = []  # from the open ones, to be branched
        self.closed, self.root, self.nodes = np.inf, 0.0, 0
        self.history: list[tuple[float, float, float]] = []
        self.is_varied, self.watch = is_varied, Watch(0.0, None, None)

    @property
    def lower(self) -> float:
        """What no labels cost less than."""
        return float(min([self.closed, *(node.lower for node in self.open[:1])]))

    @property
    def goal(self) -> float:
        """The lower bound at which a node is closed."""
        return self.best - 0.999 * self.tol

    def search(self, watch: Watch) -> Status:
        """Branch until no open node may have labels that cost less than the best ones by more than tol."""
        self.watch = watch
        if self.rows.size == 0:  # all labels cost 1, if the data are constant, and not only up to rounding
            self.root = self.closed = 0.0 if self.is_varied else 1.0
            self.keep(self.signs)
            return Status.OPTIMAL
        self.keep(self.signs)
        try:
            self.begin()
        except KeyboardInterrupt:
            self.closed = 0.0
            return Status.STOPPED
        bytes_each = 4.0 * self.rows.size**2 + 8.0 * self.rows.size + 400.0
        most = max(1000.0, SHARE_OF_MEMORY * available_memory() / bytes_each)
        while True:
            self.history.append((watch.seconds, self.lower, self.best))
            if not self.open or self.open[0].lower >= self.goal:
                return Status.OPTIMAL
            if watch.is_over:
                return Status.TIME_LIMIT
            if len(self.open) > most:
                return Status.MEMORY
            if watch.callback is not None and watch.callback(Bracket(max(self.lower, 0.0), self.best), self.nodes):
                return Status.STOPPED
            try:
                self.branch()
            except KeyboardInterrupt:  # wherever it came, what was taken is open: its children may be open too
                self.open += self.taken
                heapq.heapify(self.open)
                return Status.STOPPED

    def begin(self) -> None:
        """Solve the root: the sign of its heaviest row is free to choose."""
        R, rng = self.rows.R, np.random.default_rng(0)
        heaviest = int(np.argmax(np.sum(R**2, axis=1)))
        free, a = np.ones((1, len(R))), R[heaviest][None, :]
        free[0, heaviest] = 0.0
        start = 0.3 * rng.standard_normal((1, self.rows.size, self.rows.size))
        solved = self.solve(free, a, start, np.inf, ROOT_STEPS)
        y = np.where(rng.standard_normal((STARTS, self.rows.size)) @ solved.U[0].T @ R.T >= 0.0, 1.0, -1.0)
        for _ in range(ALTERNATIONS):
            y = np.where((y @ R) @ R.T >= 0.0, 1.0, -1.0)
        for i in np.argsort(-np.sum((y @ R) ** 2, axis=1))[:IMPROVED]:
            self.improve(y[i])
        self.root = max(float(solved.lower[0]), 0.0)
        fixed, signs = np.array([heaviest], dtype=np.int32), np.ones(1, dtype=np.int8)
        self.open = [Node(self.root, 0, fixed, signs, a[0], solved.U[0].astype(np.float32))]
        self.nodes = 1

    def branch(self) -> None:
        """Take the open nodes of the least bounds, fix one row more with either sign, and solve the children."""
        chosen = self.taken = self.open[:1]
        heapq.heappop(self.open)
        while self.open and len(chosen) < AT_ONCE and self.open[0].lower < self.goal:
            chosen.append(self.open[0])
            heapq.heappop(self.open)
        free = np.ones((len(chosen), len(self.rows.R)))
        for i, node in enumerate(chosen):
            free[i, node.fixed] = 0.0
        a, U = np.array([node.a for node in chosen]), np.array([node.U for node in chosen], dtype=np.float64)
        row = np.repeat(self.row_to_fix(free, a, U), 2)
        sign = np.tile([1.0, -1.0], len(chosen))
        free, a, U = (np.repeat(part, 2, axis=0) for part in (free, a, U))
        free[np.arange(len(row)), row] = 0.0
        a += sign[:, None] * self.rows.R[row]
        noise = np.random.default_rng(self.nodes).standard_normal(U.shape)
        solved = self.solve(free, a, U * (1.0 + SLIGHT * noise), self.goal, STEPS)
        self.nodes += len(row)
        parents = [node for node in chosen for _ in range(2)]
        self.round(parents, row, sign, free, a, solved.U)
        for i, node in enumerate(parents):
            lower = max(float(solved.lower[i]), node.lower)
            if lower >= self.goal or not free[i].any():  # what is fixed whole is as exact as rounding allows
                self.closed = min(self.closed, lower)
                continue
            fixed, signs = np.append(node.fixed, np.int32(row[i])), np.append(node.signs, np.int8(sign[i]))
            number = self.nodes + i
            heapq.heappush(self.open, Node(lower, number, fixed, signs, a[i], solved.U[i].astype(np.float32)))

    def certain(self, within: float, known: int) -> Mask:
        """Return the groups that have the sign they have beside another in all labels that cost little more.

        The other is the group of the known labels, or the heaviest: with the opposite sign beside it no labels cost
        less than the best ones and so much.
        """
        R, m = self.rows.R, len(self.rows.R)
        certain = np.zeros(m, dtype=bool)
        if self.rows.size == 0:
            return certain
        reference = known if known >= 0 else int(np.argmax(np.sum(R**2, axis=1)))
        certain[reference] = True
        self.watch = self.watch._replace(time_limit=None)
        others = np.flatnonzero(np.arange(m) != reference)
        start = 0.3 * np.random.default_rng(0).standard_normal((self.rows.size, self.rows.size))
        for at in range(0, len(others), AT_ONCE):
            rows = others[at : at + AT_ONCE]
            free = np.ones((len(rows), m))
            free[:, reference] = free[np.arange(len(rows)), rows] = 0.0
            a = self.signs[reference] * R[reference] - self.signs[rows, None] * R[rows]
            U = np.broadcast_to(start, (len(rows), *start.shape)).copy()
            certain[rows] = self.solve(free, a, U, self.best + within, STEPS).lower > self.best + within
        return certain

    def solve(self, free: Array, a: Array, U: Array, goal: float, steps: int) -> Solved:
        """Solve the relaxations of some nodes, until their bound reaches the goal or is about as good as it gets.

        The fixed-point step U -> M U, longer and with momentum that is dropped where the objective grows.
        """
        best, lowest, kept = np.full(len(U), -np.inf), np.full(len(U), np.inf), U.copy()
        live, last, ahead = np.arange(len(U)), U, U
        before, weight = np.full(len(U), np.inf), np.ones(len(U))
        for step in range(1, steps + 1):
            found = self.rows.sums(free[live], a[live], ahead)
            size = np.einsum("kdr,kdr->k", ahead, ahead)
            value = 1.0 - 2.0 * found.total + size
            moved = ahead + LENGTH * (found.M @ ahead - ahead)
            worse = value > before
            weight = np.where(worse, 1.0, weight)
            following = (1.0 + np.sqrt(1.0 + 4.0 * weight**2)) / 2.0
            momentum = np.where(worse, 0.0, (weight - 1.0) / following)
            if step % CHECKED == 0 or step == steps:
                bound = 1.0 - np.linalg.eigvalsh(found.M)[:, -1] * found.total
                better = bound > best[live]
                best[live[better]], kept[live[better]] = bound[better], ahead[better]
                lowest[live] = np.minimum(lowest[live], 1.0 - found.total**2 / size)
                gap, missing = lowest[live] - best[live], goal - lowest[live]
                done = (best[live] >= goal + 1e-12) | (gap < 1e-9) | (np.isfinite(goal) & (gap < CLOSE * missing))
                if done.all() or self.watch.is_over:
                    break
                on = ~done
                live, last, ahead, moved = live[on], last[on], ahead[on], moved[on]
                value, weight, following, momentum, worse = (
                    part[on] for part in (value, weight, following, momentum, worse)
                )
            ahead, last = moved + momentum[:, None, None] * (moved - last), moved
            before, weight = value, np.where(worse, 1.0, following)
        return Solved(self.prove(free, a, kept), kept)

    def prove(self, free: Array, a: Array, U: Array) -> Array:
        """Return proved lower bounds of nodes from their factors."""
        found = self.rows.sums(free, a, U, FLOOR)
        fixed = (1.0 - free) @ self.shares
        top = np.maximum(np.max(free * self.shares / found.q, axis=1), fixed / found.q_fixed)
        return bounds_of_groups(self.problem, found.M, found.total, top)

    def row_to_fix(self, free: Array, a: Array, U: Array) -> npt.NDArray[np.intp]:
        """Return the row of each node whose two signs cost most, as a product, where U stays as it is."""
        q = self.rows.energies(U)
        image = np.einsum("kdr,ker,ke->kd", U, U, a, optimize=True)
        q_fixed = np.sqrt(np.maximum(np.sum(image * a, axis=1), 0.0))[:, None]
        product = 2.0 * image @ self.rows.R.T
        squares = q**2 + q_fixed**2
        lost = [q + q_fixed - np.sqrt(np.maximum(squares + sign * product, 0.0)) for sign in (1.0, -1.0)]
        return np.asarray(np.argmax(np.where(free > 0.0, lost[0] * lost[1], -np.inf), axis=1))

    def round(
        self, parents: list[Node], row: npt.NDArray[np.intp], sign: Array, free: Array, a: Array, U: Array
    ) -> None:
        """Round the solutions of nodes: the signs of the rows beside a, then of the rows beside the sum of all."""
        R = self.rows.R
        image = np.einsum("kdr,ker,ke->kd", U, U, a, optimize=True)
        y = np.where(image @ R.T >= 0.0, 1.0, -1.0)
        for i in np.flatnonzero(free.sum(axis=1) == 0.0):  # nothing is left to choose
            y[i, parents[i].fixed], y[i, row[i]] = parents[i].signs, sign[i]
            self.keep(y[i])
        y = np.where((y @ R) @ R.T >= 0.0, 1.0, -1.0)
        costs = 1.0 - np.sum((y @ R) ** 2, axis=1)
        least = int(np.argmin(costs))
        if costs[least] < self.best + PROMISING:
            self.improve(y[least])

    def improve(self, y: Array) -> None:
        """Keep labels of the groups after alternation, and then after changes of one label each, if they are better."""
        R = self.rows.R
        while True:
            v = y @ R
            following = np.where(R @ v >= 0.0, 1.0, -1.0)
            w = following @ R
            if w @ w <= v @ v * (1.0 + 1e-13):
                break
            y = following
        squares = np.sum(R**2, axis=1)
        while True:
            gain = squares - y * (R @ v)
            j = int(np.argmax(gain))
            if not gain[j] > 1e-15:
                break
            y = y.copy()
            y[j] = -y[j]
            v = y @ R
        self.keep(y)

    def keep(self, y: Array) -> None:
        """Keep labels of the groups if they cost less than the best ones so far."""
        cost = 1.0 - float(np.sum((y @ self.rows.R) ** 2))
        if cost < self.best:
            self.best, self.signs = cost, y
