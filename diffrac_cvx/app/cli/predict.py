"""``diffrac-cvx predict``: the clusters of the points of a new table, by a score that ``cluster --save`` wrote."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx.app.cli import options
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.app.cli.data import TableSource, is_same_file, refuse_outputs, with_option
from diffrac_cvx.app.labels import file_table, join_words
from diffrac_cvx.datasets.schema import read_with_schema
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.estimators.persistence import SavedModel, load_model, save_model
from diffrac_cvx.machine.writing import write_csv
from diffrac_cvx.problem.formatting import format_lower
from diffrac_cvx.problem.result import excluded_clause

LABEL_COLUMNS = ("label", "decision", "true")  # of the columns that `cluster` and `predict` write


def predict(
    model: Annotated[Path, typer.Argument(help="What `cluster --save` wrote.")],
    file: Annotated[str, typer.Argument(help="A table with the same columns, in any order; one point a row.")],
    missing: Annotated[
        str | None,
        typer.Option(
            help="Missing values, and categories that are new: stop with an 'error', 'drop' the rows, or take the "
            "'mean' of the first table; as there if not given."
        ),
    ] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first line holds the names of the columns.")
    ] = None,
    separator: Annotated[str | None, typer.Option(help="What is between the values.")] = None,
    decimal: Annotated[str | None, typer.Option(help="Decimal mark, '.' or ','.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the text, such as cp1252.")] = None,
    sheet: Annotated[str | None, typer.Option(help="Sheet of an Excel file.")] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    out: options.OutFile = None,
) -> None:
    """Put the points of a new table in the clusters that were found in another one, by the score that was saved.

    How the table is read is found out, or as it was given for the first one, where no option says it.  The exit status
    is 1 where the clusters were no answer for the first table.
    """
    console = Console(as_json, quiet)
    if out is not None:
        refuse_outputs(TableSource(file), {"--out": out})
        if is_same_file(out, model):
            raise ParameterError(f"--out {out} is the saved score, which it would replace: name another file")
    saved_model = load_model(model)
    if saved_model.schema is None:
        raise DataError(
            f"{model} has no names of columns: fit the estimator to a data frame, or give save_model the table that "
            "read_table returned"
        )
    read_options = {"header": header, "separator": separator, "decimal": decimal, "encoding": encoding, "sheet": sheet}
    table = read_with_schema(file, saved_model.schema, missing=missing, **read_options)
    labels, values = saved_model.predict(table.X), saved_model.decision_function(table.X)
    if out is not None:
        content = file_table(LABEL_COLUMNS, table.rows, labels, values, None, table.points)
        write_csv(out, content.header, content.rows)
    for line in [*(f"Note: {with_option(note)}." for note in table.notes), *describe_prediction(saved_model, labels)]:
        console.echo(line)
    if out is None:
        console.echo(
            "Give --out FILE for the cluster of each row."
            if not saved_model.is_multilabel
            else "Give --out FILE for all."
        )
    findings = {
        "model": str(model), "file": file, "n": len(table.X), "notes": table.notes, "diagnostics": saved_model.diagnostics,
        "rows": table.rows, "labels": labels, "decision": values,
    }  # fmt: skip
    console.finish(findings, has_warnings=bool(saved_model.diagnostics), files=(out,))


def describe_prediction(saved_model: SavedModel, labels: np.ndarray) -> list[str]:
    """Return what was found, for a person."""
    n = len(labels)
    lines = [f"NO ANSWER: of the table that the score was found on: {reason}" for reason in saved_model.diagnostics]
    if saved_model.is_multilabel:
        found = f"{labels.shape[1]} labels, with {join_words(labels.sum(axis=0))} of the {n} points."
    else:
        names = range(saved_model.n_clusters) if saved_model.classes is None else saved_model.classes.tolist()
        counts = [
            f"{np.sum(labels == name)} in {'class' if saved_model.classes is not None else 'cluster'} {name}"
            for name in names
        ]
        found = f"{n} {'point' if n == 1 else 'points'}: {join_words(counts)}."
    return [*lines, found, *describe_bound(saved_model)]


def describe_bound(saved_model: SavedModel) -> list[str]:
    """Return what is proved, and of which points."""
    if saved_model.is_multilabel or "lower_bound" not in saved_model.bounds:
        return []
    least, what = (
        format_lower(saved_model.bounds["lower_bound"]),
        "split" if saved_model.n_clusters == 2 else "grouping",
    )
    least += excluded_clause(int(saved_model.bounds.get("n_excluded", 0)))
    return [f"Proved of the table that the score was found on, and not of this one: no {what} costs less than {least}."]


def save_fitted_model(path: Path, model: Any, table: Table) -> list[str]:
    """Write the score of a fitted model, and return a note where it puts some points elsewhere than the answer."""
    save_model(model, path, table=table)
    labels = np.asarray(model.labels_)
    moved = int(np.sum(np.any((model.predict(table.X) != labels).reshape(len(labels), -1), axis=1)))
    if not moved:
        return []
    return [f"the saved score, which knows only the features, puts {moved} of {len(labels)} points elsewhere"]
