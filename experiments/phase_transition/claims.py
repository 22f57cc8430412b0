"""Claims and findings on Figure 1."""

import numpy as np
import pandas as pd

from experiments.harness.boundary import Boundary, PowerLaw, find_boundary, fit_power
from experiments.harness.claims import Claim, Finding, judge
from experiments.harness.intervals import Interval, interval_of, mean_of, proportion_of
from experiments.phase_transition.cells import INTERIOR, INTERIOR_D, LOOSE_TOL, PANELS
from experiments.theory.unique_solution import statistical_dimension

TITLE = "Figure 1: phase transitions"
ABOUT = (
    "Balanced, noiseless, unit-variance columns, even n, nested replications: four without a penalty (twelve for d up to 20), 24 in "
    "the sparse panels. The weight of |V|_1 is 1/sqrt(n), the paper's lambda read literally, or 1/n, c_i = 1/sqrt(n) in Gamma. Flat "
    "directions have s = |v|_1^2/|v|_2^2 = 4, rotated ones s between 1 and 4. Maps and boundaries are on common axes; white cells "
    "were not measured. d + d(d-1)/4 is the statistical dimension of the descent cone at a rank-one matrix (Amelunxen, Lotz, McCoy "
    "and Tropp 2014), d^2/4 the threshold of ellipsoid fitting (Saunderson, Chandrasekaran, Parrilo and Willsky 2012; Kane and "
    "Diakonikolas 2023; Bandeira, Maillard, Mendelson and Paquette 2023)."
)
RECOVERED = 0.5  # clustering error below which an instance counts as recovered
LOW = 0.1  # clustering error that counts as low
THRESHOLDS = (1e-3, 1e-1)  # eigenvalue ratios below which one may call a solution rank one
READINGS = {"1/sqrt(n)": "weight 1/sqrt(n)", "1/n": "weight 1/n"}


def claims(table: pd.DataFrame) -> list[Claim | Finding]:
    """Return the claims on the phase transitions, and further findings."""
    table = with_recovery(table)
    panel = dict(iter(table.groupby("panel")))
    affine, interior = panel["affine"], by_interior_point(table)
    return [
        affine_rank(affine),
        sparse_rank(panel["1-sparse, 1/sqrt(n)"]),
        spiked(panel["affine"]),
        affine_error(affine, interior),
        sparse_error(panel),
        same_scaling(affine, interior),
        seldom_both(affine, interior),
        always_rank_one(panel["1-sparse, 1/sqrt(n)"]),
        constants(affine),
        points_of_the_face(affine, panel[INTERIOR]),
        proved_diagonal(panel),
        error_of_directions(panel),
    ]


def with_recovery(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with a column that marks recovery of the labels."""
    return table.assign(recovered=(table["error"] < RECOVERED).astype(int))


def fit_of(table: pd.DataFrame, column: str) -> PowerLaw:
    """Return the power law of a boundary."""
    return fit_power(find_boundary(table, column))


def say(fit: PowerLaw) -> str:
    """Format a fitted exponent."""
    if not np.isfinite(fit.exponent.value):
        return f"not determined ({fit.dimensions} dimensions with a boundary in the grid)"
    return f"{fit.exponent:.2f} from {fit.dimensions} dimensions"


def by_interior_point(table: pd.DataFrame) -> pd.DataFrame:
    """Return the affine cells up to `INTERIOR_D`, with the interior-point solution where the solution may not be unique."""
    mine, affine = table[table["panel"] == INTERIOR], table[table["panel"] == "affine"]
    keys = ["n", "d", "replication"]
    small = affine[affine["d"] <= INTERIOR_D]
    others = small[~small.set_index(keys).index.isin(mine.set_index(keys).index)]
    return pd.concat([mine, others]).sort_values(keys)


def affine_rank(table: pd.DataFrame) -> Claim:
    """Rank one, affine invariant."""
    fit = fit_of(table, "rank_one")
    return Claim(
        "fig1-rank-affine",
        f"the n at which half of the solutions are of rank one grows as d to the power {say(fit)}.",
        judge(fit.exponent.within(1.5, 2.2), fit.exponent.high < 3.0, tested=np.isfinite(fit.exponent.high)),
        "agrees if the interval of the exponent lies within 1.5 to 2.2, in part if it lies below 3.",
        "d + d(d-1)/4 has a linear term, which lowers the exponent at these d.",
    )


def affine_error(table: pd.DataFrame, interior: pd.DataFrame) -> Claim:
    """Error, affine invariant, by both solvers."""
    fit = fit_of(table, "recovered")
    other = ratio_law(find_boundary(interior, "recovered"), find_boundary(table, "recovered"))
    tested = np.isfinite([fit.exponent.high, other.exponent.high]).all()
    return Claim(
        "fig1-error-affine",
        "the n at which the error crosses 1/2 in half of the cases grows as d to the power "
        f"{say(fit)}; the ratio of the interior-point boundary to it grows as d to the power {say(other)}.",
        judge(
            fit.exponent.within(1.5, 2.2) and other.exponent.within(-0.25, 0.25),
            fit.exponent.high < 3.0,
            tested=bool(tested),
        ),
        "agrees if the interval of the exponent lies within 1.5 to 2.2 and that of the ratio of the interior-point "
        f"boundary to it, for d up to {INTERIOR_D}, within -0.25 to 0.25; in part if the first interval lies below 3.",
        "If the solution is not unique, the error is that of the solution returned by the solver.",
    )


def sparse_rank(table: pd.DataFrame) -> Claim:
    """Rank one, 1-sparse: uniqueness, which does not depend on the weight."""
    found = find_boundary(table, "rank_one")
    fit = fit_power(found)
    ratio = (found.n50 / ((found.d + 1) / 2))[found.inside & (found.d >= 8)]
    return Claim(
        "fig1-rank-sparse",
        f"the n at which the rank-one solution is unique in half of the cases grows as d to the power {say(fit)}; "
        f"relative to (d + 1)/2 it is {extent(ratio)}. Uniqueness is decided by a linear program that does not depend "
        "on lambda, so both readings have the same boundary.",
        judge(fit.exponent.within(0.8, 1.2), fit.exponent.high < 2.0, tested=np.isfinite(fit.exponent.high)),
        "agrees if the interval of the exponent lies within 0.8 to 1.2, in part if it lies below 2.",
    )


def extent(values: np.ndarray) -> str:
    """Format the smallest and the largest value; a coarse grid may have none."""
    return f"{values.min():.2f} to {values.max():.2f}" if len(values) else "not measured"


def verdicts_differ(table: pd.DataFrame, columns: list[str]) -> pd.Series:
    """Return a mask of the instances whose verdict on rank one depends on the threshold or on the solution."""
    ratios = table[columns]
    return (ratios.min(axis=1) < THRESHOLDS[1]) & (ratios.max(axis=1) >= THRESHOLDS[0])


def spiked(table: pd.DataFrame) -> Claim:
    """Difficulty of deciding whether a solution has rank one."""
    by_threshold = by_replication(table, verdicts_differ(table, ["eigenvalue_ratio"]))
    by_both = by_replication(table, verdicts_differ(table, ["eigenvalue_ratio", "loose_ratio"]))
    return Claim(
        "fig1-spiked",
        f"of {len(table)} instances solved to a gap of 1e-8, {percent(by_threshold)} have a different verdict at a "
        f"threshold of {THRESHOLDS[0]:g} on the ratio of the eigenvalues than at {THRESHOLDS[1]:g}; if solutions to "
        f"{LOOSE_TOL:g} count too, {percent(by_both)}.",
        judge(by_threshold.low >= 0.05, by_both.low >= 0.05),
        "agrees if the threshold alone changes at least 5 % of the verdicts, by the interval of the proportion; in "
        "part if the threshold and the precision together do.",
    )


def percent(proportion: Interval) -> str:
    """Format a proportion and its interval in per cent."""
    return f"{100 * proportion.value:.1f} % ({100 * proportion.low:.1f} to {100 * proportion.high:.1f} %)"


def by_replication(table: pd.DataFrame, successes: pd.Series) -> Interval:
    """Return a proportion of instances with its interval, resampling the replications of each dimension as wholes."""
    groups = successes.groupby([table["d"], table["replication"]])
    return ratio_of(groups.sum().to_numpy(float), groups.size().to_numpy(float))


def ratio_of(hits: np.ndarray, sizes: np.ndarray) -> Interval:
    """Return the ratio of two sums with its interval, resampling the terms in pairs."""
    if len(sizes) == 0:
        return Interval(float("nan"), -np.inf, np.inf)
    chosen = np.random.default_rng([2017, 3]).integers(len(sizes), size=(400, len(sizes)))
    draws = hits[chosen].sum(axis=1) / sizes[chosen].sum(axis=1)
    return interval_of(float(hits.sum() / sizes.sum()), draws)


def sparse_error(panel: dict[str, pd.DataFrame]) -> Claim:
    """Error, 4-sparse, at both readings of lambda; the directions of the paper are the rotated ones."""
    fits = {
        (kind, reading): fit_of(panel[f"4-sparse {kind}, {reading}"], "recovered")
        for reading in READINGS
        for kind in ("rotated", "flat")
    }
    literal, other = ([fits[kind, reading] for kind in ("rotated", "flat")] for reading in READINGS)
    told = [
        f"at {words} to the power {say(fits['rotated', reading])} (rotated) and {say(fits['flat', reading])} (flat)"
        for reading, words in READINGS.items()
    ]
    agrees, partly = (any(map(is_linear, mine)) for mine in (literal, other))
    settled = agrees or partly or all(excludes_linear(fit) for fit in fits.values())
    return Claim(
        "fig1-error-sparse",
        f"the n at which the error crosses 1/2 in half of the cases grows as d, {'; '.join(told)}. {points_saved(panel)}",
        judge(agrees, partly, tested=settled),
        "agrees if at weight 1/sqrt(n), for rotated or for flat directions, the interval of the exponent overlaps 0.9 "
        "to 1.1 and excludes 2; in part if it does so at weight 1/n alone; differs if all four intervals exclude 0.9 "
        "to 1.1; not tested otherwise.",
        "A ratio below 1, that is, fewer points than without a penalty, does not imply the stated order.",
    )


def is_linear(fit: PowerLaw) -> bool:
    """Return whether the interval of an exponent is consistent with 1 and excludes 2."""
    return is_below_square(fit) and fit.exponent.meets(0.9, 1.1)


def is_below_square(fit: PowerLaw) -> bool:
    """Return whether the interval of an exponent lies below 2."""
    return bool(np.isfinite(fit.exponent.high) and fit.exponent.high < 2.0)


def excludes_linear(fit: PowerLaw) -> bool:
    """Return whether the interval of an exponent, if determined, excludes 1."""
    return not fit.exponent.meets(0.9, 1.1)


def points_saved(panel: dict[str, pd.DataFrame]) -> str:
    """Format the ratio of each error boundary to the one without a penalty, at the largest d that has both."""
    without = find_boundary(panel["affine"], "recovered")
    parts = []
    for reading, words in READINGS.items():
        for kind in ("rotated", "flat"):
            found = find_boundary(panel[f"4-sparse {kind}, {reading}"], "recovered")
            common, i, j = np.intersect1d(found.d[found.inside], without.d[without.inside], return_indices=True)
            ratio = found.n50[found.inside][i] / without.n50[without.inside][j]
            if len(common):
                parts.append(f"{ratio[-1]:.2f} at d = {common[-1]:g} ({kind}, {words})")
    return f"The ratio to the n without a penalty is {', '.join(parts) or 'at no d known'}."


def ratio_law(above: Boundary, below: Boundary) -> PowerLaw:
    """Return the power law of the ratio of two boundaries, whose replications were resampled alike."""
    common, i, j = np.intersect1d(above.d[above.inside], below.d[below.inside], return_indices=True)
    first, second = np.flatnonzero(above.inside)[i], np.flatnonzero(below.inside)[j]
    outside = np.zeros(len(common), dtype=int)
    ratio = above.n50[first] / below.n50[second]
    draws = above.draws[:, first] / below.draws[:, second]
    return fit_power(Boundary(common, ratio, ratio, ratio, outside, draws, above.units[first]))


def same_scaling(table: pd.DataFrame, interior: pd.DataFrame) -> Claim:
    """Both transitions of the affine case, by both solvers."""
    rank = find_boundary(table, "rank_one")
    fits = [ratio_law(find_boundary(cells, "recovered"), rank) for cells in (table, interior)]
    at = [fit.factor * 20.0**fit.exponent.value for fit in fits]
    tested = np.isfinite([fit.exponent.high for fit in fits]).all()
    within = [fit.exponent.within(-0.25, 0.25) and 0.5 <= a <= 2.0 for fit, a in zip(fits, at, strict=True)]
    words = [
        f"{name} {a:.2f} at d = 20, growing as d to the power {say(fit)}"
        for name, fit, a in zip(("low_rank", "an interior point"), fits, at, strict=True)
    ]
    return Claim(
        "fig1-same-scaling",
        f"ratio of the error boundary to the rank boundary: {'; '.join(words)}."
        if tested
        else "too few boundaries of both.",
        judge(all(within), any(fit.exponent.meets(-0.25, 0.25) for fit in fits), tested=bool(tested)),
        "agrees if by both solvers the interval of the exponent of the ratio lies within -0.25 to 0.25 and the ratio "
        "at d = 20 within 0.5 to 2; in part if by one of them the interval overlaps -0.25 to 0.25.",
    )


def seldom_both(table: pd.DataFrame, interior: pd.DataFrame) -> Claim:
    """Instances of higher rank and low error, by both solvers."""
    proportions = [by_replication(cells, is_both(cells)) for cells in (table, interior)]
    return Claim(
        "fig1-seldom-both",
        f"{percent(proportions[0])} of the instances have an error below {LOW:g} and a solution of higher rank by "
        f"low_rank; {percent(proportions[1])} of those with d up to {INTERIOR_D} by an interior point.",
        judge(all(proportion.high < 0.05 for proportion in proportions), all(share.low < 0.1 for share in proportions)),
        "agrees if by both solvers the interval of the proportion lies below 5 %, in part if it reaches below 10 %.",
        "The proportion depends on the grid, which is dense around the boundary.",
    )


def is_both(table: pd.DataFrame) -> pd.Series:
    """Return a mask of the instances with a low error and a solution of higher rank."""
    return (table["rank_one"] == 0) & (table["error"] < LOW)


def points_of_the_face(affine: pd.DataFrame, interior: pd.DataFrame) -> Finding:
    """Solutions of the same instances by two solvers if the solution is not unique."""
    keys = ["n", "d", "replication"]
    both = affine.merge(interior, on=keys, suffixes=("", " interior"))
    several = both[(both["rank_one"] == 0) | (both["rank_one interior"] == 0)]
    counts = [int((several[column] < RECOVERED).sum()) for column in ("error", "error interior")]
    low = [int((several[column] < LOW).sum()) for column in ("error", "error interior")]
    return Finding(
        "below uniqueness, the error depends on the solution that the solver returns",
        f"Of {len(several)} instances for d up to {INTERIOR_D} with a solution of higher rank by one of the solvers, {counts[1]} are "
        f"recovered by an interior point, which converges to the interior of the solution set, and {counts[0]} by low_rank; the "
        f"error is below {LOW:g} in {low[1]} and {low[0]}. The paper used an interior point.",
    )


def always_rank_one(table: pd.DataFrame) -> Claim:
    """Rank one for l = 1 at any n and d."""
    everywhere, enough = proportion_of(table["rank_one"]), by_replication(*rows_from(table, 1.0))
    return Claim(
        "one-sparse-rank-one",
        f"the rank-one solution is unique in {100 * everywhere.value:.0f} % of {len(table)} instances with n from "
        f"{table['n'].min()} to {table['n'].max()}, and in {percent(enough)} of those with n >= d.",
        judge(everywhere.low >= 0.95, enough.low >= 0.95, tested=np.isfinite(enough.high)),
        "agrees if the proportion is at least 95 % on the whole grid, in part if it is for n >= d; even n, "
        "unit-variance columns, uniqueness by the linear program.",
        "Below (d + 1)/2 points there are other solutions, all of them diagonal.",
    )


def rows_from(table: pd.DataFrame, multiple: float) -> tuple[pd.DataFrame, pd.Series]:
    """Return the rows with n at least a multiple of d, and their verdicts on the rank."""
    selected = table[table["n"] >= multiple * table["d"]]
    return selected, selected["rank_one"]


def constants(table: pd.DataFrame) -> Finding:
    """Boundary compared with its theory, for large n."""
    found = find_boundary(table, "rank_one")
    ratio = (found.n50 / statistical_dimension(found.d))[found.inside & (found.d >= 12)]
    return Finding(
        "without a penalty, rank one begins at the statistical dimension d + d(d-1)/4",
        f"For d from 12 to {found.d.max():g} the ratio of the boundary to d + d(d-1)/4 is {extent(ratio)}.",
        "d^2/4 is the threshold of ellipsoid fitting: below it, an ellipsoid through all points exists.",
    )


def proved_diagonal(panel: dict[str, pd.DataFrame]) -> Finding:
    """How often the penalty removes all interactions of the coordinates."""
    parts = []
    for name, part in panel.items():
        if PANELS[name].weight is not None:
            failed = part[part["recovered"] == 0]
            among = f", {100 * failed['diagonal'].mean():.0f} % of those not recovered" if len(failed) else ""
            parts.append(f"{name}: {100 * part['diagonal'].mean():.0f} % of {len(part)}{among}")
    return Finding("cells in which every solution V is certified to be diagonal", f"{'; '.join(parts)}.")


def error_of_directions(panel: dict[str, pd.DataFrame]) -> Finding:
    """Effect of the spread of the direction in the rotated panels."""
    parts = []
    for reading, words in READINGS.items():
        part = panel[f"4-sparse rotated, {reading}"]
        narrow, wide = (part[part["spread"].between(*ends)] for ends in ((1.0, 2.5), (2.5, 4.0)))
        fractions = [mean_of(half.groupby(["d", "replication"])["recovered"].mean()) for half in (narrow, wide)]
        parts.append(
            f"at {words} {fractions[0]:.2f} of the cells with s < 2.5 are recovered and {fractions[1]:.2f} of the others"
        )
    return Finding("recovery depends on s = |v|_1^2/|v|_2^2 of the direction", f"{'; '.join(parts)}.")
