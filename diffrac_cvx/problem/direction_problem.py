"""Problem (15) in the space of directions, in well-conditioned coordinates for solvers and certificates."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, as_matrix, format_indices, warn_degenerate
from diffrac_cvx.points.dense import array_rows
from diffrac_cvx.points.exclusion import exclude, exclude_columns, is_rounding_noise
from diffrac_cvx.points.factors import Factor, Sparse, as_sparse, dense, is_sparse, scale_both, scale_rows, squared_norm
from diffrac_cvx.points.floating_point import (
    UNIT_ROUNDOFF,
    WhiteningErrorBounds,
    outside_norm_bound,
    round_up,
    sum_error,
)
from diffrac_cvx.points.linear_algebra import (
    LARGE_SIZE,
    inverse_or_one,
    power_of_two,
    psd_factor,
    triangular_root,
    whitener,
    whitener_of_gram,
    whitener_with_ridge,
)
from diffrac_cvx.points.rows import LazyFactor, Rows
from diffrac_cvx.points.table import NO_SUMS, Excluded, RowSums, Table
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Result

SOLVER_COPIES = 6  # number of copies of the data that a solver holds


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates of a problem: the user's matrix is ``L V L'``, and the offset, if any, is last."""

    scale: Array  # (d or d + 1,), scales the user's columns to norm about one: powers of two, so no rounding
    has_offset: bool  # whether the last column is the offset's: nu < 1
    excluded: Excluded | None = None  # the user's excluded columns, zero here, see `exclude`
    basis: Array | None = None  # L, (d or d + 1, D), if the coordinates are whitened; None if L = Diag(scale)

    @property
    def n_excluded(self) -> int:
        """Number of excluded, unpenalised columns: all certified bounds refer to X without them."""
        return 0 if self.excluded is None else len(self.excluded.columns)

    @property
    def factors(self) -> Array:
        """Factors that map unit columns to the user's: the scale, and 0 for excluded columns."""
        if self.excluded is None:
            return self.scale
        factors = self.scale.copy()
        factors[self.excluded.columns] = 0.0
        return factors

    def inverse_transform(self, U: Factor) -> Factor:
        """Return G with V = GG' in the user's coordinates."""
        return scale_rows(U, self.factors) if self.basis is None else np.asarray(self.basis @ U)

    def inverse_transform_multiplier(self, C: Factor) -> Factor:
        """Return a multiplier of the l1 penalty in the user's coordinates."""
        return scale_both(C, 1.0 / self.scale)

    def labels_factor(self, U: Factor, points: Array) -> LazyFactor:
        """Return the factor of labels for centred points in the user's units, which may be new points."""
        points = np.column_stack([points, np.ones(len(points))]) if self.has_offset else points
        rows = points * self.factors if self.basis is None else points @ self.basis
        return array_rows(rows).labels_factor(U)

    def scale_factor(self, G: Factor) -> Factor:
        """Return the factor of the user's V = GG' for columns of norm one; the offset's row may be missing."""
        size = len(self.scale)
        if self.has_offset and G.shape[0] == size - 1:
            G = scipy.sparse.csc_array(scipy.sparse.vstack([as_sparse(G), scipy.sparse.csc_array((1, G.shape[1]))]))
        if G.shape[0] != size:
            raise DataError(f"V has {G.shape[0]} rows. For these data and this nu, pass {size} rows.")
        G = G if self.excluded is None else self.excluded.eliminate(G)
        return scale_rows(G, 1.0 / self.scale)

    def transform_matrix(self, V: Array) -> Array:
        """Return the factor of the user's V in these coordinates, computed from its factor for columns of norm one.

        A factor of a badly scaled V would lose small entries.
        """
        size = len(self.scale)
        if V.shape not in ((size, size), (size - int(self.has_offset),) * 2):
            raise DataError(f"V has shape {V.shape}. For these data and this nu, pass shape ({size}, {size}).")
        scaled = dense(self.scale_factor(self.scale_factor(V).T))
        return dense(self.transform_factor(scale_rows(psd_factor(scaled, rtol=1e-16), self.scale)))

    def transform_factor(self, G: Factor) -> Factor:
        """Return the factor of the user's V = GG' in these coordinates."""
        G = self.scale_factor(G)
        if self.basis is None:
            return G
        # If directions are not unique, least squares drops exactly the part in the null space of X'X/n + Diag(a)^2.
        return np.asarray(np.linalg.lstsq(self.basis / self.scale[:, None], dense(G))[0])

    def transform_result(self, V: Result | npt.ArrayLike | Sparse, name: str = "V") -> Factor:
        """Return the factor of a result or of the user's matrix in these coordinates."""
        if not isinstance(V, Result):
            if is_sparse(V):
                require_memory(8.0 * V.shape[0] * V.shape[1], f"{name} as one block", "pass the result of a solver")
                V = dense(V)
            return self.transform_matrix(as_matrix(V, name))
        if V.G is None:
            raise DataError("the result has no V. Pass a result of low_rank, fista or solve(v_space(...)).")
        return self.transform_factor(V.G)


class PrimalPoint(NamedTuple):
    """Factor U at its optimal scale, with the objective of (15) and the quadratic forms of the rows."""

    U: Factor
    value: float
    q: Array  # (n,), x_i'UU'x_i; (0,) if X is streamed: not stored, nor sent between processes


@dataclass(frozen=True, eq=False)
class DirectionProblem:
    r"""Data of min 1 - 2 g(V) + tr VA + sum_ij c_i c_j |V_ij| over V >= 0, with g(V) = mean_i sqrt(x_i'Vx_i).

    The user's matrix is ``L V L'``: a change of coordinates that gives the columns unit scale if c > 0, and whitens
    them if c = 0 (then only the range of A matters, and A becomes the identity).  If c > 0, D x D matrices are computed
    lazily.

    X is in these coordinates, (n, D), with the offset's column if nu < 1, and Y has the rows whose Gram matrix is A.
    `Table.problem_rows` and `Table.weighted_rows` build X and Y: sums over their rows need no weights or constraints.
    """

    X: Rows  # R: the rows whose norms are averaged
    Y: Rows  # (k, D), A = its Gram matrix / k + Diag(a)^2; X itself without weights and constraints
    pair_penalty: PairPenalty  # in these coordinates; A_jj + c_j^2 is in [1/2, 2], except for zero columns
    coordinates: Coordinates
    sums: RowSums = NO_SUMS  # of the points in the rows of X
    root: Array | None = None  # any root of A, (k, D), if known
    whitened: WhiteningErrorBounds | None = None  # error bounds of the coordinates, if whitened

    @property
    def a(self) -> Array:
        """Roots of the ridge in these coordinates, (D,); 0 if whitened: then part of the identity."""
        return self.pair_penalty.a

    @property
    def c(self) -> Array:
        """Roots of the l1 weights, (D,)."""
        return self.pair_penalty.c

    @cached_property
    def whitening_error(self) -> WhiteningErrorBounds:
        """Error bounds of the whitened coordinates."""
        if self.whitened is not None:
            return self.whitened
        return whitening_error_of_rows(self, self.Z, self.W, self.a**2 + self.c**2)

    @cached_property
    def R(self) -> Array:
        """Upper triangular R with A = R'R, shape (D, D)."""
        if self.basis is not None:
            return np.eye(len(self.c))
        if self.root is not None:
            return triangular_root(self.root)
        return triangular_root(np.vstack([self.Y.array() / len(self.Y) ** 0.5, np.diag(self.a)]))

    @cached_property
    def A(self) -> Array:
        """A = X'X/n + Diag(a)^2, shape (D, D), from R if that is cheap: its eigenvalues have small relative errors."""
        return self.summed_A if self.is_large else self.R.T @ self.R

    @cached_property
    def summed_A(self) -> Array:
        """A as a sum over the rows: its entries have small errors relative to their terms, as proofs require."""
        if self.basis is not None:
            return np.eye(len(self.c))
        return self.Y.second_moment() + np.diag(self.a**2)

    @property
    def B(self) -> Array:
        """B = A + Diag(c)^2, shape (D, D): the quadratic terms and the diagonal of the l1 penalty."""
        return self.A + np.diag(self.c**2)

    @cached_property
    def W(self) -> Array:
        """W'BW = I, on the range of B, shape (D, r)."""
        if self.basis is not None:
            return np.eye(len(self.c))
        W = whitener_of_gram(self.B) if self.is_large else None
        return whitener(np.vstack([self.R, np.diag(self.c)])) if W is None else W

    @property
    def is_large(self) -> bool:
        """Whether W is computed from A and not from its root R, whose factorisation would be slow."""
        return self.basis is None and self.root is None and len(self.c) > LARGE_SIZE // 2

    @property
    def basis(self) -> Array | None:
        """Map to the user's coordinates, (d or d + 1, D), if these are whitened."""
        return self.coordinates.basis

    @cached_property
    def zero_rows(self) -> npt.NDArray[np.bool_]:
        """Mask of the zero rows, shape (n,): they contribute only to the number of rows in means."""
        return np.zeros(len(self.X), dtype=bool) if self.sums.max_size else self.X.zero_rows()

    @cached_property
    def Z(self) -> Rows:
        """Whitened data X W, (n, r)."""
        return self.X.in_basis(self.W) if self.basis is None else self.X

    @property
    def has_l1(self) -> bool:
        """Whether the penalty couples coordinates, so that they cannot be whitened."""
        return not self.pair_penalty.is_zero

    def map_rows(self, change: Callable[[Rows], Rows]) -> tuple[Rows, Rows]:
        """Return X and Y after a change of their form or of their columns."""
        X = change(self.X)
        return X, X if self.Y is self.X else change(self.Y)

    def restrict(self, indices: npt.NDArray[np.intp]) -> "DirectionProblem":
        """Return the problem with V zero outside these coordinates, in unit columns."""
        has_offset = self.coordinates.has_offset and len(self.c) - 1 in indices
        return DirectionProblem(
            *self.map_rows(lambda rows: rows.in_columns().columns(indices).as_dense()),
            pair_penalty=self.pair_penalty.restrict(indices),
            coordinates=Coordinates(self.coordinates.scale[indices], has_offset),
            sums=self.sums,
            root=self.R[:, indices] if "R" in self.__dict__ and not self.is_large else None,
        )

    def in_columns(self) -> "DirectionProblem":
        """Return the problem with rows in memory that support column selection."""
        X, Y = self.map_rows(lambda rows: rows.in_columns())
        return replace(self, X=X, Y=Y)

    def as_dense(self) -> "DirectionProblem":
        """Return the problem with rows stored as arrays, itself if they are."""
        X, Y = self.map_rows(lambda rows: rows.in_columns().as_dense())
        return self if X is self.X else replace(self, X=X, Y=Y)

    def mean_sqrt(self, U: Factor) -> float:
        """Return g(UU') = mean_i sqrt(x_i'UU'x_i)."""
        return self.X.root_mean_and_mean(U)[0]

    def mean_inverse(self, u: Array) -> float:
        """Return the mean of 1/u, with 1/u = 0 for zero rows."""
        return float(np.mean(np.divide(1.0, u, out=np.zeros(len(u)), where=~self.zero_rows)))

    def convex_term(self, U: Factor, mean_q: float | None = None) -> float:
        """Return T(UU') = tr UU'A + sum_ij c_i c_j |UU'|_ij, a sum of nonnegative terms.

        `mean_q` is the mean of y_i'UU'y_i over the rows of A, if known.
        """
        if self.basis is not None:
            return squared_norm(U)
        data_term = self.Y.root_mean_and_mean(U)[1] if mean_q is None else mean_q
        total = data_term + squared_norm(scale_rows(U, self.a))
        return total + self.pair_penalty.value(U) if self.has_l1 else total

    def rescale(self, U: Factor) -> PrimalPoint:
        """Return the optimal multiple of a factor, or of a feasible factor near it.

        Its objective is 1 - g^2/T, with g = T = 1 - objective.
        """
        U = self.pair_penalty.make_feasible(U) if self.has_l1 else U
        mean_sqrt, mean_q, q = self.X.root_mean_and_mean(U)
        return self.rescale_with(U, mean_sqrt, self.convex_term(U, mean_q if self.Y is self.X else None), q)

    def rescale_with(self, U: Factor, mean_sqrt: float, convex_term: float, q: Array | None = None) -> PrimalPoint:
        """Return the optimal multiple of a factor with this g and T; q is None if the rows are streamed."""
        q = np.zeros(0) if q is None else q
        if convex_term == 0.0 or mean_sqrt == 0.0:
            return PrimalPoint(U * 0.0, 1.0, np.zeros(len(q)))
        multiple = mean_sqrt / convex_term
        return PrimalPoint(U * multiple, max(1.0 - mean_sqrt**2 / convex_term, 0.0), q * multiple**2)

    def labels_factor(self, U: Factor) -> LazyFactor:
        """Return the factor F of the points' labels, Y = FF', that is optimal for V = UU'."""
        return self.sums.expand(self.X.labels_factor(U))

    def inverse_sqrt(self, q: Array, floor: float = 1e-12) -> Array:
        """Return u = 1/sqrt(q), for which 2 sqrt(q) <= u q + 1/u is an equality; q is at least floor times its mean.

        The floor applies to the q of points without their weights, because a row of small weight has a small q, and
        their mean is weighted.
        """
        squares = np.square(self.sums.counts)
        smallest = floor * max(float(np.mean(q / self.sums.counts)), 1e-300)
        return np.asarray(1.0 / np.sqrt(np.maximum(q, smallest * squares)))

    def transform_multiplier(self, result: Result) -> Factor | None:
        """Return a result's multiplier C in these coordinates; None if it has none that fits this problem."""
        size = len(self.c)
        if result.C is None or not self.has_l1 or result.C.shape != (size, size):
            return None
        return scale_both(result.C, self.coordinates.scale)


def direction_problem(X: Table, nu: float, penalty: Penalty) -> DirectionProblem:
    """Return problem (15) for centred X; if nu < 1, with the augmentation [X, 1] and a = sqrt(nu / (1 - nu)) (Eq. 14).

    Unpenalised columns that are collinear or constant up to rounding are excluded, see `exclude`.
    """
    X = without_collinear(X, penalty)
    problem = unit_problem(X, nu, penalty)
    if X.rows.is_streamed:
        found = None if is_rounding_noise(X).any() else streamed_problem(problem)
        if found is not None:
            return found
        n, d = X.shape
        what = f"the problem of {n} points and {d} features, too nearly collinear to be solved by streaming,"
        require_memory((SOLVER_COPIES + 1) * X.rows.unread_bytes, what, "add a ridge, or use fewer points or features")
        problem = unit_problem(without_collinear(X.in_columns(), penalty), nu, penalty)
    return problem if problem.has_l1 else whitened(problem, problem.a)


def without_collinear(X: Table, penalty: Penalty) -> Table:
    """Return centred points without the unpenalised columns that are collinear up to rounding, see `exclude`."""
    weights = weights_of(penalty, X.shape[1])
    return exclude(X, (weights.a > 0.0) | (weights.c > 0.0))


def without_excluded(X: Table, nu: float, penalty: Penalty) -> Table:
    """Return the points without the columns that are excluded from problem (15); X may be streamed."""
    if X.rows.is_streamed:  # the problem itself finds the columns to exclude
        return exclude_columns(X, direction_problem(X, nu, penalty).coordinates.excluded)
    return without_collinear(X, penalty)


def unit_problem(X: Table, nu: float, penalty: Penalty) -> DirectionProblem:
    """Return problem (15) in unit columns, without computing d x d matrices, for any penalty."""
    n, d = X.shape
    what = f"the problem of {n} points and {d} features"
    require_memory(SOLVER_COPIES * X.rows.stored_bytes, what, "use fewer of either")
    weights, excluded = weights_of(penalty, d), X.excluded
    if nu < 1.0:  # the paper has a = nu / (1 - nu)
        X, weights = X.with_offset(), weights.with_offset((nu / (1.0 - nu)) ** 0.5)
    scale = power_of_two(inverse_or_one(weights.group_max(np.sqrt(X.mean_squares() + weights.a**2 + weights.c**2))))
    X, coordinates = X.scaled(scale), Coordinates(scale, nu < 1.0, excluded)
    rows, sums = X.problem_rows()
    return DirectionProblem(rows, X.weighted_rows(), weights.scaled(scale), coordinates, sums)


def without_l1(problem: DirectionProblem) -> DirectionProblem:
    """Return the problem with c_j^2 added to the ridge instead of the l1 term, which is at least as large on V >= 0."""
    return whitened(problem, np.sqrt(problem.a**2 + problem.c**2) * (1.0 - 4.0 * UNIT_ROUNDOFF))


def whitened(problem: DirectionProblem, a: Array) -> DirectionProblem:
    """Return the problem in unit columns, with this ridge and no l1 term, in whitened coordinates."""
    rows = problem.Y.array()
    n = len(rows)
    found = whitener_with_ridge(rows / n**0.5, a)
    return in_basis(problem, found[0], a**2, outside_norm_bound(found, n))


def in_basis(problem: DirectionProblem, W: Array, diagonal: Array, outside: float = 0.0) -> DirectionProblem:
    """Return the problem in unit columns, without an l1 term, in coordinates W that whiten A + Diag(diagonal)."""
    coordinates = replace(problem.coordinates, basis=problem.coordinates.factors[:, None] * W)
    X, Y = problem.map_rows(lambda rows: rows.in_basis(W))
    error = whitening_error_of_rows(problem, X, W, diagonal, outside)
    return DirectionProblem(X, Y, PairPenalty(np.zeros(W.shape[1])), coordinates, problem.sums, whitened=error)


def whitening_error_of_rows(
    problem: DirectionProblem, Z: Rows, W: Array, diagonal: Array, outside: float = 0.0
) -> WhiteningErrorBounds:
    """Return error bounds of Z = X W, and of W'(A + Diag(diagonal))W as the identity.

    The errors of the rows of X are those of the rows of A times the roots of the counts, which `largest_weight`
    includes.  If they are signed sums of up to k rows of A, the rounding of the sums in column j is by Cauchy-Schwarz
    at most sum_error(k) times the root of A_jj and of the largest weight of a row.
    """
    rows, whitened = problem.Y, Z if problem.Y is problem.X else problem.Y.in_basis(W)
    found = rows.whitening_error_bounds(W, whitened, diagonal, outside)
    k = problem.sums.max_size
    if not k:
        return found
    squares = float(rows.mean_squares() @ np.sum(W**2, axis=1))
    return found._replace(data_error=round_up(found.data_error + sum_error(k + 8) * squares**0.5, 8))


def univariate_gains(problem: DirectionProblem) -> Array:
    """Return 1 minus the objective of each coordinate alone, at its optimal scale."""
    gains = problem.X.in_columns().mean_abs()
    costs = problem.Y.mean_squares() + problem.a**2 + problem.c**2
    costs = np.ones(len(gains)) if problem.basis is not None else costs
    return np.asarray(gains**2 / np.maximum(costs, 1e-300))


def best_single_feature(problem: DirectionProblem) -> PrimalPoint:
    """Return the point with the best single coordinate: an initial point in O(nD)."""
    U = np.zeros((len(problem.c), 1))
    U[np.argmax(univariate_gains(problem))] = 1.0
    return problem.rescale(U)


def problem_by_rows(problem: DirectionProblem, U: Factor | None = None) -> DirectionProblem:
    """Return the problem in the format for a dense V, or for this factor: by rows, unless U is sparse."""
    rows = problem.X.by_rows(U)
    if rows is problem.X:
        return problem
    return replace(problem, X=rows, Y=rows, root=psd_factor(rows.second_moment() + np.diag(problem.a**2)).T)


def streamed_problem(problem: DirectionProblem) -> DirectionProblem | None:
    """Return the problem in unit columns without copying rows; None if it is too ill-conditioned.

    The factors come from the Gram matrix, whose rounding error is that of X times its condition number.
    """
    A = problem.X.second_moment() + np.diag(problem.a**2)
    B = A + np.diag(problem.c**2)
    nonzero = np.diag(B) > 0.0
    values, Q = np.linalg.eigh(B[np.ix_(nonzero, nonzero)])
    if nonzero.any() and values[0] * 1e6 < values[-1]:  # in unit columns this condition number is accurate enough
        return None
    if problem.has_l1:
        return replace(problem, root=psd_factor(A).T)
    W = np.zeros((len(nonzero), len(values)))
    W[nonzero] = Q / np.sqrt(values)
    return in_basis(problem, W, problem.a**2 + problem.c**2)


def warn_if_uninformative(problem: DirectionProblem, X: Table, penalty: Penalty) -> None:
    """Warn if an affine-invariant relaxation cannot distinguish labellings, otherwise if columns are excluded."""
    n, rank = len(X), problem.X.shape[1] - int(problem.coordinates.has_offset)
    if not np.any(penalty.a) and not penalty.has_l1 and 0 < rank and rank >= n - 1:
        warn_degenerate(f"X has rank {rank} on {n} points: every labelling is fitted exactly. Add a penalty.")
    elif problem.coordinates.excluded is not None:
        mask = np.zeros(X.shape[1], dtype=bool)
        mask[problem.coordinates.excluded.columns] = True
        mask &= ~is_rounding_noise(X)  # these were warned about when the table was read
        if not mask.any():
            return
        which = format_indices(mask)
        message = f"Columns of X are excluded, collinear with others up to rounding: {which}. Add a ridge to keep them."
        warn_degenerate(message)


def offset_solution(X: Table, nu: float) -> Array | None:
    """Return G, V = GG', if only the offset remains, b = 1 - nu with value nu: at nu = 0, or without features.

    There is no closed form if constraints require that some points differ.
    """
    if not X.allows_one_cluster or (nu > 0.0 and X.used_columns().any()):
        return None
    G = np.zeros((X.shape[1] + int(nu < 1.0), 1))
    if nu < 1.0:
        G[-1] = 1.0 - nu
    return G
