"""Proposition 2 and the remark of section 3: claims on sparse directions."""

import pandas as pd

from experiments.harness.claims import Claim, Finding, judge
from experiments.harness.intervals import Interval, percent, proportion_of
from experiments.theory.claims_balanced import MIN_INSTANCES, RULE_OF_PROPORTION
from experiments.theory.one_sparse import FEW_POINTS
from experiments.theory.sparse_direction import GRID

RANK_ONE = 1e-2  # eigenvalue ratio of Y


def proposition_a(table: pd.DataFrame) -> Claim:
    """Uniqueness at the proposition's own number of points."""
    unique, solved = proportion_of(table["unique_a"]), proportion_of(solved_at(table, "a"))
    return Claim(
        "prop2-a",
        f"at this n (even, {table['n_a'].min()} to {table['n_a'].max()}; d = {table['d'].min()} to "
        f"{table['d'].max()}), noise bounded by R = 0.9 or 1: V* is the unique solution in {percent(unique)} of "
        f"{len(table)} instances, and low_rank without a working set, lambda = 1/sqrt(n), returns rank one and the "
        f"labels in {percent(solved)}.",
        judge(min(unique.low, solved.low) >= 0.95, unique.low >= 0.5, tested=len(table) >= MIN_INSTANCES),
        "proportion of instances with a unique solution, and of those for which the solver returns it: "
        f"{RULE_OF_PROPORTION}",
    )


def proposition_b(table: pd.DataFrame) -> Claim:
    """Principal eigenvector at the proposition's own number of points."""
    unique, right = proportion_of(table["unique_b"]), proportion_of(table["error_b"].to_numpy() == 0.0)
    return Claim(
        "prop2-b",
        f"at this n (even, {table['n_b'].min()} to {table['n_b'].max()}): V* is the unique solution (a stronger "
        f"property) in {percent(unique)} of {len(table)} instances; low_rank without a working set gives the labels in "
        f"{percent(right)}.",
        judge(min(unique.low, right.low) >= 0.95, right.low >= 0.5, tested=len(table) >= MIN_INSTANCES),
        f"proportion of instances with a unique solution, and of those with the right labels: {RULE_OF_PROPORTION}",
    )


def solved_at(table: pd.DataFrame, name: str) -> pd.Series:
    """Return a mask of the instances for which the solver returned rank one and the labels."""
    return (table[f"error_{name}"] == 0.0) & (table[f"eigenvalue_ratio_{name}"] < RANK_ONE)


def few_points(table: pd.DataFrame) -> Finding:
    """Few points suffice if |z| <= 1."""
    inside, edge = table[table["R"] < 1], table[table["R"] == 1]
    return Finding(
        "Proposition 2 with its own noise and few points",
        "V* is the unique solution "
        + ", ".join(
            f"at n = {n} in {percent(proportion_of(inside[f'unique_{n}']))} for R = 0.9 and in "
            f"{percent(proportion_of(edge[f'unique_{n}']))} for R = 1"
            for n in FEW_POINTS
        )
        + ". 2-means on each column recovers the labels "
        + ", ".join(
            f"at n = {n} in {percent(proportion_of(table[f'kmeans_{n}'].to_numpy() == 0.0))}" for n in FEW_POINTS
        )
        + f", and at the proposition's own n in {percent(proportion_of(table['kmeans_b'].to_numpy() == 0.0))}.",
        "If all |z| < 1, the proof of the lemma on v* v*' gives uniqueness at once, as the multiplier of V >= 0 "
        "is then positive on every column except the first; the n of the proposition, and any growth with d, are not "
        "needed. With m = 1, as in the appendix, R <= 1 leaves only Rademacher noise.",
    )


def recovery_of(table: pd.DataFrame, method: str) -> tuple[float, Interval]:
    """Return the weight at which a method recovers most often, and its recovery rate there."""
    proportions = {lam: proportion_of(table[f"{method}_{k}"]) for k, lam in enumerate(GRID)}
    lam = max(proportions, key=lambda key: proportions[key].value)
    return lam, proportions[lam]


def direction_alone(table: pd.DataFrame) -> Claim:
    """Sparse regulariser of v alone."""
    lam, alone = recovery_of(table, "alone")
    relaxed_lam, relaxed = recovery_of(table, "relaxed")
    k, edge = GRID.index(lam), " (the smallest of the grid)" if relaxed_lam == GRID[0] else ""
    nonzeros, d = table[f"nonzeros_{k}"].median(), int(table["d"].max())
    missed = proportion_of(table.loc[table[f"alone_{k}"] == 0, f"missed_{k}"])
    return Claim(
        "sparse-direction-alone",
        "alternating minimisation with lambda |v|_1, best objective of ten random starts, recovers the labels in "
        f"{percent(alone)} of {len(table)} noiseless instances (d = {d}, l = 1, 2, 4, n = {table['n'].min()} to "
        f"{table['n'].max()}) at its best weight {lam:g}, with a median of {nonzeros:g} nonzero entries; the "
        f"relaxation with Gamma in {percent(relaxed)} at its own, {relaxed_lam:g}{edge}. If the former fails, the "
        f"planted labels have a lower objective in {percent(missed)}.",
        judge(
            alone.high < relaxed.low and nonzeros <= d / 2,
            alone.value < relaxed.value,
            tested=relaxed.value > 0 and len(table) >= MIN_INSTANCES,
        ),
        "each at the weight of a common grid at which it recovers most: agrees if the intervals are disjoint, the "
        "relaxation's is above, and the median number of nonzeros of the direction is at most d/2; in part if only the "
        "proportions are in this order; not tested if the relaxation never recovers or with fewer than 75 instances.",
    )
