"""FISTA on the smoothed dual of Eq. (21), to a certified gap of (15): published and accelerated variants."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.bound_search import top_eigenvalue
from diffrac_cvx.certificates.direction_bounds import DualPoint, certify
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, one_of, positive
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.linear_algebra import (
    LARGE_SIZE,
    eigh,
    momentum,
    psd_factor,
    times,
    whitener,
    whitener_of_gram,
)
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.points.rows import Rows
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.base import INSIDE_BOX, PairPenalty
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.solvers.driver import Callback, Iterate, Stopping, WarmStart, solve_by_iterates

EPS_FACTOR = 0.3  # ratio of eps in successive stages; also the smoothed gap that ends a stage, relative to eps


def fista(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    variant: str = "accelerated",
    tol: float = 1e-3,
    epsilon: float | None = None,
    max_iter: int = 20_000,
    time_limit: float | None = None,
    callback: Callback | None = None,
    start: Result | npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
) -> Result:
    r"""Solve problem (15) by FISTA on the smoothed dual of (21), in O(nd^2 + d^3) per iteration.

    .. math::
        \min_{u > 0,\ |C_{ij}| \le c_i c_j}\ \tfrac{1}{2n} \sum_i \tfrac1{u_i}
        + \phi^\varepsilon\big(A^{-1/2} (\tfrac{1}{2n} X^\top \mathrm{Diag}(u) X - C) A^{-1/2}\big)

    Source: section 6 and appendix G.  (21) differs from (15) if c > 0: both variants therefore rescale c between
    iterations, so that they converge to a solution of (15), and stop on its certified gap.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.
    penalty : Penalty
        Ridge weights a and l1 weights c; no penalty by default.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, short for ``penalty=Penalty(lam=lam, ridge=ridge)``.
    variant : {"accelerated", "published"}
        "published" is the paper's algorithm, with fixed epsilon and fixed step 1/L.  "accelerated" (default)
        decreases epsilon in stages, adapts separate step sizes for u and C, restarts the momentum, and extrapolates
        the stages to epsilon = 0.
    tol : float
        Certified gap ``upper - lower`` of (15) at which to stop; default 1e-3.  Objective values lie in [0, 1].
    epsilon : float, optional
        Smoothing parameter of the published variant; by default tol / (2 log d), about the largest that can reach
        tol.  If given, the paper's rule also stops the solver: a gap of (21) of at most epsilon log d.
    max_iter : int
        Maximum number of iterations, each with one eigendecomposition of size d (two if accelerated).
    time_limit : float, optional
        Time limit in seconds, kept to within about a second: an eigendecomposition that would exceed it by much is not
        started.
    callback : callable, optional
        Called with each `Progress`; return True to stop the solver.
    start : Result or (d, d) array, optional
        Matrix of directions for a warm start; the solution returned is never worse.
    sample_weight : (n,) array, optional
        Non-negative weights of the points, on any scale: weight 2 duplicates a point, weight 0 ignores it.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels of some points; see `low_rank`.

    Returns
    -------
    Result
        Solution with certified bounds, valid at every status.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    ResourceError
        If matrices of the size of V would not fit in memory; raised before they are allocated.
    """
    penalty = resolve_penalty(penalty, lam, ridge)
    one_of(variant, "variant", ("accelerated", "published"))
    if epsilon is not None and variant != "published":
        raise ParameterError("epsilon is set automatically by variant='accelerated'. Pass it with variant='published'.")
    if epsilon is not None:
        positive(epsilon, "epsilon")
    stopping = Stopping(tol, max_iter, time_limit, callback)

    def iterates(problem: DirectionProblem, start: WarmStart) -> Iterator[Iterate]:
        size = problem.X.shape[1]
        copies_of_V = 16  # held at once
        require_memory(copies_of_V * 8.0 * size**2, f"fista with {size} features", "use low_rank")
        U, C = start.as_dense
        if variant == "accelerated":
            yield from accelerated_iterates(problem, U, C, stopping.max_iter, tol)
            return
        eps = tol / (2 * max(np.log(problem.W.shape[1]), 1.0)) if epsilon is None else epsilon
        yield from published_iterates(problem, eps, U, C, stopping.max_iter, stop_by_paper_rule=epsilon is not None)
        stopping.status = Status.SMOOTHED_GAP

    with in_range():
        return solve_by_iterates(
            X,
            nu,
            penalty,
            iterates,
            stopping,
            f"fista ({variant})",
            start=start,
            sample_weight=sample_weight,
            constraints=constraints,
            by_columns=penalty.has_l1,
        )


# The dual: value, gradient, proximal operator, Lipschitz constant


class BoxWithDiagonal(PairPenalty):
    """The l1 norm with its diagonal in the maximum, as in (21): |C_jk| <= c_j c_k also for j = k."""

    @cached_property
    def half_width(self) -> Array:
        return np.outer(self.c, self.c) * INSIDE_BOX

    def project_inexact(self, C: Array) -> Array:
        return np.asarray(np.clip(C, -self.half_width, self.half_width, out=C))


class SmoothedDual:
    r"""Problem  min over u > 0, C in the dual set  of  mean(1/u)/2 + phi_eps(W'(X' Diag(u) X / (2n) - C) W).

    The smooth term is phi_eps(D) = eps log tr exp(D / eps); the rest is separable.  (D, r) W has W'NW = I for the
    normaliser N of tr NV = 1: A in the paper, A + Diag(c)^2 if accelerated; then the set of C is zero on the diagonal.
    """

    def __init__(self, X: Rows, W: Array, pair_penalty: PairPenalty) -> None:
        self.X, self.W, self.pair_penalty, self.Z = X, W, pair_penalty, X.in_basis(W)
        self.nonzero_rows = ~self.Z.zero_rows()

    def separable_part(self, u: Array) -> float:
        """Return mean(1/u)/2 over the nonzero rows; the optimal u of a zero row is infinite."""
        return float(np.sum(1.0 / u[self.nonzero_rows])) / (2 * len(u))

    def matrix(self, u: Array, C: Array) -> Array:
        """Return D = W'(X' Diag(u) X / (2n) - C) W, linear in (u, C)."""
        D = self.Z.weighted_gram(u) / 2
        return D - times(self.W.T, times(C, self.W)) if C.any() else D

    def gradients(self, root: Array) -> tuple[Array, Array, Array]:
        """Return the factor U of V = W Q W' and the gradients of phi_eps in u and C, from a root of Q = phi_eps'(D)."""
        U = times(self.W, root)
        grad_C = -times(U, U.T)  # the paper's appendix drops this minus
        return U, self.Z.quadratic_forms(root) / (2 * len(self.Z)), grad_C

    def l1(self, U: Array) -> float:
        """Return the l1 term: the maximum of tr CUU' over the dual set."""
        return self.pair_penalty.support_function(times(U, U.T))

    def curvature_u(self, steps: int = 30, units: Array | None = None, start: Array | float = 1.0) -> float:
        """Bound the curvature of eps phi_eps in u, or in u / units: lambda_max(B'B o B'B), B = W'X' / sqrt(2n).

        The n x n matrix is nonnegative, so the largest ratio of a power step, from a positive start, bounds its top
        eigenvalue from above.  This costs O(n d^2) instead of O(max(n, d)^3) in the paper.
        """
        w, bound = np.ones(len(self.Z)) * start, np.inf
        image_of = self.Z.squared_products(np.ones(len(self.Z)) if units is None else units)
        for _ in range(steps):
            check_deadline()
            image = image_of(w)
            live = image > 0
            if not live.any():
                return 0.0
            bound = min(bound, float(np.max(image[live] / w[live])))
            w = np.where(live, image / image.max() + 1e-12, 1.0)
        return bound

    def curvature_C(self) -> float:
        """Bound the curvature of eps phi_eps in C: lambda_max(W W')^2."""
        return top_eigenvalue(times(self.W.T, self.W)) ** 2

    def lipschitz(self, eps: float) -> float:
        """Return the Lipschitz constant of the gradient of the smooth part, with the paper's factor 2."""
        return 2.0 / eps * max(self.curvature_u(), self.curvature_C())


def softmax_value(D: Array, eps: float) -> float:
    """Return eps log tr exp(D / eps), computed from the eigenvalues only."""
    check_deadline(3.0 * float(len(D)) ** 3 if len(D) > LARGE_SIZE else 0.0)
    theta = np.linalg.eigvalsh(D)
    return float(theta[-1] + eps * np.log(np.exp((theta - theta[-1]) / eps).sum()))


def softmax_root(D: Array, eps: float) -> tuple[float, Array]:
    """Return eps log tr exp(D / eps) and a square root of its gradient, the density exp(D / eps) / tr exp(D / eps)."""
    theta, vectors = eigh(D)
    weights = np.exp((theta - theta[-1]) / eps)
    total = weights.sum()
    keep = weights > 1e-18 * total
    return float(theta[-1] + eps * np.log(total)), vectors[:, keep] * np.sqrt(weights[keep] / total)


def prox_inverse(v: Array, step: float | Array, n: int) -> Array:
    """Return argmin over u > 0 of (u - v)^2 / (2 step) + 1 / (2 n u), up to rounding.

    It is the positive root of a u^3 - a v u^2 - 1, a = 2n / step.  Newton's method starts to the right of the root,
    where the cubic is convex and increasing; the paper's starting point fails for v far below 0.
    """
    a = 2 * n / step
    right = a ** (-1 / 3)
    u = np.maximum(v, 0.0) + np.minimum(right, 1 / np.sqrt(a * np.maximum(-v, a ** (-1 / 3))))
    for _ in range(60):
        new = u - (a * u**2 * (u - v) - 1) / (a * u * (3 * u - 2 * v))
        if np.all(np.abs(new - u) <= 1e-15 * u):
            break
        u = new
    return np.asarray(u)


# The iterations


def published_dual(problem: DirectionProblem) -> SmoothedDual:
    """Return the dual of (21) as printed, with tr AV = 1; A + Diag(c)^2 replaces A if A is singular and c > 0.

    It does so too for all penalties except the l1 norm, which do not occur in (21).
    """
    W = whitener_of_gram(problem.A) if problem.is_large else whitener(problem.R, full_rank=False)
    if not problem.pair_penalty.is_l1 or W is None or (problem.has_l1 and W.shape[1] < len(W)):
        return SmoothedDual(problem.X, problem.W, problem.pair_penalty)
    return SmoothedDual(problem.X, W, BoxWithDiagonal(problem.c))


def first_point(problem: DirectionProblem, dual: SmoothedDual, U: Array | None) -> tuple[Array, float]:
    """Return u = 1/sqrt(q) and the scale of the l1 term at a starting point, by default V = N^-1 / r."""
    if U is None:
        U = dual.W / max(dual.W.shape[1], 1) ** 0.5
    else:  # at tr NV = 1
        N = problem.A if isinstance(dual.pair_penalty, BoxWithDiagonal) else problem.B
        U = U / max(float(np.sum(U * times(N, U))), 1e-300) ** 0.5
    return problem.inverse_sqrt(problem.X.quadratic_forms(U), 1e-4), theta(problem, dual, U, 0.0)


def theta(problem: DirectionProblem, dual: SmoothedDual, U: Array, scale: float) -> float:
    """Return theta = g/2 - scale * l1; if theta equals scale, (21) with its l1 term multiplied by scale solves (15)."""
    return max(problem.mean_sqrt(U) / 2 - scale * dual.l1(U), 0.05)


def published_iterates(
    problem: DirectionProblem, eps: float, U: Array | None, C: Array | None, max_iter: int, *, stop_by_paper_rule: bool
) -> Iterator[Iterate]:
    """Yield an iterate every 25 iterations of the paper's Algorithm 1, corrected: fixed eps and step 1/L, no restart.

    Once (21) is solved to eps log d, rescale its l1 term and continue.  With stop_by_paper_rule, stop as in the paper:
    if (21) is solved to eps log d and the scale of its l1 term changes by less than 2 %.
    """
    dual = published_dual(problem)
    n, r = dual.Z.shape
    step = 1.0 / dual.lipschitz(eps)
    u, scale = first_point(problem, dual, U)
    C = dual.pair_penalty.zero() if C is None else scale * dual.pair_penalty.project_inexact(C.copy())
    ahead, t = (u, C), 1.0
    for done in range(1, max_iter + 1):
        # 1. A proximal step from the extrapolated point.
        check_deadline()
        U, grad_u, grad_C = dual.gradients(softmax_root(dual.matrix(*ahead), eps)[1])
        last_u, last_C = u, C
        u = prox_inverse(ahead[0] - step * grad_u, step, n)
        C = scale * dual.pair_penalty.project_inexact((ahead[1] - step * grad_C) / scale)
        t, weight = momentum(t)
        ahead = (u + weight * (u - last_u), C + weight * (C - last_C))
        if done % 25 and done < max_iter:
            continue
        yield Iterate(U, done, DualPoint(u, C / scale))
        # 2. The duality gap of (21) with its l1 term scaled; eps log d would be 0 if d = 1.
        upper = dual.separable_part(u) + np.linalg.eigvalsh(dual.matrix(u, C))[-1]
        if upper - (problem.mean_sqrt(U) - scale * dual.l1(U)) <= eps * max(np.log(r), 1.0):
            new_scale = theta(problem, dual, U, scale) if problem.has_l1 else scale
            if stop_by_paper_rule and abs(new_scale - scale) <= 0.02 * scale:
                return
            if problem.has_l1:
                C, scale = C * (new_scale / scale), new_scale
                ahead, t = (u, C), 1.0


def accelerated_iterates(
    problem: DirectionProblem, U0: Array | None, C0: Array | None, max_iter: int, tol: float
) -> Iterator[Iterate]:
    """Yield iterates within stages, at their ends, and extrapolated from the ends to eps = 0, until the gap is tol.

    A stage minimises the dual smoothed at one eps, with C in units of its scale.  The curvature in u is diagonal: steps
    are relative to u at the start of the stage, because u is large for rows with a small quadratic form.  A row of
    count m stands for m equal rows, each with m u, and takes the steps of these rows.
    """
    dual, counts = SmoothedDual(problem.X, problem.W, problem.pair_penalty), problem.sums.counts
    u, scale = first_point(problem, dual, U0)
    gap = tol
    if U0 is not None:
        start = problem.rescale(U0)
        gap = start.value - certify(problem, start).lower
    eps = float(np.clip(gap, 1e-3 if U0 is None else 1e-5, 1e-2))
    C, U = dual.pair_penalty.zero() if C0 is None else C0, dual.W
    factor, done, ends = 0.1 / eps, 0, list[tuple[float, Array, Array, Array]]()
    while eps > 1e-9 and done < max_iter:
        # 1. Curvatures at u, and the matrix D = W'(X' Diag(u) X / (2n) - scale C) W, linear in (u, C).
        of_points = counts * u
        units = of_points / np.mean(counts * of_points) / counts**1.5
        curvature_u = dual.curvature_u(5, units, counts**0.5) / units**2
        curvature_C = dual.curvature_C() * scale**2

        def inner(
            du: Array, dC: Array, eu: Array, eC: Array, of_u: Array = curvature_u, of_C: float = curvature_C
        ) -> float:
            return float(np.sum(of_u * du * eu) + of_C * np.sum(dC * eC))

        last = ahead = (u, C, dual.matrix(u, scale * C))
        t, is_finished = 1.0, False
        while not is_finished and done < max_iter:
            check_deadline()
            # 2. A proximal step from the extrapolated point; the curvatures double until their model is an upper bound.
            value_ahead, root = softmax_root(ahead[2], eps)
            U, grad_u, grad_C = dual.gradients(root)
            grad_C *= scale
            for _ in range(100):
                step_u, step_C = 1 / (factor * curvature_u), 1 / (factor * curvature_C)
                u = prox_inverse(ahead[0] - step_u * grad_u, step_u, len(u))
                C = dual.pair_penalty.project_inexact(ahead[1] - step_C * grad_C)
                D = dual.matrix(u, scale * C)
                value = softmax_value(D, eps)
                du, dC = u - ahead[0], C - ahead[1]
                model = value_ahead + grad_u @ du + np.sum(grad_C * dC)
                if value <= model + factor / 2 * inner(du, dC, du, dC) + 1e-13:
                    break
                factor *= 2
            done += 1
            # 3. The duality gap of the smoothed problem, entropy included; grad_u holds q / (2n).
            spectrum = np.sum(root**2, axis=0)
            entropy = -np.sum(spectrum * np.log(spectrum))
            primal = np.mean(np.sqrt(2 * len(u) * grad_u)) - scale * dual.l1(U) + eps * entropy
            is_finished = bool(dual.separable_part(u) + value - primal < EPS_FACTOR * eps)
            if is_finished or done >= max_iter or done % 20 == 0:
                yield Iterate(U, done, DualPoint(u, C))
            # 4. Extrapolation, restarted if the momentum would increase the objective.
            if inner(ahead[0] - u, ahead[1] - C, u - last[0], C - last[1]) > 0:
                t = 1.0
            t, weight = momentum(t)
            ahead = (u + weight * (u - last[0]), C + weight * (C - last[1]), D + weight * (D - last[2]))
            last, factor = (u, C, D), factor * (1.0 if is_finished or done >= max_iter else 0.85)
        # 5. The ends of the last two and three stages give points at eps = 0; then the next, smaller eps.
        ends.append((eps, u, C, U))
        for order in (2, 3):
            if is_finished and len(ends) >= order:
                yield extrapolate(ends[-order:], done, dual.pair_penalty)
        scale = theta(problem, dual, U, scale) if problem.has_l1 else scale
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
