"""What the table of Figure 1 says about the paper's statements."""

import numpy as np
import pandas as pd

from diffrac_cvx.inputs import Array
from experiments.harness.claims import Claim
from experiments.phase_transition.cells import AMBIGUOUS
from experiments.phase_transition.fit import Fit, fit_boundary
from experiments.theory.unique_solution import statistical_dimension

RECOVERED = 0.5  # clustering error below which an instance counts as recovered
LOW = 0.1  # clustering error that counts as low


def claims(table: pd.DataFrame) -> list[Claim]:
    """Return the paper's statements on the phase transitions."""
    table = table.assign(recovered=(table["error"] < RECOVERED).astype(int))
    panel = dict(iter(table.groupby("panel")))
    return [
        affine_rank(panel["affine"]),
        sparse_rank(panel["1-sparse"]),
        spiked(panel["affine"]),
        affine_error(panel["affine"]),
        sparse_error(panel["4-sparse"], panel["4-sparse, small lambda"]),
        same_place(panel["affine"]),
        seldom_both(panel["affine"]),
    ]


def extent(values: Array) -> str:
    """Return the smallest and the largest number in words; a coarse grid may have none."""
    return f"{values.min():.2f} to {values.max():.2f}" if len(values) else "not measured"


def affine_rank(table: pd.DataFrame) -> Claim:
    """Rank one, affine invariant."""
    fit = fit_boundary(table, "rank_one")
    ratio = (fit.n50 / statistical_dimension(fit.d))[fit.d >= 12]
    return Claim(
        "Figure 1 (a), left",
        "affine invariant: the solution is rank one from n = O(d^2) on, better than the n = O(d^3) of Proposition 1 (a)",
        f"50 % boundary fitted by d^{fit.exponent:.2f}; over d + d(d-1)/4 it is {extent(ratio)} for "
        f"d from 12 to {fit.d.max(initial=0):g}.",
        bool(1.7 <= fit.exponent <= 2.1),
        "d + d(d-1)/4 is the statistical dimension of the descent cone of the semidefinite cone at a rank-one matrix; "
        "its linear part makes the exponent less than 2 at these d.",
    )


def sparse_rank(table: pd.DataFrame) -> Claim:
    """Rank one, 1-sparse."""
    fit = fit_boundary(table, "rank_one")
    return Claim(
        "Figure 1 (a), right",
        "1-sparse: the solution is rank one from n = O(d) on",
        f"50 % boundary of uniqueness at {fit.slope:.2f} d {fit.offset:+.1f}, fitted exponent {fit.exponent:.2f}.",
        bool(0.85 <= fit.exponent <= 1.15),
        "Close to (d+1)/2, Wendel's count; uniqueness is decided exactly, by a linear program.",
    )


def spiked(table: pd.DataFrame) -> Claim:
    """The difficulty of telling rank one."""
    between = table["eigenvalue_ratio"].between(*AMBIGUOUS).mean()
    return Claim(
        "Figure 1 (a), remark",
        "it may be uncertain to distinguish a rank-one solution from a spiked one",
        f"the ratio of the second to the first eigenvalue of Y lies between {AMBIGUOUS[0]:g} and {AMBIGUOUS[1]:g} in "
        f"{100 * between:.1f} % of {len(table)} instances solved to a proved gap of 1e-8.",
        None if between > 0.2 else True,
        "Accuracy decides: a smoothed or loosely solved V has full rank everywhere.",
    )


def affine_error(table: pd.DataFrame) -> Claim:
    """Error, affine invariant."""
    fit = fit_boundary(table, "recovered")
    return Claim(
        "Figure 1 (b), left",
        "affine invariant: the error has its transition at n = O(d^2)",
        f"the error passes 1/2 at a boundary fitted by d^{fit.exponent:.2f}.",
        bool(1.7 <= fit.exponent <= 2.1),
    )


def sparse_error(paper: pd.DataFrame, small: pd.DataFrame) -> Claim:
    """Error, 4-sparse, at the paper's lambda and at a smaller one."""
    theirs, ours = fit_boundary(paper, "recovered"), fit_boundary(small, "recovered")
    return Claim(
        "Figure 1 (b), right",
        "4-sparse, lambda = 1/sqrt(n): the error has its transition at n = O(d), which supports n = O(l d)",
        f"at lambda = 1/sqrt(n) {describe(theirs)}; at 0.03/sqrt(n) {describe(ours)}.",
        bool(theirs.exponent < 1.4 and ours.exponent < 1.4),
        "At 1/sqrt(n) the penalty is too strong: the boundary is ragged and the error falls slowly. The order is the "
        "paper's at a smaller lambda only.",
    )


def describe(fit: Fit) -> str:
    """Return a boundary in words."""
    return f"{fit.slope:.1f} d {fit.offset:+.0f} (exponent {fit.exponent:.2f}, {len(fit.d)} dimensions with a crossing)"


def same_place(table: pd.DataFrame) -> Claim:
    """The two transitions of the affine case."""
    rank, error = fit_boundary(table, "rank_one"), fit_boundary(table, "recovered")
    common, i, j = np.intersect1d(rank.d, error.d, return_indices=True)
    ratio = (error.n50[j] / rank.n50[i])[common >= 8]
    return Claim(
        "Figure 1 (a) and (b)",
        "the transitions of the rank and of the error occur at the same scaling",
        f"the boundary of the error over that of the rank is {extent(ratio)}, for d from 8 on.",
        bool(ratio.min(initial=1.0) >= 0.8 and ratio.max(initial=1.0) <= 1.1),
    )


def seldom_both(table: pd.DataFrame) -> Claim:
    """Instances of higher rank and low error."""
    share = ((table["rank_one"] == 0) & (table["error"] < LOW)).mean()
    return Claim(
        "Figure 1 (a) and (b)",
        "there are few (n, d) at which the rank is above one and the error is low",
        f"{100 * share:.1f} % of the instances have an error below {LOW:g} and a solution that is not rank one.",
        bool(share < 0.05),
    )
