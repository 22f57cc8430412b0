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
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import sum_error
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.groups import block_norms, largest_singular_values
from diffrac_cvx.problem.penalties.structure import PenaltyStructure
from diffrac_cvx.problem.result import Labels


def screen_components(problem: DirectionProblem, weights: GapSafeWeights, rtol: float | None) -> Labels:
    """Return the component of each penalised coordinate, numbered from 0 by first coordinate.

    All are in one component if the others cannot be eliminated, as far from an optimum, or if a row has nearly no
    weight, or with must-link constraints, because sums of points may be nothing but rounding.
    """
    mask, m = ~problem.zero_rows, int(np.count_nonzero(problem.c))
    single_component = np.zeros(m, dtype=np.int64)
    nonnegative = problem.structure.nonnegative
    if rtol is None and (problem.max_chunklet_size or not weights.are_valid(mask)):
        return single_component
    if nonnegative is not None and np.any(nonnegative & (problem.c == 0.0)):  # the others have multipliers too
        return single_component
    blocked = block_problem(problem)
    remainder = eliminate(blocked, np.where(mask, weights.u, 0.0), 1.0, whitened=True)
    if remainder is None:
        return single_component
    structure = problem.structure.restrict(blocked.penalized)
    if not structure.is_elementwise:
        radius = None if rtol is not None else gap_safe_radius(remainder, weights, mask)
        if rtol is None and radius is None:
            return single_component
        return number_by_first(screen_groups(remainder, structure, radius, rtol))
    if rtol is None:
        radius = gap_safe_radius(remainder, weights, mask)
    else:
        remainder, radius = replace(remainder, F=0.0 * remainder.F), SafeRadius(lambda *_: np.asarray(rtol))
    found = None if radius is None else screen_pairs(remainder, single_component, np.inf, radius).certified
    return single_component if found is None else number_by_first(found)


def screen_groups(
    remainder: Remainder, structure: PenaltyStructure, radius: SafeRadius | None, rtol: float | None
) -> Labels:
    """Return the component of each penalised coordinate, connecting groups by the safe radius or by rtol."""
    m, c = len(remainder.problem.c), remainder.problem.c
    require_memory(4 * 8.0 * m**2, f"the components of {m} features in groups", "use fewer features")
    all_columns, groups = slice(None), structure.groups(m)
    G = remainder.gram(all_columns, all_columns)
    if structure.nonnegative is not None:
        pairs = np.outer(structure.nonnegative, structure.nonnegative)
        G = np.where(pairs, np.maximum(G, 0.0), G)
    weights = np.array([c[group[0]] for group in groups])
    norms = spectral_norms(G, groups)
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


def spectral_norms(G: Array, groups: list[Labels]) -> Array:
    """Return upper bounds on the spectral norms of the blocks of a matrix, (G, G), 0 on the diagonal."""
    found = np.zeros((len(groups), len(groups)))
    sizes = np.array([len(group) for group in groups])
    for g, group in enumerate(groups):
        for size in np.unique(sizes[g + 1 :]):
            others = g + 1 + np.flatnonzero(sizes[g + 1 :] == size)
            columns = np.array([groups[h] for h in others])
            blocks = G[group[None, :, None], columns[:, None, :]]
            found[g, others] = found[others, g] = largest_singular_values(blocks)
    return found
