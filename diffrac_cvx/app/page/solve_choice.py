"""Parameters of the page, and the solves requested by them and the selected relaxations and solvers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diffrac_cvx import registry
from diffrac_cvx.app.page.data import Data
from diffrac_cvx.comparison import ComparisonTask, relaxation_method
from diffrac_cvx.datasets.groups import column_groups
from diffrac_cvx.machine.processes import Call
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.problem.feature_groups import read_nonnegative
from diffrac_cvx.problem.penalty import Penalty, penalty_on_columns
from diffrac_cvx.registry import MAX_SIZE_ON_PAGE, RelaxationRecord


@dataclass(frozen=True)
class PageSetting:
    """Parameters, with the names and defaults of `DiffracClustering`; alpha is the imbalance of (7)."""

    nu: float = 1.0
    lam: float = 0.0
    ridge: float = 0.3
    alpha: float = 0.0
    tol: float = 1e-4
    n_clusters: int = 2
    strategy: str = "together"
    marks: tuple[tuple[int, int], ...] = ()  # labelled points, with labels -1 or +1
    grouped: str = "none"  # rule for feature groups: "none", "category" or "prefix"
    nonnegative: str = ""  # columns with nonnegative coefficients, separated by commas
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()  # feature groups, if any has several columns
    signs: tuple[int, ...] = ()  # indices of the columns with nonnegative coefficients
    n_columns: int = 0  # number of columns, set with groups and signs

    def on_columns(self, data: Data) -> "PageSetting":
        """Return the setting with the feature groups and sign constraints for data.

        Raises
        ------
        ParameterError
            If a name is not that of a column.
        """
        groups = column_groups(data, self.grouped) if self.grouped != "none" else {}
        groups = groups if len(groups) < len(data.names) else {}
        texts = [name.strip() for name in self.nonnegative.split(",") if name.strip()]
        signs: Any = read_nonnegative(texts, len(data.names), data.names) if texts else ()
        known = tuple((name, tuple(some)) for name, some in groups.items())
        return replace(self, groups=known, signs=tuple(map(int, signs)), n_columns=len(data.names))

    @property
    def columns_option(self) -> str:
        """Python arguments for the constraints on columns, of calls that take lambda."""
        groups = ", groups=penalty.groups" if self.groups else ""
        return groups + (", nonnegative=penalty.nonnegative" if self.signs else "")

    @property
    def has_constraints(self) -> bool:
        """Whether there are labelled points, which apply to two clusters only."""
        return bool(self.marks) and self.n_clusters == 2

    def constraints(self, n: int) -> Constraints | None:
        """Return the constraints on n points, None if there are none."""
        if not self.has_constraints:
            return None
        labels = np.full(n, np.nan)
        for point, label in self.marks:
            labels[point] = label
        return Constraints(labels=labels)

    @property
    def constraints_option(self) -> str:
        """Python argument for the constraints."""
        return ", constraints=constraints" if self.has_constraints else ""

    @property
    def penalty(self) -> Penalty:
        """Penalty on the direction."""
        weights, groups = Penalty(lam=self.lam, ridge=self.ridge), dict(self.groups) or None
        if groups is None and not self.signs:
            return weights
        return penalty_on_columns(weights, groups, self.signs or None, d=self.n_columns, group_weights="size")

    def __str__(self) -> str:
        weights = f"nu = {self.nu:g}, lam = {self.lam:g}, ridge = {self.ridge:g}, alpha = {self.alpha:g}"
        weights += f", {len(self.groups)} feature groups" if self.groups else ""
        weights += f", {len(self.signs)} sign constraints" if self.signs else ""
        if self.n_clusters > 2:
            return f"{weights}, {self.n_clusters} clusters by {self.strategy!r}"
        return f"{weights}, {len(self.marks)} labelled points" if self.marks else weights

    def code(self) -> list[str]:
        """Return the lines that define nu, alpha, tol, penalty and, if needed, n_clusters and constraints."""
        many = [] if self.n_clusters == 2 else [f"n_clusters, strategy = {self.n_clusters!r}, {self.strategy!r}"]
        return [
            f"nu, alpha, tol = {self.nu!r}, {self.alpha!r}, {self.tol!r}",
            *self.code_of_penalty(),
            *many,
            *(self.code_of_constraints() if self.has_constraints else []),
        ]

    def code_of_penalty(self) -> list[str]:
        """Return the lines that define the penalty."""
        lam, options = repr(self.lam), ""
        if self.groups:
            lam, options = f"[{self.lam!r} * len(some) for some in feature_groups.values()]", ", groups=feature_groups"
        options += f", nonnegative={list(self.signs)!r}" if self.signs else ""
        together = [f"feature_groups = dc.datasets.column_groups(data, {self.grouped!r})"] if self.groups else []
        return [*together, f"penalty = dc.Penalty(lam={lam}, ridge={self.ridge!r}{options})"]

    def code_of_constraints(self) -> list[str]:
        """Return the lines that define constraints."""
        points, labels = map(list, zip(*self.marks, strict=True))
        return [
            "known = np.full(len(X), np.nan)",
            f"known[{points}] = {labels}",
            "constraints = dc.Constraints(labels=known)",
        ]


@dataclass(frozen=True, eq=False)
class Solve:
    """Solve: its names on the page and in `compare`, its call as an object and as Python code, or why it is refused."""

    name: str
    method: str
    call: Call | None
    code: str
    refusal: str = ""


def list_forms() -> dict[str, tuple[str, RelaxationRecord]]:
    """Return name and record of the relaxations of the page, by equation."""
    return {record.equation: (name, record) for name, record in registry.RELAXATIONS.items()}


def plan_solves(data: Data, setting: PageSetting, forms: Sequence[str], solvers: Sequence[str]) -> list[Solve]:
    """Return the solves of the selected relaxations, keys of `list_forms`, by the selected solvers, fast ones first."""
    chosen = [form for form in list_forms() if form in forms]
    solves = [plan_fast(data, setting, by) for by in registry.fast_solvers() if by in solvers and "(15)" in forms]
    through_cvxpy = [solver for solver in registry.cvxpy_solvers() if solver in solvers]
    solves += [plan_reference(data, setting, form, solver) for form in chosen for solver in through_cvxpy]
    if not through_cvxpy:
        reason = f"needs {' or '.join(registry.cvxpy_solvers())}. Select one of them."
        solves += [Solve(form, "", None, "", f"{form} {reason}") for form in chosen if form != "(15)"]
    return solves


def plan_fast(data: Data, setting: PageSetting, solver: str) -> Solve:
    """Return a solve of (15) by a fast solver."""
    record = registry.SOLVERS[solver]
    refusal = registry.explain_unsupported(record.penalty, setting.penalty) or unasked(record.too_slow(*data.X.shape))
    arguments = (data.X, setting.nu, setting.penalty)
    constraint_arguments = {"constraints": setting.constraints(len(data.X))} if setting.has_constraints else {}
    call = (
        None
        if refusal
        else Call(record.run, arguments, {"tol": setting.tol, **constraint_arguments}, takes_callback=True)
    )
    options = "".join(f", {name}={value!r}" for name, value in record.options.items())
    options += setting.constraints_option
    code = f"dc.{getattr(record.function, '__name__', solver)}(X, nu=nu, penalty=penalty{options}, tol=tol)"
    return Solve(f"(15) {solver}", solver, call, code, refusal and f"{solver} does not apply: {refusal}")


def plan_reference(data: Data, setting: PageSetting, form: str, solver: str) -> Solve:
    """Return a solve through CVXPY, or one with a reason for refusal."""
    name, record = list_forms()[form]
    task = ComparisonTask(
        X=data.X, nu=setting.nu, penalty=setting.penalty, alpha=setting.alpha, tol=setting.tol,
        constraints=setting.constraints(len(data.X)),
    )  # fmt: skip
    refusal = reason_to_refuse(data, setting, record, solver)
    parameters = [name for name in record.takes if getattr(task, name) is not None]
    texts = [f"{name}={name if hasattr(setting, name) else getattr(task, name)}" for name in parameters]
    code = f'dc.solve(dc.{name}({", ".join(["X", *texts])}), "{solver}", tol=tol)'
    call = None if refusal else Call(relaxation_method(name, solver).run, (task,))
    return Solve(f"{form} {solver}", f"{name}/{solver}", call, code, refusal)


def reason_to_refuse(data: Data, setting: PageSetting, record: RelaxationRecord, solver: str) -> str:
    """Return why a relaxation is not solved on the page, or ""."""
    n, d = data.X.shape
    form, side = record.equation, record.side(n, d)
    if record.has_points and n > MAX_SIZE_ON_PAGE:
        return f"{form} has a row per point and accepts at most {MAX_SIZE_ON_PAGE} points here, not {n}"
    if "penalty" in record.takes and "l1" not in record.penalty and setting.lam > 0.0:
        return f"{form} supports no l1 penalty. Set lam to 0, or select (11) or (15)."
    if "penalty" in record.takes and (refused := registry.explain_unsupported(record.penalty, setting.penalty)):
        return f"{form} does not support this penalty: {refused}; select (11) or (15)"
    if setting.has_constraints and "constraints" not in record.takes:
        return f"{form} does not support labelled points. Remove the labels, or select (8), (11), (15) or (21)."
    by = registry.SOLVERS[solver]
    most = min(by.max_rows_on_page, np.inf if record.has_points else MAX_SIZE_ON_PAGE)
    if side > most:
        return f"{solver} accepts a matrix of at most {most} rows here, and that of {form} has {side}"
    # The limits of `compare`: with very many constraints, one per point, a small matrix is as slow as a large one.
    if not record.has_points and (reason := by.too_large(record, n, d)):
        return f"{form} would take {solver} too long for {n} points in {d} features: {unasked(reason)}"
    return ""


def unasked(reason: str) -> str:
    """Return the reason of `compare` for skipping a method, without its advice, which does not apply to the page."""
    return reason.partition(";")[0]
