r"""Sampling solver for many rows: (15) on a sample, with the gradient corrected in passes over all rows.

Let V0 be the current point, u = 1/sqrt(q(V0)), and M_m(u), M_n(u) the weighted Gram matrices X'Diag(u)X of a fixed
sample of m rows, divided by m, and of all n rows, divided by n.  The surrogate

    min over V >= 0 of  1 - 2 g_m(V) + tr V (A + M_m(u) - M_n(u)) + sum_ij c_i c_j |V_ij|

has the gradient of (15) at V0, so the optimum of (15) is a fixed point; it has the same form as (15), with another A.
One pass over all rows at its solution gives the value, the certified bounds and the next surrogate.  The error shrinks
by a factor of order sqrt(D^2/m) per pass; otherwise the sample is enlarged.

Source: multigrid optimisation (Nash, A multigrid approach to discretized optimization problems, 2000) and DANE (Shamir,
Srebro, Zhang, Communication-efficient distributed optimization using an approximate Newton-type method, 2014).
"""

from collections.abc import Iterator

import numpy as np

from diffrac_cvx.certificates.bound_search import best_combination, top_eigenvalue
from diffrac_cvx.certificates.direction_bounds import DualPoint, certify_in_one_pass
from diffrac_cvx.certificates.proof import project_dual
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_rows
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.linear_algebra import principal_columns, psd_factor, symmetric
from diffrac_cvx.points.reading import GROWTH, ROWS_PER_SQUARE
from diffrac_cvx.points.rows import ColumnRows, Rows
from diffrac_cvx.problem.direction_problem import Coordinates, DirectionProblem, PrimalPoint
from diffrac_cvx.solvers.driver import Iterate, Stopping, WarmStart
from diffrac_cvx.solvers.factored.augmented_lagrangian import (
    CertifiedPoint,
    Memory,
    OneBlockLagrangian,
    append_violated_directions,
    full_rank_start,
    one_block_iterates,
    run_multiplier_method,
    threshold_inactive,
)
from diffrac_cvx.solvers.factored.components import is_block_diagonal
from diffrac_cvx.solvers.race import Pause

MIN_SAMPLE_ROWS = 2000  # smallest number of rows of the first sample
MAX_PERMUTED_ROWS = 10_000_000  # largest number of rows for which all samples come from one permutation


def sample_sizes(X: Rows, has_l1: bool) -> Iterator[int]:
    """Yield increasing sample sizes, proportional to the number of entries of V; at most half of all rows."""
    n, D = X.shape
    m = ROWS_PER_SQUARE * D**2
    if has_l1:  # V is sparse: fewer rows suffice, but use many if they are cheap compared with a pass over all
        m = min(m, max(3 * D**2, int(0.02 * n)))
    m = max(MIN_SAMPLE_ROWS, m)
    while m <= min(X.max_sample, 2**25 / D):  # 256 MB
        yield m
        m = int(GROWTH * m)


def surrogate(problem: DirectionProblem, sample: ColumnRows, U: Array, M: Array | None) -> DirectionProblem | None:
    """Return the surrogate at a factor with the weighted Gram matrix of all rows; None if nearly singular, or if V = 0.

    Without this matrix, the surrogate is the problem on the sample, with A of all rows.
    """
    if M is None:
        A = problem.A + sample.second_moment() - problem.X.second_moment()
    elif not U.any():
        return None
    else:
        floor = 1e-12 * max(float(np.sum(U * (problem.A @ U))), 1e-300)  # that of `certify_in_one_pass`
        A = problem.A + sample.weighted_gram(1.0 / np.sqrt(np.maximum(sample.quadratic_forms(U), floor))) - M
    W = problem.W
    B = W.T @ (A + np.diag(problem.c**2)) @ W
    if W.shape[1] and np.linalg.eigvalsh(symmetric(B))[0] < 0.1:
        return None
    root, zero = psd_factor(A).T, np.zeros(len(A))
    rows = array_rows(root * len(root) ** 0.5)
    penalty = problem.pair_penalty.with_weights(problem.c, zero)
    return DirectionProblem(sample, rows, penalty, Coordinates(zero + 1.0, False), root=root)


def solve_surrogate(
    small: DirectionProblem, U: Array, C: Array | None, target: float, max_steps: int
) -> tuple[PrimalPoint, Array | None, int, bool]:
    """Solve a surrogate to a gap of about target; return point, C, number of steps, and whether they sufficed."""
    lagrangian, W = OneBlockLagrangian(small, C), small.W

    def is_converged(U: Array) -> bool:
        if W.size == 0:
            return True
        q = small.rescale(U).q  # at the optimal scale g = T = 1 - value; the gap is not certified
        u = small.inverse_sqrt(q)
        M = symmetric(W.T @ small.X.weighted_gram(u) @ W)
        if small.has_l1:
            t = best_combination(M, symmetric(W.T @ project_dual(small, lagrangian.multiplier(U)[0]) @ W))[0]
        else:
            t = top_eigenvalue(M)
        return t * float(np.mean(1.0 / u)) - float(np.mean(np.sqrt(q))) <= target

    at, done = run_multiplier_method(lagrangian, lagrangian.point(U), max_steps, Memory(), is_converged)
    C = lagrangian.multiplier(at.U)[0] if small.has_l1 else None
    point = small.rescale(at.U)
    point = point._replace(U=at.U) if C is None else threshold_inactive(small, point, C)
    return point, C, max(done, 1), done < max_steps


def draw_sample(problem: DirectionProblem, m: int) -> ColumnRows:
    """Return m random rows; larger samples contain the smaller ones, unless there are very many rows."""
    n, rng = len(problem.X), np.random.default_rng(0)
    chosen = rng.permutation(n)[:m] if n <= MAX_PERMUTED_ROWS else rng.choice(n, m, replace=False, shuffle=False)
    chosen = np.sort(chosen)  # so that the permutation can be freed while the rows are read
    return array_rows(problem.X.take(chosen))


def sampling_iterates(
    problem: DirectionProblem, warm_start: WarmStart, stopping: Stopping, *, until_converged: bool
) -> Iterator[Iterate | Pause]:
    """Yield an iterate with its multiplier and certified bounds after every pass over all rows.

    End when larger samples do not help or exceed half of the rows; if ``until_converged``, continue with steps on all
    rows, one pass each.  Surrogates are solved only as accurately as the tolerance requires.
    """
    tol, max_iter = stopping.tol, stopping.max_iter
    done, U, C, M, gap = 0, full_rank_start(problem), None, None, np.inf  # M belongs to the best pass so far
    if warm_start.U is not None:
        U, C = dense(warm_start.U), warm_start.as_dense[1]
        point, bound, M = certify_in_one_pass(problem, U, C)
        yield Iterate(point.U, 0, DualPoint(C=C), point, bound)
        U, gap = dense(point.U), point.value - bound.lower

    def start() -> Array:
        if M is None:
            return U
        full_rank = principal_columns(U, rtol=1e-10), 0.0 if C is None else C, M
        return append_violated_directions(problem, *full_rank, most=len(U))

    for m in sample_sizes(problem.X, problem.has_l1):
        sample, shrinks = draw_sample(problem, m), True
        while shrinks and done < max_iter:
            small = surrogate(problem, sample, U, M)
            if small is None:
                break
            target = 1e-3 if M is None else max(0.1 * gap, tol / 4)  # about the accuracy of the next pass
            point, C_here, steps, reached = solve_surrogate(small, start(), C, target, min(120, max_iter - done))
            done += steps
            point, bound, M_here = certify_in_one_pass(problem, dense(point.U), C_here)
            yield Iterate(point.U, done, DualPoint(C=C_here), point, bound)
            gap_here = point.value - bound.lower
            shrinks = 3.0 * gap_here <= gap
            if gap_here < gap:
                U, C, M, gap = dense(point.U), C_here, M_here, gap_here
            if not (shrinks or reached or until_converged) and is_block_diagonal(problem, U):
                return  # larger samples would not help
    if not until_converged:
        return

    def certified(U: Array, C: Array | None, fitted: bool) -> CertifiedPoint:  # noqa: ARG001  # fitting needs passes
        point, bound, _ = certify_in_one_pass(problem, U, C)
        return point, DualPoint(C=C), bound

    for iterate in one_block_iterates(problem, max_iter - done, start(), C, certified):
        yield iterate if isinstance(iterate, Pause) else iterate._replace(n_iter=iterate.n_iter + done)
