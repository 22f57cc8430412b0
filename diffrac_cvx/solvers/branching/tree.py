"""Branch and bound for Eq. (9) without an l1 penalty, with many small relaxations solved at once.

In whitened coordinates, labels y have the objective 1 - |sum_i y_i r_i|^2 at their best direction.  A node fixes the
labels of some chunklets, which become one row a; its relaxation is  min over V of
1 - 2 sqrt(a'Va) - 2 sum_g sqrt(r_g'Vr_g) + tr V  over the remaining rows.  The children of a node fix one more row with
either sign.  All nodes of a batch share one table of products of the rows.
"""

import heapq
import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.certificates.pencils import grouped_bounds
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import Chunklets
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.solvers.branching.branch_and_bound import BranchAndBound, branching_scores

BATCH_SIZE = 32  # nodes solved together
MAX_PRODUCT_ENTRIES = 5e8  # products of rows over the nodes solved together; they take a fraction of a second
MAX_STEPS, MAX_ROOT_STEPS = 40, 400  # of the fixed-point iteration
CHECK_INTERVAL = 3  # steps between evaluations of the bounds
STEP_LENGTH = 1.5  # relative to the fixed-point step
GAP_RATIO = 0.15  # gap at which to stop, relative to cutoff - upper bound, for a node that cannot reach the cutoff
PERTURBATION = 1e-5  # relative, of a child's warm start
QUADRATIC_FORM_FLOOR = 1e-9  # of sqrt(q), relative to its mean, so that u = 1/sqrt(q) stays bounded
ROOT_STARTS, ROOT_ALTERNATIONS, N_IMPROVED = (
    500,
    8,
    5,
)  # random roundings of the root solution, alternations of each, and how many of the best get a local search
PROMISING_MARGIN = 1e-3  # excess over the best objective up to which labels are improved by local search


class Node(NamedTuple):
    """Node: chunklets with fixed signs, the sum a of their rows, a certified lower bound, and a warm start for U."""

    lower: float
    number: int
    fixed: npt.NDArray[np.int32]
    signs: npt.NDArray[np.int8]
    a: Array
    U: npt.NDArray[np.float32]


class NodeSolutions(NamedTuple):
    """Solved relaxations of k nodes: certified lower bounds and factors U."""

    lower: Array
    U: Array


class NodeSums(NamedTuple):
    """Sums of k nodes: M = sum u r r' at u = 1/sqrt(q), the sum of sqrt(q), and sqrt(q) of all rows and of a."""

    M: Array
    total: Array
    q: Array
    q_fixed: Array


class RowProducts:
    """Rows r_g, shape (m, D), and sums over them for k nodes at a time; `free`, (k, m), is 1 for rows not fixed."""

    def __init__(self, R: Array) -> None:
        self.R, self.size = R, R.shape[1]
        self.upper = np.triu_indices(self.size)
        self.multiplicity = np.where(self.upper[0] == self.upper[1], 1.0, 2.0)
        entries = len(R) * len(self.multiplicity)
        require_memory(8.0 * entries, f"the table of {len(R)} rows in {self.size} dimensions", "select fewer columns")
        self.products = np.ascontiguousarray((R[:, self.upper[0]] * R[:, self.upper[1]]).T)

    def sqrt_quadratic_forms(self, U: Array) -> Array:
        """Return sqrt(r_g'UU'r_g), shape (k, m)."""
        V = U @ U.transpose(0, 2, 1)
        q = (V[:, self.upper[0], self.upper[1]] * self.multiplicity) @ self.products
        return np.asarray(np.sqrt(np.maximum(q, 1e-300)))

    def weighted_grams(self, u: Array) -> Array:
        """Return sum_g u_g r_g r_g', shape (k, D, D)."""
        M = np.empty((len(u), self.size, self.size))
        M[:, self.upper[0], self.upper[1]] = M[:, self.upper[1], self.upper[0]] = u @ self.products.T
        return M

    def sums(self, free: Array, a: Array, U: Array, floor: float = 0.0) -> NodeSums:
        """Return the sums of the nodes at their factors, with sqrt(q) at least floor times its mean."""
        q = self.sqrt_quadratic_forms(U)
        q_fixed = np.sqrt(np.maximum(np.sum(np.einsum("kd,kdr->kr", a, U) ** 2, axis=1), 1e-300))
        if floor:
            mean = ((free * q).sum(axis=1) + q_fixed) / (free.sum(axis=1) + 1.0)
            q, q_fixed = np.maximum(q, floor * mean[:, None]), np.maximum(q_fixed, floor * mean)
        M = self.weighted_grams(free / q) + a[:, :, None] * (a / q_fixed[:, None])[:, None, :]
        return NodeSums(M, (free * q).sum(axis=1) + q_fixed, q, q_fixed)


class Tree(BranchAndBound):
    """Branch and bound without an l1 penalty.

    Parameters
    ----------
    problem : DirectionProblem
        Problem (15) of the points, without an l1 penalty.
    chunklets : Chunklets
        Groups of linked points.
    n_chunklets : int
        Number of chunklets, including any without points of positive weight.
    tol : float
        Gap at which the search stops.
    is_varied : bool
        Whether any column is not constant.
    """

    def __init__(
        self,
        problem: DirectionProblem,
        chunklets: Chunklets,
        n_chunklets: int,
        tol: float,
        *,
        is_varied: bool = True,
    ) -> None:
        super().__init__(tol, n_chunklets)
        n = len(problem.X)
        weights = problem.X.values_of_points(np.ones(n)) / n
        S = scipy.sparse.csr_array((chunklets.sign, (chunklets.membership, np.arange(n))), shape=(n_chunklets, n))
        self.problem, self.rows = problem, RowProducts(np.asarray(S @ problem.X.array()) / n)
        self.weights = np.asarray(abs(S) @ weights)
        self.is_varied = is_varied

    @property
    def node_bytes(self) -> float:
        return float(4 * self.rows.size**2 + 8 * self.rows.size + 400)

    def solve_root(self) -> None:
        """Solve the root relaxation; the sign of the heaviest row is fixed by symmetry."""
        self.try_labels(self.signs)
        if self.rows.size == 0:  # all labels have objective 1 if the data are constant, and not only up to rounding
            self.root_bound = self.closed_bound = 0.0 if self.is_varied else 1.0
            return
        R, rng = self.rows.R, np.random.default_rng(0)
        heaviest = int(np.argmax(np.sum(R**2, axis=1)))
        free, a = np.ones((1, len(R))), R[heaviest][None, :]
        free[0, heaviest] = 0.0
        start = 0.3 * rng.standard_normal((1, self.rows.size, self.rows.size))
        solved = self.solve(free, a, start, np.inf, MAX_ROOT_STEPS)
        count = N_IMPROVED if self.timer.is_over else ROOT_STARTS
        y = np.where(rng.standard_normal((count, self.rows.size)) @ solved.U[0].T @ R.T >= 0.0, 1.0, -1.0)
        for _ in range(ROOT_ALTERNATIONS):
            if self.timer.is_over:
                break
            y = np.where((y @ R) @ R.T >= 0.0, 1.0, -1.0)
        for i in np.argsort(-np.sum((y @ R) ** 2, axis=1))[:N_IMPROVED]:
            self.local_search(y[i])
        self.root_bound = max(float(solved.lower[0]), 0.0)
        fixed, signs = np.array([heaviest], dtype=np.int32), np.ones(1, dtype=np.int8)
        self.open_nodes = [Node(self.root_bound, 0, fixed, signs, a[0], solved.U[0].astype(np.float32))]
        self.n_nodes = 1

    def branch(self) -> None:
        chosen = self.pop_nodes(BATCH_SIZE)
        free = np.ones((len(chosen), len(self.rows.R)))
        for i, node in enumerate(chosen):
            free[i, node.fixed] = 0.0
        a, U = np.array([node.a for node in chosen]), np.array([node.U for node in chosen], dtype=np.float64)
        row = np.repeat(self.branching_rows(free, a, U), 2)
        sign = np.tile([1.0, -1.0], len(chosen))
        free, a, U = (np.repeat(part, 2, axis=0) for part in (free, a, U))
        free[np.arange(len(row)), row] = 0.0
        a += sign[:, None] * self.rows.R[row]
        noise = np.random.default_rng(self.n_nodes).standard_normal(U.shape)
        solved = self.solve(free, a, U * (1.0 + PERTURBATION * noise), self.cutoff, MAX_STEPS)
        self.n_nodes += len(row)
        parents = [node for node in chosen for _ in range(2)]
        self.round(parents, row, sign, free, a, solved.U)
        for i, node in enumerate(parents):
            lower = max(float(solved.lower[i]), node.lower)
            if lower >= self.cutoff or not free[i].any():  # with all labels fixed, it is exact up to rounding
                self.closed_bound = min(self.closed_bound, lower)
                continue
            fixed, signs = np.append(node.fixed, np.int32(row[i])), np.append(node.signs, np.int8(sign[i]))
            number = self.n_nodes + i
            heapq.heappush(self.open_nodes, Node(lower, number, fixed, signs, a[i], solved.U[i].astype(np.float32)))

    @property
    def batch_size(self) -> int:
        return max(min(BATCH_SIZE, int(MAX_PRODUCT_ENTRIES / (self.rows.products.size + 1))), 1)

    def reference(self, labeled: int) -> int:
        return labeled if labeled >= 0 else int(np.argmax(np.sum(self.rows.R**2, axis=1)))

    def flip_bounds(self, reference: int, chunklets: npt.NDArray[np.intp], cutoff: float) -> Array:
        R, D = self.rows.R, self.rows.size
        if D == 0:
            return np.full(len(chunklets), self.root_bound)
        free = np.ones((len(chunklets), len(R)))
        free[:, reference] = free[np.arange(len(chunklets)), chunklets] = 0.0
        a = self.signs[reference] * R[reference] - self.signs[chunklets, None] * R[chunklets]
        start = 0.3 * np.random.default_rng(0).standard_normal((D, D))
        return self.solve(free, a, np.broadcast_to(start, (len(chunklets), D, D)).copy(), cutoff, MAX_STEPS).lower

    def solve(self, free: Array, a: Array, U: Array, cutoff: float, steps: int) -> NodeSolutions:
        """Solve the relaxations of some nodes until their bounds reach the cutoff or are nearly tight."""
        factors = solve_by_fixed_point(self.rows, free, a, U, cutoff, steps, self.timer.deadline)
        return NodeSolutions(self.certified_bounds(free, a, factors), factors)

    def certified_bounds(self, free: Array, a: Array, U: Array) -> Array:
        """Return certified lower bounds of the nodes from their factors."""
        found = self.rows.sums(free, a, U, QUADRATIC_FORM_FLOOR)
        fixed = (1.0 - free) @ self.weights
        top = np.maximum(np.max(free * self.weights / found.q, axis=1), fixed / found.q_fixed)
        return grouped_bounds(self.problem, found.M, found.total, top)

    def branching_rows(self, free: Array, a: Array, U: Array) -> npt.NDArray[np.intp]:
        """Return the row of each node with the largest branching score at its U."""
        q = self.rows.sqrt_quadratic_forms(U)
        image = np.einsum("kdr,ker,ke->kd", U, U, a, optimize=True)
        q_fixed = np.sqrt(np.maximum(np.sum(image * a, axis=1), 0.0))[:, None]
        product = 2.0 * image @ self.rows.R.T
        return np.asarray(np.argmax(np.where(free > 0.0, branching_scores(q, q_fixed, product), -np.inf), axis=1))

    def round(
        self, parents: list[Node], row: npt.NDArray[np.intp], sign: Array, free: Array, a: Array, U: Array
    ) -> None:
        """Round the node solutions: signs of r'Va, then one alternation with the sum of all signed rows."""
        R = self.rows.R
        image = np.einsum("kdr,ker,ke->kd", U, U, a, optimize=True)
        y = np.where(image @ R.T >= 0.0, 1.0, -1.0)
        for i in np.flatnonzero(free.sum(axis=1) == 0.0):  # all labels are fixed
            y[i, parents[i].fixed], y[i, row[i]] = parents[i].signs, sign[i]
            self.try_labels(y[i])
        y = np.where((y @ R) @ R.T >= 0.0, 1.0, -1.0)
        costs = 1.0 - np.sum((y @ R) ** 2, axis=1)
        least = int(np.argmin(costs))
        if costs[least] < self.best + PROMISING_MARGIN:
            self.local_search(y[least])

    def local_search(self, y: Array) -> None:
        """Improve labels of the chunklets by alternation and then by single flips; keep them if they are better."""
        R = self.rows.R
        while not self.timer.is_over:
            v = y @ R
            following = np.where(R @ v >= 0.0, 1.0, -1.0)
            w = following @ R
            if w @ w <= v @ v * (1.0 + 1e-13):
                break
            y = following
        squares = np.sum(R**2, axis=1)
        while not self.timer.is_over:
            improvement = squares - y * (R @ v)
            j = int(np.argmax(improvement))
            if not improvement[j] > 1e-15:
                break
            y = y.copy()
            y[j] = -y[j]
            v = y @ R
        self.try_labels(y)

    def try_labels(self, y: Array) -> None:
        """Make labels of the chunklets the incumbent if their objective is smaller."""
        self.update_incumbent(y, 1.0 - float(np.sum((y @ self.rows.R) ** 2)))


def solve_by_fixed_point(
    rows: RowProducts, free: Array, a: Array, U: Array, cutoff: float, steps: int, deadline: float
) -> Array:
    """Return factors of some nodes whose bounds reach the cutoff or are nearly tight.

    The fixed-point step U -> M U is lengthened and has momentum, which is reset if the objective increases.
    """
    best, lowest, best_U = np.full(len(U), -np.inf), np.full(len(U), np.inf), U.copy()
    live, last, ahead = np.arange(len(U)), U, U
    before, weight = np.full(len(U), np.inf), np.ones(len(U))
    for step in range(1, steps + 1):
        found = rows.sums(free[live], a[live], ahead)
        size = np.einsum("kdr,kdr->k", ahead, ahead)
        value = 1.0 - 2.0 * found.total + size
        moved = ahead + STEP_LENGTH * (found.M @ ahead - ahead)
        worse = value > before
        weight = np.where(worse, 1.0, weight)
        following = (1.0 + np.sqrt(1.0 + 4.0 * weight**2)) / 2.0
        momentum = np.where(worse, 0.0, (weight - 1.0) / following)
        late = time.perf_counter() >= deadline
        if step % CHECK_INTERVAL == 0 or step == steps or late:
            bound = 1.0 - np.linalg.eigvalsh(found.M)[:, -1] * found.total
            better = bound > best[live]
            best[live[better]], best_U[live[better]] = bound[better], ahead[better]
            lowest[live] = np.minimum(lowest[live], 1.0 - found.total**2 / size)
            gap, missing = lowest[live] - best[live], cutoff - lowest[live]
            done = (best[live] >= cutoff + 1e-12) | (gap < 1e-9) | (np.isfinite(cutoff) & (gap < GAP_RATIO * missing))
            if late or done.all():
                break
            on = ~done
            live, last, ahead, moved = live[on], last[on], ahead[on], moved[on]
            value, weight, following, momentum, worse = (
                part[on] for part in (value, weight, following, momentum, worse)
            )
        ahead, last = moved + momentum[:, None, None] * (moved - last), moved
        before, weight = value, np.where(worse, 1.0, following)
    return best_U
