"""The report of one clustering: what was found, in words, and the numbers, each with what it means."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx.app import report as html
from diffrac_cvx.app.cli.columns import Columns
from diffrac_cvx.app.cli.data import Source
from diffrac_cvx.app.cli.features import FeatureTable
from diffrac_cvx.app.cli.known import Given
from diffrac_cvx.app.cli.words import answer_of, structure_of, truth_of, truth_table, warnings_of
from diffrac_cvx.comparison.table import Table
from diffrac_cvx.datasets.tables import Table as Data
from diffrac_cvx.machine.writing import write_text
from diffrac_cvx.problem.proved_numbers import Proved, proved_lower, proved_upper, width_of

MOST_FEATURES = 30  # rows of the table of coefficients
MEANINGS = {  # of the findings that are numbers: the name of each and what it means
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
    "adjusted_rand_index": ("adjusted Rand index",
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


def write_report(
    path: Path,
    source: Source,
    table: Data,
    model: Any,
    found: dict[str, Any],
    columns: Columns,
    given: Given | None = None,
    listed: FeatureTable | None = None,
) -> None:
    """Write the report of one clustering."""
    clusters = found["labels"].ndim == 1
    title = f"{'Clusters' if clusters else 'Labels'} found in {Path(source.file).name}"
    text = html.render(
        "cluster.html", title=title, file=source.file, n=found["n"], sizes=found["sizes"], clusters=clusters,
        warnings=warnings_of(found), summary=structure_of(found) + answer_of(found) + truth_of(found)[:1],
        notes=found["notes"],
        truth=truth_table(found) if "crosstab" in found else None, coefficients=coefficient_rows(found, listed),
        more_features=max(found["d"] - MOST_FEATURES, 0), numbers=number_rows(found),
        pictures=label_pictures(table, model, clusters), proofs=proof_pictures(model),
        groups=groups_table(found), program=program_of(source, model, columns, given, searched="relaxations" in found),
    )  # fmt: skip
    write_text(path, text)


def coefficient_rows(found: dict[str, Any], listed: FeatureTable | None = None) -> list[dict[str, Any]]:
    """Return the features by the size of their largest coefficient: scaled, in the units of the table, deviation.

    Where a table of the features is given: what each adds, and how often it is used, too.
    """
    scaled = found["scaled_coefficients"]
    names = sorted(scaled, key=lambda name: -max(map(abs, scaled[name])))
    raw, deviations = found["coefficients"], found["deviations"]
    more: dict[str, dict[str, float]] = {}
    if listed is not None:
        columns = {"gain": listed.gains} | ({} if listed.frequencies is None else {"frequency": listed.frequencies})
        more = {name: {key: float(values[j]) for key, values in columns.items()} for j, name in enumerate(listed.names)}
    return [
        {"name": name, "scaled": scaled[name], "raw": raw[name], "deviation": deviations[name][0], **more.get(name, {})}
        for name in names[:MOST_FEATURES]
    ]


def number_rows(found: dict[str, Any]) -> list[tuple[str, Any, str]]:
    """Return the numbers of the findings, each with its name and what it means."""
    what = "split" if len(found["sizes"]) == 2 else "grouping"
    known = {**found, **proved_cells(found)}
    return [
        (title, known[key], says.format(what=what))
        for key, (title, says) in MEANINGS.items()
        if known.get(key) is not None and not (key == "upper_bound" and "relaxations" in found)
    ]


def proved_cells(found: dict[str, Any]) -> dict[str, Proved]:
    """Return what is proved of the clusters, or of the labels, for a table."""
    bounds = {"lower_bound": proved_lower(found["lower_bound"]), "upper_bound": proved_upper(found["upper_bound"])}
    if found["cost"] is None:
        return bounds
    gap = found["label_gap"]
    return {
        "cost": proved_upper(found["cost"], gap),
        "lower_bound": proved_lower(found["lower_bound"], gap),
        "label_gap": proved_upper(gap),
        "upper_bound": proved_upper(found["upper_bound"], width_of(found["lower_bound"], found["upper_bound"])),
    }


def label_pictures(table: Data, model: Any, clusters: bool) -> Iterator[html.Picture]:
    """Yield the pictures of the labels: found, true where they are known, and the coefficients."""
    from diffrac_cvx.plotting import DirectionDisplay, ProjectionDisplay

    rows = len(np.atleast_2d(model.coef_))
    for k in range(rows):
        which = "" if rows == 1 else f" of {'cluster' if clusters else 'label'} {k}"
        values = ProjectionDisplay.from_estimator(model, table.X, output=k)
        yield html.picture(values, f"The points along the direction{which}, as found.")
        if table.labels is not None:
            true = ProjectionDisplay.from_estimator(model, table.X, table.labels, output=k)
            yield html.picture(true, "The same points with their true labels.")
        direction = DirectionDisplay.from_estimator(model, feature_names=list(table.names), output=k)
        yield html.picture(direction, f"Coefficients{which}, per standard deviation.")


def proof_pictures(model: Any) -> Iterator[html.Picture]:
    """Yield the pictures of what is proved."""
    from diffrac_cvx.plotting import BracketDisplay, SpectrumDisplay, StructureDisplay

    if tests := [test for test in getattr(model, "structure_", ()) if test.null_values]:
        yield html.picture(
            StructureDisplay.from_tests(*tests),
            "Is there a structure? Each mark is a table without one, made of this; left of the line it splits as well.",
        )
    if len(model.result_.history) > 1:
        bounds = BracketDisplay.from_result(model.result_)
        yield html.picture(bounds, "Proved bounds on the least cost: they close in as the search goes on.")
    words = "Shares of the eigenvalues of the solution: one that is alone means that one split explains everything."
    yield html.picture(SpectrumDisplay.from_result(model.result_), words)


def groups_table(found: dict[str, Any]) -> Table | None:
    """Return the groups of columns, the longest coefficients first, None where there are none."""
    if found["groups"] is None:
        return None
    ranked = sorted(found["groups"].items(), key=lambda pair: -pair[1]["length"])[:MOST_FEATURES]
    rows = tuple((name, group["columns"], group["length"]) for name, group in ranked)
    return Table(("group", "columns", "length of the coefficients per standard deviation"), rows)


def program_of(source: Source, model: Any, columns: Columns, given: Given | None, *, searched: bool) -> str:
    """Return the program that gives the same labels."""
    if model.groups is None:
        return python_code(source.code(), model, given, searched=searched)
    loading = source.code() if source.is_name else source.code(whole=True)
    return python_code(f"{loading}\n{columns.code(source)}", model, given, searched=searched)


def python_code(loading: str, model: Any, given: Given | None = None, *, searched: bool = False) -> str:
    """Return the program that gives the same labels; ``loading`` are the lines of Python that give X, and the groups.

    These are called ``groups`` there.
    """
    usual = type(model)().get_params()
    changed = {name: repr(value) for name, value in model.get_params().items() if value != usual[name]}
    changed |= {"groups": "groups"} if "groups" in changed else {}
    parameters = ", ".join(f"{name}={text}" for name, text in sorted(changed.items()))
    made = f"model = dc.{type(model).__name__}({parameters}).fit(X{'' if given is None else ', links=links'})"
    if searched:
        scaled = "(X - X.mean(axis=0)) / X.std(axis=0)" if model.standardize else "X"
        lam = repr(model.lam) if model.groups is None else f"[{model.lam!r} * len(some) for some in groups.values()]"
        weights = f"lam={lam}, ridge={model.ridge!r}"
        known = [f"{name}={changed[name]}" for name in ("groups", "nonnegative") if name in changed]
        weights = f"penalty=dc.Penalty({', '.join([weights, *known])})" if known else weights
        links = "" if given is None else ", links=links"
        made = f"best = dc.optimal_labels({scaled}, nu={model.nu!r}, {weights}, tol={model.tol!r}{links})"
    shown = "print((best.labels > 0).astype(int))" if searched else "print(model.labels_)"
    lines = [loading, *([] if given is None else [given.code()]), made, shown]
    imports = "import pandas\n\n" if given is not None and given.group is not None else ""
    return "\n".join([f"{imports}import diffrac_cvx as dc", "", *lines, ""])
