"""What the experiments say, in three sentences for the README, each from a table in figures/."""

from collections.abc import Callable

import pandas as pd

from experiments.harness.boundary import find_boundary, fit_power
from experiments.optimal.findings import nearer, summarize_real
from experiments.sparse_noise.cells import COMPONENT, WEIGHTS
from experiments.sparse_noise.findings import AT, Design, boundaries_of, points_at
from experiments.theory.unique_solution import statistical_dimension


def sentence_on_points(table: pd.DataFrame) -> str:
    """Return how many points the relaxation without a penalty needs."""
    exponent = fit_power(find_boundary(table[table["panel"] == "affine"], "rank_one")).exponent
    return (
        "- **Without a penalty, the relaxation recovers planted labels from about d + d(d - 1)/4 Gaussian points.** "
        f"The fitted power of d is {exponent.value:.2f} (95 % interval {exponent.low:.2f} to {exponent.high:.2f}).\n"
    )


def sentence_on_sparsity(table: pd.DataFrame) -> str:
    """Return when the l1 penalty needs fewer points, and how many."""
    found, (papers, other) = boundaries_of(table), WEIGHTS

    def needed(method: str, variance: float) -> str:
        return points_at(found[Design(method, 4, "flat", "standardised", variance)])

    return (
        "- **Sparsity helps if the noise varies less than the labels.** For a direction with four equal entries among "
        f"{AT} standardised columns, λ = 1/√n needs {needed(papers, 0.333)} points at a noise variance of 1/3 and "
        f"{needed(papers, 0.5)} at 1/2 (the first principal component: {needed(COMPONENT, 0.333)} and "
        f"{needed(COMPONENT, 0.5)}; no penalty: {statistical_dimension(float(AT)):.0f}). At unit variance it needs "
        f"{needed(papers, 1.0)} and λ = {other} needs {needed(other, 1.0)}: 1/√n is then the wrong weight. With "
        "columns as they are, choosing those of largest variance does nearly as well.\n"
    )


def sentence_on_optima(table: pd.DataFrame) -> str:
    """Return on how many real problems the labels are proved optimal, and whether these are closer to the classes."""
    solved = table[table["solved"] == 1]
    counts, seconds = nearer(solved).loc["real"], solved.loc[solved["part"] == "real", "seconds"].median()
    closer = round(counts["share"].value * counts["instances"])
    return (
        "- **On real tables, optimisation is not the obstacle.** The optimal labels are proved on "
        f"{summarize_real(table)}. The median time is {seconds:.1f} s. Where they differ from those that rounding the "
        "relaxation gives, they are closer to "
        f"the known classes on {closer} of {counts['instances']}.\n"
    )


PASSAGES: dict[str, Callable[[pd.DataFrame], str]] = {
    "phase_transition": sentence_on_points,
    "sparse_noise": sentence_on_sparsity,
    "optimal": sentence_on_optima,
}
