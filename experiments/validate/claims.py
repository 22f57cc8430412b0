"""What the battery says about the formulations that the paper proves to have one value."""

import pandas as pd

from experiments.harness.claims import Finding
from experiments.validate.cells import ALPHA_SLACK, LARGEST_ERROR, SLACK
from experiments.validate.check import summarize_errors


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the paper's equalities, each held against proved brackets."""
    return [one_value(table), normalized(table), constrained(table), errors(table)]


def one_value(table: pd.DataFrame) -> Finding:
    """The label space, the lifted and the direction space."""
    apart = int((table["violation"] > SLACK).sum())
    return Finding(
        "Eq. (8), (11) and (15): the penalised relaxation, the lifted one and the one in V have the same value",
        f"{len(table)} instances, each solved by `low_rank`, `fista` and CVXPY: in {apart} some two proved brackets do "
        f"not meet; the largest distance between two is {max(table['violation'].max(), 0.0):.1e}.",
    )


def normalized(table: pd.DataFrame) -> Finding:
    """The normalised form."""
    solved = table.get("normalized value", pd.Series(dtype=float)).notna()
    apart = int((table.loc[solved, "normalized agrees"] == 0).sum())
    return Finding(
        "Eq. (21): the value of the normalised form is -sqrt(1 - that of (15)) without a sparse penalty, and not below with one",
        f"{solved.sum()} instances solved: in {apart} the brackets do not meet.",
    )


def constrained(table: pd.DataFrame) -> Finding:
    """The imbalance fixed."""
    solved = table.get("constrained_alpha value", pd.Series(dtype=float)).notna()
    apart = int((table.loc[solved, "alpha agrees"] == 0).sum())
    return Finding(
        "Eq. (7) and (8): at the imbalance alpha of a penalised solution, the constrained value + nu alpha is the penalised value",
        f"{solved.sum()} instances solved: in {apart} the brackets lie further apart than {ALPHA_SLACK:g}.",
    )


def errors(table: pd.DataFrame) -> Finding:
    """The DIMACS errors."""
    words, lines = [], summarize_errors(table)
    for solver, part in lines.groupby("solver"):
        words.append(
            f"{solver}: {part['above'].sum()} of {part['points'].sum()} points with an error above "
            f"{LARGEST_ERROR[str(solver)]:g}, the largest {part.filter(like='err').to_numpy().max():.1e}"
        )
    return Finding("DIMACS errors of the points of CVXPY's solvers", f"{'; '.join(words)}.")
