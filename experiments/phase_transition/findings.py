"""Findings on Figure 1."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.harness.boundary import MIN_DIMENSION, Boundary, PowerLaw, find_boundary, fit_power
from experiments.harness.findings import Finding, Rule
from experiments.harness.intervals import Proportion, proportion_of
from experiments.phase_transition.cells import INTERIOR, INTERIOR_D, LOOSE_TOL
from experiments.phase_transition.uniqueness import wendel
from experiments.theory.unique_solution import statistical_dimension

TITLE = "Figure 1: phase transitions"
ABOUT = (
    "Noiseless labels, Gaussian noise, columns of sample variance 1; four replications (twelve up to d = 20), 16 with a "
    "penalty. The weight of |V|_1 is 1/sqrt(n), the paper's lambda read literally, or 1/n, c_i = 1/sqrt(n) in "
    "Gamma. Directions are flat, or rotated as in the paper. The laws: d + d(d-1)/4, the statistical dimension of the "
    "descent cone at a rank-one matrix (Amelunxen et al. 2014), and (d + 1)/2."
)
RECOVERED = 0.5  # clustering error below which an instance counts as recovered
LOW = 0.1  # clustering error that counts as low
THRESHOLDS = (1e-3, 1e-1)  # eigenvalue ratios below which one may call a solution rank one
WEIGHTS, KINDS = ("1/sqrt(n)", "1/n"), ("rotated", "flat")
AFFINE_RANK, AFFINE_ERROR, ONE_SPARSE_RANK = "rank, no penalty", "error, no penalty", "rank, 1-sparse"
INTERIOR_OVER_FAST = "error, interior point over low_rank"
ERROR_OVER_RANK = {"low_rank": "error over rank, low_rank", "interior": "error over rank, interior point"}
AT = 20  # d at which ratios are compared
SLACK = 0.25  # distance of an exponent from a law's or the paper's that counts as equal
BETWEEN = f"lies between the law's own at these d, less {SLACK:g}, and the paper's"


def sparse_row(kind: str, weight: str) -> str:
    """Return the name of the row of a 4-sparse panel."""
    return f"error, 4-sparse {kind}, weight {weight}"


def is_within(row: str, low: float, high: float) -> Any:
    """Return the condition that the interval of the exponent in a row lies between two numbers."""
    return lambda table: table.loc[row, "exponent"].within(low, high)


def follows(row: str, power: float) -> Any:
    """Return the condition that the interval of an exponent lies between the law's and the paper's, up to `SLACK`."""
    return lambda table: table.loc[row, "exponent"].within(table.loc[row, "law"] - SLACK, power + SLACK)


def are_known(*rows: str) -> Any:
    """Return the condition that the exponents in some rows are determined."""
    return lambda table: all(np.isfinite(table.loc[row, "exponent"].high) for row in rows)


def same_scale(table: pd.DataFrame) -> list[bool]:
    """Return for both solvers whether the ratio of the error boundary to that of the rank is constant and near 1."""
    rows = [table.loc[row] for row in ERROR_OVER_RANK.values()]
    return [row["exponent"].within(-0.25, 0.25) and 0.5 <= row["at d = 20"] <= 2.0 for row in rows]


RANK_AFFINE = Rule(
    "fig1-rank-affine",
    f"agrees if the interval of the exponent {BETWEEN}, 2, plus {SLACK:g}; in part if below 3",
    follows(AFFINE_RANK, 2.0),
    is_within(AFFINE_RANK, -np.inf, 3.0),
    tested=are_known(AFFINE_RANK),
)
RANK_SPARSE = Rule(
    "fig1-rank-sparse",
    f"for columns of sample variance 1: agrees if the interval of the exponent {BETWEEN}, 1, plus {SLACK:g}; in part "
    "if below 2",
    follows(ONE_SPARSE_RANK, 1.0),
    is_within(ONE_SPARSE_RANK, -np.inf, 2.0),
    tested=are_known(ONE_SPARSE_RANK),
)
ERROR_AFFINE = Rule(
    "fig1-error-affine",
    f"as for the rank, and that of the ratio of both solvers, d up to {INTERIOR_D}, within -0.25 to 0.25: agrees if "
    "both, in part if the first lies below 3",
    lambda t: follows(AFFINE_ERROR, 2.0)(t) and is_within(INTERIOR_OVER_FAST, -0.25, 0.25)(t),
    is_within(AFFINE_ERROR, -np.inf, 3.0),
    tested=are_known(AFFINE_ERROR, INTERIOR_OVER_FAST),
)
SAME_SCALING = Rule(
    "fig1-same-scaling",
    "agrees if by both solvers the interval of the exponent of the ratio lies within -0.25 to 0.25 and the ratio at d "
    "= 20 within 0.5 to 2; in part if by one the interval overlaps -0.25 to 0.25",
    lambda t: all(same_scale(t)),
    lambda t: any(t.loc[row, "exponent"].meets(-0.25, 0.25) for row in ERROR_OVER_RANK.values()),
    tested=are_known(*ERROR_OVER_RANK.values()),
)
BY_THRESHOLD, BY_BOTH = "other verdict by threshold", "other verdict by threshold or solution"
BOTH_FAST, BOTH_INTERIOR = "rank above one, low error: low_rank", "rank above one, low error: interior point"
ONE_EVERYWHERE, ONE_ENOUGH = "1-sparse, unique: all n", "1-sparse, unique: n >= d"
SPIKED = Rule(
    "fig1-spiked",
    "agrees if the threshold alone changes at least 5 % of the verdicts on rank one (lower end), in part if threshold "
    "and precision together do",
    lambda t: t.loc[BY_THRESHOLD, "proportion"].low >= 0.05,
    lambda t: t.loc[BY_BOTH, "proportion"].low >= 0.05,
)
SELDOM = Rule(
    "fig1-seldom-both",
    "agrees if by both solvers the interval lies below 5 %, in part if it reaches below 10 %",
    lambda t: all(t.loc[row, "proportion"].high < 0.05 for row in (BOTH_FAST, BOTH_INTERIOR)),
    lambda t: all(t.loc[row, "proportion"].low < 0.1 for row in (BOTH_FAST, BOTH_INTERIOR)),
)
ONE_SPARSE = Rule(
    "one-sparse-rank-one",
    "agrees if at least 95 % (lower end) are unique on the whole grid, in part if for n >= d",
    lambda t: t.loc[ONE_EVERYWHERE, "proportion"].low >= 0.95,
    lambda t: t.loc[ONE_ENOUGH, "proportion"].low >= 0.95,
    tested=lambda t: t.loc[ONE_ENOUGH, "instances"] > 0,
)
RULES = (RANK_AFFINE, RANK_SPARSE, ERROR_AFFINE, SAME_SCALING, SPIKED, SELDOM, ONE_SPARSE)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the laws of the boundaries, the proportions, and what was found beyond the paper."""
    table = with_recovery(table)
    panel = dict(iter(table.groupby("panel")))
    interior = by_interior_point(table)
    return [
        Finding(
            "Exponent of d in the n at which half of the replications have rank one, or an error below 1/2, and in "
            "ratios of such n",
            laws(panel, interior),
            [RANK_AFFINE, RANK_SPARSE, ERROR_AFFINE, SAME_SCALING],
            "1-sparse uniqueness is decided by a linear program.",
        ),
        Finding(
            f"Proportions of instances: verdicts on rank one at thresholds of {THRESHOLDS[0]:g} and {THRESHOLDS[1]:g} "
            f"and solutions to 1e-8 and {LOOSE_TOL:g}; errors below {LOW:g}; the rank-one solution unique",
            proportions(panel, interior),
            [SPIKED, SELDOM, ONE_SPARSE],
            "The grid is dense around the boundary.",
        ),
    ]


def with_recovery(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with a column that marks recovery of the labels."""
    return table.assign(recovered=(table["error"] < RECOVERED).astype(int))


def by_interior_point(table: pd.DataFrame) -> pd.DataFrame:
    """Return the affine cells up to `INTERIOR_D`, by the interior point where the solution may not be unique."""
    mine, affine = table[table["panel"] == INTERIOR], table[table["panel"] == "affine"]
    keys = ["n", "d", "replication"]
    small = affine[affine["d"] <= INTERIOR_D]
    others = small[~small.set_index(keys).index.isin(mine.set_index(keys).index)]
    return pd.concat([mine, others]).sort_values(keys)


def ratio_law(above: Boundary, below: Boundary) -> PowerLaw:
    """Return the power law of the ratio of two boundaries, whose replications were resampled alike."""
    common, i, j = np.intersect1d(above.d[above.inside], below.d[below.inside], return_indices=True)
    first, second = np.flatnonzero(above.inside)[i], np.flatnonzero(below.inside)[j]
    outside = np.zeros(len(common), dtype=int)
    ratio = above.n50[first] / below.n50[second]
    draws = above.draws[:, first] / below.draws[:, second]
    return fit_power(Boundary(common, ratio, ratio, ratio, outside, draws, above.units[first]))


def power_of_law(law: Callable[[Array], Array], found: Boundary) -> float:
    """Return the exponent of d in a law, fitted at the dimensions of a boundary."""
    d = found.d[found.inside & (found.d >= MIN_DIMENSION)]
    return float(np.polyfit(np.log(d), np.log(law(d)), 1)[0]) if len(d) > 1 else float("nan")


def laws(panel: dict[str, pd.DataFrame], interior: pd.DataFrame) -> pd.DataFrame:
    """Return the exponents of all boundaries and of their ratios."""
    rank, error = (find_boundary(panel["affine"], column) for column in ("rank_one", "recovered"))
    inner = find_boundary(interior, "recovered")
    found = {AFFINE_RANK: fit_power(rank), AFFINE_ERROR: fit_power(error)}
    sparse = find_boundary(panel["1-sparse, 1/sqrt(n)"], "rank_one")
    found[ONE_SPARSE_RANK] = fit_power(sparse)
    for weight in WEIGHTS:
        for kind in KINDS:
            boundary = find_boundary(panel[f"4-sparse {kind}, {weight}"], "recovered")
            found[sparse_row(kind, weight)] = fit_power(boundary)
    found[INTERIOR_OVER_FAST] = ratio_law(inner, error)
    for name, boundary in zip(ERROR_OVER_RANK.values(), (error, inner), strict=True):
        found[name] = ratio_law(boundary, rank)
    law = {name: power_of_law(statistical_dimension, at) for name, at in ((AFFINE_RANK, rank), (AFFINE_ERROR, error))}
    law[ONE_SPARSE_RANK] = power_of_law(wendel, sparse)
    records = {
        name: {
            "exponent": fit.exponent,
            "law": law.get(name, "-"),
            "dimensions": fit.dimensions,
            f"at d = {AT}": fit.factor * float(AT) ** fit.exponent.value,
        }
        for name, fit in found.items()
    }
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("boundary")


def by_replication(table: pd.DataFrame, successes: pd.Series) -> Proportion:
    """Return a proportion of instances, with the replications of each dimension as the independent units."""
    return proportion_of(successes, table.groupby(["d", "replication"]).ngroup())


def verdicts_differ(table: pd.DataFrame, columns: list[str]) -> pd.Series:
    """Return a mask of the instances whose verdict on rank one depends on the threshold or on the solution."""
    ratios = table[columns]
    return (ratios.min(axis=1) < THRESHOLDS[1]) & (ratios.max(axis=1) >= THRESHOLDS[0])


def is_both(table: pd.DataFrame) -> pd.Series:
    """Return a mask of the instances with a low error and a solution of higher rank."""
    return (table["rank_one"] == 0) & (table["error"] < LOW)


def proportions(panel: dict[str, pd.DataFrame], interior: pd.DataFrame) -> pd.DataFrame:
    """Return the proportions of instances that are judged."""
    affine, sparse = panel["affine"], panel["1-sparse, 1/sqrt(n)"]
    enough = sparse[sparse["n"] >= sparse["d"]]
    found = {
        BY_THRESHOLD: (affine, verdicts_differ(affine, ["eigenvalue_ratio"])),
        BY_BOTH: (affine, verdicts_differ(affine, ["eigenvalue_ratio", "loose_ratio"])),
        BOTH_FAST: (affine, is_both(affine)),
        BOTH_INTERIOR: (interior, is_both(interior)),
        ONE_EVERYWHERE: (sparse, sparse["rank_one"]),
        ONE_ENOUGH: (enough, enough["rank_one"]),
    }
    records = {
        name: {"proportion": by_replication(rows, mask), "instances": len(rows)} for name, (rows, mask) in found.items()
    }
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("event")
