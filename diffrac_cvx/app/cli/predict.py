"""``diffrac-cvx predict``: clusters of the points of a new table, from a model saved by ``cluster --save``."""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.app.cli.input_table import read_options, refuse_outputs, row_ids
from diffrac_cvx.app.cli.options import FILE_PARAMETERS, Parser, add_id, add_output, add_parameters
from diffrac_cvx.app.render import join_words, label_table
from diffrac_cvx.datasets.schema import read_table_as
from diffrac_cvx.datasets.tables import Table, read_table
from diffrac_cvx.errors import DataError
from diffrac_cvx.estimators import load_model
from diffrac_cvx.machine.writing import write_csv
from diffrac_cvx.problem.formatting import format_lower
from diffrac_cvx.problem.result import excluded_clause

PLURALS = {"cluster": "clusters", "class": "classes", "label": "labels"}


def parser() -> Parser:
    """Return the parser of the command."""
    made = Parser("predict", main)
    made.add_argument("model", type=Path, metavar="MODEL", help="Model file written by cluster --save.")
    made.add_argument("file", metavar="FILE", help="Table file with the same columns, in any order.")
    add_parameters(made.add_argument_group("reading the table"), read_table, FILE_PARAMETERS, missing=None)
    add_id(add_output(made, "CSV file for the cluster of each row."))
    return made


def load(given: argparse.Namespace) -> tuple[Any, Table]:
    """Return the saved model, and the table read as it requires."""
    model = load_model(given.model)
    if model.schema_ is None:
        raise DataError(
            "the model has no column names. Fit the estimator on a data frame, or pass save_model the table that "
            "read_table returned."
        )
    options = {"missing": given.missing} | read_options(given, FILE_PARAMETERS)
    return model, read_table_as(model.schema_, given.file, **options)


def main(given: argparse.Namespace, console: Console) -> int:
    """Assign the points of a new table to the clusters of a saved model.

    By default the table is read with the options that are saved in the model.  --missing also applies to unknown
    categories.  The exit status is 1 if the model was saved with warnings.
    """
    refuse_outputs([given.file, given.model], {"--out": given.out})
    model, table = load(given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the columns are in order, without their names
        labels, values = model.predict(table.X), model.decision_function(table.X)
    title = "class" if hasattr(model, "classes_") else "cluster"
    ids, repeated = row_ids(given, table)
    notes = [*table.notes, *repeated]
    if given.out is not None:
        content = label_table(table, labels, values, title=title, ids=ids)
        write_csv(given.out, content.header, content.rows)
    for line in [*(f"Note: {note}." for note in notes), *describe_prediction(model, labels)]:
        console.echo(line)
    findings = {
        "model": str(given.model), "file": given.file, "notes": notes,
        "diagnostics": list(map(str, model.diagnostics_)), "rows": table.rows, PLURALS[title]: labels,
        "decision": values,
    }  # fmt: skip
    return console.finish(findings, given.out, has_warnings=bool(model.diagnostics_))


def describe_prediction(model: Any, labels: np.ndarray) -> list[str]:
    """Return the predictions, and the certified bound of the training table, as lines of text."""
    lines, n = [f"WARNING: on the training table: {reason}" for reason in model.diagnostics_], len(labels)
    if labels.ndim == 2:
        return [*lines, f"{labels.shape[1]} labels, positive for {join_words(labels.sum(axis=0))} of the {n} points."]
    K, classes = max(len(np.atleast_2d(model.coef_)), 2), getattr(model, "classes_", None)
    names = range(K) if classes is None else classes.tolist()
    kind = "cluster" if classes is None else "class"
    counts = join_words(f"{np.sum(labels == name)} in {kind} {name}" for name in names)
    lines.append(f"{n} {'point' if n == 1 else 'points'}: {counts}.")
    if hasattr(model, "lower_bound_"):
        least = format_lower(model.lower_bound_) + excluded_clause(model.n_excluded_)
        what = "split" if K == 2 else "partition"
        lines.append(f"Certified for the training table, not for this one: no {what} costs less than {least}.")
    return lines
