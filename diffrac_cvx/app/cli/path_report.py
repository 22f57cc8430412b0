"""The solutions along a grid, for a person: the tables of `path`, and its report, in words and pictures first."""

from collections.abc import Iterator, Sequence
from pathlib import Path as File

import numpy as np

from diffrac_cvx.app import report as html
from diffrac_cvx.app.cli.data import TableSource, with_option
from diffrac_cvx.app.labels import join_words
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.datasets.tables import Table as Data
from diffrac_cvx.machine.writing import write_text
from diffrac_cvx.paths import RegularizationPath
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.formatting import format_upper, formatted_upper

SMALL_COEFFICIENT = 1e-3  # of the largest coefficient, below which one is not counted
PARAMETER_EFFECTS = {  # what a larger value does
    "lambda": "A larger lambda leaves fewer features in use and costs more: take the largest whose cost you accept.",
    "nu": "A larger nu prefers clusters of equal size more.  Where the features in use and their coefficients hardly "
    "change, the choice matters little.",
    "alpha": "Alpha is how unequal the clusters are: 0 for equal sizes, 1 for one cluster that holds all points.",
}
COLUMN_MEANINGS = {
    "value": "Cost of the solution of the relaxation, penalties included: 0 is best, 1 worst.",
    "gap": "At most this much is between the cost and the least one that there is.  It is proved: 0 is an exact proof.",
    "ratio": "Second eigenvalue of the solution over the first: near 0 it is one split, near 1 several are mixed.",
    "imbalance": "How unequal the clusters are: 0 for equal sizes, 1 for one cluster that holds all points.",
    "features": "How many have a coefficient, per standard deviation, above a thousandth of the largest.",
    "groups": "How many groups of columns have coefficients of such a length, the others being left out.",
    "error": "Clustering error against the true labels, which were not used: 0 is the same groups, about 1 is chance.",
    "reservation": "Why the split is no answer; empty where it may be one.",
}


def write_path_report(
    path: File, source: TableSource, table: Data, solutions: RegularizationPath, warnings: Sequence[str]
) -> None:
    """Write the report of a path."""
    shown = summary_table(solutions)
    text = html.render(
        "path.html", title=f"Values of {solutions.name} on {File(source.file).name}", file=source.file,
        over=solutions.name, warnings=warnings, summary=summary_of(solutions, table),
        notes=[with_option(note) for note in table.notes], pictures=pictures_of(solutions, table.names), table=shown,
        meanings=[(name, COLUMN_MEANINGS[name]) for name in shown.header[1:]],
    )  # fmt: skip
    write_text(path, text)


def summary_of(solutions: RegularizationPath, table: Data) -> list[str]:
    """Return what was found, in sentences."""
    name, at, used = solutions.name, solutions.parameter, features_used(solutions)
    (n, d), answers = table.X.shape, [not reasons for reasons in solutions.diagnostics]
    grid = f"{name} {at[0]:.3g}" if len(at) == 1 else f"{len(at)} values of {name}, from {at[0]:.3g} to {at[-1]:.3g}"
    ends = [f"{used[k]} at {name} {at[k]:.3g}" for k in sorted({0, len(at) - 1})]
    lines = [f"{grid}: {n} points, {d} features; {solutions.seconds.sum():.2f} s.", PARAMETER_EFFECTS[name]]
    lines.append(f"Features in use, of {d}: {', '.join(ends)}.")
    if not all(answers):
        lines.append(f"{sum(answers)} of the {len(at)} values give an answer; the table says why the others do not.")
    lines.append(f"Proved: no cost is further than {format_upper(solutions.gap.max())} from the least one.")
    if solutions.error is not None:
        least = int(np.argmin(solutions.error))
        lines.append(
            f"Nearest to the true labels: {name} {at[least]:.3g}, clustering error {solutions.error[least]:.3f}."
        )
    return lines


def pictures_of(solutions: RegularizationPath, names: Sequence[str]) -> Iterator[html.EncodedPicture]:
    """Yield the pictures of a path."""
    from diffrac_cvx.plotting import PathDisplay

    drawn = PathDisplay(solutions, names)
    what = "coefficient of each feature" if solutions.groups is None else "length of each group of coefficients"
    words = f"The {what}, per standard deviation, and the cost, over {solutions.name}"
    direction = ", which decreases to the right" if solutions.name == "lambda" else ""
    yield html.encode_picture(drawn, f"{words}{direction}.  The largest are named.")
    panels = {"eigenvalue_ratio": "ratio", "imbalance": "imbalance"}
    panels |= {} if solutions.error is None else {"error": "error"}
    columns = join_words(panels.values())
    yield html.encode_picture(
        drawn, f"The columns {columns} of the table below, over {solutions.name}.", panels=list(panels)
    )


def features_used(solutions: RegularizationPath) -> Array:
    """Return how many features have a coefficient, per standard deviation, that is not small."""
    return count_large(np.abs(scaled_directions(solutions)))


def count_large(sizes: Array) -> Array:
    """Return how many of the sizes of each row are not small."""
    return np.asarray(np.sum(sizes > SMALL_COEFFICIENT * sizes.max(axis=1, initial=0.0, keepdims=True), axis=1))


def summary_table(solutions: RegularizationPath) -> ReportTable:
    """Return what is printed of a path; features are counted by their coefficients that are not small."""
    gaps = np.array([formatted_upper(gap) for gap in solutions.gap], dtype=object)
    costs = np.array([*map(formatted_upper, solutions.value, solutions.gap)], dtype=object)
    columns = {
        solutions.name: solutions.parameter, "value": costs, "gap": gaps,
        "ratio": solutions.eigenvalue_ratio, "imbalance": solutions.imbalance,
        "features": features_used(solutions),
    }  # fmt: skip
    columns |= {} if solutions.groups is None else {"groups": count_large(solutions.group_norms)}
    return table_of(columns, solutions)


def whole_table(solutions: RegularizationPath, names: Sequence[str]) -> ReportTable:
    """Return all numbers of a path; the coefficients are per standard deviation of each feature."""
    columns = {
        solutions.name: solutions.parameter, "value": solutions.value, "lower": solutions.lower,
        "upper": solutions.upper, "eigenvalue_ratio": solutions.eigenvalue_ratio, "imbalance": solutions.imbalance,
        "seconds": solutions.seconds,
    }  # fmt: skip
    table = table_of(columns, solutions)
    numbers, heads = scaled_directions(solutions), [f"w_{name}" for name in names]
    if solutions.groups is not None:
        numbers = np.hstack([numbers, solutions.group_norms])
        heads += [f"group_{name}" for name in solutions.groups.names]
    rows = zip(table.rows, numbers.tolist(), strict=True)
    return ReportTable((*table.header, *heads), tuple((*row, *w) for row, w in rows))


def scaled_directions(solutions: RegularizationPath) -> Array:
    """Return the coefficients per standard deviation of each feature."""
    return solutions.directions * (1.0 if solutions.deviations is None else solutions.deviations)


def table_of(columns: dict[str, Array], solutions: RegularizationPath) -> ReportTable:
    """Return columns as a table, with the error where there are true labels, and why a row is no answer."""
    columns |= {} if solutions.error is None else {"error": solutions.error}
    kinds = [", ".join(reason.code for reason in reasons) for reasons in solutions.diagnostics]
    values = [*(column.tolist() for column in columns.values()), kinds]
    return ReportTable((*columns, "reservation"), tuple(zip(*values, strict=True)))
