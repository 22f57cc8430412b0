"""Every relaxation and solver on the same data, in one table that names what does not agree."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx import metrics
from diffrac_cvx.certificates.label_bounds import bracket_alpha
from diffrac_cvx.certificates.label_proof import projection_of
from diffrac_cvx.comparison.disagreements import (
    describe_best_labels,
    find_disagreements,
    label_differences,
    lower_bound_of,
)
from diffrac_cvx.comparison.methods import (
    ComparisonTask,
    Method,
    MethodResult,
    list_methods,
    run_in_process,
    run_method,
)
from diffrac_cvx.comparison.table import ReportTable, rich_group
from diffrac_cvx.datasets.columns import pandas_or_error
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.points.checks import Array, as_data, as_seed, centered_data, did_you_mean, in_unit_interval, positive
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.dense import weighted_points
from diffrac_cvx.problem.formatting import FormattedBound, formatted_lower, formatted_upper, width_of
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty, weights_of
from diffrac_cvx.problem.result import Progress, Result, Status
from diffrac_cvx.registry import penalty_parts
from diffrac_cvx.rounding import ROUNDINGS, goemans_williamson
from diffrac_cvx.rounding.diagnostics import Diagnostic, find_diagnostics, find_label_diagnostics
from diffrac_cvx.solvers import low_rank

CERTIFICATE_COLUMNS = (
    "problem",
    "value",
    "lower",
    "upper",
    "gap",
    "rank",
    "eigenvalue_ratio",
    "seconds",
    "memory_MB",
    "iterations",
)
LABEL_METRICS = (
    "reservation", "label_gap", "adjusted_rand", "error", "error_kmeans_centered", "error_sign_centered",
    "error_sign_leading", "error_sign_second", "error_goemans_williamson",
)  # fmt: skip
OPTIMAL_STATUS = str(Status.OPTIMAL)

MethodCallback = Callable[[str, Progress | None], object]
ResultCallback = Callable[[str, MethodResult], object]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several methods on the same data.

    Attributes
    ----------
    rows : tuple of dict
        One for each method: "method", "problem", "value", "lower", "upper", "gap" (proved), "rank",
        "eigenvalue_ratio", "label_gap" (proved distance of the labels from the optimum of Eq. (9), by the best lower
        bound of all methods; NaN where none has one, or where they disagree), "adjusted_rand", "error" and one such
        column for each rounding where labels were given, "reservation" (why the labels are no answer, in a word or
        two), "seconds", "memory_MB", "iterations", "status".
    method_results : dict of str to Found
        All that each method found, its `Result` included.
    disagreements : tuple of str
        Every disagreement beyond the proved gaps; empty if there is none.
    notes : tuple of str
        What is proved about the labels, how problems are compared, warnings, and last what was left out and why.
    skipped : tuple of str
        The last of these.
    """

    rows: tuple[dict[str, Any], ...]
    method_results: dict[str, MethodResult]
    disagreements: tuple[str, ...]
    notes: tuple[str, ...]
    skipped: tuple[str, ...] = ()

    @property
    def results(self) -> dict[str, Result]:
        """The solutions of the relaxations, by method."""
        return {name: one.result for name, one in self.method_results.items() if one.result is not None}

    @property
    def labels(self) -> dict[str, Array]:
        """Labels in {-1, +1}, by method."""
        return {name: one.labels for name, one in self.method_results.items() if one.labels is not None}

    @property
    def agreement(self) -> Array:
        """Agreement of the labels of each pair of methods, (y'z/n)^2, in the order of `labels`."""
        partitions = list(self.labels.values())
        pairs = [1.0 - metrics.clustering_error(y, z) for y in partitions for z in partitions]
        return np.array(pairs).reshape(len(partitions), len(partitions))

    @property
    def table(self) -> Any:
        """The rows as a pandas DataFrame, the methods as its index."""
        head = list(self.rows[0]) if self.rows else ["method"]
        return pandas_or_error().DataFrame(list(self.rows), columns=head).set_index("method")

    def tables(self) -> list[ReportTable]:
        """Return what is printed: a table of proofs and one of labels, without the columns that have no value."""
        tables = []
        for keys in (CERTIFICATE_COLUMNS, (*LABEL_METRICS, *(f"error_{rounding}" for rounding in ROUNDINGS))):
            columns = {key: key.replace("_", " ") for key in ("method", *keys)}
            table = ReportTable.from_records(self.rows, columns).without_empty_columns()
            tables += [table] if len(table.header) > 1 else []
        return tables

    def messages(self) -> list[str]:
        """Return the disagreements, the statuses that need saying and the notes, as sentences."""
        contradictions = [f"DISAGREEMENT: {sentence}" for sentence in self.disagreements]
        unusual = [
            f"{row['method']}: {row['status']}" for row in self.rows if row["status"] not in ("", OPTIMAL_STATUS)
        ]
        return [*(contradictions or ["No disagreement beyond the proved gaps."]), *unusual, *self.notes]

    def __str__(self) -> str:
        return "\n".join([*(f"{table.text()}\n" for table in self.tables()), *self.messages()])

    def agreement_table(self) -> ReportTable | None:
        """Return the agreement of the labels of each pair of methods as a table, None where there are none."""
        labels = list(self.labels)
        pairs = tuple((name, *line) for name, line in zip(labels, self.agreement.tolist(), strict=True))
        return ReportTable(("agreement of labels", *labels), pairs) if labels else None

    def _repr_html_(self) -> str:
        agreement = self.agreement_table()
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.messages())
        tables = [*self.tables(), *([agreement] if agreement else [])]
        return "".join(table.html() for table in tables) + f"<ul>{items}</ul>"

    def __rich__(self) -> Any:
        return rich_group(self.tables(), self.messages())


def compare(
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    *,
    methods: Sequence[str] | None = None,
    nu: float = 1.0,
    penalty: Penalty | None = None,
    lam: Weight = None,
    ridge: Weight = None,
    alpha: float | None = None,
    tol: float = 1e-4,
    solver_time_limit: float | None = None,
    memory_limit: float | None = None,
    measure_memory: bool = False,
    rng: int = 0,
    callback: MethodCallback | None = None,
    time_limit: float | None = None,
    constraints: Constraints | None = None,
    on_result: ResultCallback | None = None,
) -> Comparison:
    """Run relaxations, solvers and baselines on the same data, and name every contradiction between them.

    Values are brought to one scale, that of (15), by what is proved of them: (8), (11) and (15) are equal; (21) is
    -sqrt(1 - (15)) when c = 0 and above that else; the multi-class value, k = 3, is nu/3 + 2/3 of (8); (7) + nu alpha
    is never below (8).  There, or on their own scale for methods of one problem, all brackets must overlap, no
    value may lie below a lower bound, or above an upper bound by more than its own gap, and no labels may have an
    objective (9) below a lower bound.

    Source: Eq. (7), (8), (11), (15), (21), (24), section 4, and Eq. (2) for the baselines.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here, at its own scale.
    y : (n,) array, optional
        True classes, any number of them, with which the labels found are compared.
    methods : sequence of str, optional
        Names such as "low_rank", "fista published", "lifted/SCS" or "k-means", all of which
        ``comparison.list_methods()`` returns, in the order in which they run; by default those that take the penalty
        and take seconds at this size, the quick ones first; the notes say which were left out and why.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty, optional
        Weights a and c.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, instead of a penalty: ``Penalty(lam=lam, ridge=ridge)``.
    alpha : float, optional
        Imbalance of `constrained_alpha`, in [0, 1]; by default that of a solution of (15), where (7) + nu alpha is (8).
    tol : float
        Proved gap at which every solver stops.
    solver_time_limit : float, optional
        Seconds for each solver.
    memory_limit : float, optional
        GB that a solver of CVXPY may need by our estimate; by default the free memory of the machine.
    measure_memory : bool
        Whether each method runs in a process of its own, so that its peak of resident memory can be measured, compiled
        solvers included; counted from what the process held, data included, before the method began.
    rng : int
        Seed of the baselines and of the random hyperplanes, at least 0.
    callback : callable, optional
        Called as ``callback(method, None)`` before each method and ``callback(method, Progress)`` by the fast solvers
        of this process; a true value stops the method, and all that are left.  Where there is one, Ctrl-C does too,
        and what was finished is returned.
    time_limit : float, optional
        Seconds for all methods together; what one method leaves is for the others.
    constraints : Constraints, optional
        What is known of some points: the methods that take constraints run, and their labels obey it.
    on_result : callable, optional
        Called as ``on_result(method, Found)`` after each method.

    Returns
    -------
    Comparison

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; a method that fails is a row with its reason.
    """
    data, nu = as_data(X), in_unit_interval(nu, "nu")
    y_true = None if y is None else as_classes(y, len(data))
    penalty = resolve_penalty(NO_PENALTY if penalty is None else penalty, lam, ridge)
    weights_of(penalty, data.shape[1])
    if constraints is not None:
        constraints.chunklets_of(len(data))
    task = ComparisonTask(
        X=data,
        nu=nu,
        penalty=penalty,
        alpha=np.nan if alpha is None else in_unit_interval(alpha, "alpha"),
        tol=positive(tol, "tol"),
        time_limit=None if solver_time_limit is None else positive(solver_time_limit, "solver_time_limit"),
        memory_limit=None if memory_limit is None else positive(memory_limit, "memory_limit"),
        seed=as_seed(rng, "rng"),
        constraints=constraints,
    )
    selected, reasons = choose_methods(methods, task)
    timer = Timer(None if time_limit is None else positive(time_limit, "time_limit"))
    if alpha is None and any(method.needs_alpha for method in selected.values()):
        task = with_best_alpha(with_time_share(task, timer, len(selected) + 1))
        task = replace(task, time_limit=solver_time_limit)
    found, stopped = run_methods(selected, task, measure_memory, callback, timer, on_result)
    disagreements = tuple(find_disagreements(found))
    # Where brackets contradict each other no bound can be relied on, and the labels' gap is left empty.
    lower = -np.inf if disagreements else max(map(lower_bound_of, found.values()), default=-np.inf)
    skipped = tuple(explain_skipped(reasons))
    notes = (*stopped, *([] if disagreements else describe_best_labels(found)), *collect_notes(found, task), *skipped)
    rows = tuple(row_of(name, one, task, y_true, lower) for name, one in found.items())
    return Comparison(rows, found, disagreements, notes, skipped)


def choose_methods(names: Sequence[str] | None, task: ComparisonTask) -> tuple[dict[str, Method], dict[str, str]]:
    """Return the methods to run, and why others are left out; one that was asked for is not left out for its size."""
    if isinstance(names, str) or (names is not None and len(names) == 0):
        raise ParameterError(f"methods = {names!r} must be a list of names, such as ['low_rank', 'fista']")
    available = list_methods()
    wanted = (
        sorted(available, key=lambda name: available[name].priority) if names is None else list(dict.fromkeys(names))
    )
    unknown = [name for name in wanted if name not in available]
    if unknown:
        suggestion = did_you_mean(unknown[0], available)
        raise ParameterError(f"methods: {unknown[0]!r} is not known; there are {', '.join(available)}{suggestion}")
    reasons = {name: available[name].explain_refusal(task.penalty, task.constraints) for name in wanted}
    if names is None:
        reasons = {name: reason or available[name].too_large(*task.X.shape) for name, reason in reasons.items()}
    selected = {name: available[name] for name in wanted if not reasons[name]}
    return selected, {name: reason for name, reason in reasons.items() if reason}


def with_best_alpha(task: ComparisonTask) -> ComparisonTask:
    """Return the task with the imbalance of a solution of (8), and a bound on (7) + nu alpha - (8) there."""
    found = low_rank(task.X, task.nu, **task.limits)
    alpha = metrics.factor_imbalance(found.F)
    # The solution is feasible for (7) there, up to rounding; the bound is measured after that is mended.
    projection = projection_of(weighted_points(centered_data(task.X, warn=False)))
    attained = bracket_alpha(projection, found.F, alpha).upper + task.nu * alpha
    return replace(task, alpha=alpha, alpha_slack=max(attained - found.lower, 0.0))


def run_methods(
    methods: Mapping[str, Method],
    task: ComparisonTask,
    measure_memory: bool,
    callback: MethodCallback | None,
    timer: Timer,
    on_result: ResultCallback | None = None,
) -> tuple[dict[str, MethodResult], list[str]]:
    """Run the methods in turn until the user asks to stop or the time is up, and say where that was."""
    found: dict[str, MethodResult] = {}
    stopping = False

    def report(name: str, now: Progress | None) -> bool:
        nonlocal stopping
        stopping = stopping or (callback is not None and bool(callback(name, now)))
        return stopping

    names = list(methods)
    for i, name in enumerate(names):
        if report(name, None):
            return found, [f"stopped before {', '.join(names[i:])}"]
        if i and timer.is_over:
            return found, [f"the time was up before {', '.join(names[i:])}"]
        limited = with_time_share(task, timer, len(names) - i)
        try:
            if measure_memory:
                found[name] = run_in_process(methods[name], limited)
            else:
                found[name] = run_method(methods[name], replace(limited, callback=partial(report, name)))
        except KeyboardInterrupt:
            if callback is None:
                raise
            return found, [f"stopped in {', before '.join(names[i : i + 2])}"]
        if on_result is not None:
            on_result(name, found[name])
    return found, []


def with_time_share(task: ComparisonTask, timer: Timer, methods: int) -> ComparisonTask:
    """Return the task with an equal share of the time that is left for some methods."""
    limits = [seconds for seconds in (task.time_limit, timer.split(methods)) if seconds is not None]
    return replace(task, time_limit=min(limits, default=None))


def explain_skipped(reasons: Mapping[str, str]) -> Iterator[str]:
    """Say why methods are left out, those of one reason together."""
    for reason in dict.fromkeys(reasons.values()):
        names = [name for name, given in reasons.items() if given == reason]
        yield f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {reason}"


def collect_notes(found: Mapping[str, MethodResult], task: ComparisonTask) -> Iterator[str]:
    """Say what a reader of the table should know."""
    solved = {one.problem for one in found.values() if one.result is not None}
    if "(7)" in solved:
        whose = "as given" if np.isinf(task.alpha_slack) else "the imbalance of a solution of (15)"
        yield f"(7) is solved at alpha = {task.alpha:.6g}, {whose}"
    if "(21)" in solved and np.any(task.penalty.c):
        yield "(21) is another problem than (15) when c > 0, and bounds it from above only"
    if penalty_parts(task.penalty):
        unaware = [name for name, one in found.items() if one.result is None and one.labels is not None]
        if unaware:
            yield f"{', '.join(unaware)} do not use the penalty; the objective of their labels includes it"
    yield from label_differences(found, task.tol)
    for sentence in dict.fromkeys(sentence for one in found.values() for sentence in one.warned):
        yield f"{', '.join(name for name, one in found.items() if sentence in one.warned)}: {sentence}"


def as_classes(y: npt.ArrayLike, n: int) -> npt.NDArray[Any]:
    """Return the true classes of n points, numbers or names."""
    classes = np.asarray(y)
    if classes.shape != (n,):
        raise DataError(f"y has shape {classes.shape}; pass one true class for each of the {n} points")
    if classes.dtype.kind == "f" and np.isnan(classes).any():
        raise DataError("y has missing values (NaN); leave these points out")
    return classes


def error_of(y_true: npt.NDArray[Any], labels: Array | None) -> float:
    """Return the clustering error of labels; NaN where there are none, or where there are more than two classes."""
    classes = np.unique(y_true)
    if labels is None or len(classes) > 2:
        return np.nan
    return metrics.clustering_error(np.where(y_true == classes[-1], 1.0, -1.0), labels)


def row_of(
    name: str, found: MethodResult, task: ComparisonTask, y_true: npt.NDArray[Any] | None, lower: float
) -> dict[str, Any]:
    """Return one row of the table."""
    result = found.result
    row: dict[str, Any] = {"method": name, "problem": found.problem}
    row |= dict.fromkeys(("value", "lower", "upper", "gap", "rank", "eigenvalue_ratio"), np.nan)
    if result is not None:
        row |= certified_cells(result)
        row |= {"rank": metrics.numerical_rank(result.F), "eigenvalue_ratio": metrics.eigenvalue_ratio(result.F)}
    label_gap = max(width_of(lower, found.objective), 0.0) if lower > -np.inf else np.nan
    row["label_gap"] = formatted_upper(label_gap)
    if y_true is not None:
        roundings: dict[str, Callable[..., Array]] = {
            **ROUNDINGS,
            "goemans_williamson": partial(goemans_williamson, rng=task.seed),
        }
        for rule, rounding in roundings.items():
            options = {} if task.constraints is None else {"constraints": task.constraints}
            labels = rounding(result.F, **options) if result is not None else None
            row[f"error_{rule}"] = error_of(y_true, labels)
        row["error"] = error_of(y_true, found.labels)
        row["adjusted_rand"] = np.nan if found.labels is None else metrics.adjusted_rand_score(y_true, found.labels)
    row["reservation"] = ", ".join(reason.code for reason in diagnostics_of(found, task))
    row["seconds"], row["memory_MB"] = found.seconds, found.memory
    row["iterations"] = result.n_iter if result is not None else np.nan
    row["excluded"] = result.n_excluded or None if result is not None else None
    row["status"] = found.reason or (str(result.status) if result is not None else "")
    return row


def certified_cells(result: Result) -> dict[str, FormattedBound]:
    """Return what is proved of a result, for a table."""
    return {
        "value": formatted_upper(result.value, result.gap),
        "lower": formatted_lower(result.lower, result.gap),
        "upper": formatted_upper(result.upper, result.gap),
        "gap": formatted_upper(result.gap),
    }


def diagnostics_of(found: MethodResult, task: ComparisonTask) -> tuple[Diagnostic, ...]:
    """Return why the labels of a method are no answer."""
    if found.labels is None:
        return ()
    if found.result is None or found.problem != "(15)":
        return find_label_diagnostics(found.labels, task.penalty)
    return find_diagnostics(task.X, found.labels, found.result, nu=task.nu, penalty=task.penalty)
