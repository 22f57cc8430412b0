"""Constraints on rows from the options of `cluster`, and the search for the optimal clusters."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx.app.cli.messages import FINISHED_STATUSES, STATUS_MESSAGES
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.metrics import adjusted_rand_score
from diffrac_cvx.points.constraints import Constraints

CONSTRAINTS_PANEL = "Constraints on rows"


def constraint_option(kind: Any, help_text: str, name: str) -> Any:
    """Return the type of an option that constrains rows."""
    return Annotated[kind, typer.Option(name, help=help_text, rich_help_panel=CONSTRAINTS_PANEL)]


KnownLabelsOption = constraint_option(
    str | None, "Column with partial labels: one of two names, or empty if the label is unknown.", "--known"
)
UnlabelledOption = constraint_option(
    str | None,
    "Entry of --known of unlabelled rows.  By default empty entries are, and -1 beside two or more other values.",
    "--unlabelled",
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
CertificateOption = Annotated[
    Path | None,
    typer.Option("--certificate", help="With --prove: write a certificate for dc.check_certificate (.npz)."),
]
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
    unlabelled: str | None = None

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
        columns: dict[str, Any] = {}
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
        rows, n = table.rows, int(table.rows.max()) + 1
        must_link = [parse_pair(text, rows, "--must-link") for text in self.must_link]
        cannot_link = [parse_pair(text, rows, "--cannot-link") for text in self.cannot_link]
        in_file: dict[str, Any] = {}  # by rows of the file, which errors name
        for name, entries in columns.items():
            in_file[name] = np.full(n, None if name == "labels" else -1, dtype=entries.dtype)
            in_file[name][rows] = entries
        place = np.full(n, -1)
        place[rows] = np.arange(len(rows))
        alike, unlike = ([(int(place[i]), int(place[j])) for i, j in pairs] for pairs in (must_link, cannot_link))
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                constraints = Constraints(alike, unlike, unlabelled=self.unlabelled, **columns)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                Constraints(must_link, cannot_link, unlabelled=self.unlabelled, **in_file).chunklets_of(n)
        except DataError as error:
            raise DataError(str(error).replace("unlabelled=", "--unlabelled ")) from None
        for warning in caught:
            warnings.warn(str(warning.message).replace("unlabelled=", "--unlabelled"), warning.category, stacklevel=2)
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
        if self.unlabelled is not None:
            named.append(f"unlabelled={self.unlabelled!r}")
        for name, texts in (("must_link", self.must_link), ("cannot_link", self.cannot_link)):
            if texts:
                named.append(f"{name}=[{', '.join(f'({text})' for text in texts)}]")
        return f"constraints = dc.Constraints({', '.join(named)})"


def parse_pair(text: str, rows: np.ndarray, option: str) -> tuple[int, int]:
    """Return two rows of the file, checked to be points."""
    try:
        first, second = (int(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            f"{option} {text} is not a pair of rows. Give two row numbers, such as {option} 0,5."
        ) from None
    last = int(rows.max())
    for row in (first, second):
        if row < 0 or row > last:
            raise ParameterError(f"{option} {text}: there is no row {row}. Give rows from 0 to {last}.")
        if row not in rows:
            raise ParameterError(f"{option} {text}: row {row} was left out, because values are missing.")
    return first, second


def search_findings(model: Any) -> dict[str, Any]:
    """Return the findings of the search for the optimal clusters: its termination status, its size and its hardness."""
    found = model.optimal_
    return {
        "finished": found.status in FINISHED_STATUSES,
        "status": STATUS_MESSAGES.get(found.status, str(found.status)),
        "n_nodes": found.n_nodes,
        "n_cuts": found.n_cuts,
        "hardness": found.hardness,
        "rounded_cost": model.rounded_objective_,
        "rounded_agreement": adjusted_rand_score(model.rounded_labels_, model.labels_),
        "upper_bound": model.lower_bound_ + model.label_gap_,  # that of the relaxation may be below the lower bound
        "seconds": model.result_.seconds + found.seconds,
    }


def write_certificate(file: Path, model: Any) -> None:
    """Write the certificate of the optimal clusters, or raise an error that says why there is none."""
    if model.optimal_.certificate is None:
        raise ParameterError(
            "--certificate: the cutting planes proved no bound, because --time-limit was reached, --groups or "
            "--nonnegative is given, or the table has more columns than rows. Raise the limit, or remove the option."
        )
    model.optimal_.certificate.save(file)
