"""Findings on the law for wide tables, each with its rule and the verdict of the rule."""

import pandas as pd

from experiments.harness.beyond import MIN_ROWS, of_most, ruled
from experiments.harness.claims import Finding, judge, split_parts
from experiments.harness.intervals import mean_of, percent, proportion_of
from experiments.wide_law.cells import COLUMNS, FACTORS, POINTS, TOL
from experiments.wide_law.law import RIDGE, visible_share

TITLE = "When a wide table reveals its clusters"
ABOUT = (
    f"Two clusters, n = {POINTS} points in total, differ by a shift in k of {COLUMNS} columns; rho is the fraction of "
    f"variance due to {FACTORS} common factors. Ridge {RIDGE:g}, `low_rank` to {TOL:g}. c is the objective of the true "
    "labels with a direction on the k columns, kappa a lower bound, by clipping, on the cost of variance within the "
    "clusters; both are computed from the table and its true labels."
)
FOUND_INDEX, LOST_INDEX = 0.8, 0.2  # adjusted Rand index from which the clusters count as found; below which as lost
FOUND_RATIO, LOST_RATIO = (
    1.0,
    2.5,
)  # c / kappa: the theorem applies below the first; the second was set on other tables
TABLES = "{share} of {count} tables."
FORMULA_TOLERANCE = 0.1  # relative error of a formula


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    part = split_parts(table)
    groups, noise = part["groups"], part["noise"]
    return [
        *(rule(groups) for rule in (inequality, found_below, lost_above, between, hidden)),
        noise_formula(noise),
        noise_room(noise),
    ]


def ratio(rows: pd.DataFrame) -> pd.Series:
    """Return c / kappa of each row."""
    return rows["cost"] / rows["kappa"]


def violations(rows: pd.DataFrame) -> int:
    """Return the number of rows with less of V along y than the theorem guarantees, up to rounding errors."""
    return int((rows["along"] < 1.0 - rows["found"] / rows["kappa"] - 1e-6).sum())


def inequality(groups: pd.DataFrame) -> Finding:
    """The theorem, at every V found."""
    told = groups[groups["found"] < groups["kappa"]]
    slack = (told["along"] - (1.0 - told["found"] / told["kappa"])).median() if len(told) else float("nan")
    wrong, words = violations(groups), "none" if not len(told) else f"{slack:.2f}"
    return ruled(
        "the fraction of tr X V X' along the true labels is at least 1 - C / kappa, V of value C / (1 + C)",
        f"{wrong} of {len(groups)} V found have less; the bound is above 0 for {len(told)}, and their median excess "
        f"over it is {words}.",
        judge(wrong == 0, tested=len(told) >= MIN_ROWS),
        f"agrees if no V has less, at any gap; not tested with fewer than {MIN_ROWS} bounds above 0.",
    )


def found_below(groups: pd.DataFrame) -> Finding:
    """Clusters for which the theorem applies."""
    found = groups.loc[ratio(groups) < FOUND_RATIO, "index"] >= FOUND_INDEX
    statement = "if c is below kappa, the clusters are found"
    return of_most(statement, found, TABLES, f"{{most}} have an index of {FOUND_INDEX:g}")


def lost_above(groups: pd.DataFrame) -> Finding:
    """Clusters with c far above kappa."""
    missed = groups.loc[ratio(groups) > LOST_RATIO, "index"] < LOST_INDEX
    statement = f"if c is above {LOST_RATIO:g} kappa, the clusters are lost"
    return of_most(statement, missed, TABLES, f"{{most}} have an index below {LOST_INDEX:g}")


def between(groups: pd.DataFrame) -> Finding:
    """The range between both limits, with and without factors."""
    words = []
    for rho, rows in groups.groupby("rho"):
        middle = rows[ratio(rows).between(FOUND_RATIO, LOST_RATIO)]
        found = proportion_of((middle["index"] >= FOUND_INDEX).to_numpy())
        words.append(f"rho = {rho:g}: {percent(found)} of {len(middle)}")
    return Finding("between these limits, the clusters are found in a proportion of the tables", "; ".join(words) + ".")


def hidden(groups: pd.DataFrame) -> Finding:
    """Correlations too small for anything but a diagonal V, by the population's rule."""
    missed = groups.loc[(groups["rho"] == 0.0) & (groups["m2"] <= visible_share(groups["lam"])), "index"] < LOST_INDEX
    statement, end = (
        "if m^2 <= lambda / (ridge + lambda), independent columns show no clusters",
        ". For infinitely many points this is a theorem.",
    )
    return of_most(statement, missed, TABLES, f"{{most}} have an index below {LOST_INDEX:g}", partly=0.5, end=end)


def noise_formula(noise: pd.DataFrame) -> Finding:
    """Formula for kappa of noise."""
    error = noise["kappa_formula"] / noise["kappa"] - 1.0
    worst = float(error.abs().max())
    return ruled(
        "formula for kappa of independent columns",
        f"has a median error of {100 * error.median():+.0f} % and a maximum error of {100 * worst:.0f} %, {len(noise)} tables.",
        judge(worst <= FORMULA_TOLERANCE, worst <= 2 * FORMULA_TOLERANCE, tested=len(noise) >= MIN_ROWS),
        f"agrees within {100 * FORMULA_TOLERANCE:.0f} % everywhere, in part within {200 * FORMULA_TOLERANCE:.0f} %.",
    )


def noise_room(noise: pd.DataFrame) -> Finding:
    """Cost of noise beyond its lower bound."""
    beyond = mean_of((noise["found"] / noise["kappa"] - 1.0).to_numpy())
    return Finding(
        "cost of noise beyond kappa",
        f"{100 * beyond.value:.0f} % ({100 * beyond.low:.0f} to {100 * beyond.high:.0f}) on average, at the V found.",
        "A diagonal V and the sparse directions of noise are not two-valued; therefore clusters are found for c above kappa too.",
    )
