"""Findings on the sparse regime: the conjecture of section 5.2 and its theory."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from experiments.harness.boundary import Boundary, fit_power
from experiments.harness.findings import Finding, Rule
from experiments.harness.intervals import Interval
from experiments.harness.tables import split_parts
from experiments.sparse_regime.cells import LAW
from experiments.sparse_regime.models import boundary_of, dimension_bound, growth_in_sparsity

TITLE = "The sparse regime: the conjecture n = O(l d)"
ABOUT = (
    "Flat l-sparse directions, balanced, noiseless, columns of sample variance 1, even n, searched on the data stream "
    "of each replication by bisection in steps of 7 %: with the weight of |V|_1 at 0.3/((l-1) d), and with the best of "
    "six weights from 0.025/((l-1) d) to 0.8/((l-1) d). The theory, n = 1 + delta, is for a vanishing weight: delta is "
    "an upper bound, in closed form, of the statistical dimension of the cone of its program; that random points "
    "follow it is a conjecture."
)
FROM_D = 16
RULES_OF_WEIGHT = {"oracle": "best weight", "law": f"weight {LAW:g}/((l-1) d)"}
PENALIZED = (2, 4, 8)
Found = Mapping[str, Mapping[int, Boundary]]  # choice of the weight, sparsity


def is_linear(exponent: Interval) -> bool:
    """Return whether the interval of an exponent is consistent with 1 or less and excludes 2."""
    return reaches_one(exponent) and exponent.high < 2.0


def reaches_one(exponent: Interval) -> bool:
    """Return whether the interval of an exponent reaches down to 1.1."""
    return exponent.low <= 1.1


def exponents(table: pd.DataFrame) -> list[tuple[list[Interval], Interval]]:
    """Return the exponents of d and that of l, for each choice of the weight at which all those of d are determined."""
    rules = [list(rows["exponent"]) for _, rows in table.groupby(level=0, sort=False)]
    return [(in_d, in_l) for *in_d, in_l in rules if all(np.isfinite(exponent.high) for exponent in in_d)]


def any_in_d(table: pd.DataFrame, holds: Callable[[Interval], bool]) -> bool:
    """Return whether a condition holds for any exponent of d."""
    return any(holds(exponent) for in_d, _ in exponents(table) for exponent in in_d)


CONJECTURE = Rule(
    "conjecture",
    "agrees if for one choice of the weight the intervals of all exponents reach down to 1.1, and those of d exclude "
    f"2; in part if that of d does so for one l; differs if none of d reaches down to 1.1; d from {FROM_D} on; not "
    "tested otherwise",
    lambda t: any(all(map(is_linear, in_d)) and reaches_one(in_l) for in_d, in_l in exponents(t)),
    lambda t: any_in_d(t, is_linear),
    tested=lambda t: any_in_d(t, is_linear) or (bool(exponents(t)) and not any_in_d(t, reaches_one)),
)
RULES = (CONJECTURE,)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the growth of the boundaries in d and l, and their theory."""
    parts = split_parts(table)
    found = {rule: boundaries_of(parts[rule], parts["exact"]) for rule in RULES_OF_WEIGHT}
    return [
        Finding(
            "Growth of n at the boundary, as a power of d for each l, and of l at the largest d with four boundaries",
            growth(found),
            [CONJECTURE],
            "The sizes measured do not determine the order for large d.",
        ),
        Finding(
            "Boundary over 1 + delta, delta a bound on the statistical dimension for a vanishing penalty; no free constant",
            over_theory(found),
        ),
    ]


def boundaries_of(searches: pd.DataFrame, exact: pd.DataFrame) -> dict[int, Boundary]:
    """Return the boundary of each sparsity; for l = 1 that of uniqueness, which does not depend on the weight."""
    both = pd.concat([exact, searches])
    return {int(str(sparsity)): boundary_of(part) for sparsity, part in both.groupby("sparsity")}


def growth(found: Found) -> pd.DataFrame:
    """Return the exponents of n in d for each sparsity from 2 on, and in l, for both choices of the weight."""
    records = {}
    for rule, words in RULES_OF_WEIGHT.items():
        for l in (l for l in PENALIZED if l in found[rule]):
            fit = fit_power(found[rule][l], FROM_D)
            records[words, f"d, l = {l}"] = {"exponent": fit.exponent, "boundaries": fit.dimensions}
        common = set.intersection(*(set(boundary.d[boundary.inside]) for boundary in found[rule].values()))
        in_l = growth_in_sparsity(found[rule], max(common, default=np.nan))
        records[words, "l"] = {"exponent": in_l, "boundaries": len(found[rule])}
    return pd.DataFrame.from_dict(records, orient="index").rename_axis(["weight", "power of"])


def over_theory(found: Found) -> pd.DataFrame:
    """Return the range of the boundaries over the theory."""
    records = {}
    for rule, words in RULES_OF_WEIGHT.items():
        at = [(l, found[rule][l]) for l in PENALIZED if l in found[rule]]
        theory = [1.0 + dimension_bound(l, d) for l, boundary in at for d in boundary.d[boundary.inside]]
        ratios = np.concatenate([b.n50[b.inside] for _, b in at]) / theory
        if len(ratios):
            records[words] = {"smallest": ratios.min(), "largest": ratios.max(), "boundaries": len(ratios)}
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("weight")
