"""Constraints on the labels of points: pairs, known labels, groups, bags, order, sizes, and general linear ones."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.checks import Array, list_first, positive_int
from diffrac_cvx.points.label_arguments import IndexPair, read_groups, read_labels, read_pairs, read_rows
from diffrac_cvx.points.linear_algebra import unit_rows
from diffrac_cvx.points.linear_constraints import (
    Indices,
    LinearConstraints,
    LinearRows,
    Sparse,
    bag_rows,
    join_linear,
    linear_rows,
    order_rows,
    read_index_lists,
    read_linear,
    read_sizes,
    require_points,
    rows_of_some,
    size_rows,
)

ValuesT = TypeVar("ValuesT", bound=npt.NDArray[Any])
Operation = TypeVar("Operation", bound=Callable[..., Any])


def identity_without_constraints(operation: Operation) -> Operation:
    """Decorate an operation of chunklets: without constraints it returns its first argument, not copied."""

    @wraps(operation)
    def applied(chunklets: "Chunklets", values: Any, *others: Any) -> Any:
        return operation(chunklets, values, *others) if len(chunklets.membership) else values

    return cast(Operation, applied)


class Chunklets(NamedTuple):
    """Chunklets: sets of points whose labels are fixed up to one common sign; empty without constraints."""

    membership: Indices  # (n,), chunklet of each point, numbered from 0 in the order of their first points
    sign: Array  # (n,), sign of each point in its chunklet: its known label, or relative to the first point (+1)
    labeled: int  # chunklet of the points with known labels; -1 if there are none

    @property
    def n_chunklets(self) -> int:
        return int(self.membership.max(initial=-1)) + 1

    @property
    def max_size(self) -> int:
        """Number of points in the largest chunklet."""
        return int(np.bincount(self.membership, minlength=1).max())

    @property
    def has_known_labels(self) -> bool:
        return self.labeled >= 0

    @property
    def n_roundings(self) -> int:
        """Number of roundings of a sum over a chunklet and of its norm."""
        return self.max_size and self.max_size + 4

    @property
    def allows_one_cluster(self) -> bool:
        """Whether all points may have the same label."""
        ones = np.ones(len(self.membership))
        return np.array_equal(np.abs(self.signed_sums(ones)), self.sums(ones))

    @identity_without_constraints
    def signed_sums(self, values: Array) -> Array:
        """Return the signed sum of the points' values in each chunklet, shape (n_chunklets, ...)."""
        n = len(self.membership)
        S = scipy.sparse.csr_array((self.sign, (self.membership, np.arange(n))), shape=(self.n_chunklets, n))
        return np.asarray(S @ values)

    @identity_without_constraints
    def sums(self, values: Array) -> Array:
        """Return the unsigned sum of the points' values in each chunklet, shape (n_chunklets,)."""
        return np.bincount(self.membership, weights=values, minlength=self.n_chunklets).astype(np.float64)

    @identity_without_constraints
    def repeat(self, values: ValuesT) -> ValuesT:
        """Return the value of each point's chunklet, shape (n, ...)."""
        return cast(ValuesT, values[self.membership])

    @identity_without_constraints
    def firsts(self, values: Array) -> Array:
        """Return the value of the first point of each chunklet, shape (n_chunklets, ...)."""
        return values[np.unique(self.membership, return_index=True)[1]]

    @identity_without_constraints
    def expand(self, values: Array) -> Array:
        """Return the value of each point's chunklet times the sign of the point, shape (n, ...)."""
        sign = self.sign if values.ndim == 1 else self.sign[:, None]
        return np.asarray(values[self.membership] * sign)

    @identity_without_constraints
    def common_unit_rows(self, values: Array) -> Array:
        """Return unit rows that agree, up to sign, in each chunklet: those of the signed sums."""
        return self.expand(unit_rows(self.signed_sums(values)))

    def subset(self, mask: npt.NDArray[np.bool_]) -> "Chunklets":
        """Return the chunklets of a subset of the points, renumbered."""
        if not len(self.membership):
            return self
        _, first, membership = np.unique(self.membership[mask], return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        labeled = np.flatnonzero(self.membership[mask] == self.labeled)
        return Chunklets(rank[membership], self.sign[mask], int(rank[membership[labeled[0]]]) if len(labeled) else -1)

    def merged(self, signs: Array) -> "Chunklets":
        """Return the chunklets after merging those with a nonzero sign into one, and dropping those without points."""
        head = int(np.argmax(signs != 0.0))
        membership = np.where(signs != 0.0, head, np.arange(len(signs)))[self.membership]
        sign = self.sign * np.where(signs != 0.0, signs, 1.0)[self.membership]
        return Chunklets(membership, sign, head).subset(membership >= 0)

    @identity_without_constraints
    def propagate(self, values: Array, known: Array, mask: npt.NDArray[np.bool_]) -> Array:
        """Return a copy of the values, (n, k), with known rows inserted and propagated, with signs, to chunklets."""
        values = values.copy()
        values[mask] = known
        place = np.full(self.n_chunklets, -1)  # index of a point with known values in each chunklet
        place[self.membership[mask]] = np.flatnonzero(mask)
        at = place[self.membership]
        linked = at >= 0
        values[linked] = values[at[linked]] * (self.sign * self.sign[at])[linked, None]
        return values

    def means(self, values: Array, weights: Array | None = None) -> tuple[Array, Array | None]:
        """Return the unsigned means over each chunklet, (n_chunklets, ...), and the total weights of the chunklets."""
        if not len(self.membership):
            return values, weights
        p = np.full(len(values), 1.0 / len(values)) if weights is None else weights
        S = scipy.sparse.csr_array((p, (self.membership, np.arange(len(p)))), shape=(self.n_chunklets, len(p)))
        sizes = self.sums(p)
        return np.asarray(S @ values) / (sizes if values.ndim == 1 else sizes[:, None]), sizes

    @identity_without_constraints
    def adjust_labels(self, labels: Array, votes: Array) -> Array:  # noqa: ARG002  # returned without constraints
        """Return labels that satisfy the constraints, by the signed sums of the points' votes for the label +1."""
        return self.labels_from_signs(np.where(self.signed_sums(votes) >= 0.0, 1.0, -1.0))

    def assign_labels(self, values: Array, weights: Array | None = None) -> Array:
        """Return labels that satisfy the constraints: unlabelled chunklets take the signs of their signed sums."""
        signs = np.where(self.signed_sums(values if weights is None else weights * values) > 0.0, 1.0, -1.0)
        if self.has_known_labels:
            signs[self.labeled] = 1.0
        return self.labels_from_signs(signs)

    @identity_without_constraints
    def labels_from_signs(self, values: Array) -> Array:
        """Return the labels, shape (n,), from one sign per chunklet, oriented so that known labels are unchanged."""
        flip = values[self.labeled] if self.has_known_labels else 1.0
        return np.asarray(self.sign * values[self.membership] * flip)


UNCONSTRAINED = Chunklets(np.zeros(0, dtype=np.intp), np.zeros(0), -1)


@dataclass(frozen=True, eq=False, init=False)
class Constraints:
    r"""Hard constraints on the labels of some points.

    In Eq. (9), points connected by constraints :math:`y_i = s_{ij} y_j` form a chunklet with one free sign; all points
    with known labels share a chunklet.  For given v, the best sign of chunklet g gives :math:`|\sum_{i \in g} s_i
    x_i^\top v|`: the signed sum of its points replaces them as one row, and the rest of the problem is unchanged.

    Source: Eq. (9) with equality constraints between labels; not in the paper.

    Parameters
    ----------
    must_link, cannot_link : iterable of pairs (i, j)
        Pairs of points with equal labels, and pairs with different labels.  Points are numbered from 0.
    labels : (n,) array, optional
        Known labels, numbers or text of at most two classes; the second in sorted order is +1, and so is a single one
        other than -1. Unlabelled points have None, NaN, pd.NA or "". If there are two or more other values, -1 also
        marks unlabelled points, with a warning.
    groups : (n,) array of int or text, optional
        Group of each point.  All points of a group, such as the rows of one patient, have equal labels.  A point
        without a group has -1, None, NaN, pd.NA or "".
    unlabelled : object, optional
        Additional value that marks unlabelled points in ``labels``, such as 0 or -1; NaN if -1 is always a class.
    at_most : pair (A, b), optional
        Inequalities A y <= b on the labels y in {-1, 1}^n, with A an (k, n) array or sparse matrix, and b (k,).
    equal : pair (E, f), optional
        Equations E y = f, as ``at_most``.
    bags : list of lists of int
        Bags of points, each with at least one label +1.  Pass negative bags as known labels of their points.
    sizes : pair (low, high), optional
        Smallest and largest number of points with the label +1.
    order : list of lists of int
        Chains of points, along which the label may rise from -1 to +1, but not fall.
    n_points : int, optional
        Number n of points; by default that of ``labels``, ``groups``, ``at_most`` or ``equal``.  A table with another
        number of rows raises DataError; `take` returns the constraints of some rows, and scikit-learn's splitters call
        it for each fold.  Pass it if there are only pairs, bags, order or sizes: a cross-validation requires it then.

    Raises
    ------
    DataError
        If an argument is malformed, numbers of points differ, or ``labels`` has more than two classes, or consists of
        -1 and one other value than 1, so that -1 may be a class or mark unlabelled points.

    Examples
    --------
    >>> Constraints(must_link=[(0, 5)], cannot_link=[(1, 2)], labels=[None] * 4 + [-1, 1]).chunklets_of(6).n_chunklets
    3
    """

    must_link: Indices
    cannot_link: Indices
    labels: Array | None
    groups: Indices | None
    classes: tuple[object, object]
    at_most: tuple[Sparse, Array] | None
    equal: tuple[Sparse, Array] | None
    bags: tuple[Indices, ...]
    sizes: tuple[int, int] | None
    order: tuple[Indices, ...]
    n_points: int | None

    def __init__(
        self,
        must_link: Iterable[IndexPair] = (),
        cannot_link: Iterable[IndexPair] = (),
        labels: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        unlabelled: object = None,
        *,
        at_most: tuple[Any, npt.ArrayLike] | None = None,
        equal: tuple[Any, npt.ArrayLike] | None = None,
        bags: Iterable[npt.ArrayLike] = (),
        sizes: tuple[int, int] | None = None,
        order: Iterable[npt.ArrayLike] = (),
        n_points: int | None = None,
    ) -> None:
        known, classes = (None, (-1, 1)) if labels is None else read_labels(labels, unlabelled)
        object.__setattr__(self, "must_link", read_pairs(must_link, "must_link"))
        object.__setattr__(self, "cannot_link", read_pairs(cannot_link, "cannot_link"))
        object.__setattr__(self, "labels", known)
        object.__setattr__(self, "groups", None if groups is None else read_groups(groups))
        object.__setattr__(self, "classes", classes)
        for name, pair in (("at_most", at_most), ("equal", equal)):
            object.__setattr__(self, name, None if pair is None else read_linear(pair, name))
        object.__setattr__(self, "bags", read_index_lists(bags, "bags", 1))
        object.__setattr__(self, "sizes", None if sizes is None else read_sizes(sizes))
        object.__setattr__(self, "order", read_index_lists(order, "order", 2))
        object.__setattr__(self, "n_points", None if n_points is None else positive_int(n_points, "n_points"))
        if sizes_known := self._numbers_of_points():
            n = next(reversed(sizes_known.values()))  # n_points, if it is given
            self.require_points(n)
            object.__setattr__(self, "n_points", n)

    @property
    def are_linear(self) -> bool:
        """Whether there are constraints other than pairs, known labels and groups."""
        has_rows = any(given is not None for given in (self.at_most, self.equal, self.sizes))
        return has_rows or bool(self.bags or self.order)

    @property
    def without_linear(self) -> "Constraints":
        """The constraints without bags, order, sizes and rows."""
        made = Constraints()
        for name in ("must_link", "cannot_link", "labels", "groups", "classes"):
            object.__setattr__(made, name, getattr(self, name))
        if self.at_most is None and self.equal is None:  # these fix the number of points themselves
            object.__setattr__(made, "n_points", self.n_points)
        return made

    @property
    def shape(self) -> tuple[int]:
        """(n_points,); by this shape scikit-learn recognises constraints on the rows of a table."""
        if self.n_points is None:
            raise AttributeError("constraints have a shape if n_points is given.")
        return (self.n_points,)

    def __getitem__(self, rows: Any) -> "Constraints":
        """Return `take` of rows, so that scikit-learn's splitters pass each fold its own constraints."""
        return self.take(rows[0] if isinstance(rows, tuple) else rows)

    def take(self, rows: npt.ArrayLike) -> "Constraints":
        """Return the constraints of some rows of the table, numbered from 0 in the order of ``rows``.

        Each returned constraint is implied by a given one, whatever the labels of the other rows.  Known labels and
        groups are those of the rows, and chains of ``order`` lose the other points.  A pair or a bag with a point
        outside is dropped, and so is a link implied only through such a point.  ``sizes``, and rows of ``at_most`` and
        ``equal`` with coefficients of other points, are loosened by the largest possible contribution of these points.

        Parameters
        ----------
        rows : (m,) array of int or (n,) array of bool
            Different rows.

        Raises
        ------
        DataError
            If rows repeat a point or are out of range, or ``sizes`` is given and the number of points is unknown.

        Examples
        --------
        >>> Constraints(must_link=[(0, 5), (1, 2)], sizes=(2, 4), n_points=6).take([5, 3, 0]).must_link.tolist()
        [[2, 0]]
        """
        indices = read_rows(rows, self.n_points)
        m, points = len(indices), [*self.bags, *self.order, self.must_link.ravel(), self.cannot_link.ravel(), indices]
        place = np.full(max(self.n_points or 0, *(int(part.max(initial=-1)) + 1 for part in points)), -1, dtype=np.intp)
        place[indices] = np.arange(m)
        new: dict[str, Any] = {"n_points": m}
        for name in ("must_link", "cannot_link"):
            ends = place[getattr(self, name)]
            new[name] = ends[np.all(ends >= 0, axis=1)]
        for name in ("labels", "groups"):
            new[name] = None if (values := getattr(self, name)) is None else values[indices]
        new["bags"] = tuple(bag for bag in (place[bag] for bag in self.bags) if np.all(bag >= 0))
        chains = (chain[chain >= 0] for chain in (place[chain] for chain in self.order))
        new["order"] = tuple(chain for chain in chains if len(chain) > 1)
        if self.sizes is not None:
            if self.n_points is None:
                raise DataError("sizes is about all points, whose number is unknown. Pass n_points= to Constraints.")
            low, high = max(self.sizes[0] - (self.n_points - m), 0), min(self.sizes[1], m)
            new["sizes"] = None if (low, high) == (0, m) else (low, high)
        new["at_most"], new["equal"] = rows_of_some(self.at_most, self.equal, indices)
        made = Constraints()
        for name, value in {**vars(self), **new}.items():
            object.__setattr__(made, name, value)
        return made

    def _numbers_of_points(self) -> dict[str, int]:
        """Return the number of points that each argument implies, by argument name, if it implies one."""
        lengths = {name: None if (one := getattr(self, name)) is None else len(one) for name in ("labels", "groups")}
        pairs = {name: getattr(self, name) for name in ("at_most", "equal")}
        columns = {name: None if pair is None else pair[0].shape[1] for name, pair in pairs.items()}
        sizes = {**lengths, **columns, "n_points": self.n_points}
        return {name: size for name, size in sizes.items() if size is not None}

    def require_points(self, n: int) -> None:
        """Raise DataError if the constraints were made for another number of points, or one is out of range."""
        for name, size in self._numbers_of_points().items():
            if size != n:
                unit = {"labels": "entries", "groups": "entries", "n_points": ""}.get(name, "columns")
                remedy = "" if name == "n_points" else f"one {unit.removesuffix('s').replace('ie', 'y')} per point, or "
                raise DataError(
                    f"{name} {f'has {size} {unit}' if unit else f'is {size}'} for {n} points. Pass {remedy}"
                    "constraints.take(rows) for some rows of the table."
                )
        for name, pairs in (("must_link", self.must_link), ("cannot_link", self.cannot_link)):
            outside = pairs[(pairs < 0) | (pairs >= n)]
            if len(outside):
                raise DataError(f"{name} contains point {outside[0]}. The {n} points are numbered from 0 to {n - 1}.")
        require_points(self.bags, n, "bags")
        require_points(self.order, n, "order")

    def linear_of(self, n: int) -> LinearConstraints | None:
        """Return the inequalities and equations that the constraints define on the labels of n points, or None.

        Raises
        ------
        DataError
            If a matrix does not have n columns, a point is out of range, or a size exceeds n.
        """
        if not self.are_linear:
            return None
        self.require_points(n)
        at_most, equal = list[LinearRows](), list[LinearRows]()
        for name, pair, parts in (("at_most", self.at_most, at_most), ("equal", self.equal, equal)):
            if pair is not None:
                parts.append(linear_rows(*pair, [f"{name}[{k}]" for k in range(len(pair[1]))]))
        if self.bags:
            at_most.append(bag_rows(self.bags, n))
        if self.order:
            at_most.append(order_rows(self.order, n))
        if self.sizes is not None:
            more, equations = size_rows(*self.sizes, n)
            at_most, equal = [*at_most, *more], [*equal, *equations]
        return LinearConstraints(join_linear(at_most, n), join_linear(equal, n))

    def chunklets_of(self, n: int) -> Chunklets:
        """Return the chunklets that the constraints define on n points.

        Raises
        ------
        DataError
            If an array does not have n entries, a point is out of range, or constraints contradict each other.
        """
        self.require_points(n)
        # The constraints as signed pairs; a known label connects its point to the virtual point n, with the label +1.
        parts: list[tuple[Indices, Indices, float | Array]] = [
            (self.must_link[:, 0], self.must_link[:, 1], 1.0),
            (self.cannot_link[:, 0], self.cannot_link[:, 1], -1.0),
        ]
        if self.labels is not None:
            known = np.flatnonzero(self.labels != 0.0)
            parts.append((known, np.full(len(known), n), self.labels[known]))
        if self.groups is not None:
            inside = np.flatnonzero(self.groups >= 0)
            _, head, number = np.unique(self.groups[inside], return_index=True, return_inverse=True)
            parts.append((inside, inside[head][number], 1.0))
        first, second = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        sign = np.concatenate([np.broadcast_to(s, len(i)) for i, _, s in parts])
        # Each point has two nodes, one for each sign; the virtual point n has the label +1.
        half = n + 1
        ends = np.concatenate([second, second + half])
        ends = np.where(np.tile(sign, 2) > 0, ends, (ends + half) % (2 * half))
        starts = np.concatenate([first, first + half])
        graph = scipy.sparse.coo_array((np.ones(len(starts)), (starts, ends)), shape=(2 * half, 2 * half)).tocsr()
        node = connected_components(graph, directed=False)[1]
        wrong = np.flatnonzero(node[:half] == node[half:])
        if len(wrong):
            contradicted = wrong[wrong < n].tolist()  # without the virtual point
            points = f"{'point' if len(contradicted) == 1 else 'points'} {list_first(contradicted)}"
            raise DataError(f"the constraints on {points} contradict each other. Remove one of them.")
        pair = np.minimum(node[:half], node[half:])
        _, heads, membership = np.unique(pair, return_index=True, return_inverse=True)
        heads[membership[n]] = n
        signs = np.where(node[:half] == node[heads][membership], 1.0, -1.0)
        labeled = membership[n] if self.labels is not None and np.any(self.labels != 0.0) else -1
        return Chunklets(membership, signs, int(labeled)).subset(np.arange(half) < n)


def chunklets_of(constraints: Constraints | Chunklets | None, n: int) -> Chunklets:
    """Return the chunklets that constraints, or none, define on n points; chunklets are returned unchanged."""
    if isinstance(constraints, Chunklets):
        return constraints
    require_constraints(constraints)
    if constraints is not None and constraints.are_linear:
        raise ParameterError(
            "constraints has bags, order, sizes, or rows at_most or equal, which only optimal_labels, "
            "DiffracClustering, penalized_nu, constrained_alpha and lifted take. Use one of these."
        )
    return UNCONSTRAINED if constraints is None else constraints.chunklets_of(n)


def without_linear(constraints: Constraints | None) -> Constraints | None:
    """Return constraints without bags, order, sizes and rows; unchanged if they have none."""
    require_constraints(constraints)
    return constraints.without_linear if constraints is not None and constraints.are_linear else constraints


def require_constraints(constraints: object) -> None:
    """Raise ParameterError if an argument is neither `Constraints` nor None."""
    if not isinstance(constraints, Constraints | None):
        kind = type(constraints).__name__
        raise ParameterError(f"constraints is a {kind}. Pass dc.Constraints(must_link=..., labels=...).")


def require_numbered(constraints: Constraints | None, estimator: Any) -> None:
    """Raise DataError if constraints without a number of points are passed to folds, whose rows are numbered anew."""
    require_constraints(constraints)
    if constraints is None or constraints.n_points is not None:
        return
    requests = getattr(getattr(estimator, "_metadata_request", None), "fit", None)
    if requests is not None and requests.requests.get("constraints") is True:
        raise DataError(
            "constraints are passed on to folds, whose rows have other numbers. Pass n_points= to Constraints, so that "
            "each fold gets those of its rows."
        )


def require_satisfied(labels: Array, chunklets: Chunklets) -> None:
    """Raise DataError, naming a point, if neither the labels nor their negatives satisfy the constraints."""
    signs = labels * chunklets.sign if chunklets.max_size else labels
    wrong = np.flatnonzero(chunklets.repeat(chunklets.firsts(signs)) != signs)
    if len(wrong):
        raise DataError(
            f"the labels violate the constraints at point {wrong[0]}. Enforce them with rounding.apply_constraints."
        )
