"""Findings on the formulations that the paper proves to be equivalent."""

import pandas as pd

from experiments.harness.claims import Finding
from experiments.validate.cells import ALPHA_SLACK, SLACK


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings on the paper's equalities, each checked against certified bounds."""
    return [one_value(table), normalized(table), constrained(table)]


def one_value(table: pd.DataFrame) -> Finding:
    """Label space, lifted and direction space."""
    apart = int((table["violation"] > SLACK).sum())
    return Finding(
        "Eq. (8), (11) and (15): the penalised relaxation, the lifted one and the one in V have the same value",
        f"{len(table)} instances, each solved by `low_rank`, `fista` and CVXPY: in {apart}, some certified bounds "
        f"are inconsistent; the largest distance between two intervals is {max(table['violation'].max(), 0.0):.1e}.",
    )


def normalized(table: pd.DataFrame) -> Finding:
    """Normalised form."""
    solved = table.get("normalized value", pd.Series(dtype=float)).notna()
    apart = int((table.loc[solved, "normalized agrees"] == 0).sum())
    return Finding(
        "Eq. (21): the value of the normalised form is -sqrt(1 - that of (15)) without a sparse penalty, and not less with one",
        f"{solved.sum()} instances solved: in {apart} the bounds are inconsistent.",
    )


def constrained(table: pd.DataFrame) -> Finding:
    """Fixed imbalance."""
    solved = table.get("constrained_alpha value", pd.Series(dtype=float)).notna()
    apart = int((table.loc[solved, "alpha agrees"] == 0).sum())
    return Finding(
        "Eq. (7) and (8): at the imbalance alpha of a penalised solution, the constrained value + nu alpha is the penalised value",
        f"{solved.sum()} instances solved: in {apart} the bounds are further apart than {ALPHA_SLACK:g}.",
    )
