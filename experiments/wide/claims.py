"""What the tables of the experiment on wide tables show: rules that were written before it was run, and numbers.

The paper states nothing on such tables, so these are findings; each of the rules says whether it holds.
"""

import numpy as np
import pandas as pd

from diffrac_cvx.problem.proved_numbers import format_upper
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
    made, timed = table[table["kind"] == "made"], table[table["kind"] == "time"]
    findings = [
        few_columns(made, "index", "at their own choice", CLEAR),
        few_columns(made, "best", "at the best by the labels of what they are tuned over", 0.0),
        no_factors(made),
        weak_shifts(made),
        variants(made),
        columns_found(made),
        fixed_weights(made),
        *(pairs_of(table[table["kind"] == kind], kind) for kind in ("design", "held-out")),
        times(timed),
    ]
    return [finding for finding in findings if finding is not None]


def ruled(says: str, measured: str, rule: str, holds: bool) -> Finding:
    """Return a finding with its rule, and whether it holds."""
    return Finding(says, f"{measured} Rule: {rule}: **{'holds' if holds else 'does not hold'}**.")


def at(made: pd.DataFrame, **changed: object) -> pd.DataFrame:
    """Return the rows of the usual table, or of one that differs from it."""
    kept = np.ones(len(made), dtype=bool)
    for name, value in {**USUAL, **changed}.items():
        kept &= (made[name] == value).to_numpy(dtype=bool)
    return made[kept]


def by_method(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column, a method a column and a draw or a pair a row."""
    unit = "name" if "name" in rows and rows["name"].notna().all() else "replication"
    return rows.pivot_table(index=unit, columns="method", values=column, sort=False)


def rivals_in(wide: pd.DataFrame) -> list[str]:
    """Return the rivals that were measured."""
    return [name for name in wide.columns if name in RIVALS]


def gains_over(rows: pd.DataFrame, column: str = "index") -> dict[str, Interval]:
    """Return the mean of our index less each rival's column on the same tables."""
    ours, theirs = by_method(rows, "index"), by_method(rows, column)
    return {name: mean_of((ours[OWN] - theirs[name]).dropna().to_numpy(float)) for name in rivals_in(theirs)}


def means_in_words(rows: pd.DataFrame, column: str = "index") -> str:
    """Return the mean index of the relaxation, and the mean of a column of each rival."""
    ours = by_method(rows, "index")[OWN].mean()
    return ", ".join(f"{name} {mean:.2f}" for name, mean in [(OWN, ours), *rival_means(rows, column)])


def few_columns(made: pd.DataFrame, column: str, words: str, margin: float) -> Finding | None:
    """The table for which the method is meant: columns that are correlated through common factors."""
    rows = at(made)
    if rows.empty:
        return None
    gains = gains_over(rows, column)
    return ruled(
        f"{K} of {D} columns, common factors, shift {SHIFT:g}, rivals {words}",
        f"{means_in_words(rows, column)}; the mean is above by "
        + ", ".join(f"{gain:.2f} ({name})" for name, gain in gains.items())
        + ".",
        f"the interval of the mean difference from every rival is above {margin:g}",
        all(gain.low > margin for gain in gains.values()),
    )


def no_factors(made: pd.DataFrame) -> Finding | None:
    """Independent columns, which suit methods that take them one by one."""
    parts = [at(made, noise="independent", shift=shift) for shift in SHIFTS]
    parts = [rows for rows in parts if len(rows)]
    if not parts:
        return None
    best = [max((*rival_means(rows),), key=lambda pair: pair[1]) for rows in parts]
    ours = [by_method(rows, "index")[OWN].mean() for rows in parts]
    words = [
        f"{own:.2f} and {value:.2f} ({name}) at shift {rows['shift'].iloc[0]:g}"
        for own, (name, value), rows in zip(ours, best, parts, strict=True)
    ]
    return ruled(
        f"{K} of {D} independent columns: the relaxation and the best rival at its own choice",
        "; ".join(words) + ".",
        f"at no shift is the mean below the best rival's by more than {CHANCE:g}",
        all(own >= value - CHANCE for own, (_, value) in zip(ours, best, strict=True)),
    )


def rival_means(rows: pd.DataFrame, column: str = "index") -> list[tuple[str, float]]:
    """Return the rivals with their means."""
    wide = by_method(rows, column)
    return [(name, float(wide[name].mean())) for name in rivals_in(wide)]


def weak_shifts(made: pd.DataFrame) -> Finding | None:
    """Where nothing can be found, a method should not seem to find it; and where it begins to be found."""
    rows = made[(made["shift"] == SHIFTS[0]) & (made["k"] <= K)]
    if rows.empty:
        return None
    highest = rows.groupby(["method", "noise", "k"])["index"].mean()
    method, noise, k = highest.index[int(highest.argmax())]
    return ruled(
        f"shift {SHIFTS[0]:g}, {K} columns or fewer",
        f"the largest mean of any method is {highest.max():.2f} ({method}; {noise}, {k:.0f} columns).",
        f"no method has a mean above {CHANCE:g}",
        bool(highest.max() <= CHANCE),
    )


def variants(made: pd.DataFrame) -> Finding | None:
    """Unequal groups, heavy tails, blocks, more columns."""
    found = {name: gains_over(rows) for name, change in VARIANTS.items() if len(rows := at(made, **change))}
    if not found:
        return None
    least = {name: min(gains.items(), key=lambda pair: pair[1].low) for name, gains in found.items() if gains}
    ours = {name: by_method(at(made, **VARIANTS[name]), "index")[OWN].mean() for name in found}
    return ruled(
        "variants of that table: the relaxation, and by how much it is above the rival nearest to it",
        "; ".join(f"{name}: {ours[name]:.2f}, by {gain:.2f} ({rival})" for name, (rival, gain) in least.items()) + ".",
        f"in every variant the interval of the mean difference from every rival is above {CLEAR:g}",
        all(gain.low > CLEAR for _, gain in least.values()),
    )


def columns_found(made: pd.DataFrame) -> Finding | None:
    """Which columns were chosen."""
    rows = at(made)
    if rows.empty:
        return None
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


def fixed_weights(made: pd.DataFrame) -> Finding | None:
    """Fixed lambdas beside the choice, over all made tables."""
    keys = [*USUAL, "replication"]
    wide = made.pivot_table(index=keys, columns="method", values="index")
    if not {OWN, *FIXED} <= set(wide.columns):
        return None
    best = wide[list(FIXED)].max(axis=1)
    loss = mean_of((best - wide[OWN]).to_numpy(float))
    return ruled(
        f"fixed weights on {len(wide)} made tables",
        ", ".join(f"{name} {wide[name].mean():.2f}" for name in (OWN, *FIXED))
        + f", the best of the fixed ones by the labels {best.mean():.2f}, above the choice by {loss:.2f}.",
        f"the mean difference of the best from the choice is at most {CHANCE:g}, its interval included",
        loss.high <= CHANCE,
    )


def pairs_of(rows: pd.DataFrame, kind: str) -> Finding | None:
    """Real pairs: medians, means, and on how many one is above the other."""
    if rows.empty:
        return None
    wide = by_method(rows, "index")
    ours = wide[OWN].to_numpy(float)
    words = []
    for name in rivals_in(wide):
        theirs = wide[name].to_numpy(float)
        wins, losses = int((ours > theirs + NEAR).sum()), int((ours < theirs - NEAR).sum())
        words.append(f"{name} {np.median(theirs):.2f}, {theirs.mean():.2f}, {wins} to {losses}")
    fixed = ", ".join(f"{name} {wide[name].median():.2f}, {wide[name].mean():.2f}" for name in FIXED if name in wide)
    means, tuned = dict(rival_means(rows)), dict(rival_means(rows, "best"))
    best_fixed = wide[[name for name in FIXED if name in wide]].max(axis=1).mean()
    by_labels = ", ".join(f"{name} {mean:.2f}" for name, mean in tuned.items() if mean > means[name])
    below = median_less(ours, wide["k-means"].to_numpy(float))
    return ruled(
        f"{len(wide)} {kind} pairs of classes, at most {MOST_COLUMNS} columns",
        f"median and mean: {OWN} {np.median(ours):.2f}, {ours.mean():.2f}; {fixed}; rivals, and on how many pairs the relaxation "
        f"is above and below by more than {NEAR:g}: {'; '.join(words)}. Its median less that of k-means: {below:.2f}. Means at the best by the "
        f"labels: the relaxation, of the fixed lambdas, {best_fixed:.2f}; {by_labels or 'no rival higher than above'}.",
        f"the median is not below that of k-means by more than {NEAR:g}, and the mean is not below the largest of a rival "
        f"({max(means, key=lambda name: means[name])})",
        bool(below.value >= -NEAR and ours.mean() >= max(means.values())),
    )


def median_less(ours: Array, theirs: Array) -> Interval:
    """Return the difference of two medians on the same pairs, pairs drawn again."""
    return bootstrap(np.column_stack([ours, theirs]), lambda rows, axis: np.subtract(*np.median(rows, axis=axis).T))


def times(timed: pd.DataFrame) -> Finding | None:
    """Seconds to a proved gap."""
    if timed.empty:
        return None
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
