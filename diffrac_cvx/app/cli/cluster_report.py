"""The report of one clustering: what was found, in words, and the numbers, each with what it means."""

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

MAX_FEATURES = 30  # rows of the table of coefficients
NUMBER_MEANINGS = {  # of the findings that are numbers: the name of each and what it means
    "cost": ("cost",
        "How badly a weighted sum of the features explains the {what}, penalties included: 0 is best, 1 worst."),
    "lower_bound": ("proved lower bound",
        "No {what} of these points costs less.  This is proved, not estimated."),
    "label_gap": ("distance from the best",
        "Cost less lower bound: at most this much could be gained by any other {what}."),
    "upper_bound": ("upper bound",
        "Of the least cost of the relaxation, the easier problem that was solved: the lower bound is below it."),
    "n_excluded": ("excluded columns",
        "Collinear or constant up to rounding, and without a penalty: the bounds are about the table without them."),
    "adjusted_rand_score": ("adjusted Rand index",
        "Agreement of true labels and clusters found: 1 is the same groups, about 0 is what chance gives."),
    "normalized_mutual_information": ("normalised mutual information",
        "Another measure of this agreement: 1 is the same groups, 0 is none."),
    "clustering_error": ("clustering error",
        "1 - (mean of the products of true and found labels, as -1 and +1), squared: 0 is the same groups."),
    "error_of_one_cluster": ("error of one cluster",
        "The clustering error where all points are put in one cluster, to compare with."),
    "seconds": ("seconds", "Time of the search for the proof."),
    "iterations": ("steps", "Of the search."),
    "solver": ("solver", "The method that was used."),
    "status": ("how it ended", "Whether the search ended by itself or was stopped."),
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
    """Write the report of one clustering."""
    clusters = found["labels"].ndim == 1
    title = f"{'Clusters' if clusters else 'Labels'} found in {Path(source.file).name}"
    text = html.render(
        "cluster.html", title=title, file=source.file, n=found["n"], sizes=found["sizes"], clusters=clusters,
        warnings=describe_warnings(found), summary=describe_structure(found) + describe_clusters(found) + describe_true_labels(found)[:1],
        notes=found["notes"],
        truth=true_label_table(found) if "contingency_matrix" in found else None, coefficients=coefficient_rows(found, feature_table),
        more_features=max(found["d"] - MAX_FEATURES, 0), numbers=number_rows(found),
        pictures=label_pictures(table, model, clusters), proofs=proof_pictures(model),
        groups=groups_table(found), program=program_of(source, model, columns, constraint_options, by_search="relaxations" in found),
    )  # fmt: skip
    write_text(path, text)


def coefficient_rows(found: dict[str, Any], feature_table: FeatureTable | None = None) -> list[dict[str, Any]]:
    """Return the features by the size of their largest coefficient: scaled, in the units of the table, deviation.

    Where a table of the features is given: what each adds, and how often it is used, too.
    """
    scaled = found["scaled_coefficients"]
    names = sorted(scaled, key=lambda name: -max(map(abs, scaled[name])))
    raw, deviations = found["coefficients"], found["deviations"]
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
    """Return the numbers of the findings, each with its name and what it means."""
    what = "split" if len(found["sizes"]) == 2 else "grouping"
    known = {**found, **certified_numbers(found)}
    return [
        (title, known[key], meaning.format(what=what))
        for key, (title, meaning) in NUMBER_MEANINGS.items()
        if known.get(key) is not None and not (key == "upper_bound" and "relaxations" in found)
    ]


def certified_numbers(found: dict[str, Any]) -> dict[str, FormattedBound]:
    """Return what is proved of the clusters, or of the labels, for a table."""
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
    """Yield the pictures of the labels: found, true where they are known, and the coefficients."""
    from diffrac_cvx.plotting import DirectionDisplay, ProjectionDisplay

    rows = len(np.atleast_2d(model.coef_))
    for k in range(rows):
        which = "" if rows == 1 else f" of {'cluster' if clusters else 'label'} {k}"
        values = ProjectionDisplay.from_estimator(model, table.X, output=k)
        yield html.encode_picture(values, f"The points along the direction{which}, as found.")
        if table.labels is not None:
            true = ProjectionDisplay.from_estimator(model, table.X, table.labels, output=k)
            yield html.encode_picture(true, "The same points with their true labels.")
        direction = DirectionDisplay.from_estimator(model, feature_names=list(table.names), output=k)
        yield html.encode_picture(direction, f"Coefficients{which}, per standard deviation.")


def proof_pictures(model: Any) -> Iterator[html.EncodedPicture]:
    """Yield the pictures of what is proved."""
    from diffrac_cvx.plotting import BracketDisplay, SpectrumDisplay, StructureDisplay

    if tests := [test for test in getattr(model, "structure_", ()) if test.null_distribution]:
        yield html.encode_picture(
            StructureDisplay.from_tests(*tests),
            "Is there a structure? Each mark is a table without one, made of this; left of the line it splits as well.",
        )
    if len(model.result_.history) > 1:
        bounds = BracketDisplay.from_result(model.result_)
        yield html.encode_picture(bounds, "Proved bounds on the least cost: they close in as the search goes on.")
    words = "Shares of the eigenvalues of the solution: one that is alone means that one split explains everything."
    yield html.encode_picture(SpectrumDisplay.from_result(model.result_), words)


def groups_table(found: dict[str, Any]) -> ReportTable | None:
    """Return the groups of columns, the longest coefficients first, None where there are none."""
    if found["groups"] is None:
        return None
    ranked = sorted(found["groups"].items(), key=lambda pair: -pair[1]["length"])[:MAX_FEATURES]
    rows = tuple((name, group["columns"], group["length"]) for name, group in ranked)
    return ReportTable(("group", "columns", "length of the coefficients per standard deviation"), rows)


def program_of(
    source: TableSource,
    model: Any,
    columns: ColumnOptions,
    constraint_options: ConstraintOptions | None,
    *,
    by_search: bool,
) -> str:
    """Return the program that gives the same labels."""
    if model.groups is None:
        return python_code(source.code(), model, constraint_options, by_search=by_search)
    loading = source.code() if source.is_name else source.code(whole=True)
    return python_code(f"{loading}\n{columns.code(source)}", model, constraint_options, by_search=by_search)


def python_code(
    loading: str, model: Any, constraint_options: ConstraintOptions | None = None, *, by_search: bool = False
) -> str:
    """Return the program that gives the same labels; ``loading`` are the lines of Python that give X, and the groups.

    These are called ``groups`` there.
    """
    defaults = type(model)().get_params()
    changed = {name: repr(value) for name, value in model.get_params().items() if value != defaults[name]}
    changed |= {"groups": "groups"} if "groups" in changed else {}
    parameters = ", ".join(f"{name}={text}" for name, text in sorted(changed.items()))
    fit = f"model = dc.{type(model).__name__}({parameters}).fit(X{'' if constraint_options is None else ', constraints=constraints'})"
    if by_search:
        scaled = "(X - X.mean(axis=0)) / X.std(axis=0)" if model.standardize else "X"
        lam = repr(model.lam) if model.groups is None else f"[{model.lam!r} * len(some) for some in groups.values()]"
        weights = f"lam={lam}, ridge={model.ridge!r}"
        known = [f"{name}={changed[name]}" for name in ("groups", "nonnegative") if name in changed]
        weights = f"penalty=dc.Penalty({', '.join([weights, *known])})" if known else weights
        constraints_argument = "" if constraint_options is None else ", constraints=constraints"
        fit = f"best = dc.optimal_labels({scaled}, nu={model.nu!r}, {weights}, tol={model.tol!r}{constraints_argument})"
    shown = "print((best.labels > 0).astype(int))" if by_search else "print(model.labels_)"
    lines = [loading, *([] if constraint_options is None else [constraint_options.code()]), fit, shown]
    imports = (
        "import pandas\n\n"
        if constraint_options is not None and constraint_options.must_link_column is not None
        else ""
    )
    return "\n".join([f"{imports}import diffrac_cvx as dc", "", *lines, ""])
