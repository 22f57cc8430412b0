"""What the experiment on groups of columns shows; the paper has no such penalty, and states nothing of it."""

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.groups.cells import AT, GROUPS, NONZERO, PLACES, PLANTED, RIDGE, SHIFT, SIZE, WEIGHTS
from experiments.groups.law import FACTOR_ABOVE, FACTOR_BELOW, SMALL_FACTOR, group_norms_of
from experiments.harness.claims import Finding
from experiments.harness.intervals import Interval, mean_of, proportion_of

TITLE = "Groups of columns"
ABOUT = (
    f"{GROUPS} groups of {SIZE} standardised columns, ridge {RIDGE:g}. Two groups of points differ by twice a shift, spread over "
    f"all columns of {PLANTED} groups with random signs and sizes, or over one column of every group; its norm is {SHIFT:g} "
    f"unless said otherwise. The columns of a solution are those of the best direction of its labels, beyond {NONZERO:g} of the "
    f"largest. Each penalty is tried at the same {len(WEIGHTS)} weights from {WEIGHTS[-1]:g} to {WEIGHTS[0]:g}; on each half of "
    "the tables it has the weight that is best on the other half. Wrong groups are the same ones with the columns permuted. "
    "Then exact directions of isotropic data, X'X = nI and Xv = y, by groups, without a ridge and with one."
)
SCALED = r":math:`w^2 (s' - 1) d / (1 + a^2 + w^2)`"
NAMES = {"groups": "penalty on groups", "l1": "l1", "wrong groups": "wrong groups"}


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return what was found."""
    law = table[table["part"] == "law"]
    return [*findings(table), least_weight(law), uneven(law), sides(law), two_values(law)]


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return what was found of planted groups."""
    rows = table[table["part"] == "support"]
    planted, single = (rows[rows["place"] == place] for place in PLACES)
    many = planted[planted["shift"] == SHIFT]
    return [
        support(many, "n", "the planted groups and no other are found, by the number of points"),
        support(planted[planted["n"] == AT], "shift", f"the same with {AT} points, by the shift"),
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
    """Return a measure of each table, at the weight at which it, or another, is best on the other half of the tables."""
    values, judged = at_weights(rows, measure), at_weights(rows, by or measure)
    odd = rows["replication"].to_numpy() % 2 == 1
    found = np.empty(len(rows))
    for half in (odd, ~odd):
        means = judged[~half].mean(axis=0)
        best = np.flatnonzero(means >= means.max() - 1e-12)
        found[half] = values[half, best[len(best) // 2]]
    return found


def somewhere(rows: pd.DataFrame) -> Interval:
    """Return the share of tables whose planted set is found at one weight at least."""
    return proportion_of(at_weights(rows, "exact").max(axis=1))


def summary(rows: pd.DataFrame, measure: str, by: str | None = None) -> Interval:
    """Return a measure at the weights chosen, with its interval: a share where it is one."""
    values = chosen(rows, measure, by)
    return proportion_of(values) if measure == "exact" else mean_of(values)


def of_method(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """Return the rows of a penalty."""
    return rows[rows["method"] == method]


def support(rows: pd.DataFrame, axis: str, statement: str) -> Finding:
    """How often the planted groups are found."""
    parts = []
    for value, here in rows.groupby(axis):
        both = [
            f"{NAMES[method]} {summary(of_method(here, method), 'exact'):.2f}, "
            f"at any of the weights {somewhere(of_method(here, method)):.2f}"
            for method in ("groups", "l1")
        ]
        parts.append(f"{axis} = {value:g}: {'; '.join(both)}")
    return Finding(statement, "; ".join(parts) + ".", "For l1 a group is found where any of its columns is.")


def labels(rows: pd.DataFrame) -> Finding:
    """How well the labels are found."""
    parts = [
        f"n = {n}: {both_of(here, 'index')}, groups less l1 {difference(here, 'groups', 'l1', 'index'):+.2f}"
        for n, here in rows.groupby("n")
    ]
    return Finding("the adjusted Rand index of the labels, at the weight that is best for it", "; ".join(parts) + ".")


def both_of(rows: pd.DataFrame, measure: str, by: str | None = None) -> str:
    """Return a measure of the right groups and of l1, in words."""
    found = [f"{NAMES[method]} {summary(of_method(rows, method), measure, by):.2f}" for method in ("groups", "l1")]
    return ", ".join(found)


def labels_first(rows: pd.DataFrame) -> Finding:
    """What is found of the groups where the weight is chosen for the labels, and the other way round."""
    groups = [f"n = {n}: {both_of(here, 'exact', by='index')}" for n, here in rows.groupby("n")]
    index = [f"n = {n}: {both_of(here, 'index', by='exact')}" for n, here in rows.groupby("n")]
    return Finding(
        "the weight that is best for the labels is not the one that is best for the groups",
        f"The planted groups and no other, at the weight best for the labels: {'; '.join(groups)}. The index of the labels, "
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
    """What wrong groups cost."""
    exact = proportion_of(
        np.concatenate([chosen(here, "exact") for _, here in of_method(rows, "wrong groups").groupby("n")])
    )
    return Finding(
        "wrong groups lose",
        f"Index of the labels, the same tables, all n: {difference(rows, 'wrong groups', 'groups', 'index'):+.2f} "
        f"against the right groups, {difference(rows, 'wrong groups', 'l1', 'index'):+.2f} against l1. Columns found, in both "
        f"sets over in either: {difference(rows, 'wrong groups', 'groups', 'overlap'):+.2f} and "
        f"{difference(rows, 'wrong groups', 'l1', 'overlap'):+.2f}. The planted groups and no other: {exact:.2f}.",
    )


def one_of_each(rows: pd.DataFrame) -> Finding:
    """Where groups are the wrong idea."""
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
        "one planted column in every group: l1 wins",
        "; ".join(parts) + f". Index of groups less that of l1: {difference(rows, 'groups', 'l1', 'index'):+.2f}.",
        "Overlap is the number of columns in both sets over that in either; a penalty that takes whole groups has at most "
        f"{1 / SIZE:g} here.",
    )


def matrix(rows: pd.DataFrame) -> Finding:
    """How much of V itself is on the planted groups."""
    parts = [f"n = {n}: {both_of(here, 'inside', by='exact')}" for n, here in rows.groupby("n")]
    return Finding(
        "share of tr V on the planted groups, at the weight that is best for finding them",
        "; ".join(parts) + ".",
        f"V spreads over other groups too, {PLANTED / GROUPS:g} being what chance gives; the direction of its labels does not.",
    )


def effective(planted: float, decay: float) -> float:
    """Return (sum |v_g|)^2 / |v|^2 of a direction."""
    return float(group_norms_of(int(planted), float(decay)).sum() ** 2)


def measured(rows: pd.DataFrame) -> Interval:
    """Return the least w^2 (s' - 1) d / (1 + a^2 + w^2) at which no two planted groups act together."""
    factors = [(effective(row.planted, row.decay) - 1.0) * row.d for row in rows.itertuples()]
    return mean_of(rows["share"].to_numpy() * np.array(factors))


def expected(rows: pd.DataFrame) -> float:
    """Return what it is for normal columns and large d."""
    row = rows.iloc[0]
    return float(row["predicted"] * row["d"] * (effective(row["planted"], row["decay"]) - 1.0))


def rows_of_law(table: pd.DataFrame) -> list[list[str]]:
    """Return what is measured and expected of each kind of exact direction, as texts."""
    kinds = ["columns", "decay", "ridge", "planted", "size", "per_d"]
    law, rows = table[table["part"] == "law"], []
    for (columns, decay, ridge, planted, size, per_d), here in law.groupby(kinds, sort=False):
        found = f"{measured(here):.2f}" if columns == "normal" else f"{measured(here).value:.0e}"
        parts = "equal" if decay == 1.0 else f"each {decay:g} of the one before"
        points = f"{per_d:g}" if per_d else f"{(here['n'] / here['d']).iloc[0]:g}"
        said = f"{expected(here):.2f}" if columns == "normal" else "0"
        rows.append([columns, parts, f"{planted:g}", f"{size:g}", points, f"{ridge:g}", found, said])
    return rows


def normal(law: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of normal columns."""
    return law[law["columns"] == "normal"]


def least_weight(law: pd.DataFrame) -> Finding:
    """The least weight that hides a direction with equal parts."""
    flat = normal(law)[normal(law)["decay"] == 1.0]
    parts = [
        f"s = {planted:g}, {size:g} a group, {per_d:g} d points"
        + (f", ridge {ridge:g}" if ridge else "")
        + f" {measured(here):.2f}"
        for (ridge, planted, size, per_d), here in flat.groupby(["ridge", "planted", "size", "per_d"])
    ]
    return Finding(
        "least w^2 (s - 1) d / (1 + ridge + w^2) at which V is block diagonal, s equal parts, normal columns: 1 is expected",
        "; ".join(parts) + ".",
        "Of the planted groups' blocks. It rises to 1 with d where s = 2, and is above 1 where the points are few for the size "
        "of a group and s.",
    )


def uneven(law: pd.DataFrame) -> Finding:
    """The same with unequal parts."""
    rows = normal(law)[normal(law)["decay"] != 1.0]
    parts = [
        f"{size:g} a group {measured(here):.2f}, expected {expected(here):.2f}" for size, here in rows.groupby("size")
    ]
    decay = rows["decay"].iloc[0] if len(rows) else 0.0
    return Finding(
        f"the same with s' = (sum |v_g|)^2 / |v|^2 for parts each {decay:g} of the one before: more than 1",
        "; ".join(parts) + "." if parts else "0 tables.",
        "The two largest parts act together for longest.",
    )


def sides(law: pd.DataFrame) -> Finding:
    """Whether the components are those that the weight says."""
    rows = normal(law)
    joined = proportion_of((rows["joined"] < rows["planted"]).to_numpy())
    separate = proportion_of((rows["separate"] == rows["planted"]).to_numpy())
    return Finding(
        "the weight is found from one solution; components on both sides of it",
        f"Some planted groups act together at {FACTOR_BELOW:g} of it: {joined:.2f}. None, proved, at {FACTOR_ABOVE:g} of it: "
        f"{separate:.2f}. {len(rows)} tables.",
    )


def two_values(law: pd.DataFrame) -> Finding:
    """Where all columns have two values."""
    rows = law[law["columns"] == "two values"]
    separate = int((rows["separate"] == rows["planted"]).sum())
    return Finding(
        "columns of -1 and 1, all orthogonal: V is block diagonal at every weight",
        f"At {SMALL_FACTOR:g} of the weight for normal columns no two planted groups act together, proved, in {separate} of {len(rows)} "
        f"tables; the largest w^2 (s - 1) d / (1 + w^2) is {(rows['share'] / rows['predicted']).max():.0e}.",
        "All points are equally far from the mean, so that V = tI leaves nothing to gain.",
    )
