"""Findings on the structure test, each with its rule; the paper has no such test."""

from typing import Any

import pandas as pd

from experiments.harness.findings import Finding, Rule, tabulate
from experiments.harness.intervals import proportion_of
from experiments.structure.cells import COMPARED, DRAWS, REPLICATIONS
from experiments.structure.families import SEPARATION

LEVEL = 0.05
MOST_ALARMS = 2  # of a family without groups, above which the README names it
MIN_FAMILIES = 15  # without groups, for a rule
MIN_FOUND = 0.8  # of the tables with clear groups
HEADLINE = (  # in the README
    "halves", "30 to 70", "20 to 80", "15 to 85", "10 to 90, 6 apart", "5 to 95, 6 apart", "three groups, 5 apart",
    "three groups in line",
)  # fmt: skip
CLEAR = ("halves", "30 to 70", "20 to 80", "three groups, 5 apart", "three groups in line")  # likewise, 200 x 10
TITLE = "Structure test"
ABOUT = (
    f"{REPLICATIONS} tables of each family, ridge 0.3. `structure_test` says separated or not separated. Splits better: "
    "not separated, but the split in two costs less than those of null tables. Other tests, on at least "
    f"{COMPARED} tables, with {DRAWS} null tables: the cost of the split against independently permuted columns and against "
    "rotated points (either p at most 0.05, and both), SigClust with the sample's eigenvalues, and Hartigan's dip of "
    "the first principal component. Wide tables have 60 to 90 rows and 600 columns. Groups are 5 standard deviations "
    "apart unless the name says otherwise."
)
NO_FALSE_GAP = Rule(
    "tables without groups are called separated in at most 5 % of the tables of every family",
    "agrees if no family's interval lies above 5 %, in part if those of a tenth of the families do; not tested with "
    f"fewer than {MIN_FAMILIES} families",
    lambda t: not is_above(t).any(),
    lambda t: is_above(t).mean() <= 0.1,
    tested=lambda t: len(t) >= MIN_FAMILIES,
)
FOUND = Rule(
    "groups 5 standard deviations apart, each with a fifth of the rows or more, are called separated",
    "agrees if at least 80 % of the tables of each of the five such families (200 x 10) are, in part if at least 80 % of "
    "all of them are; not tested without all five families",
    lambda t: found(t).min() >= MIN_FOUND,
    lambda t: found(t).mean() >= MIN_FOUND,
    tested=lambda t: t.index.isin(CLEAR).sum() == len(CLEAR),
)
RULES = (NO_FALSE_GAP, FOUND)


def is_above(table: pd.DataFrame) -> pd.Series:
    """Return whether the interval of the share of separated tables lies above the level, by family."""
    return table["separated"].map(lambda share: share.low > LEVEL)


def found(table: pd.DataFrame) -> pd.Series:
    """Return the share of separated tables of each family with clear groups."""
    return table.loc[table.index.isin(CLEAR), "separated"].map(lambda share: share.value)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the verdicts and the rejections of the other tests, by family."""
    parts = ("Tables without groups", NO_FALSE_GAP), ("Tables with groups", FOUND)
    return [
        Finding(
            f"{name}: share of the tables called separated, and of those that other tests reject",
            shares(table[table["groups"] == groups]),
            [rule],
        )
        for groups, (name, rule) in enumerate(parts)
    ]


def passage(table: pd.DataFrame) -> str:
    """Return the README passage: false alarms and power by the same verdict."""
    share = {name: rows["verdict"].eq("separated") for name, rows in table.groupby("family")}
    noise = table[table["groups"] == 0]
    alarms = noise[noise["verdict"] == "separated"]["family"].value_counts()
    frequent = alarms[alarms > MOST_ALARMS]
    named = ", ".join(f"{name} {count} of {len(share[name])}" for name, count in frequent.items())
    power = "; ".join(f"{name} {share[name].sum()} of {len(share[name])}" for name in HEADLINE)
    return (
        f"Called separated: {alarms.sum()} of {len(noise)} tables of {noise['family'].nunique()} kinds without groups "
        f"(at most {MOST_ALARMS} of a kind{', except ' + named if named else ''}); with groups {SEPARATION:g} standard deviations apart unless named otherwise, by their "
        f"shares of the rows in per cent: {power}.\n"
    )


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """Return, by family, the share of the tables called separated and of those that each other test rejects."""

    def rejected(*tests: str, both: bool = False) -> Any:
        def share(rows: pd.DataFrame) -> Any:
            small = rows[[f"p_{test}" for test in tests]].dropna() <= LEVEL + 1e-9
            return proportion_of(small.all(axis=1) if both else small.any(axis=1))

        return share

    costs = ("permute_columns", "rotate_points")
    columns: dict[str, Any] = {
        "separated": lambda rows: proportion_of(rows["verdict"] == "separated"),
        "splits better": lambda rows: proportion_of(rows["splits_better"] == 1),
    }
    columns |= {"either cost": rejected(*costs), "both costs": rejected(*costs, both=True)}
    return tabulate(table, ["family"], columns | {"SigClust": rejected("sigclust"), "dip": rejected("dip")})
