"""Findings on the sparse regime: the growth of the number of points at noise of variance one, and its law."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from experiments.harness.boundary import Boundary, fit_power
from experiments.harness.findings import Finding, Rule
from experiments.harness.tables import split_parts
from experiments.sparse_regime.cells import LAW
from experiments.sparse_regime.models import NEAR, boundary_of, dimension_bound, growth_in_sparsity, law_exponent

TITLE = "The sparse regime at noise of variance one"
ABOUT = (
    "Flat l-sparse directions, Gaussian noise, columns of sample variance 1, n searched in steps of 7 %: at weight "
    "0.3/((l-1) d) of |V|_1, and at the best of six from 0.025/((l-1) d) to 0.8/((l-1) d). The law, n = 1 + delta, is "
    "for a vanishing weight: delta bounds the statistical dimension of its cone in closed form; that random points "
    "follow it is a conjecture."
)
FROM_D = 16
RULES_OF_WEIGHT = {"oracle": "best weight", "law": f"weight {LAW:g}/((l-1) d)"}
PENALIZED = (2, 4, 8)
Found = Mapping[str, Mapping[int, Boundary]]  # choice of the weight, sparsity


def follows_law(table: pd.DataFrame) -> list[bool]:
    """Return for each exponent of d whether its interval reaches within `NEAR` of that of the law."""
    pairs = zip(table["exponent"], table["law"], strict=True)
    return [exponent.meets(law - NEAR, law + NEAR) for exponent, law in pairs if np.isfinite(law)]


LAW_HOLDS = Rule(
    "at noise of variance one, the number of points grows in d as the law 1 + delta",
    f"agrees if at both choices of the weight the interval of every exponent of d reaches within {NEAR:g} of the law's "
    f"own at the same d, from {FROM_D} on; in part if that of one does; not tested if one is not determined",
    lambda t: all(follows_law(t)),
    lambda t: any(follows_law(t)),
    tested=lambda t: all(np.isfinite(one.high) for one, law in zip(t["exponent"], t["law"], strict=True) if law > 0),
)
RULES = (LAW_HOLDS,)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the growth of the boundaries in d and l, and their theory."""
    parts = split_parts(table)
    found = {rule: boundaries_of(parts[rule], parts["exact"]) for rule in RULES_OF_WEIGHT}
    return [
        Finding(
            "Growth of n at the boundary, as a power of d for each l, and of l at the largest d with four boundaries",
            growth(found),
            [LAW_HOLDS],
            "The law is of order (l-1)^2 d log d.",
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
            use = found[rule][l].inside & (found[rule][l].d >= FROM_D)
            law = law_exponent(l, found[rule][l].d[use]) if fit.dimensions > 1 else np.nan
            records[words, f"d, l = {l}"] = {"exponent": fit.exponent, "law": law, "boundaries": fit.dimensions}
        common = set.intersection(*(set(boundary.d[boundary.inside]) for boundary in found[rule].values()))
        in_l = growth_in_sparsity(found[rule], max(common, default=np.nan))
        records[words, "l"] = {"exponent": in_l, "law": np.nan, "boundaries": len(found[rule])}
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
