"""The low-rank solver: samples of many rows, components, one block V = UU', and a proved gap."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.memory import available_memory
from diffrac_cvx.machine.time_budget import LeaveError
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.points.reading import as_points
from diffrac_cvx.points.weights import weights_for
from diffrac_cvx.problem.direction_problem import COPIES, DirectionProblem, problem_by_rows
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, penalty_of
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.solvers.factored import augmented_lagrangian, components, growing, sampling
from diffrac_cvx.solvers.factored.working_set import extend_multiplier, with_small_entries
from diffrac_cvx.solvers.factored.working_set import iterates as iterates_on_working_sets
from diffrac_cvx.solvers.stopping import Callback, Iterate, Start, Stopping, solve_by_iterates

WORKING_SET_FROM = 24  # coordinates; below, the problem on all of them takes as long
MATRICES = 16  # of the size of V, that the solver holds where V is one block


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
    penalty = penalty_of(penalty, lam, ridge)
    stopping = Stopping(tol, max_iter, time_limit, callback, rtol=rtol)

    def iterates(problem: DirectionProblem, first: Start) -> Iterator[Iterate]:
        done = 0
        if problem.X.in_passes:
            last = None
            to_the_end = not problem.X.fits(2.0 * COPIES, available_memory())
            for last in sampling.iterates(problem, tol, stopping.max_iter, *first.as_dense, stopping.poll, to_the_end):
                yield last
                done = last.n_iter
            if not problem.has_l1 or to_the_end:
                return
            if last is not None and last.dual is not None:
                first = Start() if sampling.is_split(problem, last.U) else Start(last.U, last.dual.C)
            problem = replace(problem, X=problem.X.in_columns())
        if (not working_set or not problem.has_l1) and problem.X.in_memory:
            for iterate in iterates_on_all(problem, first, stopping, done):
                yield iterate._replace(n_iter=iterate.n_iter + done)
            return
        grows = working_set and growing.is_worth_trying(problem, first)
        if grows:
            before = done
            whole, steps = growing.in_memory(problem), stopping.max_iter - done
            for iterate in growing.iterates(whole, stopping, steps, first):
                done = before + iterate.n_iter
                yield iterate._replace(n_iter=done)
            if done > before:
                return
        end: Iterate | None = None
        if working_set and components.is_worth_trying(problem, first):
            before = done
            for end in components.iterates(problem, tol, stopping.max_iter - done, first, stopping.poll):
                done = before + end.n_iter
                yield end._replace(n_iter=done)
                if grows and end.n_iter >= growing.IN_VAIN and end.bounds is not None and end.bounds.lower <= 0.0:
                    steps = stopping.max_iter - done
                    for iterate in growing.iterates(whole, stopping, steps, first, always=True):
                        yield iterate._replace(n_iter=done + iterate.n_iter)
                    return
        if not problem.X.in_memory:
            for iterate in iterates_by_passes(problem, first if end is None else Start(end.U), stopping, done):
                yield iterate._replace(n_iter=iterate.n_iter + done)
            return
        for iterate in iterates_dense(problem, first, end, stopping, done):
            yield iterate._replace(n_iter=iterate.n_iter + done)

    weights = weights_for(X, sample_weight)

    def read(X: Any) -> Points:
        shape = getattr(X, "shape", ())
        many = len(shape) == 2 and sampling.many_rows(*shape)
        by_columns = penalty.has_l1 and not many
        return as_points(X, by_rows=many, by_columns=by_columns, depth=6, poll=stopping.poll)

    with in_range():
        return solve_by_iterates(
            X, nu, penalty, iterates, stopping, "low_rank", start=start, weights=weights, read=None if weights else read
        )


def iterates_by_passes(problem: DirectionProblem, first: Start, stopping: Stopping, done: int) -> Iterator[Iterate]:
    """Yield points of a sparse problem whose V is one block: its rows are read again and again."""
    if MATRICES * 8.0 * problem.X.shape[1] ** 2 > available_memory():
        raise LeaveError(Status.MEMORY)
    steps, whole = stopping.max_iter - done, problem_by_rows(problem)
    yield from sampling.iterates(whole, stopping.tol, steps, *first.as_dense, stopping.poll, to_the_end=True)


def iterates_dense(
    problem: DirectionProblem, first: Start, end: Iterate | None, stopping: Stopping, done: int
) -> Iterator[Iterate]:
    """Yield points whose V is one block: from where the components ended, else by working sets where d is large."""
    size = problem.X.shape[1]
    if MATRICES * 8.0 * size**2 > available_memory():
        raise LeaveError(Status.MEMORY)
    if end is not None and end.scaled is not None:
        multiplier, _ = extend_multiplier(problem, end.scaled.q, np.zeros(0, dtype=np.intp), None)
        return iterates_on_all(problem, Start(end.U, multiplier), stopping, done)
    if size < WORKING_SET_FROM:
        return iterates_on_all(problem, first, stopping, done)
    U, C = first.as_dense
    return iterates_on_working_sets(problem, stopping.tol, stopping.max_iter - done, U, C, stopping.poll)


def iterates_on_all(problem: DirectionProblem, first: Start, stopping: Stopping, done: int = 0) -> Iterator[Iterate]:
    """Yield points of the problem on all coordinates."""
    given, C = first.as_dense
    U = None if given is None else with_small_entries(given, np.arange(len(given)))
    return augmented_lagrangian.iterates(problem, stopping.max_iter - done, U, C, stopping.poll)
