"""Constraints on rows from the options of `cluster`, and the search for the optimal clusters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx.app.cli.console import ProgressReporter
from diffrac_cvx.app.cli.messages import FINISHED_STATUSES, STATUS_MESSAGES
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.constraints import Constraints, chunklets_of
from diffrac_cvx.problem.penalty import weights_of
from diffrac_cvx.problem.result import Bracket, Progress

CONSTRAINTS_PANEL = "Constraints on rows"


def constraint_option(kind: Any, help_text: str, name: str) -> Any:
    """Return the type of an option that constrains rows."""
    return Annotated[kind, typer.Option(name, help=help_text, rich_help_panel=CONSTRAINTS_PANEL)]


KnownLabelsOption = constraint_option(
    str | None, "Column with partial labels: one of two names, or empty if the label is unknown.", "--known"
)
MustLinkColumnOption = constraint_option(
    str | None, "Column whose equal entries must be in one cluster, such as patient IDs.", "--must-link-column"
)
MustLinkOption = constraint_option(
    list[str] | None, "Two rows that must be in one cluster, such as 0,5 (as numbered by --out).", "--must-link"
)
CannotLinkOption = constraint_option(
    list[str] | None, "Two rows that must be in different clusters, such as 1,2.", "--cannot-link"
)
ProveOption = Annotated[
    bool, typer.Option("--prove", help="Search for the optimal clusters until certified or --time-limit is reached.")
]


@dataclass(frozen=True)
class ConstraintOptions:
    """Options that constrain rows."""

    labels_column: str | None
    must_link_column: str | None
    must_link: Sequence[str]
    cannot_link: Sequence[str]

    @property
    def is_given(self) -> bool:
        """Whether any of the options is given."""
        return bool(self.columns or self.must_link or self.cannot_link)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that hold constraints instead of features."""
        return tuple(name for name in (self.labels_column, self.must_link_column) if name is not None)

    def read(self, table: Table) -> dict[str, Constraints]:
        """Return the constraints on the points of a table as a keyword argument, if there are any."""
        if not self.is_given:
            return {}
        columns: dict[str, np.ndarray] = {}
        if self.must_link_column is not None:
            entries = table.excluded[self.must_link_column]
            names = {name: number for number, name in enumerate(dict.fromkeys(filter(None, entries)))}
            columns["groups"] = np.array([-1 if name is None else names[name] for name in entries])
        if self.labels_column is not None:
            columns["labels"] = table.excluded[self.labels_column]
            if not any(columns["labels"]):
                raise DataError(
                    f"column {self.labels_column!r} of --known is empty. Label some rows, or remove --known."
                )
        must_link = [parse_pair(text, table.rows, "--must-link") for text in self.must_link]
        cannot_link = [parse_pair(text, table.rows, "--cannot-link") for text in self.cannot_link]
        constraints = Constraints(must_link, cannot_link, **columns)
        constraints.chunklets_of(len(table.X))
        return {"constraints": constraints}

    def findings(self, given: dict[str, Constraints]) -> dict[str, Any]:
        """Return whether there are constraints, and the class names of the clusters 0 and 1, None if unknown."""
        names = None if self.labels_column is None else given["constraints"].classes
        return {"constraints": self.is_given, "class_names": names}

    def code(self) -> str:
        """Return the line of Python that defines the constraints."""
        named = [] if self.labels_column is None else [f"labels=table.excluded[{self.labels_column!r}]"]
        if self.must_link_column is not None:
            named.append(f"groups=pandas.factorize(table.excluded[{self.must_link_column!r}])[0]")
        for name, texts in (("must_link", self.must_link), ("cannot_link", self.cannot_link)):
            if texts:
                named.append(f"{name}=[{', '.join(f'({text})' for text in texts)}]")
        return f"constraints = dc.Constraints({', '.join(named)})"


def parse_pair(text: str, rows: np.ndarray, option: str) -> tuple[int, int]:
    """Return the two points given as row numbers of the file."""
    try:
        first, second = (int(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            f"{option} {text} is not a pair of rows. Give two row numbers, such as {option} 0,5."
        ) from None
    places = {int(row): place for place, row in enumerate(rows.tolist())}
    for row in (first, second):
        if row not in places:
            last = int(rows.max())
            raise ParameterError(f"{option} {text}: there is no row {row}. Give rows from 0 to {last}.")
    return places[first], places[second]


def search_optimal(
    table: Table, model: Any, progress: ProgressReporter, constraints: Constraints | None = None
) -> dict[str, Any]:
    """Search for the optimal two clusters, and store them in the model with their direction and certified bounds.

    The objective has the penalty and the feature scaling of the fitted model.
    """
    from diffrac_cvx.rounding.diagnostics import NO_STRUCTURE, find_diagnostics
    from diffrac_cvx.rounding.directions import best_direction, oriented_direction
    from diffrac_cvx.solvers.exact import optimal_labels

    data, penalty = model._scale(table.X, warn=False), model._penalty
    report_bounds = progress.solver_callback("searching")

    def callback(bounds: Bracket, nodes: int, cuts: int) -> bool:  # noqa: ARG001
        return report_bounds(Progress(nodes, progress.seconds, *bounds))

    limits: dict[str, Any] = {"tol": model.tol, "time_limit": progress.time_left, "callback": callback}
    found = optimal_labels(data.X.array(), model.nu, penalty, constraints=constraints, **limits)
    y = found.labels
    weights, is_free = weights_of(penalty, len(data.inverse_scale)), chunklets_of(constraints, len(y)).labeled < 0
    if is_free and weights.is_even:
        y = y * (1.0 if y @ (2.0 * model.labels_ - 1.0) >= 0.0 else -1.0)
    elif is_free:
        y = oriented_direction(data.X, y, weights)[0]
    v = best_direction(data.X, y - y.mean(), weights)
    model.coef_, model.scaled_coef_ = v * data.inverse_scale, v * np.sqrt(data.X.mean_squares())
    model.intercept_ = float((1.0 - model.nu) * y.mean() - model.coef_ @ data.mean)
    model.labels_, model.support_ = (y > 0.0).astype(np.int64), np.flatnonzero(v)
    model.lower_bound_, model.label_gap_ = found.lower, found.gap
    parameters: dict[str, Any] = {"nu": model.nu, "penalty": penalty, "n_clusters": 2, "names": table.names}
    model._name_groups(penalty)
    of_table = (reason for reason in model.diagnostics_ if reason.code == NO_STRUCTURE)
    model.diagnostics_ = (*of_table, *find_diagnostics(data.X, model.labels_, model.result_, **parameters))
    return {"n_nodes": found.n_nodes, "seconds": found.seconds, "status": found.status}


def search_findings(found: dict[str, Any], search: dict[str, Any]) -> dict[str, Any]:
    """Return the findings that the search replaces: its termination status, its time and the upper bound."""
    status = search["status"]
    return {
        "finished": status in FINISHED_STATUSES,
        "status": STATUS_MESSAGES.get(status, str(status)),
        "n_nodes": search["n_nodes"],
        "upper_bound": found["cost"],  # the bound of the relaxation may be below the new lower bound
        "seconds": found["seconds"] + search["seconds"],
    }
