"""What is known of columns, from the options of a command: which go together, and which signs are known."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from diffrac_cvx.app.cli.data import TableSource
from diffrac_cvx.datasets.groups import CATEGORY, column_groups
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.checks import did_you_mean
from diffrac_cvx.problem.named_columns import penalty_on_columns
from diffrac_cvx.problem.penalty import Penalty

NO_GROUPS = "none"
BY_SIZE = "size"  # lambda is multiplied by the columns of each group
COLUMNS_PANEL = "What you know of the columns"
WITHOUT_LAMBDA = "groups of columns are used or left out as a whole by --lambda, which is 0: they change nothing here"
GroupsOption = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="category|prefix|prefix=_|none|FILE",
        help="Columns that --lambda uses or leaves out together: those that one column of categories became (the "
        "default), those of one prefix, such as job_ in job_clerk, none, or a CSV file of lines column,group.",
        rich_help_panel=COLUMNS_PANEL,
        show_default="category",
    ),
]
NonnegativeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--nonnegative",
        help="Column of which more is known to speak for cluster 1, never against it; may be repeated, or several with "
        "commas between them.",
        rich_help_panel=COLUMNS_PANEL,
    ),
]


@dataclass(frozen=True)
class ColumnOptions:
    """The options that say something of columns."""

    groups: str | None = None
    nonnegative: tuple[str, ...] = ()

    @classmethod
    def given(cls, groups: str | None, nonnegative: list[str] | None) -> "ColumnOptions":
        """Return them as they were given."""
        return cls(groups, tuple(nonnegative or ()))

    def read(self, table: Table, *, has_l1: bool = True) -> dict[str, Any]:
        """Return ``groups``, ``group_weights`` and ``nonnegative`` of an estimator, as far as anything is known.

        By default categories are groups where ``has_l1``, that is where lambda is not 0.
        """
        found: dict[str, Any] = {}
        if self.groups == CATEGORY and not table.categories:
            raise ParameterError("--groups category: no column of categories was read; give --one-hot for one")
        by = CATEGORY if self.groups is None and has_l1 else self.groups
        if by not in (None, NO_GROUPS):
            groups = column_groups(table, str(by))
            is_grouped = len(groups) < len(table.names)
            found |= {"groups": groups, "group_weights": BY_SIZE} if is_grouped or self.groups is not None else {}
        if self.nonnegative:
            found["nonnegative"] = [table.names.index(name) for name in self.nonnegative_names(table)]
        return found

    def nonnegative_names(self, table: Table) -> list[str]:
        """Return the columns with a known sign, each once."""
        names: list[str] = []
        for text in self.nonnegative:
            names += [text] if text in table.names else [part.strip() for part in text.split(",") if part.strip()]
        for name in names:
            if name not in table.names:
                made = [made for made in table.names if made.startswith(f"{name}=")]
                near = (
                    f"; its columns of 0 and 1 are {', '.join(made[:5])}" if made else did_you_mean(name, table.names)
                )
                raise DataError(f"--nonnegative names {name!r}, which is no column{near}")
        return list(dict.fromkeys(names))

    def penalty(self, penalty: Penalty, table: Table, *, has_l1: bool) -> Penalty:
        """Return a penalty with the groups and the known signs."""
        return penalty_on_columns(penalty, d=len(table.names), **self.read(table, has_l1=has_l1))

    def notes(self, lam_is_zero: bool) -> list[str]:
        """Return what to say of groups that were asked for and change nothing."""
        return [WITHOUT_LAMBDA] if lam_is_zero and self.groups not in (None, NO_GROUPS) else []

    def code(self, source: TableSource) -> str:
        """Return the line of Python that gives the groups of the table."""
        names = "[f'x{j + 1}' for j in range(X.shape[1])]" if source.is_name else "table"
        by = "" if self.groups in (None, CATEGORY) else f", {self.groups!r}"
        return f"groups = dc.datasets.column_groups({names}{by})"
