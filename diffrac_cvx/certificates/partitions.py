"""Coordinates in groups."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.problem.result import Labels

Indices = npt.NDArray[np.signedinteger[Any]]
UNPENALISED = -1  # the label of a coordinate in no group


@dataclass(frozen=True, eq=False)
class Partition:
    """Coordinates in groups: blocks of two or more, and single ones."""

    labels: Indices

    @cached_property
    def groups(self) -> tuple[Indices, ...]:
        """Coordinates by label, each group increasing."""
        order = np.argsort(self.labels, kind="stable")
        ends = np.flatnonzero(np.diff(self.labels[order])) + 1
        return tuple(np.split(order, ends))

    @cached_property
    def blocks(self) -> tuple[Indices, ...]:
        """The groups of two or more."""
        return tuple(group for group in self.groups if len(group) > 1)

    @cached_property
    def singles(self) -> Indices:
        """The coordinates in groups of one, increasing."""
        return np.flatnonzero(np.bincount(self.labels)[self.labels] == 1)

    @property
    def largest(self) -> int:
        """Size of the largest group."""
        return max((len(group) for group in self.groups), default=0)

    def join(self, j: Indices, k: Indices) -> "Partition":
        """Return the partition in which the groups of these pairs of coordinates are joined."""
        return Partition(np.unique(join_labels(self.labels, j, k), return_inverse=True)[1])


def join_labels(labels: Labels, j: npt.NDArray[np.intp], k: npt.NDArray[np.intp]) -> Labels:
    """Return the labels with the groups of these pairs of coordinates joined."""
    size = int(labels.max(initial=-1)) + 1
    graph = scipy.sparse.coo_array((np.ones(len(j), dtype=bool), (labels[j], labels[k])), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1][labels])


def number_by_first(labels: Labels) -> Labels:
    """Return labels >= 0 numbered from 0 by first appearance; -1 stays."""
    numbered = np.full(len(labels), UNPENALISED)
    some = labels >= 0
    _, first, inverse = np.unique(labels[some], return_index=True, return_inverse=True)
    numbered[some] = np.argsort(np.argsort(first))[inverse]
    return numbered
