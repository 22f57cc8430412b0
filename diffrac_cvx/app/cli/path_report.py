"""Tables and HTML report of `path`."""

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

SMALL_COEFFICIENT = 1e-3  # of the largest coefficient; smaller ones are not counted
PARAMETER_EFFECTS = {  # of a larger value
    "lambda": "A larger lambda selects fewer features at a higher cost: choose the largest with an acceptable cost.",
    "nu": "A larger nu prefers clusters of equal size more strongly.  If the selected features and their coefficients "
    "hardly change, the choice matters little.",
}
COLUMN_MEANINGS = {
    "value": "Objective value of the relaxation, penalties included: 0 is best, 1 worst.",
    "gap": "Certified duality gap: at most this much is between the cost and the optimum.",
    "ratio": "Second eigenvalue of the solution over the first: near 0 for one split, near 1 for a mixture of several.",
    "imbalance": "Imbalance of the clusters: 0 for equal sizes, 1 for a single cluster.",
    "features": "Number of features whose coefficient per standard deviation exceeds a thousandth of the largest.",
    "groups": "Number of selected feature groups, by the same threshold on the norm of their coefficients.",
    "error": "Clustering error against the reference labels, which are not used: 0 is identical, about 1 is chance.",
    "warning": "Warning on the clusters; empty if there is none.",
}


def write_path_report(
    path: File, source: TableSource, table: Data, solutions: RegularizationPath, warnings: Sequence[str]
) -> None:
    """Write the HTML report of a path."""
    shown = summary_table(solutions)
    text = html.render(
        "path.html", title=f"Values of {solutions.name} on {File(source.file).name}", file=source.file,
        over=solutions.name, warnings=warnings, summary=summary_of(solutions, table),
        notes=[with_option(note) for note in table.notes], pictures=pictures_of(solutions, table.names), table=shown,
        meanings=[(name, COLUMN_MEANINGS[name]) for name in shown.header[1:]],
    )  # fmt: skip
    write_text(path, text)


def summary_of(solutions: RegularizationPath, table: Data) -> list[str]:
    """Return the summary as sentences."""
    name, at, used = solutions.name, solutions.parameter, features_used(solutions)
    (n, d), answers = table.X.shape, [not reasons for reasons in solutions.diagnostics]
    grid = f"{name} {at[0]:.3g}" if len(at) == 1 else f"{len(at)} values of {name}, from {at[0]:.3g} to {at[-1]:.3g}"
    ends = [f"{used[k]} at {name} {at[k]:.3g}" for k in sorted({0, len(at) - 1})]
    lines = [f"{grid}: {n} points, {d} features; {solutions.seconds.sum():.2f} s.", PARAMETER_EFFECTS[name]]
    lines.append(f"Selected features, of {d}: {', '.join(ends)}.")
    if not all(answers):
        lines.append(
            f"{sum(answers)} of the {len(at)} values have no warning; the table gives the warnings of the others."
        )
    lines.append(f"Certified: every cost is within {format_upper(solutions.gap.max())} of the optimum.")
    if solutions.error is not None:
        least = int(np.argmin(solutions.error))
        lines.append(
            f"Closest to the reference labels: {name} {at[least]:.3g}, clustering error {solutions.error[least]:.3f}."
        )
    return lines


def pictures_of(solutions: RegularizationPath, names: Sequence[str]) -> Iterator[html.EncodedPicture]:
    """Yield the figures of a path."""
    from diffrac_cvx.plotting import PathDisplay

    drawn = PathDisplay(solutions, names)
    what = "coefficient of each feature" if solutions.groups.are_single else "norm of each feature group"
    words = f"The {what}, per standard deviation, and the cost against {solutions.name}"
    direction = ", which decreases to the right" if solutions.name == "lambda" else ""
    yield html.encode_picture(drawn, f"{words}{direction}.  The largest are labelled.")
    panels = {"eigenvalue_ratio": "ratio", "imbalance": "imbalance"}
    panels |= {} if solutions.error is None else {"error": "error"}
    columns = join_words(panels.values())
    yield html.encode_picture(
        drawn, f"The columns {columns} of the table below against {solutions.name}.", panels=list(panels)
    )


def features_used(solutions: RegularizationPath) -> Array:
    """Return the number of features with a non-negligible coefficient per standard deviation."""
    return count_large(np.abs(scaled_directions(solutions)))


def count_large(sizes: Array) -> Array:
    """Return the number of non-negligible sizes in each row."""
    return np.asarray(np.sum(sizes > SMALL_COEFFICIENT * sizes.max(axis=1, initial=0.0, keepdims=True), axis=1))


def summary_table(solutions: RegularizationPath) -> ReportTable:
    """Return the table that is printed; it counts the features with non-negligible coefficients."""
    gaps = np.array([formatted_upper(gap) for gap in solutions.gap], dtype=object)
    costs = np.array([*map(formatted_upper, solutions.value, solutions.gap)], dtype=object)
    columns = {
        solutions.name: solutions.parameter, "value": costs, "gap": gaps,
        "ratio": solutions.eigenvalue_ratio, "imbalance": solutions.imbalance,
        "features": features_used(solutions),
    }  # fmt: skip
    columns |= {} if solutions.groups.are_single else {"groups": count_large(solutions.group_norms)}
    return table_of(columns, solutions)


def whole_table(solutions: RegularizationPath, names: Sequence[str]) -> ReportTable:
    """Return the complete table of a path, with coefficients per standard deviation of each feature."""
    columns = {
        solutions.name: solutions.parameter, "value": solutions.value, "lower": solutions.lower,
        "upper": solutions.upper, "eigenvalue_ratio": solutions.eigenvalue_ratio, "imbalance": solutions.imbalance,
        "seconds": solutions.seconds,
    }  # fmt: skip
    table = table_of(columns, solutions)
    numbers, heads = scaled_directions(solutions), [f"w_{name}" for name in names]
    if not solutions.groups.are_single:
        numbers = np.hstack([numbers, solutions.group_norms])
        heads += [f"group_{name}" for name in solutions.groups.names]
    rows = zip(table.rows, numbers.tolist(), strict=True)
    return ReportTable((*table.header, *heads), tuple((*row, *w) for row, w in rows))


def scaled_directions(solutions: RegularizationPath) -> Array:
    """Return the coefficients per standard deviation of each feature."""
    return solutions.directions * (1.0 if solutions.deviations is None else solutions.deviations)


def table_of(columns: dict[str, Array], solutions: RegularizationPath) -> ReportTable:
    """Return columns as a table, with the error if there are reference labels, and the diagnostic codes."""
    columns |= {} if solutions.error is None else {"error": solutions.error}
    kinds = [", ".join(reason.code for reason in reasons) for reasons in solutions.diagnostics]
    values = [*(column.tolist() for column in columns.values()), kinds]
    return ReportTable((*columns, "warning"), tuple(zip(*values, strict=True)))
