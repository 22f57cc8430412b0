"""Multipliers between two sets of coordinates without a common group: projections, and the best choice for S.

For l1 C_jk lies in an interval; for groups the blocks C_gh lie in a spectral-norm ball.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF
from diffrac_cvx.problem.penalties.groups import BlockPairs, clip_singular_values, project_spectral_ball
from diffrac_cvx.problem.penalties.pair_penalty import IndexArray
from diffrac_cvx.problem.penalties.structure import PenaltyStructure

INSIDE_BOUND = 1.0 - 8.0 * UNIT_ROUNDOFF  # shrinks the bound, so that C is inside it after rounding
GROUP_LASSO_STEPS, GROUP_LASSO_TOLERANCE = 100, 1e-4  # steps, and relative change at which they stop


class OffDiagonalDual:
    """Dual set between row coordinates and column coordinates that have no group in common."""

    def __init__(self, structure: PenaltyStructure, c: Array, rows: IndexArray, columns: IndexArray) -> None:
        self.c_rows, self.c_columns, self.is_elementwise = c[rows], c[columns], structure.labels is None
        self.rows, self.columns = structure.restrict(rows), structure.restrict(columns)
        if structure.labels is not None and np.isin(structure.labels[rows], structure.labels[columns]).any():
            raise ValueError("a group is split between rows and columns: C is 0 inside it, so no bound follows")

    def bound(self, t: float) -> Array:
        """Return t c_j c_k, slightly decreased."""
        return np.asarray(t * INSIDE_BOUND * np.outer(self.c_rows, self.c_columns))

    def project_safe(self, tC: Array, t: float) -> Array:
        """Return nearly the projection onto t times the dual set, inside it after rounding."""
        if self.is_elementwise:
            bound = self.bound(t)
            return np.asarray(np.clip(tC, -bound, bound))
        tC = tC.copy()
        for pair in self.violated(tC, t):
            put_blocks(pair, tC, project_spectral_ball(pair.blocks_of(tC), pair.bound * INSIDE_BOUND))
        return tC

    def violated_columns(self, T: Array, t: float) -> IndexArray:
        """Return the columns with an entry, or of groups with a block, that violates the dual set."""
        if self.is_elementwise:
            return np.flatnonzero((np.abs(T) > self.bound(t)).any(axis=0))
        found = [pair.columns.ravel() for pair in self.violated(T, t)]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.intp)

    @cached_property
    def pairs(self) -> list[BlockPairs]:
        """Pairs of groups, by the shape of their blocks."""
        sets = [
            stack_by_size(part.groups(len(c))) for part, c in ((self.rows, self.c_rows), (self.columns, self.c_columns))
        ]
        found = []
        for some in sets[0]:
            for others in sets[1]:
                g, h = (index.ravel() for index in np.meshgrid(range(len(some)), range(len(others)), indexing="ij"))
                weights = self.c_rows[some[g, 0]] * self.c_columns[others[h, 0]]
                found.append(BlockPairs(g, h, some[g], others[h], weights))
        return found

    def violated(self, T: Array, t: float) -> Iterator[BlockPairs]:
        """Yield the pairs whose blocks may violate the dual set, with t times their bounds."""
        for pair in self.pairs:
            bound = t * pair.bound
            norms = np.sqrt(np.sum(np.square(pair.blocks_of(T)), axis=(1, 2)))
            mask = norms > bound * (1.0 - 1e-9)
            if mask.any():
                yield pair._replace(bound=bound).take(mask)

    def prox(self, Z: Array, t: float) -> Array:
        """Return the proximal point of t sum_gh w_g w_h |Z_gh|_*."""
        found = np.zeros_like(Z)
        for pair in self.violated(Z, t):
            blocks = pair.blocks_of(Z)
            put_blocks(pair, found, blocks - clip_singular_values(blocks, pair.bound))
        return found

    def restrict(self, columns: IndexArray) -> "OffDiagonalDual":
        """Return the dual set for some of the columns, in complete groups."""
        made = object.__new__(OffDiagonalDual)
        made.c_rows, made.c_columns, made.is_elementwise = self.c_rows, self.c_columns[columns], self.is_elementwise
        made.rows, made.columns = self.rows, self.columns.restrict(columns)
        return made

    def best_multiplier(self, P: Array, T: Array, t: float) -> Array:
        """Return nearly the tC in t times the dual set that minimises tr e'P^-1 e, e = tC - T.

        e = -P Z at the minimum of tr Z'PZ/2 - tr Z'T + t sum_gh w_g w_h |Z_gh|_*, by accelerated proximal steps.
        """
        values = np.linalg.eigvalsh(P)
        if values[0] <= 0.0:  # then no choice of the multiplier gives a certificate
            return T
        step, Z = 1.0 / float(values[-1]), np.zeros_like(T)
        extrapolated, momentum = Z, 1.0
        for _ in range(GROUP_LASSO_STEPS):
            check_deadline()
            previous, Z = Z, self.prox(extrapolated - step * (P @ extrapolated - T), t * step)
            if np.linalg.norm(Z - previous) <= GROUP_LASSO_TOLERANCE * np.linalg.norm(Z):
                break
            if np.vdot(extrapolated - Z, Z - previous) > 0.0:
                momentum = 1.0
            next_momentum = (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5) / 2.0
            extrapolated, momentum = Z + (momentum - 1.0) / next_momentum * (Z - previous), next_momentum
        return np.asarray(T - P @ Z)


def stack_by_size(groups: list[IndexArray]) -> list[IndexArray]:
    """Return the groups of each size as an array, (k, p)."""
    sizes = np.array([len(group) for group in groups])
    return [np.array([groups[g] for g in np.flatnonzero(sizes == size)]) for size in np.unique(sizes)]


def put_blocks(pair: BlockPairs, T: Array, blocks: Array) -> None:
    """Write the blocks of a pair into T."""
    T[pair.rows[:, :, None], pair.columns[:, None, :]] = blocks
