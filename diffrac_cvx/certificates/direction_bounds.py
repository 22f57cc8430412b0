"""Brackets in the space of directions: what any factor of V proves about (15) and (21), in closed form."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.direction_problem import DirectionProblem
from diffrac_cvx.inputs import Array
from diffrac_cvx.linalg import EPS, momentum, row_energies, symmetric, weighted_gram
from diffrac_cvx.result import Bracket

WELL_CONDITIONED = 0.05  # smallest eigenvalue of A + C, in units of A + Diag(c)^2, from which blending only loses
FITTING_STEPS = 300
THRESHOLDS = (1e-6, 1e-4, 1e-2)  # of |V_ij| to its diagonal, below which a solver may have meant 0
BLENDS = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0)


class Dual(NamedTuple):
    """What a solver offers for the lower bound: weights u, or None for 1/sqrt(q), and C off the diagonal, or None."""

    u: Array | None = None
    C: Array | None = None


def bracket(problem: DirectionProblem, U: Array, duals: Sequence[Dual] = ()) -> Bracket:
    r"""Bracket the optimum of (15) from any factor U, V = UU', and any candidates for the dual.

    For u > 0 and symmetric C in the box with A + C > 0, let M = X' Diag(u) X / n and t the largest generalised
    eigenvalue of (M, A + C).  Then 2 sqrt(q) <= u q + 1/u gives  optimum >= 1 - t mean(1/u).
    """
    U, upper = problem.best_scale(U)
    lower = 0.0
    for dual in duals:
        if dual.u is not None:
            weights, inverse_mean = idle_free(problem, dual.u)
            lower = max(
                lower, lower_bound(problem, weights, inverse_mean, None if dual.C is None else inside(problem, dual.C))
            )
    given = [inside(problem, dual.C) for dual in duals if dual.C is not None]
    for weights, inverse_mean in dual_weights(problem, U):
        for C in dual_matrices(problem, U, weights, given):
            lower = max(lower, lower_bound(problem, weights, inverse_mean, C))
    return Bracket(float(min(lower, upper)), float(upper))


def inside(problem: DirectionProblem, C: Array) -> Array:
    """Return C moved into its box, where alone it proves anything: a solver's multiplier may be a little outside."""
    return np.asarray(np.clip(symmetric(C), -problem.box, problem.box))


def lower_bound(problem: DirectionProblem, weights: Array, inverse_mean: float, C: Array | None) -> float:
    """Return 1 - t mean(1/u), for u given as weights of the rows and mean(1/u) (an idle row has weight 0, 1/u = 0)."""
    return 1.0 - largest_ratio(problem, moment(problem.Z, weights), C) * inverse_mean


def moment(X: Array, weights: Array) -> Array:
    """Return X' Diag(weights) X / n."""
    return weighted_gram(X, weights) / len(X)


def dual_weights(problem: DirectionProblem, U: Array) -> Iterator[tuple[Array, float]]:
    """Yield u and mean(1/u), with 1/u = sqrt(q) kept away from 0 by more and more."""
    q = row_energies(problem.X, U)
    for floor in (1e-12, 1e-4, 1e-2):
        roots = np.sqrt(np.maximum(q, floor * max(q.mean(), 1e-300)))
        yield idle_free(problem, 1.0 / roots)
        if q[~problem.idle].min(initial=np.inf) >= 1e-2 * q.mean():
            return


def idle_free(problem: DirectionProblem, u: Array) -> tuple[Array, float]:
    """Return weights of the rows and mean(1/u) when zero rows take u = infinity, which costs nothing."""
    return np.where(problem.idle, 0.0, u), float(np.mean(np.where(problem.idle, 0.0, 1.0 / u)))


def dual_matrices(
    problem: DirectionProblem, U: Array, weights: Array, given: Sequence[Array]
) -> Iterator[Array | None]:
    """Yield candidates for the off-diagonal of C, inside the box c_i c_j: those given, else from the signs of V."""
    if not problem.has_l1:
        yield None
        return
    yield from given
    V = U @ U.T
    size = np.sqrt(np.outer(np.diag(V), np.diag(V)))
    if given and np.mean(np.abs(V) <= 1e-4 * size) < 0.2:
        return  # the signs are no news to a solver whose V has few zeros
    slack = np.clip(moment(problem.X, weights) - problem.A, -problem.box, problem.box)
    yield from sign_patterns(problem, V, slack)
    if not given:
        for threshold in THRESHOLDS:
            yield fitted(problem, weights, V, np.abs(V) <= threshold * size)


def fitted(problem: DirectionProblem, weights: Array, V: Array, free: npt.NDArray[np.bool_]) -> Array:
    """Fit the free entries of C to what optimality asks of S = A + C + Diag(c)^2 - M: S V = 0 and S >= 0.

    Accelerated projected gradient on the squared violations, an eigendecomposition a step; whatever comes out is
    inside the box, so the bound holds.
    """
    fixed = problem.A + np.diag(problem.c**2) - moment(problem.X, weights)
    V = V / max(top_eigenvalue(V), 1e-300)
    C = np.where(free, np.clip(-fixed, -problem.box, problem.box), problem.box * np.sign(V))
    ahead, t = C, 1.0
    for _ in range(FITTING_STEPS):
        S = fixed + ahead
        values, vectors = np.linalg.eigh(S)
        negative = (vectors * np.minimum(values, 0.0)) @ vectors.T
        slope = (S @ V + V @ S) / 2 + negative
        new = np.where(free, np.clip(ahead - slope / 2, -problem.box, problem.box), C)
        t, weight = momentum(t)
        ahead = new + weight * (new - C)
        C = new
    return C


def sign_patterns(problem: DirectionProblem, V: Array, slack: Array) -> Iterator[Array]:
    """Yield c_i c_j sign(V_ij) where V is not zero, up to a threshold that a solver may need, and slack elsewhere."""
    size = np.sqrt(np.outer(np.diag(V), np.diag(V)))
    for threshold in THRESHOLDS:
        yield np.where(np.abs(V) > threshold * size, problem.box * np.sign(V), slack)
    yield slack


def largest_ratio(problem: DirectionProblem, Mz: Array, C: Array | None) -> float:
    """Return t with M <= t (A + C + Diag(c)^2), C blended with 0 until the right side is positive definite.

    Mz is M in the whitened coordinates W, in which A + Diag(c)^2 is the identity.
    """
    if Mz.size == 0:
        return 0.0
    size = len(Mz)
    if C is None:
        return top_eigenvalue(Mz) * (1 + 4 * size * EPS)
    shifts, Q = np.linalg.eigh(problem.W.T @ C @ problem.W)
    M = Q.T @ Mz @ Q
    best = np.inf
    for blend in BLENDS:
        right = 1.0 + (1.0 - blend) * shifts
        if right.min() < 1e-9:
            continue
        root = 1.0 / np.sqrt(right)
        t = top_eigenvalue(M * np.outer(root, root)) * (1 + 8 * size * EPS / min(right.min(), 1.0))
        if t > best:
            break
        best = t
        if right.min() > WELL_CONDITIONED:
            break
    return best


def top_eigenvalue(M: Array) -> float:
    """Return the largest eigenvalue of a symmetric matrix.

    By divide and conquer: LAPACK's MRRR, quicker for one eigenvalue, gives up on some matrices near the identity.
    """
    return float(np.linalg.eigvalsh(M)[-1])


def normalized_bracket(problem: DirectionProblem, U: Array, duals: Sequence[Dual] = ()) -> Bracket:
    """Bracket the optimum of (21), min -(g(V) - sum c_i c_j |V_ij|) over tr AV = 1, from a factor of V.

    With theta such that M/2 - C <= theta A, the optimum is at least -(mean(1/u)/2 + theta); it is never below -1.
    """
    size = float(np.sum((problem.R @ U) ** 2))
    if size == 0.0:
        return Bracket(-1.0, 0.0)
    U = U / size**0.5
    l1 = problem.cost(U) - 1.0
    upper = l1 - problem.gain(U)
    lower = -1.0
    given = [inside(problem, dual.C) for dual in duals if dual.C is not None]
    for weights, inverse_mean in dual_weights(problem, U):
        half = moment(problem.X, weights) / 2
        theta = problem.gain(U) / 2 - l1
        slack = np.clip(half - theta * problem.A, -problem.box, problem.box)
        for C in [*given, *sign_patterns(problem, U @ U.T, slack)]:
            lower = max(lower, -(inverse_mean / 2 + normalized_multiplier(problem, half, C)))
    return Bracket(float(min(lower, upper)), float(upper))


def normalized_multiplier(problem: DirectionProblem, half: Array, C: Array) -> float:
    """Return theta with M/2 - C - Diag(c)^2 <= theta A, C blended with 0 where A is singular; inf if there is none.

    In the coordinates W of A + Diag(c)^2, A is the identity less a part that reaches 1 on its null space; there X
    vanishes, and a Schur complement removes it.
    """
    W = problem.W
    values, Q = np.linalg.eigh(W.T @ problem.A @ W)
    null = values < 1e-9
    basis = W @ Q
    basis[:, ~null] /= np.sqrt(values[~null])
    best = np.inf
    for blend in BLENDS:
        N = basis.T @ ((1 - blend) * C + np.diag(problem.c**2) - half) @ basis
        reduced = N[np.ix_(~null, ~null)]
        if null.any():
            corner = N[np.ix_(null, null)]
            if np.linalg.eigvalsh(corner)[0] <= 1e-9 * max(np.abs(N).max(), 1e-300):
                continue
            cross = N[np.ix_(null, ~null)]
            reduced = reduced - cross.T @ np.linalg.solve(corner, cross)
        best = min(best, top_eigenvalue(-(reduced + reduced.T) / 2) + 8 * len(N) * EPS * np.abs(N).max())
        if not null.any():
            break
    return best
