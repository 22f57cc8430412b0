"""Problem (15) with V block diagonal along a partition; coordinates without an l1 weight are in every block."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_rows
from diffrac_cvx.points.factors import Factor, Sparse
from diffrac_cvx.points.linear_algebra import symmetric
from diffrac_cvx.points.rows import ColumnRows, Indices
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.base import OffDiagonalDual
from diffrac_cvx.problem.result import Labels

UNPENALIZED = -1  # label of a coordinate in no block


def labels_by_zeros(V: Factor) -> Labels:
    """Return the labels of the sets of coordinates between which a matrix is zero."""
    nonzeros = scipy.sparse.coo_array(V)
    return join_labels(np.arange(V.shape[0]), nonzeros.row, nonzeros.col)


def labels_of_pattern(U: Sparse) -> Labels:
    """Return the labels of the sets of coordinates between which UU' is zero for every factor with this pattern."""
    pattern = U.astype(bool).astype(float)
    return labels_by_zeros(pattern @ pattern.T)


def join_labels(labels: Labels, j: Indices, k: Indices) -> Labels:
    """Return the labels with the groups of these pairs of coordinates merged."""
    size = int(labels.max(initial=-1)) + 1
    graph = scipy.sparse.coo_array((np.ones(len(j), dtype=bool), (labels[j], labels[k])), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1][labels])


def number_by_first(labels: Labels) -> Labels:
    """Return labels >= 0 numbered from 0 by first appearance; -1 stays."""
    numbered = np.full(len(labels), UNPENALIZED)
    some = labels >= 0
    _, first, inverse = np.unique(labels[some], return_index=True, return_inverse=True)
    numbered[some] = np.argsort(np.argsort(first))[inverse]
    return numbered


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """Problem (15) with its coordinates split into a set E, by default those without an l1 weight, and the others, N.

    If E has no l1 weight, a V that is zero between blocks of N is a sum of positive semidefinite matrices, one for each
    block with E, because the graph of its entries is chordal.  Proofs eliminate E.
    """

    problem: DirectionProblem
    free: Indices  # (f0,), E, increasing
    penalized: Indices  # (m,), N, increasing

    @cached_property
    def a(self) -> Array:
        """Roots of the ridge on N, (m,)."""
        return self.problem.a[self.penalized]

    @cached_property
    def c(self) -> Array:
        """Roots of the l1 weights of N, (m,)."""
        return self.problem.c[self.penalized]

    def half_widths(self, j: Any, k: Any) -> Any:
        """Return the half-widths of the box divided by c_j c_k, at index arrays of N that broadcast."""
        penalty, N = self.problem.pair_penalty, self.penalized
        return 1.0 if penalty.has_unit_sides else penalty.half_widths(N[j], N[k])

    @cached_property
    def X(self) -> ColumnRows:
        """Columns of N, (n, m)."""
        return self.problem.X.in_columns().columns(self.columns)

    @cached_property
    def Y(self) -> ColumnRows:
        """Columns of N, of the rows whose Gram matrix is A."""
        return self.X if self.problem.Y is self.problem.X else self.problem.Y.in_columns().columns(self.columns)

    @property
    def columns(self) -> Indices | slice:
        """N, as a slice if it comes first, as it does if E is the offset alone: its columns are then a view."""
        is_first = len(self.penalized) == 0 or self.penalized[-1] == len(self.penalized) - 1
        return slice(len(self.penalized)) if is_first else self.penalized

    @cached_property
    def rows(self) -> ColumnRows:
        """Rows of X, followed by those of A if they differ: the rows to which `gram_weights` belong."""
        return self.X if self.Y is self.X else array_rows(np.vstack([self.X.array(), self.Y.array()]))

    @cached_property
    def n_terms(self) -> int:
        """Number of terms in sums over rows, or of their roundings."""
        X, Y = self.problem.X, self.problem.Y
        return max(X.n_gram_terms, Y.n_gram_terms) + self.problem.sums.max_size

    # E

    @cached_property
    def inner(self) -> DirectionProblem:
        """Problem (15) on E alone."""
        return self.problem if len(self.free) == len(self.problem.c) else self.problem.restrict(self.free)

    @cached_property
    def given(self) -> Array:
        """Columns of E of the matrix `rows`."""
        X, Y = self.inner.X, self.inner.Y
        return X.array() if Y is X else np.vstack([X.array(), Y.array()])

    @cached_property
    def whitened_rows(self) -> Array:
        """Columns of E of the matrix `rows`, in whitened coordinates."""
        return self.given @ self.inner.W

    @property
    def F(self) -> Array:
        """Columns of E in whitened coordinates, (n, f)."""
        return self.whitened_rows[: len(self.problem.X)]

    @cached_property
    def inner_diagonal(self) -> Array:
        """A_jj + c_j^2 on E, (f0,); 0, like S, on coordinates without any data or penalty."""
        return np.diag(self.inner.summed_A) + self.inner.c**2

    @property
    def used(self) -> Indices:
        """Positions in E of the coordinates with any data or penalty."""
        return np.flatnonzero(self.inner_diagonal > 0.0)

    def inner_sizes(self, u: Array, t: float, M: Array) -> Array:
        """Return h on E, (f0,), from M there: the absolute values of the terms of S_jk sum to at most h_j h_k."""
        squares = np.diag(M) + t * self.inner_diagonal
        return np.asarray(np.sqrt(self.inner.X.absolute_sum_bound(squares, t + float(np.mean(u)))))

    def project_inner(self, C: Array) -> Array:
        """Return a multiplier on E, projected onto the dual set; 0 on coordinates without any data or penalty."""
        used = self.inner_diagonal > 0.0
        return np.where(np.outer(used, used), self.inner.pair_penalty.project_safe(symmetric(C)), 0.0)

    # N

    def sizes(self, u: Array, t: float) -> Array:
        """Return h on N, (m,): the absolute values of the terms of S_jk sum to at most h_j h_k."""
        squares = t * self.diagonal + self.weighted_squares(u)
        return np.asarray(np.sqrt(self.rows.absolute_sum_bound(squares, t + float(np.mean(u)))))

    def gram_weights(self, u: Array, t: float) -> Array:
        """Return the weights of `rows` whose weighted Gram matrix is M - t (A - Diag(a)^2)."""
        if self.problem.Y is self.problem.X:
            return (u - t) / len(u)
        return np.append(u / len(u), np.full(len(self.problem.Y), -t / len(self.problem.Y)))

    def products(self, weights: Array, E: Array) -> Array:
        """Return E' Diag(weights) X for columns E of the matrix `rows`, (f, m)."""
        return np.asarray(self.rows.rmatvec(weights[:, None] * E).T * len(E))

    @cached_property
    def cross(self) -> Array:
        """A between N and E in whitened coordinates, shape (m, f)."""
        return self.Y.rmatvec(self.whitened_rows[-len(self.problem.Y) :])

    @cached_property
    def diagonal(self) -> Array:
        """A_jj + c_j^2, shape (m,): about 1, except for zero columns."""
        return np.asarray(self.Y.mean_squares() + self.a**2 + self.c**2)

    @cached_property
    def off_diagonal(self) -> OffDiagonalDual:
        """Dual set between E, in rows, and N, in columns."""
        return self.problem.pair_penalty.off_diagonal(self.free, self.penalized)

    @cached_property
    def squares(self) -> ColumnRows:
        """Squared entries of X."""
        return self.X.squares()

    def weighted_squares(self, u: Array) -> Array:
        """Return the diagonal of X' Diag(u) X / n, shape (m,)."""
        return self.squares.weighted_row_sum(u) / len(u)

    def labels_of(self, U: Factor) -> Labels:
        """Return the labels of the penalised coordinates along which UU' is block diagonal."""
        rows = scipy.sparse.csr_array(U)[self.penalized]
        return labels_by_zeros(rows @ rows.T)


def block_problem(problem: DirectionProblem, free: Indices | None = None) -> BlockProblem:
    """Return the problem split into these coordinates, by default those without an l1 weight, and the others."""
    free = np.flatnonzero(problem.c == 0.0) if free is None else free
    return BlockProblem(problem, free, np.setdiff1d(np.arange(len(problem.c)), free))


def scatter(U: Array, rows: Indices, size: int) -> Sparse:
    """Return a factor with these rows and zeros elsewhere."""
    positions = (np.repeat(rows, U.shape[1]), np.tile(np.arange(U.shape[1]), len(rows)))
    return scipy.sparse.csc_array((U.ravel(), positions), shape=(size, U.shape[1]))


def scatter_block(C: Array, places: Indices, size: int) -> Sparse:
    """Return a matrix with this block at these rows and columns, and zeros elsewhere."""
    pairs = (np.repeat(places, len(places)), np.tile(places, len(places)))
    return scipy.sparse.csr_array((C.ravel(), pairs), shape=(size, size))
