"""Findings on feature groups; the paper has no such penalty and makes no statement about it."""

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.groups.cells import AT, GROUPS, NONZERO, PLACES, PLANTED, RIDGE, SHIFT, SIZE, WEIGHTS
from experiments.harness.findings import Finding, tabulate
from experiments.harness.intervals import Interval, mean_of, proportion_of

TITLE = "Feature groups"
ABOUT = (
    f"{GROUPS} groups of {SIZE} standardised columns, ridge {RIDGE:g}. The means of two clusters differ by twice a shift, spread "
    f"over all columns of {PLANTED} groups with random signs and sizes, or over one column of every group; its norm is {SHIFT:g} "
    f"unless stated otherwise. The selected columns are those of the best direction of the labels, above {NONZERO:g} of the largest. "
    f"Each penalty is tried at the same {len(WEIGHTS)} weights from {WEIGHTS[-1]:g} to {WEIGHTS[0]:g}; on each half of the tables "
    "its weight is the best on the other half. Wrong groups are the same groups with permuted columns."
)
NAMES = {"groups": "group penalty", "l1": "l1", "wrong groups": "wrong groups"}


def findings(rows: pd.DataFrame) -> list[Finding]:
    """Return the recovery of planted groups by both penalties, and their differences."""
    planted, single = (rows[rows["place"] == place] for place in PLACES)
    many, few = planted[planted["shift"] == SHIFT], planted[planted["n"] == AT]
    both = ["groups", "l1"]
    wrong = [chosen(here, "exact") for _, here in of_method(many, "wrong groups").groupby("n")]
    recovery = {
        "groups found": lambda part: summary(part, "exact"),
        "at the best weight of each table": somewhere,
    }
    at_other_weights = {
        "groups found at the weight of the labels": lambda part: summary(part, "exact", by="index"),
        "index": lambda part: summary(part, "index"),
        "index at the weight of the groups": lambda part: summary(part, "index", by="exact"),
        "tr V on the groups": lambda part: summary(part, "inside", by="exact"),
    }
    return [
        Finding(
            "Exact recovery of the planted groups and adjusted Rand index of the labels, by the number of points, each "
            "at the weight that is best for it unless stated otherwise; fraction of tr V on the planted groups",
            tabulate(named(many, both), ["n", "penalty"], recovery | at_other_weights),
            comment="For l1, a group counts as found if any of its columns is selected. V spreads over other groups too "
            f"(chance level: {PLANTED / GROUPS:g}); the direction of its labels does not.",
        ),
        Finding(
            f"Exact recovery of the planted groups with {AT} points, by the shift",
            tabulate(named(few, both), ["shift", "penalty"], recovery),
        ),
        Finding(
            "Mean differences on the same tables, all n: index of the labels, and selected columns in both sets over "
            "those in either",
            differences(many, single),
            comment=f"Exact recovery with wrong groups: {proportion_of(np.concatenate(wrong))!s}.",
        ),
        Finding(
            "One planted column in every group, for which feature groups are the wrong model",
            tabulate(
                named(single, both),
                ["n", "penalty"],
                {"index": lambda part: summary(part, "index"), "overlap": lambda part: summary(part, "overlap")},
            ),
            comment="Overlap is the number of columns in both sets over that in either; a penalty that selects whole "
            f"groups reaches at most {1 / SIZE:g} here.",
        ),
    ]


def named(rows: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """Return the rows of some penalties, with their names, sorted by n and shift."""
    chosen_rows = rows[rows["method"].isin(methods)]
    return chosen_rows.assign(penalty=chosen_rows["method"].map(NAMES)).sort_values(["n", "shift"], kind="stable")


def differences(many: pd.DataFrame, single: pd.DataFrame) -> pd.DataFrame:
    """Return the mean differences of pairs of penalties."""
    pairs = [("groups", "l1"), ("wrong groups", "groups"), ("wrong groups", "l1")]
    found = {f"{NAMES[one]} - {NAMES[other]}": (many, one, other) for one, other in pairs}
    found["the same, one column of each group"] = (single, "groups", "l1")

    def difference(rows: pd.DataFrame, one: str, other: str, measure: str) -> Interval:
        """Return the mean difference on the same tables, each penalty at its own weight."""
        alike = [part for _, part in rows.groupby(["n", "shift"])]
        first, second = (
            np.concatenate([chosen(of_method(part, method), measure) for part in alike]) for method in (one, other)
        )
        return mean_of(first - second)

    measures = ("index", "overlap")
    rows = {name: {measure: difference(*which, measure) for measure in measures} for name, which in found.items()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("penalties")


def at_weights(rows: pd.DataFrame, measure: str) -> Array:
    """Return a measure of tables, (tables, weights)."""
    return np.asarray(rows[[name for name in rows if str(name).startswith(f"{measure}_")]], dtype=float)


def chosen(rows: pd.DataFrame, measure: str, by: str | None = None) -> Array:
    """Return a measure of each table, at the weight that is best for it, or for measure `by`, on the other half of the tables."""
    values, judged = at_weights(rows, measure), at_weights(rows, by or measure)
    odd = rows["replication"].to_numpy() % 2 == 1
    found = np.empty(len(rows))
    for half in (odd, ~odd):
        means = judged[~half].mean(axis=0)
        best = np.flatnonzero(means >= means.max() - 1e-12)
        found[half] = values[half, best[len(best) // 2]]
    return found


def somewhere(rows: pd.DataFrame) -> Interval:
    """Return the proportion of tables whose planted set is recovered at one weight or more."""
    return proportion_of(at_weights(rows, "exact").max(axis=1))


def summary(rows: pd.DataFrame, measure: str, by: str | None = None) -> Interval:
    """Return the mean of a measure at the chosen weights with its interval; a proportion for 0/1 measures."""
    values = chosen(rows, measure, by)
    return proportion_of(values) if measure == "exact" else mean_of(values)


def of_method(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return the rows of a penalty."""
    return rows[rows["method"] == method]
