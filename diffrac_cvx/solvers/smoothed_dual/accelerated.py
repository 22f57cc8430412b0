"""Accelerated FISTA: continuation in eps, separate step sizes for u and C, restarts, extrapolation to eps = 0."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.block_bounds import bracket_any
from diffrac_cvx.certificates.direction_bounds import DualVariables
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import momentum, psd_factor
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.solvers.smoothed_dual.dual import Smoothed, SmoothedDual, prox_inverse, softmax_value
from diffrac_cvx.solvers.smoothed_dual.published import first_point, theta
from diffrac_cvx.solvers.stopping import Iterate


@dataclass(frozen=True)
class Stages:
    """Tuning parameters of the stages; the certified bounds are valid for any values."""

    min_first_eps: float = 1e-3  # the first eps is the tolerance on the gap, clipped to this range
    max_first_eps: float = 1e-2
    last_eps: float = 1e-9
    shrink: float = 0.3  # factor of eps from one stage to the next
    end: float = 0.3  # smoothed gap, relative to eps, at which a stage ends
    steps: int = 20  # between certificates
    max_doublings: int = 100  # of the curvatures in one step
    curvature_decay: float = 0.85  # factor of the curvatures after a step


STAGES = Stages()


class DualPoint(NamedTuple):
    """Dual point and its matrix D = W'(X' Diag(u) X / (2n) - scale C) W."""

    u: Array
    C: Array
    D: Array


@dataclass(frozen=True, eq=False)
class Stage:
    """Smoothed problem at one eps, with C in units of scale and separate curvatures in u and C.

    The curvature in u is diagonal: steps are relative to u at the start of the stage, because u is large for rows with
    a small quadratic form.
    """

    dual: SmoothedDual
    eps: float
    scale: float
    curvature_u: Array
    curvature_C: float

    @classmethod
    def at(cls, dual: SmoothedDual, eps: float, scale: float, u: Array) -> "Stage":
        """Return the stage with its curvatures measured at u."""
        units = u / u.mean()
        return cls(
            dual=dual,
            eps=eps,
            scale=scale,
            curvature_u=dual.curvature_u(5, units) / units**2,
            curvature_C=dual.curvature_C() * scale**2,
        )

    def point(self, u: Array, C: Array) -> DualPoint:
        return DualPoint(u, C, self.dual.matrix(u, self.scale * C))

    def step(self, ahead: DualPoint, here: Smoothed, factor: float) -> tuple[DualPoint, float, float]:
        """Return the proximal step from an extrapolated point, its smooth value, and the step-size factor."""
        grad_C = self.scale * here.grad_C
        for _ in range(STAGES.max_doublings):
            step_u, step_C = 1 / (factor * self.curvature_u), 1 / (factor * self.curvature_C)
            u = prox_inverse(ahead.u - step_u * here.grad_u, step_u, len(ahead.u))
            C = self.dual.pair_penalty.project_inexact(ahead.C - step_C * grad_C)
            new = self.point(u, C)
            value = softmax_value(new.D, self.eps)
            du, dC = u - ahead.u, C - ahead.C
            model = here.value + here.grad_u @ du + np.sum(grad_C * dC)
            if value <= model + factor / 2 * self.inner(du, dC, du, dC) + 1e-13:
                break
            factor *= 2
        return new, value, factor

    def inner(self, du: Array, dC: Array, eu: Array, eC: Array) -> float:
        """Return the inner product of two steps in the metric of the two curvatures."""
        return float(np.sum(self.curvature_u * du * eu) + self.curvature_C * np.sum(dC * eC))

    def gap(self, new: DualPoint, value: float, here: Smoothed) -> float:
        """Return the duality gap of the smoothed problem, entropy included."""
        entropy = -np.sum(here.spectrum * np.log(here.spectrum))
        mean_sqrt = np.mean(np.sqrt(2 * len(new.u) * here.grad_u))  # grad_u holds q / (2n)
        primal = mean_sqrt - self.scale * self.dual.l1(here.U) + self.eps * entropy
        return float(self.dual.separable_part(new.u) + value - primal)


class StageState(NamedTuple):
    """State of a stage: eps, dual point, factor of V, step-size factor, iterations, whether its gap is reached."""

    eps: float
    dual: DualPoint
    U: Array
    factor: float
    n_iter: int
    finished: bool


def accelerated_iterates(
    problem: DirectionProblem, U: Array | None, C: Array | None, max_iter: int, tol: float
) -> Iterator[Iterate]:
    """Yield iterates within stages, at their ends, and extrapolated from the ends to eps = 0, until a gap of tol."""
    dual = SmoothedDual(problem.X, problem.W, problem.pair_penalty)
    u, scale = first_point(problem, dual, U)
    eps = float(np.clip(tol, STAGES.min_first_eps, STAGES.max_first_eps))
    if U is not None:
        eps = float(np.clip(bracket_any(problem, problem.rescale(U)).gap, 1e-5, STAGES.max_first_eps))
    stage = Stage.at(dual, eps, scale, u)
    start = stage.point(u, dual.pair_penalty.zero() if C is None else C)
    end = StageState(eps=eps, dual=start, U=dual.W, factor=0.1 / eps, n_iter=0, finished=False)
    ends: list[StageState] = []
    while eps > STAGES.last_eps and end.n_iter < max_iter:
        for step in run_stage(stage, end, max_iter):
            yield Iterate(step.U, step.n_iter, DualVariables(step.dual.u, step.dual.C))
        end = step
        ends.append(end)
        for order in (2, 3):
            if end.finished and len(ends) >= order:
                yield extrapolate(ends[-order:], dual.pair_penalty)
        scale = theta(problem, dual, end.U, scale) if problem.has_l1 else scale
        eps *= STAGES.shrink
        stage = Stage.at(dual, eps, scale, end.dual.u)
        end = end._replace(eps=eps, factor=end.factor / STAGES.shrink, dual=stage.point(end.dual.u, end.dual.C))


def run_stage(stage: Stage, start: StageState, max_iter: int) -> Iterator[StageState]:
    """Yield the state of the stage every few iterations and at its end."""
    last = ahead = start.dual
    done, factor, t = start.n_iter, start.factor, 1.0
    while True:
        check_deadline()
        here = stage.dual.smooth_part(ahead.D, stage.eps)
        new, value, factor = stage.step(ahead, here, factor)
        done += 1
        finished = stage.gap(new, value, here) < STAGES.end * stage.eps
        if finished or done >= max_iter or done % STAGES.steps == 0:
            yield StageState(eps=stage.eps, dual=new, U=here.U, factor=factor, n_iter=done, finished=finished)
        if finished or done >= max_iter:
            return
        if stage.inner(ahead.u - new.u, ahead.C - new.C, new.u - last.u, new.C - last.C) > 0:
            t = 1.0  # restart: the momentum would increase the objective
        t, weight = momentum(t)
        ahead = DualPoint(*(a + weight * (a - b) for a, b in zip(new, last, strict=True)))  # D is linear in (u, C)
        last, factor = new, factor * STAGES.curvature_decay


def extrapolate(ends: Sequence[StageState], pair_penalty: PairPenalty) -> Iterate:
    """Return the Richardson extrapolation to eps = 0: the polynomial in eps through the last stage ends."""
    weights = [float(np.prod([-b.eps / (a.eps - b.eps) for b in ends if b is not a])) for a in ends]
    u, C, V = np.zeros_like(ends[0].dual.u), pair_penalty.zero(), pair_penalty.zero()
    for weight, end in zip(weights, ends, strict=True):
        u += weight * end.dual.u
        C += weight * end.dual.C
        V += weight * (end.U @ end.U.T)
    last = ends[-1]
    return Iterate(
        psd_factor(V), last.n_iter, DualVariables(np.maximum(u, 0.2 * last.dual.u), pair_penalty.project_inexact(C))
    )
