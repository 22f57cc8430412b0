"""Findings on wide tables: numbers, and rules that were written before the experiment was run.

The paper makes no statement on such tables, so these are findings; each rule reports whether it holds.
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
    f"Simulated tables of {N} rows and {D} columns, a few of which differ in their means ({DRAWS} replications, the "
    "same for all methods), and pairs of classes of real tables, standardised. Adjusted Rand index (0: chance level). "
    "The rules were written before the experiment was run; the held-out pairs were drawn beforehand. The relaxation "
    f"has ridge {RIDGE:g}. Intervals are for the mean over replications."
)
CLEAR, NEAR, CHANCE, FOUND = 0.2, 0.05, 0.1, 0.8
LATEST = 30.0  # seconds


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings, except those without rows in the table."""
    kinds = {kind: table[table["kind"] == kind] for kind in ("made", "design", "held-out", "time")}
    made = kinds["made"]
    usual = at(made)
    parts: list[tuple[Callable[[pd.DataFrame], Finding], pd.DataFrame]] = [
        (partial(few_columns, "index", "with their own choice of parameters", CLEAR), usual),
        (partial(few_columns, "best", "with the best parameters by the labels", 0.0), usual),
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
    """Return a finding with its rule, and whether the rule holds."""
    return Finding(statement, f"{measured} Rule: {rule}: **{'holds' if holds else 'does not hold'}**.")


def at(made: pd.DataFrame, **changed: object) -> pd.DataFrame:
    """Return the rows of the default setting with the given changes; a tuple stands for several values."""
    mask = np.ones(len(made), dtype=bool)
    for name, value in {**USUAL, **changed}.items():
        mask &= made[name].isin(value if isinstance(value, tuple) else [value]).to_numpy()
    return made[mask]


def by_method(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column in wide format: one column per method, one row per replication or pair."""
    unit = "name" if "name" in rows and rows["name"].notna().all() else "replication"
    return rows.pivot_table(index=unit, columns="method", values=column, sort=False)


def rivals_in(rows: pd.DataFrame, column: str = "index") -> pd.DataFrame:
    """Return a measure of the rivals that were run, one column per rival."""
    wide = by_method(rows, column)
    return wide[[name for name in wide if name in RIVALS]]


def gains_over(rows: pd.DataFrame, column: str = "index") -> dict[str, Interval]:
    """Return the mean gain of our index over each rival on the same tables."""
    ours = by_method(rows, "index")[OWN]
    return {
        str(name): mean_of((ours - theirs).dropna().to_numpy(float)) for name, theirs in rivals_in(rows, column).items()
    }


def few_columns(column: str, words: str, margin: float, rows: pd.DataFrame) -> Finding:
    """The setting for which the method is designed: columns correlated through common factors."""
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
    """Independent columns, which suit methods that treat columns one by one."""
    words, near = [], True
    for shift, part in rows.groupby("shift"):
        ours, theirs = by_method(part, "index")[OWN].mean(), rivals_in(part).mean()
        words.append(f"{ours:.2f} and {theirs.max():.2f} ({theirs.idxmax()}) at shift {shift:g}")
        near &= bool(ours >= theirs.max() - CHANCE)
    return ruled(
        f"{K} of {D} independent columns: the relaxation and the best rival with its own choice of parameters",
        "; ".join(words) + ".",
        f"the mean is at no shift more than {CHANCE:g} below that of the best rival",
        near,
    )


def weak_shifts(rows: pd.DataFrame) -> Finding:
    """Shifts too small for detection, where no method should seem to succeed, and the onset of detection."""
    highest = rows.groupby(["method", "noise", "k"])["index"].mean()
    method, noise, k = highest.index[int(highest.argmax())]
    return ruled(
        f"shift {SHIFTS[0]:g}, {K} columns or fewer",
        f"the largest mean of any method is {highest.max():.2f} ({method}; {noise}, {k:.0f} columns).",
        f"no method has a mean above {CHANCE:g}",
        bool(highest.max() <= CHANCE),
    )


def variants(made: pd.DataFrame) -> Finding:
    """Unequal clusters, heavy tails, blocks, more columns."""
    words, clear = [], True
    for name, change in VARIANTS.items():
        rows = at(made, **change)
        if len(rows):
            rival, gain = min(gains_over(rows).items(), key=lambda pair: pair[1].low)
            words.append(f"{name}: {by_method(rows, 'index')[OWN].mean():.2f}, gain {gain:.2f} ({rival})")
            clear &= gain.low > CLEAR
    return ruled(
        "variants of this table: the relaxation, and its gain over the closest rival",
        "; ".join(words) + ".",
        f"in every variant the interval of the mean difference from every rival is above {CLEAR:g}",
        clear,
    )


def columns_found(rows: pd.DataFrame) -> Finding:
    """Selected columns."""
    top, precision, recall, chosen = (by_method(rows, name) for name in ("top", "precision", "recall", "chosen"))
    names = [name for name in (OWN, *FIXED, *SELECTING) if name in top]
    gains = [mean_of((top[OWN] - top[name]).to_numpy(float)) for name in SELECTING if name in top]
    words = [
        f"{name}: {chosen[name].mean():.0f} selected, precision {precision[name].mean():.2f}, recall {recall[name].mean():.2f}, "
        f"{top[name].mean():.2f} of the true ones among the same number of most important columns"
        for name in names
    ]
    return ruled(
        f"columns selected in this table, {K} of which are true",
        "; ".join(words) + ".",
        f"the mean of the last proportion is at least {FOUND:g}, and above that of every rival that selects columns, "
        "by the intervals",
        bool(top[OWN].mean() >= FOUND) and all(gain.low > 0.0 for gain in gains),
    )


def fixed_weights(made: pd.DataFrame) -> Finding:
    """Fixed lambdas compared with the choice, over all simulated tables."""
    wide = made.pivot_table(index=[*USUAL, "replication"], columns="method", values="index")
    best = wide[list(FIXED)].max(axis=1)
    loss = mean_of((best - wide[OWN]).to_numpy(float))
    return ruled(
        f"fixed weights on {len(wide)} simulated tables",
        ", ".join(f"{name} {wide[name].mean():.2f}" for name in (OWN, *FIXED))
        + f", the best fixed weight by the labels {best.mean():.2f}, a gain of {loss:.2f} over the choice.",
        f"the mean gain of the best over the choice is at most {CHANCE:g}, including its interval",
        loss.high <= CHANCE,
    )


def pairs_of(kind: str, rows: pd.DataFrame) -> Finding:
    """Real pairs: medians, means, and the numbers of pairs on which each method is better."""
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
        f"median and mean: {words(OWN, ours)}; {', '.join(words(name, values) for name, values in fixed.items())}; rivals, and the "
        f"numbers of pairs on which the relaxation is better and worse by more than {NEAR:g}: {'; '.join(counts)}. Its median minus "
        f"that of k-means: {below:.2f}. Means with the best parameters by the labels: the relaxation, over the fixed lambdas, "
        f"{fixed.max(axis=1).mean():.2f}; {by_labels or 'no rival higher than above'}.",
        f"the median is at most {NEAR:g} below that of k-means, and the mean is not below that of the best rival ({means.idxmax()})",
        bool(below.value >= -NEAR and ours.mean() >= means.max()),
    )


def median_less(ours: Array, theirs: Array) -> Interval:
    """Return the difference of two medians on the same pairs, resampling the pairs."""
    return bootstrap(np.column_stack([ours, theirs]), lambda rows, axis: np.subtract(*np.median(rows, axis=axis).T))


def times(timed: pd.DataFrame) -> Finding:
    """Time to a certified gap."""
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
        f"time in seconds to a certified relative gap of {GOAL:g}",
        "; ".join(words) + ".",
        f"`low_rank` certifies the gap within {LATEST:g} seconds on every table",
        bool(ours["met"].all() and (ours["seconds"] <= LATEST).all()),
    )
