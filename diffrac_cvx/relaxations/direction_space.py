"""What the relaxations in the matrix of directions V share: g(V), tr VA, the l1 part, and scaled coordinates."""

from functools import partial
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from cvxpy.expressions.constants.callback_param import CallbackParam

from diffrac_cvx.certificates.contradictions import Judged
from diffrac_cvx.certificates.direction_bounds import Dual, bracket
from diffrac_cvx.certificates.values import proved_value
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, PointWeights
from diffrac_cvx.points.dense import array_points, weighted_points
from diffrac_cvx.points.floating_point import round_up
from diffrac_cvx.points.linear_algebra import inverse_or_one, psd_factor, weigh_rows, whitener_with_ridge
from diffrac_cvx.problem.direction_problem import DirectionProblem, direction_problem, offset_only
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations.relaxation import Reading, Size, matrix_of, parameter, value_of

INSTEAD = "use the fast solvers low_rank and fista, whose memory is O(nd + d^2)"


class Coordinates(NamedTuple):
    """Coordinates in which the solver works: V = L V_s L', data X L, a ridge matrix, l1 weights."""

    L: Array
    X: Array
    ridge: Array
    c: Array


class L1(NamedTuple):
    """The l1 part as an expression and the constraints whose multipliers are C of the certificate."""

    value: cp.Expression
    constraints: list[cp.Constraint]

    def multiplier(self) -> Array | None:
        """Return C off the diagonal as the solver returns it, or None."""
        values = [constraint.dual_value for constraint in self.constraints]
        if not values or any(value is None for value in values):
            return None
        C = values[0] - values[1]
        return np.asarray(C + C.T - np.diag(np.diag(C + C.T))) / 2


class Terms(NamedTuple):
    """The terms of the V-space problems as CVXPY expressions, their constraints and their parameters."""

    V: cp.Variable
    gain: cp.Expression
    quadratic: cp.Expression
    l1: L1
    roots: cp.PowCone3D
    nu: cp.Parameter
    scale: cp.Parameter
    shares: Array | None = None

    @property
    def constraints(self) -> list[cp.Constraint]:
        """The constraints that define the terms."""
        return [self.roots, *self.l1.constraints]

    def weights(self) -> Array | None:
        """Return u as the solver returns it: the multiplier of q_i in roots_i <= sqrt(q_i), over the point's share."""
        values = self.roots.dual_value
        if values is None:
            return None
        multipliers = np.abs(np.asarray(values[0]))
        return np.asarray(len(multipliers) * multipliers if self.shares is None else multipliers / self.shares)


def scaled_coordinates(X: Array, penalty: Penalty, shares: Array | None = None) -> Coordinates:
    """Scale the columns to unit norm; without an l1 part, whiten them, so that only their span matters."""
    n, d = X.shape
    points, X = X, weigh_rows(X, shares)
    a, c = weights_of(penalty, d)
    scale = inverse_or_one(np.sqrt(np.mean(X**2, axis=0) + a**2 + c**2))
    L = np.diag(scale)
    if not c.any():
        L = scale[:, None] * whitener_with_ridge(X * scale / n**0.5, a * scale).W
        L = L if L.shape[1] else np.zeros((d, 1))
    c = c * scale if c.any() else np.zeros(L.shape[1])
    return Coordinates(L=L, X=points @ L, ridge=L.T @ (a[:, None] ** 2 * L), c=c)


def direction_terms(coordinates: Coordinates, nu: float, shares: Array | None = None) -> Terms:
    """Return g(V), tr VA and the l1 part for the data augmented by the column sqrt(1 - nu) with ridge nu.

    That column is the 1 of Eq. (14) with a = sqrt(nu / (1 - nu)), scaled so that nu = 1 needs no limit.  Both means are
    weighted where points have shares, (n,) of sum 1.
    """
    X, D = coordinates.X, coordinates.X.shape[1]
    weight, scale = parameter("nu", nu), parameter("penalty_scale", 1.0)
    root = CallbackParam(partial(root_of_rest, weight), nonneg=True)
    V = cp.Variable((D + 1, D + 1), PSD=True, name="V")
    W, cross, offset = V[:D, :D], V[:D, D], V[D, D]
    energies = cp.sum(cp.multiply(X @ W, X), axis=1) + 2 * root * (X @ cross) + (1 - weight) * offset
    root_energies = cp.Variable(len(X), name="roots")
    roots = cp.PowCone3D(energies, np.ones(len(X)), root_energies, 0.5)  # its multiplier is u of the certificate
    gain = cp.sum(root_energies) / len(X) if shares is None else shares @ root_energies
    square = X.T @ X / len(X) if shares is None else X.T @ (shares[:, None] * X)
    quadratic = cp.sum(cp.multiply(square, W)) + offset + scale * cp.sum(cp.multiply(coordinates.ridge, W))
    l1 = l1_part(W, coordinates.c, scale)
    return Terms(V=V, gain=gain, quadratic=quadratic, l1=l1, roots=roots, nu=weight, scale=scale, shares=shares)


def root_of_rest(weight: cp.Parameter) -> float:
    """Return sqrt(1 - nu); a function with a name, so that the problem can be sent to another process."""
    return float((1.0 - value_of(weight)) ** 0.5)


def l1_part(V: cp.Expression, c: Array, scale: cp.Parameter) -> L1:
    """Return scale * sum_ij c_i c_j |V_ij|."""
    if not c.any():
        return L1(cp.Constant(0.0), [])
    bound = cp.Variable(V.shape, name="abs_V")
    return L1(scale * cp.sum(cp.multiply(np.outer(c, c), bound)), [bound >= V, bound >= -V])


def dual_of(problem: DirectionProblem, coordinates: Coordinates, l1: L1, u: Array | None = None) -> Dual:
    """Return the solver's multipliers in the coordinates of the certificate."""
    if u is not None and not (np.all(np.isfinite(u)) and np.all(u > 0)):
        u = None
    C = l1.multiplier()
    if C is not None:
        D = len(C)
        ratio = problem.scale[:D] / np.diag(coordinates.L)
        full = np.zeros_like(problem.box)
        full[:D, :D] = C * np.outer(ratio, ratio)
        C = full
    return Dual(None if u is None else problem.from_user_weights(u), C)


class Posed(NamedTuple):
    """Problem (15) at the values that the parameters have now, for the certificate."""

    judged: Judged  # the points of positive weight, centred, with their shares, and the values
    problem: DirectionProblem
    points: Array  # all of them, (n, d), which get labels


def pose(
    points: Array, nu: cp.Parameter, penalty: Penalty, scale: cp.Parameter, weights: PointWeights | None = None
) -> Posed:
    """Return the problem at the values that the parameters have now."""
    penalty, X = penalty.times(value_of(scale)), weighted_points(points, weights)
    return Posed(Judged(X, value_of(nu), penalty), direction_problem(X, value_of(nu), penalty), points)


def read_directions(posed: Posed, V: Array, dual: Dual) -> Reading:
    """Read a V in the user's coordinates, at its best scale, certified for (15)."""
    judged, problem, points = posed
    point = problem.best_scale(problem.from_user(V))
    G = problem.user_factor(point.U)
    upper = min(1.0, proved_value(judged.X, judged.nu, judged.penalty, G))  # 1 for NaN
    lower = bracket(problem, point, dual).lower
    every = len(judged.X) == len(points)
    F = problem.X.labels_factor(point.U) if every else problem.labels_factor_of_points(point.U, points)
    return Reading(np.asarray(F), upper, Bracket(lower, upper), G, problem.left_out, judged)


def user_matrix(terms: Terms, L: Array) -> Array:
    """Return the positive semidefinite part of a solver's V in the user's coordinates, the offset last when nu < 1."""
    U, nu = psd_factor(matrix_of(terms.V)), value_of(terms.nu)
    G = L @ U[:-1] if nu == 1.0 else np.vstack([L @ U[:-1], (1.0 - nu) ** 0.5 * U[-1]])
    return np.asarray(G @ G.T)


def read_offset_only(X: Array, nu: float) -> Reading | None:
    """Return the answer at nu = 0, or without features: only the offset is left, Y = 11', and the value is nu."""
    G = offset_only(array_points(X), nu)
    upper = round_up(nu) if 0.0 < nu < 1.0 else nu  # 1 - nu is rounded, and with it V
    return None if G is None else Reading(F=np.ones((len(X), 1)), G=G, value=upper, bracket=Bracket(nu, upper))


def direction_size(coordinates: Coordinates) -> Size:
    """Return the size of a V-space problem: each of n rows holds all the entries of V."""
    n, D = coordinates.X.shape
    return Size(points=n, side=D + 1, nonzeros=n * (D + 1) * (D + 2) // 2, instead=INSTEAD)


def require_direction_memory(X: Array, name: str) -> None:
    """Refuse to build coefficients, n d^2 / 2 of them, that would not fit in memory."""
    n, d = X.shape
    require_memory(100.0 * n * d * d / 2, f"{name} with n = {n}, d = {d}", INSTEAD)
