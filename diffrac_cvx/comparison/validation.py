"""Validation of a solver of problem (15) against the reference implementation, on designed instances."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from diffrac_cvx.comparison.answers import AGREEMENT, Answer, problems_of_certificate, read_answer
from diffrac_cvx.comparison.diagnosis import Judged, diagnose
from diffrac_cvx.comparison.disagreements import contradictions_between, contradictions_within
from diffrac_cvx.comparison.instances import Instance, all_designs
from diffrac_cvx.comparison.methods import MethodResult, summarize_error
from diffrac_cvx.comparison.rendered_table import ReportTable, TableReport, table_of_entries
from diffrac_cvx.errors import DegenerateDataWarning, ParameterError
from diffrac_cvx.machine.abandoned_calls import call_within
from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.machine.processes import OutOfTimeError
from diffrac_cvx.points.checks import Array, as_seed, positive, repetitions
from diffrac_cvx.problem.formatting import format_ends, format_gap, format_lower, formatted_lower, formatted_upper
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Bracket, Result, Status
from diffrac_cvx.relaxations.direction_space import v_space
from diffrac_cvx.solvers import solve

REFERENCE_TOL = 1e-6

COLUMNS = (
    "n", "d", "nu", "penalty", "trait", "returned", "objective", "lower", "upper", "reference_lower", "reference_upper",
    "status", "seconds", "violations",
)  # fmt: skip

Solver = Callable[[Array, float, Penalty], Any]


@dataclass(frozen=True, eq=False)
class Validation(TableReport):
    """Result of `validate`: one row for each instance, with all violations.

    Attributes
    ----------
    rows : tuple of dict
        "n", "d", "nu", "penalty", "trait" (kind of the instance), "returned" ("V", "F" or "Result"), "objective"
        (recomputed at the returned point), "lower", "upper" (bounds of the result, or those of `certify_v` or
        `certify_y`), "reference_lower", "reference_upper" (bounds of the reference), "status", "seconds", and
        "violations", a tuple of sentences that is empty if the solver is right.
    instances : tuple of Instance
        X, nu and the penalty of each instance, to solve it again.
    diagnosis : str
        A sentence on the failing instances: a property that they share, and what the wrong answers are, for example
        optimal for rows that are not centred.  Empty if all instances passed, or nothing was found.
    n_skipped : int
        Number of instances that were not validated because of the time limit.
    """

    rows: tuple[dict[str, Any], ...]
    instances: tuple[Instance, ...]
    diagnosis: str = ""
    n_skipped: int = 0

    @property
    def passed(self) -> bool:
        """Whether all instances were validated and passed."""
        return not self.violations and self.n_skipped == 0

    @property
    def violations(self) -> tuple[str, ...]:
        """All violations, each with the number and the kind of its instance."""
        return tuple(
            f"instance {i} ({row['n']} x {row['d']}, nu = {row['nu']:g}, {row['penalty']}, {row['trait']}): {violation}"
            for i, row in enumerate(self.rows)
            for violation in row["violations"]
        )

    @property
    def table(self) -> Any:
        """The rows as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(list(self.rows))

    def tables(self) -> list[ReportTable]:
        """Return the printed table: all columns, with the number of violations instead of their texts."""
        records = [
            {"instance": i, **row, "violations": len(row["violations"]) or None} for i, row in enumerate(self.rows)
        ]
        return [table_of_entries(records, ("instance", *COLUMNS))]

    def messages(self) -> list[str]:
        """Return the number of instances that passed, the diagnosis, and the violations."""
        wrong = sum(bool(row["violations"]) for row in self.rows)
        passed = f"{len(self.rows) - wrong} of {len(self.rows) + self.n_skipped} instances passed"
        if self.n_skipped:
            passed += f". The time limit left out {self.n_skipped}. Raise time_limit"
        return [passed, *([f"diagnosis: {self.diagnosis}"] if self.diagnosis else []), *self.violations]


def validate(
    solver: Solver,
    n_instances: int = 50,
    rng: int = 0,
    *,
    tol: float = 1e-4,
    instance_time_limit: float | None = None,
    time_limit: float | None = None,
) -> Validation:
    r"""Check a solver of problem (15) against the CVXPY reference, and name everything that is wrong.

    Each instance is solved by the solver and by `v_space` with CLARABEL, whose bounds are certified.  The instances
    have 8 to 60 points and 1 to 20 features, nu from 0 to 1, no penalty, a ridge, an l1 penalty or both.  The data are
    plain, noisy, unbalanced, badly scaled (columns from 1e-4 to 1e4) or degenerate (a row at the mean, two equal
    columns), and of each kind most have columns with means other than 0, and many columns of different units or a copy
    of a column.  The optimum is 0 for one kind, "zero optimum", and about 0.01 to 1 for the others.

    The checks: the solver raises no error and does not change X; the returned point is finite, has the right shape and
    is feasible (V symmetric and positive semidefinite, F with rows of norm 1); it is optimal up to ``tol``; the value
    of a `Result` is the objective at its V, its F belongs to its V, its bounds contain the optimum, and a status
    that claims optimality is true.  The objectives are recomputed here and share no code with the solvers:

    .. math::
        f(V) = 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \tfrac1n \mathrm{tr}\, X^\top X V + \Gamma(V), \qquad
        h(F) = \min_W\ \tfrac1n \|\Pi_n F - X W\|_F^2 + \tfrac{\nu}{n^2} \|F^\top 1\|_2^2 + \Gamma(W W^\top),

    where for an l1 penalty a lower bound on the minimum, by duality, is used instead of h.

    A ``diagnosis`` follows from the failing instances: the property of an instance that is most associated with failing
    (Fisher's exact test, level 0.01), and the most frequent cause.  Causes are the mistakes for which V, or F without
    an l1 penalty, is optimal, such as rows without centring, c^2 or sqrt(c) instead of c, an l1 penalty without its
    diagonal or another weight of the offset, tried on up to 12 instances; a multiple of an optimal V; a point of rank
    one; a value that is n times the objective; and an early stop.

    Source: Eq. (8), (11), (15) and (16).

    Parameters
    ----------
    solver : callable
        Called as ``solver(X, nu, penalty)``; returns V, a (d, d) array or (d + 1, d + 1) with the offset last (needed
        if nu < 1), or F, an (n, r) array with Y = FF', or a `Result`.
    n_instances : int
        Number of instances, default 50 and at most 1 000 000; the reference takes about 0.1 s each.  There are
        182 kinds; above this number, they are repeated with new data.
    rng : int
        Seed of the instances, at least 0.
    tol : float
        Largest gap of a result with status OPTIMAL, and largest excess of the objective at a V or F over the optimum;
        default 1e-4, whatever the default of a parameter ``tol`` of the solver.
    instance_time_limit : float, optional
        Time limit of the solver on each instance in seconds; a longer run is a violation.  The solver runs in a thread
        that is ended after the current call of a compiled function, and its answer is ignored.
    time_limit : float, optional
        Time limit in seconds for all instances and the diagnosis; the remaining instances are skipped, and ``passed``
        is then False.

    Returns
    -------
    Validation
        One row for each instance; ``passed`` is True if there are no ``violations`` and no skipped instances.

    Raises
    ------
    ParameterError
        If solver is not callable, or another parameter is out of range.  Errors of the solver are violations.

    Examples
    --------
    >>> import diffrac_cvx as dc
    >>> dc.validate(dc.low_rank, n_instances=3).passed
    True
    """
    count, seed, tol = repetitions(n_instances, "n_instances"), as_seed(rng, "rng"), positive(tol, "tol")
    if not callable(solver):
        raise ParameterError(f"solver = {solver!r} is not a function. Pass one of X, nu and penalty.")
    limit = None if instance_time_limit is None else positive(instance_time_limit, "instance_time_limit")
    timer = Timer(None if time_limit is None else positive(time_limit, "time_limit"))
    # An F with n rows could be confused with V if n = d or n = d + 1.
    designs = [design for design in all_designs() if design.n not in (design.d, design.d + 1)]
    order = np.random.default_rng(seed).permutation(len(designs))
    rows: list[dict[str, Any]] = []
    judged: list[Judged] = []
    for i in range(count):
        design, repetition = designs[order[i % len(designs)]], i // len(designs)
        instance = design.instance(seed + repetition)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)
            reference = solve(v_space(*instance), "CLARABEL", tol=REFERENCE_TOL)
            found, one = judge(solver, instance, reference, tol, limit, timer)
        if timer.is_over:
            break
        known = bounds_in_row("reference_", reference.bracket)
        rows.append(dict.fromkeys(COLUMNS) | design._asdict() | found | known)
        judged.append(one)
    diagnosis = diagnose(judged, tol, timer)
    return Validation(tuple(rows), tuple(one.instance for one in judged), diagnosis, count - len(rows))


def judge(
    solver: Solver, instance: Instance, reference: Result, tol: float, limit: float | None, timer: Timer
) -> tuple[dict[str, Any], Judged]:
    """Run a solver on a copy of an instance; return the entries of its row that describe its answer, and the answer."""
    X, failure, outcome = instance.X.copy(), "", None
    seconds = min((limit for limit in (limit, timer.time_left) if limit is not None), default=None)
    start = perf_counter()
    try:
        outcome = call_within(seconds, solver, X, instance.nu, instance.penalty)
        if isinstance(outcome, Result):
            outcome.F  # noqa: B018  # computed from X at the first access
    except OutOfTimeError:
        failure = f"the solver exceeds the time limit of {seconds:g} s"
    except Exception as error:  # a solver may raise anything
        failure = f"the solver raises {summarize_error(error)}"
    taken = perf_counter() - start
    if failure:
        failed: dict[str, Any] = {"returned": None, "seconds": taken, "violations": (failure,)}
        return failed, Judged(instance, None, reference, (failure,))
    answer = read_answer(outcome, instance)
    violations = tuple(find_violations(answer, instance, reference, tol))
    if not np.array_equal(X, instance.X):
        violations = (*violations, "the solver modifies X. Work on a copy.")
    row: dict[str, Any] = {"returned": answer.kind, "objective": answer.objective}
    row |= {} if answer.bounds is None else bounds_in_row("", answer.bounds)
    status = answer.result.status.value if answer.result is not None else None
    row |= {"status": status, "seconds": taken, "violations": violations}
    return row, Judged(instance, answer, reference, violations)


def bounds_in_row(prefix: str, bounds: Bracket) -> dict[str, Any]:
    """Return the entries of bounds in a row."""
    lower, upper = formatted_lower(bounds.lower, bounds.gap), formatted_upper(bounds.upper, bounds.gap)
    return {f"{prefix}lower": lower, f"{prefix}upper": upper}


def find_violations(answer: Answer, instance: Instance, reference: Result, tol: float) -> Iterator[str]:
    """Yield what is wrong with an answer, given the reference's bounds on the optimum."""
    yield from answer.problems
    result = answer.result
    if result is not None and result.certificate is not None:
        yield from problems_of_certificate(result, instance)
    if result is None:
        if answer.objective > reference.upper + tol + AGREEMENT:
            least, reached = format_ends(reference.upper, answer.objective)
            yield (
                f"{answer.kind} is not optimal: its objective {reached} exceeds the optimum, at most {least}, by "
                f"{format_lower(answer.objective - reference.upper)}, more than tol = {tol:g}"
            )
    elif result.status is Status.FAILED:
        yield f"no solution: {result.status}"
    else:
        own, optimum = MethodResult("(15)", result), MethodResult("(15)", reference)
        yield from contradictions_within("the solver", result)
        yield from contradictions_between("the solver", own, "the reference", optimum)
        # The value has to be the objective at V, F has to belong to V, and a claim of optimality to be true.
        is_bound = result.G is None and instance.penalty.has_l1
        at_point, of_labels = answer.objective, answer.labels_objective
        difference, point = at_point - result.value, "F" if result.G is None else "V"
        if (difference if is_bound else abs(difference)) > AGREEMENT:
            yield f"the value is {result.value:.9g}, but the objective at {point} is {at_point:.9g}"
        elif of_labels > result.value + AGREEMENT:
            yield (
                f"F does not belong to V: the objective of its labels is at least {of_labels:.9g}, above "
                f"the value {result.value:.9g}"
            )
        is_claimed = result.status in (Status.OPTIMAL, Status.CLOSED_FORM)
        if is_claimed and result.gap > tol * (1.0 + 1e-9):
            gap = format_gap(result.lower, result.upper)
            yield f"the status is {result.status.value}, but the gap of the bounds is {gap}, above tol = {tol:g}"
        if is_claimed and answer.objective > reference.upper + tol + AGREEMENT:
            excess = format_lower(answer.objective - reference.upper)
            yield f"the status is {result.status.value}, but the objective exceeds the optimum by {excess}"
