"""Findings on wide tables; every rule but that on common factors was written before the experiment was run.

The paper makes no statement on such tables.  A rule agrees in part if a weaker condition holds.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.harness.findings import Finding, Rule, all_or_some, one_row
from experiments.harness.intervals import bootstrap, mean_of
from experiments.wide.cells import CURVES, DRAWS, SHIFT, SHIFTS, USUAL, VARIANTS, D, K, N
from experiments.wide.methods import FIXED, GOAL, OPERATIONS, OWN, RIDGE, RIVALS, SELECTING
from experiments.wide.sources import MOST_COLUMNS

TITLE = "Wide tables"
ABOUT = (
    f"Simulated tables of {N} rows and {D} columns, a few of which differ in their means ({DRAWS} replications, the "
    "same for all methods), and pairs of classes of real tables, standardised. Adjusted Rand index (0: chance level). "
    "The rules, except that on common factors, were written before the experiment was run; the held-out pairs were drawn beforehand. The relaxation "
    f"has ridge {RIDGE:g}; a solve ends at a relative gap of {GOAL:g} or after {OPERATIONS:g} operations. Intervals are for "
    "the mean over replications."
)
COUNTS = tuple(k for noise, k in CURVES if noise == USUAL["noise"])
CLEAR, NEAR, CHANCE, FOUND = 0.2, 0.05, 0.1, 0.8
GAIN, GAIN_TUNED = "gain over it", "gain over it, tuned"  # of the relaxation

BETTER = Rule(
    f"with {K} of {D} columns and common factors, the relaxation is clearly better than every rival",
    f"agrees if the interval of the mean gain over every rival is above {CLEAR:g}, in part if it is above 0",
    lambda t: all(gain.low > CLEAR for gain in t[GAIN].dropna()),
    lambda t: all(gain.low > 0.0 for gain in t[GAIN].dropna()),
)
BETTER_TUNED = Rule(
    f"with {K} of {D} columns and common factors, it is better than every rival tuned by the true labels",
    "agrees if the interval of the mean gain over every tuned rival is above 0, in part if the mean gain is",
    lambda t: all(gain.low > 0.0 for gain in t[GAIN_TUNED].dropna()),
    lambda t: all(gain.value > 0.0 for gain in t[GAIN_TUNED].dropna()),
)
FACTORS, INDEPENDENT = (
    Rule(
        f"with {columns}, the relaxation is close to the best rival",
        f"agrees if its mean is in no row more than {CHANCE:g} below that of the best rival, in part if so in half of the rows",
        lambda t: (t["below"] <= CHANCE).all(),
        lambda t: (t["below"] <= CHANCE).mean() >= 0.5,
    )
    for columns in ("common factors", "independent columns")
)
IN_VARIANTS = Rule(
    "it stays clearly better with unequal clusters, heavy tails, blocks and more columns",
    f"agrees if in every variant the interval of the mean gain over every rival is above {CLEAR:g}, in part if so in half of them",
    lambda t: (t["gain"].map(lambda gain: gain.low) > CLEAR).all(),
    lambda t: (t["gain"].map(lambda gain: gain.low) > CLEAR).mean() >= 0.5,
)
COLUMNS = all_or_some(
    "the most important columns of the relaxation are those that differ",
    f"agrees if it has {FOUND:g} of them among as many most important columns, and by the intervals more than every rival that selects "
    "columns, in part if one of the two holds",
    lambda t: t.loc[OWN, "top"] >= FOUND,
    lambda t: all(gain.low > 0.0 for gain in t[GAIN].dropna()),
)
SUGGESTED = Rule(
    "the suggested weight is close to the best fixed weight",
    f"agrees if the interval of the mean gain of the best fixed weight, chosen by the labels, is below {CHANCE:g}, in part if the mean is",
    lambda t: t["gain of the best fixed weight"].iloc[0].high <= CHANCE,
    lambda t: t["gain of the best fixed weight"].iloc[0].value <= CHANCE,
)
ON_PAIRS = {
    kind: all_or_some(
        f"on {kind} pairs of classes, the relaxation is at least as good as every rival",
        f"agrees if its median is at most {NEAR:g} below that of k-means and its mean is not below that of a rival, in part if one of the "
        "two holds",
        lambda t: t.loc["k-means", "median gain over it"].value >= -NEAR,
        lambda t: t.loc[OWN, "mean"] >= t.loc[t.index.isin(RIVALS), "mean"].max(),
    )
    for kind in ("design", "held-out")
}
RULES = (BETTER, BETTER_TUNED, FACTORS, INDEPENDENT, IN_VARIANTS, COLUMNS, SUGGESTED, *ON_PAIRS.values())


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the findings, except those without rows in the table."""
    made = table[table["kind"] == "made"]
    usual, setting = at(made), f"{K} of {D} columns, common factors, shift {SHIFT:g}"
    varied = made if any(len(at(made, **change)) for change in VARIANTS.values()) else usual[:0]
    parts: list[tuple[str, Callable[[pd.DataFrame], pd.DataFrame], pd.DataFrame, list[Rule]]] = [
        (f"{setting}: mean index, and mean gain of the relaxation", compared, usual, [BETTER, BETTER_TUNED]),
        (
            f"Common factors, k of {D} columns: mean index of the relaxation and of the best rival",
            with_best_rival, at(made, k=COUNTS, shift=SHIFTS), [FACTORS],
        ),
        (
            f"Independent columns, k of {D}: mean index of the relaxation and of the best rival",
            with_best_rival, at(made, noise="independent", shift=SHIFTS), [INDEPENDENT],
        ),
        (
            "Variants of the first table: mean index of the relaxation, and its gain over the closest rival",
            in_variants, varied, [IN_VARIANTS],
        ),
        (
            f"{setting}: columns selected, and top, the share of the true ones among the {K} most important columns",
            columns_found, usual, [COLUMNS],
        ),
        ("Mean index with the suggested and with fixed weights, and relative gap with the first, all simulated tables", fixed_weights, made, [SUGGESTED]),
        *(
            (
                f"{rows['name'].nunique()} {kind} pairs of classes, at most {MOST_COLUMNS} columns: index, and the numbers of pairs on "
                f"which the relaxation is better and worse by more than {NEAR:g}",
                on_pairs, rows, [ON_PAIRS[kind]],
            )
            for kind, rows in table[table["kind"] != "made"].groupby("kind", sort=False)
        ),
    ]  # fmt: skip
    return [Finding(caption, tabulated(rows), rules) for caption, tabulated, rows, rules in parts if len(rows)]


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


def gains_over(rows: pd.DataFrame, column: str = "index") -> "pd.Series[object]":
    """Return the mean gain of our index over each rival on the same tables."""
    ours, theirs = by_method(rows, "index")[OWN], by_method(rows, column).filter(RIVALS)
    return pd.Series({name: mean_of((ours - theirs[name]).dropna()) for name in theirs}, dtype=object)


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean index of the relaxation and the rivals, with their own parameters and tuned by the true labels."""
    means = by_method(rows, "index").filter([OWN, *RIVALS]).mean()
    columns = {"mean": means, GAIN: gains_over(rows), "mean, tuned": by_method(rows, "best").filter(RIVALS).mean()}
    found = pd.DataFrame({**columns, GAIN_TUNED: gains_over(rows, "best")})
    return found.reindex(means.index).rename_axis("method")


def with_best_rival(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for each number of columns and shift, the mean index of the relaxation and of the best rival."""
    means = rows.pivot_table(index=["k", "shift"], columns="method", values="index", sort=False).sort_index()
    theirs = means.filter(RIVALS)
    found = pd.DataFrame({"relaxation": means[OWN], "best rival": theirs.max(axis=1), "which": theirs.idxmax(axis=1)})
    return found.assign(below=found["best rival"] - found["relaxation"]).reset_index("shift")


def in_variants(made: pd.DataFrame) -> pd.DataFrame:
    """Return the mean index of the relaxation in each variant, and its gain over the rival that is closest to it."""
    found = {}
    for name, change in VARIANTS.items():
        rows = at(made, **change)
        if len(rows):
            gains = gains_over(rows)
            closest = gains.map(lambda gain: gain.low).idxmin()
            found[name] = {
                "relaxation": by_method(rows, "index")[OWN].mean(),
                "gain": gains[closest],
                "over": str(closest),
            }
    return pd.DataFrame.from_dict(found, orient="index", dtype=object).rename_axis("variant")


def columns_found(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means of the numbers of selected columns, their precision and recall, and the share in the top."""
    measures = ["chosen", "precision", "recall", "top"]
    found = pd.concat([by_method(rows, name).mean().rename(name) for name in measures], axis=1)
    top = by_method(rows, "top")
    gains = pd.Series(
        {name: mean_of(top[OWN] - theirs) for name, theirs in top.filter(SELECTING).items()}, dtype=object
    )
    found = found.filter([OWN, *FIXED, *SELECTING], axis=0).assign(**{GAIN: gains})
    return found.rename(columns={"chosen": "selected"}).rename_axis("method")


def fixed_weights(made: pd.DataFrame) -> pd.DataFrame:
    """Return the mean index with the suggested and with each fixed weight, and the gain of the best fixed one."""
    wide = made.pivot_table(index=[*USUAL, "replication"], columns="method", values="index")
    best = wide[list(FIXED)].max(axis=1)
    means = {name: wide[name].mean() for name in (OWN, *FIXED)}
    gain = {"best fixed weight, by the labels": best.mean(), "gain of the best fixed weight": mean_of(best - wide[OWN])}
    gap = format_upper(made.loc[made["method"] == OWN, "gap"].median())
    return one_row(tables=len(wide), **means, **gain, median_certified_gap=gap)


def on_pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the median and mean of each method, pairs better and worse, and the mean if tuned by the true labels."""
    wide = by_method(rows, "index").filter([OWN, *FIXED, *RIVALS])
    ours, rivals, tuned = wide[OWN], wide.filter(RIVALS), by_method(rows, "best").filter(RIVALS)
    found = pd.DataFrame({"median": wide.median(), "mean": wide.mean(), "mean, tuned": tuned.mean()})
    found.loc[OWN, "mean, tuned"] = wide.filter(FIXED).max(axis=1).mean()
    found["better"] = (-rivals).add(ours, axis=0).gt(NEAR).sum()
    found["worse"] = rivals.sub(ours, axis=0).gt(NEAR).sum()
    both = wide[[OWN, "k-means"]]  # the pairs are resampled
    gain = bootstrap(both, lambda pairs, axis: np.subtract(*np.median(pairs, axis=axis).T))
    found["median gain over it"] = pd.Series({"k-means": gain}, dtype=object)
    return found.reindex(wide.columns).rename_axis("method")
