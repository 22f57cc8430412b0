"""Findings on the law for wide tables, each with its rule."""

import pandas as pd

from experiments.harness.findings import MIN_INSTANCES, Finding, Rule, holds_mostly, one_row, shares
from experiments.harness.tables import split_parts
from experiments.wide_law.cells import COLUMNS, FACTORS, POINTS, TOL
from experiments.wide_law.law import RIDGE

TITLE = "When a wide table reveals its clusters"
ABOUT = (
    f"Two clusters, n = {POINTS} points, differ by a shift in k of {COLUMNS} columns; rho is the fraction of variance "
    f"due to {FACTORS} common factors. Ridge {RIDGE:g}, `low_rank` to {TOL:g}. c is the objective of the true labels "
    "with a direction on the k columns, kappa a lower bound, by clipping, on the cost of variance within the clusters; "
    "both are computed from the table and its true labels."
)
FOUND_INDEX, LOST_INDEX = 0.8, 0.2  # adjusted Rand index from which the clusters count as found; below which as lost
FOUND_RATIO, LOST_RATIO = 1.0, 2.5  # c / kappa: the theorem applies below the first; the second was set on other tables
FORMULA_TOLERANCE = 0.1  # relative error of a formula
BELOW, ABOVE, HIDDEN = "c below kappa: found", f"c above {LOST_RATIO:g} kappa: lost", "small m, independent: lost"


INEQUALITY = Rule(
    "the fraction of tr X V X' along the true labels is at least 1 - C / kappa, V of value C / (1 + C)",
    f"agrees if no V has less, at any gap; in part if 1 % have; not tested with fewer than {MIN_INSTANCES} bounds above 0",
    lambda t: (t["less"] == 0).all(),
    lambda t: (t["less"] <= 0.01 * t["V found"]).all(),
    tested=lambda t: (t["bounds above 0"] >= MIN_INSTANCES).all(),
)
FOUND_BELOW = holds_mostly("if c is below kappa, the clusters are found", BELOW)
LOST_ABOVE = holds_mostly(f"if c is above {LOST_RATIO:g} kappa, the clusters are lost", ABOVE)
NO_CLUSTERS = holds_mostly(
    "if m^2 <= lambda / (ridge + lambda), independent columns show no clusters", HIDDEN, partly=0.5
)
FORMULA = Rule(
    "the formula for kappa of independent columns is right",
    f"agrees if within {100 * FORMULA_TOLERANCE:.0f} % everywhere, in part if within {200 * FORMULA_TOLERANCE:.0f} %; "
    f"not tested with fewer than {MIN_INSTANCES} tables",
    lambda t: (t["largest error"] <= FORMULA_TOLERANCE).all(),
    lambda t: (t["largest error"] <= 2 * FORMULA_TOLERANCE).all(),
    tested=lambda t: (t["tables"] >= MIN_INSTANCES).all(),
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
            "The third is a theorem for infinitely many points. The V of noise are not two-valued and cost more than "
            "kappa, so that clusters are found for c above kappa too.",
        ),
        Finding("kappa of independent columns: formula over value, minus 1", noise_formula(part["noise"]), [FORMULA]),
    ]


def ratio(rows: pd.DataFrame) -> pd.Series:
    """Return c / kappa of each row."""
    return rows["cost"] / rows["kappa"]


def inequality(groups: pd.DataFrame) -> pd.DataFrame:
    """Return how many V have less along the labels than the theorem guarantees, and the median excess of the others."""
    bound = 1.0 - groups["found"] / groups["kappa"]
    excess = groups["along"] - bound
    less = int((excess < -1e-6).sum())  # up to rounding errors
    told = bound > 0.0
    return one_row(V_found=len(groups), less=less, bounds_above_0=int(told.sum()), median_excess=excess[told].median())


def found_and_lost(groups: pd.DataFrame) -> pd.DataFrame:
    """Return the shares of tables whose clusters are found or lost, by c / kappa and by the population's rule."""
    at, index = ratio(groups), groups["index"]
    small = (groups["rho"] == 0.0) & (groups["m2"] <= groups["lam"] / (RIDGE + groups["lam"]))
    parts = {
        BELOW: index[at < FOUND_RATIO] >= FOUND_INDEX,
        ABOVE: index[at > LOST_RATIO] < LOST_INDEX,
        HIDDEN: index[small] < LOST_INDEX,
    }
    between = groups[at.between(FOUND_RATIO, LOST_RATIO)]
    found = {f"between, rho = {rho:g}: found": rows["index"] >= FOUND_INDEX for rho, rows in between.groupby("rho")}
    return shares(parts | found)


def noise_formula(noise: pd.DataFrame) -> pd.DataFrame:
    """Return the error of the formula for kappa of noise."""
    error = noise["kappa_formula"] / noise["kappa"] - 1.0
    return one_row(tables=len(noise), median_error=error.median(), largest_error=error.abs().max())
