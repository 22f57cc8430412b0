r"""Screening of components: pairs of coordinates, or of groups of them, that a certified gap separates.

After elimination of the unpenalised coordinates F, G = M - A + K'K at the optimal weights u.  Groups are in different
components if the spectral norm of G_gh, or of its positive part for known signs, is below w_g w_h: then C = G is
strictly inside the dual set there, so that every optimal V is 0.  A gap bounds the error of G entry by entry, and the
Frobenius norm of these bounds covers a block.
"""

from dataclasses import replace

import numpy as np
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.certificates.block_problem import block_problem, number_by_first
from diffrac_cvx.certificates.proof import Remainder, eliminate
from diffrac_cvx.certificates.screening import GapSafeWeights, SafeRadius, gap_safe_radius, screen_pairs
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.floating_point import sum_error
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalties.group import block_norms
from diffrac_cvx.problem.result import Labels


def screen_components(problem: DirectionProblem, weights: GapSafeWeights, rtol: float | None) -> Labels:
    """Return the component of each penalised coordinate, numbered from 0 by first coordinate.

    All are in one component if the others cannot be eliminated, as far from an optimum, or if a row has nearly no
    weight, or with must-link constraints, because sums of points may be nothing but rounding.
    """
    mask, m = ~problem.zero_rows, int(np.count_nonzero(problem.c))
    single_component = np.zeros(m, dtype=np.int64)
    if rtol is None and (problem.max_chunklet_size or not weights.are_valid(mask)):
        return single_component
    if np.any(problem.pair_penalty.reference_weights > problem.c):  # coordinates with c = 0 have multipliers too
        return single_component
    blocked = block_problem(problem)
    remainder = eliminate(blocked, np.where(mask, weights.u, 0.0), 1.0, whitened=True)
    if remainder is None:
        return single_component
    pair_penalty = problem.pair_penalty.restrict(blocked.penalized)
    if not pair_penalty.splits_into_blocks:
        radius = None if rtol is not None else gap_safe_radius(remainder, weights, mask)
        if rtol is None and radius is None:
            return single_component
        return number_by_first(screen_groups(remainder, pair_penalty, radius, rtol))
    if rtol is None:
        radius = gap_safe_radius(remainder, weights, mask)
    else:
        remainder, radius = replace(remainder, F=0.0 * remainder.F), SafeRadius(lambda *_: np.asarray(rtol))
    found = None if radius is None else screen_pairs(remainder, single_component, np.inf, radius).certified
    return single_component if found is None else number_by_first(found)


def screen_groups(
    remainder: Remainder, pair_penalty: PairPenalty, radius: SafeRadius | None, rtol: float | None
) -> Labels:
    """Return the component of each penalised coordinate, connecting groups by the safe radius or by rtol."""
    m, c, groups = len(remainder.problem.c), remainder.problem.c, pair_penalty.groups
    require_memory(4 * 8.0 * m**2, f"the components of {m} features in groups", "use fewer features")
    all_columns = slice(None)
    G = remainder.gram(all_columns, all_columns)
    weights = np.array([c[group[0]] for group in groups])
    norms = pair_penalty.dual_norms(G)
    if rtol is None and radius is not None:
        radii = (radius.between(all_columns, all_columns) + remainder.entry_error) * np.outer(c, c)
        norms = (norms + block_norms(radii, groups)) * (1.0 + sum_error(m + 10))
        joined = ~(norms < np.outer(weights, weights) * (1.0 - sum_error(16)))
    else:
        joined = norms >= (1.0 - (rtol or 0.0)) * np.outer(weights, weights)
    labels = connected_components(joined, directed=False)[1]
    found = np.empty(m, dtype=np.int64)
    for label, group in zip(labels, groups, strict=True):
        found[group] = label
    return found
