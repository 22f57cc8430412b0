"""Findings of the comparison with other methods, on which the paper makes no statement."""

import numpy as np
import pandas as pd

from experiments.harness.boundary import Boundary, find_boundary, fit_power
from experiments.harness.claims import Finding
from experiments.harness.intervals import proportion_of
from experiments.rivals.cells import RESTARTS, TOLERANCE
from experiments.theory.unique_solution import statistical_dimension

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


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    found = boundaries(table)
    return [
        *(compared(found, law) for law in LAWS),
        last_word(table, found),
        dimension(found),
        exact(found, boundaries(table, 0.0)),
        by_column(table),
    ]


def boundaries(table: pd.DataFrame, most: float = RECOVERED) -> Boundaries:
    """Return the boundary of each law and method: half of the errors are below a number, or equal to 0."""
    success = table["error"] == 0.0 if most == 0.0 else table["error"] < most
    parts = table.assign(success=success.astype(int)).groupby(["law", "method"])
    return {(str(law), str(method)): find_boundary(part, "success") for (law, method), part in parts}


def compared(found: Boundaries, law: str) -> Finding:
    """All methods at one dimension, and their growth with d."""
    d = common_dimension(found, law)
    methods = [method for method in AFFINE if (law, method) in found]
    numbers = [f"{method} {boundary_at(found[law, method], d)}, {growth(found[law, method])}" for method in methods]
    return Finding(
        f"boundaries with {LAWS[law]}, no penalty",
        f"n at d = {d:g}, and the exponent of a power of d fitted from d = 8 on: {'; '.join(numbers)}.",
        "The exponent over this range of d need not equal that for large d.",
    )


def common_dimension(found: Boundaries, law: str) -> float:
    """Return the largest dimension at which every method was measured for a law."""
    measured = [set(found[key].d) for key in found if key[0] == law and key[1] in AFFINE]
    return float(max(set.intersection(*measured)))


def boundary_at(found: Boundary, d: float) -> str:
    """Format a boundary with its interval."""
    (i,) = np.flatnonzero(found.d == d)
    if found.outside[i]:
        return f"{'at most' if found.outside[i] < 0 else 'above'} {found.n50[i]:.0f}"
    return f"{found.n50[i]:.0f} ({found.low[i]:.0f} to {found.high[i]:.0f})"


def growth(found: Boundary) -> str:
    """Format the fitted exponent."""
    return f"exponent {fit_power(found).exponent:.2f}"


def last_word(table: pd.DataFrame, found: Boundaries) -> Finding:
    """Lattice reduction compared with the relaxation."""
    rows = table[table["method"] == "lattice"]
    least = rows[rows["n"] == rows["d"] + 2]
    from_next = proportion_of((rows[rows["n"] >= rows["d"] + 4]["error"] == 0.0).to_numpy())
    always = least.groupby("d")["error"].max() == 0.0
    far = always.index[always.cummin()].max() if always.iloc[0] else 0
    d = float(rows["d"].max())
    both = [boundary_at(found["gaussian", method], d) for method in ("lattice", "relaxation")]
    return Finding(
        "on noiseless data, lattice reduction needs fewer points than the relaxation",
        f"lattice reduction in double precision finds y exactly from n = d + 2 points in all replications up to d = {far:g}, and "
        f"from d + 4 or d + 8 points in {100 * from_next.value:.0f} % ({100 * from_next.low:.0f} to {100 * from_next.high:.0f} %) up "
        f"to d = {d:g}; its boundary there is {both[0]}, that of the relaxation {both[1]}.",
        "Zadik et al. (2022) need d + 1 points if the offset is known. With an offset, any labels fit d + 1 points.",
    )


def dimension(found: Boundaries) -> Finding:
    """Relaxation compared with the statistical dimension."""
    said = []
    for law, words in LAWS.items():
        line = found[law, "relaxation"]
        use = line.inside & (line.d >= 8)
        sides = zip(line.d[use], line.low[use], line.high[use], statistical_dimension(line.d[use]), strict=True)
        intervals = [f"{low / count:.2f} to {high / count:.2f} (d = {d:g})" for d, low, high, count in sides]
        said.append(f"{words}: {', '.join(intervals) or 'not determined, fewest d 8'}")
    return Finding(
        "ratio of the relaxation's boundary to d + d(d-1)/4",
        f"intervals, {'; '.join(said)}.",
        "d + d(d-1)/4 is a statistical dimension (Amelunxen et al. 2014); d^2/4 is the threshold of ellipsoid fitting for Gaussian "
        "points (Saunderson et al. 2012; Kane and Diakonikolas 2023; Bandeira et al. 2023), the same count of unknowns.",
    )


def exact(found: Boundaries, zero: Boundaries) -> Finding:
    """Boundaries of exact recovery."""
    d = common_dimension(found, "gaussian")
    pairs = [
        f"{method} {boundary_at(found['gaussian', method], d)} and {boundary_at(zero['gaussian', method], d)}"
        for method in AFFINE
    ]
    return Finding(
        f"boundaries for an error below 1/2 and for an error of 0, Gaussian noise, d = {d:g}",
        f"{'; '.join(pairs)}.",
        "The spectral method uses the eigenvector only, without the alternation that would correct the last labels.",
    )


def by_column(table: pd.DataFrame) -> Finding:
    """2-means on each column, for a direction along an axis."""
    rows = table[table["method"] == "k-means by column"]
    proportion = proportion_of((rows["error"] == 0.0).to_numpy())
    return Finding(
        "one-sparse noiseless data: 2-means on each column",
        f"finds y exactly in {100 * proportion.value:.0f} % ({100 * proportion.low:.1f} to {100 * proportion.high:.0f} "
        f"%) of {len(rows)} instances with n from {rows['n'].min()} to {rows['n'].max()} and d from {rows['d'].min()} "
        f"to {rows['d'].max()}.",
        "Without noise, the label column is the only one with two values at any d, so l = 1 does not test a sparse relaxation.",
    )
