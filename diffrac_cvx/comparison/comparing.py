"""Compare relaxations, solvers and baselines on the same data, in one table with all disagreements."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx import metrics
from diffrac_cvx.certificates.label_bounds import bracket_alpha, projection_of
from diffrac_cvx.comparison.disagreements import (
    describe_best_labels,
    find_disagreements,
    lower_bound_of,
)
from diffrac_cvx.comparison.methods import MethodResult, list_methods, run_method
from diffrac_cvx.comparison.rendered_table import ReportTable, TableReport, table_of_entries
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.points.checks import (
    Array,
    as_data,
    as_seed,
    centered_data,
    did_you_mean,
    in_unit_interval,
    positive,
    positive_int,
    require_callback,
)
from diffrac_cvx.points.constraints import Constraints, require_constraints
from diffrac_cvx.points.table import centered_table
from diffrac_cvx.problem.formatting import formatted_lower, formatted_upper, width_of
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty, ridge_of, weights_of
from diffrac_cvx.problem.result import Progress, Result, Status
from diffrac_cvx.registry import RELAXATIONS, ComparisonTask, Method, explain_unsupported, penalty_parts
from diffrac_cvx.rounding import ROUNDINGS, goemans_williamson
from diffrac_cvx.rounding.diagnostics import find_diagnostics
from diffrac_cvx.solvers import low_rank

CERTIFICATE_COLUMNS = (
    "problem", "rows", "value", "lower", "upper", "gap", "rank", "eigenvalue_ratio", "seconds", "iterations"
)  # fmt: skip
LABEL_METRICS = (
    "warning", "objective", "label_gap", "adjusted_rand", "error", "error_kmeans_centered", "error_sign_centered",
    "error_sign_leading", "error_sign_second", "error_goemans_williamson",
)  # fmt: skip
OPTIMAL_STATUS = str(Status.OPTIMAL)

MIN_SAMPLE = 2  # rows

MethodCallback = Callable[[str, Progress | None], object]


@dataclass(frozen=True, eq=False)
class Comparison(TableReport):
    """Result of `compare`: several methods on the same data.

    Attributes
    ----------
    rows : tuple of dict
        One row for each method: "method", "problem", "value", "lower", "upper", "gap" (certified), "rank",
        "eigenvalue_ratio", "objective" (of the labels in Eq. (9)), "label_gap" (its certified optimality gap, by the
        best lower bound of all methods; NaN if no method has one, or if they disagree), "adjusted_rand", "error" and
        one such column for each rounding if y was given, "warning" (codes of the warnings about the labels), "seconds",
        "iterations", "status"; and "rows", such as "100 of 300", if a sample was compared.
    method_results : dict of str to MethodResult
        Complete result of each method, including its `Result`.
    disagreements : tuple of str
        Every disagreement beyond the certified gaps; empty if there is none.
    notes : tuple of str
        Certified bounds on the labels, relations between the problems, warnings, and last the skipped methods with
        reasons.
    sample : (m,) array or None
        Indices of the compared rows of X, in increasing order; None if these are all rows.
    """

    rows: tuple[dict[str, Any], ...]
    method_results: dict[str, MethodResult]
    disagreements: tuple[str, ...]
    notes: tuple[str, ...]
    sample: npt.NDArray[np.intp] | None = None

    @property
    def results(self) -> dict[str, Result]:
        """Results of the relaxations, by method."""
        return {name: one.result for name, one in self.method_results.items() if one.result is not None}

    @property
    def labels(self) -> dict[str, Array]:
        """Labels in {-1, +1}, by method."""
        return {name: one.labels for name, one in self.method_results.items() if one.labels.size}

    @property
    def table(self) -> Any:
        """The rows as a pandas DataFrame indexed by method."""
        import pandas

        columns = list(self.rows[0]) if self.rows else ["method"]
        return pandas.DataFrame(list(self.rows), columns=columns).set_index("method")

    def tables(self) -> list[ReportTable]:
        """Return the printed tables, one of certificates and one of labels, without empty columns."""
        kinds = (CERTIFICATE_COLUMNS, (*LABEL_METRICS, *(f"error_{rounding}" for rounding in ROUNDINGS)))
        tables = [table_of_entries(self.rows, ("method", *keys)) for keys in kinds]
        return [table for table in tables if len(table.header) > 1]

    def messages(self) -> list[str]:
        """Return the disagreements, the statuses other than optimal, and the notes."""
        contradictions = [f"DISAGREEMENT: {sentence}" for sentence in self.disagreements]
        unusual = [
            f"{row['method']}: {row['status']}" for row in self.rows if row["status"] not in ("", OPTIMAL_STATUS)
        ]
        return [*(contradictions or ["No disagreement beyond the certified gaps."]), *unusual, *self.notes]


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
    rng: int = 0,
    callback: MethodCallback | None = None,
    time_limit: float | None = None,
    constraints: Constraints | None = None,
    sample: int | None = None,
) -> Comparison:
    """Run relaxations, solvers and baselines on the same data, and report every contradiction between them.

    Values are transformed to the scale of (15): (8), (11) and (15) are equal; (21) is -sqrt(1 - (15)) if c = 0 and
    above that otherwise; the multi-class value, k = 3, is nu/3 + 2/3 of (8); (7) + nu alpha is never below (8).  On
    this scale, or on their own scale for methods of one problem, all bounds must overlap, no value may lie below a
    lower bound, or above an upper bound by more than its own gap, and no labels may have an objective (9) below a lower
    bound.

    Source: Eq. (7), (8), (11), (15), (21), (24), section 4, and Eq. (2) for the baselines.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here, not scaled.
    y : (n,) array, optional
        True classes, any number of them, for the evaluation of the labels.
    methods : sequence of str, optional
        Names from ``comparison.list_methods()``, such as "low_rank", "fista published", "lifted/SCS" or "k-means", in
        the order of execution.  "lifted" alone is by CLARABEL or, if its matrix has more than 41 rows, by SCS.  By
        default all methods that support the penalty and take seconds at this size, or by estimate at most the time
        limit, the fast ones first.  The notes list the skipped methods with reasons.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty, optional
        Weights a and c.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, instead of a penalty: ``Penalty(lam=lam, ridge=ridge)``.
    alpha : float, optional
        Imbalance of `constrained_alpha`: 0 (clusters of equal sizes) to 1 (one cluster), all of them feasible; by
        default that of a solution of (15), where (7) + nu alpha is (8).
    tol : float
        Certified gap at which every solver stops.
    rng : int
        Seed of the baselines, of the random hyperplanes, and of the sample, at least 0.
    callback : callable, optional
        Called as ``callback(method, None)`` before each method and ``callback(method, Progress)`` by the fast solvers,
        and by `solve` while it takes longer than a second; a true value stops the method and skips all remaining ones.
        With a callback, Ctrl-C does the same, and the finished results are returned.
    time_limit : float, optional
        Time limit for all methods together, in seconds; each method gets an equal share of the remaining time.
    constraints : Constraints, optional
        Constraints on labels: only the methods that support them run.  Under linear ones (bags, order, sizes, rows)
        these are `penalized_nu` and `lifted`; bounds and labels are then those of their certificates, and no other
        rounding is evaluated.
    sample : int, optional
        Number of rows to compare the methods on, drawn at random without replacement and without regard to the
        classes; all rows if the table has no more.  Values, bounds and labels are then those of the sample, which are
        not those of the table.  Not supported with constraints, which refer to rows.

    Returns
    -------
    Comparison

    Raises
    ------
    DataError, ParameterError
        If an input is invalid.  A method that fails gets a row with the reason.
    """
    data, nu = as_data(X), in_unit_interval(nu, "nu")
    y_true = None if y is None else as_classes(y, len(data))
    penalty = resolve_penalty(NO_PENALTY if penalty is None else penalty, lam, ridge)
    weights_of(penalty, data.shape[1])
    require_constraints(constraints)
    require_callback(callback)
    if constraints is not None:  # raises an error if the constraints do not fit
        constraints.chunklets_of(len(data)), constraints.linear_of(len(data))
    n, rows = len(data), sample_rows(len(data), sample, as_seed(rng, "rng"), constraints)
    if rows is not None:
        data, y_true = data[rows], None if y_true is None else y_true[rows]
    task = ComparisonTask(
        X=data,
        nu=nu,
        penalty=penalty,
        alpha=np.nan if alpha is None else in_unit_interval(alpha, "alpha"),
        tol=positive(tol, "tol"),
        seed=as_seed(rng, "rng"),
        constraints=constraints,
    )
    timer = Timer(None if time_limit is None else positive(time_limit, "time_limit"))
    selected, reasons = choose_methods(methods, task, time_limit)
    if alpha is None and any(method.problem == "(7)" for method in selected.values()):
        task = with_best_alpha(replace(task, time_limit=timer.split(len(selected) + 1)))
    found, stopped = run_methods(selected, task, callback, timer)
    disagreements = tuple(find_disagreements(found))
    # If bounds contradict each other, none is reliable, and the gap of the labels is left empty.
    lower = -np.inf if disagreements else max(map(lower_bound_of, found.values()), default=-np.inf)
    skipped = []
    for reason in dict.fromkeys(reasons.values()):
        names = [name for name, given in reasons.items() if given == reason]
        skipped.append(f"{', '.join(names)} {'was' if len(names) == 1 else 'were'} skipped: {reason}")
    drawn = [] if rows is None else [f"all numbers are those of a sample of {len(rows)} of {n} rows (seed {rng})"]
    best = [] if disagreements else describe_best_labels(found)
    notes = (*drawn, *stopped, *best, *collect_notes(found, task), *skipped)
    entries = [row_of(name, one, task, y_true, lower) for name, one in found.items()]
    if rows is not None:
        entries = [{**row, "rows": f"{len(rows)} of {n}"} for row in entries]
    return Comparison(tuple(entries), found, disagreements, notes, rows)


def sample_rows(
    n: int, sample: int | None, seed: int, constraints: Constraints | None = None
) -> npt.NDArray[np.intp] | None:
    """Return the rows of a random sample, in increasing order; None for all rows."""
    if sample is None:
        return None
    if positive_int(sample, "sample") < MIN_SAMPLE:
        raise ParameterError(f"sample = {sample} rows are too few. Compare at least {MIN_SAMPLE}.")
    if constraints is not None:
        raise ParameterError("sample and constraints cannot be combined: constraints refer to all rows. Give only one.")
    if sample >= n:
        return None
    return np.sort(np.random.default_rng(seed).choice(n, sample, replace=False))


def choose_methods(
    names: Sequence[str] | None, task: ComparisonTask, time_limit: float | None = None
) -> tuple[dict[str, Method], dict[str, str]]:
    """Return the methods to run, and the reasons to skip others; a method requested by name is never too large."""
    if names is not None and not (isinstance(names, list | tuple) and names and all(isinstance(n, str) for n in names)):
        raise ParameterError(f"methods = {names!r} must be a non-empty list of names, such as ['low_rank', 'fista'].")
    available = list_methods()
    wanted = list(available if names is None else dict.fromkeys(with_solver(name, *task.X.shape) for name in names))
    unknown = [name for name in wanted if name not in available]
    if unknown:
        suggestion = did_you_mean(unknown[0], available)
        raise ParameterError(f"methods: unknown name {unknown[0]!r}. Choose from {', '.join(available)}{suggestion}")
    reasons = {name: explain_unsupported(available[name].parts, task.penalty, task.parts) for name in wanted}
    if names is None:
        limit = 0.0 if time_limit is None else time_limit
        reasons = {name: reason or skip_reason(available[name], task, limit) for name, reason in reasons.items()}
    selected = {name: available[name] for name in wanted if not reasons[name]}
    return selected, {name: reason for name, reason in reasons.items() if reason}


def with_solver(name: str, n: int, d: int) -> str:
    """Return the name of a method; that of a relaxation gets the CVXPY solver for this size."""
    return f"{name}/{RELAXATIONS[name].solver_at(n, d)}" if name in RELAXATIONS else name


def skip_reason(method: Method, task: ComparisonTask, time_limit: float) -> str:
    """Return why a method does not run by default, "" if it takes seconds or by estimate at most the time limit."""
    reason, seconds = method.too_large(*task.X.shape), method.estimate(*task.X.shape)
    return "" if 0.0 < seconds <= time_limit else reason


def with_best_alpha(task: ComparisonTask) -> ComparisonTask:
    """Return the task with the imbalance of a solution of (8), and a bound on (7) + nu alpha - (8) there."""
    found = low_rank(task.X, task.nu, task.penalty, **task.limits)
    alpha = metrics.factor_imbalance(found.F)
    # The solution is feasible for (7) there, up to rounding; the upper bound is computed after repairing that.
    points = centered_table(centered_data(task.X, warn=False))
    projection = projection_of(points, ridge_of(task.penalty, points.shape[1]))
    attained = bracket_alpha(projection, found.F, alpha).upper + task.nu * alpha
    return replace(task, alpha=alpha, alpha_slack=max(attained - found.lower, 0.0))


def run_methods(
    methods: Mapping[str, Method],
    task: ComparisonTask,
    callback: MethodCallback | None,
    timer: Timer,
) -> tuple[dict[str, MethodResult], list[str]]:
    """Run the methods in turn until a stop is requested or the time limit is reached, with a note in that case."""
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
            return found, [f"the time limit was reached before {', '.join(names[i:])}"]
        told = None if callback is None else partial(report, name)
        limited = replace(task, time_limit=timer.split(len(names) - i), callback=told)
        try:
            found[name] = run_method(methods[name], limited)
        except KeyboardInterrupt:
            if callback is None:
                raise
            return found, [f"stopped in {', before '.join(names[i : i + 2])}"]
    return found, []


def collect_notes(found: Mapping[str, MethodResult], task: ComparisonTask) -> Iterator[str]:
    """Yield the notes on the interpretation of the table."""
    weights = {"nu": task.nu, "lambda": task.penalty.lam, "ridge": task.penalty.ridge}
    yield f"parameters: {', '.join(f'{name} {np.max(value):.6g}' for name, value in weights.items())}"
    solved = {one.problem for one in found.values() if one.result is not None}
    if "(7)" in solved:
        whose = "as given" if np.isinf(task.alpha_slack) else "the imbalance of a solution of (15)"
        yield f"(7) was solved at alpha = {task.alpha:.6g}, {whose}"
    if "(21)" in solved and np.any(task.penalty.c):
        yield "(21) differs from (15) if c > 0, and gives only an upper bound on it"
    if penalty_parts(task.penalty):
        unaware = [name for name, one in found.items() if one.result is None and one.labels.size]
        if unaware:
            yield f"methods that ignore the penalty: {', '.join(unaware)}; the reported objective includes it"
    for sentence in dict.fromkeys(sentence for one in found.values() for sentence in one.warned):
        yield f"{', '.join(name for name, one in found.items() if sentence in one.warned)}: {sentence}"


def as_classes(y: npt.ArrayLike, n: int) -> npt.NDArray[Any]:
    """Return the true classes of n points (numbers or names) after validation."""
    classes = np.asarray(y)
    if classes.shape != (n,):
        raise DataError(f"y has shape {classes.shape}; it must be ({n},), one true class per point.")
    if classes.dtype.kind == "f" and np.isnan(classes).any():
        raise DataError("y has missing values (NaN). Remove these points.")
    return classes


def error_of(y_true: npt.NDArray[Any], labels: Array) -> float:
    """Return the clustering error of labels; NaN with more than two classes."""
    classes = np.unique(y_true)
    if len(classes) > 2:
        return np.nan
    return metrics.clustering_error(np.where(y_true == classes[-1], 1.0, -1.0), labels)


def row_of(
    name: str, found: MethodResult, task: ComparisonTask, y_true: npt.NDArray[Any] | None, lower: float
) -> dict[str, Any]:
    """Return the row of a method in the table."""
    result, roundings = found.result, [*ROUNDINGS, "goemans_williamson"]
    row: dict[str, Any] = {"method": name, "problem": found.problem}
    row |= dict.fromkeys(("value", "lower", "upper", "gap", "rank", "eigenvalue_ratio"), np.nan)
    label_gap = max(width_of(lower, found.objective), 0.0) if lower > -np.inf else np.nan
    row |= {"objective": formatted_upper(found.objective), "label_gap": formatted_upper(label_gap)}
    if y_true is not None:
        row |= dict.fromkeys([*(f"error_{rule}" for rule in roundings), "error", "adjusted_rand"], np.nan)
    row |= {"warning": "", "seconds": found.seconds, "iterations": np.nan, "excluded": None, "status": found.reason}
    if found.labels.size:
        row["warning"] = ", ".join(diagnostic.code for diagnostic in find_diagnostics(task.X, found.labels))
        if y_true is not None:
            row["error"] = error_of(y_true, found.labels)
            row["adjusted_rand"] = metrics.adjusted_rand_score(y_true, found.labels)
    if result is not None:
        row |= {"value": formatted_upper(result.value, result.gap), "gap": formatted_upper(result.gap)}
        row |= {"lower": formatted_lower(result.lower, result.gap), "upper": formatted_upper(result.upper, result.gap)}
        row |= {"rank": metrics.numerical_rank(result.F), "eigenvalue_ratio": metrics.eigenvalue_ratio(result.F)}
        row |= {"iterations": result.n_iter, "excluded": result.n_excluded or None, "status": str(result.status)}
        if y_true is not None and "linear" not in task.parts:
            for rule in roundings:
                rounding = ROUNDINGS.get(rule, partial(goemans_williamson, rng=task.seed))
                row[f"error_{rule}"] = error_of(y_true, rounding(result.F, **task.given))
    return row
