"""Findings on Figure 1 (b) by the variance of the noise."""

import pandas as pd

from experiments.harness.findings import Finding


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the boundaries."""
    return [Finding("Rows", table.groupby(["method", "l"]).size().to_frame("rows"))]
