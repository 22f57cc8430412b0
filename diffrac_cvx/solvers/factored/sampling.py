r"""Many rows: (15) solved on few rows, its gradient corrected by one pass over all rows, again and again.

Let V0 be the current point, u = 1/sqrt(q(V0)), and M_m(u), M_n(u) the moments X'Diag(u)X over a fixed sample of m rows,
divided by m, and over all n rows, divided by n.  The surrogate

    min over V >= 0 of  1 - 2 g_m(V) + tr V (A + M_m(u) - M_n(u)) + sum_ij c_i c_j |V_ij|

has at V0 the gradient of (15) itself, so the optimum of (15) is its fixed point; it is a problem of the same form,
with another A.  One pass over all rows at its solution gives the value, the proved bracket and the next surrogate.  The
error shrinks by a factor of order sqrt(D^2/m) a pass; where it does not, the sample is enlarged.

Source: multigrid optimisation (Nash, A multigrid approach to discretized optimization problems, 2000) and DANE (Shamir,
Srebro, Zhang, Communication-efficient distributed optimization using an approximate Newton-type method, 2014).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.direction_bounds import Dual, clip_to_box, largest_ratio
from diffrac_cvx.certificates.direction_problem import DirectionProblem, Scaled
from diffrac_cvx.factors import Factor, dense, scale_rows, squared_norm, sum_of_absolute_products
from diffrac_cvx.inputs import Array
from diffrac_cvx.linalg import EPS, moment, principal_columns, row_blocks, row_energies, row_products, symmetric
from diffrac_cvx.result import Bracket
from diffrac_cvx.rows import Indices, Rows
from diffrac_cvx.solvers.factored import augmented_lagrangian
from diffrac_cvx.solvers.factored.augmented_lagrangian import Lagrangian, spread_start
from diffrac_cvx.solvers.factored.polishing import closer_to_feasible, without_inactive
from diffrac_cvx.solvers.factored.quasi_newton import Memory
from diffrac_cvx.solvers.stopping import Iterate

FROM = 40_000  # rows; below, all rows at once are as quick
ROWS_PER_SQUARE = 8  # rows of the first sample, over D^2
FEWEST = 2000  # rows of the first sample
LARGEST_SHARE = 0.5  # of all rows, in a sample
GROWTH = 2.5  # of the sample
PROGRESS = 3.0  # factor by which a pass should shrink the gap; the sample is enlarged where it does not
LEAST_PROGRESS = 1.5  # the same for the largest sample; below it, all rows are used at once
FIRST_TARGET = 1e-3  # gap on the first sample, whose own error is larger
INNER = 0.1  # gap of a surrogate, over that of the last pass
ROUNDS = 12  # of the augmented Lagrangian on one surrogate
STEPS = 10  # of L-BFGS in a round
FLOORS = (1e-12, 1e-4, 1e-2)  # of the mean energy, below which u = 1/sqrt(q) does not grow
SMALLEST_EIGENVALUE = 0.1  # of the surrogate's A + Diag(c)^2, in units of that of all rows
SMALL = 1e-2  # size of columns by which a factor grows, over its own

Poll = Callable[[], None]


def many_rows(n: int, d: int) -> bool:
    """Whether a sample is so much smaller than the data that the surrogates pay."""
    return n >= FROM and first_size(n, d) * GROWTH <= LARGEST_SHARE * n


def first_size(n: int, D: int) -> int:
    """Return the number of rows of the first sample: as many as V has entries, times a few."""
    return min(max(FEWEST, ROWS_PER_SQUARE * D**2), n)


class Pass(NamedTuple):
    """What one pass over all rows gives, at a factor at its best scale.

    Attributes
    ----------
    point : Scaled
        The factor, the objective, and the energies.
    floor : float
        The smallest energy used in u = 1/sqrt(max(q, floor)).
    M : (D, D) array
        X' Diag(u) X / n.
    bounds : Bracket
        Proved, with the multiplier given.
    """

    point: Scaled
    floor: float
    M: Array
    bounds: Bracket


@dataclass
class Sums:
    """Sums over rows for u = 1/sqrt(max(q, floor)) at several floors: X'Diag(u)X and sum of 1/u, and the energies."""

    floors: Array
    size: int
    energies: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.moments = np.zeros((len(self.floors), self.size, self.size))
        self.inverses = np.zeros(len(self.floors))

    def add(self, block: Array, q: Array) -> None:
        """Add a block of rows; the few with small energies, whose u differ from floor to floor, for each floor."""
        self.energies.append(q)
        small = q < self.floors[-1]
        roots = np.sqrt(np.where(small, 1.0, q))
        common = block.T @ (block * np.where(small, 0.0, 1.0 / roots)[:, None])
        self.moments += common
        self.inverses += np.sum(np.where(small, 0.0, roots))
        if not small.any():
            return
        few, low = block[small], q[small]
        nonzero = few.any(axis=1)  # a row of zeros has no part in X'Diag(u)X, whatever its u: 1/u = 0 there
        for i, floor in enumerate(self.floors):
            roots = np.sqrt(np.maximum(low, floor))
            self.moments[i] += few.T @ (few / roots[:, None])
            self.inverses[i] += np.sum(roots[nonzero])


def sum_over_rows(X: Array | Rows, U: Array, floors: Array, poll: Poll) -> Sums:
    """Return the energies of all rows, and the sums over rows for each floor, in one pass."""
    blocks, T = (X.centred_blocks(), X.transform) if isinstance(X, Rows) else (row_blocks(X), np.eye(X.shape[1]))
    TU = T @ U
    sums = Sums(floors, len(T))
    for block in blocks:
        poll()
        XU = block @ TU
        sums.add(block, row_products(XU, XU))
    sums.moments = np.stack([T.T @ M @ T for M in sums.moments])
    return sums


def look(problem: DirectionProblem, U: Array, C: Array | None, typical: float, poll: Poll) -> Pass:
    """Return what one pass over all rows proves and gives at a factor; ``typical`` is about its mean energy."""
    n = len(problem.X)
    floors = np.array(FLOORS) * max(typical, 1e-300)
    sums = sum_over_rows(problem.X, U, floors, poll)
    q = np.concatenate(sums.energies)
    point = problem.best_scale(U, q)
    multiple = np.sqrt(point.q.sum() / q.sum()) if q.any() else 1.0
    M = symmetric(sums.moments[0]) / (n * multiple)
    candidates = [C] if C is None else [C, closer_to_feasible(problem, M, C)]
    different = range(len(floors)) if np.ptp(sums.inverses) > 0.0 else range(1)
    t = [[ratio(problem, sums.moments[i] / n, candidate) for candidate in candidates] for i in different]
    lower = max(1.0 - min(t[i]) * sums.inverses[i] / n for i in different)
    bounds = Bracket(float(min(max(lower, 0.0), point.value)), float(point.value))
    return Pass(point, floors[0] * multiple**2, M, bounds)


def ratio(problem: DirectionProblem, M: Array, C: Array | None) -> float:
    """Return t with M <= t (A + C + Diag(c)^2); it covers the rounding of M, which is whitened after it is summed."""
    W = problem.W
    if W.size == 0:
        return 0.0
    B = problem.A + np.diag(problem.c**2)
    condition = float(np.sum(W**2) * np.abs(np.diag(B)).max())
    C = None if C is None or not problem.has_l1 else clip_to_box(problem, C)
    return largest_ratio(problem, symmetric(W.T @ M @ W), C) * (1 + 4 * EPS * condition)


class Surrogate(DirectionProblem):
    """The problem on a sample, with an A of its own, given by its root; as a problem it is only solved, not judged."""

    def cost(self, U: Factor, q: Array | None = None) -> float:  # noqa: ARG002  # its A is not X'X/m + Diag(a)^2
        """tr UU'A + sum_ij c_i c_j |UU'|_ij."""
        return squared_norm(self.R @ U) + sum_of_absolute_products(scale_rows(U, self.c))

    def gap(self, point: Scaled, C: Array | None) -> float:
        """Return the gap at a point at its best scale, where g = T = 1 - value."""
        u = 1.0 / np.sqrt(np.maximum(point.q, FLOORS[0] * max(point.q.mean(), 1e-300)))
        return ratio(self, moment(self.X, u), C) * float(np.mean(1.0 / u)) - float(np.mean(np.sqrt(point.q)))


def surrogate(problem: DirectionProblem, sample: Array, last: Pass | None) -> Surrogate | None:
    """Return the problem on a sample with the gradient of all rows at the last pass; None where it is unbounded."""
    if last is None:
        X = problem.X
        mean = X.second_moment() if isinstance(X, Rows) else moment(X, np.ones(len(X)))
        A = problem.A + moment(sample, np.ones(len(sample))) - mean
    else:
        q = row_energies(sample, dense(last.point.U))
        A = problem.A + moment(sample, 1.0 / np.sqrt(np.maximum(q, last.floor))) - last.M
    W = problem.W
    B = W.T @ (A + np.diag(problem.c**2)) @ W
    if W.shape[1] and np.linalg.eigvalsh(symmetric(B))[0] < SMALLEST_EIGENVALUE:
        return None
    values, Q = np.linalg.eigh(symmetric(A))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * Q.T
    zero = np.zeros(len(A))
    return Surrogate(X=sample, a=zero, c=problem.c, scale=zero + 1.0, has_offset=False, root=root)


def solve(small: Surrogate, U: Array, C: Array | None, target: float, poll: Poll) -> tuple[Array, Array | None, int]:
    """Return a factor and a multiplier of a surrogate to about a gap, and the L-BFGS steps taken."""
    lagrangian, memory = Lagrangian(small, C), Memory()
    at, done = lagrangian.point(U), 0
    for _ in range(ROUNDS):
        at, taken = lagrangian.minimise(at, STEPS, memory, poll)
        done += max(taken, 1)
        C = lagrangian.multiplier(at.U) if small.has_l1 else None
        if small.gap(small.best_scale(at.U), C) <= target or (taken < STEPS and C is None):
            break
        at = lagrangian.update(at)
    if C is None:
        return at.U, C, done
    point, thresholded = small.best_scale(at.U), without_inactive(small, at.U, C)
    return dense((thresholded if thresholded.value < point.value else point).U), C, done


def grow(problem: DirectionProblem, last: Pass, C: Array | None) -> Array:
    """Return the factor without columns of no energy, with small ones where the certificate is violated."""
    U = principal_columns(dense(last.point.U), rtol=1e-10)
    free = len(U) - U.shape[1]
    if free == 0:
        return U
    violation = last.M - problem.A - np.diag(problem.c**2) - (0.0 if C is None else C)
    values, vectors = np.linalg.eigh(symmetric(violation))
    new = vectors[:, values > 0.0][:, -free:]
    return np.column_stack([U, SMALL * np.sqrt(np.sum(U**2) / max(new.shape[1], 1)) * new])


def take_rows(problem: DirectionProblem, chosen: Indices) -> Array:
    """Return some of the rows, as an array."""
    return problem.X.take(chosen) if isinstance(problem.X, Rows) else problem.X[chosen]


def iterates(
    problem: DirectionProblem,
    tol: float,
    max_iter: int,
    U: Array | None = None,
    C: Array | None = None,
    poll: Poll = lambda: None,
) -> Iterator[Iterate]:
    """Yield a point, its multiplier and its proved bracket after every pass over all rows.

    Parameters
    ----------
    problem : DirectionProblem
        With many rows, as an array or as `Rows`.
    tol : float
        Gap that is wanted; no surrogate is solved more accurately than it asks for.
    max_iter : int
        L-BFGS steps in all.
    U, C : arrays, optional
        Start.
    poll : callable
        Called once per block of rows and evaluation; it may raise to leave.
    """
    n, D = problem.X.shape
    order = np.random.default_rng(0).permutation(n)
    m, done, gap = first_size(n, D), 0, np.inf
    best: Pass | None = None
    best_C = C
    if U is not None:
        best = look(problem, U, C, float(np.mean(row_energies(take_rows(problem, order[:m]), U))), poll)
        gap = best.bounds.gap
        yield Iterate(best.point.U, 0, Dual(C=C), best.point, best.bounds)
    sample = take_rows(problem, np.sort(order[:m]))
    while done < max_iter:
        small = surrogate(problem, sample, best)
        if small is not None:
            start = spread_start(problem) if best is None else grow(problem, best, best_C)
            target = FIRST_TARGET if best is None else max(INNER * gap, tol / 4)
            U, C, taken = solve(small, start, best_C, target, poll)
            done += taken
            found = look(problem, U, C, float(np.mean(row_energies(sample, U))), poll)
            yield Iterate(found.point.U, done, Dual(C=C), found.point, found.bounds)
            if best is None or found.point.value <= best.point.value or found.bounds.gap < gap:
                best, best_C, previous, gap = found, C, gap, found.bounds.gap
                largest = m * GROWTH > LARGEST_SHARE * n
                if gap * (LEAST_PROGRESS if largest else PROGRESS) <= previous:
                    continue
        m = int(GROWTH * m)
        if m > LARGEST_SHARE * n:
            break
        sample = take_rows(problem, np.sort(order[:m]))
    U = None if best is None else grow(problem, best, best_C)
    for iterate in augmented_lagrangian.iterates(problem, max_iter - done, U, best_C, poll):
        yield iterate._replace(n_iter=iterate.n_iter + done)
