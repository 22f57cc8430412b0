"""Branch and bound for Eq. (9).

A node fixes the labels of some chunklets relative to each other, which merges them into one chunklet, with row a.  Its
relaxation is (15) with row a instead of their rows, and its two children fix one more row r, with either sign.
"""

import heapq
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.certificate import Proof
from diffrac_cvx.certificates.values import certified_labels_value, or_zero_direction
from diffrac_cvx.errors import DegenerateDataWarning
from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.machine.memory import available_memory
from diffrac_cvx.machine.work import work_done
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import Chunklets
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.table import Table, array_table
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Bracket, Progress, Result, Status
from diffrac_cvx.rounding.directions import LabelRegression
from diffrac_cvx.solvers.exact.feasible import FeasibleSigns
from diffrac_cvx.solvers.factored.solver import low_rank

Signs = npt.NDArray[np.int8]  # of the chunklets, 0 if free

GAP_RATIO = 0.15  # gap, relative to cutoff - upper bound, at which a node that cannot reach the cutoff stops
LEAST_GAP, MOST_STEPS = 1e-10, 1000  # smallest gap and most steps of a node; smaller gaps are rounding


class Node(NamedTuple):
    """Node of the tree: certified lower bound over its labels, number, signs, solution, and proof of the bound."""

    lower: float
    number: int
    signs: Signs
    solution: Result  # warm start of the children
    proof: Proof | None  # of the node or of its parent; None for a trivial bound


class Tree:
    """State of a branch-and-bound search: open nodes, incumbent labels, and smallest bound of the closed nodes.

    `low_rank` solves the relaxation of each node.  The (m, D) rows are signed sums of the points of each chunklet.  The
    sign of a zero row does not matter, unless it occurs in linear constraints.  The sign of the ``anchor`` is fixed by
    symmetry; with linear constraints, the anchor is the chunklet of known labels, or one without points.  ``floor`` is
    a certified lower bound on the objective of all labels, from ``n_cuts`` inequalities.  ``closed`` holds the proofs
    of the closed nodes.
    """

    def __init__(
        self,
        points: Table,
        nu: float,
        penalty: Penalty,
        chunklets: Chunklets,
        m: int,
        tol: float,
        timer: Timer,
        feasible: FeasibleSigns | None = None,
    ) -> None:
        self.n_excluded, points = points.n_excluded, array_table(points.array(), points.weights)
        self.points, self.nu, self.penalty, self.chunklets = points, nu, penalty, chunklets
        self.weights = weights_of(penalty, points.shape[1])
        self.regression = LabelRegression(points, self.weights)
        X = points.array() if nu == 1.0 else points.with_offset().array()
        self.rows = np.zeros((m, X.shape[1]))
        np.add.at(self.rows, chunklets.membership, (chunklets.sign * points.normalized_weights)[:, None] * X)
        self.matters = self.rows.any(axis=1)  # chunklets whose row is not 0
        sizes = np.sum(self.rows[:, : points.shape[1]] ** 2 * inverse_or_one(points.mean_squares()), axis=1)
        self.anchor, self.tol, self.timer = int(np.argmax(sizes)), tol, timer
        self.feasible = feasible
        if feasible is not None:
            self.anchor = feasible.anchor
            self.matters |= np.sum([abs(rows.coefficients).sum(axis=0) for rows in feasible.linear], axis=0) > 0.0
        self.node_bytes = 400.0 + m + 24.0 * (len(X) + sum(self.rows.shape))
        self.best, self.signs = np.inf, np.ones(m)
        self.open_nodes: list[Node] = []
        self.closed: list[Proof | None] = []
        self.closed_bound, self.root_bound = np.inf, 0.0
        self.trivial = 0.0 if points.used_columns().any() else nu  # smallest objective if all columns are constant
        self.floor = self.trivial
        self.n_nodes, self.n_cuts = 0, 0
        self.history: list[tuple[float, float, float]] = []
        self.callback: Callable[[Bracket, int, int], bool | None] | None = None

    def closest(self, scores: Array) -> Array | None:
        """Return the signs of the scores, or the best signs that satisfy linear constraints; None if none are found."""
        return np.where(scores >= 0.0, 1.0, -1.0) if self.feasible is None else self.feasible(scores)

    @property
    def lower(self) -> float:
        """Certified lower bound on the objective of all labels."""
        return float(max(self.floor, self.branching_bound))

    @property
    def branching_bound(self) -> float:
        """Lower bound proved by branching."""
        return min([self.closed_bound, *(node.lower for node in self.open_nodes[:1])])

    @property
    def proofs(self) -> tuple[Proof, ...]:
        """Distinct proofs of that bound, one for each branch; none if it is trivial."""
        found = {id(proof): proof for proof in [*self.closed, *(node.proof for node in self.open_nodes)]}
        return tuple(proof for proof in found.values() if proof is not None) if None not in found.values() else ()

    @property
    def cutoff(self) -> float:
        """Lower bound at or above which a node is closed."""
        return self.best - 0.999 * self.tol

    def search(self, work: float = np.inf) -> Status | None:
        """Branch until no open node can improve on the incumbent by more than tol, or a limit is reached.

        Return None after this amount of work; a later call continues.  Afterwards `signs` and `best` are the best
        labels and their objective, and `lower` the bound.
        """
        root, end = np.zeros(len(self.rows), dtype=np.int8), work_done() + work
        root[self.anchor] = 1
        max_nodes = max(1000.0, 0.5 * available_memory() / self.node_bytes)
        if self.n_nodes == 0:
            self.improve(np.zeros(len(self.rows)))
            self.open_node(root, None, np.inf)
            self.root_bound = self.lower
        while True:
            status = self.stop_status()
            if self.lower >= self.cutoff or not self.open_nodes or self.open_nodes[0].lower >= self.cutoff:
                return Status.OPTIMAL
            if len(self.open_nodes) + len(self.closed) > max_nodes:
                return Status.OUT_OF_MEMORY
            if status is not None or work_done() > end:
                return status
            # Branch the node of smallest bound on the row for which the product of the losses of sum sqrt(r'Vr), over
            # both signs, is largest.
            node = heapq.heappop(self.open_nodes)
            U = dense(node.solution.G)  # type: ignore[arg-type]
            alignment = self.rows @ (U @ (U.T @ (node.signs @ self.rows)))  # r'Va
            q = np.sum((self.rows @ U) ** 2, axis=1)
            q_fixed = max(float(node.signs @ alignment), 0.0)
            score = np.ones(len(q)) if q_fixed > 0.0 else q  # the fixed row may have no points
            for sign in (1.0, -1.0) if q_fixed > 0.0 else ():
                score *= np.sqrt(q) + q_fixed**0.5 - np.sqrt(np.maximum(q + q_fixed + 2.0 * sign * alignment, 0.0))
            chunklet = np.argmax(np.where((node.signs == 0) & self.matters, score, -np.inf))
            for sign in (1, -1):
                child = node.signs.copy()
                child[chunklet] = sign
                self.open_node(child, node, self.cutoff)

    def open_node(self, signs: Signs, parent: Node | None, cutoff: float) -> None:
        """Solve a node from its parent's solution, round it, and open the node if its bound is below the cutoff."""
        if self.feasible is not None and self.feasible.linear.are_contradicted(signs.astype(np.float64)):
            self.closed.append(Proof(signs=signs.astype(np.float64)))
            return
        solution = self.solve(signs, None if parent is None else parent.solution, cutoff)
        self.n_nodes += 1
        is_leaf = bool(signs[self.matters].all())
        if is_leaf:
            self.try_labels(np.where(signs == 0, 1.0, signs))
        U = dense(solution.G)  # type: ignore[arg-type]
        self.improve(self.rows @ (U @ (U.T @ (signs @ self.rows))))
        lower, proof = (0.0, None) if parent is None else (parent.lower, parent.proof)
        proofs = solution.certificate.proofs  # none for a trivial bound
        if solution.lower > lower and proofs:
            lower, proof = solution.lower, proofs[0]._replace(signs=signs)
        if lower >= self.cutoff or is_leaf:  # with all labels fixed, the bound is exact up to rounding
            self.closed_bound = min(self.closed_bound, lower)
            self.closed.append(proof)
        else:
            heapq.heappush(self.open_nodes, Node(lower, self.n_nodes, signs, solution, proof))

    def try_labels(self, y: Array) -> None:
        """Make labels of the chunklets the incumbent if they satisfy the constraints and their objective is smaller."""
        if self.feasible is not None and self.feasible.linear.violated(y, 1.0):
            return
        objective = self.evaluate(self.labels(y))[0]
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

    def solve(self, fixed: Signs, start: Result | None, cutoff: float) -> Result:
        """Return the solution of a node; its bounds need not be tight above the cutoff, or if they cannot reach it."""

        def should_stop(progress: Progress) -> bool:
            gap, missing = progress.upper - progress.lower, cutoff - progress.upper
            return progress.lower >= cutoff or (np.isfinite(cutoff) and gap < GAP_RATIO * missing)

        # The fixed chunklets are merged into one, with a known sign.
        points = array_table(self.points.array(), self.points.weights, self.chunklets.merged(fixed.astype(np.float64)))
        limits: dict[str, Any] = {"callback": should_stop, "time_limit": self.timer.time_left}
        limits |= {"tol": max(0.1 * self.tol, LEAST_GAP), "max_iter": MOST_STEPS}
        with warnings.catch_warnings():  # few points of a node may be degenerate
            warnings.simplefilter("ignore", DegenerateDataWarning)
            return low_rank(points, self.nu, self.penalty, start=start, **limits)  # type: ignore[arg-type]

    def evaluate(self, labels: Array) -> tuple[float, Array]:
        """Return the objective of Eq. (9) at labels of the points, and the direction at which it is certified."""
        oriented, v = self.regression.oriented(labels)
        value, v = or_zero_direction(certified_labels_value(self.points, oriented, v, self.nu, self.weights), v)
        return value, v * (oriented[0] * labels[0])

    def improve(self, scores: Array) -> float:
        """Alternate between labels and their best direction, starting from scores; return the incumbent's objective."""
        y = self.closest(scores)
        if y is None:
            return self.best
        for _ in range(20):
            labels = self.labels(y)
            mean = float(self.points.mean_of(labels))
            v = self.regression.direction(labels - mean)
            v = v if self.nu == 1.0 else np.append(v, (1.0 - self.nu) * mean)
            last, found = y, self.closest(self.rows @ v)
            if found is None or np.array_equal(found, last):
                break
            y = found
        self.try_labels(y)
        return self.best

    def labels(self, y: Array) -> Array:
        """Return the labels of the points from those of the chunklets."""
        return np.asarray(self.chunklets.sign * y[self.chunklets.membership])
