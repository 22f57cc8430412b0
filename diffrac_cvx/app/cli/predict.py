"""``diffrac-cvx predict``: clusters of the points of a new table, from a model saved by ``cluster --save``."""

import argparse
from pathlib import Path

import numpy as np

from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.app.cli.options import FILE_PARAMETERS, Parser, add_output, add_parameters
from diffrac_cvx.app.cli.table import read_options, refuse_outputs
from diffrac_cvx.app.render import join_words, label_table
from diffrac_cvx.datasets.tables import Table, read_table
from diffrac_cvx.estimators.persistence import SavedModel, load_model, read_table_for
from diffrac_cvx.machine.writing import write_csv
from diffrac_cvx.problem.formatting import format_lower
from diffrac_cvx.problem.result import excluded_clause


def parser() -> Parser:
    """Return the parser of the command."""
    made = Parser("predict", main)
    made.add_argument("model", type=Path, metavar="MODEL", help="Model file written by cluster --save.")
    made.add_argument("file", metavar="FILE", help="Table file with the same columns, in any order.")
    add_parameters(made.add_argument_group("reading the table"), read_table, FILE_PARAMETERS, missing=None)
    add_output(made, "CSV file for the cluster of each row.")
    return made


def load(given: argparse.Namespace) -> Table:
    """Return the table, read as the saved model requires."""
    options = {"missing": given.missing} | read_options(given, FILE_PARAMETERS)
    return read_table_for(load_model(given.model), given.file, **options)


def main(given: argparse.Namespace, console: Console) -> int:
    """Assign the points of a new table to the clusters of a saved model.

    By default the table is read with the options that are saved in the model.  --missing also applies to unknown
    categories.  The exit status is 1 if the model was saved with warnings.
    """
    refuse_outputs([given.file, given.model], {"--out": given.out})
    table, model = load(given), load_model(given.model)
    labels = model.predict(table.X)
    if given.out is not None:
        content = label_table(table, labels, model.decision_function(table.X))
        write_csv(given.out, content.header, content.rows)
    for line in [*(f"Note: {note}." for note in table.notes), *describe_prediction(model, labels)]:
        console.echo(line)
    findings = {
        "model": str(given.model), "file": given.file, "notes": table.notes, "diagnostics": model.diagnostics,
        "rows": table.rows, "labels": labels, "decision": model.decision_function(table.X),
    }  # fmt: skip
    return console.finish(findings, given.out, has_warnings=bool(model.diagnostics))


def describe_prediction(model: SavedModel, labels: np.ndarray) -> list[str]:
    """Return the predictions, and the certified bound of the training table, as lines of text."""
    lines, n = [f"WARNING: on the training table: {reason}" for reason in model.diagnostics], len(labels)
    if model.is_multilabel:
        return [*lines, f"{labels.shape[1]} labels, positive for {join_words(labels.sum(axis=0))} of the {n} points."]
    names = range(model.n_clusters) if model.classes is None else model.classes.tolist()
    kind = "cluster" if model.classes is None else "class"
    counts = join_words(f"{np.sum(labels == name)} in {kind} {name}" for name in names)
    lines.append(f"{n} {'point' if n == 1 else 'points'}: {counts}.")
    if "lower_bound" in model.bounds:
        least = format_lower(model.bounds["lower_bound"]) + excluded_clause(int(model.bounds.get("n_excluded", 0)))
        what = "split" if model.n_clusters == 2 else "partition"
        lines.append(f"Certified for the training table, not for this one: no {what} costs less than {least}.")
    return lines
