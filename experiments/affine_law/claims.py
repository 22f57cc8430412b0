"""Findings on the affine law: the constant of the threshold, with nothing fitted."""

import numpy as np
import pandas as pd

from experiments.affine_law.cells import FREEDOM, LAWS
from experiments.harness.beyond import ruled
from experiments.harness.claims import Claim, Finding, judge
from experiments.harness.intervals import Interval, median_of

TITLE = "Without a penalty: a unique solution from d + d(d-1)/4 points"
ABOUT = (
    "Noiseless labels and d - 1 columns of independent noise of variance one. The smallest number of points with a "
    "unique solution is bracketed by bisection on one stream of points per replication (30 replications); the median "
    "over them is the number at which half of the instances have a unique solution. Nothing is fitted."
)
FROM_D = 32
CLOSE = (0.97, 1.03)


def claims(table: pd.DataFrame) -> list[Claim | Finding]:
    """Return the findings on the law and its range of validity."""
    return [law(table), limit(table), not_universal(table)]


def ratios(table: pd.DataFrame, law: str) -> dict[int, Interval]:
    """Return the median of n over d + d(d-1)/4 by dimension."""
    part = table[table["law"] == law]
    ratio = (part["other"] + part["only"]) / 2 / part["expected"]
    return {int(str(d)): median_of(group.to_numpy()) for d, group in ratio.groupby(part["d"])}


def words(found: dict[int, Interval]) -> str:
    """Format the ratios."""
    return ", ".join(f"{ratio:.3f} at d = {d}" for d, ratio in found.items())


def law(table: pd.DataFrame) -> Finding:
    """Gaussian noise."""
    found = ratios(table, "gaussian")
    wide = [ratio for d, ratio in found.items() if d >= FROM_D]
    return ruled(
        "with Gaussian noise, half of the instances have a unique solution at n = d + d(d-1)/4",
        f"n over d + d(d-1)/4: {words(found)}.",
        judge(
            all(ratio.within(*CLOSE) for ratio in wide),
            all(ratio.meets(*CLOSE) for ratio in wide),
            tested=len(wide) >= 2,
        ),
        f"agrees if the interval lies within {CLOSE[0]:g} to {CLOSE[1]:g} at every d from {FROM_D} on, in part if it "
        "overlaps this range.",
    )


def limit(table: pd.DataFrame) -> Finding:
    """The constant of ellipsoid fitting."""
    found = ratios(table, "gaussian")
    if not found:
        return Finding("n over d^2 against 1/4", "not measured (0 dimensions).")
    d = max(found)
    ratio = Interval(*(x * (d + d * (d - 1) / 4) / d**2 for x in found[d]))
    return Finding(
        "n over d^2 against 1/4, the threshold of ellipsoid fitting",
        f"{ratio:.3f} at d = {d}; d + d(d-1)/4 is {1 / 4 + 3 / (4 * d):.3f} d^2 there.",
        "Maillard and Kunisky (2024) predict that the threshold of ellipsoid fitting is 1/4; Maillard and Bandeira "
        "(2023) prove an approximate version.",
    )


def not_universal(table: pd.DataFrame) -> Finding:
    """Other noise."""
    names = {"uniform": "uniform noise", "student": f"Student's law with {FREEDOM} degrees of freedom"}
    found = {law: ratios(table, law) for law in LAWS[1:]}
    ends = [list(found[law].values())[-1] for law in names if found[law]]
    apart = [not end.meets(*CLOSE) for end in ends]
    return ruled(
        "the law depends on the noise distribution",
        "; ".join(f"{names[law]}: {words(found[law])}" for law in names) + ".",
        judge(any(apart), bool(np.any([end.value < CLOSE[0] for end in ends])), tested=len(ends) == len(names)),
        f"agrees if for one of the distributions the interval at the largest d lies outside {CLOSE[0]:g} to {CLOSE[1]:g}.",
        "n over d + d(d-1)/4.",
    )
