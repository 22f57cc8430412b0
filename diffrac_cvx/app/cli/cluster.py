"""``diffrac-cvx cluster``: clusters of the points of a table, with certified bounds."""

import argparse
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx.app.answer import answer_of
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.app.cli.constraint_options import (
    add_column_options,
    add_row_options,
    column_parameters,
    constraint_code,
    row_constraints,
)
from diffrac_cvx.app.cli.input_table import CONSTANT_WARNING, load, loading_code, refuse_outputs, row_ids
from diffrac_cvx.app.cli.options import AUTO, Parser, add_id, add_output, add_parameters, add_table
from diffrac_cvx.app.render import contingency_table, figures_of, html_report, label_table, means_table, terminal_lines
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DegenerateDataWarning, ParameterError
from diffrac_cvx.estimators import DiffracClustering
from diffrac_cvx.machine.writing import write_csv, write_text
from diffrac_cvx.points.checks import as_seed

PARAMETERS = (
    "n_clusters", "nu", "lam", "ridge", "solver", "prove", "test_structure", "unequal", "tol", "standardize",
    "random_state",
)  # fmt: skip
MAX_MEANS = 5  # features whose means are printed
FILES = {
    "--report": "HTML file for a self-contained report.",
    "--save": "File (.npz) for the fitted model, to be read by predict.",
    "--certificate": "With --prove: file (.npz) for a certificate, which dc.check_certificate verifies.",
}


def parser() -> Parser:
    """Return the parser of the command."""
    made = Parser("cluster", main)
    add_table(made)
    group = made.add_argument_group("clusters")
    add_parameters(group, DiffracClustering, PARAMETERS, test_structure=True, random_state=0)
    add_row_options(made)
    add_column_options(made)
    output = add_output(made, "CSV file for the cluster of each row.")
    add_id(output)
    for flag, text in FILES.items():
        output.add_argument(flag, type=Path, metavar="FILE", help=text)
    return made


def main(given: argparse.Namespace, console: Console) -> int:
    """Find clusters of the points of a table, with a certified bound on the cost of every other partition.

    The exit status is 1 if there is a warning, for example because the table has no group structure, or if a tolerance
    was not met.
    """
    as_seed(given.random_state, "--seed")
    if given.certificate is not None and not given.prove:
        raise ParameterError("--certificate is written by the search for the optimal clusters. Add --prove.")
    files = {"--out": given.out, "--report": given.report, "--save": given.save, "--certificate": given.certificate}
    refuse_outputs([given.file], files)
    table = load(given)
    constraints = row_constraints(given, table)
    parameters = {name: getattr(given, name) for name in PARAMETERS}
    parameters |= column_parameters(given, table, has_l1=given.lam != 0.0)
    model = DiffracClustering(**parameters, time_limit=console.time_left)
    ids, notes = row_ids(given, table)
    notes = [*table.notes, *notes, *fit(model, table, constraints, console)]
    if given.lam == 0.0 and model.groups is not None:
        notes.append("--feature-groups has no effect because --lambda, which selects the groups, is 0")
    if given.n_clusters == AUTO:
        notes.append(f"{model.n_clusters_} clusters, chosen from 2 to 8 by prediction strength across half-samples")
    console.update("writing")
    if given.certificate is not None:
        write_certificate(given.certificate, model)
    if given.save is not None:
        notes += save_fitted_model(given.save, model, table)
    figures = [] if given.report is None else list(figures_of(model, table))
    loading = f"{loading_code(given, model.groups is not None)}{constraint_code(given, constraints)}"
    answer = answer_of(model, table, seconds=console.seconds, loading=loading, notes=notes, constraints=constraints)
    if given.report is not None:
        write_text(given.report, html_report(answer, figures, given.file))
    if given.out is not None:
        content = label_table(table, answer.clusters, model.decision_function(table.X), ids=ids)
        write_csv(given.out, content.header, content.rows)
    for line in terminal_lines(answer):
        console.echo(line)
    console.show_table(means_table(answer, MAX_MEANS))
    if answer.contingency_matrix is not None:
        console.show_table(contingency_table(answer.contingency_matrix))
    findings: dict[str, Any] = {"file": given.file, "finished": answer.finished, **vars(answer)}
    if (test := answer.structure) is not None:
        findings["structure"] = {"verdict": test.verdict, "pvalue": test.pvalue, "message": test.message(answer.names)}
    for name in ("scaled_coefficients", "coefficients"):
        findings[name] = dict(zip(answer.names, getattr(answer, name).T, strict=True))
    return console.finish(findings, *files.values(), has_warnings=answer.has_warnings)


def fit(model: DiffracClustering, table: Table, constraints: Any, console: Console) -> list[str]:
    """Fit an estimator, and return its warnings, except its diagnostics and those on constant columns."""
    model.set_params(callback=console.solver_callback("solving"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(table.X, constraints=constraints)
    model.set_params(callback=None)
    diagnosed = set(map(str, model.diagnostics_))
    found = [str(one.message) for one in caught if issubclass(one.category, DegenerateDataWarning)]
    return [text for text in dict.fromkeys(found) if text not in diagnosed and not re.match(CONSTANT_WARNING, text)]


def save_fitted_model(path: Path, model: DiffracClustering, table: Table) -> list[str]:
    """Save a fitted model, and return a note if it predicts other clusters for some of its own points."""
    from diffrac_cvx.estimators.persistence import save_model

    save_model(model, path, table=table)
    moved, n = int(np.sum(model.predict(table.X) != model.labels_)), len(table.X)
    note = f"the saved model predicts from the features alone and changes the cluster of {moved} of {n} points"
    return [note] if moved else []


def write_certificate(file: Path, model: DiffracClustering) -> None:
    """Write the certificate of the optimal clusters for the table as given."""
    if model.optimal_.certificate.penalty.groups is not None and model.standardize:
        raise ParameterError(
            "--certificate is about the table as given, and --feature-groups about its standardized columns. Add "
            "--no-standardize, or remove one of the two."
        )
    model.optimal_.certificate.save(file)
