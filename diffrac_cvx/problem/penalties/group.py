r"""Relaxed squared group norm, (sum_g w_g |v_g|)^2 -> sum_gh w_g w_h |V_gh|_*, with nuclear norms of the blocks.

The dual set contains the C whose blocks have spectral norm at most w_g w_h; on the diagonal the penalty is
w_g^2 tr V_gg.  It is the largest function that is convex in V, equals the squared group norm at V = vv', and has the
form sum_gh w_g w_h |V_gh| with unitarily invariant norms: the nuclear norm is the largest of these at higher rank.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense, scale_rows
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, round_up, sum_error
from diffrac_cvx.points.linear_algebra import inverse_or_one, momentum, times
from diffrac_cvx.points.rows import Indices, Mask
from diffrac_cvx.problem.penalties.base import INSIDE_BOX, OffDiagonalDual, PairPenalty

Places = tuple[Indices, Indices]  # index of k blocks of one shape in a matrix, (k, p, q)


class GroupNorms(PairPenalty):
    """Weighted sum of the nuclear norms of the blocks of V between groups; c is constant within a group."""

    is_box = False

    @cached_property
    def bounds(self) -> Array:
        """Bounds w_g w_h of the spectral norms of the blocks of C, (groups, groups)."""
        return np.outer(self.weights, self.weights)

    @cached_property
    def same_group(self) -> Mask:
        """Mask of the pairs of coordinates of one group, (D, D)."""
        return np.asarray(self.labels[:, None] == self.labels)

    def blocks(self, mask: Mask | None = None) -> Iterator[tuple[Indices, Indices, Places]]:
        """Yield the pairs of groups g < h, or those of a mask, by the shape of their blocks, with their places."""
        return blocks_by_shape(self.groups, self.groups, np.triu(self.bounds >= 0.0, 1) if mask is None else mask)

    def project_safe(self, C: Array) -> Array:
        C = np.array((C + C.T) / 2)
        C[self.same_group] = 0.0
        for places, bound in violated_blocks(C, self, self):
            C[places] = C.T[places] = project_spectral_ball(C[places], bound)
        return C

    def project_inexact(self, C: Array) -> Array:
        C[self.same_group] = 0.0
        for places, bound in violated_blocks(C, self, self):
            C[places] = C.T[places] = clip_singular_values(C[places], bound * INSIDE_BOX)
        return C

    def subgradient(self, V: Array, threshold: float, slack: Array) -> Array:
        roots = np.sqrt([max(float(np.trace(V[np.ix_(group, group)])), 1e-300) for group in self.groups])
        size = np.empty(len(V))
        for group, root, weight in zip(self.groups, roots, self.weights, strict=True):
            size[group] = weight / root
        return self.project_safe(slack + V * np.outer(size, size) / threshold)

    def zero_inactive(self, V: Array, C: Array) -> Array:
        V = V.copy()
        for g, h, places in self.blocks():
            inside = largest_singular_values(C[places]) < self.bounds[g, h] * (1.0 - 1e-9)
            V[places] = V.T[places] = np.where(inside[:, None, None], 0.0, V[places])
        return V

    def value(self, U: Factor) -> float:
        rows, found = dense(scale_rows(U, self.c)), np.zeros((len(self.groups), len(self.groups)))
        norms = np.array([np.linalg.norm(rows[group]) for group in self.groups])
        if rows.shape[1] == 1:
            return float(np.outer(norms, norms).sum())
        nonzero = np.flatnonzero(norms)
        parts = [rows[self.groups[g]] for g in nonzero]
        parts = [np.asarray(np.linalg.qr(part, mode="r")) if len(part) > part.shape[1] else part for part in parts]
        lengths = np.array([len(part) for part in parts])
        for i, (g, part) in enumerate(zip(nonzero, parts, strict=True)):
            for length in np.unique(lengths[i + 1 :]):
                same = i + 1 + np.flatnonzero(lengths[i + 1 :] == length)
                products = times(part, np.vstack([parts[k] for k in same]).T).reshape(len(part), len(same), -1)
                found[g, nonzero[same]] = found[nonzero[same], g] = nuclear_norms(products.transpose(1, 0, 2))
        found[np.diag_indices(len(found))] = norms**2
        return float(found.sum())

    def value_error_bound(self, U: Factor) -> float:
        rows, r = dense(scale_rows(U, self.c)), U.shape[1]
        norms = np.array([np.linalg.norm(rows[group]) for group in self.groups])
        largest = max((len(group) for group in self.groups), default=0)
        # The product, the QR factorisation and the singular values of a block have errors of a few roundings times its
        # size, relative to the norms of both factors; a block has at most `largest` singular values.
        k = (largest + 1.0) ** 0.5 * (r + 8) + (largest + 1.0) ** 1.5 * 32
        return round_up(sum_error(k + len(norms)) * float(norms.sum()) ** 2, len(rows) + 8)

    def support_function(self, V: Array) -> float:
        return 2.0 * sum(float(self.bounds[g, h] @ nuclear_norms(V[places])) for g, h, places in self.blocks())

    def dual_norms(self, G: Array) -> Array:
        found = np.zeros((len(self.groups), len(self.groups)))
        for g, h, places in self.blocks():
            found[g, h] = found[h, g] = largest_singular_values(G[places])
        return found

    def off_diagonal(self, rows: Indices, columns: Indices) -> OffDiagonalDual:
        if np.isin(self.labels[rows], self.labels[columns]).any():
            raise ValueError("a group is split between rows and columns: C is 0 inside it, so no bound follows.")
        return GroupOffDiagonal(self, rows, columns)

    def cvxpy_value(self, cp: Any, V: Any) -> Any:
        groups = self.groups
        pairs = [(g, h) for g in range(len(groups)) for h in range(g) if self.bounds[g, h] > 0.0]
        norms = [self.bounds[g, h] * cp.normNuc(V[groups[g], :][:, groups[h]]) for g, h in pairs]
        return cp.sum(cp.multiply(self.c**2, cp.diag(V))) + 2.0 * sum(norms)


class GroupOffDiagonal(OffDiagonalDual):
    """Spectral-norm balls |C_gh| <= w_g w_h between the groups g of row coordinates and h of column coordinates."""

    @cached_property
    def parts(self) -> tuple[PairPenalty, PairPenalty]:
        """Penalties on the rows and on the columns."""
        return self.penalty.restrict(self.rows), self.penalty.restrict(self.columns)

    def project_safe(self, tC: Array, t: float) -> Array:
        tC = tC.copy()
        for places, bound in violated_blocks(tC, *self.parts, t):
            tC[places] = project_spectral_ball(tC[places], bound)
        return tC

    def violated_columns(self, T: Array, t: float) -> Indices:
        found = [places[1].ravel() for places, _ in violated_blocks(T, *self.parts, t)]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.intp)

    def residuals(self, P: Array, T: Array, t: float) -> Array:
        values = np.linalg.eigvalsh(P)
        if values[0] <= 0.0:  # then no choice of the multiplier gives a certificate
            return T
        step, Z = 1.0 / float(values[-1]), np.zeros_like(T)
        extrapolated, length = Z, 1.0
        for _ in range(100):  # accelerated proximal steps, until the relative change is small
            check_deadline()
            moved, previous, Z = extrapolated - step * (P @ extrapolated - T), Z, np.zeros_like(T)
            for places, bound in violated_blocks(moved, *self.parts, t * step):
                Z[places] = moved[places] - clip_singular_values(moved[places], bound)
            if np.linalg.norm(Z - previous) <= 1e-4 * np.linalg.norm(Z):
                break
            length, weight = momentum(1.0 if np.vdot(extrapolated - Z, Z - previous) > 0.0 else length)
            extrapolated = Z + weight * (Z - previous)
        return np.asarray(T - P @ Z)


def violated_blocks(
    T: Array, rows: PairPenalty, columns: PairPenalty, t: float = 1.0
) -> Iterator[tuple[Places, Array]]:
    """Yield the places of the blocks that may violate t times the dual set, with their bounds t w_g w_h.

    If rows and columns are the same, these are the blocks above the diagonal.
    """
    bounds = t * np.outer(rows.weights, columns.weights)
    mask = block_norms(T, rows.groups, columns.groups) > bounds * (1.0 - 1e-9)
    mask = np.triu(mask, 1) if rows is columns else mask
    for g, h, places in blocks_by_shape(rows.groups, columns.groups, mask):
        yield places, bounds[g, h]


def blocks_by_shape(
    rows: list[Indices], columns: list[Indices], mask: Mask
) -> Iterator[tuple[Indices, Indices, Places]]:
    """Yield the pairs (g, h) of a mask, groups of rows and groups of columns, and the places of their blocks."""
    (first, row_sizes), (second, column_sizes) = starts_and_sizes(rows), starts_and_sizes(columns)
    row_order, column_order = (np.concatenate([np.zeros(0, dtype=np.intp), *groups]) for groups in (rows, columns))
    g, h = np.nonzero(mask)
    shapes = row_sizes[g] * (column_sizes.max(initial=0) + 1) + column_sizes[h]
    for shape in np.unique(shapes):
        i, j = g[shapes == shape], h[shapes == shape]
        row_places = row_order[first[i][:, None, None] + np.arange(row_sizes[i[0]])[:, None]]
        yield i, j, (row_places, column_order[second[j][:, None, None] + np.arange(column_sizes[j[0]])])


def starts_and_sizes(groups: list[Indices]) -> tuple[Indices, Indices]:
    """Return the position of the first coordinate of each group in their concatenation, and the sizes of the groups."""
    sizes = np.array([len(group) for group in groups], dtype=np.intp)
    return np.cumsum(sizes) - sizes, sizes


def block_norms(C: Array, rows: list[Indices], columns: list[Indices] | None = None) -> Array:
    """Return the Frobenius norms of the blocks of a matrix between groups of rows and groups of columns."""
    squares = np.square(C)
    for axis, groups in enumerate((rows, rows if columns is None else columns)):
        order = np.concatenate([np.zeros(0, dtype=np.intp), *groups])
        squares = squares if np.array_equal(order, np.arange(len(order))) else np.take(squares, order, axis=axis)
        squares = np.add.reduceat(squares, starts_and_sizes(groups)[0], axis=axis) if len(order) else squares
    return np.asarray(np.sqrt(squares))


def clip_singular_values(blocks: Array, bound: Array) -> Array:
    """Return blocks, (k, p, q), with singular values above their bound clipped to it, approximately."""
    if blocks.shape[1] > blocks.shape[2]:
        return clip_singular_values(blocks.transpose(0, 2, 1), bound).transpose(0, 2, 1)
    values, Q = np.linalg.eigh(blocks @ blocks.transpose(0, 2, 1))
    sizes = np.sqrt(np.maximum(values, 0.0))
    factors = np.minimum(1.0, bound[:, None] * inverse_or_one(sizes))
    return np.asarray((Q * factors[:, None, :]) @ (Q.transpose(0, 2, 1) @ blocks))


def project_spectral_ball(blocks: Array, bound: Array) -> Array:
    """Return nearly the projections of blocks, (k, p, q), with spectral norms at most the bound, rounding included."""
    blocks = clip_singular_values(blocks, bound * INSIDE_BOX)
    norms = largest_singular_values(blocks)
    inside = bound * (INSIDE_BOX - 4.0 * UNIT_ROUNDOFF * min(blocks.shape[1:]) ** 0.5)  # the product rounds
    return np.asarray(blocks * np.where(norms > inside, inside / np.maximum(norms, 1e-300), 1.0)[:, None, None])


def largest_singular_values(blocks: Array) -> Array:
    """Return upper bounds on the largest singular values of blocks, (k, p, q)."""
    if blocks.shape[1] > blocks.shape[2]:
        blocks = blocks.transpose(0, 2, 1)
    grams = blocks @ blocks.transpose(0, 2, 1)
    mass = np.trace(grams, axis1=1, axis2=2)
    error = sum_error(blocks.shape[2] + 16 * blocks.shape[1] + 32) * mass
    return np.asarray(round_up(np.sqrt(np.linalg.eigvalsh(grams)[:, -1].clip(0.0) + error)))


def nuclear_norms(blocks: Array) -> Array:
    """Return the sums of the singular values of blocks, (k, p, q)."""
    return np.asarray(np.linalg.svd(blocks, compute_uv=False).sum(axis=-1))
