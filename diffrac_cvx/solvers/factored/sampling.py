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
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.certificates.direction_bounds import Dual, Pass, certify_in_one_pass
from diffrac_cvx.certificates.proof import in_dual_set
from diffrac_cvx.certificates.search import FLOORS, blended_ratio, top_eigenvalue
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.linear_algebra import principal_columns, symmetric
from diffrac_cvx.points.points import Columns
from diffrac_cvx.problem.direction_problem import DirectionProblem, Scaled, root_of
from diffrac_cvx.solvers.factored import augmented_lagrangian
from diffrac_cvx.solvers.factored.augmented_lagrangian import one_block, spread_start, without_inactive
from diffrac_cvx.solvers.factored.quasi_newton import Memory
from diffrac_cvx.solvers.factored.tuning import ONE_BLOCK, SAMPLES
from diffrac_cvx.solvers.factored.unknowns import OneFactor
from diffrac_cvx.solvers.stopping import Iterate


def many_rows(n: int, d: int) -> bool:
    """Whether a sample is so much smaller than the data that the surrogates pay."""
    return n >= SAMPLES.many and SAMPLES.growth * SAMPLES.rows_per_square * d**2 <= SAMPLES.largest_share * n


def sample_sizes(n: int, D: int, is_coupled: bool) -> Iterator[int]:
    """Yield the numbers of rows of the samples, in proportion to the entries of V; none is a large part of all rows."""
    m = SAMPLES.rows_per_square * D**2
    if is_coupled:
        m = min(m, max(SAMPLES.rows_per_square_l1 * D**2, int(SAMPLES.cheap * n)))
    m = max(SAMPLES.fewest, m)
    while m <= min(SAMPLES.largest_share * n, SAMPLES.most_entries / D):
        yield m
        m = int(SAMPLES.growth * m)


def surrogate(problem: DirectionProblem, sample: Columns, last: Pass | None) -> DirectionProblem | None:
    """Return the problem on a sample, with an A that gives it the gradient of all rows at the last pass; or None."""
    if last is None:
        A = problem.A + sample.second_moment() - problem.X.second_moment()
    else:
        q = sample.energies(last.point.U)
        A = problem.A + sample.moment(1.0 / np.sqrt(np.maximum(q, last.floor))) - last.M
    W = problem.W
    B = W.T @ (A + np.diag(problem.c**2)) @ W
    if W.shape[1] and np.linalg.eigvalsh(symmetric(B))[0] < SAMPLES.smallest_eigenvalue:
        return None
    root, zero = root_of(symmetric(A)), np.zeros(len(A))
    rows = array_points(root * len(root) ** 0.5)
    made = DirectionProblem(X=sample, a=zero, c=problem.c, scale=zero + 1.0, has_offset=False, root=root, gram=rows)
    return replace(made, structure=problem.structure)


def gap_of(small: DirectionProblem, point: Scaled, C: Array | None) -> float:
    """Return the gap of a surrogate at a point at its best scale, where g = T = 1 - value; nothing is proved."""
    u, W = 1.0 / np.sqrt(np.maximum(point.q, FLOORS[0] * max(point.q.mean(), 1e-300))), small.W
    if W.size == 0:
        return 0.0
    M = symmetric(W.T @ small.X.moment(u) @ W)
    t = top_eigenvalue(M) if C is None else blended_ratio(M, symmetric(W.T @ in_dual_set(small, C) @ W)).t
    return t * float(np.mean(1.0 / u)) - float(np.mean(np.sqrt(point.q)))


class Solved(NamedTuple):
    """A factor and a multiplier of a surrogate, the L-BFGS steps taken, and whether the gap wanted is reached."""

    U: Array
    C: Array | None
    steps: int
    reached: bool


def solve(small: DirectionProblem, U: Array, C: Array | None, target: float) -> Solved:
    """Solve a surrogate to about a gap."""
    lagrangian, memory = one_block(OneFactor(small), C), Memory()
    at, done, reached = lagrangian.point(U), 0, False
    for _ in range(SAMPLES.rounds):
        at, taken = lagrangian.minimise(at, ONE_BLOCK.steps_of_a_multiplier, memory)
        done += max(taken, 1)
        C = lagrangian.multiplier(at.U)[0] if small.is_coupled else None
        reached = gap_of(small, small.best_scale(at.U), C) <= target
        if reached or (taken < ONE_BLOCK.steps_of_a_multiplier and C is None):
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
    return np.column_stack([U, SAMPLES.small * np.sqrt(np.sum(U**2) / max(new.shape[1], 1)) * new])


def take_sample(problem: DirectionProblem, m: int) -> Columns:
    """Return m rows; a larger sample contains the smaller ones, unless there are very many rows."""
    n, rng = len(problem.X), np.random.default_rng(0)
    chosen = rng.permutation(n)[:m] if n <= SAMPLES.permuted else rng.choice(n, m, replace=False, shuffle=False)
    return array_points(problem.X.take(np.sort(chosen)))


def iterates(
    problem: DirectionProblem,
    tol: float,
    max_iter: int,
    U: Array | None = None,
    C: Array | None = None,
    to_the_end: bool = False,
) -> Iterator[Iterate]:
    """Yield a point, its multiplier and its proved bracket after every pass over all rows.

    With an l1 part they end where larger samples do not help, or would be nearly all rows, unless V is not to be
    looked for otherwise: then, ``to_the_end``, steps on all rows follow, a pass each.  No surrogate is solved more
    accurately than the tolerance asks for.
    """
    n, D = problem.X.shape
    done, best = 0, None
    if U is not None:
        best = certify_in_one_pass(problem, U, C)
        yield propose(best, 0)
    for m in sample_sizes(n, D, problem.is_coupled):
        sample, shrinks = take_sample(problem, m), True
        while shrinks and done < max_iter:
            small = surrogate(problem, sample, best)
            if small is None:
                break
            solved = solve(small, *start_from(problem, best), wanted(best, tol))
            done += solved.steps
            found = certify_in_one_pass(problem, solved.U, solved.C)
            yield propose(found, done)
            shrinks = best is None or SAMPLES.progress * found.bounds.gap <= best.bounds.gap
            best = found if best is None or found.bounds.gap < best.bounds.gap else best
            if not (shrinks or solved.reached or to_the_end) and is_split(problem, best.point.U):
                return  # more rows would not help
    if problem.is_coupled and not to_the_end:
        return
    progress = augmented_lagrangian.StallDetector()
    for iterate in augmented_lagrangian.iterates(problem, max_iter - done, *start_from(problem, best)):
        C = None if iterate.dual is None or iterate.dual.C is None else dense(iterate.dual.C)
        seen = certify_in_one_pass(problem, dense(iterate.U), C)
        proposed = propose(seen, iterate.n_iter + done)
        yield proposed
        if progress.ended(proposed, taken=1):
            return


def propose(found: Pass, n_iter: int) -> Iterate:
    return Iterate(found.point.U, n_iter, Dual(C=found.C), found.point, found.bounds)


def is_split(problem: DirectionProblem, U: Factor) -> bool:
    """Whether UU' is zero between components of the penalised coordinates, none of which has half of them."""
    penalised = problem.c > 0.0
    U = dense(U)[penalised]
    _, labels = connected_components(scipy.sparse.csr_array(U @ U.T))
    return bool(penalised.any() and 2 * np.bincount(labels).max() < len(labels))


def wanted(last: Pass | None, tol: float) -> float:
    """Return the gap to which a surrogate is solved: no smaller than the next pass can show."""
    return SAMPLES.first_target if last is None else max(SAMPLES.inner * last.bounds.gap, tol / 4)


def start_from(problem: DirectionProblem, last: Pass | None) -> tuple[Array, Array | None]:
    return (spread_start(problem), None) if last is None else (grow(problem, last), last.C)
