"""Structure of the penalty on pairs of coordinates, independent of weights and scaling: groups and signs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.points import Indexer, Mask
from diffrac_cvx.problem.penalties.absolute import Absolute
from diffrac_cvx.problem.penalties.groups import GroupNorms
from diffrac_cvx.problem.penalties.pair_penalty import IndexArray, PairPenalty
from diffrac_cvx.problem.penalties.signs import SignConstraints


@dataclass(frozen=True, eq=False)
class PenaltyStructure:
    """Groups of coordinates, by label, and the mask of nonnegative coordinates; None if there are none."""

    labels: IndexArray | None = None  # (D,)
    nonnegative: Mask | None = None  # (D,)

    @property
    def is_elementwise(self) -> bool:
        """Whether the entries of V are penalised separately."""
        return self.labels is None and self.nonnegative is None

    def restrict(self, indices: Indexer) -> "PenaltyStructure":
        """Return the structure of some coordinates."""
        labels, nonnegative = self.labels, self.nonnegative
        return PenaltyStructure(
            None if labels is None else labels[indices], None if nonnegative is None else nonnegative[indices]
        )

    def with_offset(self) -> "PenaltyStructure":
        """Return the structure with one more coordinate, in a group of its own and without a sign constraint."""
        labels = self.labels if self.labels is None else np.append(self.labels, self.labels.max(initial=-1) + 1)
        return PenaltyStructure(
            labels, self.nonnegative if self.nonnegative is None else np.append(self.nonnegative, False)
        )

    def group_max(self, sizes: Array) -> Array:
        """Return the largest size in the group of each coordinate: the common unit of a group."""
        if self.labels is None:
            return sizes
        largest = np.zeros(int(self.labels.max(initial=0)) + 1)
        np.maximum.at(largest, self.labels, sizes)
        return np.asarray(largest[self.labels])

    def groups(self, d: int) -> list[IndexArray]:
        """Return the coordinates of each group, by label; d single coordinates if there are no groups."""
        labels = np.arange(d) if self.labels is None else self.labels
        order = np.argsort(labels, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(labels) else []

    def complete_groups(self, mask: Mask) -> Mask:
        """Return the mask of all groups that intersect a mask."""
        return mask if self.labels is None else np.isin(self.labels, np.unique(self.labels[mask]))

    def group_sums(self, values: Array) -> Array:
        """Return the sum of the values in the group of each coordinate."""
        return values if self.labels is None else np.asarray(np.bincount(self.labels, values)[self.labels])

    def group_norms(self, values: Array) -> Array:
        """Return the norm of the values of each group: absolute values if there are no groups."""
        return np.abs(values) if self.labels is None else np.sqrt(np.bincount(self.labels, np.square(values)))

    def first_groups(self, order: IndexArray, limit: int) -> IndexArray:
        """Return the first coordinates of an order, up to a limit, in complete groups and at least one group."""
        if self.labels is None or not len(order):
            return order[:limit]
        names, positions = np.unique(self.labels[order], return_index=True)
        names = names[np.argsort(positions)]
        sizes = np.cumsum(np.bincount(self.labels)[names])
        selected = names[: max(int(np.sum(sizes <= limit)), 1)]
        return np.concatenate([np.flatnonzero(self.labels == name) for name in selected])

    def has_pair_penalty(self, c: Array) -> bool:
        """Whether any pair of coordinates is coupled."""
        return bool(c.any()) or (self.nonnegative is not None and int(self.nonnegative.sum()) > 1)

    def pair_penalty(self, c: Array, *, diagonal: bool = False) -> PairPenalty:
        """Return the pair penalty with weights c, (D,)."""
        are_singletons = self.labels is None or len(np.unique(self.labels)) == len(self.labels)
        base: PairPenalty = Absolute(c, diagonal=diagonal)
        if self.labels is not None and not are_singletons:
            base = GroupNorms(c, self.labels, diagonal=diagonal)
        if self.nonnegative is None or int(self.nonnegative.sum()) < 2:
            return base
        return SignConstraints(base, self.nonnegative)


ELEMENTWISE = PenaltyStructure()


class PenaltyWeights(NamedTuple):
    """Weights of a penalty for d features: roots a of the ridge, roots c of the l1 weights, and the structure."""

    a: Array  # (d,)
    c: Array  # (d,)
    structure: PenaltyStructure = ELEMENTWISE

    def restrict(self, indices: Indexer) -> "PenaltyWeights":
        """Return the weights of some features."""
        return PenaltyWeights(self.a[indices], self.c[indices], self.structure.restrict(indices))

    def with_offset(self, a: float) -> "PenaltyWeights":
        """Return the weights with an offset whose ridge has this root."""
        return PenaltyWeights(np.append(self.a, a), np.append(self.c, 0.0), self.structure.with_offset())
