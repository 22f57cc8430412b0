"""Findings on large tables, and an extrapolation to a cluster; the paper makes no such statement."""

import numpy as np
import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.harness.claims import Finding
from experiments.harness.command import Outcome

GAP = 1e-3  # tolerance of the solves
MEMORY = 2e9  # limit in bytes for a solve, in addition to its data
PASSES = 60
WORDS_SECONDS = 120.0

# Assumptions about a larger cluster; all other numbers are measured.
NODES, CORES = 64, 16  # as fast as those measured
POINTS, FEATURES = 1e9, 100
NETWORK = 1e9  # bytes per second and node


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    kinds = set(table["kind"])
    say = {"rows": of_rows, "words": of_words, "cluster": of_cluster}
    found = [of_kind(table[table["kind"] == kind]) for kind, of_kind in say.items() if kind in kinds]
    return [*found, of_nodes(table)] if {"rows", "cluster"} <= kinds else found


def of_rows(rows: pd.DataFrame) -> Finding:
    """Return the finding on tables stored in files."""
    most = rows.loc[rows["n"].idxmax()]
    return Finding(
        f"a file of {most['n']:,} rows and {most['d']} columns, {most['size'] / 1e9:.1f} GB in single precision",
        f"gap {format_upper(most['gap'])} after {most['passes']:.0f} passes and {most['seconds']:.0f} s, "
        f"{most['rows_a_second'] / 1e6:.2g} million rows per second, {most['memory'] / 1e9:.2f} GB of memory; over "
        f"{rows['n'].min():,} to {rows['n'].max():,} rows the passes were {rows['passes'].min():.0f} to {rows['passes'].max():.0f}.",
    )


def of_words(rows: pd.DataFrame) -> Finding:
    """Return the finding on sparse tables."""
    most = rows.loc[(rows["n"] * rows["d"]).idxmax()]
    return Finding(
        f"{most['n']:,} texts and {most['d']:,} words, {100 * most['density']:.2f} % of the entries nonzero",
        f"gap {format_upper(most['gap'])} after {most['seconds']:.0f} s with {most['used']:.0f} words in the working "
        f"set, {most['memory'] / 1e9:.2f} GB of memory; as a dense array, the table alone would take "
        f"{8 * most['n'] * most['d'] / 1e9:.0f} GB. The rounding took {most['rounding_seconds']:.1f} s.",
    )


def of_cluster(rows: pd.DataFrame) -> Finding:
    """Return the finding on tables on the workers of a cluster."""
    large, small = rows[rows["n"] == rows["n"].max()], rows[rows["n"] == rows["n"].min()]
    each = ", ".join(f"{w}: {b / 1e6:.2f} MB" for w, b in zip(large["workers"], large["moved_per_pass"], strict=True))
    ratio = float(large["moved_per_pass"].mean() / small["moved_per_pass"].mean())
    return Finding(
        f"{large['n'].iloc[0]:,} rows of {large['d'].iloc[0]} columns on 1 to {rows['workers'].max()} worker processes",
        f"bytes transferred per pass, by number of workers: {each}; with {large['n'].iloc[0] // small['n'].iloc[0]} times as many "
        f"rows {ratio:.2f} times as many. Values for all numbers of workers agree to {np.ptp(large['value']):.0e}.",
        "The bytes include the scheduler's messages and the row samples, which are drawn a few times.",
    )


def of_nodes(table: pd.DataFrame) -> Finding:
    """Extrapolate the time on a cluster of many nodes from the measured speed."""
    rows = table[table["kind"] == "rows"]
    most = rows.loc[rows["n"].idxmax()]
    # A row costs d (d + 2 r) products, with r = d at first: quadratic in d.
    speed = float(most["rows_a_second"]) * (float(most["d"]) / FEATURES) ** 2  # rows per second, on one thread
    reading = POINTS / (speed * NODES * CORES)
    sending = np.log2(NODES) * 8 * 3 * FEATURES**2 / NETWORK
    passes = float(rows["passes"].max())
    return Finding(
        f"{NODES} nodes of {CORES} cores, n = {POINTS:.0e}, d = {FEATURES}, extrapolated, not measured",
        f"{passes:.0f} passes of {reading:.0f} s each, {passes * (reading + sending):.0f} s in total; the sums of a "
        f"pass, {3 * 8 * FEATURES**2 / 1e3:.0f} kB, take {1e3 * sending:.1f} ms.",
        "Assumptions: cores as fast as here, work proportional to n d^2 with perfect scaling, chunks in "
        "the memory of the nodes, and 1 GB per second between them.",
    )


def check_sizes(table: pd.DataFrame) -> Outcome:
    """Check that every solve reached its gap within the promised memory and number of passes."""
    lines = []
    for row in table.itertuples():
        name = f"{row.kind}, n = {row.n}, d = {row.d}"
        if not row.gap <= GAP:
            lines.append(f"{name}: the gap is {format_upper(row.gap)}, above {GAP:g}")
        if row.kind != "cluster" and row.memory > MEMORY:
            lines.append(f"{name}: {row.memory / 1e9:.2f} GB of memory, above {MEMORY / 1e9:g}")
        if row.kind == "rows" and row.passes > PASSES:
            lines.append(f"{name}: {row.passes:.0f} passes, above {PASSES}")
        if row.kind == "words" and row.seconds > WORDS_SECONDS:
            lines.append(f"{name}: {row.seconds:.0f} s, above {WORDS_SECONDS:g}")
    return Outcome(
        "\n".join(lines) or "every table was solved within its limits of gap, memory, passes and time", not lines
    )
