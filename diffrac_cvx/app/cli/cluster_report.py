"""HTML report of a clustering."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx.app import report as html
from diffrac_cvx.app.cli.columns import ColumnOptions
from diffrac_cvx.app.cli.constraints import ConstraintOptions
from diffrac_cvx.app.cli.data import TableSource
from diffrac_cvx.app.cli.features import FeatureTable
from diffrac_cvx.app.cli.messages import (
    describe_clusters,
    describe_structure,
    describe_true_labels,
    describe_warnings,
    true_label_table,
)
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.datasets.tables import Table as Data
from diffrac_cvx.machine.writing import write_text
from diffrac_cvx.problem.formatting import FormattedBound, formatted_lower, formatted_upper, width_of

MAX_FEATURES = 30  # rows of the coefficient table
NUMBER_MEANINGS = {  # by key of the findings: title and meaning
    "cost": ("cost",
        "Objective value of the {what}, penalties included, for its prediction by the features: 0 is best, 1 worst."),
    "lower_bound": ("certified lower bound",
        "No {what} of these points costs less.  This is certified, not estimated."),
    "label_gap": ("optimality gap",
        "Cost minus lower bound: any other {what} could improve the cost by at most this amount."),
    "upper_bound": ("upper bound",
        "Upper bound on the optimal value of the relaxation that was solved; the lower bound is below it."),
    "n_excluded": ("excluded columns",
        "Columns that are collinear or constant up to rounding and not penalised: the bounds hold without them."),
    "adjusted_rand_score": ("adjusted Rand index",
        "Agreement of reference labels and clusters: 1 is identical, about 0 is chance level."),
    "normalized_mutual_information": ("normalised mutual information",
        "Another measure of this agreement: 1 is identical, 0 is none."),
    "clustering_error": ("clustering error",
        "1 - (mean of the products of reference and found labels, as -1 and +1)^2: 0 is identical."),
    "error_of_one_cluster": ("error of one cluster",
        "Clustering error if all points are in one cluster, for comparison."),
    "seconds": ("time (s)", "Run time of the solver."),
    "iterations": ("iterations", "Number of iterations of the solver."),
    "solver": ("solver", "Method that was used."),
    "status": ("termination status", "Whether the solver converged or reached a limit."),
}  # fmt: skip


def write_cluster_report(
    path: Path,
    source: TableSource,
    table: Data,
    model: Any,
    found: dict[str, Any],
    columns: ColumnOptions,
    constraint_options: ConstraintOptions | None = None,
    feature_table: FeatureTable | None = None,
) -> None:
    """Write the HTML report of a clustering."""
    clusters = found["labels"].ndim == 1
    title = f"{'Clusters' if clusters else 'Labels'} found in {Path(source.file).name}"
    text = html.render(
        "cluster.html", title=title, file=source.file, n=found["n"], sizes=found["sizes"], clusters=clusters,
        warnings=describe_warnings(found), notes=found["notes"],
        summary=describe_structure(found) + describe_clusters(found) + describe_true_labels(found)[:1],
        truth=true_label_table(found) if "contingency_matrix" in found else None,
        coefficients=coefficient_rows(found, feature_table), more_features=max(found["d"] - MAX_FEATURES, 0),
        numbers=number_rows(found),
        pictures=label_pictures(table, model, clusters), proofs=proof_pictures(model),
        groups=groups_table(found),
        program=program_of(source, model, columns, constraint_options),
    )  # fmt: skip
    write_text(path, text)


def coefficient_rows(found: dict[str, Any], feature_table: FeatureTable | None = None) -> list[dict[str, Any]]:
    """Return the features by decreasing coefficient: scaled, in units of the table, standard deviation.

    With a feature table, each has its marginal gain and selection frequency too.
    """
    scaled = found["scaled_coefficients"]
    names = sorted(scaled, key=lambda name: -max(map(abs, scaled[name])))
    raw, deviations = found["coefficients"], found["standard_deviations"]
    more: dict[str, dict[str, float]] = {}
    if feature_table is not None:
        columns = {"gain": feature_table.gains} | (
            {} if feature_table.frequencies is None else {"frequency": feature_table.frequencies}
        )
        more = {
            name: {key: float(values[j]) for key, values in columns.items()}
            for j, name in enumerate(feature_table.names)
        }
    return [
        {"name": name, "scaled": scaled[name], "raw": raw[name], "deviation": deviations[name][0], **more.get(name, {})}
        for name in names[:MAX_FEATURES]
    ]


def number_rows(found: dict[str, Any]) -> list[tuple[str, Any, str]]:
    """Return the numbers of the findings, each with title and meaning."""
    what = "split" if len(found["sizes"]) == 2 else "partition"
    known = {**found, **certified_numbers(found)}
    return [
        (title, known[key], meaning.format(what=what))
        for key, (title, meaning) in NUMBER_MEANINGS.items()
        if known.get(key) is not None and not (key == "upper_bound" and "n_nodes" in found)
    ]


def certified_numbers(found: dict[str, Any]) -> dict[str, FormattedBound]:
    """Return the certified numbers of the clusters or labels, formatted."""
    bounds = {
        "lower_bound": formatted_lower(found["lower_bound"]),
        "upper_bound": formatted_upper(found["upper_bound"]),
    }
    if found["cost"] is None:
        return bounds
    gap = found["label_gap"]
    return {
        "cost": formatted_upper(found["cost"], gap),
        "lower_bound": formatted_lower(found["lower_bound"], gap),
        "label_gap": formatted_upper(gap),
        "upper_bound": formatted_upper(found["upper_bound"], width_of(found["lower_bound"], found["upper_bound"])),
    }


def label_pictures(table: Data, model: Any, clusters: bool) -> Iterator[html.EncodedPicture]:
    """Yield the figures of found labels, reference labels if there are any, and coefficients."""
    from diffrac_cvx.plotting import DirectionDisplay, ProjectionDisplay

    rows = len(np.atleast_2d(model.coef_))
    for k in range(rows):
        which = "" if rows == 1 else f" of {'cluster' if clusters else 'label'} {k}"
        values = ProjectionDisplay.from_estimator(model, table.X, output=k)
        yield html.encode_picture(values, f"Decision function{which} by cluster.")
        for reference in table.references:
            true = ProjectionDisplay.from_estimator(model, table.X, reference, output=k)
            yield html.encode_picture(true, "The same points by reference label.")
        direction = DirectionDisplay.from_estimator(model, feature_names=list(table.names), output=k)
        yield html.encode_picture(direction, f"Coefficients{which} per standard deviation.")


def proof_pictures(model: Any) -> Iterator[html.EncodedPicture]:
    """Yield the figures of the structure test, the bounds and the spectrum."""
    from diffrac_cvx.plotting import BracketDisplay, SpectrumDisplay, StructureDisplay

    test = getattr(model, "structure_", None)
    if test is not None and test.bandwidth > 0.0:
        words = "Structure test: scores of rows left out of the fit; a gap between groups is far below the curve."
        yield html.encode_picture(StructureDisplay.from_test(test), words)
    if len(model.result_.history) > 1:
        bounds = BracketDisplay.from_result(model.result_)
        yield html.encode_picture(bounds, "Certified bounds on the optimal cost against time.")
    words = "Normalised eigenvalues of the solution: if only the first is large, the relaxation yields one split."
    yield html.encode_picture(SpectrumDisplay.from_result(model.result_), words)


def groups_table(found: dict[str, Any]) -> ReportTable | None:
    """Return the feature groups by decreasing norm of their coefficients, None if there are none."""
    if found["feature_groups"] is None:
        return None
    ranked = sorted(found["feature_groups"].items(), key=lambda pair: -pair[1]["length"])[:MAX_FEATURES]
    rows = tuple((name, group["columns"], group["length"]) for name, group in ranked)
    return ReportTable(("group", "columns", "norm of the coefficients per standard deviation"), rows)


def program_of(
    source: TableSource,
    model: Any,
    columns: ColumnOptions,
    constraint_options: ConstraintOptions | None,
) -> str:
    """Return a Python program that reproduces the labels."""
    if model.groups is None:
        return python_code(source.code(), model, constraint_options)
    loading = source.code() if source.is_name else source.code(whole=True)
    return python_code(f"{loading}\n{columns.code(source)}", model, constraint_options)


def python_code(loading: str, model: Any, constraint_options: ConstraintOptions | None = None) -> str:
    """Return a Python program that reproduces the labels; the lines ``loading`` define X and, if needed, ``groups``."""
    defaults = type(model)().get_params()
    changed = {name: repr(value) for name, value in model.get_params().items() if value != defaults[name]}
    changed |= {"groups": "groups"} if "groups" in changed else {}
    parameters = ", ".join(f"{name}={text}" for name, text in sorted(changed.items()))
    constraints_argument = "" if constraint_options is None else ", constraints=constraints"
    fit = f"model = dc.{type(model).__name__}({parameters}).fit(X{constraints_argument})"
    lines = [loading, *([] if constraint_options is None else [constraint_options.code()]), fit]
    lines.append("print(model.labels_)")
    imports = (
        "import pandas\n\n"
        if constraint_options is not None and constraint_options.must_link_column is not None
        else ""
    )
    return "\n".join([f"{imports}import diffrac_cvx as dc", "", *lines, ""])
