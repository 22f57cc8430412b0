"""Which penalty on pairs of coordinates there is: what is chosen once, whatever the weights and the coordinates."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.points import Chosen, Mask
from diffrac_cvx.problem.penalties.absolute import Absolute
from diffrac_cvx.problem.penalties.coupling import Coupling, Labels
from diffrac_cvx.problem.penalties.groups import GroupNorms
from diffrac_cvx.problem.penalties.signs import Signs


@dataclass(frozen=True, eq=False)
class Structure:
    """Groups of coordinates, by label, and coordinates that are known to be nonnegative; None where there are none."""

    labels: Labels | None = None  # (D,)
    nonnegative: Mask | None = None  # (D,)

    @property
    def is_plain(self) -> bool:
        """Whether the entries of V are penalised one by one."""
        return self.labels is None and self.nonnegative is None

    def restrict(self, chosen: Chosen) -> "Structure":
        """Return that of some coordinates."""
        labels, known = self.labels, self.nonnegative
        return Structure(None if labels is None else labels[chosen], None if known is None else known[chosen])

    def with_offset(self) -> "Structure":
        """Return that with one more coordinate, in no group and of no sign."""
        labels = self.labels if self.labels is None else np.append(self.labels, self.labels.max(initial=-1) + 1)
        return Structure(labels, self.nonnegative if self.nonnegative is None else np.append(self.nonnegative, False))

    def common(self, sizes: Array) -> Array:
        """Return the largest size in the group of each coordinate: groups have one unit."""
        if self.labels is None:
            return sizes
        largest = np.zeros(int(self.labels.max(initial=0)) + 1)
        np.maximum.at(largest, self.labels, sizes)
        return np.asarray(largest[self.labels])

    def groups(self, d: int) -> list[Labels]:
        """Return the coordinates of each group, by label; of d alone where there are none."""
        labels = np.arange(d) if self.labels is None else self.labels
        order = np.argsort(labels, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(labels) else []

    def whole(self, chosen: Mask) -> Mask:
        """Return the coordinates of all groups of which some are chosen."""
        return chosen if self.labels is None else np.isin(self.labels, np.unique(self.labels[chosen]))

    def sums(self, values: Array) -> Array:
        """Return for each coordinate the sum of the values in its group."""
        return values if self.labels is None else np.asarray(np.bincount(self.labels, values)[self.labels])

    def first(self, order: Labels, most: int) -> Labels:
        """Return the first of some coordinates, at most so many, but whole groups and at least one."""
        if self.labels is None or not len(order):
            return order[:most]
        names, places = np.unique(self.labels[order], return_index=True)
        names = names[np.argsort(places)]
        sizes = np.cumsum(np.bincount(self.labels)[names])
        kept = names[: max(int(np.sum(sizes <= most)), 1)]
        return np.concatenate([np.flatnonzero(self.labels == name) for name in kept])

    def couples(self, c: Array) -> bool:
        """Whether any pair of coordinates is coupled."""
        return bool(c.any()) or (self.nonnegative is not None and int(self.nonnegative.sum()) > 1)

    def coupling(self, c: Array, *, diagonal: bool = False) -> Coupling:
        """Return the penalty with these weights, (D,)."""
        alone = self.labels is None or len(np.unique(self.labels)) == len(self.labels)
        base: Coupling = Absolute(c, diagonal=diagonal)
        if self.labels is not None and not alone:
            base = GroupNorms(c, self.labels, diagonal=diagonal)
        if self.nonnegative is None or int(self.nonnegative.sum()) < 2:
            return base
        return Signs(base, self.nonnegative)


PLAIN = Structure()


class Weights(NamedTuple):
    """The weights of a penalty for d features: the roots of the ridge's and of the others', and what is coupled."""

    a: Array  # (d,)
    c: Array  # (d,)
    structure: Structure = PLAIN

    def restrict(self, chosen: Chosen) -> "Weights":
        """Return those of some features."""
        return Weights(self.a[chosen], self.c[chosen], self.structure.restrict(chosen))

    def with_offset(self, a: float) -> "Weights":
        """Return those with an offset of this ridge."""
        return Weights(np.append(self.a, a), np.append(self.c, 0.0), self.structure.with_offset())
