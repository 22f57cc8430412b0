"""What users know of some points: pairs that belong together or apart, labels, groups with one label each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array

IndexPair = tuple[int, int]
Indices = npt.NDArray[np.intp]
UNKNOWN_LABEL = 0.0  # label of a point of which nothing is known


class Chunklets(NamedTuple):
    """Points in groups with one free sign each."""

    membership: Indices  # (n,), the group of each point, numbered from 0 by first point
    sign: Array  # (n,), its sign in the group, +1 or -1: that of its known label, or +1 for the group's first point
    labeled: int  # the group of the points whose labels are known; -1 without any

    @property
    def n_chunklets(self) -> int:
        return int(self.membership.max(initial=-1)) + 1

    @property
    def max_size(self) -> int:
        """How many points the largest group has."""
        return int(np.bincount(self.membership, minlength=1).max())

    def signed_sums(self, values: Array) -> Array:
        """Return the signed sums over the points of each group of values of the points, shape (groups, ...)."""
        n = len(self.membership)
        S = scipy.sparse.csr_array((self.sign, (self.membership, np.arange(n))), shape=(self.n_chunklets, n))
        return np.asarray(S @ values)

    def sums(self, values: Array) -> Array:
        """Return the sums over the points of each group of values of the points, without signs, shape (groups,)."""
        return np.bincount(self.membership, weights=values, minlength=self.n_chunklets).astype(np.float64)

    def expand(self, values: Array) -> Array:
        """Return values of the groups for their points, with the points' signs, shape (n, ...)."""
        sign = self.sign if values.ndim == 1 else self.sign[:, None]
        return np.asarray(values[self.membership] * sign)

    def subset(self, mask: npt.NDArray[np.bool_]) -> "Chunklets":
        """Return the groups of some points, numbered anew."""
        _, first, membership = np.unique(self.membership[mask], return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        labeled = np.flatnonzero(self.membership[mask] == self.labeled)
        return Chunklets(rank[membership], self.sign[mask], int(rank[membership[labeled[0]]]) if len(labeled) else -1)

    def propagate(self, values: Array, known: Array, mask: npt.NDArray[np.bool_]) -> Array:
        """Return rows for all points: those kept as they are known, and of what is linked with them; else as given."""
        values = values.copy()
        values[mask] = known
        place = np.full(self.n_chunklets, -1)  # of a point kept in each group
        place[self.membership[mask]] = np.flatnonzero(mask)
        at = place[self.membership]
        linked = at >= 0
        values[linked] = values[at[linked]] * (self.sign * self.sign[at])[linked, None]
        return values

    def means(self, values: Array, weights: Array | None = None) -> tuple[Array, Array]:
        """Return the means over the points of each group, without signs, (groups, ...), and the groups' shares."""
        p = np.full(len(values), 1.0 / len(values)) if weights is None else weights
        S = scipy.sparse.csr_array((p, (self.membership, np.arange(len(p)))), shape=(self.n_chunklets, len(p)))
        sizes = self.sums(p)
        return np.asarray(S @ values) / (sizes if values.ndim == 1 else sizes[:, None]), sizes

    def assign_labels(self, values: Array, weights: Array | None = None) -> Array:
        """Return labels that obey the constraints: a group has the sign of the sum of its values, unless that is known."""
        signs = np.where(self.signed_sums(values if weights is None else weights * values) > 0.0, 1.0, -1.0)
        if self.labeled >= 0:
            signs[self.labeled] = 1.0
        return self.labels_from_signs(signs)

    def labels_from_signs(self, signs: Array) -> Array:
        """Return the labels of the points, shape (n,), from a sign for each group; known labels are as they are."""
        flip = signs[self.labeled] if self.labeled >= 0 else 1.0
        return np.asarray(self.sign * signs[self.membership] * flip)


@dataclass(frozen=True, eq=False, init=False)
class Constraints:
    r"""Hold what is known of some points.

    In Eq. (9) the points that constraints connect, :math:`y_i = s_{ij} y_j`, have one free sign together; so have all points
    whose labels are known.  For given v the best sign of such a group g gives :math:`|\sum_{i \in g} s_i x_i^\top v|`:
    a group is one row, the signed sum of its points, and nothing else changes.

    Source: Eq. (9) with equalities between labels; not in the paper.

    Parameters
    ----------
    must_link, cannot_link : iterable of pairs (i, j)
        Points that have the same label, and points that have not, counted from 0.
    labels : (n,) array, optional
        Known labels: -1 or +1, and 0 where nothing is known; or two names, the first in order being -1, and None or
        NaN where nothing is known.
    groups : (n,) array of int, optional
        Points with the same number have the same label, as the rows of one patient have; -1 for points on their own.

    Raises
    ------
    DataError
        If a pair is no pair of points, a point is said to differ from itself, or there are labels of three classes.

    Examples
    --------
    >>> Constraints(must_link=[(0, 5)], cannot_link=[(1, 2)], labels=[0, 1, 0, 0, 0, -1]).chunklets_of(6).n_chunklets
    3
    """

    must_link: Indices
    cannot_link: Indices
    labels: Array | None
    groups: Indices | None
    classes: tuple[object, object]

    def __init__(
        self,
        must_link: Iterable[IndexPair] = (),
        cannot_link: Iterable[IndexPair] = (),
        labels: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> None:
        known, classes = (None, (-1, 1)) if labels is None else read_labels(labels)
        object.__setattr__(self, "must_link", read_pairs(must_link, "must_link"))
        object.__setattr__(self, "cannot_link", read_pairs(cannot_link, "cannot_link"))
        object.__setattr__(self, "labels", known)
        object.__setattr__(self, "groups", None if groups is None else read_row_groups(groups))
        object.__setattr__(self, "classes", classes)
        for i, j in self.cannot_link:
            if i == j:
                raise DataError(f"cannot_link says that point {i} has not its own label; take that pair away")

    def chunklets_of(self, n: int) -> Chunklets:
        """Return the groups that the constraints make of n points.

        Raises
        ------
        DataError
            If a point is not among them, or the constraints contradict each other; the message names the points in between.
        """
        for name, size in (("labels", self.labels), ("groups", self.groups)):
            if size is not None and len(size) != n:
                raise DataError(f"{name} has {len(size)} entries for {n} points")
        for name, pairs in (("must_link", self.must_link), ("cannot_link", self.cannot_link)):
            outside = pairs[(pairs < 0) | (pairs >= n)]
            if len(outside):
                raise DataError(f"{name} names point {outside[0]}; the {n} points are counted from 0 to {n - 1}")
        first, second, sign = self.edges(n)
        # Each point is there twice, with either sign; a virtual one, n, has the label +1.
        double = n + 1
        ends = np.concatenate([second, second + double])
        ends = np.where(np.tile(sign, 2) > 0, ends, (ends + double) % (2 * double))
        starts = np.concatenate([first, first + double])
        graph = scipy.sparse.coo_array((np.ones(len(starts)), (starts, ends)), shape=(2 * double, 2 * double)).tocsr()
        node = connected_components(graph, directed=False)[1]
        wrong = np.flatnonzero(node[:double] == node[double:])
        if len(wrong):
            raise DataError(contradiction_message(graph, int(wrong[0]), double))
        pair = np.minimum(node[:double], node[double:])
        _, heads, membership = np.unique(pair, return_index=True, return_inverse=True)
        heads[membership[n]] = n
        signs = np.where(node[:double] == node[heads][membership], 1.0, -1.0)
        present, place = np.unique(membership[:n], return_index=True)
        rank = np.full(len(heads), -1)
        rank[present[np.argsort(place)]] = np.arange(len(present))
        known = rank[membership[n]] if self.labels is not None and np.any(self.labels != UNKNOWN_LABEL) else -1
        return Chunklets(rank[membership[:n]], signs[:n], int(known))

    def edges(self, n: int) -> tuple[Indices, Indices, Array]:
        """Return the constraints as pairs with signs; a known label links its point with point n, whose label is +1."""
        parts: list[tuple[Indices, Indices, float | Array]] = [
            (self.must_link[:, 0], self.must_link[:, 1], 1.0),
            (self.cannot_link[:, 0], self.cannot_link[:, 1], -1.0),
        ]
        if self.labels is not None:
            known = np.flatnonzero(self.labels != UNKNOWN_LABEL)
            parts.append((known, np.full(len(known), n), self.labels[known]))
        if self.groups is not None:
            inside = np.flatnonzero(self.groups >= 0)
            _, head, number = np.unique(self.groups[inside], return_index=True, return_inverse=True)
            parts.append((inside, inside[head][number], 1.0))
        sign = np.concatenate([np.broadcast_to(s, len(i)) for i, _, s in parts])
        return np.concatenate([i for i, _, _ in parts]), np.concatenate([j for _, j, _ in parts]), sign


def require_satisfied(labels: Array, constraints: Constraints) -> None:
    """Raise DataError, naming a point, where neither labels nor their opposites obey constraints."""
    chunklets = constraints.chunklets_of(len(labels))
    first = np.unique(chunklets.membership, return_index=True)[1]
    satisfying = chunklets.sign * (labels[first] * chunklets.sign[first])[chunklets.membership]
    wrong = np.flatnonzero(satisfying != labels)
    if len(wrong):
        raise DataError(
            f"the labels do not obey the constraints, as that of point {wrong[0]}; rounding.obey mends them"
        )


def contradiction_message(graph: scipy.sparse.csr_array, point: int, size: int) -> str:
    """Return what is wrong where a point is linked with its own opposite: the points on the way between them."""
    _, predecessors = breadth_first_order(graph, point, directed=False)
    path = [(point + size) % (2 * size)]
    while path[-1] != point:
        path.append(int(predecessors[path[-1]]))
    points = list(dict.fromkeys(node % size for node in path if node % size != size - 1))
    names = ", ".join(map(str, points[:12])) + (", ..." if len(points) > 12 else "")
    return f"the constraints contradict each other at points {names}: these cannot all hold"


def read_pairs(pairs: Iterable[IndexPair], name: str) -> Indices:
    """Return pairs of points, shape (k, 2)."""
    given = np.asarray(list(pairs) if not isinstance(pairs, np.ndarray) else pairs)
    if given.size == 0:
        return np.zeros((0, 2), dtype=np.intp)
    if given.ndim != 2 or given.shape[1] != 2 or not np.issubdtype(given.dtype, np.integer):
        raise DataError(f"{name} has to be pairs (i, j) of whole numbers, points counted from 0")
    return given.astype(np.intp)


def read_row_groups(groups: npt.ArrayLike) -> Indices:
    given = np.asarray(groups)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise DataError("groups has to be one whole number for each point, -1 for a point on its own")
    return given.astype(np.intp)


def read_labels(labels: npt.ArrayLike) -> tuple[Array, tuple[object, object]]:
    """Return known labels as -1, 0 and +1, and the two classes."""
    given = np.asarray(labels)
    if given.ndim != 1:
        raise DataError(f"labels has shape {given.shape}; it has to be one entry for each point")
    if given.dtype == bool:
        raise DataError("labels is a mask; give -1 and +1 for what is known, and 0 elsewhere")
    if np.issubdtype(given.dtype, np.number):
        known = np.where(np.isnan(given.astype(float)), UNKNOWN_LABEL, given.astype(float))
        if not set(np.unique(known)) <= {-1.0, 0.0, 1.0}:
            raise DataError(f"labels holds {np.unique(known)[:5].tolist()}; it may hold -1, +1, and 0 where unknown")
        return known, (-1, 1)
    missing = np.array([value is None or value != value for value in given.tolist()])
    names = sorted({str(value) for value in given[~missing].tolist()})
    if len(names) > 2:
        raise DataError(f"labels names {len(names)} classes, {', '.join(names[:5])}; constraints are between two")
    classes = (names[0] if len(names) == 2 else None, names[-1] if names else None)
    return np.where(missing, UNKNOWN_LABEL, np.where(given.astype(str) == classes[1], 1.0, -1.0)), classes
