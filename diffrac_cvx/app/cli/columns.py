"""Constraints on columns from the options of a command: feature groups and nonnegative coefficients."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from diffrac_cvx.app.cli.data import TableSource
from diffrac_cvx.datasets.groups import CATEGORY, column_groups
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.checks import did_you_mean
from diffrac_cvx.problem.penalty import Penalty, penalty_on_columns

NO_GROUPS = "none"
BY_SIZE = "size"  # lambda is multiplied by the number of columns of each group
COLUMNS_PANEL = "Constraints on columns"
WITHOUT_LAMBDA = "--feature-groups has no effect because --lambda, which selects the groups, is 0"
GroupsOption = Annotated[
    str | None,
    typer.Option(
        "--feature-groups",
        metavar="category|prefix|prefix=_|none|FILE",
        help="Feature groups that --lambda selects or excludes as a whole: the binary columns of one 'category', the "
        "columns with one 'prefix', such as job_ in job_clerk, 'none', or a CSV FILE with lines column,group.",
        rich_help_panel=COLUMNS_PANEL,
        show_default="category",
    ),
]
NonnegativeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--nonnegative",
        help="Column whose coefficient must be >= 0, without feature groups; may be repeated or hold several names "
        "separated by commas.",
        rich_help_panel=COLUMNS_PANEL,
    ),
]


@dataclass(frozen=True)
class ColumnOptions:
    """Options that constrain columns."""

    groups: str | None = None
    nonnegative: tuple[str, ...] = ()

    @classmethod
    def given(cls, groups: str | None, nonnegative: list[str] | None) -> "ColumnOptions":
        """Return the options as given."""
        return cls(groups, tuple(nonnegative or ()))

    def read(self, table: Table, *, has_l1: bool = True) -> dict[str, Any]:
        """Return the given ones of ``groups``, ``group_weights`` and ``nonnegative``, parameters of an estimator.

        By default the columns of one category are a group if ``has_l1``, that is, if lambda is not 0, and no signs are
        given.
        """
        found: dict[str, Any] = {}
        if self.groups == CATEGORY and not table.categories:
            raise ParameterError("--feature-groups category: the table has no categorical features. Give --one-hot.")
        by = CATEGORY if self.groups is None and has_l1 and not self.nonnegative else self.groups
        if by not in (None, NO_GROUPS):
            groups = column_groups(table, str(by))
            is_grouped = len(groups) < len(table.names)
            found |= {"groups": groups, "group_weights": BY_SIZE} if is_grouped or self.groups is not None else {}
        if self.nonnegative:
            found["nonnegative"] = [table.names.index(name) for name in self.nonnegative_names(table)]
        return found

    def nonnegative_names(self, table: Table) -> list[str]:
        """Return the columns with nonnegative coefficients, each once."""
        names: list[str] = []
        for text in self.nonnegative:
            names += [text] if text in table.names else [part.strip() for part in text.split(",") if part.strip()]
        for name in names:
            if name not in table.names:
                made = [made for made in table.names if made.startswith(f"{name}=")]
                near = f"; its binary columns are {', '.join(made[:5])}" if made else did_you_mean(name, table.names)
                raise DataError(f"--nonnegative: there is no column {name!r}{near}")
        return list(dict.fromkeys(names))

    def penalty(self, penalty: Penalty, table: Table, *, has_l1: bool) -> Penalty:
        """Return a penalty with the feature groups and the sign constraints."""
        return penalty_on_columns(penalty, d=len(table.names), **self.read(table, has_l1=has_l1))

    def notes(self, lam_is_zero: bool) -> list[str]:
        """Return a note if the requested feature groups have no effect."""
        return [WITHOUT_LAMBDA] if lam_is_zero and self.groups not in (None, NO_GROUPS) else []

    def code(self, source: TableSource) -> str:
        """Return the line of Python that defines the feature groups."""
        names = "[f'x{j + 1}' for j in range(X.shape[1])]" if source.is_name else "table"
        by = "" if self.groups in (None, CATEGORY) else f", {self.groups!r}"
        return f"groups = dc.datasets.column_groups({names}{by})"
