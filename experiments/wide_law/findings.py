"""Findings on the law for wide tables, each with its rule."""

from typing import Any

import pandas as pd

from experiments.harness.findings import Finding, Rule, one_row
from experiments.harness.intervals import mean_of, proportion_of
from experiments.harness.tables import split_parts
from experiments.wide_law.cells import COLUMNS, FACTORS, POINTS, TOL
from experiments.wide_law.law import RIDGE, visible_share

TITLE = "When a wide table reveals its clusters"
ABOUT = (
    f"Two clusters, n = {POINTS} points, differ by a shift in k of {COLUMNS} columns; rho is the fraction of variance "
    f"due to {FACTORS} common factors. Ridge {RIDGE:g}, `low_rank` to {TOL:g}. c is the objective of the true labels "
    "with a direction on the k columns, kappa a lower bound, by clipping, on the cost of variance within the clusters; "
    "both are computed from the table and its true labels."
)
FOUND_INDEX, LOST_INDEX = 0.8, 0.2  # adjusted Rand index from which the clusters count as found; below which as lost
FOUND_RATIO, LOST_RATIO = 1.0, 2.5  # c / kappa: the theorem applies below the first; the second was set on other tables
MIN_ROWS = 12  # fewest rows for a rule
FORMULA_TOLERANCE = 0.1  # relative error of a formula
BELOW, ABOVE, HIDDEN = "c below kappa: found", f"c above {LOST_RATIO:g} kappa: lost", "small m, independent: lost"


def share_rule(statement: str, row: str, partly: float = 0.8) -> Rule:
    """Return a rule on a proportion: at least 90 %, 80 % at the lower end."""
    return Rule(
        statement,
        f"agrees if at least 90 % do (80 % at the lower end), in part if {100 * partly:.0f} %; not tested with fewer "
        f"than {MIN_ROWS} tables",
        lambda t: t.loc[row, "proportion"].value >= 0.9 and t.loc[row, "proportion"].low >= 0.8,
        lambda t: t.loc[row, "proportion"].value >= partly,
        tested=lambda t: t.loc[row, "tables"] >= MIN_ROWS,
    )


INEQUALITY = Rule(
    "the fraction of tr X V X' along the true labels is at least 1 - C / kappa, V of value C / (1 + C)",
    f"agrees if no V has less, at any gap; in part if 1 % have; not tested with fewer than {MIN_ROWS} bounds above 0",
    lambda t: (t["less"] == 0).all(),
    lambda t: (t["less"] <= 0.01 * t["V found"]).all(),
    tested=lambda t: (t["bounds above 0"] >= MIN_ROWS).all(),
)
FOUND_BELOW = share_rule("if c is below kappa, the clusters are found", BELOW)
LOST_ABOVE = share_rule(f"if c is above {LOST_RATIO:g} kappa, the clusters are lost", ABOVE)
NO_CLUSTERS = share_rule(
    "if m^2 <= lambda / (ridge + lambda), independent columns show no clusters", HIDDEN, partly=0.5
)
FORMULA = Rule(
    "the formula for kappa of independent columns is right",
    f"agrees if within {100 * FORMULA_TOLERANCE:.0f} % everywhere, in part if within {200 * FORMULA_TOLERANCE:.0f} %; "
    f"not tested with fewer than {MIN_ROWS} tables",
    lambda t: (t["largest error"] <= FORMULA_TOLERANCE).all(),
    lambda t: (t["largest error"] <= 2 * FORMULA_TOLERANCE).all(),
    tested=lambda t: (t["tables"] >= MIN_ROWS).all(),
)
RULES = (INEQUALITY, FOUND_BELOW, LOST_ABOVE, NO_CLUSTERS, FORMULA)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the theorem at every V, the clusters found and lost, and the formula for noise."""
    part = split_parts(table)
    return [
        Finding("The theorem, at every V found", inequality(part["groups"]), [INEQUALITY]),
        Finding(
            f"Tables whose clusters are found (index of {FOUND_INDEX:g} or more) or lost (below {LOST_INDEX:g})",
            found_and_lost(part["groups"]),
            [FOUND_BELOW, LOST_ABOVE, NO_CLUSTERS],
            "The third is a theorem for infinitely many points.",
        ),
        Finding("kappa of independent columns: formula over value, minus 1", noise_formula(part["noise"]), [FORMULA]),
        Finding(
            "Cost of noise over kappa, minus 1, at the V found",
            one_row(mean=mean_of(part["noise"]["found"] / part["noise"]["kappa"] - 1.0)),
            comment="A diagonal V and the sparse directions of noise are not two-valued; so clusters are found for c "
            "above kappa too.",
        ),
    ]


def ratio(rows: pd.DataFrame) -> pd.Series:
    """Return c / kappa of each row."""
    return rows["cost"] / rows["kappa"]


def violations(rows: pd.DataFrame) -> int:
    """Return the number of rows with less of V along y than the theorem guarantees, up to rounding errors."""
    return int((rows["along"] < 1.0 - rows["found"] / rows["kappa"] - 1e-6).sum())


def inequality(groups: pd.DataFrame) -> pd.DataFrame:
    """Return how many V have less along the labels than the theorem guarantees, and the median excess of the others."""
    told = groups[groups["found"] < groups["kappa"]]
    excess = (told["along"] - (1.0 - told["found"] / told["kappa"])).median()
    return one_row(V_found=len(groups), less=violations(groups), bounds_above_0=len(told), median_excess=excess)


def found_and_lost(groups: pd.DataFrame) -> pd.DataFrame:
    """Return the proportions of tables whose clusters are found or lost, by c / kappa and by the population's rule."""
    at, index = ratio(groups), groups["index"]
    small = (groups["rho"] == 0.0) & (groups["m2"] <= visible_share(groups["lam"]))
    events: dict[str, tuple[Any, Any]] = {
        BELOW: (at < FOUND_RATIO, index >= FOUND_INDEX),
        ABOVE: (at > LOST_RATIO, index < LOST_INDEX),
        HIDDEN: (small, index < LOST_INDEX),
    }
    for rho in sorted(groups["rho"].unique()):
        between = at.between(FOUND_RATIO, LOST_RATIO) & (groups["rho"] == rho)
        events[f"between, rho = {rho:g}: found"] = between, index >= FOUND_INDEX
    records = {
        name: {"proportion": proportion_of(event[mask]), "tables": int(mask.sum())}
        for name, (mask, event) in events.items()
    }
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("event")


def noise_formula(noise: pd.DataFrame) -> pd.DataFrame:
    """Return the error of the formula for kappa of noise."""
    error = noise["kappa_formula"] / noise["kappa"] - 1.0
    return one_row(tables=len(noise), median_error=error.median(), largest_error=error.abs().max())
