"""The low-rank solver: ways of solving that take turns, and stop at a proved gap."""

from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
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

LOW_RANK_MATRICES = 16  # of the size of V, that the solver holds where V is one block


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
    r"""Solve problem (15) to a proved gap: by components where V has some, else as one block, V = UU'.

    .. math::
        \min_{V \succeq 0}\ 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \tfrac1n \mathrm{tr}\, X^\top X V + \Gamma(V)

    Where c > 0 and there are many features, a few are solved for first, and others join that the certificate finds to
    be violated, as long as that is better than any diagonal V can be; the bracket is on all features, and no matrix of
    their number squared is made.  Else V is diagonal at first, O(nd) a step.  The certificate looks at all pairs of
    features, O(n d^2), in single precision where d is large, a few times in all, and those that have to act together
    are joined in blocks.  Memory is O(nd): d may be in the thousands, and V is given by a sparse factor, ``result.G``,
    for ``result.V`` is d x d.  Where most features are in one component, and without l1 part, V is one block, U of
    d x r started at full rank and reduced as it converges, O(ndr) a step and O(d^3) for each certificate, memory
    O(nd + d^2).

    Many rows (40 000 or more, and at least 40 d^2) are neither copied nor visited at every step: the problem is solved
    on a sample whose gradient one pass over all rows corrects, by as many threads as the linear algebra has, and the
    same pass proves the bracket.  X must not change before ``result.F`` is read, which is made then: each pass sees
    whether it did.  Where the points have unequal weights, all rows are visited however many they are.

    The bracket is that of `certify_v`, so that the non-convexity of the factored problem cannot produce a wrong answer,
    only a gap that does not close.  It is valid at every status.

    Source: Eq. (12), (14), (15), (20); the method is not the paper's, see the pages on solvers and on components.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Weights a and c.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, instead of a penalty: ``Penalty(lam=lam, ridge=ridge)``.
    tol : float
        Proved gap ``upper - lower`` at which to stop; values lie in [0, 1].
    max_iter : int
        L-BFGS steps in all.
    time_limit : float, optional
        Seconds.  Kept within about a second, whatever the size.
    callback : callable, optional
        Called with each `Progress`, and about five times a second where single products are long; a true return value
        stops the solver.
    start : Result or (d, d) array, optional
        A matrix of directions to start from, such as the solution for a nearby penalty.  Of a result with components
        these are taken too; a matrix is started from as one block.  What is returned is never worse.
    working_set : bool
        Whether a sparse problem may be solved by components, or on a few coordinates first.  Where the optimum is not
        unique both favour sparse solutions of low rank; without them the solution is of generic rank, as an interior
        point is.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0 and of any scale: a weight of 2 counts as the same point twice, 0 as none.
        All means are weighted, that by which X is centred too.  A point of weight 0 has a row in ``result.F``.
    rtol : float
        Proved gap, relative to the upper bound, at which to stop as well; in [0, 1].
    constraints : Constraints, optional
        What is known of some points of an array: which belong together or apart, and labels.  A group of linked points
        is one row of the problem, so that constraints cost nothing; rows of ``result.F`` that are linked are equal, or
        opposite.

    Returns
    -------
    Result
        With ``components``, where V was found by components.  Its status is ``Status.MEMORY`` where V as one block
        would not fit in memory.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.  A table that changed while it was read
        is a DataError whose ``bracket`` is what was proved until then, of the data as they were read first.
    ResourceError
        If a few copies of X, or without l1 part a factorisation of it, would not fit in memory: before they are made.
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
    """What a way of solving starts from; the problem is in the form that the way before left it."""

    problem: DirectionProblem
    warm_start: WarmStart
    stopping: Stopping
    use_working_set: bool  # whether a few coordinates, or components, may be solved for first
    done: int = 0  # iterations of the ways before
    end: Iterate | None = None  # the last point of the way before

    @property
    def steps(self) -> int:
        """Iterations that are left."""
        return self.stopping.max_iter - self.done


Strategy = Generator[Iterate, None, SolverState | None]  # the turn after it; None where nothing is left to be tried


def run_strategies(state: SolverState) -> Iterator[Iterate]:
    """Yield the points of the ways of solving that apply, one after the other."""
    following: SolverState | None = state
    for strategy in (solve_by_sampling, solve_by_working_set, solve_by_blocks, solve_as_one_block):
        if following is not None:
            following = yield from strategy(following)


def track_iterations(state: SolverState, points: Iterable[Iterate]) -> Generator[Iterate, None, SolverState]:
    """Yield points with the iterations before them, and return the turn after them."""
    after = state._replace(end=None)
    for point in points:
        after = after._replace(done=state.done + point.n_iter, end=point)
        yield point._replace(n_iter=after.done)
    return after


def solve_by_sampling(state: SolverState) -> Strategy:
    """Solve on samples of rows that are read in passes; then, if they fit in memory, as any others."""
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
    return after._replace(problem=replace(problem, X=problem.X.in_columns()), warm_start=warm_start, end=None)


def solve_by_working_set(state: SolverState, *, force: bool = False) -> Strategy:
    """Solve from a few features outwards, unless a diagonal V may be better."""
    if not may_use_working_set(state):
        return state
    points = working_set.working_set_iterates(state.problem, state.stopping, state.steps, state.warm_start, force=force)
    after = yield from track_iterations(state, points)
    if not state.problem.structure.is_elementwise:
        return after
    return None if force or after.done > state.done else state


def may_use_working_set(state: SolverState) -> bool:
    """Whether a few features are tried."""
    return (
        state.use_working_set
        and state.problem.has_l1
        and working_set.is_working_set_applicable(state.problem, state.warm_start)
    )


def solve_by_blocks(state: SolverState) -> Strategy:
    """Solve by components from a diagonal V; from a few features after all, where that proves nothing for long."""
    problem, stopping = state.problem, state.stopping
    if not (state.use_working_set and problem.has_l1 and components.is_blockwise_applicable(problem, state.warm_start)):
        return state
    try_working_set = may_use_working_set(state)
    points = components.block_iterates(problem, stopping.tol, state.steps, state.warm_start)
    after = yield from track_iterations(state, until_stalled(points) if try_working_set else points)
    if try_working_set and after.end is not None and is_stalled(after.end):
        return (yield from solve_by_working_set(state._replace(done=after.done), force=True))
    return after


def until_stalled(points: Iterator[Iterate]) -> Iterator[Iterate]:
    """Yield points up to the first that proves nothing after many steps."""
    for point in points:
        yield point
        if is_stalled(point):
            return


def is_stalled(point: Iterate) -> bool:
    """Whether nothing is proved after many steps."""
    return point.n_iter >= WORKING_SET.stall_steps and point.bounds is not None and point.bounds.lower <= 0.0


def solve_as_one_block(state: SolverState) -> Strategy:
    """Solve for V as one block: by passes, or on all coordinates; it goes on from where the components ended."""
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
    """Yield points of the problem on all coordinates."""
    factor, C = warm_start.as_dense
    U = None if factor is None else with_full_rank(factor)
    return augmented_lagrangian.one_block_iterates(problem, state.steps, U, C)


def multiplier_at(problem: DirectionProblem, q: Array) -> Array:
    """Return M - A, clipped to the box, at energies q: the multiplier where V is 0 off its diagonal."""
    excess = problem.X.weighted_gram(problem.inverse_sqrt(q)) - problem.A
    return problem.pair_penalty.project_safe(excess)


def with_full_rank(U: Array) -> Array:
    """Return U with a small part of full rank, so that every coordinate can enter."""
    small = 1e-2 * np.sqrt(np.sum(U**2)) / len(U)
    wide = np.column_stack([U, small * np.eye(len(U))])
    return wide if wide.shape[1] <= len(U) else psd_factor(times(wide, wide.T), rtol=1e-14)
