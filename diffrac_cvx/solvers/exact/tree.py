"""Branch and bound for Eq. (9): the search, and the relaxations of its nodes without and with an l1 penalty.

A node fixes the labels of some chunklets relative to each other, so that they become one chunklet, with row a.  Its
relaxation is (15) with that row instead of theirs, and its children fix one more row r with either sign.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.certificates.proof import grouped_bounds
from diffrac_cvx.certificates.values import certified_labels_value, or_zero_direction
from diffrac_cvx.machine.deadlines import Timer, is_late
from diffrac_cvx.machine.memory import available_memory, require_memory
from diffrac_cvx.machine.work import count_work, work_done
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import Chunklets
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.points import Points
from diffrac_cvx.problem.direction_problem import direction_problem
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Bracket, Progress, Status
from diffrac_cvx.rounding.directions import best_direction, oriented_direction
from diffrac_cvx.solvers.factored.solver import low_rank

Signs = npt.NDArray[np.int8]  # of the chunklets, 0 if free

MAX_MERGED = 200  # relaxations with inequalities that are solved for persistent points
GAP_RATIO = 0.15  # of cutoff - upper bound: gap at which to stop solving a node that cannot reach the cutoff


class Node(NamedTuple):
    """Node: certified lower bound on the objective of its labels, number, signs, and the solution of its relaxation."""

    lower: float
    number: int
    signs: Signs
    solution: Any  # warm start of the children; None if not solved


class Tree(ABC):
    """State of a branch-and-bound search: open nodes, incumbent labels, and smallest bound of the closed nodes.

    The (m, D) rows are signed sums of the points of each chunklet; the sign of a zero row does not matter.  That of the
    ``anchor`` is fixed by symmetry.  ``floor`` is a certified lower bound on the objective of all labels, by ``n_cuts``
    inequalities; ``n_excluded`` columns are reported with the bounds.
    """

    batch_size = 1  # nodes solved together, in a fraction of a second

    def __init__(self, rows: Array, anchor: int, tol: float, n_excluded: int, node_bytes: float) -> None:
        self.rows, self.anchor, self.tol, self.node_bytes = rows, anchor, tol, node_bytes
        self.n_excluded = n_excluded
        self.best, self.signs = np.inf, np.ones(len(rows))
        self.open_nodes: list[Node] = []
        self.closed_bound, self.root_bound, self.floor = np.inf, 0.0, 0.0
        self.n_nodes, self.n_cuts = 0, 0
        self.history: list[tuple[float, float, float]] = []
        self.timer = Timer(None)
        self.callback: Callable[[Bracket, int, int], bool | None] | None = None

    @abstractmethod
    def solve(self, signs: Signs, starts: Sequence[Any], cutoff: float) -> tuple[Array, list[Any]]:
        """Return certified lower bounds and solutions of k nodes, (k, m) signs, from warm starts or None.

        The bounds need not be tight above the cutoff, nor if they cannot reach it.
        """

    def factors(self, solutions: Sequence[Any]) -> Array:
        """Return the factors of V in solutions of k nodes, (k, D, r)."""
        U = [one if isinstance(one, np.ndarray) else dense(one.G) for one in solutions]
        r = max(each.shape[1] for each in U)
        return np.array([np.pad(each, ((0, 0), (0, r - each.shape[1]))) for each in U], dtype=float)

    @abstractmethod
    def objective(self, y: Array) -> float:
        """Return the objective of Eq. (9) at labels of the chunklets."""

    @abstractmethod
    def improve(self, y: Array) -> float:
        """Improve labels of the chunklets, try them, and return the objective of the incumbent."""

    @property
    def lower(self) -> float:
        """Certified lower bound on the objective of all labels."""
        return float(max(self.floor, min([self.closed_bound, *(node.lower for node in self.open_nodes[:1])])))

    @property
    def cutoff(self) -> float:
        """Lower bound from which a node is closed."""
        return self.best - 0.999 * self.tol

    def search(self, work: float = np.inf) -> Status | None:
        """Branch until no open node can improve on the incumbent by more than tol, or a limit is reached.

        Return None after so much work; a later call continues.  Afterwards `signs` and `best` are the best labels and
        their objective, and `lower` the bound.
        """
        root, end = np.where(self.rows.any(axis=1), 0, 1).astype(np.int8), work_done() + work
        root[self.anchor] = 1
        max_nodes = max(1000.0, 0.5 * available_memory() / self.node_bytes)
        if self.n_nodes == 0:
            self.try_labels(self.signs)
            self.open_children([Node(self.floor, 0, root, None)], root[None], np.inf)
            self.root_bound = self.lower
        while True:
            status = self.stop_status()
            if self.lower >= self.cutoff or not self.open_nodes or self.open_nodes[0].lower >= self.cutoff:
                return Status.OPTIMAL
            if len(self.open_nodes) > max_nodes:
                return Status.OUT_OF_MEMORY
            if status is not None or work_done() > end:
                return status
            # 1. The nodes of smallest bound.
            branched = list[Node]()
            while self.open_nodes and len(branched) < self.batch_size and self.open_nodes[0].lower < self.cutoff:
                branched.append(heapq.heappop(self.open_nodes))
            # 2. Branch on the row whose two signs lose most of sum sqrt(r'Vr) at V, as a product.
            signs, U = np.array([node.signs for node in branched]), self.factors([node.solution for node in branched])
            alignment = self.images(signs, U) @ self.rows.T  # r'Va
            q = np.sum((self.rows @ U) ** 2, axis=2)
            q_fixed = np.maximum(np.sum(signs * alignment, axis=1), 0.0)[:, None]
            score = np.ones(signs.shape)
            for sign in (1.0, -1.0):
                merged = np.sqrt(np.maximum(q + q_fixed + 2.0 * sign * alignment, 0.0))
                score *= np.sqrt(q) + np.sqrt(q_fixed) - merged
            chunklet = np.argmax(np.where(signs == 0, score, -np.inf), axis=1)
            # 3. Solve both children of each node.
            children = np.repeat(signs, 2, axis=0)
            children[np.arange(len(children)), np.repeat(chunklet, 2)] = np.tile([1, -1], len(branched))
            self.open_children([node for node in branched for _ in range(2)], children, self.cutoff)

    def open_children(self, parents: Sequence[Node], signs: Signs, cutoff: float) -> None:
        """Solve the children of these nodes, round their solutions, and open those with bounds below the cutoff."""
        bounds, solutions = self.solve(signs, [node.solution for node in parents], cutoff)
        first_number, self.n_nodes = self.n_nodes, self.n_nodes + len(signs)
        is_leaf = np.asarray(signs.all(axis=1))
        for y in signs[is_leaf]:
            self.try_labels(y.astype(float))
        for image in self.images(signs, self.factors(solutions)):  # the signs of r'Va for all rows r
            self.improve(np.where(self.rows @ image >= 0.0, 1.0, -1.0))
        for i, (parent, bound) in enumerate(zip(parents, bounds, strict=True)):
            lower = max(float(bound), parent.lower)
            if lower >= self.cutoff or is_leaf[i]:  # with all labels fixed, it is exact up to rounding
                self.closed_bound = min(self.closed_bound, lower)
            else:
                heapq.heappush(self.open_nodes, Node(lower, first_number + i, signs[i], solutions[i]))

    def images(self, signs: Signs, U: Array) -> Array:
        """Return Va for the fixed row a of k nodes, (k, D)."""
        return np.asarray((U @ (U.transpose(0, 2, 1) @ (signs @ self.rows)[:, :, None]))[:, :, 0])

    def try_labels(self, y: Array) -> None:
        """Make labels of the chunklets the incumbent if their objective is smaller."""
        objective = self.objective(y)
        if objective < self.best:
            self.best, self.signs = objective, y

    def stop_status(self) -> Status | None:
        """Record the bounds; return the status if the time limit or the callback stops the search, otherwise None."""
        self.history.append((self.timer.elapsed, self.lower, self.best))
        if self.timer.is_over:
            return Status.TIME_LIMIT
        bracket = Bracket(max(self.lower, 0.0), self.best, self.n_excluded)
        return (
            Status.STOPPED if self.callback is not None and self.callback(bracket, self.n_nodes, self.n_cuts) else None
        )

    def persistent(
        self,
        cutoff: float,
        labeled: int,
        status: Status,
        bound_merged: Callable[[int, int, float, float], float] | None,
    ) -> tuple[npt.NDArray[np.bool_], Status]:
        """Return the chunklets with one sign, relative to a reference, in all labels of objective at most the cutoff.

        The reference is the labelled chunklet or the anchor.  They are those for which the bound with the other sign
        exceeds the cutoff.  Where that of the root relaxation does not, `bound_merged` may return a better bound with
        z_i = s z_j from i, j, s and the number that it is to exceed: for the most promising chunklets, at most
        MAX_MERGED.  The status is that of the search, or of this step if it is cut short; chunklets undecided by then
        are not persistent.
        """
        reference = labeled if labeled >= 0 else self.anchor
        persistent, zero = np.arange(len(self.signs)) == reference, ~self.rows.any(axis=1)
        others, bounds = np.flatnonzero(~persistent & ~zero), np.full(len(self.signs), -np.inf)
        for at in range(0, len(others) if status is not Status.STOPPED else 0, self.batch_size):
            stop_status = self.stop_status()
            if stop_status is not None:
                return persistent, stop_status
            chunklets = others[at : at + self.batch_size]
            signs = np.tile(zero.astype(np.int8), (len(chunklets), 1))
            signs[:, reference] = self.signs[reference]
            signs[np.arange(len(chunklets)), chunklets] = -self.signs[chunklets]
            bounds[chunklets] = self.solve(signs, [None] * len(signs), cutoff)[0]
            persistent[chunklets] = bounds[chunklets] > cutoff
        if bound_merged is None or status is Status.STOPPED:
            return persistent, status
        undecided = others[~persistent[others]]
        for i in undecided[np.argsort(-bounds[undecided])][:MAX_MERGED]:
            stop_status = self.stop_status()
            if stop_status is not None:
                return persistent, stop_status
            sign = -self.signs[i] * self.signs[reference]
            persistent[i] = bound_merged(int(i), reference, sign, cutoff) > cutoff
        return persistent, status


class RidgeTree(Tree):
    """Branch and bound without an l1 penalty, with many small relaxations solved at once.

    In whitened coordinates, labels y have the objective 1 - |sum_i y_i r_i|^2 at their best direction, and a node is
    min over V of  1 - 2 sqrt(a'Va) - 2 sum_g sqrt(r_g'Vr_g) + tr V.  All nodes share one table of products of the rows.
    """

    def __init__(
        self, points: Points, nu: float, penalty: Penalty, chunklets: Chunklets, m: int, tol: float, n_excluded: int
    ) -> None:
        self.problem, self.is_varied = direction_problem(points, nu, penalty), bool(points.used_columns().any())
        X, n = self.problem.X, len(self.problem.X)
        S = scipy.sparse.csr_array((chunklets.sign, (chunklets.membership, np.arange(n))), shape=(m, n))
        R, self.weights = np.asarray(S @ X.array()) / n, np.asarray(abs(S) @ X.values_of_points(np.ones(n))) / n
        D = R.shape[1]
        super().__init__(R, int(np.argmax(np.sum(R**2, axis=1))), tol, n_excluded, 4.0 * D**2 + m + 400.0)
        self.upper = np.triu_indices(D)
        self.multiplicity = np.where(self.upper[0] == self.upper[1], 1.0, 2.0)
        entries = m * len(self.multiplicity)
        require_memory(8.0 * entries, f"the table of {m} rows in {D} dimensions", "select fewer columns")
        self.products = np.ascontiguousarray((R[:, self.upper[0]] * R[:, self.upper[1]]).T)
        self.batch_size = max(min(32, int(5e8 / (entries + 1))), 1)

    def solve(self, signs: Signs, starts: Sequence[Any], cutoff: float) -> tuple[Array, list[Any]]:
        D = self.rows.shape[1]
        if D == 0:  # all labels have objective 1 if the data are constant, and not only up to rounding
            return np.full(len(signs), 0.0 if self.is_varied else 1.0), [np.zeros((0, 0))] * len(signs)
        cold = 0.3 * np.random.default_rng(0).standard_normal((D, D))
        U = np.array([cold if start is None else start for start in starts], dtype=float)
        free, a = (signs == 0).astype(float), signs @ self.rows
        U = self.fixed_point(free, a, U, cutoff, 40 if np.isfinite(cutoff) else 400)
        M, total, q, q_fixed = self.sums(free, a, U, 1e-9)  # so that u = 1/sqrt(q) stays bounded
        top = np.maximum(np.max(free * self.weights / q, axis=1), (1.0 - free) @ self.weights / q_fixed)
        return grouped_bounds(self.problem, M, total, top), list(U.astype(np.float32))

    def fixed_point(self, free: Array, a: Array, U: Array, cutoff: float, steps: int) -> Array:
        """Return factors of k nodes, whose bounds reach the cutoff or are nearly tight, or after so many steps.

        The fixed-point step U -> M U is lengthened and has momentum, which is reset if the objective increases.
        """
        best, lowest, best_U = np.full(len(U), -np.inf), np.full(len(U), np.inf), U.copy()
        live, last, ahead = np.arange(len(U)), U, U
        before, weight = np.full(len(U), np.inf), np.ones(len(U))
        for step in range(1, steps + 1):
            M, total, _, _ = self.sums(free[live], a[live], ahead)
            size = np.einsum("kdr,kdr->k", ahead, ahead)
            value = 1.0 - 2.0 * total + size
            moved = ahead + 1.5 * (M @ ahead - ahead)
            worse = value > before
            weight = np.where(worse, 1.0, weight)
            following = (1.0 + np.sqrt(1.0 + 4.0 * weight**2)) / 2.0
            momentum = np.where(worse, 0.0, (weight - 1.0) / following)
            if step % 3 == 0 or step == steps or is_late():
                count_work(8.0 * M.shape[1] * M.size)
                bound = 1.0 - np.linalg.eigvalsh(M)[:, -1] * total
                better = bound > best[live]
                best[live[better]], best_U[live[better]] = bound[better], ahead[better]
                lowest[live] = np.minimum(lowest[live], 1.0 - total**2 / size)
                gap, missing = lowest[live] - best[live], cutoff - lowest[live]
                on = (best[live] < cutoff + 1e-12) & (gap >= 1e-9)
                on &= np.isinf(cutoff) | (gap >= GAP_RATIO * missing)
                if is_late() or not on.any():
                    break
                live, last, ahead, moved = live[on], last[on], ahead[on], moved[on]
                value, weight, following, momentum, worse = (
                    part[on] for part in (value, weight, following, momentum, worse)
                )
            ahead, last = moved + momentum[:, None, None] * (moved - last), moved
            before, weight = value, np.where(worse, 1.0, following)
        return best_U

    def sums(self, free: Array, a: Array, U: Array, floor: float = 0.0) -> tuple[Array, Array, Array, Array]:
        """Return M = sum u r r' at u = 1/sqrt(q), the sum of sqrt(q), and sqrt(q) of all rows and of a, for k nodes.

        sqrt(q) is at least floor times its mean.
        """
        V = U @ U.transpose(0, 2, 1)
        count_work(4.0 * len(U) * self.products.size)
        q = np.sqrt(np.maximum((V[:, self.upper[0], self.upper[1]] * self.multiplicity) @ self.products, 1e-300))
        q_fixed = np.sqrt(np.maximum(np.sum(np.einsum("kd,kdr->kr", a, U) ** 2, axis=1), 1e-300))
        total = (free * q).sum(axis=1) + q_fixed
        if floor:
            mean = total / (free.sum(axis=1) + 1.0)
            q, q_fixed = np.maximum(q, floor * mean[:, None]), np.maximum(q_fixed, floor * mean)
            total = (free * q).sum(axis=1) + q_fixed
        M = np.empty(V.shape)
        M[:, self.upper[0], self.upper[1]] = M[:, self.upper[1], self.upper[0]] = (free / q) @ self.products.T
        return M + a[:, :, None] * (a / q_fixed[:, None])[:, None, :], total, q, q_fixed

    def objective(self, y: Array) -> float:
        return 1.0 - float(np.sum((y @ self.rows) ** 2))

    def improve(self, y: Array) -> float:
        """Improve labels by alternation and then by single flips, as long as either improves them."""
        R, y = self.rows, np.where(self.rows @ (y @ self.rows) >= 0.0, 1.0, -1.0)
        while not is_late():
            v = y @ R
            following = np.where(R @ v >= 0.0, 1.0, -1.0)
            w = following @ R
            if w @ w > v @ v * (1.0 + 1e-13):
                y = following
                continue
            improvement = np.sum(R**2, axis=1) - y * (R @ v)
            j = int(np.argmax(improvement))
            if not improvement[j] > 1e-15:
                break
            y[j] = -y[j]
        self.try_labels(y)
        return self.best


class SparseTree(Tree):
    """Branch and bound with an l1 penalty: `low_rank` solves the relaxation of each node."""

    def __init__(
        self, points: Points, nu: float, penalty: Penalty, chunklets: Chunklets, m: int, tol: float, n_excluded: int
    ) -> None:
        self.points, self.nu, self.penalty, self.chunklets = points, nu, penalty, chunklets
        self.weights = weights_of(penalty, points.shape[1])
        X = points.array() if nu == 1.0 else points.with_offset().array()
        rows = np.zeros((m, X.shape[1]))
        np.add.at(rows, chunklets.membership, (chunklets.sign * points.normalized_weights)[:, None] * X)
        sizes = np.sum(rows[:, : points.shape[1]] ** 2 * inverse_or_one(points.mean_squares()), axis=1)
        node_bytes = 400.0 + m + 24.0 * (len(X) + sum(rows.shape))
        super().__init__(rows, int(np.argmax(sizes)), tol, n_excluded, node_bytes)

    def solve(self, signs: Signs, starts: Sequence[Any], cutoff: float) -> tuple[Array, list[Any]]:
        def should_stop(progress: Progress) -> bool:
            gap, missing = progress.upper - progress.lower, cutoff - progress.upper
            return progress.lower >= cutoff or (np.isfinite(cutoff) and gap < GAP_RATIO * missing)

        solutions = []
        for fixed, start in zip(signs, starts, strict=True):
            # The fixed chunklets become one, whose sign is known.
            merged = np.where(fixed != 0, np.argmax(fixed != 0), np.arange(len(fixed)))[self.chunklets.membership]
            sign = self.chunklets.sign * np.where(fixed != 0, fixed, 1)[self.chunklets.membership]
            chunklets = Chunklets(merged, sign, int(np.argmax(fixed != 0))).subset(merged >= 0)
            points = array_points(self.points.array(), self.points.weights, chunklets)
            limits: dict[str, Any] = {"callback": should_stop, "time_limit": self.timer.time_left}
            limits["tol"] = 0.1 * self.tol
            solutions.append(low_rank(points, self.nu, self.penalty, start=start, **limits))  # type: ignore[arg-type]
        return np.array([solution.lower for solution in solutions]), solutions

    def objective(self, y: Array) -> float:
        labels, v = oriented_direction(self.points, self.labels(y), self.weights)
        return or_zero_direction(certified_labels_value(self.points, labels, v, self.nu, self.weights), v)[0]

    def improve(self, y: Array) -> float:
        """Alternate between labels and their best direction."""
        for _ in range(20):
            labels = self.labels(y)
            mean = float(self.points.mean_of(labels))
            v = best_direction(self.points, labels - mean, self.weights)
            v = v if self.nu == 1.0 else np.append(v, (1.0 - self.nu) * mean)
            last, y = y, np.where(self.rows @ v >= 0.0, 1.0, -1.0)
            if np.array_equal(y, last):
                break
        self.try_labels(y)
        return self.best

    def labels(self, y: Array) -> Array:
        """Return the labels of the points from those of the chunklets."""
        return np.asarray(self.chunklets.sign * y[self.chunklets.membership])
