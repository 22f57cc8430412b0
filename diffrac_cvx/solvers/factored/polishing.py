"""From an inexact minimum of the augmented Lagrangian to a sharper point and a sharper bound, by two factorisations."""

from collections.abc import Iterator

import numpy as np

from diffrac_cvx.certificates.direction_bounds import Tried, best_bound
from diffrac_cvx.certificates.proof import clip_to_box
from diffrac_cvx.certificates.search import candidate_weights, closer_to_feasible, fit_from
from diffrac_cvx.machine.time_budget import is_late
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.linear_algebra import LARGE, cholesky, inverse_or_one, psd_factor, times
from diffrac_cvx.problem.direction_problem import DirectionProblem, Scaled
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.solvers.factored.tuning import ONE_BLOCK


def polish(problem: DirectionProblem, point: Scaled, C: Array, *, fitted: bool = False) -> tuple[Scaled, Bracket]:
    """Return the better of a point and its thresholded form, and the bracket, for the multiplier C at the point.

    The bound uses the energies of the point given: C belongs to them, and not to those of the thresholded one.  Where
    the multiplier is fitted, that takes an eigendecomposition a step.
    """
    U = dense(point.U)
    thresholded = without_inactive(problem, U, C)
    better = thresholded if thresholded.value < point.value else point
    C = clip_to_box(problem, C)

    def multipliers(u: Array) -> Iterator[Array]:
        yield C
        M = problem.X.moment(u)
        yield closer_to_feasible(problem, M, C)
        if fitted:
            yield fit_from(problem, M, times(U, U.T), C, ONE_BLOCK.fitting_steps)

    weights = candidate_weights(problem, point.q)
    lower = best_bound(problem, (Tried(u, inverse_mean, multipliers(u)) for u, inverse_mean in weights))
    return better, Bracket(lower, float(better.value))


def without_inactive(problem: DirectionProblem, U: Array, C: Array) -> Scaled:
    """Return the point with V_ij = 0 where C_ij is strictly inside its box, projected on V >= 0 where it has to be.

    At an optimum V_ij is 0 there; before, what is left of it costs c_i c_j |V_ij|, much more than it gains.
    """
    V = times(U, U.T)
    active = np.abs(C) >= problem.box * (1.0 - 1e-12)
    V = np.where(active, V, 0.0)
    scale = inverse_or_one(np.sqrt(np.diag(V)))
    correlations = V * np.outer(scale, scale)
    try:
        factor = cholesky(correlations) / scale[:, None]
    except np.linalg.LinAlgError:
        if len(V) > LARGE and is_late(10.0 * float(len(V)) ** 3):
            return problem.best_scale(U)
        factor = psd_factor(V, rtol=1e-14)
    return problem.best_scale(factor)
