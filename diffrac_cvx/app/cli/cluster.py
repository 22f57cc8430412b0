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
from diffrac_cvx.app.cli import options
from diffrac_cvx.app.cli.console import DONE, RESERVED, Console
from diffrac_cvx.app.cli.data import load_table, loading_code
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.inputs import Array
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.result import Status

MOST_COEFFICIENTS = 8  # that are printed
FINE = (Status.OPTIMAL, Status.CLOSED_FORM)


def refuse_renamed(value: str | None) -> None:
    """Refuse the former name of an option, and say the names that there are."""
    if value is not None:
        raise ParameterError(
            f"-k and --n-labels are no longer options: write --clusters {value} for {value} clusters, or "
            f"--labels-count {value} for {value} labels of every point at once"
        )


def cluster(
    file: options.File,
    label: options.Label = None,
    drop: options.Drop = None,
    missing: options.Missing = "error",
    clusters: Annotated[int, typer.Option("--clusters", min=2, help="Number of clusters.")] = 2,
    strategy: Annotated[
        str, typer.Option(help="More than two clusters: 'together', or by repeated 'splits' in two.")
    ] = "together",
    labels_count: Annotated[
        int,
        typer.Option("--labels-count", help="Find several labels of every point at once, each with two values."),
    ] = 1,
    _renamed: Annotated[str | None, typer.Option("--n-labels", "-k", hidden=True, callback=refuse_renamed)] = None,
    nu: options.Nu = 1.0,
    ridge: options.Ridge = 0.0,
    lam: options.Lambda = 0.0,
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
    weights = Penalty.l1(lam, ridge)
    model = fit_model(
        table, clusters, labels_count, strategy=strategy, refine=refine, nu=nu, a=weights.a, c=weights.c,
        solver=solver, tol=tol, time_limit=time_limit, standardize=not no_standardize, random_state=seed,
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


def fit_model(table: Table, clusters: int, labels_count: int, *, strategy: str, refine: bool, **parameters: Any) -> Any:
    """Return a fitted estimator: of clusters, or of several labels."""
    from sklearn.exceptions import ConvergenceWarning

    from diffrac_cvx.estimators import DiffracClustering, MultiLabelDiffrac

    if labels_count == 1:
        model = DiffracClustering(n_clusters=clusters, strategy=strategy, refine=refine, **parameters)
    elif clusters == 2:
        model = MultiLabelDiffrac(labels_count, **parameters)
    else:
        raise ParameterError("--clusters and --labels-count exclude each other: a label of several has two values")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status is printed
        return model.fit(table.X)


def score_labels(table: Table, labels: Array) -> dict[str, Any]:
    """Return how well the clusters found agree with the true classes, where there are any, however many."""
    if table.labels is None or labels.ndim > 1:
        return {}
    from sklearn.metrics import normalized_mutual_info_score

    scores: dict[str, Any] = {
        "adjusted_rand_index": metrics.adjusted_rand_index(table.labels, labels),
        "normalized_mutual_information": float(normalized_mutual_info_score(table.labels, labels)),
        "crosstab": metrics.crosstab(table.labels, labels)._asdict(),
    }
    if table.y is not None and labels.max() <= 1:
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
        *others, last = map(str, found["sizes"])
        console.say(f"clusters of {', '.join(others)} and {last} points" if others else f"one cluster of {last} points")
        console.say(f"no labelling at all is better than this one by more than {found['label_gap']:.4f}, of at most 1")
        for j, direction in enumerate(np.atleast_2d(model.coef_)):
            strongest = sorted(zip(direction, table.names, strict=True), key=lambda pair: -abs(pair[0]))
            terms = [f"{name} {value:+.3g}" for value, name in strongest[:MOST_COEFFICIENTS] if value]
            more = ", ..." if len(model.support_) > MOST_COEFFICIENTS else ""
            whose = "direction" if model.coef_.ndim == 1 else f"cluster {j}"
            console.say(f"{whose}: {', '.join(terms)}{more}")
    if "crosstab" in found:
        print_crosstab(found["crosstab"], console)
    if "adjusted_rand_index" in found:
        error = f"clustering error {found['clustering_error']:.3f}, " if "clustering_error" in found else ""
        console.say(
            f"against the {len(table.classes)} true labels: {error}"
            f"adjusted Rand index {found['adjusted_rand_index']:.3f}"
        )
    if model.result_.status not in FINE:
        console.say(f"reservation: {found['status']}")


def print_crosstab(counts: dict[str, Any], console: Console) -> None:
    """Print how many points of each true class are in each cluster."""
    head = ["true class", *(f"cluster {name}" for name in counts["found"])]
    lines = [[str(name), *map(str, row)] for name, row in zip(counts["true"], counts["counts"], strict=True)]
    widths = [max(len(line[j]) for line in [head, *lines]) for j in range(len(head))]
    for name, *numbers in [head, *lines]:
        console.say("  ".join([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])]))


def write_labels(path: Path, table: Table, model: Any) -> None:
    """Write the labels as CSV: the row in the file, the label or labels, the decision values, the true label."""
    parts = {"label": model.labels_, "decision": model.decision_function(table.X)}
    labels, decisions = (np.asarray(part).reshape(len(table.X), -1) for part in parts.values())
    first = 1 if labels.shape[1] > 1 else 0  # labels are counted from 1, clusters are named 0, 1, ...
    head = ["row"]
    for name, part in zip(parts, (labels, decisions), strict=True):
        k = part.shape[1]
        head += [name] if k == 1 else [f"{name}_{j + first}" for j in range(k)]
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
    one = "cluster" if np.ndim(model.labels_) == 1 else "label"
    for k in range(np.atleast_2d(model.coef_).shape[0]):
        projection = ProjectionDisplay.from_estimator(model, table.X, table.labels, output=k)
        direction = DirectionDisplay.from_estimator(model, feature_names=names, output=k)
        pictures += [
            html.picture(projection, f"Decision values of {one} {k + 1}; dashed, the threshold."),
            html.picture(direction, f"Coefficients of {one} {k + 1}."),
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
