"""Labels proved optimal for Eq. (9) with an l1 part: each node of the search a relaxation solved by `low_rank`.

A node fixes the labels of some groups of points, which are then one group; its relaxation is that of links.
"""

import heapq
import time
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.values import or_no_direction, proved_labels_value
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.links import Groups
from diffrac_cvx.points.points import Points
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Progress, Result
from diffrac_cvx.rounding.directions import best_direction, oriented_direction
from diffrac_cvx.solvers.branching.search import Search, cost_of_signs
from diffrac_cvx.solvers.factored.solver import low_rank

Signs = npt.NDArray[np.int8]

SHARPER = 0.1  # of the tolerance, at which a relaxation is solved
CLOSE = 0.15  # of what is missing to the goal, below which the gap of a node that cannot reach it is narrow enough
ROUNDS = 20  # of alternation
APART = 8  # nodes that are taken together where an executor solves them


class SparseNode(NamedTuple):
    """A proved lower bound, a number, the signs of the groups, 0 where these are free, and the solved relaxation."""

    lower: float
    number: int
    signs: Signs
    solved: Result


class SparseTree(Search):
    """The search with an l1 part.

    Parameters
    ----------
    X : Points
        The points of positive weight, centred, with their shares.
    nu : float
        Weight of the imbalance.
    penalty : Penalty
        Weights a and c.
    groups : Groups
        The groups of the points.
    count : int
        How many groups there are; some may have no points of positive weight.
    tol : float
        By how much the best labels may be beaten.
    executor : concurrent.futures.Executor, optional
        What solves nodes, each apart.
    """

    def __init__(
        self,
        X: Points,
        nu: float,
        penalty: Penalty,
        groups: Groups,
        count: int,
        tol: float,
        executor: Executor | None = None,
    ) -> None:
        super().__init__(tol, count, executor)
        self.X, self.nu, self.penalty, self.groups = X, nu, penalty, groups
        self.weights = weights_of(penalty, X.shape[1])
        shares = np.full(len(X), 1.0 / len(X)) if X.shares is None else X.shares
        rows = X.array() if nu == 1.0 else X.with_offset().array()
        self.rows = np.zeros((count, rows.shape[1]))  # the groups' signed sums, (count, d or d + 1)
        np.add.at(self.rows, groups.owner, (groups.sign * shares)[:, None] * rows)
        self.used = np.bincount(groups.owner, minlength=count) > 0
        sizes = np.sum(self.rows[:, : X.shape[1]] ** 2 * inverse_or_one(X.mean_squares()), axis=1)
        self.first = int(np.argmax(np.where(self.used, sizes, -1.0)))  # the group whose sign is free to choose

    @property
    def bytes_of_node(self) -> float:
        return 400.0 + len(self.signs) + 8.0 * (len(self.X) + sum(self.rows.shape)) * 3

    def begin(self) -> None:
        signs = np.zeros(len(self.signs), dtype=np.int8)
        signs[self.first] = 1
        self.keep_labels(self.signs)
        solved = self.solve(signs, None, np.inf)
        self.nodes, self.root = 1, solved.lower
        self.round(signs, solved)
        if signs[self.used].all():
            self.closed = self.root
        else:
            self.open = [SparseNode(solved.lower, 0, signs, solved)]

    def branch(self) -> None:
        children: list[tuple[SparseNode, Signs]] = []
        for node in self.take(1 if self.executor is None else APART):
            group = self.group_to_fix(node)
            for sign in (1, -1):
                signs = node.signs.copy()
                signs[group] = sign
                children.append((node, signs))
        tasks = [self.task(signs, node.solved, self.goal) for node, signs in children]
        results = map(solve_node, tasks) if self.executor is None else self.executor.map(solve_node, tasks)
        for (node, signs), solved in zip(children, results, strict=True):
            self.nodes += 1
            self.round(signs, solved)
            lower = max(solved.lower, node.lower)
            if lower >= self.goal or signs[self.used].all():
                self.closed = min(self.closed, lower)
            else:
                heapq.heappush(self.open, SparseNode(lower, self.nodes, signs, solved))

    def products(self, solved: Result) -> Array:
        """Return the products of the groups' rows with the factor of V, (count, r)."""
        assert solved.G is not None  # solvers of (15) have a V
        return np.asarray(self.rows @ dense(solved.G))

    def solve(self, signs: Signs, start: Result | None, goal: float) -> Result:
        """Return the relaxation in which the fixed groups are one, as sharp as its bound is of use."""
        return solve_node(self.task(signs, start, goal))

    def task(self, signs: Signs, start: Result | None, goal: float) -> "Task":
        """Return the relaxation in which the fixed groups are one."""
        points = array_points(self.X.array(), self.X.shares, self.joined(signs))
        return Task(points, self.nu, self.penalty, SHARPER * self.tol, start, goal, self.watch.deadline)

    def joined(self, signs: Signs) -> Groups:
        """Return the groups with those that are fixed as one, whose sign is the group's known one."""
        fixed = signs != 0
        owner = np.where(fixed, self.first, np.arange(len(signs)))[self.groups.owner]
        sign = self.groups.sign * np.where(fixed, signs, 1)[self.groups.owner]
        _, first, number = np.unique(owner, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))[number]
        return Groups(rank, sign, int(rank[np.argmax(owner == self.first)]))

    def group_to_fix(self, node: SparseNode) -> int:
        """Return the free group whose two signs cost most, as a product, where V stays as it is."""
        free = self.used & (node.signs == 0)
        Z = self.products(node.solved)
        a = node.signs @ Z
        q, q_fixed, product = np.sum(Z**2, axis=1) ** 0.5, float(a @ a) ** 0.5, 2.0 * Z @ a
        return int(np.argmax(np.where(free, cost_of_signs(q, q_fixed, product), -np.inf)))

    def round(self, signs: Signs, solved: Result) -> None:
        """Keep the signs beside those that are fixed, after alternation, if they cost less than the best ones."""
        Z = self.products(solved)
        y = np.where(Z @ (signs @ Z) >= 0.0, 1.0, -1.0)
        self.keep_labels(np.where(signs == 0, y, signs))
        for _ in range(ROUNDS):
            labels = self.labels(y)
            v, mean = self.direction(labels), float(self.X.mean_of(labels))
            scores = self.rows @ (v if self.nu == 1.0 else np.append(v, (1.0 - self.nu) * mean))
            following = np.where(scores >= 0.0, 1.0, -1.0)
            if np.array_equal(following, y):
                break
            y = following
        self.keep_labels(y)

    def labels(self, y: Array) -> Array:
        """Return the labels of the points from those of the groups."""
        return np.asarray(self.groups.sign * y[self.groups.owner])

    def direction(self, labels: Array) -> Array:
        """Return the best direction of labels of the points."""
        return best_direction(self.X, labels - self.X.mean_of(labels), self.weights)

    def keep_labels(self, y: Array) -> None:
        """Keep labels of the groups if they cost less than the best ones so far."""
        labels, v = oriented_direction(self.X, self.labels(y), self.weights)
        self.keep(y, or_no_direction(proved_labels_value(self.X, labels, v, self.nu, self.weights), v)[0])

    def reference(self, known: int) -> int:
        return known if known >= 0 else self.first

    def bounds_beside(self, reference: int, groups: npt.NDArray[np.intp], goal: float) -> Array:
        self.first = reference
        found = np.full(len(groups), -np.inf)
        for i, group in enumerate(groups):
            if self.used[group]:
                signs = np.zeros(len(self.signs), dtype=np.int8)
                signs[reference], signs[group] = self.signs[reference], -self.signs[group]
                found[i] = self.solve(signs, None, goal * (1.0 + 1e-9)).lower
        return found


class Task(NamedTuple):
    """The relaxation of a node, in a form that can be sent to another process."""

    points: Any  # `Points`, which `low_rank` takes too
    nu: float
    penalty: Penalty
    tol: float
    start: Result | None
    goal: float
    deadline: float  # in seconds of `time.time`


def solve_node(task: Task) -> Result:
    """Solve the relaxation of a node, until its bound reaches the goal, or clearly cannot."""

    def enough(progress: Progress) -> bool:
        gap, missing = progress.upper - progress.lower, task.goal - progress.upper
        return progress.lower >= task.goal or (np.isfinite(task.goal) and gap < CLOSE * missing)

    left = None if np.isinf(task.deadline) else max(task.deadline - time.time(), 1e-3)
    limits: dict[str, Any] = {"tol": task.tol, "callback": enough, "time_limit": left}
    return low_rank(task.points, task.nu, task.penalty, start=task.start, **limits)
