"""Passages of docs/paper/paper.md that have numbers, from the tables in figures/; `make reproduction` writes them."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from experiments.benchmark.findings import ONE_OF_CVXPY, OURS, ahead, reached
from experiments.methods import GOALS
from experiments.optimal.findings import summarize_real

PAPER = Path("docs/paper/paper.md")


def passage_of_benchmark(table: pd.DataFrame) -> str:
    """Return how many instances `low_rank` and CVXPY's solvers solve, and the ratio of their times."""
    solved, goal = reached(table), GOALS[0]
    column = f"to {goal:g}"
    first, *others = (
        f"{str(name).removeprefix('CVXPY + ')} solves {row[column]:.0f} of {row['run']:.0f}"
        for name, row in solved.iterrows()
        if str(name).startswith("CVXPY + ")
    )
    ratio = ahead(table).loc[(ONE_OF_CVXPY, goal)]
    ours = solved.loc[OURS]
    return (
        f"On one thread, `low_rank` reaches a certified relative gap of {goal:g} on {ours[column]:.0f} of "
        f"{ours['run']:.0f} instances. Through CVXPY, of the instances that fit in memory, "
        f"{', '.join([first, *others])}. On the "
        f"{ratio['both']:.0f} that both solve, the faster CVXPY solver takes {ratio['median']:.3g} times as long in "
        f"the median ({ratio['smallest']:.3g} to {ratio['largest']:.3g}).\n"
    )


def passage_of_optimal(table: pd.DataFrame) -> str:
    """Return on how many problems from real data the optimal labels are certified."""
    return f"`optimal_labels` certified {summarize_real(table)}.\n"


def passage_of_stress(table: pd.DataFrame) -> str:
    """Return how many bounds on adversarial instances were compared with exact values, and how many were wrong."""
    total = table[["instances", "lower", "upper", "violations"]].sum()
    return (
        f"On {total['instances']} small adversarial instances, {total['lower'] + total['upper']} certified bounds were "
        f"compared with values in 60-digit arithmetic: {total['violations']} were on the wrong side.\n"
    )


def passage_of_validation(table: pd.DataFrame) -> str:
    """Return on how many instances the fast solvers agree with the reference models."""
    return (
        f"On {table['agrees'].sum()} of {len(table)} random instances, the optimal values of the reference models lie "
        "within the certified bounds of both fast solvers.\n"
    )


PASSAGES: dict[str, Callable[[pd.DataFrame], str]] = {
    "benchmark": passage_of_benchmark,
    "optimal": passage_of_optimal,
    "stress": passage_of_stress,
    "validation": passage_of_validation,
}
