"""Algorithm 1 of the paper, corrected: fixed eps, fixed step 1/L, no restart."""

from collections.abc import Iterator

import numpy as np

from diffrac_cvx.certificates.direction_bounds import DualPoint
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import LARGE_SIZE, momentum, whitener, whitener_of_gram
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.solvers.smoothed_dual.dual import Smoothed, SmoothedDual, prox_inverse
from diffrac_cvx.solvers.stopping import Iterate

CHECK_EVERY = 25
SCALE_RTOL = 0.02  # relative change of the l1 scale below which (21) is considered equivalent to (15)


def published_dual(problem: DirectionProblem) -> SmoothedDual:
    """Return the dual of (21) as printed, with tr AV = 1; A + Diag(c)^2 replaces A if A is singular and c > 0."""
    W = whitener_of_gram(problem.A) if problem.is_large else None
    if W is None and problem.is_large and len(problem.X) < len(problem.c) and not problem.a.all():
        return SmoothedDual(problem.X, problem.W, problem.pair_penalty)  # A is singular
    W = whitener(problem.R, full_rank=False) if W is None else W
    if problem.has_l1 and W.shape[1] < len(W):
        return SmoothedDual(problem.X, problem.W, problem.pair_penalty)
    return SmoothedDual(problem.X, W, problem.pair_penalty.with_diagonal())


def first_point(problem: DirectionProblem, dual: SmoothedDual, U: Array | None) -> tuple[Array, float]:
    """Return u = 1/sqrt(q) and the scale of the l1 term at a starting point, by default V = N^-1 / r."""
    size = 1.0  # tr NV
    if U is None:
        U = dual.W / max(dual.W.shape[1], 1) ** 0.5
    elif problem.basis is not None:
        size = float(np.sum(U**2))
    elif len(U) > LARGE_SIZE:
        c = problem.c if not dual.pair_penalty.diagonal else np.zeros(len(U))
        size = float(np.mean(problem.X.quadratic_forms(U)) + np.sum((problem.a**2 + c**2) @ U**2))
    else:
        size = float(np.sum(np.linalg.lstsq(dual.W, U)[0] ** 2))
    U = U / max(size, 1e-300) ** 0.5
    q = problem.X.quadratic_forms(U)
    return problem.inverse_sqrt(q, 1e-4), theta(problem, dual, U, 0.0)


def theta(problem: DirectionProblem, dual: SmoothedDual, U: Array, scale: float) -> float:
    """Return theta = g/2 - scale * l1; if theta equals scale, (21) with its l1 term scaled by it solves (15)."""
    return max(problem.mean_sqrt(U) / 2 - scale * dual.l1(U), 0.05)


def relaxed_gap(
    problem: DirectionProblem, dual: SmoothedDual, u: Array, D: Array, point: Smoothed, scale: float
) -> float:
    """Return the duality gap of (21) with its l1 term scaled, at the dual point (u, C) with matrix D and at V."""
    upper = dual.separable_part(u) + np.linalg.eigvalsh(D)[-1]
    return float(upper - (problem.mean_sqrt(point.U) - scale * dual.l1(point.U)))


def published_iterates(
    problem: DirectionProblem, eps: float, U: Array | None, C: Array | None, max_iter: int, *, stop_by_paper_rule: bool
) -> Iterator[Iterate]:
    """Yield an iterate every few iterations; once (21) is solved to eps log d, rescale its l1 term and continue.

    With stop_by_paper_rule, stop as in the paper: if (21) is solved to eps log d and the l1 scale has converged.
    """
    dual = published_dual(problem)
    n, r = dual.Z.shape
    step = 1.0 / dual.lipschitz(eps)
    target = eps * max(np.log(r), 1.0)  # eps log d is 0 if d = 1
    u, scale = first_point(problem, dual, U)
    C = dual.pair_penalty.zero() if C is None else scale * dual.pair_penalty.project_inexact(C.copy())
    ahead, t = (u, C), 1.0
    for done in range(1, max_iter + 1):
        check_deadline()
        point = dual.smooth_part(dual.matrix(*ahead), eps)
        new_u = prox_inverse(ahead[0] - step * point.grad_u, step, n)
        new_C = scale * dual.pair_penalty.project_inexact((ahead[1] - step * point.grad_C) / scale)
        t, weight = momentum(t)
        ahead = (new_u + weight * (new_u - u), new_C + weight * (new_C - C))
        u, C = new_u, new_C
        if done % CHECK_EVERY and done < max_iter:
            continue
        yield Iterate(point.U, done, DualPoint(u, C / scale))
        if relaxed_gap(problem, dual, u, dual.matrix(u, C), point, scale) <= target:
            new_scale = theta(problem, dual, point.U, scale) if problem.has_l1 else scale
            if stop_by_paper_rule and abs(new_scale - scale) <= SCALE_RTOL * scale:
                return
            if not problem.has_l1:
                continue
            C, scale = C * (new_scale / scale), new_scale
            ahead, t = (u, C), 1.0
