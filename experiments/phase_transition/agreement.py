"""Agreement of the fast solver and the oracle on the cells that both solved."""

import numpy as np
import pandas as pd

from experiments.harness.command import Oracle, Outcome
from experiments.phase_transition.cells import measure_reference, sample_of

AMBIGUOUS = (1e-3, 0.2)  # ratios between which verdicts of solvers are not compared
VALUE_SLACK = 1e-9  # for rounding errors, in addition to both certified gaps
DECIDED = 0.1  # relative to the value: with a larger certified gap, the oracle decides no rank
SOLVED = 1e-6  # absolute: with a smaller gap, it does if the value is 0
BORDER = (0.3, 0.7)  # errors between which recovery is not compared
ERROR_SLACK = 0.0  # two rank-one solutions must round to the same error
COLUMNS = (
    "value_oracle", "gap_oracle", "lower_fast", "upper_fast", "value_agrees", "ratio_oracle", "ratio_fast",
    "rank_one_oracle", "rank_one_fast", "ambiguous", "rank_agrees", "error_oracle", "error_fast", "error_compared",
    "error_agrees", "recovery_compared", "recovery_agrees",
)  # fmt: skip


def compare_with_oracle(fast: pd.DataFrame, oracle: pd.DataFrame) -> pd.DataFrame:
    """Compare the oracle's cells with those of the fast solver, one row per cell."""
    keys = ["panel", "n", "d", "replication"]
    both = oracle.merge(fast, on=keys, suffixes=("_oracle", "_fast"), validate="one_to_one")
    below, above = both["lower_fast"] - both["value_oracle"], both["lower_oracle"] - both["upper_fast"]
    outside = pd.concat([below, above], axis=1).max(axis=1)
    ratios = both[["eigenvalue_ratio_oracle", "eigenvalue_ratio_fast"]]
    clear = ((ratios < AMBIGUOUS[0]) | (ratios > AMBIGUOUS[1])).all(axis=1)
    clear |= (both["verdict_fast"] == "uniqueness") & ~both["eigenvalue_ratio_oracle"].between(*AMBIGUOUS)
    clear &= both["gap_oracle"] <= np.maximum(DECIDED * both["value_oracle"], SOLVED)
    sharp = (both["rank_one_fast"] == 1) & (both["rank_one_oracle"] == 1)
    sharp &= (ratios < AMBIGUOUS[0]).all(axis=1)  # uniqueness does not imply that the computed solution has rank one
    errors = both[["error_oracle", "error_fast"]]
    away = ((errors < BORDER[0]) | (errors > BORDER[1])).all(axis=1) & ~both["panel"].str.startswith("1-sparse")
    checks = {
        "value_agrees": outside <= VALUE_SLACK,
        "ambiguous": ~clear,
        "rank_agrees": both["rank_one_oracle"] == both["rank_one_fast"],
        "error_compared": sharp,
        "error_agrees": (both["error_oracle"] - both["error_fast"]).abs() <= ERROR_SLACK,
        "recovery_compared": away,
        "recovery_agrees": (errors < 0.5).all(axis=1) | (errors >= 0.5).all(axis=1),
    }
    names = {"eigenvalue_ratio_oracle": "ratio_oracle", "eigenvalue_ratio_fast": "ratio_fast"}
    both = both.assign(**{name: check.astype(int) for name, check in checks.items()}).rename(columns=names)
    return both[[*keys, *COLUMNS]]


def check(found: pd.DataFrame) -> Outcome:
    """Count the agreements, and list every disagreement on the value, the rank, or the error of rank-one solutions."""
    every = pd.Series(True, index=found.index)
    checks = {
        "value inside the certified bounds": ("value_agrees", every),
        "same verdict on rank one, if neither is ambiguous": ("rank_agrees", found["ambiguous"] == 0),
        "same error, if both have rank one": ("error_agrees", found["error_compared"] == 1),
        "error below 1/2 in both or neither, if neither is near 1/2": (
            "recovery_agrees", found["recovery_compared"] == 1
        ),
    }  # fmt: skip
    counts = [f"  {words}: {found[name][mask].sum()} of {mask.sum()}" for words, (name, mask) in checks.items()]
    lines = [f"oracle on {len(found)} cells:", *counts]
    decisive = list(checks.values())[:3]
    wrong = found[pd.concat([(found[name] == 0) & mask for name, mask in decisive], axis=1).any(axis=1)]
    if len(wrong):
        lines.append("DISAGREEMENT:\n" + wrong.to_string(index=False))
    return Outcome("\n".join(lines), wrong.empty)


BY_ORACLE = Oracle(sample_of, measure_reference, compare_with_oracle)
