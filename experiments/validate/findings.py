"""Findings on the agreement of the fast solvers with the SDP oracles, and its check."""

import numpy as np
import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.harness.command import Outcome
from experiments.harness.findings import Finding
from experiments.validate.cells import ALPHA_SLACK, METHODS, RELATED, SEED, SLACK

KEYS = ("n", "d", "nu", "penalty", "trait")


def check(table: pd.DataFrame) -> Outcome:
    """Report what is wrong on each instance, with the code that makes it again."""
    wrong = table[table["agrees"] == 0]
    lines = [
        f"{len(table) - len(wrong)} of {len(table)} instances agree: oracle values within the bounds of fast solvers",
    ]
    for _, row in wrong.iterrows():
        design = ", ".join(repr(row[key]) for key in KEYS)
        named = row.get("named")
        lines.append(
            f"APART by {row['violation']:.3g} ({row['between']}): "
            f"diffrac_cvx.comparison.instances.Design({design}).instance({SEED})"
            + (f"; {named}" if isinstance(named, str) and named else "")
        )
    return Outcome("\n".join(lines), wrong.empty)


def summarize(table: pd.DataFrame) -> pd.DataFrame:
    """Return one line per method: number of instances, and quantiles of its certified gap."""
    rows = []
    for name in (*METHODS, *RELATED):
        gaps = table.get(f"{name} gap", pd.Series(dtype=float)).dropna()
        if len(gaps):
            rows.append([name, len(gaps), *map(format_upper, (gaps.median(), gaps.quantile(0.9), gaps.max()))])
    return pd.DataFrame(rows, columns=["method", "instances", "median gap", "90 % gap", "largest gap"])


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return how tight each method is, and on how many instances the paper's equalities hold within the bounds."""
    nothing = pd.Series(np.nan, table.index)
    normalized, constrained = (
        table.get(f"{name} value", nothing).notna() for name in ("normalized", "constrained_alpha")
    )
    rows = {
        "(8), (11) and (15): the same value": (len(table), (table["violation"] > SLACK).sum()),
        "(21): -sqrt(1 - (15)) if c = 0, otherwise above": (
            normalized.sum(), (table.loc[normalized, "normalized agrees"] == 0).sum(),
        ),
        f"(7) + nu alpha at the alpha of (8), up to {ALPHA_SLACK:g}: (8)": (
            constrained.sum(), (table.loc[constrained, "alpha agrees"] == 0).sum(),
        ),
    }  # fmt: skip
    return [
        Finding("Certified gap of each method over the instances", summarize(table)),
        Finding(
            "Equalities of the paper, checked by certified bounds",
            pd.DataFrame.from_dict(rows, orient="index", columns=["instances", "inconsistent"]).rename_axis(
                "equations"
            ),
            comment=f"The largest distance between two intervals is {max(table['violation'].max(), 0.0):.1e}.",
        ),
    ]
