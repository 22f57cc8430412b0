"""What the user knows of some points, from the options of `cluster`; and the search for the best split."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx.app.cli.console import Watch
from diffrac_cvx.app.cli.words import FINE, STATUSES
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.links import Links
from diffrac_cvx.problem.penalty import weights_of
from diffrac_cvx.problem.result import Bracket, Progress

PANEL = "What you know of some points"


def of_points(kind: Any, says: str, name: str) -> Any:
    """Return the type of an option that says something of some points."""
    return Annotated[kind, typer.Option(name, help=says, rich_help_panel=PANEL)]


Known = of_points(
    str | None, "Column with the group of some points, one of two names; empty where it is not known.", "--known"
)
Group = of_points(
    str | None, "Column whose equal entries belong together, as the rows of one patient; empty if alone.", "--group"
)
Together = of_points(
    list[str] | None, "Two rows that belong together, as 0,5: numbers as in the file of --out.", "--together"
)
Apart = of_points(list[str] | None, "Two rows that do not, as 1,2.", "--apart")
Prove = Annotated[
    bool, typer.Option("--prove", help="Search until the best split of all is proved, or --time-limit is reached.")
]


@dataclass(frozen=True)
class Given:
    """The options that say something of some points."""

    known: str | None
    group: str | None
    together: Sequence[str]
    apart: Sequence[str]

    @property
    def says_something(self) -> bool:
        """Whether any of them was given."""
        return bool(self.columns or self.together or self.apart)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are no features."""
        return tuple(name for name in (self.known, self.group) if name is not None)

    def links(self, table: Table) -> Links | None:
        """Return what is known, None for nothing."""
        if not self.says_something:
            return None
        groups = None
        if self.group is not None:
            given = table.aside[self.group]
            names = {name: number for number, name in enumerate(dict.fromkeys(filter(None, given)))}
            groups = np.array([-1 if name is None else names[name] for name in given])
        labels = None if self.known is None else table.aside[self.known]
        if labels is not None and not any(labels):
            raise DataError(f"column {self.known!r} is empty: fill it in for some rows, or leave --known out")
        same = [pair_of(text, table.rows, "--together") for text in self.together]
        different = [pair_of(text, table.rows, "--apart") for text in self.apart]
        links = Links(same, different, labels, groups)
        links.groups_of(len(table.X))
        return links

    def code(self) -> str:
        """Return the line of Python that gives the links of a table as it was read."""
        named = [] if self.known is None else [f"labels=table.aside[{self.known!r}]"]
        if self.group is not None:
            named.append(f"groups=pandas.factorize(table.aside[{self.group!r}])[0]")
        for name, texts in (("same", self.together), ("different", self.apart)):
            if texts:
                named.append(f"{name}=[{', '.join(f'({text})' for text in texts)}]")
        return f"links = dc.Links({', '.join(named)})"


def pair_of(text: str, rows: np.ndarray, option: str) -> tuple[int, int]:
    """Return two points from two numbers of rows in the file."""
    try:
        first, second = (int(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(f"{option} {text}: give two numbers of rows, such as {option} 0,5") from None
    places = {int(row): place for place, row in enumerate(rows.tolist())}
    for row in (first, second):
        if row not in places:
            most = int(rows.max())
            raise ParameterError(f"{option} {text}: there is no row {row}; rows are counted from 0, up to {most}")
    return places[first], places[second]


def prove(table: Table, model: Any, links: Links | None, watch: Watch) -> dict[str, Any]:
    """Search for the best split of all; the model gets it, with its direction, and what is proved of it.

    The cost is that of the fitted model, with its penalty and at its scale of the features.
    """
    from diffrac_cvx.rounding.caveats import NO_STRUCTURE, find_reservations
    from diffrac_cvx.rounding.directions import best_direction, oriented_direction
    from diffrac_cvx.solvers.branching import optimal_labels

    data, penalty = model._scale(table.X, warn=False), model._penalty
    tell = watch.solver("proving")

    def callback(bounds: Bracket, nodes: int) -> bool:
        return tell(Progress(nodes, watch.seconds, *bounds))

    limits: dict[str, Any] = {"tol": model.tol, "time_limit": watch.left, "callback": callback}
    found = optimal_labels(data.X.array(), model.nu, penalty, links=links, **limits)
    y = found.labels
    weights, free = weights_of(penalty, len(data.unit)), links is None or links.groups_of(len(y)).known < 0
    if free and weights.structure.nonnegative is None:
        y = y * (1.0 if y @ (2.0 * model.labels_ - 1.0) >= 0.0 else -1.0)
    elif free:
        y = oriented_direction(data.X, y, weights)[0]
    v = best_direction(data.X, y - y.mean(), weights)
    model.coef_, model.scaled_coef_ = v * data.unit, v * np.sqrt(data.X.mean_squares())
    model.intercept_ = float((1.0 - model.nu) * y.mean() - model.coef_ @ data.mean)
    model.labels_, model.support_ = (y > 0.0).astype(np.int64), np.flatnonzero(v)
    model.lower_bound_, model.label_gap_ = found.lower, found.gap
    judged: dict[str, Any] = {"nu": model.nu, "penalty": penalty, "n_clusters": 2, "names": table.names}
    model._name_groups(penalty)
    of_table = (reason for reason in model.reservations_ if reason.kind == NO_STRUCTURE)
    model.reservations_ = (*of_table, *find_reservations(data.X, model.labels_, model.result_, **judged))
    return {"relaxations": found.nodes, "seconds": found.seconds, "status": found.status}


def words_of_search(found: dict[str, Any], search: dict[str, Any]) -> dict[str, Any]:
    """Return the findings that the search changes: how it ended, and how long it took."""
    status = search["status"]
    return {
        "finished": status in FINE,
        "status": STATUSES.get(status, str(status)),
        "relaxations": search["relaxations"],
        "upper_bound": found["cost"],  # that of the relaxation is below what is proved now
        "seconds": found["seconds"] + search["seconds"],
    }


def findings_of(links: Links | None) -> dict[str, Any]:
    """Return whether anything is known of points, and the names of the groups 0 and 1, None where there is none."""
    known = links.classes if links is not None and links.known is not None else None
    return {"links": links is not None, "known_as": known}
