"""Reference implementation: solve a relaxation with CVXPY and certify the solution."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.errors import ParameterError, ResourceError, sentence
from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.processes import STOP_SECONDS, StoppedError, Worker, WorkerDiedError
from diffrac_cvx.points.checks import positive, positive_int, require_callback
from diffrac_cvx.problem.formatting import width_of
from diffrac_cvx.problem.result import Progress, Result, Status
from diffrac_cvx.relaxations.relaxation import Relaxation, Size, Solution

if TYPE_CHECKING:
    import cvxpy as cp

SMALL_SIDE = 40  # CLARABEL's cost grows with the sixth power of the cone's side
SMALL_NONZEROS = 100_000  # nonzeros up to which CLARABEL is as fast as SCS
QUICK_ROWS = 200_000  # nonzeros up to which CVXPY compiles in half a second
QUICK_SIDES = {"CLARABEL": 40, "SCS": 120}  # sides of the cone up to which a solve takes about a second
TRANSFER_SECONDS = 0.3  # for the transfer of the solution from the subprocess

# Tolerance relative to tol, and the names of the solver's options for tolerances, iterations and seconds.
COMMON_OPTIONS = {
    "CLARABEL": (1e-4, ("tol_gap_abs", "tol_gap_rel", "tol_feas"), "max_iter", "time_limit"),
    "SCS": (1e-2, ("eps_abs", "eps_rel"), "max_iters", "time_limit_secs"),
}


def solve(
    relaxation: Relaxation,
    solver: str | None = None,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    callback: Callable[[Progress], object] | None = None,
    **solver_options: Any,
) -> Result:
    """Solve a relaxation with CVXPY and certify the bounds independently of the solver's report.

    Change the parameters of the relaxation between calls with ``relaxation.at(nu=0.5)``; it is compiled only once.
    If the solution has a closed form, it is returned without a solver.

    Parameters
    ----------
    relaxation : Relaxation
        Relaxation from a builder, such as ``v_space(X)``.
    solver : str, optional
        "CLARABEL" (interior point), "SCS" (first order), or another installed CVXPY solver.  By default CLARABEL if
        the semidefinite cone has side at most 40 and the other rows have at most 100 000 nonzeros, otherwise SCS.
    tol : float
        Certified gap ``upper - lower`` up to which the status is OPTIMAL; default 1e-4.  SCS runs with tolerances
        1e-2 tol, CLARABEL with 1e-4 tol.
    max_iter : int, optional
        Maximum number of iterations; CLARABEL and SCS only.
    time_limit : float, optional
        Time limit in seconds, compilation included; CLARABEL and SCS only.  The first call also counts the seconds that
        the builder of the relaxation took, such as the import of CVXPY.  If the solve may take longer than a second,
        the solver runs in a subprocess with one thread.  The solver stops a little before the limit and returns its
        current point; otherwise the subprocess is terminated at the limit, without a solution.
    memory_limit : float, optional
        Upper limit in GB on the estimated memory; by default the free memory of the machine.
    callback : callable, optional
        Called several times per second with a `Progress` of the elapsed seconds and trivial bounds if the solve may
        take longer than a second; a true value stops the solver, without a solution.
    **solver_options
        Options passed to the solver unchanged, such as ``verbose=True``; they override those derived from the
        parameters above.

    Returns
    -------
    Result
        The status is INACCURATE if the certified gap exceeds tol, USER_LIMIT if this is due to an iteration or time
        limit, STOPPED if the callback stopped the solver, and FAILED if it returned no solution for any other reason.
        If the bounds refer to the best labels, as with linear constraints, the status is RELAXED if only the relaxation
        itself is solved to within tol.

    Raises
    ------
    ParameterError
        If the solver is not installed, an option is unknown, or a parameter is outside its range.
    ResourceError
        If the problem would not fit in memory; the message names an alternative that needs less.
    """
    if not isinstance(relaxation, Relaxation):
        raise ParameterError(f"relaxation has type {type(relaxation).__name__}. Pass a relaxation such as v_space(X).")
    positive(tol, "tol")
    max_iter = None if max_iter is None else positive_int(max_iter, "max_iter")
    if time_limit is not None:
        time_limit = max(positive(time_limit, "time_limit") - relaxation.count_building(), 0.0)
    timer = Timer(time_limit)
    memory_limit = None if memory_limit is None else 1e9 * positive(memory_limit, "memory_limit")
    require_callback(callback)
    is_small = relaxation.size.side <= SMALL_SIDE and relaxation.size.nonzeros <= SMALL_NONZEROS
    name = ("CLARABEL" if is_small else "SCS") if solver is None else find_solver(solver)
    answer = relaxation.shortcut()
    if isinstance(answer, Solution):
        return make_result(answer, Status.CLOSED_FORM, 0, timer.elapsed, "closed form", relaxation)
    relaxation = relaxation if answer is None else answer
    if name not in COMMON_OPTIONS and not (max_iter is None and time_limit is None):
        raise ParameterError(f"max_iter and time_limit are not supported with {name}. Pass its own options by name.")
    needed = memory_needed(relaxation.size, name)
    require_memory(needed, f"{relaxation.name} with {name}", relaxation.size.instead, memory_limit)
    tighter: Relaxation | None = relaxation
    n_iter, stopping = 0, False

    def is_stopped() -> bool:
        nonlocal stopping
        now = Progress(0, timer.elapsed, *trivial)
        stopping = stopping or (callback is not None and bool(callback(now)))
        return stopping

    while tighter is not None:
        relaxation, variables, trivial = tighter, tighter.problem.variables(), tighter.trivial
        for variable in variables:
            variable.save_value(None)  # a value from an earlier call must not be read as the solution of this one
        is_long = takes_long(relaxation.size, name) and not (time_limit is None and callback is None)
        run = partial(run_in_subprocess, is_stopped=is_stopped) if is_long else run_solver
        n_more, limited, _ = run(relaxation.problem, name, tol, max_iter, timer, solver_options)
        n_iter += n_more
        is_solved = all(one.value is not None and np.all(np.isfinite(one.value)) for one in variables)
        tighter = relaxation.tighten() if is_solved and not limited else None
    if is_solved:
        solution = relaxation.read()
        status = Status.USER_LIMIT if limited else Status.INACCURATE
        if width_of(solution.bracket.lower, solution.value) <= tol:
            status = Status.RELAXED
        status = Status.OPTIMAL if solution.bracket.gap <= tol else status
    else:
        solution = Solution(F=np.ones((relaxation.size.points, 1)), value=trivial.upper, bracket=trivial)
        status = Status.STOPPED if stopping else Status.USER_LIMIT if limited else Status.FAILED
    return make_result(solution, status, n_iter, timer.elapsed, name, relaxation)


def installed_solvers() -> tuple[str, ...]:
    import cvxpy as cp

    return tuple(cp.installed_solvers())


def find_solver(solver: str) -> str:
    """Return the solver's name in CVXPY's spelling; raise ParameterError if it is not installed."""
    known: dict[str, str] = {name.upper(): name for name in installed_solvers()}
    if not isinstance(solver, str) or solver.upper() not in known:
        choices = ", ".join(sorted(known.values()))
        raise ParameterError(f"solver = {solver!r} is not installed. Choose one of {choices}.")
    return known[solver.upper()]


def memory_needed(size: Size, solver: str) -> float:
    """Estimate the peak memory in bytes; the constants were measured from n = 40 to 10 000 and rounded up."""
    cone = 14.0 * float(size.side) ** 4 if solver == "CLARABEL" else 200.0 * float(size.side) ** 2
    return 1e8 + 550.0 * size.nonzeros + cone


def takes_long(size: Size, solver: str) -> bool:
    """Return whether compilation or one solver step may exceed the time limit by more than a second."""
    return size.nonzeros > QUICK_ROWS or size.side > QUICK_SIDES.get(solver, 0)


def run_solver(
    problem: cp.Problem, solver: str, tol: float, max_iter: int | None, timer: Timer, given: Mapping[str, Any]
) -> tuple[int, bool, list[Any]]:
    """Solve in place; return the number of iterations, whether a limit ended the solver, and all variables' values.

    Without a solution, the number is 0.
    """
    import cvxpy as cp

    try:
        problem.get_problem_data(solver)
    except cp.error.SolverError as error:
        reason = sentence(error)
        raise ParameterError(f"{solver} does not support this problem: {reason} Use CLARABEL or SCS.") from error
    if timer.is_over:
        return 0, True, []
    remaining, options = timer.remaining, dict(given)
    if solver in COMMON_OPTIONS:
        accuracy, tolerances, iterations, seconds = COMMON_OPTIONS[solver]
        limits = {iterations: max_iter, seconds: timer.time_left}
        limits = {name: limit for name, limit in limits.items() if limit is not None}
        options = {**dict.fromkeys(tolerances, accuracy * tol), **limits, **given}
        max_iter = options.get(iterations)
    try:
        with warnings.catch_warnings():
            # CVXPY warns about inaccurate solutions; the certified bounds quantify the inaccuracy.
            warnings.filterwarnings("ignore", message=".*inaccurate.*", category=UserWarning)
            problem.solve(solver=solver, **{"warm_start": False, **options})
        is_solved, is_limited = True, problem.status == "user_limit"
    except cp.error.SolverError:
        is_solved = is_limited = False
    except MemoryError as error:
        raise ResourceError(f"{solver} ran out of memory: {sentence(error)}") from error
    except (TypeError, KeyError, AttributeError) as error:
        if not given:
            raise
        raise ParameterError(f"{solver} rejected the options {dict(given)}: {sentence(error)}") from error
    stats = problem.solver_stats  # SCS does not report that its time limit ended it
    solve_time = 0.0 if stats is None else float(stats.solve_time or 0.0)
    n_iter = int(stats.num_iters or 0) if is_solved and stats is not None else 0
    is_limited |= (isinstance(max_iter, int) and n_iter >= max_iter) or solve_time >= remaining
    return n_iter, is_limited, [variable.value for variable in all_variables(problem)]


def run_in_subprocess(
    problem: cp.Problem,
    solver: str,
    tol: float,
    max_iter: int | None,
    timer: Timer,
    given: Mapping[str, Any],
    is_stopped: Callable[[], bool],
) -> tuple[int, bool, list[Any]]:
    """Solve in a subprocess that is ended at the limit: compilation and solver steps cannot be interrupted here."""
    reserved = min(TRANSFER_SECONDS + STOP_SECONDS, timer.remaining / 2.0)
    last_step_seconds = min(0.1 * timer.remaining, 2.0)  # SCS reads the clock every 25 iterations
    worker, end = Worker(), Timer(timer.remaining - reserved)
    solver_timer = Timer(end.remaining - last_step_seconds)
    try:
        arguments = problem, solver, tol, max_iter, solver_timer, given
        n_iter, limited, values = worker.call(run_solver, *arguments, stopped=lambda: end.is_over or is_stopped())
    except StoppedError:
        return 0, True, []
    except WorkerDiedError as error:
        raise ResourceError(f"{solver} crashed, possibly out of memory: {sentence(error)}") from error
    finally:
        worker.close()
    for variable, value in zip(all_variables(problem), values, strict=bool(values)):
        variable.save_value(value)
    return n_iter, limited, values


def all_variables(problem: cp.Problem) -> list[cp.Variable]:
    """Return the variables of a problem and the dual variables of its constraints."""
    multipliers = (multiplier for constraint in problem.constraints for multiplier in constraint.dual_variables)
    return [*problem.variables(), *multipliers]


def make_result(
    solution: Solution, status: Status, n_iter: int, seconds: float, solver: str, relaxation: Relaxation
) -> Result:
    """Return a solution as a `Result`; the trivial bound replaces a lower bound that a point or labels contradict."""
    result = Result(
        value=solution.value,
        lower=solution.bracket.lower,
        upper=solution.bracket.upper,
        factor=solution.F,
        G=solution.G,
        n_excluded=solution.bracket.n_excluded,
        status=status,
        n_iter=n_iter,
        seconds=seconds,
        solver=solver,
    )
    rounding = solution.rounding_bound
    objective = np.inf if rounding is None else rounding.upper_bound(solution.F, solution.G)
    result = result.checked_against(objective, relaxation.trivial.lower)
    if relaxation.pose is None:
        return result
    posed, point = relaxation.pose(), {"G": solution.G} if solution.G is not None else {"F": solution.F}
    if posed.relaxation in ("labels", "labels_at_alpha"):  # a failed solve has no labels
        point = {} if solution.labels is None else dict(zip(("labels", "direction"), solution.labels, strict=True))
    proofs = solution.proofs if result.invalid_bound is None else ()
    certificate = replace(posed, lower=result.lower, upper=result.upper, proofs=proofs, **point)
    return replace(result, certificate=certificate)
