"""Low-rank solver: selects and runs solution strategies until the certified gap reaches the tolerance."""

from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.deadlines import EarlyExitError
from diffrac_cvx.machine.memory import available_memory
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.linear_algebra import psd_factor, times
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.problem.direction_problem import SOLVER_COPIES, DirectionProblem, problem_by_rows
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.solvers.factored import augmented_lagrangian, components, sampling, working_set
from diffrac_cvx.solvers.factored.tuning import WORKING_SET
from diffrac_cvx.solvers.stopping import Callback, Iterate, Stopping, WarmStart, solve_by_iterates

LOW_RANK_MATRICES = 16  # matrices of the size of V held at once if V is one block


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

    The solver selects its strategy from the data and the penalty:

    - Working set: with c > 0 and many features, it solves the problem on a few features and adds those that violate
      the certificate, unless a diagonal V may be better.  The bounds hold for all features; no d x d matrix is formed.
    - Blocks: otherwise with c > 0, V starts diagonal, at O(nd) per step.  The certificate screens all pairs of
      features a few times, at O(n d^2), and merges features into blocks where it is violated.  Memory is O(nd), so d
      may be in the thousands; use the sparse factor ``result.G``, because ``result.V`` is d x d.
    - One block: without an l1 penalty, or if most features are in one component, V = UU' with U of shape (d, r), where
      r decreases from d during convergence.  A step is O(ndr), a certificate O(d^3), and memory O(nd + d^2).
    - Sampling: with at least max(40 000, 40 d^2) rows of equal weight, it solves the problem on a sample, whose
      gradient it corrects in one multithreaded pass over all rows that also certifies the bounds.  X is not copied and
      must not change before ``result.F`` is read, which is computed then; each pass detects changes.

    The bounds are those of `certify_v`, valid at every status.  Although the factored problem is not convex, the worst
    outcome is a gap that does not close.

    Source: Eq. (12), (14), (15), (20); the method is not in the paper, see the pages on solvers and on components.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
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
        Matrix of directions for a warm start, such as the solution for a similar penalty.  The components of a result
        are reused; a matrix is treated as one block.  The solution returned is never worse.
    working_set : bool
        Whether the working-set and block strategies are allowed; default True.  If the optimum is not unique, both
        favour sparse solutions of low rank; without them the solution has generic rank, as with interior-point methods.
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
        Solution with certified bounds, and with ``components`` if V was found by blocks.  Its status is
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

    def iterates(problem: DirectionProblem, warm_start: WarmStart) -> Iterator[Iterate]:
        return run_strategies(SolverState(problem, warm_start, stopping, working_set))

    with in_range():
        return solve_by_iterates(
            X,
            nu,
            penalty,
            iterates,
            stopping,
            "low_rank",
            start=start,
            sample_weight=sample_weight,
            constraints=constraints,
            are_many=sampling.many_rows,
            by_columns=penalty.has_l1,
        )


class SolverState(NamedTuple):
    """State passed from one solution strategy to the next; each may transform the problem."""

    problem: DirectionProblem
    warm_start: WarmStart
    stopping: Stopping
    use_working_set: bool  # whether the working-set and block strategies are allowed
    done: int = 0  # iterations of the previous strategies
    end: Iterate | None = None  # last iterate of the previous strategy
    lower: float = 0.0  # best lower bound certified by the previous strategy

    @property
    def steps(self) -> int:
        """Number of iterations left."""
        return self.stopping.max_iter - self.done


Strategy = Generator[Iterate, None, SolverState | None]  # returns the next state, or None if the solver should end


def run_strategies(state: SolverState) -> Iterator[Iterate]:
    """Yield the iterates of the applicable strategies, one strategy after the other."""
    following: SolverState | None = state
    for strategy in (solve_by_sampling, solve_by_working_set, solve_by_blocks, solve_as_one_block):
        if following is not None:
            following = yield from strategy(following)


def track_iterations(state: SolverState, points: Iterable[Iterate]) -> Generator[Iterate, None, SolverState]:
    """Yield the iterates with cumulative iteration counts, and return the state after them."""
    after = state._replace(end=None, lower=0.0)
    for point in points:
        after = after._replace(
            done=state.done + point.n_iter, end=point, lower=max(after.lower, certified_lower(point))
        )
        yield point._replace(n_iter=after.done)
    return after


def solve_by_sampling(state: SolverState) -> Strategy:
    """Solve on samples of streamed rows; pass on the problem in memory if it has an l1 penalty and fits."""
    problem, stopping = state.problem, state.stopping
    if not problem.X.is_streamed:
        return state
    until_converged = not problem.X.fits(2.0 * SOLVER_COPIES, available_memory())
    U, C = state.warm_start.as_dense
    points = sampling.sampling_iterates(problem, stopping.tol, state.steps, U, C, until_converged)
    after = yield from track_iterations(state, points)
    if not problem.has_l1 or until_converged:
        return None
    warm_start, last = state.warm_start, after.end
    if last is not None and last.dual is not None:
        warm_start = WarmStart() if sampling.is_block_diagonal(problem, last.U) else WarmStart(last.U, last.dual.C)
    return after._replace(problem=problem.in_columns(), warm_start=warm_start, end=None)


def solve_by_working_set(state: SolverState, *, force: bool = False) -> Strategy:
    """Solve on a growing working set of features, unless a diagonal V may be better."""
    if not may_use_working_set(state):
        return state
    points = working_set.working_set_iterates(state.problem, state.stopping, state.steps, state.warm_start, force=force)
    after = yield from track_iterations(state, points)
    if not state.problem.structure.is_elementwise:
        return after
    return None if force or after.done > state.done else state


def may_use_working_set(state: SolverState) -> bool:
    """Return whether the working-set strategy is allowed and applicable."""
    return (
        state.use_working_set
        and state.problem.has_l1
        and working_set.is_working_set_applicable(state.problem, state.warm_start)
    )


def solve_by_blocks(state: SolverState) -> Strategy:
    """Solve by block decomposition from a diagonal V; switch to the working set if no bound is found for long."""
    problem, stopping = state.problem, state.stopping
    if not (state.use_working_set and problem.has_l1 and components.is_blockwise_applicable(problem, state.warm_start)):
        return state
    try_working_set = may_use_working_set(state)
    points = components.block_iterates(problem, stopping.tol, state.steps, state.warm_start)
    after = yield from track_iterations(state, until_stalled(points) if try_working_set else points)
    if try_working_set and after.end is not None and is_stalled(after.end, after.lower):
        return (yield from solve_by_working_set(state._replace(done=after.done), force=True))
    return after


def until_stalled(points: Iterator[Iterate]) -> Iterator[Iterate]:
    """Yield iterates up to the first at which the strategy is stalled."""
    lower = 0.0
    for point in points:
        lower = max(lower, certified_lower(point))
        yield point
        if is_stalled(point, lower):
            return


def is_stalled(point: Iterate, lower: float) -> bool:
    """Return whether no positive lower bound has been certified after many steps."""
    return point.n_iter >= WORKING_SET.stall_steps and point.bounds is not None and lower <= 0.0


def certified_lower(point: Iterate) -> float:
    """Return the lower bound of an iterate; 0 if it has none, as at steps that do not screen the pairs."""
    return 0.0 if point.bounds is None else point.bounds.lower


def solve_as_one_block(state: SolverState) -> Strategy:
    """Solve for V as one block, in memory or streamed, from the solution of the block strategy if there is one."""
    problem, warm_start, stopping, end = state.problem, state.warm_start, state.stopping, state.end
    if (not state.use_working_set or not problem.has_l1) and problem.X.in_memory:
        yield from track_iterations(state, full_iterates(problem, warm_start, state))
        return None
    size = problem.X.shape[1]
    if LOW_RANK_MATRICES * 8.0 * size**2 > available_memory():
        raise EarlyExitError(Status.OUT_OF_MEMORY)
    if not problem.X.in_memory:
        U, C = (warm_start if end is None else WarmStart(end.U)).as_dense
        rows = problem_by_rows(problem)
        points = sampling.sampling_iterates(rows, stopping.tol, state.steps, U, C, until_converged=True)
    elif end is not None and end.point is not None:
        points = full_iterates(problem, WarmStart(end.U, multiplier_at(problem, end.point.q)), state)
    else:
        points = full_iterates(problem, warm_start, state)
    yield from track_iterations(state, points)
    return None


def full_iterates(problem: DirectionProblem, warm_start: WarmStart, state: SolverState) -> Iterator[Iterate]:
    """Yield iterates of the problem on all coordinates."""
    factor, C = warm_start.as_dense
    U = None if factor is None else with_full_rank(factor)
    return augmented_lagrangian.one_block_iterates(problem, state.steps, U, C)


def multiplier_at(problem: DirectionProblem, q: Array) -> Array:
    """Return M - A at q, projected on the dual set: the multiplier if V is diagonal."""
    excess = problem.X.weighted_gram(problem.inverse_sqrt(q)) - problem.A
    return problem.pair_penalty.project_safe(excess)


def with_full_rank(U: Array) -> Array:
    """Return U with a small full-rank perturbation, so that every coordinate can enter."""
    small = 1e-2 * np.sqrt(np.sum(U**2)) / len(U)
    wide = np.column_stack([U, small * np.eye(len(U))])
    return wide if wide.shape[1] <= len(U) else psd_factor(times(wide, wide.T), rtol=1e-14)
