"""Relaxations in the n x n matrix of labels Y: (7), (8), (16), (23), (24), and the one for k classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.certificates.checker import state, to_proof
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.label_bounds import (
    NEAR_BALANCE,
    Projection,
    bracket_alpha,
    bracket_nu,
    class_bound,
    class_value,
    correlation_value,
    label_value,
    projection_of,
    with_imbalance,
)
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, centered_data, in_unit_interval, positive_int
from diffrac_cvx.points.constraints import Constraints, without_linear
from diffrac_cvx.points.linear_algebra import psd_factor, unit_rows
from diffrac_cvx.points.table import centered_table
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty, ridge_of
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations.label_constraints import LabelConstraints, n_rows_of_labels, under_constraints
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

if TYPE_CHECKING:
    import cvxpy as cp

LABEL_SPACE_ALTERNATIVE = "use v_space, whose variable is d x d, or the fast solvers low_rank and fista"
CORRELATION_ALTERNATIVE = "use another relaxation, because this one is trivial for all data"


@timed
def penalized_nu(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    ridge: Weight = None,
    constraints: Constraints | None = None,
    products: bool = False,
) -> Relaxation:
    r"""Return the relaxation in the matrix of labels Y with the imbalance of the clusters penalised.

    .. math::
        \min_{Y \succeq 0,\ \mathrm{diag}(Y) = 1}
        \tfrac1n \mathrm{tr}\, Y (\Pi_n - X (X^\top X + n\,\mathrm{Diag}(a)^2)^{+} X^\top)
        + \tfrac{\nu}{n^2} 1^\top Y 1

    Source: Eq. (8), section 2.3; the ridge a is that of Eq. (16).

    At nu = 0 the all-ones Y is optimal, and `solve` returns it, unless points are linked.  Linked points share one row
    of Y, with Y_ij = 1 or -1.

    With linear constraints (bags, order, sizes, rows) and without known labels, Y has one more row, for a point with
    the label y_0 = 1.  The entries Y_0i = y_i satisfy the constraints, and Y satisfies the products of the equations
    with all labels.  The bounds then refer to labels: ``lower`` bounds Eq. (9) over all labels that satisfy the
    constraints, and ``upper`` is its value at rounded labels, ``result.certificate.labels``; the optimum of the
    relaxation is between them.  If the status is RELAXED, ``value`` is optimal for the relaxation.  The returned point
    is feasible up to 1e-9, with y in the first column of ``result.F``.  It is the solver's point, corrected to be
    feasible, or the labels if its errors are too large.

    Parameters, except lam and sample_weight, and errors are those of `v_space`; ParameterError is also raised if the
    penalty has an l1 term (use `lifted` or `v_space`), and DataError if no labels satisfy the constraints.

    Parameters
    ----------
    constraints : Constraints, optional
        Must-link and cannot-link constraints, known labels, and linear constraints.
    products : bool
        Whether products of linear inequalities with 1 + y_j and 1 - y_j are added, which makes the relaxation tighter
        and larger; default False.
    """
    import cvxpy as cp

    penalty = resolve_penalty(penalty, None, ridge)
    pairs = without_linear(constraints)
    points, nu = centered_table(centered_data(X), None, pairs), in_unit_interval(nu, "nu")
    n = len(points)
    size = label_size(n, "penalized_nu")
    H = projection_of(points, ridge_of(penalty, points.shape[1]))
    _, ones, sizes = H.sums
    N, m, weight = len(sizes), n_rows_of_labels(constraints, H.points), parameter("nu", nu)
    bordered = cp.Variable((m, m), PSD=True, name="Y")
    Y = bordered if m == N else bordered[:N, :N]
    unit = cp.diag(bordered) == 1
    objective = label_residual(Y, H) + weight * cp.sum(cp.multiply(np.outer(ones, ones), Y)) / n**2

    def read() -> Solution:
        F = H.points.chunklets.expand(unit_rows(psd_factor(matrix_of(Y), rtol=1e-14)))
        bounds = bracket_nu(H, F, value_of(weight), diagonal_multiplier(unit))
        rounding_bound = RoundingBound(H.points, value_of(weight), penalty)
        proofs = to_proof(bounds.multipliers)
        return Solution(F=F, value=bounds.upper, bracket=bounds, rounding_bound=rounding_bound, proofs=proofs)

    def read_point() -> Point:
        F = unit_rows(psd_factor(matrix_of(bordered), rtol=1e-14))
        return Point(F, None, value_of(weight), diagonal_multiplier(unit))

    def value_at(F: Array, _: Array | None) -> PointValue:
        F = H.points.chunklets.expand(unit_rows(F)[:N])
        return PointValue(F, None, label_value(H, F, value_of(weight)))

    def constraints_of_labels() -> LabelConstraints:
        return LabelConstraints(X, H.points, penalty, constraints, products=products)

    def shortcut() -> Solution | None:
        return all_ones(H) if value_of(weight) == 0.0 and H.points.allows_one_cluster else None

    size = size._replace(side=m, nonzeros=m * m)
    problem = cp.Problem(cp.Minimize(objective), [unit])
    pose = lambda: state("directions", value_of(weight), penalty, H.points)  # noqa: E731
    matrix = LabelMatrix(Y=bordered, read=read_point, value_at=value_at, constraints=constraints_of_labels)
    found = Relaxation(
        "penalized_nu", "Eq. (8)", problem, read, size, pose, {"nu": weight}, shortcut=shortcut, label_matrix=matrix
    )
    return under_constraints(found, matrix) if pairs is not constraints else found


@timed
def constrained_alpha(
    X: npt.ArrayLike,
    alpha: float,
    penalty: Penalty = NO_PENALTY,
    *,
    ridge: Weight = None,
    constraints: Constraints | None = None,
    products: bool = False,
) -> Relaxation:
    r"""Return the relaxation in the matrix of labels Y with the imbalance of the clusters fixed.

    .. math::
        \min_{Y \succeq 0,\ \mathrm{diag}(Y) = 1}\
        \tfrac1n \mathrm{tr}\, Y (\Pi_n - X (X^\top X + n\,\mathrm{Diag}(a)^2)^{+} X^\top)
        \quad\text{such that}\quad \tfrac{1}{n^2} 1^\top Y 1 = \alpha

    Source: Eq. (7), section 2.2, which has no ridge; the ridge a is that of Eq. (16), as in `penalized_nu`.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    alpha : float
        Imbalance (1'y/n)^2 of the clusters, in [0, 1].  Change it later with ``at(alpha=...)``.  At 0 the problem has
        no interior point, and `solve` restricts it to the complement of 1; at 1 the solution is Y = 11'.
    penalty : Penalty
        Ridge; default none.
    ridge : float or (d,) array, optional
        Weight of the ridge, as an alternative to ``penalty``.
    constraints : Constraints, optional
        Constraints of any kind, stated as in `penalized_nu`.  Then ``lower`` bounds the objective of all labels that
        satisfy them and have this imbalance; ``value`` is the objective at the solver's point, which is feasible up to
        the solver's tolerance; and ``upper`` is the trivial bound 1.
    products : bool
        Whether products of linear inequalities with 1 + y_j and 1 - y_j are added; default False.

    Raises
    ------
    DataError, ParameterError
        If X is invalid, alpha is outside [0, 1], or the penalty has an l1 term.
    ResourceError
        If an n x n matrix would not fit in memory.
    """
    import cvxpy as cp

    penalty = resolve_penalty(penalty, None, ridge)
    pairs = without_linear(constraints)
    points, alpha = centered_table(centered_data(X), None, pairs), in_unit_interval(alpha, "alpha")
    n = len(points)
    size = label_size(n, "constrained_alpha")
    H = projection_of(points, ridge_of(penalty, points.shape[1]))
    _, ones, sizes = H.sums
    N, m, weight = len(sizes), n_rows_of_labels(constraints, H.points), parameter("alpha", alpha)
    bordered = cp.Variable((m, m), PSD=True, name="Y")
    Y = bordered if m == N else bordered[:N, :N]
    unit = cp.diag(bordered) == 1
    total = cp.sum(Y) if pairs is None else cp.sum(cp.multiply(np.outer(ones, ones), Y))
    fixed = total / n == n * weight  # a row of the norm of those of diag Y = 1, for first-order solvers

    def read() -> Solution:
        F = psd_factor(matrix_of(Y), rtol=1e-14)
        return read_at_imbalance(H, F, value_of(weight), diagonal_multiplier(unit))

    def shortcut() -> Solution | Relaxation | None:
        if value_of(weight) == 1.0:
            return all_ones(H)
        return constrained_balanced(H, penalty, value_of(weight)) if value_of(weight) <= NEAR_BALANCE else None

    def read_point() -> Point:
        F, multiplier = unit_rows(psd_factor(matrix_of(bordered), rtol=1e-14)), fixed.dual_value
        nu = 0.0 if multiplier is None or not np.isfinite(multiplier) else n * float(multiplier)
        return Point(F, None, nu, diagonal_multiplier(unit))

    def value_at(F: Array, _: Array | None) -> PointValue:
        F = H.points.chunklets.expand(unit_rows(F)[:N])
        return PointValue(F, None, label_value(H, F, 0.0))

    def constraints_of_labels() -> LabelConstraints:
        return LabelConstraints(X, H.points, penalty, constraints, products=products)

    pose = lambda: state("imbalance", 1.0, penalty, H.points, alpha=value_of(weight))  # noqa: E731
    problem, size = cp.Problem(cp.Minimize(label_residual(Y, H)), [unit, fixed]), size._replace(side=m, nonzeros=m * m)
    matrix = LabelMatrix(
        Y=bordered, read=read_point, value_at=value_at, constraints=constraints_of_labels, alpha=weight
    )
    parameters = {"alpha": weight}
    found = Relaxation(
        "constrained_alpha", "Eq. (7)", problem, read, size, pose, parameters, shortcut=shortcut, label_matrix=matrix
    )
    return found if constraints is None else under_constraints(found, matrix)


def constrained_balanced(H: Projection, penalty: Penalty, alpha: float) -> Relaxation:
    """Return (7) at alpha = 0, where Y1 = 0, on the face Y = N W N'; the columns of N span the complement of 1.

    Its solution is returned as a point of (7) at alpha, which is 0 or nearly 0, with bounds.
    """
    import cvxpy as cp

    n = len(H.Q)
    N = scipy.linalg.helmert(n).T
    W = cp.Variable((n - 1, n - 1), PSD=True, name="W")
    B = N.T @ H.Q
    residual = cp.trace(W) / n - cp.sum(cp.multiply(B @ B.T, W)) / n
    unit = cp.sum(cp.multiply(N @ W, N), axis=1) == 1

    def read() -> Solution:
        return read_at_imbalance(H, N @ psd_factor(matrix_of(W), rtol=1e-14), alpha, diagonal_multiplier(unit))

    size = label_size(n, "constrained_alpha")._replace(side=n - 1, nonzeros=n * n * n // 2)
    pose = lambda: state("imbalance", 1.0, penalty, H.points, alpha=alpha)  # noqa: E731
    return Relaxation("constrained_alpha", "Eq. (7)", cp.Problem(cp.Minimize(residual), [unit]), read, size, pose)


def read_at_imbalance(H: Projection, F: Array, alpha: float, mu: Array | None) -> Solution:
    """Return the certified solution of (7) at the feasible point nearest to a factor."""
    F = with_imbalance(F, alpha)
    bounds = bracket_alpha(H, F, alpha, mu)
    return Solution(F=F, value=bounds.upper, bracket=bounds, proofs=to_proof(bounds.multipliers))


@timed
def multiclass(X: npt.ArrayLike, k: int, nu: float = 1.0) -> Relaxation:
    r"""Return the relaxation for k classes, Y = yy' with n x k indicators y, with the imbalance penalised.

    .. math::
        \min_{\mathrm{diag}(Y) = 1,\ Y \succeq 11^\top / k}
        \tfrac1n \mathrm{tr}\, Y (\Pi_n - X (X^\top X)^{+} X^\top) + \tfrac{\nu}{n^2} 1^\top Y 1

    With Y = 11'/k + (1 - 1/k) S this is Eq. (8) in S: its value is nu/k + (1 - 1/k) times that of `penalized_nu`, and
    the solutions correspond for every k.  The number of classes thus matters only for the rounding, by k-means on the
    rows of F.

    Source: section 4, the set C_K; its last inequality is printed in the wrong direction.  Without the imbalance
    penalty, Y = 11' is optimal.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    k : int
        Number of classes, at least 2.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.  Change it later with ``at(nu=...)``.

    Raises
    ------
    DataError, ParameterError
        If X is invalid, k is not an integer >= 2 or nu is outside [0, 1].
    ResourceError
        If an n x n matrix would not fit in memory.
    """
    import cvxpy as cp

    points, k, nu = centered_table(centered_data(X)), positive_int(k, "k"), in_unit_interval(nu, "nu")
    if k < 2:
        raise ParameterError(f"k = {k} must be at least 2.")
    n = len(points)
    size = label_size(n, "multiclass")
    H = projection_of(points)
    weight = parameter("nu", nu)
    Y = cp.Variable((n, n), symmetric=True, name="Y")
    objective = label_residual(Y, H) + weight * cp.sum(Y) / n**2

    def solution_of(S: Array, nu: float) -> Solution:
        bounds = bracket_nu(H, S, nu)
        lower, upper = class_bound(bounds.lower, nu, k), class_value(bounds.upper, nu, k)
        F = np.column_stack([np.full(n, k**-0.5), (1 - 1 / k) ** 0.5 * S])
        proofs = to_proof(bounds.multipliers)
        return Solution(F=F, value=upper, bracket=Bracket(lower, upper, H.points.n_excluded), proofs=proofs)

    def read() -> Solution:
        return solution_of(unit_rows(psd_factor(matrix_of(Y) - 1.0 / k, rtol=1e-14)), value_of(weight))

    def shortcut() -> Solution | None:
        return solution_of(np.ones((n, 1)), 0.0) if value_of(weight) == 0.0 else None

    problem = cp.Problem(cp.Minimize(objective), [cp.diag(Y) == 1, Y - np.ones((n, n)) / k >> 0])
    size = size._replace(nonzeros=2 * n * n)
    pose = lambda: state("classes", value_of(weight), NO_PENALTY, H.points, n_clusters=k)  # noqa: E731
    return Relaxation("multiclass", "section 4", problem, read, size, pose, {"nu": weight}, shortcut=shortcut)


@timed
def correlation(X: npt.ArrayLike) -> Relaxation:
    r"""Return the direct relaxation of the correlation, without an imbalance parameter; it is trivial for all data.

    .. math::
        \min_{M \succeq 0}\ - \mathrm{tr}\, M X (X^\top X)^{+} X^\top
        \quad\text{such that}\quad \mathrm{diag}(M) = 1 + \tfrac{1}{n^2} 1^\top M 1

    Its infimum is -n for any X with a nonzero column, and 0 otherwise: tr MH <= tr M Pi = n, with H the projection on
    the columns of X.  It may be approached only as M grows without bound; Y = M / (1 + 1'M1/n^2) then tends to 11'.

    Source: Eq. (23) and (24), section 2.3 and appendix B.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.

    Raises
    ------
    DataError
        If X is invalid.
    ResourceError
        If an n x n matrix would not fit in memory.
    """
    import cvxpy as cp

    H = projection_of(centered_table(centered_data(X)))
    Q, n = H.Q, len(H.Q)
    size = label_size(n, "correlation")
    M = cp.Variable((n, n), PSD=True, name="M")

    def read() -> Solution:
        F = unit_rows(psd_factor(matrix_of(M), rtol=1e-14))  # of Y = M / (1 + 1'M1/n^2), a feasible point
        lower = -float(n) if Q.shape[1] else 0.0
        value = max(correlation_value(H, F), lower)
        return Solution(F=F, value=value, bracket=Bracket(lower, value, H.points.n_excluded))

    problem = cp.Problem(cp.Minimize(-cp.sum(cp.multiply(Q @ Q.T, M))), [cp.diag(M) == 1 + cp.sum(M) / n**2])
    size = size._replace(instead=CORRELATION_ALTERNATIVE)
    pose = lambda: state("correlation", 1.0, NO_PENALTY, H.points, lower=-float(n), upper=0.0)  # noqa: E731
    return Relaxation("correlation", "Eq. (23)-(24)", problem, read, size, pose)


def label_residual(Y: cp.Expression, H: Projection) -> cp.Expression:
    """Return tr Y (Pi - QQ') / n, with QQ' the projection on the columns of X; Y has one row per chunklet."""
    import cvxpy as cp

    Q, ones, sizes = H.sums
    n = len(H.Q)
    fit: cp.Expression = cp.sum(cp.multiply(np.diag(sizes) - np.outer(ones, ones) / n - Q @ Q.T, Y)) / n
    return fit


def diagonal_multiplier(unit: cp.Constraint) -> Array | None:
    """Return the solver's multiplier mu of diag Y = 1 (CVXPY's sign is opposite), or None if it has none."""
    value = unit.dual_value
    return None if value is None or not np.all(np.isfinite(value)) else -np.ravel(value)


def all_ones(H: Projection) -> Solution:
    """Return the solution Y = 11', which is optimal with value 0 if the imbalance is not penalised."""
    return Solution(F=np.ones((len(H.Q), 1)), value=0.0, bracket=Bracket(0.0, 0.0, H.points.n_excluded))


def label_size(n: int, name: str) -> Size:
    """Return the size of a problem with an n x n variable; raise ResourceError if its data would not fit in memory."""
    require_memory(10 * 8.0 * n * n, f"{name} with n = {n}", LABEL_SPACE_ALTERNATIVE)
    return Size(points=n, side=n, nonzeros=n * n, instead=LABEL_SPACE_ALTERNATIVE)
