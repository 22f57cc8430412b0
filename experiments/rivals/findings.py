"""Findings of the comparison with other methods, on which the paper makes no statement."""

import numpy as np
import pandas as pd

from experiments.harness.boundary import Boundary, find_boundary, fit_power
from experiments.harness.findings import Finding
from experiments.rivals.cells import RESTARTS, TOLERANCE

TITLE = "Other methods on noiseless data"
ABOUT = (
    "Balanced clusters along one direction, without label noise; the other directions are Gaussian, or spherical Student with 5 "
    f"degrees of freedom. The relaxation has no penalty and is solved by `low_rank` to {TOLERANCE:g}; CURE, alternating optimisation "
    f"and k-means have {RESTARTS} random starts. A boundary is the n at which half of the replications have an error below 1/2."
)
RECOVERED = 0.5  # clustering error below which an instance counts as recovered, as in Figure 1
LAWS = {"gaussian": "Gaussian noise", "student": "Student noise"}
AFFINE = ("lattice", "relaxation", "CURE", "spectral", "alternating", "k-means")  # depend on X up to an affine map
Boundaries = dict[tuple[str, str], Boundary]


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the boundaries for both laws."""
    found, exact = boundaries(table), boundaries(table, 0.0)
    return [
        Finding(
            f"Boundaries with {words}, no penalty, and the exponent of a power of d fitted from d = 8 on",
            compared(found, exact, law),
            comment="The exponent over this range of d need not equal that for large d. The spectral method uses the "
            "eigenvector only, without the alternation that would correct the last labels.",
        )
        for law, words in LAWS.items()
    ]


def boundaries(table: pd.DataFrame, most: float = RECOVERED) -> Boundaries:
    """Return the boundary of each law and method: half of the errors are below a number, or equal to 0."""
    success = table["error"] == 0.0 if most == 0.0 else table["error"] < most
    parts = table.assign(success=success.astype(int)).groupby(["law", "method"])
    return {(str(law), str(method)): find_boundary(part, "success") for (law, method), part in parts}


def compared(found: Boundaries, exact: Boundaries, law: str) -> pd.DataFrame:
    """Return the boundaries of all methods at one dimension, and their growth with d."""
    d = float(max(set.intersection(*(set(one.d) for key, one in found.items() if key[0] == law))))
    rows = {
        method: {
            f"n at d = {d:g}": boundary_at(found[law, method], d),
            "n for an error of 0": boundary_at(exact[law, method], d),
            "exponent": fit_power(found[law, method]).exponent,
        }
        for method in AFFINE
        if (law, method) in found
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def boundary_at(found: Boundary, d: float) -> str:
    """Format a boundary with its interval."""
    (i,) = np.flatnonzero(found.d == d)
    if found.outside[i]:
        return f"{'at most' if found.outside[i] < 0 else 'above'} {found.n50[i]:.0f}"
    return f"{found.n50[i]:.0f} ({found.low[i]:.0f} to {found.high[i]:.0f})"
