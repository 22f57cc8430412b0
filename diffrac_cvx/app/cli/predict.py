"""``diffrac-cvx predict``: clusters of the points of a new table, from a model saved by ``cluster --save``."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx.app.cli import options
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.app.cli.data import TableSource, is_same_file, read_or_suggest, refuse_outputs, with_option
from diffrac_cvx.app.labels import file_table, join_words
from diffrac_cvx.datasets.schema import read_with_schema
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.estimators.persistence import SavedModel, load_model, save_model
from diffrac_cvx.machine.writing import write_csv
from diffrac_cvx.problem.formatting import format_lower
from diffrac_cvx.problem.result import excluded_clause

LABEL_COLUMNS = ("label", "decision", "true")  # titles of the columns in the output of `cluster` and `predict`


def predict(
    model: Annotated[Path, typer.Argument(help="Model file written by `cluster --save`.")],
    file: Annotated[str, typer.Argument(help="Table file with the same columns, in any order; one point per row.")],
    missing: options.MissingOrSaved = None,
    header: options.Header = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    encoding: options.Encoding = None,
    na_values: options.NaValues = None,
    skip_rows: options.SkipRows = None,
    skip_footer: options.SkipFooter = 0,
    comment: options.Comment = None,
    sheet: options.Sheet = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    out: options.OutFile = None,
) -> None:
    """Assign the points of a new table to the clusters of a saved model.

    By default the table is read with the options that are saved in the model.  --missing also applies to unknown
    categories.  The exit status is 1 if the model was saved with warnings.
    """
    console = Console(as_json, quiet)
    if out is not None:
        refuse_outputs(TableSource(file), {"--out": out})
        if is_same_file(out, model):
            raise ParameterError(f"--out {out} is the saved model, which it would overwrite. Give another file.")
    saved_model = load_model(model)
    if saved_model.schema is None:
        raise DataError(
            f"{model} has no column names. Fit the estimator on a data frame, or pass save_model the table that "
            "read_table returned."
        )
    given = options.parse_file_options(
        {
            "header": header, "separator": separator, "decimal": decimal, "thousands": thousands, "encoding": encoding,
            "na_values": na_values, "skip_rows": skip_rows, "skip_footer": skip_footer, "comment": comment,
            "sheet": sheet,
        }
    )  # fmt: skip
    read_options = {"missing": missing} | {name: value for name, value in given.items() if value not in (None, (), 0)}
    table = read_or_suggest(partial(read_with_schema, file, saved_model.schema), read_options)
    labels, values = saved_model.predict(table.X), saved_model.decision_function(table.X)
    if out is not None:
        content = file_table(LABEL_COLUMNS, table.rows, labels, values, None, table.points)
        write_csv(out, content.header, content.rows)
    for line in [*(f"Note: {with_option(note)}." for note in table.notes), *describe_prediction(saved_model, labels)]:
        console.echo(line)
    if out is None:
        console.echo(
            "Use --out FILE to write the cluster of each row."
            if not saved_model.is_multilabel
            else "Use --out FILE to write the labels of each row."
        )
    findings = {
        "model": str(model), "file": file, "n": len(table.X), "notes": table.notes,
        "diagnostics": saved_model.diagnostics, "rows": table.rows, "labels": labels, "decision": values,
    }  # fmt: skip
    console.finish(findings, has_warnings=bool(saved_model.diagnostics), files=(out,))


def describe_prediction(saved_model: SavedModel, labels: np.ndarray) -> list[str]:
    """Return the predictions as lines of text."""
    n = len(labels)
    lines = [f"WARNING: on the training table: {reason}" for reason in saved_model.diagnostics]
    if saved_model.is_multilabel:
        found = f"{labels.shape[1]} labels, positive for {join_words(labels.sum(axis=0))} of the {n} points."
    else:
        names = range(saved_model.n_clusters) if saved_model.classes is None else saved_model.classes.tolist()
        counts = [
            f"{np.sum(labels == name)} in {'class' if saved_model.classes is not None else 'cluster'} {name}"
            for name in names
        ]
        found = f"{n} {'point' if n == 1 else 'points'}: {join_words(counts)}."
    return [*lines, found, *describe_bound(saved_model)]


def describe_bound(saved_model: SavedModel) -> list[str]:
    """Return the certified bound, which is on the training table."""
    if saved_model.is_multilabel or "lower_bound" not in saved_model.bounds:
        return []
    least, what = (
        format_lower(saved_model.bounds["lower_bound"]),
        "split" if saved_model.n_clusters == 2 else "partition",
    )
    least += excluded_clause(int(saved_model.bounds.get("n_excluded", 0)))
    return [f"Certified for the training table, not for this one: no {what} costs less than {least}."]


def save_fitted_model(path: Path, model: Any, table: Table) -> list[str]:
    """Save a fitted model, and return a note if it predicts other clusters for some of its own points."""
    save_model(model, path, table=table)
    labels = np.asarray(model.labels_)
    moved = int(np.sum(np.any((model.predict(table.X) != labels).reshape(len(labels), -1), axis=1)))
    if not moved:
        return []
    return [
        f"the saved model predicts from the features alone and changes the cluster of {moved} of {len(labels)} points"
    ]
