"""Computations for one state of the controls: solves, paths and searches, in sequence, until stopped."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np

from diffrac_cvx.app.page.data import Data, PageSource
from diffrac_cvx.app.page.solve_choice import PageSetting, Solve, plan_solves
from diffrac_cvx.comparison import list_methods
from diffrac_cvx.errors import DataError, ParameterError, ResourceError
from diffrac_cvx.machine.processes import Call, CallResult, StoppedError, Worker, WorkerDiedError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.formatting import format_ends
from diffrac_cvx.problem.result import Bracket, Progress, Result, Status
from diffrac_cvx.solvers.exact import OptimalLabels, optimal_labels

USER_ERRORS = (DataError, ParameterError, ResourceError, WorkerDiedError)  # errors with a message for the user
FIRST_RESULT_SECONDS = 0.5  # time limit of the first result, shown with its bounds
WAIT_SECONDS = 0.8  # time that the page waits for it before it shows the old result
STATUS_INTERVAL_SECONDS = 0.25  # between two status lines
BASELINE_METHODS = ("k-means", "alternating")  # of `compare`
PACKAGE_NAMES = {"dc": import_module("diffrac_cvx"), "np": np}  # names in the expressions
EXTRAS = {  # further computations: variable name and expression
    "nu path": ("path", "dc.paths.nu_path(X, np.linspace(0, 1, 21), penalty, y=y{constraints}, tol=tol)"),
    "lambda path": ("path",
        "dc.paths.lambda_path(X, np.geomspace(1e-4, 1, 21), nu=nu, ridge=penalty.ridge, y=y{constraints}"
        "{columns}, tol=tol)"),
    "comparison": ("comparison",
        "dc.compare(X, y, methods={methods}, nu=nu, penalty=penalty, alpha=alpha{constraints}, tol=tol)"),
}  # fmt: skip
CLUSTERS = "clusters"  # for more than two clusters
MODEL_CODE = (
    "dc.DiffracClustering(n_clusters=n_clusters, strategy=strategy, nu=nu, lam=penalty.lam, ridge=penalty.ridge, "
    "tol=tol, standardize=False, random_state=0{columns}).fit(X)"
)
STRUCTURE = "structure"  # after every result
TEST_CODE = "dc.structure_test(X, nu=nu, penalty=penalty, standardize=False{constraints})"
SEARCH = "best split"  # on request
SEARCH_SECONDS = 60.0
SEARCH_CODE = f"dc.optimal_labels(X, nu, penalty{{constraints}}, tol=tol, time_limit={SEARCH_SECONDS:g})"
COMPUTATIONS = {
    CLUSTERS: ("model", MODEL_CODE),
    STRUCTURE: ("test", TEST_CODE),
    SEARCH: ("found", SEARCH_CODE),
    **EXTRAS,
}  # all computations except the solves
IDLE_WORKERS: list[Worker] = []  # started in advance, so that the first page does not wait for imports


def take_worker() -> Worker:
    """Return a worker whose process has imported the package, or is doing so, which takes seconds."""
    worker = IDLE_WORKERS.pop() if IDLE_WORKERS else Worker()
    threading.Thread(target=worker.call, args=(Call(warm_up),), daemon=True).start()
    return worker


def warm_up() -> Any:
    """Return an estimator fitted to a few points, so that both processes import its modules."""
    model = PACKAGE_NAMES["dc"].DiffracClustering(n_clusters=3, random_state=0)
    return model.fit(np.random.default_rng(0).standard_normal((12, 2)))


@dataclass(frozen=True, eq=False)
class Run:
    """Solve with its result, or with a message if there is none; `interrupted` if it was stopped."""

    solve: Solve
    result: Result | None = None
    message: str = ""
    warnings: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def name(self) -> str:
        """Name on the page."""
        return self.solve.name


@dataclass(frozen=True, eq=False)
class Outcome:
    """Question and results so far: runs in order, and further results by key of COMPUTATIONS."""

    source: PageSource
    data: Data
    setting: PageSetting
    runs: tuple[Run, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)  # a message instead of a failed result

    @property
    def solved(self) -> dict[str, Run]:
        """Runs with a result, by name."""
        return {run.name: run for run in self.runs if run.result is not None}

    def run_named(self, name: str) -> Run | None:
        """Return the run of this name if it has a result, else the first one with a result."""
        return self.solved.get(name) or next(iter(self.solved.values()), None)


@dataclass(frozen=True)
class StatusLine:
    """Status line: current computation, number of finished ones, and bounds if the solver reports them."""

    doing: str
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    progress: Progress | None = None
    state: str = "idle"  # or "running", "done", "stopped"

    def __str__(self) -> str:
        if self.state == "idle":
            return self.doing
        found = "" if self.progress is None else describe_bracket(self.progress)
        if self.state != "running":
            text = f"{self.state} after {self.seconds:.1f} s, {self.done} of {self.total} computed"
            return f"{text}; {self.doing}: {found}" if found else text
        text = f"{self.doing} ({self.done + 1} of {self.total}), {self.seconds:.1f} s"
        steps = "relaxations" if self.doing == SEARCH else "iteration"
        return text if self.progress is None else f"{text}: {steps} {self.progress.iteration}, {found}"


StopCheck = Callable[[], bool]  # returns whether to stop
StatusCallback = Callable[[StatusLine], object]


@dataclass(frozen=True, eq=False)
class Job:
    """Requested solves and calls in order, with the outcome that they extend."""

    outcome: Outcome
    solves: Sequence[Solve]
    calls: Mapping[str, Call] = field(default_factory=dict)
    seconds: float | None = None  # time limit of a solver

    def compute(
        self, worker: Worker, stopped: StopCheck, on_outcome: Callable[[Outcome], object], on_status: StatusCallback
    ) -> Outcome:
        """Compute all in sequence until stopped; `on_outcome` receives each outcome, `on_status` the progress."""
        outcome, reporter = self.outcome, CallReporter(worker, stopped, on_status, len(self.solves) + len(self.calls))
        try:
            for solve in self.solves:
                outcome = replace(outcome, runs=(*outcome.runs, run_solve(solve, reporter, self.seconds)))
                on_outcome(outcome)
                if outcome.runs[-1].interrupted:
                    raise StoppedError
            for name, call in self.calls.items():
                answer = reporter.call(name, call)
                value = answer.value if answer.error is None else error_message(answer.error)
                outcome = replace(outcome, extras={**outcome.extras, name: value})
                on_outcome(outcome)
        except StoppedError:
            reporter.report(state="stopped")
        else:
            finished = {"state": "done", "doing": "", "progress": None}
            reporter.report(**({"state": "stopped"} if stopped() else finished))
        return outcome


def plan_jobs(
    source: PageSource, data: Data, setting: PageSetting, requested: Mapping[str, Sequence[str]] | None
) -> list[Job]:
    """Return three jobs: the main result, with a time limit; the structure test; and all else.

    `requested` are the forms, solvers and extras for experts, None for the main result only.
    """
    forms, solvers = (("(15)",), ("low_rank",)) if requested is None else (requested["forms"], requested["solvers"])
    solves = plan_solves(data, setting, forms, solvers)
    calls = plan_extras(data, setting, solves, (STRUCTURE, *(() if requested is None else requested["extras"])))
    first, second = ({name: calls.pop(name) for name in (one,) if name in calls} for one in (CLUSTERS, STRUCTURE))
    count = int(bool(solves) and solves[0].method == "low_rank")
    outcome = Outcome(source, data, setting)
    return [
        Job(outcome, solves[:count], first, FIRST_RESULT_SECONDS),
        Job(outcome, (), second),
        Job(outcome, solves[count:], calls),
    ]


def compute_jobs(
    jobs: Sequence[Job], workers: Sequence[Worker], stopped: StopCheck, on_outcome: Callable[[Outcome], object],
    on_status: StatusCallback, on_first_result: Callable[[], object],
) -> None:  # fmt: skip
    """Compute jobs in sequence, the first in the first process and the others in the second.

    `on_first_result` is called after the first job.  Its solves that reached the time limit are repeated without one
    at the start of the last job.
    """
    first, *others, last = jobs
    outcome = first.compute(workers[0], stopped, on_outcome, on_status)
    on_first_result()
    timed_out = [run.solve for run in outcome.runs if run.result is not None and run.result.status is Status.TIME_LIMIT]
    for job in (*others, replace(last, solves=[*timed_out, *last.solves])):
        if (job.solves or job.calls) and not stopped():
            runs = () if job.solves and timed_out else outcome.runs
            outcome = replace(job, outcome=replace(outcome, runs=runs)).compute(
                workers[1], stopped, on_outcome, on_status
            )


class CallReporter:
    """Run calls in another process, and report progress at most every STATUS_INTERVAL_SECONDS."""

    def __init__(self, worker: Worker, stopped: StopCheck, on_status: StatusCallback, total: int) -> None:
        self.worker, self.stopped, self.on_status = worker, stopped, on_status
        self.started, self.last = time.perf_counter(), 0.0
        self.line = StatusLine("", total=total, state="running")

    def update(self, **values: Any) -> None:
        """Update the status line."""
        self.line = replace(self.line, **values)

    def report(self, **values: Any) -> None:
        """Update the status line and report it."""
        self.last = time.perf_counter() - self.started
        self.update(seconds=self.last, **values)
        self.on_status(self.line)

    def call(self, name: str, call: Call) -> CallResult:
        """Run a call; if its process dies, return that error."""
        self.update(doing=name, progress=None)
        try:
            answer = self.worker.call(
                call, stopped=self.check_stop, callback=lambda progress: self.update(progress=progress)
            )
        except WorkerDiedError as error:
            answer = CallResult(error=error)
        self.update(done=self.line.done + 1)
        return answer

    def check_stop(self) -> bool:
        """Return whether to stop; reports the status line too, since it is called many times a second."""
        if time.perf_counter() - self.started - self.last >= STATUS_INTERVAL_SECONDS:
            self.report()
        return self.stopped()


def run_solve(solve: Solve, reporter: CallReporter, seconds: float | None = None) -> Run:
    """Run a solve; an error becomes its message."""
    if solve.call is None:
        reporter.update(done=reporter.line.done + 1)
        return Run(solve, message=solve.refusal)
    call = solve.call
    if seconds is not None:
        call = replace(call, options={**call.options, "time_limit": seconds})
    try:
        answer = reporter.call(solve.name, call)
    except StoppedError:
        bounds = reporter.line.progress
        proved = "there are no bounds so far" if bounds is None else f"certified so far: {describe_bracket(bounds)}"
        return Run(solve, message=f"stopped before a solution was found; {proved}", interrupted=True)
    message = "" if answer.error is None else error_message(answer.error)
    return Run(solve, answer.value, message, answer.warnings)


def describe_bracket(progress: Progress) -> str:
    """Return the bounds of a solver so far."""
    lower, upper = format_ends(progress.lower, progress.upper)
    return f"optimal cost between {lower} and {upper}"


def error_message(error: Exception) -> str:
    """Return the message of an error, with its type if it is unexpected."""
    return str(error) if isinstance(error, USER_ERRORS) else f"{type(error).__name__}: {error}"


def plan_extras(data: Data, setting: PageSetting, solves: Sequence[Solve], requested: Sequence[str]) -> dict[str, Call]:
    """Return the calls for the requested computations; the comparison has the methods of these solves."""
    names, names_requested = namespace_of(data, setting), list(requested)
    if setting.n_clusters > 2:  # the comparison supports two clusters only
        names_requested = [CLUSTERS, *(name for name in names_requested if name != "comparison")]
    return {
        name: Call(evaluate, (expression_of(name, setting, solves), names))
        for name in COMPUTATIONS
        if name in names_requested
    }


def plan_search(data: Data, setting: PageSetting) -> dict[str, Call]:
    """Return the call that searches for the optimal split."""
    return {SEARCH: Call(search_best, (data.X, setting), takes_callback=True)}


def search_best(X: Array, setting: PageSetting, *, callback: Callable[[Progress], bool]) -> OptimalLabels:
    """Search for the optimal split, and report bounds at most as often as they are shown."""
    start = last = time.perf_counter()

    def report(bounds: Bracket, nodes: int, cuts: int) -> bool:  # noqa: ARG001
        nonlocal last
        now = time.perf_counter()
        if now - last < STATUS_INTERVAL_SECONDS:
            return False
        last = now
        return callback(Progress(nodes, now - start, *bounds))

    limits: dict[str, Any] = {"tol": setting.tol, "time_limit": SEARCH_SECONDS, "callback": report}
    return optimal_labels(X, setting.nu, setting.penalty, constraints=setting.constraints(len(X)), **limits)


def expression_of(extra: str, setting: PageSetting, solves: Sequence[Solve]) -> str:
    """Return the expression of a computation; the comparison has the methods of the solves that are not refused."""
    methods = [solve.method for solve in solves if solve.call is not None and solve.method in list_methods()]
    columns = setting.columns_option  # the model has lam per group, the path multiplies it by the group sizes
    columns += ", group_weights='size'" if setting.groups and extra != CLUSTERS else ""
    return COMPUTATIONS[extra][1].format(
        methods=[*methods, *BASELINE_METHODS], constraints=setting.constraints_option, columns=columns
    )


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression of COMPUTATIONS."""
    return eval(expression, {**PACKAGE_NAMES, **names})


def namespace_of(data: Data, setting: PageSetting) -> dict[str, Any]:
    """Return the names that expressions may use."""
    return {
        "X": data.X, "y": data.y, "names": data.names, "nu": setting.nu, "alpha": setting.alpha, "tol": setting.tol,
        "penalty": setting.penalty, "n_clusters": setting.n_clusters, "strategy": setting.strategy,
        "groups": data.labels, "constraints": setting.constraints(len(data.X)),
    }  # fmt: skip
