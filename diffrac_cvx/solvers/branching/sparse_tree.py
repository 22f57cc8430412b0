"""Branch and bound for Eq. (9) with an l1 penalty; `low_rank` solves the relaxation of each node.

A node fixes the labels of some chunklets relative to each other, which merges them into one chunklet.
"""

import heapq
import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.values import certified_labels_value, or_zero_direction
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import Chunklets
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.points import Points
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Progress, Result
from diffrac_cvx.rounding.directions import best_direction, oriented_direction
from diffrac_cvx.solvers.branching.branch_and_bound import BranchAndBound, branching_scores
from diffrac_cvx.solvers.factored.solver import low_rank

NodeSigns = npt.NDArray[np.int8]

NODE_TOL_FRACTION = 0.1  # tolerance of a node's relaxation, relative to that of the search
SPARSE_GAP_RATIO = (
    0.15  # gap at which to stop, relative to cutoff - upper bound, for a node that cannot reach the cutoff
)
MAX_NODE_ALTERNATIONS = 20  # in the rounding of a node


class SparseNode(NamedTuple):
    """Node: certified lower bound, number, signs of the chunklets (0 if free), and the solved relaxation."""

    lower: float
    number: int
    signs: NodeSigns
    result: Result


class SparseTree(BranchAndBound):
    """Branch and bound with an l1 penalty.

    Parameters
    ----------
    X : Points
        Centred points of positive weight, with normalised weights.
    nu : float
        Weight of the imbalance penalty.
    penalty : Penalty
        Ridge weights a and l1 weights c.
    chunklets : Chunklets
        Groups of linked points.
    n_chunklets : int
        Number of chunklets, including any without points of positive weight.
    tol : float
        Gap at which the search stops.
    """

    def __init__(
        self,
        X: Points,
        nu: float,
        penalty: Penalty,
        chunklets: Chunklets,
        n_chunklets: int,
        tol: float,
    ) -> None:
        super().__init__(tol, n_chunklets)
        self.X, self.nu, self.penalty, self.chunklets = X, nu, penalty, chunklets
        self.weights = weights_of(penalty, X.shape[1])
        point_weights = X.normalized_weights
        rows = X.array() if nu == 1.0 else X.with_offset().array()
        self.rows = np.zeros((n_chunklets, rows.shape[1]))  # signed sums of the chunklets, (n_chunklets, d or d + 1)
        np.add.at(self.rows, chunklets.membership, (chunklets.sign * point_weights)[:, None] * rows)
        self.nonempty = np.bincount(chunklets.membership, minlength=n_chunklets) > 0
        sizes = np.sum(self.rows[:, : X.shape[1]] ** 2 * inverse_or_one(X.mean_squares()), axis=1)
        self.anchor = int(np.argmax(np.where(self.nonempty, sizes, -1.0)))  # its sign is fixed by symmetry

    @property
    def node_bytes(self) -> float:
        return 400.0 + len(self.signs) + 8.0 * (len(self.X) + sum(self.rows.shape)) * 3

    def solve_root(self) -> None:
        signs = np.zeros(len(self.signs), dtype=np.int8)
        signs[self.anchor] = 1
        self.try_labels(self.signs)
        result = self.solve(signs, None, np.inf)
        self.n_nodes, self.root_bound = 1, result.lower
        self.round(signs, result)
        if signs[self.nonempty].all():
            self.closed_bound = self.root_bound
        else:
            self.open_nodes = [SparseNode(result.lower, 0, signs, result)]

    def branch(self) -> None:
        (node,) = self.pop_nodes(1)
        chunklet, cutoff = self.branching_chunklet(node), self.cutoff
        for sign in (1, -1):
            signs = node.signs.copy()
            signs[chunklet] = sign
            result = self.solve(signs, node.result, cutoff)
            self.n_nodes += 1
            self.round(signs, result)
            lower = max(result.lower, node.lower)
            if lower >= self.cutoff or signs[self.nonempty].all():
                self.closed_bound = min(self.closed_bound, lower)
            else:
                heapq.heappush(self.open_nodes, SparseNode(lower, self.n_nodes, signs, result))

    def products(self, result: Result) -> Array:
        """Return the products of the chunklets' rows with the factor of V, (n_chunklets, r)."""
        assert result.G is not None  # solvers of (15) have a V
        return np.asarray(self.rows @ dense(result.G))

    def solve(self, signs: NodeSigns, start: Result | None, cutoff: float) -> Result:
        """Solve the relaxation with the fixed chunklets merged, until its bound reaches or cannot reach the cutoff."""
        points = array_points(self.X.array(), self.X.weights, self.merged_chunklets(signs))

        def should_stop(progress: Progress) -> bool:
            gap, missing = progress.upper - progress.lower, cutoff - progress.upper
            return progress.lower >= cutoff or (np.isfinite(cutoff) and gap < SPARSE_GAP_RATIO * missing)

        deadline = self.timer.deadline
        limits: dict[str, Any] = {
            "tol": NODE_TOL_FRACTION * self.tol,
            "callback": should_stop,
            "time_limit": None if np.isinf(deadline) else max(deadline - time.perf_counter(), 1e-3),
        }
        return low_rank(points, self.nu, self.penalty, start=start, **limits)  # type: ignore[arg-type]

    def merged_chunklets(self, signs: NodeSigns) -> Chunklets:
        """Return the chunklets with the fixed ones merged into one, whose sign is known."""
        fixed = signs != 0
        owner = np.where(fixed, self.anchor, np.arange(len(signs)))[self.chunklets.membership]
        sign = self.chunklets.sign * np.where(fixed, signs, 1)[self.chunklets.membership]
        _, first, number = np.unique(owner, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))[number]
        return Chunklets(rank, sign, int(rank[np.argmax(owner == self.anchor)]))

    def branching_chunklet(self, node: SparseNode) -> int:
        """Return the free chunklet with the largest branching score at the node's V."""
        free = self.nonempty & (node.signs == 0)
        Z = self.products(node.result)
        a = node.signs @ Z
        q, q_fixed, product = np.sum(Z**2, axis=1) ** 0.5, float(a @ a) ** 0.5, 2.0 * Z @ a
        return int(np.argmax(np.where(free, branching_scores(q, q_fixed, product), -np.inf)))

    def round(self, signs: NodeSigns, result: Result) -> None:
        """Round a solution relative to the fixed signs, alternate, and keep the labels if they are better."""
        Z = self.products(result)
        y = np.where(Z @ (signs @ Z) >= 0.0, 1.0, -1.0)
        self.try_labels(np.where(signs == 0, y, signs))
        for _ in range(MAX_NODE_ALTERNATIONS):
            labels = self.labels(y)
            v, mean = self.direction(labels), float(self.X.mean_of(labels))
            scores = self.rows @ (v if self.nu == 1.0 else np.append(v, (1.0 - self.nu) * mean))
            following = np.where(scores >= 0.0, 1.0, -1.0)
            if np.array_equal(following, y):
                break
            y = following
        self.try_labels(y)

    def labels(self, y: Array) -> Array:
        """Return the labels of the points from those of the chunklets."""
        return np.asarray(self.chunklets.sign * y[self.chunklets.membership])

    def direction(self, labels: Array) -> Array:
        """Return the best direction for labels of the points."""
        return best_direction(self.X, labels - self.X.mean_of(labels), self.weights)

    def try_labels(self, y: Array) -> None:
        """Make labels of the chunklets the incumbent if their objective is smaller."""
        labels, v = oriented_direction(self.X, self.labels(y), self.weights)
        self.update_incumbent(
            y, or_zero_direction(certified_labels_value(self.X, labels, v, self.nu, self.weights), v)[0]
        )

    def reference(self, labeled: int) -> int:
        return labeled if labeled >= 0 else self.anchor

    def flip_bounds(self, reference: int, chunklets: npt.NDArray[np.intp], cutoff: float) -> Array:
        self.anchor = reference
        found = np.full(len(chunklets), -np.inf)
        for i, chunklet in enumerate(chunklets):
            if self.nonempty[chunklet]:
                signs = np.zeros(len(self.signs), dtype=np.int8)
                signs[reference], signs[chunklet] = self.signs[reference], -self.signs[chunklet]
                found[i] = self.solve(signs, None, cutoff * (1.0 + 1e-9)).lower
        return found
