"""Low-rank solver: strategies that race until the certified gap reaches the tolerance."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.direction_bounds import DualPoint
from diffrac_cvx.machine.deadlines import EarlyExitError
from diffrac_cvx.machine.memory import available_memory
from diffrac_cvx.points.checks import require_flag
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.linear_algebra import psd_factor, times
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.points.reading import many_rows
from diffrac_cvx.problem.direction_problem import SOLVER_COPIES, DirectionProblem, problem_by_rows
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.solvers.driver import Callback, Iterate, Stopping, WarmStart, solve_by_iterates
from diffrac_cvx.solvers.factored import augmented_lagrangian, components, pattern, sampling, working_set
from diffrac_cvx.solvers.race import Pause, Steps, Strategy, race


def low_rank(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    tol: float = 1e-5,
    max_iter: int = 20_000,
    time_limit: float | None = None,
    callback: Callback | None = None,
    start: Result | npt.ArrayLike | None = None,
    working_set: bool = True,
    sample_weight: npt.ArrayLike | None = None,
    rtol: float = 0.0,
    constraints: Constraints | None = None,
) -> Result:
    r"""Solve problem (15) in a low-rank factor of V, to a certified gap.

    .. math::
        \min_{V \succeq 0}\ 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \tfrac1n \mathrm{tr}\, X^\top X V + \Gamma(V)

    The applicable strategies race: each gets slices of work in turn, and the one with the smallest certified gap gets
    the largest.  Work is counted in operations, not in seconds.  The result is therefore the same on every machine,
    unless a time limit stops the solver, or stops a strategy because its next step would take longer than the remaining
    time.

    - Blocks: with c > 0, V starts diagonal, at O(nd) per step.  The certificate screens all pairs of features a few
      times, at O(n d^2), and merges features into blocks where it is violated.  Memory is O(nd), so d may be in the
      thousands; use the sparse factor ``result.G``, because ``result.V`` is d x d.
    - Working set: with c > 0, a ridge and many features, it solves the problem on a few features and adds those that
      violate the certificate.  The bounds hold for all features; no d x d matrix is formed.
    - Pattern: with c > 0, d <= n and at most 1000 features, an interior-point method finds V on a sparsity pattern with
      few pairs; a step costs O(n m^2 + m^3) for m entries.
    - One block: V = UU' with U of shape (d, r), where r decreases from d during convergence.  A step is O(ndr), a
      certificate O(d^3), and memory O(nd + d^2).
    - Sampling, before the others: with at least max(40 000, 40 d^2) rows of equal weight, it solves the problem on a
      sample, whose gradient it corrects in one multithreaded pass over all rows that also certifies the bounds.  X is
      not copied and must not change before the first access to ``result.F``, which computes it; each pass detects
      changes.

    The bounds are those of `certify_v`, valid at every status.  Although the factored problem is not convex, the worst
    outcome is a gap that does not close.

    Source: Eq. (12), (14), (15), (20); the method is not in the paper, see the guides on solvers and on components.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.  A sparse matrix is read as it is stored; with many rows, a memory map, a dask array,
        or a table that supports only slicing (h5py, zarr) is read by blocks and not loaded into memory.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.
    penalty : Penalty
        Ridge weights a and l1 weights c; no penalty by default.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, short for ``penalty=Penalty(lam=lam, ridge=ridge)``.
    tol : float
        Certified gap ``upper - lower`` at which to stop; default 1e-5.  Objective values lie in [0, 1].
    max_iter : int
        Maximum total number of L-BFGS steps; default 20 000.
    time_limit : float, optional
        Time limit in seconds, kept to within about a second for any problem size.
    callback : callable, optional
        Called with each `Progress`, about five times a second during long products; return True to stop the solver.
    start : Result or (d, d) array, optional
        Matrix of directions for a warm start, such as the solution for a similar penalty.  Its components are reused if
        none contains half of the features.  The solution returned is never worse.
    working_set : bool
        Whether strategies other than one block are allowed; default True.  If the optimum is not unique, the block and
        working-set strategies favour sparse solutions of low rank; with one block the solution has generic rank, as
        with interior-point methods.
    sample_weight : (n,) array, optional
        Non-negative weights of the points, on any scale: weight 2 duplicates a point, weight 0 ignores it.  They also
        apply to the means by which X is centred.  A point of weight 0 still has a row in ``result.F``.
    rtol : float
        Certified gap relative to the upper bound, in [0, 1], at which to stop even if tol is not met; default 0.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels of some points; X must be an array.  Linked points form
        one row of the problem, which makes it smaller; their rows of ``result.F`` are equal or opposite.

    Returns
    -------
    Result
        Solution with certified bounds, and with ``components`` if V is zero between some features.  Its status is
        ``Status.OUT_OF_MEMORY`` if V as one block would not fit in memory.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.  If the data change while they are read, the
        DataError has the bounds certified so far, for the data as first read, as ``bracket``.
    ResourceError
        If a few copies of X, or its factorisation without an l1 penalty, would not fit in memory; raised beforehand.
    """
    penalty = resolve_penalty(penalty, lam, ridge)
    stopping = Stopping(tol, max_iter, time_limit, callback, rtol=rtol)
    require_flag(working_set, "working_set")

    strategies = STRATEGIES if working_set else (ONE_BLOCK,)

    def iterates(problem: DirectionProblem, warm_start: WarmStart) -> Iterator[Iterate]:
        done = 0
        if problem.X.is_streamed:  # samples of the rows, then passes over all rows or a race in memory
            last = None
            until_converged = not problem.has_l1 or not problem.X.fits(2.0 * SOLVER_COPIES, available_memory())
            for found in sampling.sampling_iterates(problem, warm_start, stopping, until_converged=until_converged):
                if isinstance(found, Iterate):
                    last = found
                    yield found
            if until_converged:
                return
            if last is not None:
                done, is_split = last.n_iter, components.is_block_diagonal(problem, last.U)
                warm_start = WarmStart() if is_split else WarmStart(last.U, last.dual.C)
            problem = problem.in_columns()
        for found in race(strategies, problem, warm_start, stopping):
            yield found._replace(n_iter=done + found.n_iter)

    with in_range():
        return solve_by_iterates(
            X,
            nu,
            penalty,
            iterates,
            stopping,
            "low_rank",
            start=start,
            certifies_start=True,
            sample_weight=sample_weight,
            constraints=constraints,
            are_many=many_rows,
            by_columns=penalty.has_l1,
        )


def one_block_iterates(problem: DirectionProblem, warm_start: WarmStart, stopping: Stopping) -> Steps:
    """Yield iterates with V as one block: in memory, or in passes over the rows of a sparse table.

    Start from the last iterate of a strategy that has ended, such as the block strategy if most features are in one
    block.
    """
    n, size = problem.X.shape
    twenty_steps, certificate = 20.0 * (7.0 * n + 4.0 * size) * size**2, 60.0 * float(size) ** 3  # at full rank
    predecessor = yield Pause(twenty_steps + certificate)
    copies_of_V = 16  # held at once
    if copies_of_V * 8.0 * size**2 > available_memory():
        raise EarlyExitError(Status.OUT_OF_MEMORY)
    if predecessor is not None and predecessor.point is not None:
        # The multiplier is M - A, projected on the dual set, as if V were diagonal.
        multiplier = problem.X.weighted_gram(problem.inverse_sqrt(predecessor.point.q)) - problem.A
        warm_start = WarmStart(predecessor.U, problem.pair_penalty.project_safe(multiplier))
    by_rows = problem_by_rows(problem)
    if by_rows is problem:
        U, C = warm_start.as_dense
        if warm_start.point is not None:
            yield Iterate(warm_start.point.U, 0, DualPoint(C=C), warm_start.point)
        if U is not None:  # a small full-rank perturbation lets every coordinate enter
            full_rank = np.column_stack([U, 1e-2 * np.sqrt(np.sum(U**2)) / size * np.eye(size)])
            U = full_rank if full_rank.shape[1] <= size else psd_factor(times(full_rank, full_rank.T), rtol=1e-14)
        yield from augmented_lagrangian.one_block_iterates(problem, stopping.max_iter, U, C)
    else:
        yield from sampling.sampling_iterates(by_rows, warm_start, stopping, until_converged=True)


BLOCKS = Strategy(components.block_iterates, components.is_blockwise_applicable)
PATTERN = Strategy(pattern.pattern_iterates, pattern.is_pattern_applicable)
ONE_BLOCK = Strategy(one_block_iterates)
WORKING_SET = Strategy(working_set.working_set_iterates, working_set.is_working_set_applicable)
STRATEGIES = (BLOCKS, PATTERN, ONE_BLOCK, WORKING_SET)  # in the order of their first slices
