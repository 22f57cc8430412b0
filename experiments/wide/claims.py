"""What the tables of the experiment on wide tables show: rules that were written before it was run, and numbers.

The paper states nothing on such tables, so these are findings; each of the rules says whether it holds.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from diffrac_cvx.typing import Array
from experiments.harness.claims import Finding
from experiments.harness.intervals import Interval, bootstrap, mean_of
from experiments.wide.cells import DRAWS, SHIFT, SHIFTS, USUAL, VARIANTS, D, K, N
from experiments.wide.methods import FIXED, GOAL, OWN, RIDGE, RIVALS, SELECTING
from experiments.wide.sources import MOST_COLUMNS

TITLE = "Wide tables"
ABOUT = (
    f"Made tables of {N} rows and {D} columns, of which a few differ in their means, {DRAWS} draws, the same for all methods; "
    "and pairs of classes of real tables, standardised. Adjusted Rand index, 0 by chance. The rules were written before the "
    f"experiment was run; the pairs held out were drawn beforehand. The relaxation has ridge {RIDGE:g}. "
    "Intervals are of the mean, over draws."
)
CLEAR, NEAR, CHANCE, FOUND = 0.2, 0.05, 0.1, 0.8
LATEST = 30.0  # seconds


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return what was found; what the table does not hold is left out."""
    kinds = {kind: table[table["kind"] == kind] for kind in ("made", "design", "held-out", "time")}
    made = kinds["made"]
    usual = at(made)
    parts: list[tuple[Callable[[pd.DataFrame], Finding], pd.DataFrame]] = [
        (partial(few_columns, "index", "at their own choice", CLEAR), usual),
        (partial(few_columns, "best", "at the best by the labels of what they are tuned over", 0.0), usual),
        (no_factors, at(made, noise="independent", shift=SHIFTS)),
        (weak_shifts, made[(made["shift"] == SHIFTS[0]) & (made["k"] <= K)]),
        (variants, made if any(len(at(made, **change)) for change in VARIANTS.values()) else usual[:0]),
        (columns_found, usual),
        (fixed_weights, made if {OWN, *FIXED} <= set(made["method"]) else usual[:0]),
        (partial(pairs_of, "design"), kinds["design"]),
        (partial(pairs_of, "held-out"), kinds["held-out"]),
        (times, kinds["time"]),
    ]
    return [find(rows) for find, rows in parts if len(rows)]


def ruled(statement: str, measured: str, rule: str, holds: bool) -> Finding:
    """Return a finding with its rule, and whether it holds."""
    return Finding(statement, f"{measured} Rule: {rule}: **{'holds' if holds else 'does not hold'}**.")


def at(made: pd.DataFrame, **changed: object) -> pd.DataFrame:
    """Return the rows of the usual table, or of those that differ from it; of several values, a tuple."""
    mask = np.ones(len(made), dtype=bool)
    for name, value in {**USUAL, **changed}.items():
        mask &= made[name].isin(value if isinstance(value, tuple) else [value]).to_numpy()
    return made[mask]


def by_method(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column, a method a column and a draw or a pair a row."""
    unit = "name" if "name" in rows and rows["name"].notna().all() else "replication"
    return rows.pivot_table(index=unit, columns="method", values=column, sort=False)


def rivals_in(rows: pd.DataFrame, column: str = "index") -> pd.DataFrame:
    """Return a column of the rivals that were measured, each a column."""
    wide = by_method(rows, column)
    return wide[[name for name in wide if name in RIVALS]]


def gains_over(rows: pd.DataFrame, column: str = "index") -> dict[str, Interval]:
    """Return the mean of our index less each rival's column on the same tables."""
    ours = by_method(rows, "index")[OWN]
    return {
        str(name): mean_of((ours - theirs).dropna().to_numpy(float)) for name, theirs in rivals_in(rows, column).items()
    }


def few_columns(column: str, words: str, margin: float, rows: pd.DataFrame) -> Finding:
    """The table for which the method is meant: columns that are correlated through common factors."""
    gains = gains_over(rows, column)
    means = {OWN: by_method(rows, "index")[OWN].mean(), **rivals_in(rows, column).mean()}
    return ruled(
        f"{K} of {D} columns, common factors, shift {SHIFT:g}, rivals {words}",
        ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())
        + f"; the mean is above by {', '.join(f'{gain:.2f} ({name})' for name, gain in gains.items())}.",
        f"the interval of the mean difference from every rival is above {margin:g}",
        all(gain.low > margin for gain in gains.values()),
    )


def no_factors(rows: pd.DataFrame) -> Finding:
    """Independent columns, which suit methods that take them one by one."""
    words, near = [], True
    for shift, part in rows.groupby("shift"):
        ours, theirs = by_method(part, "index")[OWN].mean(), rivals_in(part).mean()
        words.append(f"{ours:.2f} and {theirs.max():.2f} ({theirs.idxmax()}) at shift {shift:g}")
        near &= bool(ours >= theirs.max() - CHANCE)
    return ruled(
        f"{K} of {D} independent columns: the relaxation and the best rival at its own choice",
        "; ".join(words) + ".",
        f"at no shift is the mean below the best rival's by more than {CHANCE:g}",
        near,
    )


def weak_shifts(rows: pd.DataFrame) -> Finding:
    """Where nothing can be found, a method should not seem to find it; and where it begins to be found."""
    highest = rows.groupby(["method", "noise", "k"])["index"].mean()
    method, noise, k = highest.index[int(highest.argmax())]
    return ruled(
        f"shift {SHIFTS[0]:g}, {K} columns or fewer",
        f"the largest mean of any method is {highest.max():.2f} ({method}; {noise}, {k:.0f} columns).",
        f"no method has a mean above {CHANCE:g}",
        bool(highest.max() <= CHANCE),
    )


def variants(made: pd.DataFrame) -> Finding:
    """Unequal groups, heavy tails, blocks, more columns."""
    words, clear = [], True
    for name, change in VARIANTS.items():
        rows = at(made, **change)
        if len(rows):
            rival, gain = min(gains_over(rows).items(), key=lambda pair: pair[1].low)
            words.append(f"{name}: {by_method(rows, 'index')[OWN].mean():.2f}, by {gain:.2f} ({rival})")
            clear &= gain.low > CLEAR
    return ruled(
        "variants of that table: the relaxation, and by how much it is above the rival nearest to it",
        "; ".join(words) + ".",
        f"in every variant the interval of the mean difference from every rival is above {CLEAR:g}",
        clear,
    )


def columns_found(rows: pd.DataFrame) -> Finding:
    """Which columns were chosen."""
    top, precision, recall, chosen = (by_method(rows, name) for name in ("top", "precision", "recall", "chosen"))
    names = [name for name in (OWN, *FIXED, *SELECTING) if name in top]
    gains = [mean_of((top[OWN] - top[name]).to_numpy(float)) for name in SELECTING if name in top]
    words = [
        f"{name}: {chosen[name].mean():.0f} chosen, precision {precision[name].mean():.2f}, recall {recall[name].mean():.2f}, "
        f"{top[name].mean():.2f} of the true ones among as many of the most important"
        for name in names
    ]
    return ruled(
        f"columns chosen of that table, {K} of which are true",
        "; ".join(words) + ".",
        f"the last share is {FOUND:g} or more in the mean, and above that of every rival that chooses columns, by the intervals",
        bool(top[OWN].mean() >= FOUND) and all(gain.low > 0.0 for gain in gains),
    )


def fixed_weights(made: pd.DataFrame) -> Finding:
    """Fixed lambdas beside the choice, over all made tables."""
    wide = made.pivot_table(index=[*USUAL, "replication"], columns="method", values="index")
    best = wide[list(FIXED)].max(axis=1)
    loss = mean_of((best - wide[OWN]).to_numpy(float))
    return ruled(
        f"fixed weights on {len(wide)} made tables",
        ", ".join(f"{name} {wide[name].mean():.2f}" for name in (OWN, *FIXED))
        + f", the best of the fixed ones by the labels {best.mean():.2f}, above the choice by {loss:.2f}.",
        f"the mean difference of the best from the choice is at most {CHANCE:g}, its interval included",
        loss.high <= CHANCE,
    )


def pairs_of(kind: str, rows: pd.DataFrame) -> Finding:
    """Real pairs: medians, means, and on how many one is above the other."""
    wide, rivals, tuned = by_method(rows, "index"), rivals_in(rows), rivals_in(rows, "best").mean()
    ours, fixed, means = wide[OWN], wide[[name for name in FIXED if name in wide]], rivals.mean()

    def words(name: object, values: "pd.Series[float]") -> str:
        return f"{name} {values.median():.2f}, {values.mean():.2f}"

    counts = [
        f"{words(name, theirs)}, {(ours > theirs + NEAR).sum()} to {(ours < theirs - NEAR).sum()}"
        for name, theirs in rivals.items()
    ]
    by_labels = ", ".join(f"{name} {mean:.2f}" for name, mean in tuned.items() if mean > means[name])
    below = median_less(ours.to_numpy(float), wide["k-means"].to_numpy(float))
    return ruled(
        f"{len(wide)} {kind} pairs of classes, at most {MOST_COLUMNS} columns",
        f"median and mean: {words(OWN, ours)}; {', '.join(words(name, values) for name, values in fixed.items())}; rivals, and on "
        f"how many pairs the relaxation is above and below by more than {NEAR:g}: {'; '.join(counts)}. Its median less that of "
        f"k-means: {below:.2f}. Means at the best by the labels: the relaxation, of the fixed lambdas, "
        f"{fixed.max(axis=1).mean():.2f}; {by_labels or 'no rival higher than above'}.",
        f"the median is not below that of k-means by more than {NEAR:g}, and the mean is not below the largest of a rival "
        f"({means.idxmax()})",
        bool(below.value >= -NEAR and ours.mean() >= means.max()),
    )


def median_less(ours: Array, theirs: Array) -> Interval:
    """Return the difference of two medians on the same pairs, pairs drawn again."""
    return bootstrap(np.column_stack([ours, theirs]), lambda rows, axis: np.subtract(*np.median(rows, axis=axis).T))


def times(timed: pd.DataFrame) -> Finding:
    """Seconds to a proved gap."""
    words = [
        f"{method}, {n:.0f} x {d:.0f}: "
        + ", ".join(
            f"{row['seconds']:.3g} at lambda = {row['lam']:g}"
            + ("" if row["met"] else f" (not met, gap {format_upper(row['gap'])})")
            for _, row in rows.iterrows()
        )
        for (method, n, d), rows in timed.groupby(["method", "n", "d"], sort=False)
    ]
    ours = timed[timed["method"] == "low_rank"]
    return ruled(
        f"seconds to a proved relative gap of {GOAL:g}",
        "; ".join(words) + ".",
        f"`low_rank` proves the gap in {LATEST:g} seconds on every table",
        bool(ours["met"].all() and (ours["seconds"] <= LATEST).all()),
    )
