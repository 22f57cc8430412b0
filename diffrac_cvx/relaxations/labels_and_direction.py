"""Joint relaxation in labels and directions: (11); (n + d) x (n + d) variable."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, centered_data, in_unit_interval
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.dense import weighted_points
from diffrac_cvx.points.linear_algebra import inverse_or_one, psd_factor
from diffrac_cvx.problem.direction_problem import without_collinear
from diffrac_cvx.problem.gradient import Instance, make_instance
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty
from diffrac_cvx.relaxations import direction_space as space
from diffrac_cvx.relaxations.label_space import LABEL_SPACE_ALTERNATIVE, diagonal_multiplier
from diffrac_cvx.relaxations.relaxation import Relaxation, Size, Solution, matrix_of, parameter, value_of


def lifted(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    constraints: Constraints | None = None,
) -> Relaxation:
    r"""Return the joint relaxation in labels Y and directions V; eliminating either gives the other formulations.

    .. math::
        \min\ \tfrac1n \mathrm{tr}\, \Pi_n Y - \tfrac2n \mathrm{tr}\, P^\top X + \tfrac1n \mathrm{tr}\, X^\top X V
        + \tfrac{\nu}{n^2} 1^\top Y 1 + \Gamma(V)
        \quad\text{such that}\quad \begin{pmatrix} Y & P \\ P^\top & V \end{pmatrix} \succeq 0,\ \mathrm{diag}(Y) = 1

    Source: Eq. (11), section 2.4, with the penalty of section 3.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.  Change it later with ``at(nu=...)``.
    penalty : Penalty
        Ridge weights a and l1 weights c; none by default.  Scale Gamma later with ``at(penalty_scale=...)``.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, short for ``penalty=Penalty(lam=lam, ridge=ridge)``.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels; linked points share one row of Y and of P.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    ResourceError
        If an (n + d) x (n + d) matrix would not fit in memory.
    """
    import cvxpy as cp

    penalty = resolve_penalty(penalty, lam, ridge)
    points, nu = weighted_points(centered_data(X), None, constraints), in_unit_interval(nu, "nu")
    points = without_collinear(points, penalty)
    n, d = points.shape
    require_memory(10 * 8.0 * (n + d) ** 2, f"lifted with n = {n}, d = {d}", LABEL_SPACE_ALTERNATIVE)
    coordinates = space.scaled_coordinates(points, penalty)
    (N, D), ones = coordinates.rows.shape, coordinates.ones
    weight, scale = parameter("nu", nu), parameter("penalty_scale", 1.0)
    block = cp.Variable((N + D, N + D), PSD=True, name="YPV")
    Y, P, V = block[:N, :N], block[:N, N:], block[N:, N:]
    sizes = points.chunklets.sums(np.ones(n))
    imbalance = cp.sum(cp.multiply(np.outer(ones, ones), Y)) / N**2
    fit = sizes @ cp.diag(Y) / n - imbalance - 2 * cp.sum(cp.multiply(coordinates.rows, P)) / N
    quadratic = cp.sum(cp.multiply(coordinates.square, V))
    ridge = scale * cp.sum(cp.multiply(coordinates.ridge, V))
    l1, l1_constraints = space.l1_penalty(V, coordinates.pair_penalty, scale)
    objective = fit + quadratic + weight * imbalance + ridge + l1
    unit = cp.diag(Y) == 1

    def instance() -> Instance:
        return make_instance(X, value_of(weight), penalty.times(value_of(scale)), constraints=constraints)

    def read() -> Solution:
        posed, mu = space.pose(points, weight, penalty, scale), diagonal_multiplier(unit)
        # Eliminating Y from the dual gives the V-space certificate with these weights u of the rows.
        u = None if mu is None else inverse_or_one(N * sizes / n - N * mu)
        dual = space.solver_dual(posed.problem, coordinates, l1_constraints, u)
        augmented = augmented_directions(matrix_of(block), coordinates.L, ones / N, value_of(weight))
        return space.read_directions(posed, augmented, dual)._replace(instance=instance())

    def shortcut() -> Solution | None:
        answer = space.read_offset_only(points, value_of(weight))
        return None if answer is None else answer._replace(instance=instance())

    problem = cp.Problem(cp.Minimize(objective), [unit, *l1_constraints])
    size = Size(points=n, side=N + D, nonzeros=(N + D) ** 2, instead=LABEL_SPACE_ALTERNATIVE)
    parameters = {"nu": weight, "penalty_scale": scale}
    return Relaxation("lifted", "Eq. (11)", problem, read, size, parameters, shortcut=shortcut)


def augmented_directions(block: Array, L: Array, means: Array, nu: float) -> Array:
    """Return the V of the augmented problem (14), with the offset b = (1 - nu) 1'y/n and its products from Y and P.

    The mean 1'y/n is the product of ``means`` with the signs of the rows of Y.
    """
    U, N = psd_factor(block), len(means)
    rows = L @ U[N:]
    if nu < 1.0:
        rows = np.vstack([rows, (1.0 - nu) * means @ U[:N]])
    return np.asarray(rows @ rows.T)
