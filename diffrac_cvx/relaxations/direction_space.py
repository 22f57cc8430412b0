"""Relaxations in the matrix of directions V, alone or with the labels Y: (11), (12), (14), (15), (20), (21)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.checker import state, to_proof
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.direction_bounds import DualPoint, bracket_normalized, certify
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, centered_data, in_unit_interval, weights_for
from diffrac_cvx.points.constraints import Constraints, without_linear
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.floating_point import round_up
from diffrac_cvx.points.linear_algebra import inverse_or_one, psd_factor, unit_rows, whitener_with_ridge
from diffrac_cvx.points.table import Table, centered_table
from diffrac_cvx.problem.direction_problem import (
    DirectionProblem,
    direction_problem,
    offset_solution,
    without_collinear,
)
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty, weights_of
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations.label_constraints import LabelConstraints, n_rows_of_labels, under_constraints
from diffrac_cvx.relaxations.label_space import LABEL_SPACE_ALTERNATIVE, diagonal_multiplier
from diffrac_cvx.relaxations.relaxation import (
    LabelMatrix,
    Point,
    PointValue,
    Relaxation,
    Size,
    Solution,
    matrix_of,
    parameter,
    timed,
    value_of,
)
from diffrac_cvx.solvers.driver import labels_factor_of_all

if TYPE_CHECKING:
    import cvxpy as cp

V_SPACE_ALTERNATIVE = "use the fast solvers low_rank and fista, whose memory is O(nd + d^2)"


@timed
def v_space(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
) -> Relaxation:
    r"""Return the relaxation in the matrix of directions V, in which l1 penalties are convex.

    .. math::
        \min_{V \succeq 0}\ 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \tfrac1n \mathrm{tr}\, X^\top X V + \Gamma(V)

    The d x d variable does not grow with n.  For nu < 1 a column of ones with ridge weight sqrt(nu / (1 - nu)) is added
    to the data.

    Source: Eq. (12), (14), (15), (20), sections 2.4 and 3.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.  Change it later with ``at(nu=...)``.
    penalty : Penalty
        Ridge weights a and l1 weights c; none by default.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, short for ``penalty=Penalty(lam=lam, ridge=ridge)``.
    sample_weight : (n,) array, optional
        Non-negative weights of the points, on any scale: weight 2 duplicates a point, weight 0 ignores it.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels; linked points form one row, their signed sum.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    ResourceError
        If the problem data would not fit in memory.
    """
    import cvxpy as cp

    penalty = resolve_penalty(penalty, lam, ridge)
    weights = weights_for(X, sample_weight)
    centered, nu = centered_data(X, weights), in_unit_interval(nu, "nu")
    X_all, points = centered[0], without_collinear(centered_table(centered, weights, constraints), penalty)
    require_direction_memory(points, "v_space")
    coordinates = scaled_coordinates(points, penalty)
    terms = direction_terms(coordinates, nu)
    # The multipliers of this cone give u of the certificate.
    roots = cp.PowCone3D(terms.quadratic_forms, np.ones(terms.roots.size), terms.roots, 0.5)
    objective = 1 - 2 * terms.mean_sqrt + terms.quadratic + terms.l1

    def read() -> Solution:
        rounding_bound, problem = pose(points, terms.nu, penalty)
        values = roots.dual_value  # N times these multipliers of roots_i <= sqrt(q_i) is the solver's u
        u = None if values is None else np.abs(np.ravel(values[0])) * np.size(values[0])
        dual = solver_dual(problem, coordinates, terms.l1_constraints, u)
        solution = read_directions(rounding_bound, problem, user_matrix(terms, coordinates.L), dual)
        if weights is None or solution.G is None:
            return solution
        U = problem.coordinates.transform_factor(solution.G)
        return solution._replace(F=labels_factor_of_all(problem, U, X_all, weights.mask, constraints))

    def shortcut() -> Solution | None:
        answer = read_offset_only(points, value_of(terms.nu))
        return None if answer is None else answer._replace(F=np.ones((len(X_all), 1)))

    problem = cp.Problem(cp.Minimize(objective), [roots, *terms.l1_constraints])
    size = direction_size(coordinates)._replace(points=len(X_all))
    statement = lambda: state("directions", value_of(terms.nu), penalty, points, weights, constraints)  # noqa: E731
    return Relaxation("v_space", "Eq. (12), (15)", problem, read, size, statement, {"nu": terms.nu}, shortcut=shortcut)


@timed
def v_space_normalized(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    constraints: Constraints | None = None,
) -> Relaxation:
    r"""Return the relaxation in the matrix of directions V with tr AV = 1, the form smoothed by the paper's algorithm.

    .. math::
        \min_{V \succeq 0,\ \mathrm{tr}\, A V = 1}\ - \tfrac1n \sum_i \sqrt{x_i^\top V x_i} + \sum_{ij} c_i c_j |V_{ij}|

    with A = X'X/n + Diag(a)^2.  It is equivalent to `v_space` only if c = 0; its value is then -sqrt(1 - w), with w the
    value of `v_space`.

    Source: Eq. (21), section 6.1.

    Parameters, except sample_weight, and errors are those of `v_space`, except that nu is in (0, 1].  ParameterError is
    also raised if nu is 1 and all columns are constant, so that tr AV = 1 is infeasible.
    """
    import cvxpy as cp

    penalty = resolve_penalty(penalty, lam, ridge)
    points, nu = centered_table(centered_data(X), None, constraints), in_unit_interval(nu, "nu")
    points = without_collinear(points, penalty)
    require_direction_memory(points, "v_space_normalized")
    if nu == 1.0 and not points.used_columns().any():
        raise ParameterError("nu = 1 requires a varying column, but every column of X is constant. Choose nu < 1.")
    coordinates = scaled_coordinates(points, penalty)
    terms = direction_terms(coordinates, nu)

    def read() -> Solution:
        problem = direction_problem(points, value_of(terms.nu), penalty)
        U = problem.coordinates.transform_matrix(user_matrix(terms, coordinates.L))
        U = dense(problem.pair_penalty.make_feasible(U)) if problem.has_l1 else U
        U = U / max(float(np.sum((problem.R @ U) ** 2)), 1e-300) ** 0.5
        bounds = bracket_normalized(problem, U, solver_dual(problem, coordinates, terms.l1_constraints))
        F, G = np.asarray(problem.labels_factor(U)), problem.coordinates.inverse_transform(U)
        proofs = to_proof(bounds.multipliers, problem)
        return Solution(F=F, value=bounds.upper, bracket=bounds, G=G, proofs=proofs)

    def shortcut() -> Solution | None:
        answer = read_offset_only(points, value_of(terms.nu))
        if answer is None or answer.G is None:
            return None
        size = (1.0 - value_of(terms.nu)) ** 0.5
        lower = max(-size * (1.0 + 2.0**-50), -1.0)
        return answer._replace(
            G=answer.G / max(size, 1e-300), value=-size, bracket=Bracket(lower, -size, points.n_excluded)
        )

    # roots^2 <= q by second-order cones: on some wide tables CLARABEL stalls on power cones, with gaps of about 0.3.
    q = terms.quadratic_forms
    roots = cp.SOC(q + 1, cp.vstack([2 * terms.roots, q - 1]), axis=0)
    constraining = [roots, *terms.l1_constraints, terms.quadratic == 1]
    problem = cp.Problem(cp.Minimize(terms.l1 - terms.mean_sqrt), constraining)
    size, parameters = direction_size(coordinates), {"nu": terms.nu}
    ends: dict[str, Any] = {"lower": -1.0, "upper": 0.0 if coordinates.pair_penalty is None else np.inf}
    statement = lambda: state("normalized", value_of(terms.nu), penalty, points, **ends)  # noqa: E731
    return Relaxation("v_space_normalized", "Eq. (21)", problem, read, size, statement, parameters, shortcut)


@timed
def lifted(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    constraints: Constraints | None = None,
    products: bool = False,
) -> Relaxation:
    r"""Return the joint relaxation in labels Y and directions V; eliminating either gives the other formulations.

    .. math::
        \min\ \tfrac1n \mathrm{tr}\, \Pi_n Y - \tfrac2n \mathrm{tr}\, P^\top X + \tfrac1n \mathrm{tr}\, X^\top X V
        + \tfrac{\nu}{n^2} 1^\top Y 1 + \Gamma(V)
        \quad\text{such that}\quad \begin{pmatrix} Y & P \\ P^\top & V \end{pmatrix} \succeq 0,\ \mathrm{diag}(Y) = 1

    Source: Eq. (11), section 2.4, with the penalty of section 3.

    Linked points share one row of Y and of P. Linear constraints and products are stated on Y, and their solution is
    read, as in `penalized_nu`; feature groups and sign constraints are then not supported.

    Parameters, except sample_weight and those below, and errors are those of `v_space`.

    Parameters
    ----------
    constraints : Constraints, optional
        Must-link and cannot-link constraints, known labels, and linear constraints.
    products : bool
        Whether products of linear inequalities with 1 + y_j and 1 - y_j are added; default False.
    """
    import cvxpy as cp

    penalty = resolve_penalty(penalty, lam, ridge)
    pairs = without_linear(constraints)
    points, nu = centered_table(centered_data(X), None, pairs), in_unit_interval(nu, "nu")
    points = without_collinear(points, penalty)
    n, d = points.shape
    require_memory(10 * 8.0 * (n + d) ** 2, f"lifted with n = {n}, d = {d}", LABEL_SPACE_ALTERNATIVE)
    coordinates = scaled_coordinates(points, penalty)
    (N, D), ones = coordinates.rows.shape, coordinates.ones
    m, weight = n_rows_of_labels(constraints, points), parameter("nu", nu)
    block = cp.Variable((m + D, m + D), PSD=True, name="YPV_scaled")
    root = N**0.5  # the rows of V times root have the trace of Y, and first-order solvers need fewer iterations
    Y, P, V = block[:N, :N], block[:N, m:] / root, block[m:, m:] / N
    sizes = points.chunklets.sums(np.ones(n))
    imbalance = cp.sum(cp.multiply(np.outer(ones, ones), Y)) / N**2
    fit = sizes @ cp.diag(Y) / n - imbalance - 2 * cp.sum(cp.multiply(coordinates.rows, P)) / N
    quadratic = cp.sum(cp.multiply(coordinates.square, V))
    l1, l1_constraints = coordinates.l1_term(cp, V)
    objective = fit + quadratic + weight * imbalance + l1
    unit = cp.diag(block[:m, :m]) == 1

    def read() -> Solution:
        (rounding_bound, problem), mu = pose(points, weight, penalty), diagonal_multiplier(unit)
        # Eliminating Y from the dual gives the V-space certificate with these weights u of the rows.
        u = None if mu is None else inverse_or_one(N * sizes / n - N * mu)
        dual = solver_dual(problem, coordinates, l1_constraints, u)
        # V of the augmented problem (14): its offset b = (1 - nu) 1'y/n, and its products with V, follow from Y and P.
        U, now = psd_factor(matrix_of(block)), value_of(weight)
        G = coordinates.L @ U[N:] / root
        G = G if now == 1.0 else np.vstack([G, (1.0 - now) * (ones / N) @ U[:N]])
        return read_directions(rounding_bound, problem, np.asarray(G @ G.T), dual)

    def read_point() -> Point:
        U, C = psd_factor(matrix_of(block)), None
        if coordinates.pair_penalty is not None:
            C = coordinates.pair_penalty.multiplier(l1_constraints)
            scale = np.diag(coordinates.L)
            C = None if C is None else (C + C.T) / np.outer(2.0 * scale, scale)
        return Point(unit_rows(U[:m]), coordinates.L @ U[m:] / root, value_of(weight), diagonal_multiplier(unit), C)

    def value_at(F: Array, G: Array | None) -> PointValue:
        now, F = value_of(weight), points.chunklets.expand(unit_rows(F)[:N])
        V, mean, weights = np.zeros((d, F.shape[1])) if G is None else G, F.mean(axis=0), weights_of(penalty, d)
        value = float(np.sum((F - mean - points.array() @ V) ** 2) / n + now * (mean @ mean))
        value += float(np.sum((weights.a[:, None] * V) ** 2)) + (weights.value(V) if weights.c.any() else 0.0)
        return PointValue(F, V if now == 1.0 else np.vstack([V, (1.0 - now) * mean]), value)

    def constraints_of_labels() -> LabelConstraints:
        return LabelConstraints(X, points, penalty, constraints, products=products)

    def shortcut() -> Solution | None:
        return read_offset_only(points, value_of(weight))

    problem = cp.Problem(cp.Minimize(objective), [unit, *l1_constraints])
    size = Size(points=n, side=m + D, nonzeros=(m + D) ** 2, instead=LABEL_SPACE_ALTERNATIVE)
    statement = lambda: state("directions", value_of(weight), penalty, points)  # noqa: E731
    matrix = LabelMatrix(Y=block[:m, :m], read=read_point, value_at=value_at, constraints=constraints_of_labels)
    found = Relaxation(
        "lifted", "Eq. (11)", problem, read, size, statement, {"nu": weight}, shortcut=shortcut, label_matrix=matrix
    )
    return under_constraints(found, matrix) if pairs is not constraints else found


class Coordinates(NamedTuple):
    """Solver coordinates, V = L V_s L', with the rows, the matrix A and the l1 penalty in these coordinates.

    Linked points form one row, their signed sum.  The rows, (N, D), and their entries of the offset column, (N,), are
    multiplied by N times the normalised weights of the points, so that g(V) is an unweighted mean.
    """

    L: Array
    rows: Array
    ones: Array
    square: Array  # A: the mean of x_i x_i' and the ridge, (D, D)
    pair_penalty: PairPenalty | None  # None if the coordinates are whitened

    def l1_term(self, cp: Any, V: Any) -> tuple[Any, list[Any]]:
        """Return the pair penalty, such as sum_ij c_i c_j |V_ij|, with its constraints; 0 without one."""
        return (cp.Constant(0.0), []) if self.pair_penalty is None else self.pair_penalty.expression(cp, V)


class Terms(NamedTuple):
    """Terms of the V-space problems as CVXPY expressions, with their constraints and parameters."""

    V: cp.Variable
    quadratic_forms: cp.Expression  # (N,), q
    roots: cp.Variable  # (N,), at most sqrt(q) by a constraint of the builder
    mean_sqrt: cp.Expression
    quadratic: cp.Expression
    l1: cp.Expression
    l1_constraints: list[cp.Constraint]
    nu: cp.Parameter


def scaled_coordinates(points: Table, penalty: Penalty) -> Coordinates:
    """Return coordinates with columns of unit norm; without an l1 penalty, whitened ones, as only the span matters."""
    n, d = points.shape
    X = points.weighted_rows().array()
    pairs = weights_of(penalty, d)
    a = pairs.a
    scale = inverse_or_one(pairs.group_max(np.sqrt(np.mean(X**2, axis=0) + a**2 + pairs.c**2)))
    L = np.diag(scale)
    if pairs.is_zero:
        L = scale[:, None] * whitener_with_ridge(X * scale / n**0.5, a * scale)[0]
        L = L if L.shape[1] else np.zeros((d, 1))
    rows = points.with_array(points.rows.in_basis(L).array()).with_offset().problem_rows()[0].array()
    square = (X @ L).T @ (X @ L) / n + L.T @ (a[:, None] ** 2 * L)
    return Coordinates(
        L, rows[:, :-1], rows[:, -1], square, None if pairs.is_zero else pairs.with_weights(pairs.c * scale)
    )


def direction_terms(coordinates: Coordinates, nu: float) -> Terms:
    """Return q, g(V), tr VA and the l1 term for the data augmented by the column sqrt(1 - nu) with ridge nu.

    This is the column of ones of Eq. (14) with a = sqrt(nu / (1 - nu)), scaled so that nu = 1 needs no limit.
    """
    import cvxpy as cp
    from cvxpy.expressions.constants.callback_param import CallbackParam

    (N, D), X, ones = coordinates.rows.shape, coordinates.rows, coordinates.ones
    weight = parameter("nu", nu)
    root = CallbackParam(partial(sqrt_one_minus_nu, weight), nonneg=True)
    V = cp.Variable((D + 1, D + 1), PSD=True, name="V_scaled")
    W, cross, offset = V[:D, :D], V[:D, D], V[D, D]
    quadratic_forms = cp.sum(cp.multiply(X @ W, X), axis=1)
    quadratic_forms += 2 * root * cp.multiply(ones, X @ cross) + (1 - weight) * ones**2 * offset
    roots = cp.Variable(N, name="roots")
    quadratic = cp.sum(cp.multiply(coordinates.square, W)) + offset
    l1, l1_constraints = coordinates.l1_term(cp, W)
    return Terms(V, quadratic_forms, roots, cp.sum(roots) / N, quadratic, l1, l1_constraints, weight)


def sqrt_one_minus_nu(nu: cp.Parameter) -> float:
    """Return sqrt(1 - nu); a named function, so that the problem can be pickled for a subprocess."""
    return float((1.0 - value_of(nu)) ** 0.5)


def solver_dual(
    problem: DirectionProblem, coordinates: Coordinates, l1: list[cp.Constraint], u: Array | None = None
) -> DualPoint:
    """Return the solver's multipliers, and its row weights u, in the coordinates of the certificate."""
    if u is not None and not (np.all(np.isfinite(u)) and np.all(u > 0)):
        u = None
    C = None if coordinates.pair_penalty is None else coordinates.pair_penalty.multiplier(l1)
    if C is not None:
        C, D = (C + C.T - np.diag(np.diag(C + C.T))) / 2, len(C)
        ratio = problem.coordinates.scale[:D] / np.diag(coordinates.L)
        full = problem.pair_penalty.zero()
        full[:D, :D] = C * np.outer(ratio, ratio)
        C = full
    return DualPoint(u, C)


def pose(points: Table, nu: cp.Parameter, penalty: Penalty) -> tuple[RoundingBound, DirectionProblem]:
    """Return problem (15) at the current nu, and the label problem for which its lower bound is also valid."""
    return RoundingBound(points, value_of(nu), penalty), direction_problem(points, value_of(nu), penalty)


def read_directions(rounding_bound: RoundingBound, problem: DirectionProblem, V: Array, dual: DualPoint) -> Solution:
    """Return the certified solution of (15) for a V in the user's coordinates, optimally scaled."""
    point = problem.rescale(problem.coordinates.transform_matrix(V))
    G, upper = rounding_bound.or_trivial(problem.coordinates.inverse_transform(point.U))
    found = certify(problem, point, dual)
    bounds, proofs = Bracket(found.lower, upper, problem.coordinates.n_excluded), to_proof(found.multipliers, problem)
    return Solution(np.asarray(problem.labels_factor(point.U)), upper, bounds, G, rounding_bound, proofs)


def user_matrix(terms: Terms, L: Array) -> Array:
    """Return the positive semidefinite part of a solver's V in the user's coordinates, the offset last if nu < 1."""
    U, nu = psd_factor(matrix_of(terms.V)), value_of(terms.nu)
    G = L @ U[:-1] if nu == 1.0 else np.vstack([L @ U[:-1], (1.0 - nu) ** 0.5 * U[-1]])
    return np.asarray(G @ G.T)


def read_offset_only(X: Table, nu: float) -> Solution | None:
    """Return the closed-form solution at nu = 0 or without features: offset only, Y = 11', value nu; otherwise None."""
    G = offset_solution(X, nu)
    upper = min(round_up(nu), 1.0)  # 1 - nu is rounded, and with it V
    bounds = Bracket(nu, upper, X.n_excluded)
    return None if G is None else Solution(F=np.ones((len(X), 1)), G=G, value=upper, bracket=bounds)


def direction_size(coordinates: Coordinates) -> Size:
    """Return the size of a V-space problem, in which each of n rows contains all entries of V."""
    n, D = coordinates.rows.shape
    return Size(points=n, side=D + 1, nonzeros=n * (D + 1) * (D + 2) // 2, instead=V_SPACE_ALTERNATIVE)


def require_direction_memory(X: Table, name: str) -> None:
    """Raise ResourceError if the n d^2 / 2 coefficients would not fit in memory."""
    n, d = X.shape
    require_memory(100.0 * n * d * d / 2, f"{name} with n = {n}, d = {d}", V_SPACE_ALTERNATIVE)
