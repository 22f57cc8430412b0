"""Comparison of the page: what is compared, how long it may take, and its progress, without marimo."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event
from time import monotonic

import numpy as np

from diffrac_cvx import registry
from diffrac_cvx.app.page.data import PageData
from diffrac_cvx.comparison import Comparison, compare, list_methods
from diffrac_cvx.comparison.comparing import with_solver
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError, ResourceError
from diffrac_cvx.estimators import DiffracClustering
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Progress

USER_ERRORS = (DataError, ParameterError, ResourceError)  # with a message for the user
SAMPLE = 100  # rows of the comparison on a sample
SEED = 0  # of the sample and of the baselines
CLUSTER_SECONDS = 10.0  # largest time limit of the estimator
HOPELESS = 20.0  # times the time limit: methods that would take longer by estimate are omitted
BY_SIZE = "CVXPY"  # CLARABEL for small matrices, SCS for large ones
ORDER = ("constrained_alpha", "penalized_nu", "lifted", "v_space")  # of the relaxations, (7) first
TELL_SECONDS = 0.3  # between reports of progress


@dataclass(frozen=True)
class Setting:
    """Parameters of the page, with the names and defaults of `DiffracClustering`, and alpha, None for that of (15)."""

    nu: float = 1.0
    lam: float = 0.0
    ridge: float = 0.3
    alpha: float | None = None
    n_clusters: int = 2
    tol: float = 1e-4
    standardize: bool = True
    time_limit: float = 60.0

    @property
    def penalty(self) -> Penalty:
        """Penalty on the direction."""
        return Penalty(lam=self.lam, ridge=self.ridge)

    @property
    def cluster_seconds(self) -> float:
        """Time limit of the estimator, in seconds."""
        return min(self.time_limit, CLUSTER_SECONDS)

    def scaled(self, X: Array) -> Array:
        """Return the data of the comparison, standardised if requested."""
        return standardize_columns(X) if self.standardize else X


@dataclass(frozen=True, eq=False)
class Request:
    """A table, the parameters, and the names of the ticked relaxations and solvers."""

    data: PageData
    setting: Setting = Setting()
    names: tuple[str, ...] = ()
    sample: int | None = None

    def on_sample(self) -> "Request":
        """Return the request on a sample of the rows."""
        return replace(self, sample=SAMPLE)

    @property
    def n_rows(self) -> int:
        """Number of rows that are compared."""
        n = len(self.data.table.X)
        return n if self.sample is None else min(n, self.sample)

    def differs_from(self, other: "Request") -> bool:
        """Return whether the controls were at other values, the sample aside."""
        mine, theirs = self.data.table.X, other.data.table.X
        same = (self.setting, self.names, self.data.code) == (other.setting, other.names, other.data.code)
        return not (same and (mine is theirs or np.array_equal(mine, theirs)))

    def seconds_of(self, method: str) -> float:
        """Return the estimated seconds of a method, at most the time limit; 0 for a fast solver."""
        seconds = list_methods()[method].estimate(self.n_rows, self.data.table.X.shape[1])
        return min(seconds, self.setting.time_limit)

    @property
    def seconds(self) -> float:
        """Estimated seconds of all methods together, at most the time limit."""
        return min(sum(map(self.seconds_of, self.supported)), self.setting.time_limit)

    @property
    def methods(self) -> list[str]:
        """Methods of `compare` in the order of their run: the fast solvers, then those of CVXPY by estimated time."""
        omitted = self.omitted
        return [name for name in self._wanted() if name not in omitted]

    @property
    def supported(self) -> list[str]:
        """Methods that support the penalty; `compare` names the others."""
        known, penalty = list_methods(), self.setting.penalty
        return [name for name in self.methods if not registry.explain_unsupported(known[name].parts, penalty)]

    @property
    def omitted(self) -> dict[str, str]:
        """Ticked methods that would take far longer than the time limit, with reasons."""
        known, d = list_methods(), self.data.table.X.shape[1]
        seconds = {name: known[name].estimate(self.n_rows, d) for name in self._wanted()}
        limit = HOPELESS * self.setting.time_limit
        return {name: about(one) for name, one in seconds.items() if limit < one < np.inf}

    def _wanted(self) -> list[str]:
        """Return the methods of the ticked relaxations and solvers, also those that would take too long."""
        known, (n, d) = list_methods(), (self.n_rows, self.data.table.X.shape[1])
        ticked = [name for name in (*ORDER, *registry.RELAXATIONS) if name in self.names]
        solvers = [name for name in registry.SOLVERS if name in self.names and "v_space" in self.names]
        named = [f"{name}/{by}" for name in ticked for by in registry.CVXPY_SOLVERS if by in self.names]
        named += [with_solver(name, n, d) for name in ticked if BY_SIZE in self.names]
        by_cvxpy = sorted(dict.fromkeys(named), key=lambda name: known[name].estimate(n, d))
        return [*solvers, *by_cvxpy]


@dataclass(eq=False)
class Run:
    """One comparison of a request, in the thread that calls `work`; another thread may stop it."""

    request: Request
    comparison: Comparison | None = None
    model: DiffracClustering | None = None
    error: str = ""
    started: dict[str, float] = field(default_factory=dict)  # times at which methods started
    _stopping: Event = field(default_factory=Event)

    def stop(self) -> None:
        """Stop the current method and skip all later ones."""
        self._stopping.set()

    @property
    def is_stopped(self) -> bool:
        return self._stopping.is_set()

    def work(self, tell: Callable[[list[str]], object] = lambda _: None, is_over: Callable[[], bool] = bool) -> None:
        """Compare the methods, then cluster the table, and tell the progress as one sentence for each method.

        It ends early if ``is_over`` returns True: another run has started, or the page was closed.
        """
        last = 0.0

        def progress(method: str, now: Progress | None) -> bool:
            nonlocal last
            if self.is_stopped or is_over():
                return True
            self.started.setdefault(method, monotonic())
            if now is None or monotonic() - last > TELL_SECONDS:
                last = monotonic()
                tell(self.describe())
            return self.is_stopped

        try:
            if self.request.methods:
                self.comparison = compare_methods(self.request, progress)
            self.model = cluster_points(self.request.data.table, self.request.setting)
        except USER_ERRORS as error:
            self.error = str(error)

    def describe(self) -> list[str]:
        """Return the seconds of each method so far, with the estimate of those that CVXPY solves."""
        names, times, lines = list(self.started), [*self.started.values(), monotonic()], []
        for name in self.request.supported:
            estimate = self.request.seconds_of(name)
            expected = f", {about(estimate)}" if estimate else ""
            if name not in names:
                lines.append(f"{name}: waiting{expected}")
                continue
            i = names.index(name)
            seconds, is_current = times[i + 1] - times[i], i == len(names) - 1
            lines.append(f"{name}: {seconds:.0f} s{expected}" if is_current else f"{name}: done in {seconds:.1f} s")
        return lines

    @property
    def shown(self) -> Table:
        """Table of the rows that were compared."""
        table = self.request.data.table
        rows = None if self.comparison is None else self.comparison.sample
        if rows is None:
            return table
        labels = None if table.labels is None else table.labels[rows]
        return replace(table, X=table.X[rows], labels=labels, rows=table.rows[rows])

    @property
    def scaled(self) -> Array:
        """Data that were compared, standardised on all rows if requested."""
        X = self.request.setting.scaled(self.request.data.table.X)
        return X if self.comparison is None or self.comparison.sample is None else X[self.comparison.sample]


def compare_methods(request: Request, callback: Callable[[str, Progress | None], object] | None = None) -> Comparison:
    """Return the comparison of a request; warnings are among its notes."""
    setting, table = request.setting, request.data.table
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return compare(
            setting.scaled(table.X), table.labels, methods=request.methods, nu=setting.nu, penalty=setting.penalty,
            alpha=setting.alpha, tol=setting.tol, rng=SEED, time_limit=setting.time_limit, sample=request.sample,
            callback=callback,
        )  # fmt: skip


def cluster_points(table: Table, setting: Setting) -> DiffracClustering:
    """Return the estimator of the program, fitted to a table; its diagnostics are in ``diagnostics_``."""
    model = DiffracClustering(
        nu=setting.nu, lam=setting.lam, ridge=setting.ridge, n_clusters=setting.n_clusters, tol=setting.tol,
        standardize=setting.standardize, time_limit=setting.cluster_seconds, random_state=SEED,
    )  # fmt: skip
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return model.fit(table.X)


def about(seconds: float) -> str:
    """Return an estimated time in words of one significant digit: about 0.3 s, 20 s, 4 min, 3 h."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"about {float(f'{seconds / size:.1g}'):g} {unit}"
    return f"about {float(f'{seconds:.1g}'):g} s"
