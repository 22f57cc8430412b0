"""Findings on the structure test, each with its rule; the paper has no such test."""

from typing import Any

import pandas as pd

from experiments.harness.findings import Finding, Rule, tabulate
from experiments.harness.intervals import proportion_of
from experiments.structure.cells import DRAWS, REPLICATIONS

LEVEL = 0.05
MIN_FAMILIES = 15  # without groups, for a rule
MAX_REFUSED = 0.1  # of the tables with clear groups
CLEAR = ("halves", "30 to 70", "15 to 85", "halves, wide", "30 to 70, wide", "15 to 85, wide")  # at 5 deviations
TITLE = "Structure test"
ABOUT = (
    f"{REPLICATIONS} tables of each family, ridge 0.3. `structure_test` says separated, continuum or none. "
    f"Other tests, with {DRAWS} null tables: the cost of the split against independently permuted columns and against "
    "rotated points (either p at most 0.05, and both), SigClust with the sample's eigenvalues, and Hartigan's dip of "
    "the first principal component. Wide tables have 60 to 90 rows and 600 columns."
)
NO_FALSE_GAP = Rule(
    "tables without groups are called separated in at most 5 % of the tables of every family",
    "agrees if no family's interval lies above 5 %, in part if those of a tenth of the families do; not tested with "
    f"fewer than {MIN_FAMILIES} families",
    lambda t: not is_above(t).any(),
    lambda t: is_above(t).mean() <= 0.1,
    tested=lambda t: len(t) >= MIN_FAMILIES,
)
FEW_REFUSED = Rule(
    "of tables with two clear groups, 5 standard deviations apart, at most 10 % get the verdict none",
    "agrees if at most 10 % of all these tables do, in part if at most 20 %; not tested without all six families",
    lambda t: refused(t) <= MAX_REFUSED,
    lambda t: refused(t) <= 2 * MAX_REFUSED,
    tested=lambda t: t.index.isin(CLEAR).sum() == len(CLEAR),
)
RULES = (NO_FALSE_GAP, FEW_REFUSED)


def is_above(table: pd.DataFrame) -> pd.Series:
    """Return whether the interval of the share of separated tables lies above the level, by family."""
    return table["separated"].map(lambda share: share.low > LEVEL)


def refused(table: pd.DataFrame) -> float:
    """Return the share of tables with clear groups and the verdict none."""
    return float(table.loc[table.index.isin(CLEAR), "none"].map(lambda share: share.value).mean())


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the verdicts and the rejections of the other tests, by family."""
    parts = ("Tables without groups", NO_FALSE_GAP), ("Tables with groups", FEW_REFUSED)
    return [
        Finding(
            f"{name}: share of each verdict, and of tables that other tests reject",
            shares(table[table["groups"] == groups]),
            [rule],
        )
        for groups, (name, rule) in enumerate(parts)
    ]


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """Return, by family, the share of each verdict and of the tables that each other test rejects."""

    def verdict(name: str) -> Any:
        return lambda rows: proportion_of(rows["verdict"] == name)

    def rejected(*tests: str, both: bool = False) -> Any:
        def share(rows: pd.DataFrame) -> Any:
            small = rows[[f"p_{test}" for test in tests]] <= LEVEL + 1e-9
            return proportion_of(small.all(axis=1) if both else small.any(axis=1))

        return share

    costs = ("permute_columns", "rotate_points")
    columns = {name: verdict(name) for name in ("separated", "continuum", "none")}
    columns |= {"either cost": rejected(*costs), "both costs": rejected(*costs, both=True)}
    return tabulate(table, ["family"], columns | {"SigClust": rejected("sigclust"), "dip": rejected("dip")})
