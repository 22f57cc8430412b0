"""Problem (15) of the directions, in coordinates where its solvers and its certificates are well conditioned."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, as_matrix, warn_degenerate
from diffrac_cvx.points.factors import (
    Factor,
    Sparse,
    dense,
    order_columns,
    products,
    scale_rows,
    squared,
    squared_norm,
    sum_of_absolute_products,
)
from diffrac_cvx.points.linear_algebra import (
    LARGE,
    constant_directions,
    inverse_or_one,
    moment,
    power_of_two,
    psd_factor,
    row_energies,
    times,
    triangular_root,
    unit_rows,
    whitener,
    whitener_of_gram,
    whitener_with_ridge,
)
from diffrac_cvx.points.sparse import SparseColumns, dense_columns, sparse_rows, with_ones
from diffrac_cvx.points.streamed import StreamedRows
from diffrac_cvx.points.weights import root_weights, weigh_rows
from diffrac_cvx.problem.floating_point import (
    UNIT,
    Whitening,
    outside_of,
    round_up,
    rounding_of_whitening,
    sum_error,
    summands,
)
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Result

LARGEST_CONDITION = 1e6  # of the Gram matrix in unit columns, up to which nothing more accurate is needed


COPIES = 6  # of the data, that a solver holds


class Scaled(NamedTuple):
    """A factor U at its best scale, the objective of (15) there, and the energies q_i = x_i'UU'x_i, shape (n,).

    Of many rows there are no energies, shape (0,): they are not kept, nor sent where the rows are elsewhere.
    """

    U: Factor
    value: float
    q: Array


@dataclass(frozen=True, eq=False)
class DirectionProblem:
    r"""Hold the data of min 1 - 2 g(V) + tr VA + sum_ij c_i c_j |V_ij| over V >= 0, with g(V) = mean_i sqrt(x_i'Vx_i).

    The user's matrix is ``L V L'``: a change of coordinates that gives the columns unit scale when c > 0, and
    whitens them when c = 0 (where only the range of A matters, and A becomes the identity).  Where c > 0, nothing of
    size D x D is computed before it is asked for.

    Attributes
    ----------
    X : (n, D) array, or StreamedRows
        Data in these coordinates, the offset's column included when nu < 1.
    a : (D,) array
        Ridge in these coordinates; 0 when whitened, where it is part of the identity.
    c : (D,) array
        Weights of the l1 part; with them A_jj + c_j^2 is between 1/2 and 2, but for columns of zeros.
    scale : (d or d + 1,) array
        Units that give the user's columns norm about one: powers of two, which round nothing.
    has_offset : bool
        Whether the last column is the offset's, that is nu < 1.
    basis : (d or d + 1, D) array, optional
        L, where the coordinates are whitened; None where L = Diag(scale).
    root : (k, D) array, optional
        Any root of A, where it is known.
    whitened : Whitening, optional
        How exact the coordinates are, where they are whitened.
    dropped : int
        How many directions the whitened coordinates leave out.
    s : (n,) array, optional
        Where the points have weights, s_i = sqrt(n p_i), p_i the share of point i: row i of X is s_i x_i, so that sums
        over rows are weighted sums over points.  Energies q, where nothing else is said, are those of the rows.
    """

    X: Array
    a: Array
    c: Array
    scale: Array
    has_offset: bool
    basis: Array | None = None
    root: Array | None = None
    whitened: Whitening | None = None
    dropped: int = 0
    s: Array | None = None

    @cached_property
    def rounding(self) -> Whitening:
        """How exact the whitened coordinates are."""
        if self.whitened is not None:
            return self.whitened
        if isinstance(self.X, StreamedRows):  # A comes from sums over the rows, and so do the moments
            B, W = self.A + np.diag(self.c**2), self.W
            size = float(np.trace(B) * np.sum(W**2))
            residual = float(np.linalg.norm(W.T @ B @ W - np.eye(len(W.T))))
            return Whitening(0.0, round_up(residual + sum_error(self.X.summands + 100 * len(W)) * size))
        return rounding_of_whitening(self.X, self.W, self.Z, self.a**2 + self.c**2)

    def moment_error(self, Mz: Array, top: float, mass: float | None = None) -> float:
        """Return how far a computed moment of the whitened data may be from the exact one, in the spectral norm.

        Parameters
        ----------
        Mz : (r, r) array
            The moment.
        top : float
            The largest weight of a row.
        mass : float, optional
            The trace of the moment before it was whitened, where the data are whitened after they are summed.
        """
        n = len(self.X)
        if isinstance(self.X, StreamedRows):
            mass = top * float(np.trace(self.A)) if mass is None else mass
            return round_up(sum_error(self.X.summands + 4 * len(self.W) + 16) * mass * float(np.sum(self.W**2)))
        mass, off = float(np.trace(Mz)), top**0.5 * self.rounding.data_error
        return round_up(sum_error(summands(n) + 8) * mass + (2.0 * mass**0.5 + off) * off)

    @cached_property
    def R(self) -> Array:
        """Upper triangular R with A = R'R, shape (D, D)."""
        if self.basis is not None:
            return np.eye(len(self.c))
        root = np.vstack([self.X / len(self.X) ** 0.5, np.diag(self.a)]) if self.root is None else self.root
        return triangular_root(root)

    @cached_property
    def A(self) -> Array:
        """A = X'X/n + Diag(a)^2, shape (D, D)."""
        if self.is_large:
            return moment(self.X, np.ones(len(self.X))) + np.diag(self.a**2)
        return self.R.T @ self.R

    @cached_property
    def W(self) -> Array:
        """W'(A + Diag(c)^2)W = I, on the range of A + Diag(c)^2, shape (D, r)."""
        if self.basis is not None:
            return np.eye(len(self.c))
        W = whitener_of_gram(self.A + np.diag(self.c**2)) if self.is_large else None
        return whitener(np.vstack([self.R, np.diag(self.c)]), (self.a > 0.0) | (self.c > 0.0)) if W is None else W

    @property
    def is_large(self) -> bool:
        """Whether A comes from X itself and not from its root R, whose factorisation would take long."""
        return self.basis is None and self.root is None and len(self.c) > LARGE // 2

    @cached_property
    def L(self) -> Array:
        """The user's coordinates from these, shape (d or d + 1, D)."""
        return np.diag(self.scale) if self.basis is None else self.basis

    @cached_property
    def box(self) -> Array:
        """c_i c_j off the diagonal, 0 on it, shape (D, D): the diagonal part of the penalty is linear on V >= 0."""
        box = np.outer(self.c, self.c) * (1.0 - 4.0 * UNIT)  # not above c_i c_j, though that is rounded
        np.fill_diagonal(box, 0.0)
        return box

    @cached_property
    def left_out(self) -> int:
        """How many directions, that nothing penalises, are taken to be constant: the data hardly vary along them."""
        free = np.flatnonzero((self.a == 0.0) & (self.c == 0.0))
        if self.basis is not None or not self.has_l1 or len(free) == 0 or isinstance(self.X, StreamedRows):
            return int(self.dropped)
        return constant_directions(dense_columns(self.X, free))

    @cached_property
    def zero_rows(self) -> npt.NDArray[np.bool_]:
        """Which rows are zero, shape (n,): they count in the means and nowhere else."""
        return self.X.zero_rows() if isinstance(self.X, StreamedRows) else np.asarray(~self.X.any(axis=1))

    @cached_property
    def Z(self) -> Array:
        """Whitened data X W, shape (n, r)."""
        if not self.has_l1:
            return self.X
        return as_if_array(self.X.in_basis(self.W)) if isinstance(self.X, StreamedRows) else times(self.X, self.W)

    @property
    def has_l1(self) -> bool:
        """Whether any c_i > 0."""
        return bool(self.c.any())

    def restrict(self, chosen: npt.NDArray[np.intp]) -> "DirectionProblem":
        """Return the problem in which V is zero outside the chosen coordinates; there has to be an l1 part."""
        known = "R" in self.__dict__ and not self.is_large
        return replace(
            self,
            X=dense_columns(self.X, chosen),
            a=self.a[chosen],
            c=self.c[chosen],
            scale=self.scale[chosen],
            has_offset=self.has_offset and len(self.c) - 1 in chosen,
            root=self.R[:, chosen] if known else None,
        )

    def penalised_more(self, excess: float) -> "DirectionProblem":
        """Return the problem with the ridge and the l1 part times 1 + excess; there has to be an l1 part."""
        root = (1.0 + excess) ** 0.5
        return replace(self, a=self.a * root, c=self.c * root, root=None, whitened=None) if excess else self

    def gain(self, U: Factor) -> float:
        """g(UU') = mean_i sqrt(x_i'UU'x_i)."""
        if isinstance(self.X, StreamedRows):
            return self.X.gain_and_energy(dense(U))[0]
        return self.mean_root(row_energies(self.X, U))

    def mean_root(self, q: Array) -> float:
        """Return g from the energies of the rows: the weighted mean of the roots of the points' energies."""
        return float(np.mean(np.sqrt(q) if self.s is None else self.s * np.sqrt(q)))

    def mean_inverse(self, u: Array) -> float:
        """Return the weighted mean of 1/u, with 1/u = 0 for zero rows."""
        return float(np.mean(np.where(self.zero_rows, 0.0, 1.0 / u if self.s is None else self.s**2 / u)))

    def point_energies(self, q: Array) -> Array:
        """Return the energies of the points from those of the rows."""
        return q if self.s is None else q / self.s**2

    def cost(self, U: Factor, q: Array | None = None) -> float:
        """T(UU') = tr UU'A + sum_ij c_i c_j |UU'|_ij, a sum of nonnegative terms.

        If they are known, q_i = x_i'UU'x_i, or their mean.
        """
        if self.basis is not None:
            return squared_norm(U)
        if q is None:
            q = (
                np.asarray(self.X.gain_and_energy(dense(U))[1])
                if isinstance(self.X, StreamedRows)
                else row_energies(self.X, U)
            )
        total = float(np.mean(q)) + squared_norm(scale_rows(U, self.a))
        return total + sum_of_absolute_products(scale_rows(U, self.c)) if self.has_l1 else total

    def best_scale(self, U: Factor, q: Array | None = None) -> Scaled:
        """Return the best multiple of a factor; its objective is 1 - g^2/T, and there g = T = 1 - objective."""
        if isinstance(self.X, StreamedRows):
            gain, energy = self.X.gain_and_energy(dense(U))
            return self.scaled(U, gain, self.cost(U, np.asarray(energy)))
        q = row_energies(self.X, U) if q is None else q
        return self.scaled(U, self.mean_root(q), self.cost(U, q), q)

    def scaled(self, U: Factor, gain: float, cost: float, q: Array | None = None) -> Scaled:
        """Return the best multiple of a factor with this g and T; many rows come without their energies."""
        q = np.zeros(0) if q is None else q
        if cost == 0.0 or gain == 0.0:
            return Scaled(U * 0.0, 1.0, np.zeros(len(q)))
        multiple = gain / cost
        return Scaled(U * multiple, max(1.0 - gain**2 / cost, 0.0), q * multiple**2)

    def user_factor(self, U: Factor) -> Factor:
        """Return G with V = GG' in the user's coordinates."""
        return scale_rows(U, self.scale) if self.basis is None else np.asarray(self.basis @ U)

    def directions(self, U: Factor) -> Array:
        """Return V in the user's coordinates."""
        return squared(self.user_factor(U))

    def labels_factor(self, U: Factor) -> Array:
        """Return F, shape (n, r), with Y = FF' optimal for V = UU' (appendix C.2): the rows of X U at unit norm."""
        return unit_rows(products(self.X, order_columns(U, rtol=1e-16)))

    def labels_factor_of_points(self, U: Factor, points: Array) -> Array:
        """Return `labels_factor` for points in the user's units, centred; some may be none of the problem's."""
        points = np.column_stack([points, np.ones(len(points))]) if self.has_offset else points
        rows = points * self.scale if self.basis is None else points @ self.basis
        return replace(self, X=rows, s=None).labels_factor(U)

    def from_user(self, V: Array) -> Array:
        """Return the factor, in these coordinates, of the user's V."""
        return dense(self.from_unit_columns(psd_factor(dense(self.unit_matrix(V)), rtol=1e-16)))

    def unit_matrix(self, V: Array | Sparse) -> Array | Sparse:
        """Return the user's V for columns of norm one, in which the factor of a badly scaled V keeps small entries."""
        size = len(self.scale)
        if self.has_offset and V.shape == (size - 1, size - 1):
            V = np.pad(dense(V), (0, 1))
        if V.shape != (size, size):
            raise DataError(f"V has shape {V.shape}; for these data and this nu it must be ({size}, {size})")
        return scale_rows(scale_rows(V, 1.0 / self.scale).T, 1.0 / self.scale)

    def from_user_factor(self, G: Factor) -> Factor:
        """Return the factor, in these coordinates, of the user's V = GG'."""
        size = len(self.scale)
        if self.has_offset and G.shape[0] == size - 1:
            G = scipy.sparse.csc_array(scipy.sparse.vstack([G, scipy.sparse.csc_array((1, G.shape[1]))]))
        if G.shape[0] != size:
            raise DataError(f"V has {G.shape[0]} rows; for these data and this nu it must have {size}")
        return self.from_unit_columns(scale_rows(G, 1.0 / self.scale))

    def from_result(self, V: Result | npt.ArrayLike, name: str = "V") -> Factor:
        """Return the factor, in these coordinates, of a result or of the user's matrix."""
        if not isinstance(V, Result):
            return self.from_user(as_matrix(V, name))
        if V.G is None:
            raise DataError("the result has no V; pass one of low_rank, fista or solve(v_space(...))")
        return self.from_user_factor(V.G)

    def multiplier_of(self, result: Result) -> Factor | None:
        """Return a result's multiplier C in these coordinates, if it has one of a problem like this."""
        size = len(self.c)
        if result.C is None or not self.has_l1 or result.C.shape != (size, size):
            return None
        return scale_rows(scale_rows(result.C, self.scale).T, self.scale)

    def from_unit_columns(self, G: Factor) -> Factor:
        """Return the factor in these coordinates from one for columns of norm one."""
        if self.basis is None:
            return G
        # Where directions are not determined, least squares drops exactly the part in the null space of
        # X'X/n + Diag(a)^2.
        return np.asarray(np.linalg.lstsq(self.basis / self.scale[:, None], dense(G))[0])


def largest_penalty(upper: float) -> float:
    """Return the most that the ridge and the l1 part are at an optimum not above a number.

    At the best scale g = T = 1 - optimum, and mean q >= g^2 of T has no penalty: what is left is at most g - g^2.
    """
    return upper * (1.0 - upper) if upper < 0.5 else 0.25  # where it is largest


def direction_problem(
    X: Array | StreamedRows | SparseColumns, nu: float, penalty: Penalty, shares: Array | None = None
) -> DirectionProblem:
    """Return problem (15) for centred X; nu < 1 by the augmentation [X, 1] with a = sqrt(nu / (1 - nu)) (Eq. 14).

    Shares of the points, (n,) of sum 1, scale the rows: see ``DirectionProblem.s``.
    """
    n, d = X.shape
    if isinstance(X, SparseColumns):
        return problem_of_shifted(X, nu, penalty)
    if isinstance(X, StreamedRows):
        problem = problem_of_rows(X, nu, penalty)
        if problem is not None:
            return problem
        what = f"the problem of {n} points and {d} features, so nearly collinear that it cannot be solved by passes,"
        require_memory(8.0 * (COPIES + 1) * n * d, what, "give a ridge, or fewer of either")
        X = X.array()
    problem = unit_problem(X, nu, penalty, shares)
    if problem.has_l1:
        return problem
    return whitened(problem, problem.a)


def without_l1(problem: DirectionProblem) -> DirectionProblem:
    """Return the problem with c_j^2 added to the ridge in place of the l1 part, which is not below it on V >= 0."""
    return whitened(problem, np.sqrt(problem.a**2 + problem.c**2) * (1.0 - 4.0 * UNIT))


def whitened(problem: DirectionProblem, a: Array) -> DirectionProblem:
    """Return the problem of these unit columns and this ridge, without an l1 part, in whitened coordinates."""
    X, scale = problem.X, problem.scale
    n = len(X)
    found = whitener_with_ridge(X / n**0.5, a)
    Z, zeros = times(X, found.W), np.zeros(found.W.shape[1])
    return DirectionProblem(
        X=Z,
        a=zeros,
        c=zeros,
        scale=scale,
        has_offset=problem.has_offset,
        basis=scale[:, None] * found.W,
        whitened=rounding_of_whitening(X, found.W, Z, a**2, outside_of(found, n)),
        dropped=found.left_out,
        s=problem.s,
    )


def gains_alone(problem: DirectionProblem) -> Array:
    """Return 1 less the objective of each coordinate alone, at its best scale."""
    gains = np.mean(np.abs(problem.X) if problem.s is None else problem.s[:, None] * np.abs(problem.X), axis=0)
    costs = np.mean(problem.X**2, axis=0) + problem.a**2 + problem.c**2
    costs = np.ones(len(gains)) if problem.basis is not None else costs
    return np.asarray(gains**2 / np.maximum(costs, 1e-300))


def best_alone(problem: DirectionProblem) -> Scaled:
    """Return the point that uses the best coordinate alone: what there is without any step, in O(nD)."""
    U = np.zeros((len(problem.c), 1))
    U[np.argmax(gains_alone(problem))] = 1.0
    return problem.best_scale(U)


def unit_problem(
    X: Array | SparseColumns, nu: float, penalty: Penalty, shares: Array | None = None
) -> DirectionProblem:
    """Return problem (15) in unit columns: nothing of size d x d is computed, whatever the penalty."""
    n, d = X.shape
    if isinstance(X, SparseColumns):
        return problem_of_shifted(X, nu, penalty)
    a, c = weights_of(penalty, d)
    require_memory(8.0 * COPIES * n * d, f"the problem of {n} points and {d} features", "take fewer of either")
    if nu < 1.0:
        X = np.column_stack([X, np.ones(n)])
        a = np.append(a, (nu / (1.0 - nu)) ** 0.5)  # the paper prints nu / (1 - nu)
        c = np.append(c, 0.0)
    s, X = root_weights(shares), weigh_rows(X, shares)
    scale = power_of_two(inverse_or_one(np.sqrt(np.mean(X**2, axis=0) + a**2 + c**2)))
    X, a, c = X * scale, a * scale, c * scale
    return DirectionProblem(X=X, a=a, c=c, scale=scale, has_offset=nu < 1.0, s=s)


def problem_of_shifted(X: SparseColumns, nu: float, penalty: Penalty) -> DirectionProblem:
    """Return problem (15) for sparse columns; there has to be an l1 part, for without one they would be whitened."""
    a, c = weights_of(penalty, X.shape[1])
    if nu < 1.0:
        X, a, c = with_ones(X), np.append(a, (nu / (1.0 - nu)) ** 0.5), np.append(c, 0.0)
    scale = power_of_two(inverse_or_one(np.sqrt(X.mean_squares() + a**2 + c**2)))
    return DirectionProblem(X=as_if_array(X * scale), a=a * scale, c=c * scale, scale=scale, has_offset=nu < 1.0)


def problem_in_rows(problem: DirectionProblem) -> DirectionProblem:
    """Return a problem of sparse columns as one of sparse rows, in the same coordinates, with A computed."""
    X = cast(SparseColumns, problem.X)
    rows = sparse_rows(X, np.ones(X.shape[1]))
    values, Q = np.linalg.eigh(rows.second_moment() + np.diag(problem.a**2))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * Q.T
    return replace(problem, X=as_if_array(rows), root=root)


def as_if_array(X: StreamedRows | SparseColumns) -> Array:
    """Return what takes the place of an array: it is read by the functions that read one by blocks of rows."""
    return cast(Array, X)


def problem_of_rows(X: StreamedRows, nu: float, penalty: Penalty) -> DirectionProblem | None:
    """Return problem (15) for centred rows, none of them copied; None if they are too ill conditioned for that.

    The factors come from the Gram matrix, whose rounding is that of X times its condition number.
    """
    offset = nu < 1.0
    a, c = weights_of(penalty, X.shape[1])
    if offset:
        a, c = np.append(a, (nu / (1.0 - nu)) ** 0.5), np.append(c, 0.0)
    centred = replace(X, offset=float(offset))
    gram = centred.second_moment()
    scale = power_of_two(inverse_or_one(np.sqrt(np.diag(gram) + a**2 + c**2)))
    a, c = a * scale, c * scale
    A = gram * np.outer(scale, scale) + np.diag(a**2)
    B = A + np.diag(c**2)
    used = np.diag(B) > 0.0
    values, Q = np.linalg.eigh(B[np.ix_(used, used)])
    if used.any() and values[0] * LARGEST_CONDITION < values[-1]:
        return None
    d = X.shape[1]
    X = replace(X, units=X.units * scale[:d], offset=float(scale[-1]) if offset else 0.0)
    if c.any():
        values, Q = np.linalg.eigh(A)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * Q.T
        return DirectionProblem(X=as_if_array(X), a=a, c=c, scale=scale, has_offset=offset, root=root)
    W = np.zeros((len(a), len(values)))
    W[used] = Q / np.sqrt(values)
    whitened, zeros = as_if_array(X.in_basis(W)), np.zeros(W.shape[1])
    return DirectionProblem(X=whitened, a=zeros, c=zeros, scale=scale, has_offset=offset, basis=scale[:, None] * W)


def warn_if_uninformative(problem: DirectionProblem, X: Array | StreamedRows | SparseColumns, penalty: Penalty) -> None:
    """Warn where an affine-invariant relaxation does not distinguish labellings, or directions."""
    a, c = weights_of(penalty, X.shape[1])
    if isinstance(X, StreamedRows) or a.any() or c.any():
        return
    n, d, rank = len(X), int(X.any(axis=0).sum()), problem.X.shape[1] - int(problem.has_offset)
    if 0 < rank and rank >= n - 1:
        warn_degenerate(f"X has rank {rank} on {n} points: every labelling is fitted exactly; add a penalty", depth=5)
    elif rank < min(n - 1, d):
        warn_degenerate(f"X has rank {rank} < d = {d}: the labels are determined, the direction is not", depth=5)


def offset_only(X: Array | StreamedRows | SparseColumns, nu: float) -> Array | None:
    """Return G, V = GG', where only the offset is left, b = 1 - nu with value nu: at nu = 0, or without features."""
    if nu > 0.0 and X.any():
        return None
    G = np.zeros((X.shape[1] + int(nu < 1.0), 1))
    if nu < 1.0:
        G[-1] = 1.0 - nu
    return G
