"""Accelerated FISTA: continuation in eps, separate step sizes for u and C, restarts, extrapolation to eps = 0."""

from collections.abc import Iterator, Sequence

import numpy as np

from diffrac_cvx.certificates.direction_bounds import DualPoint, certify
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import momentum, psd_factor
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.solvers.smoothed_dual.dual import SmoothedDual, prox_inverse, softmax_value
from diffrac_cvx.solvers.smoothed_dual.published import first_point, theta
from diffrac_cvx.solvers.stopping import Iterate

MAX_FIRST_EPS = 1e-2
EPS_FACTOR = 0.3  # of eps from one stage to the next; also the smoothed gap at the end of a stage, relative to eps
STEPS = 20  # between certificates


def accelerated_iterates(
    problem: DirectionProblem, U: Array | None, C: Array | None, max_iter: int, tol: float
) -> Iterator[Iterate]:
    """Yield iterates within stages, at their ends, and extrapolated from the ends to eps = 0, until a gap of tol.

    A stage minimises the dual smoothed at one eps, with C in units of its scale.  The curvature in u is diagonal: steps
    are relative to u at the start of the stage, because u is large for rows with a small quadratic form.
    """
    dual = SmoothedDual(problem.X, problem.W, problem.pair_penalty)
    u, scale = first_point(problem, dual, U)
    gap = tol if U is None else certify(problem, problem.rescale(U)).gap
    eps = float(np.clip(gap, 1e-3 if U is None else 1e-5, MAX_FIRST_EPS))
    C = dual.pair_penalty.zero() if C is None else C
    factor, done, ends = 0.1 / eps, 0, list[tuple[float, Array, Array, Array]]()
    while eps > 1e-9 and done < max_iter:
        # 1. Curvatures at u, and the matrix D = W'(X' Diag(u) X / (2n) - scale C) W, linear in (u, C).
        units = u / u.mean()
        curvature_u, curvature_C = dual.curvature_u(5, units) / units**2, dual.curvature_C() * scale**2

        def inner(
            du: Array, dC: Array, eu: Array, eC: Array, of_u: Array = curvature_u, of_C: float = curvature_C
        ) -> float:
            return float(np.sum(of_u * du * eu) + of_C * np.sum(dC * eC))

        last = ahead = (u, C, dual.matrix(u, scale * C))
        t, is_finished = 1.0, False
        while not is_finished and done < max_iter:
            check_deadline()
            # 2. A proximal step from the extrapolated point; the curvatures double until their model is an upper bound.
            here = dual.smooth_part(ahead[2], eps)
            grad_C = scale * here.grad_C
            for _ in range(100):
                step_u, step_C = 1 / (factor * curvature_u), 1 / (factor * curvature_C)
                u = prox_inverse(ahead[0] - step_u * here.grad_u, step_u, len(u))
                C = dual.pair_penalty.project_inexact(ahead[1] - step_C * grad_C)
                D = dual.matrix(u, scale * C)
                value = softmax_value(D, eps)
                du, dC = u - ahead[0], C - ahead[1]
                model = here.value + here.grad_u @ du + np.sum(grad_C * dC)
                if value <= model + factor / 2 * inner(du, dC, du, dC) + 1e-13:
                    break
                factor *= 2
            done += 1
            # 3. The duality gap of the smoothed problem, entropy included; grad_u holds q / (2n).
            entropy = -np.sum(here.spectrum * np.log(here.spectrum))
            mean_sqrt = np.mean(np.sqrt(2 * len(u) * here.grad_u))
            primal = mean_sqrt - scale * dual.l1(here.U) + eps * entropy
            is_finished = bool(dual.separable_part(u) + value - primal < EPS_FACTOR * eps)
            if is_finished or done >= max_iter or done % STEPS == 0:
                yield Iterate(here.U, done, DualPoint(u, C))
            # 4. Extrapolation, restarted where the momentum would increase the objective.
            if inner(ahead[0] - u, ahead[1] - C, u - last[0], C - last[1]) > 0:
                t = 1.0
            t, weight = momentum(t)
            ahead = (u + weight * (u - last[0]), C + weight * (C - last[1]), D + weight * (D - last[2]))
            last, factor = (u, C, D), factor * (1.0 if is_finished or done >= max_iter else 0.85)
        # 5. The ends of the last two and three stages give points at eps = 0; then the next, smaller eps.
        ends.append((eps, u, C, here.U))
        for order in (2, 3):
            if is_finished and len(ends) >= order:
                yield extrapolate(ends[-order:], done, dual.pair_penalty)
        scale = theta(problem, dual, here.U, scale) if problem.has_l1 else scale
        eps, factor = eps * EPS_FACTOR, factor / EPS_FACTOR


def extrapolate(ends: Sequence[tuple[float, Array, Array, Array]], done: int, pair_penalty: PairPenalty) -> Iterate:
    """Return the Richardson extrapolation to eps = 0: the polynomial in eps through (eps, u, C, U) of stage ends."""
    u, C, V = np.zeros_like(ends[0][1]), pair_penalty.zero(), pair_penalty.zero()
    for eps, end_u, end_C, end_U in ends:
        weight = float(np.prod([-other / (eps - other) for other, *_ in ends if other != eps]))
        u += weight * end_u
        C += weight * end_C
        V += weight * (end_U @ end_U.T)
    dual = DualPoint(np.maximum(u, 0.2 * ends[-1][1]), pair_penalty.project_inexact(C))
    return Iterate(psd_factor(V), done, dual)
