"""Duals on a core of coordinates, and lower bounds for (15) from any sparse factor outwards.

At an optimum the ridge and the l1 part together are at most v (1 - v), v its value.  So the value is at least that of
the problem with both times 1 + e, less e v (1 - v): a multiplier that is not quite feasible costs less than a larger t.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from diffrac_cvx.certificates.block_problem import Indices
from diffrac_cvx.certificates.core_proof import Core
from diffrac_cvx.certificates.direction_bounds import lower_bound
from diffrac_cvx.certificates.outside import Look, look_outside
from diffrac_cvx.certificates.proof import clip_to_box, cost_of_excess
from diffrac_cvx.certificates.search import (
    Blend,
    candidate_weights,
    closer_to_feasible,
    fit_from,
    least_over_blends,
    top_eigenvalue,
)
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import Sparse, dense
from diffrac_cvx.points.linear_algebra import cholesky, times
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.problem.direction_problem import DirectionProblem, Scaled, without_l1

EXCESS, LARGEST_GAP = 7.0, 0.03  # penalties are made larger by a multiple of the gap on the core, where it is small
SHARES = (0.006, 0.012, 0.025, 0.05, 0.1, 0.2, 0.4, 0.7)  # relative gaps at which a bound is tried
FAINT = 1e-4  # of the largest diagonal entry of V, and of an entry to its diagonal, below which it may be meant as 0
SIGNED = 1e-3  # of an entry of V to its diagonal, above which its sign is where a multiplier starts
FITTED, MOST_FITTED = 60, 500  # steps in which a multiplier is fitted, and coordinates of a core up to which it is
JOININGS, ENOUGH = 6, 0.0125  # of coordinates to the core, and the relative gap at which there are no more


class CoreDual(NamedTuple):
    """Weights of the rows, the mean of their inverses, and a multiplier, with the least t at which they hold.

    They hold where the penalties are times 1 + excess; what is spent on that comes off the bound.
    """

    u: Array
    inverse_mean: float
    C: Array
    t: float
    excess: float = 0.0
    spent: float = 0.0

    @property
    def lower(self) -> float:
        """The bound on the core, but for rounding."""
        return 1.0 - self.t * self.inverse_mean - self.spent

    def at(self, lower: float) -> tuple[Array, float, float, float]:
        """Return the weights, the mean, the t at which this bound is proved, and what is spent."""
        return self.u, self.inverse_mean, (1.0 - lower - self.spent) / self.inverse_mean, self.spent


def dual_of(
    problem: DirectionProblem, small: DirectionProblem, point: Scaled, candidates: Callable[[Array], Iterable[Array]]
) -> CoreDual:
    """Return the weights and the multiplier on a core that promise the largest bound, of those read off energies.

    The candidates for the multiplier come from M = X' Diag(u) X / n.  A row that is zero on the core alone has its
    weight, for it is one of the problem on all coordinates.
    """
    found = [
        blended(small, u, inverse_mean, C)
        for u, inverse_mean in candidate_weights(problem, point.q)
        for C in candidates(small.X.moment(u))
    ]
    best = max(found, key=lambda dual: dual.lower)
    gap = point.value - best.lower
    if not 0.0 < gap < LARGEST_GAP:
        return best
    other = blended(small, best.u, best.inverse_mean, best.C, EXCESS * gap, point.value)
    return max(best, other, key=lambda dual: dual.lower)


def blended(
    small: DirectionProblem, u: Array, inverse_mean: float, C: Array, excess: float = 0.0, upper: float = 1.0
) -> CoreDual:
    """Return the dual on a core with the share of a multiplier, and the t, that are best there."""
    more = small.penalised_more(excess)
    rows = small.X.array() * (u / len(u))[:, None] ** 0.5
    B = more.A + np.diag(more.c**2)

    def at(blend: float) -> tuple[Blend, float]:
        t = ratio_by_rows(rows, B + (1.0 - blend) * (1.0 + excess) * C)
        return Blend(t, 1.0 - blend, 0.0), t

    found = least_over_blends(at)
    return CoreDual(u, inverse_mean, found.share * C, found.t, excess, cost_of_excess(excess, upper))


def ratio_by_rows(rows: Array, right: Array) -> float:
    """Return about the largest eigenvalue of right^-1 rows'rows; infinity where right is not positive definite."""
    if not are_finite(rows, right):
        return np.inf
    try:
        K = scipy.linalg.solve_triangular(cholesky(right), rows.T, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return np.inf
    return top_eigenvalue(times(K.T, K) if len(rows) < len(right) else times(K, K.T))


def bound_outwards(problem: DirectionProblem, point: Scaled, C: Sparse | None = None) -> float:
    """Return the best bound found from a sparse factor outwards, at a few relative gaps; 0 where there is none.

    The core is where the factor is not faint, or the multiplier not zero, and what joins them where a look fails.
    """
    rows = scipy.sparse.csr_array(point.U)
    energies = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    inside = (energies > FAINT * energies.max()) | (problem.c == 0.0)
    if C is not None:
        inside |= abs(scipy.sparse.csr_array(C)).sum(axis=1) > 0.0
    chosen = np.flatnonzero(inside)
    on_core = None if C is None else dense(scipy.sparse.csr_array(C)[chosen][:, chosen])
    lower = bound_at_equal_weights(without_l1(problem))
    for joined in range(JOININGS):
        fitted = C is None or joined > 0
        dual = dual_on(problem, point, chosen, dense(rows[chosen]), on_core, fitted=fitted)
        core = Core(problem, chosen, dual.C, dual.excess)
        shares = [share for share in SHARES if lower < point.value * (1.0 - share) <= dual.lower]
        failed: Look | None = None
        for share in shares:
            look = look_outside(core, *dual.at(point.value * (1.0 - share)))
            if look.lower is not None:
                lower = max(lower, look.lower)
                break
            failed = look if failed is None else failed
        missing = 0 if failed is None else len(failed.needed)
        near = lower >= (1.0 - ENOUGH) * point.value
        if failed is None or near or not 0 < missing <= MOST_FITTED - len(chosen):
            break
        chosen, on_core, _ = join(problem, chosen, dual.C, failed.needed, dual.u, failed)
    return max(lower, 0.0)


def dual_on(
    problem: DirectionProblem, point: Scaled, chosen: Indices, U: Array, given: Array | None, *, fitted: bool
) -> CoreDual:
    """Return the best dual on a core: with the multiplier given, closer to feasible, or one fitted from it or V."""
    small = problem.restrict(chosen)

    def candidates(M: Array) -> Iterator[Array]:
        V = times(U, U.T)
        if given is not None:
            yield clip_to_box(small, given)
            yield closer_to_feasible(small, M, clip_to_box(small, given))
            start = clip_to_box(small, given)
        else:
            size = np.sqrt(np.outer(np.diag(V), np.diag(V)))
            slack = np.clip(M - small.A, -small.box, small.box)
            start = np.where(np.abs(V) > SIGNED * size, small.box * np.sign(V), slack)
        if fitted:
            yield fit_from(small, M, V, start, FITTED)

    return dual_of(problem, small, point, candidates)


def join(
    problem: DirectionProblem, chosen: Indices, C: Array, new: Indices, u: Array, look: Look
) -> tuple[Indices, Array, Indices]:
    """Return a core with new coordinates, increasing, its multiplier, and the order it is in of the old, then the new.

    The new multipliers are those of the look that named them, or what makes S least at the weights u.
    """
    both, kept = np.concatenate([chosen, new]), len(chosen)
    order = np.argsort(both, kind="stable")
    data, c = array_points(problem.X.in_columns().dense_columns(both)), problem.c[both]
    A = array_points(problem.Y.in_columns().dense_columns(both)).second_moment()
    larger = np.clip(data.moment(u) - A, -np.outer(c, c), np.outer(c, c))
    np.fill_diagonal(larger, 0.0)
    larger[:kept, :kept] = C
    places = kept + np.flatnonzero(np.isin(new, look.needed))
    if len(places):
        named = kept + np.array([np.flatnonzero(look.needed == j)[0] for j in both[places]])
        old = np.arange(kept)
        larger[np.ix_(np.append(old, places), places)] = look.C[np.ix_(np.append(old, named), named - kept)]
        larger[places, :kept] = larger[:kept, places].T
    return both[order], larger[np.ix_(order, order)], order


def bound_at_equal_weights(problem: DirectionProblem) -> float:
    """Return the lower bound of a problem without an l1 part at u = 1: above 0 with a ridge on all columns."""
    u = np.where(problem.zero_rows, 0.0, 1.0)
    return lower_bound(problem, u, problem.mean_inverse(np.ones(len(u))), None)
