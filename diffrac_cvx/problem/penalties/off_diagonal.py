"""Multipliers between two sets of coordinates that share no group: projections, and the ones that leave the most of S.

For l1 C_jk is in an interval; for groups the blocks C_gh are in a ball of the spectral norm.
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

INSIDE_BOUND = 1.0 - 8.0 * UNIT_ROUNDOFF  # of a box, so that rounding leaves C inside it
GROUP_LASSO_STEPS, GROUP_LASSO_TOLERANCE = 100, 1e-4  # of a group lasso, and the relative change that ends them


class OffDiagonalDual:
    """The dual set between some coordinates, in rows, and others, in columns, none of a group of the first."""

    def __init__(self, structure: PenaltyStructure, c: Array, rows: IndexArray, columns: IndexArray) -> None:
        self.c_rows, self.c_columns, self.is_elementwise = c[rows], c[columns], structure.labels is None
        self.rows, self.columns = structure.restrict(rows), structure.restrict(columns)
        if structure.labels is not None and np.isin(structure.labels[rows], structure.labels[columns]).any():
            raise ValueError("a group is split between the two sets: C is 0 inside it, and no bound follows")

    def bound(self, t: float) -> Array:
        """Return t c_j c_k, a little less."""
        return np.asarray(t * INSIDE_BOUND * np.outer(self.c_rows, self.c_columns))

    def project_safe(self, tC: Array, t: float) -> Array:
        """Return the nearest matrix in t times the dual set, rounding counted."""
        if self.is_elementwise:
            bound = self.bound(t)
            return np.asarray(np.clip(tC, -bound, bound))
        tC = tC.copy()
        for pair in self.violated(tC, t):
            put_blocks(pair, tC, project_spectral_ball(pair.blocks_of(tC), pair.bound * INSIDE_BOUND))
        return tC

    def violated_columns(self, T: Array, t: float) -> IndexArray:
        """Return the columns of groups with an entry, or a block, beyond the dual set."""
        if self.is_elementwise:
            return np.flatnonzero((np.abs(T) > self.bound(t)).any(axis=0))
        found = [pair.columns.ravel() for pair in self.violated(T, t)]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.intp)

    @cached_property
    def pairs(self) -> list[BlockPairs]:
        """The pairs of groups, by the shape of their blocks."""
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
        """Yield the pairs whose blocks may be beyond, with t times their sides."""
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
        """Return that to some of the columns, whole groups."""
        made = object.__new__(OffDiagonalDual)
        made.c_rows, made.c_columns, made.is_elementwise = self.c_rows, self.c_columns[columns], self.is_elementwise
        made.rows, made.columns = self.rows, self.columns.restrict(columns)
        return made

    def best_multiplier(self, P: Array, T: Array, t: float) -> Array:
        """Return about the tC in t times the dual set with the least tr e'P^-1 e, e = tC - T.

        e = -P Z at the minimum of tr Z'PZ/2 - tr Z'T + t sum_gh w_g w_h |Z_gh|_*: accelerated proximal steps.
        """
        values = np.linalg.eigvalsh(P)
        if values[0] <= 0.0:  # then nothing is proved, whatever there is between
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
    """Write blocks between rows and columns."""
    T[pair.rows[:, :, None], pair.columns[:, None, :]] = blocks
