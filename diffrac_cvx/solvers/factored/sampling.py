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

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.certificates.direction_bounds import (
    OF_MEANS,
    Dual,
    bound_at,
    clip_to_box,
    closer_to_feasible,
    largest_ratio,
)
from diffrac_cvx.certificates.direction_problem import DirectionProblem, Scaled
from diffrac_cvx.certificates.rounding import Whitening
from diffrac_cvx.factors import Factor, dense, scale_rows, squared_norm, sum_of_absolute_products
from diffrac_cvx.inputs import Array
from diffrac_cvx.linalg import moment, principal_columns, row_blocks, row_energies, row_products, symmetric
from diffrac_cvx.result import Bracket
from diffrac_cvx.rows import BLOCK, Indices, Rows
from diffrac_cvx.solvers.factored import augmented_lagrangian
from diffrac_cvx.solvers.factored.augmented_lagrangian import Lagrangian, Poll, do_nothing, spread_start
from diffrac_cvx.solvers.factored.polishing import without_inactive
from diffrac_cvx.solvers.factored.quasi_newton import Memory
from diffrac_cvx.solvers.stopping import Iterate

FROM = 40_000  # rows; below, all rows at once are as quick
FEWEST = 2000  # rows of the first sample
ROWS_PER_SQUARE = 8  # of the first sample, over D^2
ROWS_PER_SQUARE_L1 = 3  # the same with an l1 part, where many entries of V are 0; more where they are cheap
CHEAP = 0.02  # share of the rows that is cheap beside a pass over all of them
LARGEST_SHARE = 0.5  # of all rows, in a sample
GROWTH = 2.5  # of the sample
PROGRESS = 3.0  # factor by which a pass should shrink the gap; the sample is enlarged where it does not
FIRST_TARGET = 1e-3  # gap on the first sample, whose own error is larger
INNER = 0.1  # gap of a surrogate, over that of the last pass
ROUNDS = 12  # of the augmented Lagrangian on one surrogate
STEPS = 10  # of L-BFGS in a round
FLOORS = (1e-12, 1e-4, 1e-2)  # of the mean energy, below which u = 1/sqrt(q) does not grow
SMALLEST_EIGENVALUE = 0.1  # of the surrogate's A + Diag(c)^2, in units of that of all rows
SMALL = 1e-2  # size of columns by which a factor grows, over its own


def many_rows(n: int, d: int) -> bool:
    """Whether a sample is so much smaller than the data that the surrogates pay."""
    return n >= FROM and GROWTH * ROWS_PER_SQUARE * d**2 <= LARGEST_SHARE * n


def sample_sizes(n: int, D: int, has_l1: bool) -> Iterator[int]:
    """Yield the numbers of rows of the samples, in proportion to the entries of V; last, without l1 part, all rows."""
    most = ROWS_PER_SQUARE * D**2
    m = max(FEWEST, min(most, max(ROWS_PER_SQUARE_L1 * D**2, int(CHEAP * n))) if has_l1 else most)
    while m <= LARGEST_SHARE * n:
        yield m
        m = int(GROWTH * m)
    if not has_l1:
        yield n


class Pass(NamedTuple):
    """What one pass over all rows gives, at a factor at its best scale.

    Attributes
    ----------
    point : Scaled
        The factor, the objective, and the energies.
    C : (D, D) array, or None
        The multiplier.
    floor : float
        The smallest energy used in u = 1/sqrt(max(q, floor)).
    M : (D, D) array
        X' Diag(u) X / n.
    bounds : Bracket
        Proved, with the multiplier given.
    """

    point: Scaled
    C: Array | None
    floor: float
    M: Array
    bounds: Bracket

    def iterate(self, n_iter: int) -> Iterate:
        """Return it as what the solver proposes."""
        return Iterate(self.point.U, n_iter, Dual(C=self.C), self.point, self.bounds)


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

    def join(self, later: "Sums") -> None:
        """Add the sums over the rows that follow."""
        self.energies += later.energies
        self.moments += later.moments
        self.inverses += later.inverses


def sum_over_rows(X: Array | Rows, U: Array, floors: Array, poll: Poll) -> Sums:
    """Return the energies of all rows, and the sums over rows for each floor, in one pass.

    Parts of the rows are read by threads of their own, each with products of one thread: that is quicker by nearly the
    number of threads, where products of several threads gain little on blocks that fit the cache, and lose very much
    where another process has the core.
    """
    if not isinstance(X, Rows):
        return sum_over_blocks(row_blocks(X), U, floors, poll)
    T, parts = X.transform, X.parts()
    TU = T @ U
    with ThreadPoolExecutor(len(parts)) as pool:
        sums = list(pool.map(lambda part: sum_over_blocks(part.centred_blocks(), TU, floors, poll), parts))
    for other in sums[1:]:
        sums[0].join(other)
    sums[0].moments = np.stack([T.T @ M @ T for M in sums[0].moments])
    return sums[0]


def sum_over_blocks(blocks: Iterator[Array], U: Array, floors: Array, poll: Poll) -> Sums:
    """Return the sums over blocks of rows."""
    sums = Sums(floors, len(U))
    for block in blocks:
        poll()
        XU = block @ U
        sums.add(block, row_products(XU, XU))
    return sums


def look(problem: DirectionProblem, U: Array, C: Array | None, poll: Poll = do_nothing) -> Pass:
    """Return what one pass over all rows proves and gives at a factor."""
    n = len(problem.X)
    floors = np.array(FLOORS) * max(float(np.sum(U * (problem.A @ U))), 1e-300)  # of the mean energy, or a little more
    sums = sum_over_rows(problem.X, U, floors, poll)
    q = np.concatenate(sums.energies)
    point = problem.best_scale(U, q)
    multiple = np.sqrt(point.q.sum() / q.sum()) if q.any() else 1.0
    M = symmetric(sums.moments[0]) / (n * multiple)
    candidates = [C] if C is None else [C, closer_to_feasible(problem, M, C)]
    different = range(len(floors)) if np.ptp(sums.inverses) > 0.0 else range(1)
    t = [[ratio(problem, sums.moments[i] / n, candidate) for candidate in candidates] for i in different]
    lower = max(bound_at(min(t[i]), sums.inverses[i] / n, OF_MEANS + n // BLOCK) for i in different)
    bounds = Bracket(float(min(max(lower, 0.0), point.value)), float(point.value))
    return Pass(point, C, floors[0] * multiple**2, M, bounds)


def ratio(problem: DirectionProblem, M: Array, C: Array | None) -> float:
    """Return t with M <= t (A + C + Diag(c)^2); rounding is covered."""
    W = problem.W
    if W.size == 0:
        return 0.0
    C = None if C is None or not problem.has_l1 else clip_to_box(problem, C)
    Mz = symmetric(W.T @ M @ W)
    return largest_ratio(problem, Mz, C, problem.off_moment(Mz, 0.0, float(np.trace(M))))


class Surrogate(DirectionProblem):
    """The problem on a sample, with an A of its own, given by its root; as a problem it is only solved, not judged."""

    def cost(self, U: Factor, q: Array | None = None) -> float:  # noqa: ARG002  # its A is not X'X/m + Diag(a)^2
        """tr UU'A + sum_ij c_i c_j |UU'|_ij."""
        return squared_norm(self.R @ U) + sum_of_absolute_products(scale_rows(U, self.c))

    @property
    def rounding(self) -> Whitening:
        """Nothing is proved of it."""
        return Whitening(0.0, 0.0)

    def gap(self, point: Scaled, C: Array | None) -> float:
        """Return the gap at a point at its best scale, where g = T = 1 - value."""
        u = 1.0 / np.sqrt(np.maximum(point.q, FLOORS[0] * max(point.q.mean(), 1e-300)))
        return ratio(self, moment(self.X, u), C) * float(np.mean(1.0 / u)) - float(np.mean(np.sqrt(point.q)))


def surrogate(problem: DirectionProblem, sample: Array, last: Pass | None) -> Surrogate | None:
    """Return the problem on a sample with the gradient of all rows at the last pass; None where it is unbounded."""
    if sample is problem.X:
        A = problem.A
    elif last is None:
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


class Solved(NamedTuple):
    """A factor and a multiplier of a surrogate, the L-BFGS steps taken, and whether the gap wanted is reached."""

    U: Array
    C: Array | None
    steps: int
    reached: bool


def solve(small: Surrogate, U: Array, C: Array | None, target: float, poll: Poll) -> Solved:
    """Solve a surrogate to about a gap."""
    lagrangian, memory = Lagrangian(small, C), Memory()
    at, done, reached = lagrangian.point(U), 0, False
    for _ in range(ROUNDS):
        at, taken = lagrangian.minimise(at, STEPS, memory, poll)
        done += max(taken, 1)
        C = lagrangian.multiplier(at.U) if small.has_l1 else None
        reached = small.gap(small.best_scale(at.U), C) <= target
        if reached or (taken < STEPS and C is None):
            break
        at = lagrangian.update(at)
    if C is None:
        return Solved(at.U, C, done, reached)
    point, thresholded = small.best_scale(at.U), without_inactive(small, at.U, C)
    return Solved(dense((thresholded if thresholded.value < point.value else point).U), C, done, reached)


def grow(problem: DirectionProblem, last: Pass) -> Array:
    """Return the factor without columns of no energy, with small ones where the certificate is violated."""
    U = principal_columns(dense(last.point.U), rtol=1e-10)
    free = len(U) - U.shape[1]
    if free == 0:
        return U
    violation = last.M - problem.A - np.diag(problem.c**2) - (0.0 if last.C is None else last.C)
    values, vectors = np.linalg.eigh(symmetric(violation))
    new = vectors[:, values > 0.0][:, -free:]
    return np.column_stack([U, SMALL * np.sqrt(np.sum(U**2) / max(new.shape[1], 1)) * new])


def take_rows(problem: DirectionProblem, chosen: Indices) -> Array:
    """Return some of the rows, as an array."""
    return problem.X.take(chosen) if isinstance(problem.X, Rows) else problem.X[chosen]


def take_sample(problem: DirectionProblem, m: int) -> Array:
    """Return m rows; a larger sample contains the smaller ones."""
    n = len(problem.X)
    return problem.X if m == n else take_rows(problem, np.sort(np.random.default_rng(0).permutation(n)[:m]))


def iterates(
    problem: DirectionProblem,
    tol: float,
    max_iter: int,
    U: Array | None = None,
    C: Array | None = None,
    poll: Poll = do_nothing,
) -> Iterator[Iterate]:
    """Yield a point, its multiplier and its proved bracket after every pass over all rows.

    With an l1 part they end where larger samples do not help, or are nearly all rows.

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
    done, best = 0, None
    for m in sample_sizes(n, D, problem.has_l1):
        sample = take_sample(problem, m)
        if best is None and U is not None:
            best = look(problem, U, C, poll)
            yield best.iterate(0)
        shrinks = True
        while shrinks and done < max_iter:
            small = surrogate(problem, sample, best)
            if small is None:
                break
            solved = solve(small, *start_from(problem, best), wanted(best, tol, m == n), poll)
            done += solved.steps
            found = look(problem, solved.U, solved.C, poll)
            yield found.iterate(done)
            shrinks = best is None or PROGRESS * found.bounds.gap <= best.bounds.gap
            best = found if best is None or found.bounds.gap < best.bounds.gap else best
            if not shrinks and not solved.reached and is_split(problem, best.point.U):
                return  # more rows would not help
    if problem.has_l1:
        return
    for iterate in augmented_lagrangian.iterates(problem, max_iter - done, *start_from(problem, best), poll):
        yield iterate._replace(n_iter=iterate.n_iter + done)


def is_split(problem: DirectionProblem, U: Factor) -> bool:
    """Whether UU' is zero between components of the penalised coordinates, none of which has half of them."""
    penalised = problem.c > 0.0
    U = dense(U)[penalised]
    _, labels = connected_components(scipy.sparse.csr_array(U @ U.T))
    return bool(penalised.any() and 2 * np.bincount(labels).max() < len(labels))


def wanted(last: Pass | None, tol: float, whole: bool) -> float:
    """Return the gap to which a surrogate is solved: no smaller than the next pass can show."""
    if whole:
        return tol / 2
    return FIRST_TARGET if last is None else max(INNER * last.bounds.gap, tol / 4)


def start_from(problem: DirectionProblem, last: Pass | None) -> tuple[Array, Array | None]:
    """Return the factor and the multiplier to start from."""
    return (spread_start(problem), None) if last is None else (grow(problem, last), last.C)
