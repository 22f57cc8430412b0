r"""Relaxed squared group norm, (sum_g w_g |v_g|)^2 -> sum_gh w_g w_h |V_gh|_*, with nuclear norms of the blocks.

The dual set contains the C whose blocks have spectral norm at most w_g w_h; on the diagonal the penalty is
w_g^2 tr V_gg.  It is the largest function that is convex in V, equals the squared group norm at V = vv', and has the
form sum_gh w_g w_h |V_gh| with unitarily invariant norms: the nuclear norm is the largest of these at higher rank.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense, scale_rows
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, round_up, sum_error
from diffrac_cvx.points.linear_algebra import inverse_or_one, momentum, times
from diffrac_cvx.points.points import Indexer, Mask
from diffrac_cvx.problem.penalties.base import INSIDE_BOX, Expression, IndexArray, OffDiagonalDual, PairPenalty
from diffrac_cvx.problem.penalties.l1 import L1

ACTIVE_TOLERANCE = 1e-9  # relative distance from its bound at which a spectral norm counts as equal to it
GROUP_LASSO_STEPS, GROUP_LASSO_TOLERANCE = 100, 1e-4  # steps, and relative change at which they stop


class BlockPairs(NamedTuple):
    """Blocks of one shape with their positions: groups of one size against groups of another."""

    g: IndexArray  # (k,), first groups
    h: IndexArray  # (k,), second groups
    rows: IndexArray  # (k, p), coordinates of the first groups
    columns: IndexArray  # (k, q), and of the second groups
    bound: Array  # (k,), w_g w_h

    def blocks_of(self, C: Array) -> Array:
        """Return these blocks of a matrix, (k, p, q)."""
        return np.asarray(C[self.rows[:, :, None], self.columns[:, None, :]])

    def take(self, mask: Mask) -> "BlockPairs":
        """Return the blocks selected by a mask."""
        return BlockPairs(self.g[mask], self.h[mask], self.rows[mask], self.columns[mask], self.bound[mask])

    def put(self, C: Array, blocks: Array) -> None:
        """Write these blocks into C."""
        C[self.rows[:, :, None], self.columns[:, None, :]] = blocks

    def put_symmetric(self, C: Array, blocks: Array) -> None:
        """Write these blocks and their transposes into C; those on the diagonal are made symmetric."""
        if np.array_equal(self.g, self.h):
            blocks = (blocks + blocks.transpose(0, 2, 1)) / 2
        self.put(C, blocks)
        C[self.columns[:, :, None], self.rows[:, None, :]] = blocks.transpose(0, 2, 1)


class GroupNorms(PairPenalty):
    """Weighted sum of the nuclear norms of the blocks of V between groups; c is constant within a group."""

    has_off_diagonal = True
    labels: IndexArray

    def restrict(self, indices: Indexer) -> PairPenalty:
        labels = self.labels[indices]
        if len(np.unique(labels)) == len(labels):
            return L1(self.c[indices], diagonal=self.diagonal)
        return GroupNorms(self.c[indices], labels, diagonal=self.diagonal)

    @cached_property
    def pairs(self) -> list[BlockPairs]:
        """Pairs of groups g < h, by the shape of their blocks."""
        return block_pairs(self, self, np.less)

    def violated(self, C: Array) -> Iterator[BlockPairs]:
        """Return the pairs whose blocks may violate their bound."""
        diagonal = block_pairs(self, self, np.equal) if self.diagonal else []
        return violated_pairs([*self.pairs, *diagonal], block_norms(C, self.groups))

    def zero_diagonal_blocks(self, C: Array) -> Array:
        """Set the blocks on the diagonal to 0, which they are in K, unless `diagonal` includes them."""
        if not self.diagonal:
            C *= self.different_group
        return C

    @cached_property
    def different_group(self) -> Array:
        """1 between coordinates of different groups, (D, D)."""
        return np.asarray(self.labels[:, None] != self.labels, dtype=np.float64)

    def project_safe(self, C: Array) -> Array:
        C = self.zero_diagonal_blocks(np.array((C + C.T) / 2))
        for pair in self.violated(C):
            pair.put_symmetric(C, project_spectral_ball(pair.blocks_of(C), pair.bound))
        return C

    def project_inexact(self, C: Array) -> Array:
        self.zero_diagonal_blocks(C)
        for pair in self.violated(C):
            pair.put_symmetric(C, clip_singular_values(pair.blocks_of(C), pair.bound * INSIDE_BOX))
        return C

    def subgradient(self, V: Array, threshold: float, slack: Array) -> Array:
        roots = np.sqrt([max(float(np.trace(V[np.ix_(group, group)])), 1e-300) for group in self.groups])
        size = np.empty(len(V))
        for group, root, weight in zip(self.groups, roots, self.weights, strict=True):
            size[group] = weight / root
        return self.project_safe(slack + V * np.outer(size, size) / threshold)

    def zero_inactive(self, V: Array, C: Array) -> Array:
        V = V.copy()
        for pair in self.pairs:
            inside = largest_singular_values(pair.blocks_of(C)) < pair.bound * (1.0 - ACTIVE_TOLERANCE)
            pair.put_symmetric(V, np.where(inside[:, None, None], 0.0, pair.blocks_of(V)))
        return V

    def value(self, U: Factor) -> float:
        return float(self.nuclear_norms_of_blocks(scale_rows(U, self.c)).sum())

    def nuclear_norms_of_blocks(self, U: Factor) -> Array:
        """Return the nuclear norms of the blocks of UU', (G, G)."""
        rows, found = dense(U), np.zeros((len(self.groups), len(self.groups)))
        norms = np.array([np.linalg.norm(rows[group]) for group in self.groups])
        if rows.shape[1] == 1:
            return np.outer(norms, norms)
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
        return found

    def sums_of_norms(self, U: Factor) -> tuple[Array, Array]:
        norms = self.nuclear_norms_of_blocks(U)
        return norms @ self.weights, np.diag(norms)

    def value_error_bound(self, U: Factor) -> float:
        rows, r = dense(scale_rows(U, self.c)), U.shape[1]
        norms = np.array([np.linalg.norm(rows[group]) for group in self.groups])
        largest = max((len(group) for group in self.groups), default=0)
        # The product, the QR factorisation and the singular values of a block have errors of a few roundings times its
        # size, relative to the norms of both factors; a block has at most `largest` singular values.
        k = (largest + 1.0) ** 0.5 * (r + 8) + (largest + 1.0) ** 1.5 * 32
        return round_up(sum_error(k + len(norms)) * float(norms.sum()) ** 2, len(rows) + 8)

    def support_function(self, V: Array) -> float:
        total = 2.0 * sum(float(pair.bound @ nuclear_norms(pair.blocks_of(V))) for pair in self.pairs)
        return total + float(self.c**2 @ np.diag(V)) if self.diagonal else total

    def dual_norms(self, G: Array) -> Array:
        found = np.zeros((len(self.groups), len(self.groups)))
        for pair in self.pairs:
            found[pair.g, pair.h] = found[pair.h, pair.g] = largest_singular_values(pair.blocks_of(G))
        return found

    def off_diagonal(self, rows: IndexArray, columns: IndexArray) -> OffDiagonalDual:
        if np.isin(self.labels[rows], self.labels[columns]).any():
            raise ValueError("a group is split between rows and columns: C is 0 inside it, so no bound follows")
        return GroupOffDiagonal(self.restrict(rows), self.restrict(columns))

    def expression(self, cp: Any, V: Any, scale: Any) -> Expression:
        """Return the CVXPY expression, with copies of the off-diagonal blocks, whose multipliers give C."""
        singles = np.concatenate([np.zeros(0, dtype=np.intp), *(group for group in self.groups if len(group) == 1)])
        larger = [group for group in self.groups if len(group) > 1]
        terms, constraints, places = [cp.sum(cp.multiply(self.c**2, cp.diag(V)))], [], []

        def copies(first: IndexArray, second: IndexArray) -> Iterator[Any]:
            if self.c[first].any() and self.c[second].any():
                block = cp.Variable((len(first), len(second)))
                constraints.append(block == V[first, :][:, second])
                places.append(np.ix_(first, second))
                yield block

        for i, group in enumerate(larger):
            weights = float(self.c[group[0]]) * self.c
            terms += [2 * weights[singles] @ cp.norm(block, 2, axis=1) for block in copies(singles, group)]
            for other in larger[i + 1 :]:
                terms += [2 * float(weights[other[0]]) * cp.normNuc(block) for block in copies(group, other)]
        if len(singles) > 1:
            upper = np.triu(np.outer(self.c[singles], self.c[singles]), 1)
            terms += [2 * cp.sum(cp.multiply(upper, cp.abs(block))) for block in copies(singles, singles)]

        def multiplier() -> Array | None:
            C = self.zero()
            for place, constraint in zip(places, constraints, strict=True):
                if constraint.dual_value is None:
                    return None
                C[place] = -np.asarray(constraint.dual_value)
            return C

        return Expression(scale * cp.sum(cp.hstack(terms)), constraints, multiplier)


class GroupOffDiagonal(OffDiagonalDual):
    """Spectral-norm balls |C_gh| <= w_g w_h between the groups g of row coordinates and h of column coordinates."""

    def __init__(self, rows: PairPenalty, columns: PairPenalty) -> None:
        self.rows, self.columns = rows, columns

    def project_safe(self, tC: Array, t: float) -> Array:
        tC = tC.copy()
        for pair in self.violated(tC, t):
            pair.put(tC, project_spectral_ball(pair.blocks_of(tC), pair.bound))
        return tC

    def violated_columns(self, T: Array, t: float) -> IndexArray:
        found = [pair.columns.ravel() for pair in self.violated(T, t)]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.intp)

    @cached_property
    def pairs(self) -> list[BlockPairs]:
        """Pairs of groups, by the shape of their blocks."""
        return block_pairs(self.rows, self.columns, lambda g, _h: g >= 0)

    def violated(self, T: Array, t: float) -> Iterator[BlockPairs]:
        """Return the pairs whose blocks may violate the dual set, with t times their bounds."""
        return violated_pairs(self.pairs, block_norms(T, self.rows.groups, self.columns.groups), t)

    def prox(self, Z: Array, t: float) -> Array:
        found = np.zeros_like(Z)
        for pair in self.violated(Z, t):
            blocks = pair.blocks_of(Z)
            pair.put(found, blocks - clip_singular_values(blocks, pair.bound))
        return found

    def restrict(self, columns: IndexArray) -> "GroupOffDiagonal":
        return GroupOffDiagonal(self.rows, self.columns.restrict(columns))

    def best_multiplier(self, P: Array, T: Array, t: float) -> Array:
        # By accelerated proximal steps.
        values = np.linalg.eigvalsh(P)
        if values[0] <= 0.0:  # then no choice of the multiplier gives a certificate
            return T
        step, Z = 1.0 / float(values[-1]), np.zeros_like(T)
        extrapolated, length = Z, 1.0
        for _ in range(GROUP_LASSO_STEPS):
            check_deadline()
            previous, Z = Z, self.prox(extrapolated - step * (P @ extrapolated - T), t * step)
            if np.linalg.norm(Z - previous) <= GROUP_LASSO_TOLERANCE * np.linalg.norm(Z):
                break
            length, weight = momentum(1.0 if np.vdot(extrapolated - Z, Z - previous) > 0.0 else length)
            extrapolated = Z + weight * (Z - previous)
        return np.asarray(T - P @ Z)


def block_pairs(
    rows: PairPenalty, columns: PairPenalty, selects: Callable[[IndexArray, IndexArray], Mask]
) -> list[BlockPairs]:
    """Return the selected pairs of a group g of rows and a group h of columns, by the shape of their blocks."""
    found = []
    for some in by_size(rows.groups):
        for others in by_size(columns.groups):
            g, h = (index.ravel() for index in np.meshgrid(some, others, indexing="ij"))
            mask = selects(g, h)
            if mask.any():
                g, h = g[mask], h[mask]
                places = np.array([rows.groups[k] for k in g]), np.array([columns.groups[k] for k in h])
                found.append(BlockPairs(g, h, *places, rows.weights[g] * columns.weights[h]))
    return found


def by_size(groups: list[IndexArray]) -> list[IndexArray]:
    """Return the groups of equal size, by size."""
    sizes = np.array([len(group) for group in groups])
    return [np.flatnonzero(sizes == size) for size in np.unique(sizes)]


def violated_pairs(pairs: Iterable[BlockPairs], norms: Array, t: float = 1.0) -> Iterator[BlockPairs]:
    """Yield the pairs with a Frobenius norm beyond t times their bound, with this bound."""
    for pair in pairs:
        bound = t * pair.bound
        mask = norms[pair.g, pair.h] > bound * (1.0 - 1e-9)
        if mask.any():
            pair = pair._replace(bound=bound)
            yield pair if mask.all() else pair.take(mask)


def block_norms(C: Array, rows: list[IndexArray], columns: list[IndexArray] | None = None) -> Array:
    """Return the Frobenius norms of the blocks of a matrix between groups of rows and groups of columns."""
    squares = np.square(C)
    for axis, groups in enumerate((rows, rows if columns is None else columns)):
        order = np.concatenate([np.zeros(0, dtype=np.intp), *groups])
        squares = squares if np.array_equal(order, np.arange(len(order))) else np.take(squares, order, axis=axis)
        starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
        squares = np.add.reduceat(squares, starts, axis=axis) if len(order) else squares
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
