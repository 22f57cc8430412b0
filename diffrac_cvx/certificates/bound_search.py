"""Search for the weights u, the multiplier C and the number t of a lower bound on (15) with V as one block.

A bad choice makes a bound loose, never false: `proof` certifies it or rejects it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

import numpy as np
import scipy.optimize

from diffrac_cvx.certificates.block_problem import BlockProblem, block_problem
from diffrac_cvx.certificates.proof import (
    TRIVIAL,
    Bound,
    Multipliers,
    best_of,
    bound_at,
    eliminate,
    eliminated_matrix,
    project_dual,
)
from diffrac_cvx.machine.deadlines import EarlyExitError, check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF
from diffrac_cvx.points.linear_algebra import (
    LARGE_SIZE,
    cholesky,
    eigh,
    eigvalsh,
    lanczos,
    momentum,
    solve_lower,
    symmetric,
    times,
)
from diffrac_cvx.points.ranges import are_finite, is_out_of_range
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.base import diagonal_scale

MAX_T = 1e100  # a larger t proves nothing
MAX_TRIES = 12  # number of larger t that are tried after failed factorisations
NEGLIGIBLE_ENTRY = 1e-2  # relative to the diagonal of V, below which an entry may be 0
MAX_NEGATIVE_EIGENVECTORS = 40  # computed for the projection of a large matrix onto the cone
EIGENVALUE_ERROR = 1e-8  # relative error allowed for a large matrix, if no proof relies on it
WELL_CONDITIONED_EIGENVALUE = 0.05  # of I + C, above which shrinking C makes the bound worse
MIN_SHIFTED_EIGENVALUE = 1e-7  # of I + C, below which no ratio is computed


def row_weights(problem: DirectionProblem, u: Array) -> tuple[Array, float]:
    """Return u, 0 for zero rows, and mean(1/u), with 1/u = 0 for zero rows: X' Diag(u) X does not depend on these."""
    return np.where(problem.zero_rows, 0.0, u), problem.mean_inverse(u)


def best_bound(
    problem: DirectionProblem,
    weights: Iterable[tuple[Array, float]],
    multipliers: Callable[[Array], Iterable[Array | None]],
) -> Bound:
    """Return the best lower bound, at least 0, for these pairs of weights u and mean(1/u), with multipliers from M.

    A search for multipliers stops if numbers leave the range of double precision, which nearly collinear columns can
    cause.  At a deadline the best bound so far is returned.
    """
    best = TRIVIAL
    with suppress(EarlyExitError):  # the caller stops at its next deadline check
        for u, inverse_mean in weights:
            M = problem.X.weighted_gram(u)
            # With outlying rows, products of whitened rows are more accurate than those of M with W.
            whitened = M if problem.basis is not None else problem.Z.weighted_gram(u)
            try:
                for C in multipliers(M):
                    found = least_multipliers(problem, u, M, C, whitened)
                    best = best_of(best, Bound(bound_at(found.t, inverse_mean), found))
            except (ArithmeticError, ValueError) as error:
                if not is_out_of_range(error):
                    raise
    return best


def least_multipliers(
    problem: DirectionProblem, u: Array, M: Array, C: Array | None, whitened: Array | None = None
) -> Multipliers:
    """Return multipliers with nearly the smallest t with M <= t (A + C + Diag(c)^2); infinite t if uncertified.

    M is the weighted Gram matrix for row weights u, 0 for zero rows; ``whitened``, if given, is that of whitened rows.
    C is shrunk until the right side is positive definite.
    """
    if not M.size or not are_finite(M):
        return Multipliers(u, np.inf if M.size else 0.0)
    M, W = symmetric(M), problem.W
    if whitened is None:
        whitened = M if problem.basis is not None else times(W.T, times(M, W))
    whitened, min_eigenvalue = symmetric(whitened), 1.0
    if C is None:
        t = top_eigenvalue(whitened)
    else:
        C = project_dual(problem, C)
        t, weight, min_eigenvalue = best_combination(whitened, symmetric(times(W.T, times(C, W))))
        C = project_dual(problem, weight * C)
    return Multipliers(u, least_certified_t(problem, u, M, C, t, min_eigenvalue), C)


def least_certified_t(
    problem: DirectionProblem, u: Array, M: Array, C: Array | None, t: float, min_eigenvalue: float
) -> float:
    """Return a t slightly above the given one at which S >= 0 is certified, with all coordinates in E; or infinity.

    M is the weighted Gram matrix, and `min_eigenvalue` is nearly that of the right side in whitened coordinates.  The
    first t tried exceeds the given one by twice the error radius of S, so that different roundings of S give the same
    outcome.
    """
    if not (t <= MAX_T and min_eigenvalue > 0.0 and are_finite(M)):
        return np.inf
    if len(M) == 0:
        return 0.0
    # A t below the rounding error of the weights gives no better bound than a slightly larger one.
    t = max(t, UNIT_ROUNDOFF * problem.sums.largest_weight(u), 1e-300)
    split, is_whitened, best = block_problem(problem, np.arange(len(M))), problem.basis is not None, np.inf
    for whitened in (False, True):
        if (is_whitened and not whitened) or (whitened and not is_whitened and len(u) < len(problem.X)):
            continue
        usable = min_eigenvalue - split.inner.whitening_error.right_error if whitened else 1.0
        step = eliminated_matrix(split, u, t, M, C, whitened=whitened)[1] / max(usable, 1e-300)

        if usable > 0.0 and np.isfinite(step):
            shortfall = partial(elimination_shortfall, split, u, M, C, whitened, step)
            best = min(best, first_certified(shortfall, t + 2.0 * step, MAX_TRIES))
        if best <= t * (1.0 + 1e-9):  # given columns that are nearly collinear need a larger t than whitened ones
            break
    return best


def elimination_shortfall(
    split: BlockProblem, u: Array, M: Array, C: Array | None, whitened: bool, step: float, t: float, attempt: int
) -> float | None:
    """Return None if S is certified at t, otherwise a step to a larger t, four times longer after each attempt."""
    return 3.0 * step * 4.0**attempt if eliminate(split, u, t, C, whitened=whitened, M=M) is None else None


def first_certified(shortfall: Callable[[float, int], float | None], t: float, n_tries: int) -> float:
    """Return the first t at which S is certified: there ``shortfall(t, attempt)`` is None, otherwise the next step.

    Return infinity if no attempt succeeds.
    """
    for attempt in range(n_tries):
        step = shortfall(t, attempt)
        if step is None:
            return t
        t += step
    return np.inf


def candidate_multipliers(
    problem: DirectionProblem, U: Array, M: Array, C_given: Array | None
) -> Iterator[Array | None]:
    """Yield candidates for the off-diagonal C in the dual set: the given one, projected, or some from signs of V."""
    if not problem.has_l1:
        yield None
        return
    V = times(U, U.T)
    if C_given is not None:
        yield from improved_multipliers(problem, M, U, C_given)
        if np.mean(np.abs(V) <= 1e-4 * diagonal_scale(V)) < 0.2:
            return  # if V has few zeros, its signs determine the solver's C
    if not are_finite(M, V):
        yield problem.pair_penalty.zero()
        return
    slack = project_dual(problem, M - problem.A)
    start = problem.pair_penalty.subgradient(V, NEGLIGIBLE_ENTRY, slack)
    yield start
    yield slack
    if C_given is None and len(V) <= LARGE_SIZE:
        yield refine_dual(problem, M, V, start, steps=300)


def improved_multipliers(problem: DirectionProblem, M: Array, U: Array, C: Array, steps: int = 0) -> Iterator[Array]:
    """Yield C; C projected onto S = A + C + Diag(c)^2 - M >= 0 and back; and C refined by eigendecompositions."""
    yield C
    S = problem.A + C + np.diag(problem.c**2) - M
    yield project_dual(problem, C - negative_part(S)) if are_finite(S) else C
    if steps:
        yield refine_dual(problem, M, times(U, U.T), C, steps)


def refine_dual(problem: DirectionProblem, M: Array, V: Array, C: Array, steps: int) -> Array:
    """Fit C to the optimality conditions of S = A + C + Diag(c)^2 - M: S V = 0 and S >= 0.

    The method is accelerated projected gradient on the squared violations, with one eigendecomposition per step.  The
    result is in the dual set, so the bound is valid at any accuracy.
    """
    fixed = problem.B - M
    V = V / max(top_eigenvalue(V), 1e-300)
    extrapolated, t = C, 1.0
    for _ in range(steps):
        check_deadline()
        S = fixed + extrapolated
        SV = times(S, V)
        gradient = (SV + SV.T) / 2 + negative_part(S)
        new = problem.pair_penalty.project_inexact(extrapolated - gradient / 2)
        t, weight = momentum(t)
        extrapolated = new + weight * (new - C)
        C = new
    return C


def negative_part(S: Array) -> Array:
    """Return the negative part of a symmetric matrix; for a large one, only on its leading eigenvectors."""
    values, vectors = lanczos(S.dot, len(S), MAX_NEGATIVE_EIGENVECTORS, "SA", 1e-3) if len(S) > LARGE_SIZE else eigh(S)
    return times(vectors * np.minimum(values, 0.0), vectors.T)


def best_combination(
    M: Array, C: Array, B: Array | None = None, *, by_rows: bool = False
) -> tuple[float, float, float]:
    """Return nearly the smallest t with M <= t (B + weight C), the weight in [0, 1], and the smallest eigenvalue.

    B is the identity by default, and the eigenvalue is then nearly that of I + weight C. If ``by_rows``, M'M replaces
    M.

    The weight of B alone is increased by factors of ten, then refined by Brent's method: with s = t weight, M <= t (B +
    C) - s C is linear in t and s, so that the weights that reach a t form an interval.  If B = I, the right side has no
    eigenvalue below `MIN_SHIFTED_EIGENVALUE`, because rounding would then cost more.  The weight of B is not increased
    if no eigenvalue is below `WELL_CONDITIONED_EIGENVALUE`.
    """
    right, lowest, is_large = np.eye(len(C)) if B is None else B, 0.0, len(C) > LARGE_SIZE
    if not are_finite(M, C, right):
        return np.inf, 1.0, 0.0
    if B is None:  # for a large matrix, slightly too small
        lowest = float((lanczos(C.dot, len(C), 1, "SA", EIGENVALUE_ERROR)[0] if is_large else eigvalsh(C))[0])
        lowest -= EIGENVALUE_ERROR * is_large

    def is_above(limit: float, trivial_weight: float) -> bool:
        return 1.0 + (1.0 - trivial_weight) * lowest > limit

    def ratio(trivial_weight: float) -> float:
        with suppress(np.linalg.LinAlgError):
            if B is not None or is_above(MIN_SHIFTED_EIGENVALUE, trivial_weight):
                L = cholesky(right + (1.0 - trivial_weight) * C)
                K = solve_lower(L, M.T)
                if by_rows:
                    return top_eigenvalue(times(K.T, K) if len(M) < len(L) else times(K, K.T))
                return top_eigenvalue(symmetric(solve_lower(L, K.T)))
        return np.inf

    best, weight_of_B, last = ratio(0.0), 0.0, 1.0
    for larger in (float(weight) for weight in 10.0 ** np.arange(-8, 1)):
        if B is None and is_above(WELL_CONDITIONED_EIGENVALUE, weight_of_B):
            break
        found = ratio(larger)
        if found > best:
            last = larger
            break
        if found < best:
            best, weight_of_B = found, larger
    if weight_of_B >= 1e-4 and np.isfinite(best):  # smaller weights hardly change t
        refined = scipy.optimize.minimize_scalar(
            lambda log_weight: min(ratio(float(np.exp(log_weight))), 1e100),  # Brent's parabolas need finite numbers
            bounds=(float(np.log(weight_of_B / 10.0)), float(np.log(min(10.0 * weight_of_B, last)))),
            method="bounded",
            options={"maxiter": 5},
        )
        if refined.fun < best:
            best, weight_of_B = float(refined.fun), float(np.exp(refined.x))
    return best, 1.0 - weight_of_B, max(1.0 + (1.0 - weight_of_B) * lowest, MIN_SHIFTED_EIGENVALUE)


def top_eigenvalue(M: Array) -> float:
    """Return the largest eigenvalue of a symmetric matrix; infinity, which proves nothing, if it is not finite.

    For a large matrix it has the error of the Lanczos method.  Otherwise it is computed by divide and conquer: LAPACK's
    MRRR is faster for one eigenvalue, but fails on some matrices near the identity.
    """
    if not are_finite(M):
        return np.inf
    if len(M) > LARGE_SIZE:
        return float(lanczos(M.dot, len(M), 1, "LA", EIGENVALUE_ERROR)[0][-1]) * (1.0 + EIGENVALUE_ERROR)
    return float(eigvalsh(M)[-1])
