"""Common terms of the relaxations in the matrix of directions V: g(V), tr VA, l1 term, and scaled coordinates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.direction_bounds import DualPoint, certify
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import round_up
from diffrac_cvx.points.linear_algebra import inverse_or_one, psd_factor, whitener_with_ridge
from diffrac_cvx.points.points import Points
from diffrac_cvx.problem.direction_problem import (
    DirectionProblem,
    direction_problem,
    offset_solution,
    without_collinear,
)
from diffrac_cvx.problem.penalties.base import Expression, PairPenalty
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations.relaxation import Size, Solution, matrix_of, parameter, value_of

if TYPE_CHECKING:
    import cvxpy as cp

V_SPACE_ALTERNATIVE = "use the fast solvers low_rank and fista, whose memory is O(nd + d^2)"


class Coordinates(NamedTuple):
    """Solver coordinates, V = L V_s L', with the rows, ridge matrix and l1 penalty in these coordinates.

    Linked points form one row, their signed sum.  The rows, (N, D), and their entries of the offset column, (N,), are
    multiplied by N times the normalised weights of the points, so that g(V) is an unweighted mean.
    """

    L: Array
    rows: Array
    ones: Array
    square: Array  # mean of x_i x_i', (D, D)
    ridge: Array
    pair_penalty: PairPenalty | None  # None if the coordinates are whitened


class Terms(NamedTuple):
    """Terms of the V-space problems as CVXPY expressions, with their constraints and parameters."""

    V: cp.Variable
    mean_sqrt: cp.Expression
    quadratic: cp.Expression
    l1: Expression
    roots: cp.PowCone3D
    nu: cp.Parameter
    scale: cp.Parameter

    @property
    def constraints(self) -> list[cp.Constraint]:
        """Constraints that define the terms."""
        return [self.roots, *self.l1.constraints]

    def weights(self) -> Array | None:
        """Return the solver's u of the rows: N times the multipliers of q_i in roots_i <= sqrt(q_i)."""
        values = self.roots.dual_value
        return None if values is None else np.abs(np.ravel(values[0])) * np.size(values[0])


def scaled_coordinates(points: Points, penalty: Penalty) -> Coordinates:
    """Return coordinates with columns of unit norm; without an l1 penalty, whitened ones: only the span matters."""
    n, d = points.shape
    X = points.weighted_rows().array()
    a, pairs = weights_of(penalty, d)
    scale = inverse_or_one(pairs.group_max(np.sqrt(np.mean(X**2, axis=0) + a**2 + pairs.c**2)))
    L = np.diag(scale)
    if pairs.is_zero:
        L = scale[:, None] * whitener_with_ridge(X * scale / n**0.5, a * scale)[0]
        L = L if L.shape[1] else np.zeros((d, 1))
    rows = points.in_basis(L).with_offset().problem_rows().array()
    square = (X @ L).T @ (X @ L) / n
    ridge, pair_penalty = L.T @ (a[:, None] ** 2 * L), None if pairs.is_zero else pairs.with_weights(pairs.c * scale)
    return Coordinates(L, rows[:, :-1], rows[:, -1], square, ridge, pair_penalty)


def direction_terms(coordinates: Coordinates, nu: float) -> Terms:
    """Return g(V), tr VA and the l1 term for the data augmented by the column sqrt(1 - nu) with ridge nu.

    This is the column of ones of Eq. (14) with a = sqrt(nu / (1 - nu)), scaled so that nu = 1 needs no limit.
    """
    import cvxpy as cp
    from cvxpy.expressions.constants.callback_param import CallbackParam

    (N, D), X, ones = coordinates.rows.shape, coordinates.rows, coordinates.ones
    weight, scale = parameter("nu", nu), parameter("penalty_scale", 1.0)
    root = CallbackParam(partial(sqrt_one_minus_nu, weight), nonneg=True)
    V = cp.Variable((D + 1, D + 1), PSD=True, name="V")
    W, cross, offset = V[:D, :D], V[:D, D], V[D, D]
    quadratic_forms = cp.sum(cp.multiply(X @ W, X), axis=1)
    quadratic_forms += 2 * root * cp.multiply(ones, X @ cross) + (1 - weight) * ones**2 * offset
    sqrt_forms = cp.Variable(N, name="roots")
    roots = cp.PowCone3D(quadratic_forms, np.ones(N), sqrt_forms, 0.5)  # its multiplier gives u of the certificate
    mean_sqrt = cp.sum(sqrt_forms) / N
    square = cp.sum(cp.multiply(coordinates.square, W))
    quadratic = square + offset + scale * cp.sum(cp.multiply(coordinates.ridge, W))
    l1 = l1_penalty(W, coordinates.pair_penalty, scale)
    return Terms(V=V, mean_sqrt=mean_sqrt, quadratic=quadratic, l1=l1, roots=roots, nu=weight, scale=scale)


def sqrt_one_minus_nu(nu: cp.Parameter) -> float:
    """Return sqrt(1 - nu); a named function, so that the problem can be pickled for a subprocess."""
    return float((1.0 - value_of(nu)) ** 0.5)


def l1_penalty(V: cp.Expression, pair_penalty: PairPenalty | None, scale: cp.Parameter) -> Expression:
    """Return scale times the pair penalty, such as sum_ij c_i c_j |V_ij|; 0 if there is none."""
    import cvxpy as cp

    return (
        Expression(cp.Constant(0.0), [], lambda: None)
        if pair_penalty is None
        else pair_penalty.expression(cp, V, scale)
    )


def solver_dual(
    problem: DirectionProblem, coordinates: Coordinates, l1: Expression, u: Array | None = None
) -> DualPoint:
    """Return the solver's multipliers, and u of its rows, in the coordinates of the certificate."""
    if u is not None and not (np.all(np.isfinite(u)) and np.all(u > 0)):
        u = None
    C = l1.multiplier()
    if C is not None:
        C, D = (C + C.T - np.diag(np.diag(C + C.T))) / 2, len(C)
        ratio = problem.coordinates.scale[:D] / np.diag(coordinates.L)
        full = problem.pair_penalty.zero()
        full[:D, :D] = C * np.outer(ratio, ratio)
        C = full
    return DualPoint(u, C)


class Posed(NamedTuple):
    """Problem (15) at the current parameter values, for the certificate."""

    rounding_bound: RoundingBound  # centred points of positive weight, and parameter values
    problem: DirectionProblem


def pose(points: Points, nu: cp.Parameter, penalty: Penalty, scale: cp.Parameter) -> Posed:
    """Return problem (15) at the current parameter values."""
    penalty = penalty.times(value_of(scale))
    points = without_collinear(points, penalty)  # at a scale of 0 nothing is penalised
    return Posed(RoundingBound(points, value_of(nu), penalty), direction_problem(points, value_of(nu), penalty))


def read_directions(posed: Posed, V: Array, dual: DualPoint) -> Solution:
    """Return the certified solution of (15) for a V in the user's coordinates, optimally scaled."""
    rounding_bound, problem = posed
    point = problem.rescale(problem.coordinates.transform_matrix(V))
    G, upper = rounding_bound.or_trivial(problem.coordinates.inverse_transform(point.U))
    lower = certify(problem, point, dual).lower
    bounds = Bracket(lower, upper, problem.n_excluded)
    return Solution(np.asarray(problem.labels_factor(point.U)), upper, bounds, G, rounding_bound)


def user_matrix(terms: Terms, L: Array) -> Array:
    """Return the positive semidefinite part of a solver's V in the user's coordinates, the offset last if nu < 1."""
    U, nu = psd_factor(matrix_of(terms.V)), value_of(terms.nu)
    G = L @ U[:-1] if nu == 1.0 else np.vstack([L @ U[:-1], (1.0 - nu) ** 0.5 * U[-1]])
    return np.asarray(G @ G.T)


def read_offset_only(X: Points, nu: float) -> Solution | None:
    """Return the closed-form solution at nu = 0 or without features: offset only, Y = 11', value nu; otherwise None."""
    G = offset_solution(X, nu)
    upper = min(round_up(nu), 1.0)  # 1 - nu is rounded, and with it V
    return None if G is None else Solution(F=np.ones((len(X), 1)), G=G, value=upper, bracket=Bracket(nu, upper))


def direction_size(coordinates: Coordinates) -> Size:
    """Return the size of a V-space problem, in which each of n rows contains all entries of V."""
    n, D = coordinates.rows.shape
    return Size(points=n, side=D + 1, nonzeros=n * (D + 1) * (D + 2) // 2, instead=V_SPACE_ALTERNATIVE)


def require_direction_memory(X: Points, name: str) -> None:
    """Raise ResourceError if the n d^2 / 2 coefficients would not fit in memory."""
    n, d = X.shape
    require_memory(100.0 * n * d * d / 2, f"{name} with n = {n}, d = {d}", V_SPACE_ALTERNATIVE)
