"""Linear constraints on labels: inequalities A y <= b and equations E y = f on y in {-1, 1}^n.

A row may have any scale: it is multiplied by a power of two, so that its largest coefficient is between 1 and 2. Labels
satisfy a row if they do so up to the rounding error of its sum, which is 0 for integers and other short binary
fractions.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array, as_any

Indices = npt.NDArray[np.intp]
Sparse = Any  # scipy.sparse.csr_array
Pair = tuple[Sparse, Array]  # coefficients, (k, n), and right sides, (k,)
UNIT_ROUNDOFF = 2.0**-53
EXACT_UNIT, EXACT_SUM = 2.0**-20, 2.0**32  # sums below EXACT_SUM of multiples of EXACT_UNIT are exact


class LinearRows(NamedTuple):
    """Left sides (coefficients of the labels) and right sides of inequalities <= or of equations."""

    coefficients: Sparse  # (k, n)
    right: Array  # (k,)
    slack: Array  # (k,), bounds on the rounding errors of sums minus right sides, for any labels; often 0
    names: tuple[str, ...]  # (k,), the user's name of each row

    def select(self, kept: Any) -> "LinearRows":
        """Return some of the rows."""
        kept = np.arange(len(self.right))[kept]
        names = tuple(self.names[k] for k in kept)
        return LinearRows(self.coefficients[kept], self.right[kept], self.slack[kept], names)

    def on_signs(self, membership: Indices, sign: Array, anchor: int, m: int) -> "LinearRows":
        """Return the rows on the signs z of m chunklets with z_anchor = 1, where y_i = sign_i z_g."""
        n, others = len(membership), membership != anchor
        S = scipy.sparse.csr_array((sign[others], (np.flatnonzero(others), membership[others])), shape=(n, m))
        sums = scipy.sparse.csr_array(self.coefficients @ S)
        sums.eliminate_zeros()
        sums.sort_indices()
        return self._replace(coefficients=sums, right=self.right - self.coefficients @ np.where(others, 0.0, sign))


class LinearConstraints(NamedTuple):
    """Inequalities and equations on the labels of n points, or on the signs of m chunklets."""

    at_most: LinearRows
    equal: LinearRows

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all rows, each once."""
        return tuple(dict.fromkeys((*self.at_most.names, *self.equal.names)))

    def violated(self, y: Array, slacks: float = 2.0) -> list[str]:
        """Return the names of the rows that labels violate by more than `slacks` times their rounding errors."""
        over = self.at_most.coefficients @ y - self.at_most.right > slacks * self.at_most.slack
        unequal = np.abs(self.equal.coefficients @ y - self.equal.right) > slacks * self.equal.slack
        found = [*np.array(self.at_most.names, dtype=object)[over], *np.array(self.equal.names, dtype=object)[unequal]]
        return list(dict.fromkeys(found))

    def are_contradicted(self, signs: Array) -> bool:
        """Whether no labels with these signs, in {-1, 0, 1} with 0 for free ones, satisfy the rows."""
        free = np.where(signs == 0.0, 1.0, 0.0)
        (over, apart) = (rows.coefficients @ signs - rows.right for rows in self)
        (room, play) = (abs(rows.coefficients) @ free + 8.0 * rows.slack for rows in self)
        return bool(np.any(over > room) or np.any(np.abs(apart) > play))

    def without(self, name: str) -> "LinearConstraints":
        """Return the rows of other names."""
        return LinearConstraints(*(rows.select([other != name for other in rows.names]) for rows in self))

    def on_signs(self, membership: Indices, sign: Array, anchor: int, m: int) -> "LinearConstraints":
        """Return the rows on the signs of chunklets, see `LinearRows`."""
        return LinearConstraints(*(rows.on_signs(membership, sign, anchor, m) for rows in self))


def linear_rows(A: Any, b: Any, names: Sequence[str]) -> LinearRows:
    """Return rows scaled by powers of two, without zeros.

    A right side out of reach of all labels is replaced by twice the largest sum of its row, which is equivalent.
    """
    coefficients, right = scipy.sparse.csr_array(A, dtype=np.float64), np.asarray(b, dtype=np.float64)
    coefficients.sum_duplicates()
    coefficients.eliminate_zeros()
    coefficients.sort_indices()
    largest = abs(coefficients).max(axis=1).toarray().ravel() if len(right) else right
    exponents, lengths = np.frexp(np.where(largest > 0.0, largest, 1.0))[1] - 1, np.diff(coefficients.indptr)
    coefficients.data = np.ldexp(coefficients.data, -np.repeat(exponents, lengths))
    most = np.asarray(abs(coefficients).sum(axis=1)).ravel()
    with np.errstate(over="ignore"):
        scaled = np.ldexp(right, -exponents)
    right = np.where(lengths > 0, np.clip(scaled, -2.0 * most, 2.0 * most), np.sign(right))
    # Sums of multiples of one unit are exact as long as they are not too large.
    size = most + np.abs(right)
    inexact = coefficients.copy()
    inexact.data = np.abs(coefficients.data - np.round(coefficients.data / EXACT_UNIT) * EXACT_UNIT)
    remainders = np.asarray(inexact.sum(axis=1)).ravel() + np.abs(right - np.round(right / EXACT_UNIT) * EXACT_UNIT)
    slack = np.where((remainders == 0.0) & (size < EXACT_SUM), 0.0, 4.0 * (lengths + 8) * UNIT_ROUNDOFF * size)
    return LinearRows(coefficients, right, slack, tuple(names))


def join_linear(parts: Iterable[LinearRows], n: int) -> LinearRows:
    """Return the rows of all parts, on n points."""
    nothing = linear_rows(scipy.sparse.csr_array((0, n)), np.zeros(0), ())
    coefficients, rights, slacks, names = zip(nothing, *parts, strict=True)
    together = scipy.sparse.csr_array(scipy.sparse.vstack(coefficients))
    return LinearRows(together, np.concatenate(rights), np.concatenate(slacks), tuple(chain.from_iterable(names)))


def read_linear(given: Any, name: str) -> tuple[Sparse, Array]:
    """Return coefficients, (k, n), and right sides, (k,), of rows given as a pair; one row may be a vector."""
    try:
        matrix, right = given
    except (TypeError, ValueError):
        raise DataError(f"{name} is not a pair. Pass (A, b) with A of shape (k, n) and b of shape (k,).") from None
    try:
        if not scipy.sparse.issparse(matrix):
            matrix = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
        A = scipy.sparse.csr_array(matrix, dtype=np.float64)
        b = np.atleast_1d(np.asarray(right, dtype=np.float64))
    except (TypeError, ValueError):
        raise DataError(f"{name} does not contain numbers. Pass (A, b) with A of shape (k, n).") from None
    if A.ndim != 2 or b.shape != (A.shape[0],):
        raise DataError(f"{name} has {A.shape[0]} rows and right sides of shape {b.shape}. Pass one number per row.")
    wrong = np.flatnonzero(~np.isfinite(np.asarray(A.sum(axis=1)).ravel() + b))
    if len(wrong) or not np.all(np.isfinite(A.data)):
        raise DataError(f"{name} contains NaN or infinity in row {wrong[0] if len(wrong) else 0}. Remove the row.")
    if max(np.abs(A.data).max(initial=0.0), np.abs(b).max(initial=0.0)) > 1e100:
        raise DataError(f"{name} contains numbers above 1e100. Rescale its rows.")
    return A, b


def rows_of_some(at_most: Pair | None, equal: Pair | None, indices: Indices) -> tuple[Pair | None, Pair | None]:
    """Return the inequalities and equations on some of the points that those on all points imply.

    The other labels contribute at most the sum of the absolute values of their coefficients.  An equation with such
    coefficients becomes two inequalities; inequalities that hold for all labels are dropped.
    """
    (inequalities, equations), loose = [list[Pair](), list[Pair]()], list[Pair]()
    for pair, exact in ((at_most, inequalities), (equal, equations)):
        if pair is not None:
            (A, b), others = pair, np.setdiff1d(np.arange(pair[0].shape[1]), indices)
            reach, inside = (np.asarray(abs(A[:, part]).sum(axis=1)).ravel() for part in (others, indices))
            is_cut = reach > 0.0
            exact.append((A[~is_cut][:, indices], b[~is_cut]))
            for sign in (1.0,) if exact is inequalities else (1.0, -1.0):
                binds = is_cut & (sign * b + reach < inside)
                loose.append((sign * A[binds][:, indices], sign * b[binds] + reach[binds]))
    return tuple(join_pairs(parts) for parts in ([*inequalities, *loose], equations))  # type: ignore[return-value]


def join_pairs(parts: Sequence[Pair]) -> Pair | None:
    """Return the rows of all parts; None if there are none."""
    parts = [part for part in parts if len(part[1])]
    if not parts:
        return None
    matrices, rights = zip(*parts, strict=True)
    return scipy.sparse.csr_array(scipy.sparse.vstack(matrices)), np.concatenate(rights)


def read_index_lists(given: Any, name: str, least: int) -> tuple[Indices, ...]:
    """Return lists of points, each with at least `least` distinct ones."""
    made = []
    try:
        lists = list(given)
    except TypeError:
        raise DataError(f"{name} is not a list of lists of points. Pass for example {name}=[[0, 1, 2]].") from None
    for k, one in enumerate(lists):
        points = as_any(one, f"{name}[{k}]")
        if points.ndim != 1 or (points.size and not np.issubdtype(points.dtype, np.integer)):
            raise DataError(f"{name}[{k}] is not a list of integers. Number the points from 0.")
        if len(points) < least:
            count = "no point" if not len(points) else "one point"
            raise DataError(f"{name}[{k}] has {count}. Pass at least {('one', 'two')[least - 1]}.")
        values, counts = np.unique(points, return_counts=True)
        if np.any(counts > 1):
            raise DataError(f"{name}[{k}] contains point {values[counts > 1][0]} twice. Name each point once.")
        made.append(points.astype(np.intp))
    return tuple(made)


def read_sizes(sizes: Any) -> tuple[int, int]:
    """Return the smallest and the largest number of positive points."""
    try:
        low, high = sizes
        found = int(low), int(high)
        is_whole = found == (low, high)
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole:
        raise DataError(f"sizes is {sizes!r}. Pass (low, high), whole numbers of points with the label +1.")
    if not 0 <= found[0] <= found[1]:
        raise DataError(f"sizes is {sizes!r}. Pass (low, high) with 0 <= low <= high.")
    return found


def require_points(lists: Sequence[Indices], n: int, name: str) -> None:
    """Raise DataError if a list names a point that does not exist."""
    for k, points in enumerate(lists):
        outside = points[(points < 0) | (points >= n)]
        if len(outside):
            raise DataError(f"{name}[{k}] contains point {outside[0]}. The {n} points are numbered from 0 to {n - 1}.")


def bag_rows(bags: Sequence[Indices], n: int) -> LinearRows:
    """Return the rows -sum y_i <= size - 2: each bag has a point with the label +1."""
    sizes = np.array([len(bag) for bag in bags], dtype=np.intp)
    places = (np.repeat(np.arange(len(bags)), sizes), np.concatenate(bags))
    A = scipy.sparse.csr_array((-np.ones(len(places[0])), places), shape=(len(bags), n))
    return linear_rows(A, sizes - 2.0, [f"bags[{k}]" for k in range(len(bags))])


def order_rows(chains: Sequence[Indices], n: int) -> LinearRows:
    """Return the rows y_i - y_j <= 0 for neighbours i, j: labels may only rise along each chain."""
    before, after = (np.concatenate([path[part] for path in chains]) for part in (slice(-1), slice(1, None)))
    k = np.arange(len(before))
    entries = np.concatenate([np.ones(len(k)), -np.ones(len(k))])
    A = scipy.sparse.csr_array((entries, (np.tile(k, 2), np.concatenate([before, after]))), shape=(len(k), n))
    names = [f"order[{i}]" for i, path in enumerate(chains) for _ in path[1:]]
    return linear_rows(A, np.zeros(len(k)), names)


def size_rows(low: int, high: int, n: int) -> tuple[list[LinearRows], list[LinearRows]]:
    """Return inequalities, or one equation, on the number of points with the label +1."""
    if low > n:
        raise DataError(f"sizes asks for {low} of {n} points. Pass (low, high) with low <= {n}.")
    ones = np.ones((1, n))
    if low == high:
        return [], [linear_rows(ones, [2.0 * low - n], ["sizes"])]
    upper = [linear_rows(ones, [2.0 * high - n], ["sizes"])] if high < n else []
    lower = [linear_rows(-ones, [n - 2.0 * low], ["sizes"])] if low > 0 else []
    return [*upper, *lower], []
