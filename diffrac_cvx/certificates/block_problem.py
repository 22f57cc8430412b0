"""Problem (15) with V block diagonal along a partition; coordinates without an l1 weight are in every block."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import Sparse, dense
from diffrac_cvx.points.floating_point import WhiteningErrorBounds, round_up, sum_error, whitening_error_bounds
from diffrac_cvx.points.linear_algebra import psd_factor, symmetric, whitener
from diffrac_cvx.points.points import ColumnPoints
from diffrac_cvx.problem.direction_problem import DirectionProblem, with_chunklet_error
from diffrac_cvx.problem.penalties.pair_penalty import PairPenalty
from diffrac_cvx.problem.result import Labels

IntegerArray = npt.NDArray[np.signedinteger[Any]]
UNPENALIZED = -1  # label of a coordinate in no block


@dataclass(frozen=True, eq=False)
class Partition:
    """Partition of coordinates into blocks of two or more and single coordinates."""

    labels: IntegerArray

    @cached_property
    def groups(self) -> tuple[IntegerArray, ...]:
        """Coordinates by label, each group increasing."""
        order = np.argsort(self.labels, kind="stable")
        ends = np.flatnonzero(np.diff(self.labels[order])) + 1
        return tuple(np.split(order, ends))

    @cached_property
    def blocks(self) -> tuple[IntegerArray, ...]:
        """The groups of two or more coordinates."""
        return tuple(group for group in self.groups if len(group) > 1)

    @cached_property
    def singles(self) -> IntegerArray:
        """The single coordinates, increasing."""
        return np.flatnonzero(np.bincount(self.labels)[self.labels] == 1)

    @property
    def largest(self) -> int:
        """Size of the largest group."""
        return max((len(group) for group in self.groups), default=0)

    def join(self, j: IntegerArray, k: IntegerArray) -> "Partition":
        """Return the partition with the groups of these pairs of coordinates merged."""
        return Partition(np.unique(join_labels(self.labels, j, k), return_inverse=True)[1])


def partition_by_zeros(V: Sparse) -> Partition:
    """Return the partition into sets of coordinates between which a matrix is zero."""
    nonzeros = scipy.sparse.coo_array(V)
    return Partition(np.arange(V.shape[0])).join(nonzeros.row, nonzeros.col)


def join_labels(labels: Labels, j: IntegerArray, k: IntegerArray) -> Labels:
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
    """Problem (15) with its penalised coordinates separate from the unpenalised ones, which are in every block.

    A V that is zero between blocks is a sum of positive semidefinite matrices, one for each block with the unpenalised
    coordinates, because the graph of its entries is chordal.
    """

    X: ColumnPoints  # (n, m), the penalised columns
    F: Array  # (n, f), the unpenalised ones, in coordinates in which A is the identity on them
    a: Array  # (m,), ridge
    c: Array  # (m,), roots of the l1 weights
    basis: Array  # (f0, f), the problem's unpenalised coordinates from those of F
    penalized: IntegerArray  # (m,), the penalised coordinates in the problem
    free: IntegerArray  # (f0,), the unpenalised ones
    problem: DirectionProblem
    whitened: WhiteningErrorBounds  # error bounds of the coordinates of F
    gram: "Gram | None" = None  # the rows whose Gram matrix is A; None if they are those of X and F

    def data_error(self, columns: IntegerArray | slice) -> Array:
        """Return bounds on the errors of columns, in the Euclidean norm over sqrt(n), shape (m,)."""
        return np.asarray(sum_error(self.n_terms + 16) * np.sqrt(self.diagonal[columns]))

    @property
    def n_terms(self) -> int:
        """Number of terms in sums over rows."""
        return max(len(self.X), len(self.Y.X)) + self.problem.max_chunklet_size

    def gram_error(self, block: IntegerArray, M: Array, top: float) -> float:
        """Return an error bound of X'Diag(u)X/n on a block and F, with u at most `top`."""
        s = len(block)
        mass = float(self.X.absolute_sum_bound(np.diag(M)[:s], top, block).sum() + np.trace(M[s:, s:]))
        row_error = top**0.5 * (float(np.linalg.norm(self.data_error(block))) + self.whitened.data_error)
        return round_up(sum_error(self.n_terms + 8) * mass + (2.0 * mass**0.5 + row_error) * row_error)

    def right_error(self, block: IntegerArray, right: Array) -> float:
        """Return an error bound of A + Diag(c)^2 on a block and F."""
        return round_up(self.gram_error(block, right, 1.0) + self.whitened.right_error)

    @cached_property
    def Y(self) -> "Gram":
        """The rows whose Gram matrix is A."""
        return Gram(self.X, self.F) if self.gram is None else self.gram

    @cached_property
    def rows(self) -> "Gram":
        """The rows of X, followed by those of A if they differ: the rows that `gram_weights` weight."""
        if self.gram is None:
            return self.Y
        X = array_points(np.vstack([self.X.array(), self.gram.X.array()]))
        return Gram(X, np.vstack([self.F, self.gram.F]))

    def gram_weights(self, u: Array, t: float) -> Array:
        """Return the weights of `rows` whose weighted Gram matrix is M - t (A - Diag(a)^2)."""
        if self.gram is None:
            return (u - t) / len(u)
        return np.append(u / len(u), np.full(len(self.gram.X), -t / len(self.gram.X)))

    @cached_property
    def cross(self) -> Array:
        """A between the penalised and the other coordinates, shape (m, f)."""
        return self.Y.X.rmatvec(self.Y.F)

    @cached_property
    def diagonal(self) -> Array:
        """A_jj + c_j^2, shape (m,): about 1, except for zero columns."""
        return np.asarray(self.Y.X.mean_squares() + self.a**2 + self.c**2)

    @cached_property
    def squares(self) -> ColumnPoints:
        """Squared entries of X."""
        return self.X.squares()

    def weighted_squares(self, u: Array) -> Array:
        """Return the diagonal of X' Diag(u) X / n, shape (m,)."""
        return self.squares.weighted_row_sum(u) / len(u)

    def data_of(self, block: IntegerArray) -> ColumnPoints:
        """Return the columns of a block and those of F, (n, s + f)."""
        return self.X.columns(block).hstack(self.F)

    def right_of(self, block: IntegerArray, data: ColumnPoints) -> Array:
        """Return A + Diag(c)^2 on a block and F, shape (s + f, s + f), from the data of the block."""
        data = data if self.gram is None else self.gram.X.columns(block).hstack(self.gram.F)
        right = data.gram(np.ones(len(data))) / len(data)
        s = len(block)
        right[:s, :s] += np.diag(self.a[block] ** 2 + self.c[block] ** 2)
        right[s:, s:] = np.eye(right.shape[0] - s)
        return np.asarray(right)

    def pair_penalty_of(self, block: IntegerArray) -> PairPenalty:
        """Return the penalty on the pairs of a block."""
        return self.problem.structure.restrict(self.penalized[block]).pair_penalty(self.c[block])

    def factor(
        self, partition: Partition, weights: Array, intercepts: Array, free_factor: Array, factors: list[Array]
    ) -> Sparse:
        """Return the factor of V in the problem's coordinates.

        weights (m1,) and intercepts (m1, f) belong to the single coordinates, one column each; free_factor (f, r) to
        the unpenalised coordinates alone; factors (s + f, r) to the blocks.
        """
        D, m1, free = len(self.problem.c), len(weights), self.free
        single_entries = np.column_stack([weights, intercepts @ self.basis.T])
        rows = np.column_stack([self.penalized[partition.singles], np.tile(free, (m1, 1))])
        starts = np.arange(m1 + 1) * (1 + len(free))
        parts: list[Sparse] = [scipy.sparse.csc_array((single_entries.ravel(), rows.ravel(), starts), shape=(D, m1))]
        positions = [free, *(np.concatenate([self.penalized[block], free]) for block in partition.blocks)]
        for position, U in zip(positions, [free_factor, *factors], strict=True):
            s = len(U) - len(self.basis.T)
            parts.append(scatter(np.vstack([U[:s], self.basis @ U[s:]]), position, D))
        return scipy.sparse.csc_array(scipy.sparse.hstack(parts))

    def multiplier(self, partition: Partition, C: list[Array]) -> scipy.sparse.csr_array:
        """Return the multipliers of the blocks as one sparse matrix in the problem's coordinates."""
        D = len(self.problem.c)
        rows = [np.repeat(self.penalized[block], len(block)) for block in partition.blocks]
        columns = [np.tile(self.penalized[block], len(block)) for block in partition.blocks]
        if not rows:
            return scipy.sparse.csr_array((D, D))
        entries = np.concatenate([matrix.ravel() for matrix in C])
        return scipy.sparse.csr_array((entries, (np.concatenate(rows), np.concatenate(columns))), shape=(D, D))

    def partition_of(self, U: Sparse) -> Partition:
        """Return the partition of the penalised coordinates along which UU' is block diagonal."""
        rows = scipy.sparse.csr_array(U)[self.penalized]
        return partition_by_zeros(rows @ rows.T)

    def restrict_multiplier(self, partition: Partition, C: Sparse | None) -> list[Array]:
        """Return the entries of a multiplier inside the blocks, projected onto the dual set; 0 if C is None."""
        if C is None:
            return [np.zeros((len(block), len(block))) for block in partition.blocks]
        inside = scipy.sparse.csr_array(scipy.sparse.csr_array(C)[self.penalized][:, self.penalized])
        return [
            self.pair_penalty_of(block).project_safe(symmetric(dense(inside[block][:, block])))
            for block in partition.blocks
        ]


class Gram(NamedTuple):
    """Rows whose Gram matrix is A without the ridge: penalised columns, and the others in the coordinates of F."""

    X: ColumnPoints
    F: Array


def block_problem(problem: DirectionProblem, indices: IntegerArray | None = None) -> BlockProblem:
    """Return the problem with its unpenalised coordinates separate, or the one on `indices` with none separate."""
    free = np.flatnonzero(problem.c == 0.0) if indices is None else np.zeros(0, dtype=np.intp)
    penalized = np.flatnonzero(problem.c > 0.0) if indices is None else indices
    # The offset is last, so without other free columns the penalised ones are a view.
    contiguous = len(penalized) == 0 or penalized[-1] == len(penalized) - 1
    columns: IntegerArray | slice = slice(len(penalized)) if contiguous else penalized
    X, Y = problem.X.in_columns(), problem.Y.in_columns()
    F, FY = X.dense_columns(free), Y.dense_columns(free)
    root = np.vstack([FY / len(FY) ** 0.5, np.diag(problem.a[free])])
    basis = whitener(root) if len(free) else np.zeros((0, 0))
    whitened = whitening_error_bounds(FY, basis, FY @ basis, problem.a[free] ** 2)
    return BlockProblem(
        X=X.columns(columns),
        F=F @ basis,
        a=problem.a[penalized],
        c=problem.c[penalized],
        basis=basis,
        penalized=penalized,
        free=free,
        problem=problem,
        whitened=with_chunklet_error(whitened, problem.max_chunklet_size, FY, basis),
        gram=None if problem.Y is problem.X else Gram(Y.columns(columns), FY @ basis),
    )


def factor_by_blocks(problem: DirectionProblem, V: Array | Sparse) -> Sparse | None:
    """Return a sparse factor of a block diagonal V; None if a block has more than half of the coordinates.

    V is in the problem's coordinates, and projected block by block if it is not positive semidefinite.
    """
    if not problem.has_l1 or not problem.structure.is_elementwise:
        return None
    penalized, free = np.flatnonzero(problem.c > 0.0), np.flatnonzero(problem.c == 0.0)
    rows = scipy.sparse.csr_array(V)
    inside = rows[penalized][:, penalized]
    partition = partition_by_zeros(inside)
    if 2 * partition.largest > len(penalized):
        return None
    remainder = dense(rows[free][:, free])
    columns = []
    for group in partition.groups:
        U = psd_factor(dense(inside[group][:, group]), rtol=1e-16)
        cross = dense(rows[free][:, penalized[group]]) @ U / np.maximum(np.sum(U**2, axis=0), 1e-300)
        remainder -= cross @ cross.T
        columns.append(scatter(np.vstack([U, cross]), np.concatenate([penalized[group], free]), len(problem.c)))
    if len(free):
        columns.append(scatter(psd_factor(remainder), free, len(problem.c)))
    factor = scipy.sparse.csc_array(scipy.sparse.hstack(columns))
    factor.eliminate_zeros()
    return factor


def scatter(U: Array, rows: IntegerArray, size: int) -> Sparse:
    """Return a factor with these rows and zeros elsewhere."""
    positions = (np.repeat(rows, U.shape[1]), np.tile(np.arange(U.shape[1]), len(rows)))
    return scipy.sparse.csc_array((U.ravel(), positions), shape=(size, U.shape[1]))
