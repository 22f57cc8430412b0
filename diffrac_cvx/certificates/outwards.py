"""Lower bounds for (15) from any sparse factor outwards: duals on a core of coordinates, and looks from it.

At an optimum the ridge and the l1 part together are at most v (1 - v), v its value.  So the value is at least that of
the problem with both times 1 + e, less e v (1 - v): a multiplier that is not quite feasible costs less than a larger t.

Of the multipliers C between the core and a coordinate outside it, those in the box t c_j c_k with the least e'P^-1 e,
e = t C - T, are known from a lasso with the matrix P: e = -Pz at the minimum of z'Pz/2 - z'T + t c_j sum_k c_k |z_k|.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from diffrac_cvx.certificates.block_problem import Indices
from diffrac_cvx.certificates.block_proof import Pairs
from diffrac_cvx.certificates.core_proof import (
    Core,
    CoreSums,
    Eliminated,
    eliminate_core,
    excess_matrix,
    is_positive_less,
    sums_of_core,
)
from diffrac_cvx.certificates.direction_bounds import lower_bound
from diffrac_cvx.certificates.groups_outside import look_at_groups
from diffrac_cvx.certificates.proof import bound_at, cost_of_excess, in_dual_set
from diffrac_cvx.certificates.screening import TooManyError, scan
from diffrac_cvx.certificates.search import blended_by_rows, candidate_weights, closer_to_feasible, fit_from
from diffrac_cvx.machine.time_budget import poll
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import Sparse, dense
from diffrac_cvx.points.linear_algebra import lanczos, times
from diffrac_cvx.problem.direction_problem import DirectionProblem, Scaled, without_l1

EXCESS, LARGEST_GAP = 7.0, 0.03  # penalties are made larger by a multiple of the gap on the core, where it is small
SHARES = (0.006, 0.012, 0.025, 0.05, 0.1, 0.2, 0.4, 0.7)  # relative gaps at which a bound is tried
FAINT = 1e-4  # of the largest diagonal entry of V, and of an entry to its diagonal, below which it may be meant as 0
SIGNED = 1e-3  # of an entry of V to its diagonal, above which its sign is where a multiplier starts
FITTED, MOST_FITTED = 60, 500  # steps in which a multiplier is fitted, and coordinates of a core up to which it is
JOININGS, ENOUGH = 6, 0.0125  # of coordinates to the core, and the relative gap at which there are no more
MOST_PAIRS = 40  # beyond their box, for each coordinate: with more the bound fails anyway
MOST_FACTORISED = 3000  # rows that are not diagonally dominant
MOST_LACKING = 20  # coordinates that alone make the bound fail, beyond which no others are looked for
DENSE, ROUGHLY = 200, 1e-2  # rows of S up to which all eigenvectors are found, and accuracy of eigenvalues beyond
VIOLATED = 12  # directions that are named where the bound fails
LIGHT = 1e-3  # weight of a coordinate in violated directions, to the largest, below which it is not named
ROUNDS = 6  # of lassos: of coordinate descent on some entries, and of a look for those that are missing
ADDED = 16  # entries for each lasso in a round, those that are furthest beyond their box
SWEEPS = 10  # of coordinate descent in a round
SETTLED = 1e-3  # change of a sweep, to the largest entry, below which it ends
MISSING = 1e-2  # by how much, to the side of its box, an entry has to be beyond it
ENTRIES = 2**22  # of the blocks of the matrix that are held at once
SIMILAR = 256  # lassos, ordered by how many entries they have, whose blocks are of one size


class Look(NamedTuple):
    """What a look from the core outwards found."""

    lower: float | None  # the bound, where it is proved
    needed: Indices  # (k,), coordinates whose joining the core may prove it, those needed most first
    directions: Array  # (D, v), directions in which S is negative, of all coordinates
    C: Array  # (w + k, k), the multiplier that was tried between the core, then these coordinates, and these


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
    found = blended_by_rows(rows, more.A + np.diag(more.c**2), C, 1.0 + excess)
    return CoreDual(u, inverse_mean, found.share * C, found.t, excess, cost_of_excess(excess, upper))


def bound_outwards(problem: DirectionProblem, point: Scaled, C: Sparse | None = None) -> float:
    """Return the best bound found from a sparse factor outwards, at a few relative gaps; 0 where there is none.

    The core is where the factor is not faint, or the multiplier not zero, and what joins them where a look fails.
    """
    rows = scipy.sparse.csr_array(point.U)
    energies = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    inside = (energies > FAINT * energies.max()) | (problem.c == 0.0)
    if C is not None:
        inside |= abs(scipy.sparse.csr_array(C)).sum(axis=1) > 0.0
    inside = problem.structure.whole(inside)
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
            start = in_dual_set(small, given)
            yield start
            yield closer_to_feasible(small, M, start)
        else:
            start = small.coupling.attaining(V, SIGNED, in_dual_set(small, M - small.A))
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
    larger = problem.structure.restrict(both).coupling(c).project(data.moment(u) - A)
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


def look_outside(core: Core, u: Array, inverse_mean: float, t: float, spent: float = 0.0) -> Look:
    """Try to prove 1 - t mean(1/u) as a bound, from the core outwards; say what is missing where it fails.

    On the core M <= t (A + C + Diag(c)^2) should hold, or nothing is found.  `spent` comes off the bound, where the
    core's penalties are larger.
    """
    nothing = empty_look(core.problem)
    sums = sums_of_core(core, u, t)
    found = None if sums is None else eliminate_core(core, u, sums, multipliers_between(core, sums))
    if found is None:
        return nothing
    if core.problem.structure.labels is not None:
        outside = look_at_groups(core, found)
        if outside.proved:
            return nothing._replace(lower=bound_at(t, inverse_mean, spent=spent))
        return failure(core, found, outside.needed, outside.violated)
    lacking = np.flatnonzero(~(found.diagonal > found.slack))  # what is no number is lacking
    lacking = lacking[np.argsort(found.diagonal[lacking], kind="stable")]
    m = len(core.rest)
    if len(lacking) > MOST_LACKING:
        return failure(core, found, lacking, unit_vectors(m, lacking[:VIOLATED]))
    try:
        pairs = scan(found.at, np.arange(m), 1.0, most=MOST_PAIRS * max(m, 1)).pairs
    except TooManyError:
        order = np.argsort(found.diagonal, kind="stable")[: m // 4 + 1]
        return failure(core, found, order, unit_vectors(m, order[:VIOLATED]))
    among = pairs.take(np.flatnonzero(~np.isin(pairs.j, lacking) & ~np.isin(pairs.k, lacking)))
    violated = violated_directions(np.where(found.diagonal > found.slack, found.diagonal - found.slack, 1.0), among)
    if violated is None and not len(lacking):
        return nothing._replace(lower=bound_at(t, inverse_mean, spent=spent))
    violated = np.zeros((m, 0)) if violated is None else violated
    weight = np.sum(violated**2, axis=1)
    order = np.argsort(-weight, kind="stable")
    heavy = order[: int(np.sum(weight > LIGHT * weight.max(initial=0.0)))]
    return failure(core, found, np.append(lacking, heavy), np.hstack([unit_vectors(m, lacking[:VIOLATED]), violated]))


def empty_look(problem: DirectionProblem) -> Look:
    """Return a look that proves nothing and names nothing."""
    return Look(None, np.zeros(0, dtype=np.intp), np.zeros((len(problem.c), 0)), np.zeros((0, 0)))


def failure(core: Core, found: Eliminated, needed: Indices, violated: Array) -> Look:
    """Return what a failed look names: coordinates outside, and directions of all with the best part on the core."""
    needed = core.problem.structure.restrict(core.rest).first(needed, max(MOST_LACKING, len(core.chosen)))
    directions = np.zeros((len(core.problem.c), violated.shape[1]))
    directions[core.rest] = violated
    inner = found.at.K @ violated
    directions[core.chosen] = -scipy.linalg.solve_triangular(found.L, inner, lower=True, trans="T", check_finite=False)
    data, K, t = core.outside.rows.X.dense_columns(needed), found.at.K[:, needed], found.at.t
    coupling = core.problem.structure.restrict(core.rest[needed]).coupling(core.outside.c[needed])
    among = coupling.project((data.T @ (data * found.at.gram_weights[:, None]) + K.T @ K) / t)
    return Look(None, core.rest[needed], directions, np.vstack([found.C[:, needed], among]))


def multipliers_between(core: Core, sums: CoreSums) -> Array:
    """Return t C between the core and the others, about what leaves the most of S: T where it is in the dual set."""
    t, P, T = sums.t, sums.P, sums.T
    beyond = core.between.columns_beyond(T, t)
    if not len(beyond):
        return T
    some, tC = np.ascontiguousarray(T[:, beyond]), T.copy()
    if core.between.plain:
        tC[:, beyond] = some - P @ lassos(P, some, np.ascontiguousarray(core.between.side(t)[:, beyond]))
    else:
        tC[:, beyond] = core.between.restrict(beyond).nearest(P, some, t)
    return tC


def violated_directions(diagonal: Array, pairs: Pairs) -> Array | None:
    """Return directions in which Diag(diagonal) less the pairs' excess is negative; None if it is proved positive.

    Where neither is found, the coordinates of the least dominant rows are named.
    """
    m = len(diagonal)
    E = excess_matrix(pairs, m)
    rows = np.asarray(abs(E).sum(axis=1)).ravel()
    if is_positive_less(diagonal, E, np.zeros(m, dtype=bool)):
        return None
    if m <= DENSE:
        values, vectors = np.linalg.eigh(np.diag(diagonal) - E.toarray())
    else:
        values, vectors = lanczos(lambda x: diagonal * x - E @ x, m, VIOLATED, "SA", ROUGHLY)
    if np.any(values < 0.0):
        return np.asarray(vectors[:, : min(VIOLATED, int(np.sum(values < 0.0)))])
    weak = ~(diagonal > 2.0 * rows)
    if int(weak.sum()) > MOST_FACTORISED:
        weak = ~(diagonal > rows)
    if int(weak.sum()) <= MOST_FACTORISED and is_positive_less(diagonal, E, weak):
        return None
    chosen = np.flatnonzero(weak)
    return unit_vectors(m, chosen[np.argsort((diagonal - rows)[chosen])[:VIOLATED]])


def unit_vectors(size: int, places: Indices) -> Array:
    """Return the unit vectors of these coordinates, a column each."""
    vectors = np.zeros((size, len(places)))
    vectors[places, np.arange(len(places))] = 1.0
    return vectors


def lassos(P: Array, T: Array, box: Array) -> Array:
    """Return about the minima of z'Pz/2 - z'T_j + sum_k box_kj |z_k|, P positive definite, a column for each j."""
    w, m = T.shape
    Z, rest, sides = np.zeros((m, w)), np.array(T.T, order="C"), np.ascontiguousarray(box.T)  # T is kept
    left = np.arange(m)
    for _ in range(ROUNDS):
        missing = (np.abs(rest[left]) > (1.0 + MISSING) * sides[left]) & (Z[left] == 0.0)
        left = left[missing.any(axis=1)]
        counts = np.count_nonzero(Z[left], axis=1)
        left = left[np.argsort(counts, kind="stable")]
        counts.sort()
        start = 0
        while start < len(left):
            poll()
            size = min(w, int(counts[min(start + SIMILAR, len(left)) - 1]) + ADDED)
            some = left[start : start + min(SIMILAR, max(1, ENTRIES // size**2))]
            start += len(some)
            places = most_promising_entries(rest[some], Z[some], sides[some], size)
            before, after = descend(P, places, rest[some], Z[some], sides[some])
            ends = np.arange(len(some) + 1) * size
            moved = scipy.sparse.csr_array(((after - before).ravel(), places.ravel(), ends), shape=(len(some), w))
            rest[some] -= moved @ P
            rows = Z[some]
            np.put_along_axis(rows, places, after, axis=1)
            Z[some] = rows
    return np.asarray(Z.T)


def most_promising_entries(rest: Array, Z: Array, sides: Array, size: int) -> Indices:
    """Return so many places for each lasso: of all entries that are not 0, then of those furthest beyond their box."""
    score = np.abs(rest) - sides
    score[Z != 0.0] = np.inf
    return np.argpartition(-score, size - 1, axis=1)[:, :size]


def descend(P: Array, places: Indices, rest: Array, Z: Array, sides: Array) -> tuple[Array, Array]:
    """Return the entries at these places before and after coordinate descent on them, for all lassos at once."""
    blocks, diagonal = P[places[:, :, None], places[:, None, :]], np.diag(P)[places]
    r, before, b = (np.take_along_axis(rows, places, axis=1) for rows in (rest, Z, sides))
    z = before.copy()
    for _ in range(SWEEPS):
        change = 0.0
        for k in range(places.shape[1]):
            pull = r[:, k] + diagonal[:, k] * z[:, k]
            step = np.sign(pull) * np.maximum(np.abs(pull) - b[:, k], 0.0) / diagonal[:, k] - z[:, k]
            z[:, k] += step
            r -= step[:, None] * blocks[:, k]
            change = max(change, float(np.abs(step).max(initial=0.0)))
        if change <= SETTLED * float(np.abs(z).max(initial=0.0)):
            break
    return before, z
