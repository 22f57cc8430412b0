"""Multipliers between two sets of coordinates that share no group: projections, and the ones that leave the most of S.

For l1 C_jk is in an interval; for groups the blocks C_gh are in a ball of the spectral norm.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from diffrac_cvx.machine.time_budget import poll
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import UNIT
from diffrac_cvx.problem.penalties.coupling import Labels
from diffrac_cvx.problem.penalties.groups import Pair, clip_singular_values, into_ball
from diffrac_cvx.problem.penalties.structure import Structure

INSIDE = 1.0 - 8.0 * UNIT  # of a box, so that rounding leaves C inside it
STEPS, SETTLED = 100, 1e-4  # of a group lasso, and the relative change that ends them


class Between:
    """The dual set between some coordinates, in rows, and others, in columns, none of a group of the first."""

    def __init__(self, structure: Structure, c: Array, rows: Labels, columns: Labels) -> None:
        self.c, self.of_columns, self.plain = c[rows], c[columns], structure.labels is None
        self.rows, self.columns = structure.restrict(rows), structure.restrict(columns)
        if structure.labels is not None and np.isin(structure.labels[rows], structure.labels[columns]).any():
            raise ValueError("a group is split between the two sets: C is 0 inside it, and no bound follows")

    def side(self, t: float) -> Array:
        """Return t c_j c_k, a little less."""
        return np.asarray(t * INSIDE * np.outer(self.c, self.of_columns))

    def clip(self, tC: Array, t: float) -> Array:
        """Return the nearest matrix in t times the dual set, rounding counted."""
        if self.plain:
            side = self.side(t)
            return np.asarray(np.clip(tC, -side, side))
        tC = tC.copy()
        for pair in self.beyond(tC, t):
            put(pair, tC, into_ball(pair.of(tC), pair.side * INSIDE))
        return tC

    def columns_beyond(self, T: Array, t: float) -> Labels:
        """Return the columns of groups with an entry, or a block, beyond the dual set."""
        if self.plain:
            return np.flatnonzero((np.abs(T) > self.side(t)).any(axis=0))
        found = [pair.columns.ravel() for pair in self.beyond(T, t)]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.intp)

    @cached_property
    def pairs(self) -> list[Pair]:
        """The pairs of groups, by the shape of their blocks."""
        sets = [by_size(part.groups(len(c))) for part, c in ((self.rows, self.c), (self.columns, self.of_columns))]
        found = []
        for some in sets[0]:
            for others in sets[1]:
                g, h = (index.ravel() for index in np.meshgrid(range(len(some)), range(len(others)), indexing="ij"))
                weights = self.c[some[g, 0]] * self.of_columns[others[h, 0]]
                found.append(Pair(g, h, some[g], others[h], weights))
        return found

    def beyond(self, T: Array, t: float) -> Iterator[Pair]:
        """Yield the pairs whose blocks may be beyond, with t times their sides."""
        for pair in self.pairs:
            side = t * pair.side
            norms = np.sqrt(np.sum(np.square(pair.of(T)), axis=(1, 2)))
            chosen = norms > side * (1.0 - 1e-9)
            if chosen.any():
                yield pair._replace(side=side).take(chosen)

    def shrink(self, Z: Array, t: float) -> Array:
        """Return the proximal point of t sum_gh w_g w_h |Z_gh|_*."""
        found = np.zeros_like(Z)
        for pair in self.beyond(Z, t):
            blocks = pair.of(Z)
            put(pair, found, blocks - clip_singular_values(blocks, pair.side))
        return found

    def restrict(self, columns: Labels) -> "Between":
        """Return that to some of the columns, whole groups."""
        made = object.__new__(Between)
        made.c, made.of_columns, made.plain = self.c, self.of_columns[columns], self.plain
        made.rows, made.columns = self.rows, self.columns.restrict(columns)
        return made

    def nearest(self, P: Array, T: Array, t: float) -> Array:
        """Return about the tC in t times the dual set with the least tr e'P^-1 e, e = tC - T.

        e = -P Z at the minimum of tr Z'PZ/2 - tr Z'T + t sum_gh w_g w_h |Z_gh|_*: accelerated proximal steps.
        """
        values = np.linalg.eigvalsh(P)
        if values[0] <= 0.0:  # then nothing is proved, whatever there is between
            return T
        length, Z = 1.0 / float(values[-1]), np.zeros_like(T)
        ahead, momentum = Z, 1.0
        for _ in range(STEPS):
            poll()
            before, Z = Z, self.shrink(ahead - length * (P @ ahead - T), t * length)
            if np.linalg.norm(Z - before) <= SETTLED * np.linalg.norm(Z):
                break
            if np.vdot(ahead - Z, Z - before) > 0.0:
                momentum = 1.0
            following = (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5) / 2.0
            ahead, momentum = Z + (momentum - 1.0) / following * (Z - before), following
        return np.asarray(T - P @ Z)


def by_size(groups: list[Labels]) -> list[Labels]:
    """Return the groups of each size as an array, (k, p)."""
    sizes = np.array([len(group) for group in groups])
    return [np.array([groups[g] for g in np.flatnonzero(sizes == size)]) for size in np.unique(sizes)]


def put(pair: Pair, T: Array, blocks: Array) -> None:
    """Write blocks between rows and columns."""
    T[pair.rows[:, :, None], pair.columns[:, None, :]] = blocks
