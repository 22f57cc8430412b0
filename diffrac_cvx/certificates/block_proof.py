"""Proof of lower bounds on (15) at a block diagonal V, rounding included.

Let F be the unpenalised coordinates.  At weights u and a number t the bound 1 - t mean(1/u) holds if
S = t (A + C + Diag(c)^2) - M is positive semidefinite for a C in its box.  F is eliminated; between the blocks t C is
what remains of M - t A, clipped to its box, so that S there is minus the excess of the pairs that violate their box.
It is enough that S is positive semidefinite on each component that blocks and such pairs form.  The caller chooses u,
t and C inside the blocks; the results of this module account for all rounding errors.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.block_problem import BlockProblem, IntegerArray, Partition
from diffrac_cvx.certificates.proof import Pencil
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import round_up, sum_error
from diffrac_cvx.points.linear_algebra import EPS, symmetric


class BlockData:
    """Problem and partition, with the columns of each block and F, and A + Diag(c)^2 on them."""

    def __init__(self, problem: BlockProblem, partition: Partition) -> None:
        self.problem, self.partition = problem, partition
        self.data = [problem.data_of(block) for block in partition.blocks]
        self.right = [problem.right_of(block, data) for block, data in zip(partition.blocks, self.data, strict=True)]

    def pencil(self, i: int, u: Array) -> Pencil:
        """Return the weighted Gram matrix of a block and F at weights u of the rows, and A + Diag(c)^2."""
        block, M = self.partition.blocks[i], symmetric(self.data[i].weighted_gram(u))
        M_error = self.problem.gram_error(block, M, self.problem.problem.largest_weight(u))
        return Pencil(M, self.right[i], M_error, self.problem.right_error(block, self.right[i]))


def with_multiplier(pencil: Pencil, C: Array) -> Pencil:
    """Return the pencil of a block with a multiplier, which must be in the dual set, added on the right."""
    right = pencil.right.copy()
    right[: len(C), : len(C)] += C
    return replace(pencil, right=right)


def single_ratios(problem: BlockProblem, u: Array, singles: IntegerArray) -> Array:
    """Return the largest generalised eigenvalue of (M, A + Diag(c)^2) on each single coordinate with F, shape (m1,).

    Each is slightly too large, to cover rounding.
    """
    n, top = problem.n_terms, problem.problem.largest_weight(u)
    column_error = problem.data_error(singles)
    M = problem.weighted_squares(u)[singles]
    sum_errors = sum_error(n + 8) * problem.X.absolute_sum_bound(M, float(np.mean(u)), singles)
    M = (np.sqrt(M + sum_errors) + top**0.5 * column_error) ** 2
    least = np.where(problem.diagonal > 0.0, problem.diagonal, 1.0)[singles]
    right = least * (1 - sum_error(n + 8)) - 2 * np.sqrt(least) * column_error
    if problem.F.shape[1] == 0:
        return np.asarray(M / right) * (1 + 8 * EPS)
    uF = u[:, None] * problem.F
    MF, Mcross, r = problem.F.T @ uF / len(u), problem.X.rmatvec(uF)[singles], problem.cross[singles]
    # Coordinates e_j - r_j on F make A + Diag(c)^2 diagonal.
    right = np.maximum(right - np.sum(r**2, axis=1), problem.c[singles] ** 2)
    residual = Mcross - r @ MF
    pencil = np.empty((len(singles), 1 + len(MF), 1 + len(MF)))
    pencil[:, 0, 0] = (M - np.sum((Mcross + residual) * r, axis=1)) / right
    pencil[:, 0, 1:] = pencil[:, 1:, 0] = residual / np.sqrt(right)[:, None]
    pencil[:, 1:, 1:] = MF
    # The differences have the rounding errors of their terms: M and A on the coordinate, over the remaining diagonal.
    terms = problem.X.absolute_sum_bound(M + least, 1.0 + float(np.mean(u)), singles) - least + np.trace(MF)
    mass = np.trace(pencil, axis1=1, axis2=2) + terms * (1.0 + least / right)
    found = np.linalg.eigvalsh(pencil)[:, -1]
    F_error = problem.whitened.right_error + 2 * top**0.5 * problem.whitened.data_error
    return np.asarray(found + 8 * (sum_error(n + 32) + F_error) * mass)


class Pairs(NamedTuple):
    """Pairs of coordinates j < k in different blocks, G_jk, and its bound, t c_j c_k or slightly less."""

    j: IntegerArray
    k: IntegerArray
    G: Array
    bound: Array

    @property
    def excess(self) -> Array:
        """Excess of |G_jk| over its bound, with the sign of G_jk; 0 inside the box."""
        with np.errstate(invalid="ignore"):  # G may be infinite or NaN
            return np.asarray(np.sign(self.G) * np.maximum(np.abs(self.G) - self.bound, 0.0))

    def take(self, indices: IntegerArray) -> "Pairs":
        """Return the pairs with these indices."""
        return Pairs(self.j[indices], self.k[indices], self.G[indices], self.bound[indices])

    def violated(self) -> "Pairs":
        """Return the pairs that violate their bound."""
        return self.take(np.flatnonzero(~(np.abs(self.G) <= self.bound)))


NO_PAIRS = Pairs(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0))


class SchurComplement(NamedTuple):
    """Schur complement of F at t, with bounds on its rounding errors."""

    problem: BlockProblem
    t: float
    gram_weights: Array  # of the rows, (u - t)/n if A is the Gram matrix of X
    K: Array  # (f, m), S_jF S_FF^-1 S_Fk = K_j'K_k
    relative_error: float = 0.0  # relative error of the sums
    condition: float = 1.0  # factor of the relative error of K_j'K_k
    entry_error: float = 0.0  # bound on the error of G_jk, over c_j c_k

    @property
    def bound(self) -> float:
        """Bound of the boxes over c_j c_k: t minus the error bound."""
        return self.t - self.entry_error


def eliminate(problem: BlockProblem, u: Array, t: float) -> SchurComplement | None:
    """Eliminate F from S = t (A + C + Diag(c)^2) - M; None if S is not positive definite on F."""
    if not np.isfinite(t):
        return None
    n, gram_weights, f = len(u), problem.gram_weights(u, t), problem.F.shape[1]
    values, vectors = np.linalg.eigh(t * np.eye(f) - problem.F.T @ (u[:, None] * problem.F) / n)
    top = problem.problem.largest_weight(u)
    error = t * problem.whitened.right_error + 4 * (t * top) ** 0.5 * problem.whitened.data_error
    least = float(values.min(initial=np.inf))
    if least <= 64 * f * sum_error(n + 32) * t + 4 * error:
        return None
    K = (vectors / np.sqrt(values)).T @ cross_products(problem, gram_weights)
    return with_error_bounds(SchurComplement(problem, t, gram_weights, K), u, 1.0 + 32 * f * t / least)


def cross_products(problem: BlockProblem, gram_weights: Array) -> Array:
    """Return M - t A between F and the penalised coordinates, shape (f, m)."""
    rows = problem.rows
    return np.asarray(rows.X.rmatvec(gram_weights[:, None] * rows.F).T * len(rows.F))


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def with_error_bounds(schur: SchurComplement, u: Array, condition: float) -> SchurComplement:
    """Return an elimination with bounds on the rounding errors of the pairs, from sums of absolute values."""
    problem, n, top = schur.problem, len(schur.gram_weights), schur.problem.problem.largest_weight(u)
    sizes, rows = np.abs(schur.gram_weights), problem.rows.X
    size = rows.absolute_sum_bound(rows.squares().weighted_row_sum(sizes), float(sizes.sum())) + condition * np.sum(
        schur.K**2, axis=0
    )
    # Times the error of F, S changes on F by at most 2 (t top)^1/2, beside it by (max(t, top) |w| x_j^2)^1/2.
    weight = 1.0 + 2.0 * (top / schur.t) ** 0.5 if len(schur.K) else 0.0
    relative_error = (
        sum_error(n + len(schur.K) + 32) + problem.whitened.right_error + weight * problem.whitened.data_error
    )
    # Centring errors of the columns change G_jk by at most this times their norms.
    centering_error = 2.0 * (schur.t + top) * problem.data_error(slice(None)) * np.sqrt(problem.diagonal)
    entry_error = float(np.max((relative_error * size + centering_error) / problem.c**2, initial=0.0))
    return schur._replace(relative_error=relative_error, condition=condition, entry_error=round_up(entry_error))


class ComponentMatrix(NamedTuple):
    """Component of blocks and violated pairs: its coordinates, S on them, and an error bound of S."""

    members: IntegerArray
    S: Array
    error: float


def component_matrices(
    blocks: BlockData, u: Array, C: list[Array], schur: SchurComplement, pairs: Pairs
) -> Iterator[ComponentMatrix]:
    """Yield S = t (A + C + Diag(c)^2) - M - K'K, with an error bound, on each component that the pairs form of blocks.

    Between the blocks C is G/t clipped to its box, so that S is minus the excess of the pairs there.
    """
    problem, partition = blocks.problem, blocks.partition
    joined = partition.join(pairs.j, pairs.k)
    excess, position = pairs.excess, np.zeros(len(problem.c), dtype=np.intp)
    M, eliminated = problem.weighted_squares(u), np.sum(schur.K**2, axis=0)
    diagonal = schur.t * problem.diagonal - M - eliminated
    sums = problem.rows.X.absolute_sum_bound(schur.t * problem.diagonal + M, schur.t + float(np.mean(u)))
    mass = 4.0 * schur.relative_error * (sums + schur.condition * eliminated)
    block_numbers = {int(partition.labels[block[0]]): i for i, block in enumerate(partition.blocks)}
    for group in involved_groups(joined, pairs):
        position[group] = np.arange(len(group))
        S = np.diag(diagonal[group])
        for label in np.unique(partition.labels[group]):
            if int(label) in block_numbers:
                i = block_numbers[int(label)]
                positions = position[partition.blocks[i]]
                S[np.ix_(positions, positions)] = block_matrix(blocks, u, C[i], schur, i)
        inside = joined.labels[pairs.j] == joined.labels[group[0]]
        j, k = position[pairs.j[inside]], position[pairs.k[inside]]
        S[j, k] = S[k, j] = -excess[inside]
        yield ComponentMatrix(group, S, float(mass[group].sum()))


def involved_groups(joined: Partition, pairs: Pairs) -> list[IntegerArray]:
    """Return the groups of the merged partition that contain a pair."""
    return [joined.groups[label] for label in np.unique(joined.labels[pairs.j])]


def block_matrix(blocks: BlockData, u: Array, C: Array, schur: SchurComplement, i: int) -> Array:
    """Return S = t (A + C + Diag(c)^2) - M - K'K on a block."""
    s, K = len(C), schur.K[:, blocks.partition.blocks[i]]
    M = blocks.data[i].columns(slice(s)).weighted_gram(u)
    return np.asarray(schur.t * (blocks.right[i][:s, :s] + C) - M - K.T @ K)
