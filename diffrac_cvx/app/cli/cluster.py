"""``diffrac-cvx cluster``: labels for a table, with what is proved about them."""

import csv
import warnings
from html import escape
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx import metrics
from diffrac_cvx.app import report as html
from diffrac_cvx.app.cli import automatic, options
from diffrac_cvx.app.cli.console import DONE, RESERVED, Console
from diffrac_cvx.app.cli.data import load_table, loading_code
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.inputs import Array
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.result import Status

MOST_COEFFICIENTS = 8  # that are printed
FINE = (Status.OPTIMAL, Status.CLOSED_FORM)


def cluster(
    file: options.File,
    label: options.Label = None,
    drop: options.Drop = None,
    missing: options.Missing = "error",
    n_labels: Annotated[
        int, typer.Option("--n-labels", "-k", help="Labels to find at once; 1 splits the points in two.")
    ] = 1,
    nu: automatic.Nu = 1.0,
    ridge: automatic.Ridge = 0.0,
    lam: automatic.Lambda = 0.0,
    solver: Annotated[str, typer.Option(help="auto, low_rank, fista, SCS or CLARABEL.")] = "auto",
    refine: Annotated[
        bool, typer.Option("--refine", help="Alternate directions and splits until nothing changes.")
    ] = False,
    tol: options.Tolerance = 1e-3,
    time_limit: options.Seconds = None,
    no_standardize: options.Raw = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    out: options.Out = None,
    report: options.Report = None,
) -> None:
    """Find clusters in a table of your own, with what is proved about them; exits with 1 where tol was not met."""
    console = Console(as_json, quiet)
    table = load_table(file, label, drop, missing)
    raw = no_standardize
    automatic.require_two_clusters(n_labels, lam, ridge, nu)
    chosen = automatic.choose(table.X, lam, ridge, nu, seed=seed, standardize=not raw, seconds=time_limit)
    if chosen.says:
        console.say(chosen.says)
    weights = Penalty(lam=chosen.lam, ridge=chosen.ridge)
    model = fit_model(
        table, n_labels, refine, nu=chosen.nu, a=weights.a, c=weights.c, solver=solver, tol=tol, time_limit=time_limit,
        standardize=not no_standardize, random_state=seed,
    )  # fmt: skip
    findings = summarise(table, model)
    print_summary(table, model, findings, console)
    if out is not None:
        write_labels(out, table, model)
        console.say(f"wrote {out}")
    if report is not None:
        write_report(report, table, model, findings, loading_code(file, label, drop, missing))
        console.say(f"wrote {report}")
    status = DONE if model.result_.status in FINE else RESERVED
    console.give({"file": file, "exit": status, **findings})
    raise typer.Exit(status)


def fit_model(table: Table, n_labels: int, refine: bool, **parameters: Any) -> Any:
    """Return a fitted estimator: one split, or several labels."""
    from sklearn.exceptions import ConvergenceWarning

    from diffrac_cvx.estimators import DiffracClustering, MultiLabelDiffrac

    if n_labels == 1:
        model = DiffracClustering(refine=refine, **parameters)
    else:
        model = MultiLabelDiffrac(n_labels, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status is printed
        return model.fit(table.X)


def score_labels(table: Table, labels: Array) -> dict[str, float]:
    """Return how well the labels found agree with the true ones, where there are any."""
    if table.labels is None or labels.ndim > 1:
        return {}
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    scores = {
        "adjusted_rand_index": float(adjusted_rand_score(table.labels, labels)),
        "normalized_mutual_information": float(normalized_mutual_info_score(table.labels, labels)),
    }
    if table.y is not None:
        scores["clustering_error"] = metrics.clustering_error(table.y, 2.0 * labels - 1.0)
        scores["error_of_one_cluster"] = 1.0 - metrics.imbalance(table.y)
    return scores


def summarise(table: Table, model: Any) -> dict[str, Any]:
    """Return all that is found, for JSON and for print."""
    result, labels = model.result_, np.asarray(model.labels_)
    return {
        "n": len(table.X),
        "d": table.X.shape[1],
        "notes": list(table.notes),
        "lower_bound": model.lower_bound_,
        "upper_bound": model.upper_bound_,
        "label_gap": getattr(model, "label_gap_", None),
        "sizes": np.bincount(labels, minlength=2).tolist() if labels.ndim == 1 else labels.sum(axis=0).tolist(),
        "coefficients": {name: list(row) for name, row in zip(table.names, np.atleast_2d(model.coef_).T, strict=True)},
        "intercept": model.intercept_,
        **score_labels(table, labels),
        "status": str(result.status),
        "solver": result.solver,
        "iterations": result.n_iter,
        "seconds": result.seconds,
        "rows": table.rows,
        "labels": labels,
    }


def print_summary(table: Table, model: Any, found: dict[str, Any], console: Console) -> None:
    """Print the findings for a person."""
    for note in table.notes:
        console.say(f"note: {note}")
    console.say(f"{found['n']} points, {found['d']} features")
    lower, upper = found["lower_bound"], found["upper_bound"]
    console.say(f"optimum of the relaxation proved to lie in [{lower:.5f}, {upper:.5f}] ({found['seconds']:.2f} s)")
    if found["label_gap"] is None:
        console.say(f"labels with {', '.join(map(str, found['sizes']))} of the {found['n']} points")
    else:
        console.say(f"clusters of {found['sizes'][0]} and {found['sizes'][1]} points")
        console.say(f"no labelling at all is better than this one by more than {found['label_gap']:.4f}, of at most 1")
        strongest = sorted(zip(model.coef_, table.names, strict=True), key=lambda pair: -abs(pair[0]))
        terms = [f"{name} {value:+.3g}" for value, name in strongest[:MOST_COEFFICIENTS] if value]
        console.say(f"direction: {', '.join(terms)}{', ...' if len(model.support_) > MOST_COEFFICIENTS else ''}")
    if "adjusted_rand_index" in found:
        error = f"clustering error {found['clustering_error']:.3f}, " if "clustering_error" in found else ""
        console.say(
            f"against the {len(table.classes)} true labels: {error}"
            f"adjusted Rand index {found['adjusted_rand_index']:.3f}"
        )
    if model.result_.status not in FINE:
        console.say(f"reservation: {found['status']}")


def write_labels(path: Path, table: Table, model: Any) -> None:
    """Write the labels as CSV: the row in the file, the label or labels, the decision values, the true label."""
    labels, decisions = (
        np.asarray(part).reshape(len(table.X), -1) for part in (model.labels_, model.decision_function(table.X))
    )
    k = labels.shape[1]
    numbered = [""] if k == 1 else [f"_{j + 1}" for j in range(k)]
    head = ["row", *(f"label{j}" for j in numbered), *(f"decision{j}" for j in numbered)]
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(head + (["true"] if table.labels is not None else []))
        for i, row in enumerate(table.rows):
            true = [table.labels[i]] if table.labels is not None else []
            rows.writerow([row, *labels[i], *(f"{value:.9g}" for value in decisions[i]), *true])


def python_code(loading: str, model: Any) -> str:
    """Return the program that gives the same labels."""
    parameters = ", ".join(f"{key}={value!r}" for key, value in sorted(model.get_params().items()))
    return f"""
import diffrac_cvx as dc

{loading}
model = dc.{type(model).__name__}({parameters}).fit(X)
print(model.labels_)
"""


def write_report(path: Path, table: Table, model: Any, found: dict[str, Any], loading: str) -> None:
    """Write the report of one clustering; `loading` is the line of Python that gives X."""
    from diffrac_cvx.plotting import BracketDisplay, DirectionDisplay, ProjectionDisplay, SpectrumDisplay

    rows = [
        (name.replace("_", " "), value)
        for name, value in {**found, "points_with_each_label": ", ".join(map(str, found["sizes"]))}.items()
        if isinstance(value, str | float | int) and name != "intercept"
    ]
    pictures, names = [], list(table.names)
    for k in range(np.atleast_2d(model.coef_).shape[0]):
        projection = ProjectionDisplay.from_estimator(model, table.X, table.labels, output=k)
        direction = DirectionDisplay.from_estimator(model, feature_names=names, output=k)
        pictures += [
            html.picture(projection, f"Decision values of label {k + 1}; dashed, the threshold."),
            html.picture(direction, f"Coefficients of label {k + 1}."),
        ]
    shares = SpectrumDisplay.from_result(model.result_)
    proofs = [html.picture(shares, "Eigenvalues of Y and of V, as shares of their sums.")]
    if len(model.result_.history) > 1:
        bounds = BracketDisplay.from_result(model.result_)
        proofs.insert(0, html.picture(bounds, "Proved bounds on the optimum of the relaxation."))
    html.write(
        path,
        "Clusters found",
        html.section("Findings", html.facts(rows), *(f"<p>{escape(note)}</p>" for note in table.notes)),
        html.section("Labels", *pictures),
        html.section("Proofs", *proofs),
        html.section("The same in Python", html.code(python_code(loading, model))),
    )
