"""``diffrac-cvx cluster``: labels for a table, with what is proved about them."""

import csv
import warnings
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx import metrics
from diffrac_cvx.app import report
from diffrac_cvx.app.cli.console import DONE, RESERVED, Console
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError
from diffrac_cvx.inputs import Array
from diffrac_cvx.result import Status

SHOWN = 8  # coefficients that are printed
FINE = (Status.OPTIMAL, Status.CLOSED_FORM)


def fitted(table: Table, n_labels: int, seed: int, **parameters: Any) -> Any:
    """Return a fitted estimator: one split, or several labels."""
    from sklearn.exceptions import ConvergenceWarning

    from diffrac_cvx.estimators import DiffracClustering, MultiLabelDiffrac

    if n_labels == 1:
        model = DiffracClustering(random_state=seed, **parameters)
    else:
        parameters.pop("refine")
        model = MultiLabelDiffrac(n_labels, random_state=seed, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # told as a reservation
        return model.fit(table.X)


def judged(table: Table, labels: Array) -> dict[str, float]:
    """Return how the found labels agree with the true ones, where there are any."""
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


def summary(table: Table, model: Any) -> dict[str, Any]:
    """Return all that is found, for JSON and for print."""
    result, labels = model.result_, np.asarray(model.labels_)
    found: dict[str, Any] = {
        "n": len(table.X),
        "d": table.X.shape[1],
        "notes": list(table.notes),
        "lower_bound": model.lower_bound_,
        "upper_bound": model.upper_bound_,
        "label_gap": getattr(model, "label_gap_", None),
        "sizes": np.bincount(labels, minlength=2).tolist() if labels.ndim == 1 else labels.sum(axis=0).tolist(),
        "coefficients": {name: list(row) for name, row in zip(table.names, np.atleast_2d(model.coef_).T, strict=True)},
        "intercept": model.intercept_,
        **judged(table, labels),
        "status": str(result.status),
        "solver": result.solver,
        "iterations": result.n_iter,
        "seconds": result.seconds,
        "rows": table.rows,
        "labels": labels,
    }
    return found


def told(table: Table, model: Any, found: dict[str, Any], console: Console) -> int:
    """Print the findings for a person, and return the exit status."""
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
        shown = [f"{name} {value:+.3g}" for value, name in strongest[:SHOWN] if value]
        console.say(f"direction: {', '.join(shown)}{', ...' if len(model.support_) > SHOWN else ''}")
    if "adjusted_rand_index" in found:
        error = f"clustering error {found['clustering_error']:.3f}, " if "clustering_error" in found else ""
        console.say(
            f"against the {len(table.classes)} true labels: {error}"
            f"adjusted Rand index {found['adjusted_rand_index']:.3f}"
        )
    if model.result_.status in FINE:
        return DONE
    console.say(f"reservation: {found['status']}")
    return RESERVED


def write_labels(path: Path, table: Table, model: Any) -> None:
    """Write the labels as CSV: the row in the file, the label or labels, the decision values, the true label."""
    labels, decisions = (
        np.asarray(part).reshape(len(table.X), -1) for part in (model.labels_, model.decision_function(table.X))
    )
    k = labels.shape[1]
    numbered = [""] if k == 1 else [f"_{j + 1}" for j in range(k)]
    head = ["row", *(f"label{j}" for j in numbered), *(f"decision{j}" for j in numbered)]
    try:
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(head + (["true"] if table.labels is not None else []))
            for i, row in enumerate(table.rows):
                true = [table.labels[i]] if table.labels is not None else []
                rows.writerow([row, *labels[i], *(f"{value:.9g}" for value in decisions[i]), *true])
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror})") from None


def as_python(reading: str, model: Any) -> str:
    """Return the program that gives the same labels."""
    parameters = ", ".join(f"{key}={value!r}" for key, value in sorted(model.get_params().items()))
    return f"""
import diffrac_cvx as dc
from diffrac_cvx.datasets.tables import read_table

{reading}
model = dc.{type(model).__name__}({parameters}).fit(X)
print(model.labels_)
"""


def write_report(path: Path, table: Table, model: Any, found: dict[str, Any], reading: str) -> None:
    """Write the report of one clustering; `reading` is the line of Python that reads the table."""
    from diffrac_cvx.plotting import BracketDisplay, DirectionDisplay, ProjectionDisplay, SpectrumDisplay

    rows = [
        (name.replace("_", " "), f"{value:.6g}" if isinstance(value, float) else value)
        for name, value in found.items()
        if isinstance(value, str | float | int) and name != "intercept"
    ]
    rows.insert(2, ("points with each label", ", ".join(map(str, found["sizes"]))))
    pictures, names = [], list(table.names)
    for k in range(np.atleast_2d(model.coef_).shape[0]):
        projection = ProjectionDisplay.from_estimator(model, table.X, table.labels, output=k)
        direction = DirectionDisplay.from_estimator(model, feature_names=names, output=k)
        pictures += [
            report.picture(projection, f"Decision values of label {k + 1}; dashed, the threshold."),
            report.picture(direction, f"Coefficients of label {k + 1}."),
        ]
    shares = SpectrumDisplay.from_result(model.result_)
    proofs = [report.picture(shares, "Eigenvalues of Y and of V, as shares of their sums.")]
    if len(model.result_.history) > 1:
        bounds = BracketDisplay.from_result(model.result_)
        proofs.insert(0, report.picture(bounds, "Proved bounds on the optimum of the relaxation."))
    report.write(
        path,
        "Clusters found",
        report.section("Findings", report.facts(rows), *(f"<p>{escape(note)}</p>" for note in table.notes)),
        report.section("Labels", *pictures),
        report.section("Proofs", *proofs),
        report.section("The same in Python", report.code(as_python(reading, model))),
    )
