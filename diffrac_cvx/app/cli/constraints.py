"""What the user knows of some points, from the options of `cluster`; and the search for the best split."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx.app.cli.console import ProgressReporter
from diffrac_cvx.app.cli.messages import FINISHED_STATUSES, STATUS_MESSAGES
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.problem.penalty import weights_of
from diffrac_cvx.problem.result import Bracket, Progress

CONSTRAINTS_PANEL = "What you know of some points"


def constraint_option(kind: Any, help_text: str, name: str) -> Any:
    """Return the type of an option that says something of some points."""
    return Annotated[kind, typer.Option(name, help=help_text, rich_help_panel=CONSTRAINTS_PANEL)]


KnownLabelsOption = constraint_option(
    str | None, "Column with the group of some points, one of two names; empty where it is not known.", "--known"
)
MustLinkColumnOption = constraint_option(
    str | None, "Column whose equal entries belong together, as the rows of one patient; empty if alone.", "--group"
)
MustLinkOption = constraint_option(
    list[str] | None, "Two rows that belong together, as 0,5: numbers as in the file of --out.", "--together"
)
CannotLinkOption = constraint_option(list[str] | None, "Two rows that do not, as 1,2.", "--apart")
ProveOption = Annotated[
    bool, typer.Option("--prove", help="Search until the best split of all is proved, or --time-limit is reached.")
]


@dataclass(frozen=True)
class ConstraintOptions:
    """The options that say something of some points."""

    labels_column: str | None
    must_link_column: str | None
    must_link: Sequence[str]
    cannot_link: Sequence[str]

    @property
    def is_given(self) -> bool:
        """Whether any of them was given."""
        return bool(self.columns or self.must_link or self.cannot_link)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are no features."""
        return tuple(name for name in (self.labels_column, self.must_link_column) if name is not None)

    def read(self, table: Table) -> Constraints | None:
        """Return what is known, None for nothing."""
        if not self.is_given:
            return None
        groups = None
        if self.must_link_column is not None:
            entries = table.excluded[self.must_link_column]
            names = {name: number for number, name in enumerate(dict.fromkeys(filter(None, entries)))}
            groups = np.array([-1 if name is None else names[name] for name in entries])
        labels = None if self.labels_column is None else table.excluded[self.labels_column]
        if labels is not None and not any(labels):
            raise DataError(f"column {self.labels_column!r} is empty: fill it in for some rows, or leave --known out")
        must_link = [parse_pair(text, table.rows, "--together") for text in self.must_link]
        cannot_link = [parse_pair(text, table.rows, "--apart") for text in self.cannot_link]
        constraints = Constraints(must_link, cannot_link, labels, groups)
        constraints.chunklets_of(len(table.X))
        return constraints

    def code(self) -> str:
        """Return the line of Python that gives the constraints of a table as it was read."""
        named = [] if self.labels_column is None else [f"labels=table.excluded[{self.labels_column!r}]"]
        if self.must_link_column is not None:
            named.append(f"groups=pandas.factorize(table.excluded[{self.must_link_column!r}])[0]")
        for name, texts in (("must_link", self.must_link), ("cannot_link", self.cannot_link)):
            if texts:
                named.append(f"{name}=[{', '.join(f'({text})' for text in texts)}]")
        return f"constraints = dc.Constraints({', '.join(named)})"


def parse_pair(text: str, rows: np.ndarray, option: str) -> tuple[int, int]:
    """Return two points from two numbers of rows in the file."""
    try:
        first, second = (int(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"{option} {text}: give two numbers of rows, such as {option} 0,5") from None
    places = {int(row): place for place, row in enumerate(rows.tolist())}
    for row in (first, second):
        if row not in places:
            last = int(rows.max())
            raise ParameterError(f"{option} {text}: there is no row {row}; rows are counted from 0, up to {last}")
    return places[first], places[second]


def search_optimal(
    table: Table, model: Any, constraints: Constraints | None, progress: ProgressReporter
) -> dict[str, Any]:
    """Search for the best split of all; the model gets it, with its direction, and what is proved of it.

    The cost is that of the fitted model, with its penalty and at its scale of the features.
    """
    from diffrac_cvx.rounding.diagnostics import NO_STRUCTURE, find_diagnostics
    from diffrac_cvx.rounding.directions import best_direction, oriented_direction
    from diffrac_cvx.solvers.branching import optimal_labels

    data, penalty = model._scale(table.X, warn=False), model._penalty
    report_bounds = progress.solver_callback("proving")

    def callback(bounds: Bracket, nodes: int) -> bool:
        return report_bounds(Progress(nodes, progress.seconds, *bounds))

    limits: dict[str, Any] = {"tol": model.tol, "time_limit": progress.time_left, "callback": callback}
    found = optimal_labels(data.X.array(), model.nu, penalty, constraints=constraints, **limits)
    y = found.labels
    weights, is_free = (
        weights_of(penalty, len(data.inverse_scale)),
        constraints is None or constraints.chunklets_of(len(y)).labeled < 0,
    )
    if is_free and weights.structure.nonnegative is None:
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
    return {"relaxations": found.n_nodes, "seconds": found.seconds, "status": found.status}


def search_findings(found: dict[str, Any], search: dict[str, Any]) -> dict[str, Any]:
    """Return the findings that the search changes: how it ended, and how long it took."""
    status = search["status"]
    return {
        "finished": status in FINISHED_STATUSES,
        "status": STATUS_MESSAGES.get(status, str(status)),
        "relaxations": search["relaxations"],
        "upper_bound": found["cost"],  # that of the relaxation is below what is proved now
        "seconds": found["seconds"] + search["seconds"],
    }


def constraint_findings(constraints: Constraints | None) -> dict[str, Any]:
    """Return whether anything is known of points, and the names of the groups 0 and 1, None where there is none."""
    names = constraints.classes if constraints is not None and constraints.labels is not None else None
    return {"constraints": constraints is not None, "known_as": names}
