"""Proposition 1 and Appendix D: claims on balanced clusters and their noise columns."""

import numpy as np
import pandas as pd

from experiments.harness.claims import Claim, Finding, judge
from experiments.harness.intervals import mean_of, median_of, percent, proportion_of
from experiments.theory.noise_columns import small_variance as largest_small
from experiments.theory.spectrum import DELTA, FAILURE
from experiments.theory.unique_solution import UNIQUE, statistical_dimension

ROUNDING = 1e-9
MIN_INSTANCES = 75  # with fewer instances, the interval of a proportion of 1 reaches below 95 %
RULE_OF_PROPORTION = (
    "agrees if the lower end of the interval is at least 95 %, in part if it is at least 50 %; the ratio of the number "
    "of points to the number needed is reported but not judged. Not tested with fewer than 75 instances."
)
EXCEPTIONS = 0.05


def of_the_proposition(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that satisfy the proposition's own assumption on m^2."""
    least = [largest_small(int(d), float(beta)) for d, beta in zip(table["d"], table["beta"], strict=True)]
    return table[(table["small"] == 0) & (table["variance"] ** 2 >= least)]


def slack_of(asked: pd.Series, needed: pd.Series) -> str:
    """Format the ratio of two numbers of points: median and range."""
    slack = asked / needed
    return f"this n is {slack.median():.0f} times the number needed (median; {slack.min():.1f} to {slack.max():.0f})"


def proposition_a(table: pd.DataFrame) -> Claim:
    """Uniqueness at the proposition's own number of points."""
    table = of_the_proposition(table)
    proportion = proportion_of(table["unique"])
    return Claim(
        "prop1-a",
        f"at this n, with R as printed, {percent(proportion)} of {len(table)} instances (bounded laws, d = "
        f"{table['d'].min()} to {table['d'].max()}) have a unique solution; "
        f"{slack_of(table['n_paper'], table['n_measured'])}.",
        judge(proportion.low >= 0.95, proportion.low >= 0.5, tested=len(table) >= MIN_INSTANCES),
        f"proportion of instances with a unique solution at the proposition's n: {RULE_OF_PROPORTION}",
    )


def proposition_b(table: pd.DataFrame) -> Claim:
    """Principal eigenvector of any solution, at the proposition's own number of points."""
    table = of_the_proposition(table)
    right, unique = proportion_of(table["right_b"]), proportion_of(table["unique_b"])
    return Claim(
        "prop1-b",
        f"at this n, with R as printed, the statement holds in {percent(right)} of {len(table)} instances: the "
        f"solution is unique in {percent(unique)}, and otherwise the one with the smallest v'Vv was taken; "
        f"{slack_of(table['n_paper_b'], table['n_measured'])}.",
        judge(right.low >= 0.95, right.low >= 0.5, tested=len(table) >= MIN_INSTANCES),
        "proportion of instances in which the solution is unique or the principal eigenvector of the solution with the "
        f"smallest v'Vv splits the points as y: {RULE_OF_PROPORTION}",
    )


def kurtosis(table: pd.DataFrame) -> Claim:
    """Noise columns that are themselves clusterings."""
    exact, near = table[table["beta"] == 1.0], table[table["beta"] == 1.1]
    near = near[near["n"] == table["n"].max()]
    unique, control = proportion_of(exact["unique"]), proportion_of(near["unique"])
    return Claim(
        "prop1-kurtosis",
        f"d = {exact['d'].iloc[0]}, n up to {exact['n'].max()}: yy' is the unique solution in {percent(unique)} of "
        f"{len(exact)} instances at beta = 1, and at beta = 1.1 in {percent(control)} of {len(near)} at n = "
        f"{table['n'].max()}.",
        judge(
            unique.high <= EXCEPTIONS and control.low > 0.5,
            unique.high <= 0.5 and control.low > unique.high,
            tested=len(near) > 0 and len(exact) >= MIN_INSTANCES,
        ),
        "agrees if at beta = 1 the proportion with a unique solution is at most 5 % at its upper end, over all n, and "
        "at beta = 1.1 more than 50 % at its lower end at the largest n; in part if the former is at most 50 % and "
        "below the latter.",
    )


def spiked(sizes: pd.DataFrame, table: pd.DataFrame) -> Claim:
    """Non-unique solutions with the right principal eigenvector."""
    sizes = of_the_proposition(sizes)
    several = proportion_of(1 - sizes["unique_b"])
    others = sizes[sizes["unique_b"] == 0]
    right, ratio = proportion_of(others["right_b"]), median_of(others.get("ratio_b", []))
    of_others = f"of these, the principal eigenvector is right in {percent(right)}, and the ratio is {ratio:.2f}; "
    return Claim(
        "prop1-spiked",
        f"at the n of (b) {percent(several)} of {len(sizes)} instances have several solutions; "
        f"{of_others if len(others) else ''}{with_fewer_points(table)}",
        judge(
            several.low >= 0.5 and right.low >= 0.95 and ratio.high < 0.5,
            right.low >= 0.5,
            tested=len(others) >= MIN_INSTANCES,
        ),
        "judged on the instances with several solutions at their own n of (b), by the one with the smallest v'Vv: "
        "agrees if at least half of the instances have several, the principal eigenvector is right in 95 % of them "
        "(lower ends), and the ratio of the second to the first eigenvalue of Y is closer to 0 (rank one) than to 1 "
        "(upper end of the median); in part if the eigenvector is right in half; not tested with fewer than 75.",
        "The n of (b) is at least 4 d^2, as R^2 >= beta m for every law, and about d + d(d-1)/4 Gaussian points "
        "already have a unique solution. So the solution is unique at this n, which is stronger than the statement.",
    )


def with_fewer_points(table: pd.DataFrame) -> str:
    """Describe the solutions with too few points for uniqueness; the n of (b) is far larger."""
    needed = statistical_dimension(float(table["d"].iloc[0]))
    others = table[(table["unique"] == 0) & (table["beta"] > 1) & (table["n"] >= needed)]
    if others.empty:
        return f"with fewer points, {needed:g} or more, no instance has several."
    return (
        f"with fewer points (not judged), {len(others)} instances have several (all laws with beta > 1, d = "
        f"{table['d'].iloc[0]}, n from {needed:g} to {others['n'].max()}): there the principal eigenvector of an "
        f"interior point's solution is right in {percent(proportion_of(others['right_interior']))}, that of low_rank's "
        f"in {percent(proportion_of(others['right_low_rank']))}, and the second eigenvalue of Y is "
        f"{median_of(others['eigenvalue_ratio']):.2f} of the first (median)."
    )


def small_variance(table: pd.DataFrame) -> Claim:
    """Uniqueness for noise of small variance."""
    table = table[table["small"] == 1]
    proportion = proportion_of(table["unique"])
    return Claim(
        "prop1-small-variance",
        "m at 0.9 of its largest value, kurtosis "
        f"{', '.join(f'{beta:g}' for beta in sorted(table['beta'].unique()))}: at this n {percent(proportion)} of "
        f"{len(table)} instances have a unique solution; {slack_of(table['n_paper'], table['n_measured'])}.",
        judge(proportion.low >= 0.95, proportion.low >= 0.5, tested=len(table) >= MIN_INSTANCES),
        f"proportion of instances with a unique solution at this n: {RULE_OF_PROPORTION}",
    )


def eigenvalues(table: pd.DataFrame) -> Claim:
    """Closed forms of the spectrum."""
    simple = table.dropna(subset=["mu_2_paper"])
    simple = simple[simple["beta"] > 1]
    error = max((table["mu_1"] - table["mu_1_paper"]).abs().max(), (simple["mu_2"] - simple["mu_2_paper"]).abs().max())
    all_of_them = table["largest_error"].max()
    below = int((simple["mu_1"] < simple["mu_1_bound"] - ROUNDING).sum())
    ratio = simple["mu_1_bound"] / simple["mu_1"]
    return Claim(
        "spectrum",
        f"exact expectations over a three-point law, {len(table)} triples (d, m, beta): largest difference of any "
        f"eigenvalue {all_of_them:.0e}, of mu_1 and mu_2 {error:.0e}; mu_1 below its bound in {below} cases; ratio of "
        f"the bound to mu_1 {ratio.min():.2f} to {ratio.max():.2f}.",
        judge(all_of_them < ROUNDING and error < ROUNDING and below == 0, all_of_them < ROUNDING or error < ROUNDING),
        "agrees if all differences are below 1e-9 and the bound holds in every case; in part if only the list of "
        "eigenvalues or only mu_1 and mu_2 are right.",
    )


def second_entry(table: pd.DataFrame) -> Claim:
    """Bound on c_min."""
    table = table.dropna(subset=["c_min"])
    positive = (table["d"] + table["beta"] - 2) * table["m"] ** 2 > 1
    holds = table["c_min"].abs() <= table["c_min_bound"] * (1 + ROUNDING)
    return Claim(
        "c-min",
        f"holds in {(holds & positive).sum()} of {positive.sum()} cases with (d + beta - 2) m^2 > 1 and in "
        f"{(holds & ~positive).sum()} of {(~positive).sum()} of the others, where |c_min| reaches "
        f"{table.loc[~positive, 'c_min'].abs().max():.1f}; its closed form is accurate to "
        f"{(table['c_min'] - table['c_min_paper']).abs().max():.0e}.",
        judge(bool(holds.all()), bool(holds[positive].all()), tested=bool(positive.any() and (~positive).any())),
        "agrees if the bound holds in every case, in part if in every case with (d + beta - 2) m^2 > 1.",
        "The convexity step of the proof needs (d + beta - 2) m^2 > 1.",
    )


def hessian(table: pd.DataFrame) -> Claim:
    """Concentration of the Hessian."""
    lost = proportion_of(table["ratio_chernoff"].to_numpy() < 1 - DELTA)
    enough = proportion_of(table["ratio_a"].to_numpy() >= 1 - DELTA)
    off = table["ratio_b"].dropna().to_numpy()
    at_b = proportion_of(off >= 1 - DELTA)
    return Claim(
        "hessian",
        f"delta = {DELTA:g}. At the n for which the bound as printed allows {100 * FAILURE:.0f} % of failures, there "
        f"are {percent(lost)} of {len(table)} (smallest ratio {table['ratio_chernoff'].min():.2f}). At the n of "
        f"Proposition 1 (a) the smallest eigenvalue is at least half of mu_1 in {percent(enough)} (ratio "
        f"{mean_of(table['ratio_a']):.2f}), at the n of (b), off Delta_min, half of mu_2 in {percent(at_b)} (ratio "
        f"{mean_of(off):.2f}).",
        judge(
            lost.high <= FAILURE and enough.low >= 0.95 and at_b.low >= 0.95,
            lost.high <= FAILURE,
            tested=len(off) >= MIN_INSTANCES,
        ),
        "agrees if at the bound's n the upper end of the failures is at most what the bound allows, and at the n of "
        "(a) and of (b) the lower end of the successes at least 95 %; in part if only the former; not tested with "
        "fewer than 75 instances.",
    )


def one_dimension(table: pd.DataFrame) -> Claim:
    """Noise on one-dimensional labels."""
    clear = table[table["ambiguous"] == 0]
    exceptions = int(((clear["agree"] != clear["optimal"]) | (clear["agree"] != clear["recovered"])).sum())
    least = min(int(clear["agree"].sum()), int((1 - clear["agree"]).sum()))
    return Claim(
        "one-dimension",
        f"Eq. (8) by an interior point, {len(clear)} instances ({len(table) - len(clear)} undecided): the signs "
        f"agree {clear['agree'].sum()} times; yy' is optimal in exactly these cases with "
        f"{(clear['agree'] != clear['optimal']).sum()} exceptions, the labels are recovered in exactly these with "
        f"{(clear['agree'] != clear['recovered']).sum()}.",
        judge(exceptions == 0, exceptions <= EXCEPTIONS * len(clear), tested=least >= 5),
        "agrees without any exception, in part with at most 5 %; not tested unless both cases occur five times.",
    )


def decision(table: pd.DataFrame) -> Finding:
    """Margin with which uniqueness is decided."""
    values = table["least_change"]
    zero, positive = values[values <= UNIQUE], values[values > UNIQUE]
    return Finding(
        "Margin of the decision on uniqueness",
        f"the smallest mean square of b'Delta b over the feasible directions is 0 or positive, and {UNIQUE:.0e} "
        f"separates the two cases: of {len(values)} values, the largest taken as 0 is {zero.max():.0e} and the "
        f"smallest taken as positive {positive.min():.0e}.",
    )


def laws(table: pd.DataFrame) -> Finding:
    """Smallest n at which half of the instances are unique, for each law."""
    rate = table.groupby(["law", "n"])["unique"].mean().unstack()
    half = {str(law): row.index[row.to_numpy() >= 0.5] for law, row in rate.iterrows()}
    told = ", ".join(f"{law} {n.min():g}" if len(n) else f"{law} never" for law, n in half.items())
    needed = statistical_dimension(float(table["d"].iloc[0]))
    return Finding(
        "Dependence of uniqueness on the noise distribution",
        f"d = {table['d'].iloc[0]}: at least half of the instances have a unique solution from n = {told}; the "
        f"statistical dimension d + d(d-1)/4 is {needed:g}.",
        "E T_x depends on the law through m and beta alone; the number of points needed depends on further properties.",
    )


def threshold(table: pd.DataFrame) -> Finding:
    """Number of points compared with the statistical dimension."""
    ratio = mean_of(table["n_measured"] / table["expected"])
    dimensions = ", ".join(map(str, np.unique(table["d"])))
    return Finding(
        "Balanced clusters, Gaussian noise: number of points from which yy' is the unique solution",
        f"relative to d + d(d-1)/4 it is {ratio:.2f} on average (d = {dimensions}, {len(table)} instances).",
    )
