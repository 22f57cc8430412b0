"""Findings on feature groups; the paper has no such penalty and makes no statement about it."""

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.groups.cells import AT, GROUPS, NONZERO, PLACES, PLANTED, RIDGE, SHIFT, SIZE, WEIGHTS
from experiments.groups.law import FACTOR_ABOVE, FACTOR_BELOW, SMALL_FACTOR, group_norms_of
from experiments.harness.claims import Finding
from experiments.harness.intervals import Interval, mean_of, proportion_of

TITLE = "Feature groups"
ABOUT = (
    f"{GROUPS} groups of {SIZE} standardised columns, ridge {RIDGE:g}. The means of two clusters differ by twice a shift, spread "
    f"over all columns of {PLANTED} groups with random signs and sizes, or over one column of every group; its norm is {SHIFT:g} "
    f"unless stated otherwise. The selected columns are those of the best direction of the labels, above {NONZERO:g} of the largest. "
    f"Each penalty is tried at the same {len(WEIGHTS)} weights from {WEIGHTS[-1]:g} to {WEIGHTS[0]:g}; on each half of the tables "
    "its weight is the best on the other half. Wrong groups are the same groups with permuted columns. The last results are for "
    "exact directions of isotropic data, X'X = nI and Xv = y, with feature groups, with and without a ridge."
)
SCALED = r":math:`w^2 (s' - 1) d / (1 + a^2 + w^2)`"
NAMES = {"groups": "group penalty", "l1": "l1", "wrong groups": "wrong groups"}


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    law = table[table["part"] == "law"]
    return [*findings(table), least_weight(law), uneven(law), sides(law), two_values(law)]


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the findings on planted groups."""
    rows = table[table["part"] == "support"]
    planted, single = (rows[rows["place"] == place] for place in PLACES)
    many = planted[planted["shift"] == SHIFT]
    return [
        support(many, "n", "exact recovery of the planted groups, by the number of points"),
        support(
            planted[planted["n"] == AT], "shift", f"exact recovery of the planted groups with {AT} points, by the shift"
        ),
        labels(many),
        labels_first(many),
        wrong_groups(many),
        one_of_each(single),
        matrix(many),
    ]


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


def support(rows: pd.DataFrame, axis: str, statement: str) -> Finding:
    """How often the planted groups are recovered."""
    parts = []
    for value, here in rows.groupby(axis):
        both = [
            f"{NAMES[method]} {summary(of_method(here, method), 'exact'):.2f}, "
            f"at the best weight of each table {somewhere(of_method(here, method)):.2f}"
            for method in ("groups", "l1")
        ]
        parts.append(f"{axis} = {value:g}: {'; '.join(both)}")
    return Finding(
        statement, "; ".join(parts) + ".", "For l1, a group counts as found if any of its columns is selected."
    )


def labels(rows: pd.DataFrame) -> Finding:
    """Recovery of the labels."""
    parts = [
        f"n = {n}: {both_of(here, 'index')}, groups minus l1 {difference(here, 'groups', 'l1', 'index'):+.2f}"
        for n, here in rows.groupby("n")
    ]
    return Finding("adjusted Rand index of the labels, at the weight that is best for it", "; ".join(parts) + ".")


def both_of(rows: pd.DataFrame, measure: str, by: str | None = None) -> str:
    """Format a measure of the right groups and of l1."""
    found = [f"{NAMES[method]} {summary(of_method(rows, method), measure, by):.2f}" for method in ("groups", "l1")]
    return ", ".join(found)


def labels_first(rows: pd.DataFrame) -> Finding:
    """Recovery of the groups at the weight chosen for the labels, and of the labels at the weight chosen for the groups."""
    groups = [f"n = {n}: {both_of(here, 'exact', by='index')}" for n, here in rows.groupby("n")]
    index = [f"n = {n}: {both_of(here, 'index', by='exact')}" for n, here in rows.groupby("n")]
    return Finding(
        "the best weight for the labels differs from the best weight for the groups",
        f"Exact recovery of the groups at the weight best for the labels: {'; '.join(groups)}. Index of the labels "
        f"at the weight best for the groups: {'; '.join(index)}.",
    )


def difference(rows: pd.DataFrame, first: str, second: str, measure: str) -> Interval:
    """Return the mean difference of two penalties on the same tables, each at its own weight."""
    sizes = ["n", "shift"]
    pairs = [
        chosen(of_method(here, first), measure) - chosen(of_method(here, second), measure)
        for _, here in rows.groupby(sizes)
    ]
    return mean_of(np.concatenate(pairs))


def wrong_groups(rows: pd.DataFrame) -> Finding:
    """Cost of wrong groups."""
    exact = proportion_of(
        np.concatenate([chosen(here, "exact") for _, here in of_method(rows, "wrong groups").groupby("n")])
    )
    return Finding(
        "wrong groups perform worse",
        f"Index of the labels, same tables, all n: {difference(rows, 'wrong groups', 'groups', 'index'):+.2f} against "
        f"the right groups, {difference(rows, 'wrong groups', 'l1', 'index'):+.2f} against l1. Selected columns, in "
        f"both sets over in either: {difference(rows, 'wrong groups', 'groups', 'overlap'):+.2f} and "
        f"{difference(rows, 'wrong groups', 'l1', 'overlap'):+.2f}. Exact recovery of the groups: {exact:.2f}.",
    )


def one_of_each(rows: pd.DataFrame) -> Finding:
    """A table for which feature groups are the wrong model."""
    parts = [
        f"n = {n}: "
        + ", ".join(
            f"{NAMES[method]} index {summary(of_method(here, method), 'index'):.2f}, "
            f"overlap {summary(of_method(here, method), 'overlap'):.2f}"
            for method in PLACES["one of each group"]
        )
        for n, here in rows.groupby("n")
    ]
    return Finding(
        "one planted column in every group: l1 performs better",
        "; ".join(parts) + f". Index of groups minus that of l1: {difference(rows, 'groups', 'l1', 'index'):+.2f}.",
        "Overlap is the number of columns in both sets over that in either; a penalty that selects whole groups "
        f"reaches at most {1 / SIZE:g} here.",
    )


def matrix(rows: pd.DataFrame) -> Finding:
    """Fraction of V on the planted groups."""
    parts = [f"n = {n}: {both_of(here, 'inside', by='exact')}" for n, here in rows.groupby("n")]
    return Finding(
        "fraction of tr V on the planted groups, at the weight that is best for finding them",
        "; ".join(parts) + ".",
        f"V spreads over other groups too (chance level: {PLANTED / GROUPS:g}); the direction of its labels does not.",
    )


def effective(planted: float, decay: float) -> float:
    """Return (sum |v_g|)^2 / |v|^2 of a direction."""
    return float(group_norms_of(int(planted), float(decay)).sum() ** 2)


def measured(rows: pd.DataFrame) -> Interval:
    """Return the smallest w^2 (s' - 1) d / (1 + a^2 + w^2) at which no block of V couples two planted groups."""
    factors = [(effective(row.planted, row.decay) - 1.0) * row.d for row in rows.itertuples()]
    return mean_of(rows["share"].to_numpy() * np.array(factors))


def expected(rows: pd.DataFrame) -> float:
    """Return its expected value for normal columns and large d."""
    row = rows.iloc[0]
    return float(row["predicted"] * row["d"] * (effective(row["planted"], row["decay"]) - 1.0))


def rows_of_law(table: pd.DataFrame) -> list[list[str]]:
    """Format the measured and expected values for each kind of exact direction."""
    kinds = ["columns", "decay", "ridge", "planted", "size", "per_d"]
    law, rows = table[table["part"] == "law"], []
    for (columns, decay, ridge, planted, size, per_d), here in law.groupby(kinds, sort=False):
        found = f"{measured(here):.2f}" if columns == "normal" else f"{measured(here).value:.0e}"
        parts = "equal" if decay == 1.0 else f"each {decay:g} of the previous one"
        points = f"{per_d:g}" if per_d else f"{(here['n'] / here['d']).iloc[0]:g}"
        said = f"{expected(here):.2f}" if columns == "normal" else "0"
        rows.append([columns, parts, f"{planted:g}", f"{size:g}", points, f"{ridge:g}", found, said])
    return rows


def normal(law: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of normal columns."""
    return law[law["columns"] == "normal"]


def least_weight(law: pd.DataFrame) -> Finding:
    """Smallest weight that hides a direction with equal parts."""
    flat = normal(law)[normal(law)["decay"] == 1.0]
    parts = [
        f"s = {planted:g}, {size:g} per group, {per_d:g} d points"
        + (f", ridge {ridge:g}" if ridge else "")
        + f" {measured(here):.2f}"
        for (ridge, planted, size, per_d), here in flat.groupby(["ridge", "planted", "size", "per_d"])
    ]
    return Finding(
        "smallest w^2 (s - 1) d / (1 + ridge + w^2) at which V is block diagonal, s equal parts, normal columns: 1 is expected",
        "; ".join(parts) + ".",
        "For the blocks of the planted groups. It rises to 1 with d if s = 2, and is above 1 if there are few points "
        "for the size of a group and s.",
    )


def uneven(law: pd.DataFrame) -> Finding:
    """Smallest weight for unequal parts."""
    rows = normal(law)[normal(law)["decay"] != 1.0]
    parts = [
        f"{size:g} per group {measured(here):.2f}, expected {expected(here):.2f}" for size, here in rows.groupby("size")
    ]
    decay = rows["decay"].iloc[0] if len(rows) else 0.0
    return Finding(
        f"the same for unequal parts, s' = (sum |v_g|)^2 / |v|^2, each part {decay:g} of the previous one: more than 1",
        "; ".join(parts) + "." if parts else "0 tables.",
        "The two largest parts stay coupled up to the largest weight.",
    )


def sides(law: pd.DataFrame) -> Finding:
    """Blocks of V on both sides of the weight."""
    rows = normal(law)
    joined = proportion_of((rows["joined"] < rows["planted"]).to_numpy())
    separate = proportion_of((rows["separate"] == rows["planted"]).to_numpy())
    return Finding(
        "the weight is found from one solution; blocks of V below and above it",
        f"Some planted groups are coupled at {FACTOR_BELOW:g} of it: {joined:.2f}. None, certified, at "
        f"{FACTOR_ABOVE:g} of it: {separate:.2f}. {len(rows)} tables.",
    )


def two_values(law: pd.DataFrame) -> Finding:
    """Tables whose columns all have two values."""
    rows = law[law["columns"] == "two values"]
    separate = int((rows["separate"] == rows["planted"]).sum())
    return Finding(
        "columns of -1 and 1, all orthogonal: V is block diagonal at every weight",
        f"At {SMALL_FACTOR:g} of the weight for normal columns no two planted groups are coupled (certified) in {separate} of "
        f"{len(rows)} tables; the largest w^2 (s - 1) d / (1 + w^2) is {(rows['share'] / rows['predicted']).max():.0e}.",
        "All points have the same distance from the mean, so V = tI is optimal.",
    )
