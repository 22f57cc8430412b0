"""Certified bounds on (15) and (21) in the space of directions, in closed form from any factor of V.

If V is block diagonal, all pairs of coordinates are screened without a dense matrix.  For streamed rows one pass
computes sums whose size does not depend on n, which certify both bounds.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_problem import BlockProblem, block_problem, labels_of_pattern, scatter
from diffrac_cvx.certificates.bound_search import (
    NEGLIGIBLE_ENTRY,
    best_bound,
    best_combination,
    candidate_multipliers,
    first_certified,
    least_multipliers,
    row_weights,
)
from diffrac_cvx.certificates.proof import (
    MEAN_ROUNDINGS,
    NO_PAIRS,
    TRIVIAL,
    Bound,
    Multipliers,
    best_of,
    bound_at,
    eliminate,
    project_dual,
    prove,
    sums_of_rows,
)
from diffrac_cvx.certificates.screening import Verdict, normalized_value, prove_normalized, screen_pairs
from diffrac_cvx.certificates.working_set_bounds import bound_from_working_set
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, Sparse, as_sparse, dense, diagonal, is_sparse
from diffrac_cvx.points.floating_point import round_up, sum_error
from diffrac_cvx.points.linear_algebra import symmetric
from diffrac_cvx.points.rows import Indices
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint, problem_by_rows
from diffrac_cvx.problem.penalties.base import groups_of
from diffrac_cvx.problem.result import Bracket, Labels

MAX_DENSE_COORDINATES = 1000  # up to which V is treated as one block if most coordinates are in one
SHRINKAGES = (1e-8, 1e-6)  # relative, of C in bounds on (21); they cost about this fraction of the l1 term
MIN_WIDE_SIZE = 200  # number of coordinates above which a working set is faster than all coordinates


class DualPoint(NamedTuple):
    """A solver's dual variables for the lower bound: u, None for 1/sqrt(q), and the off-diagonal C, or None."""

    u: Array | None = None
    C: Factor | None = None


NO_DUAL = DualPoint()


def certify(problem: DirectionProblem, point: PrimalPoint, dual: DualPoint = NO_DUAL) -> Bound:
    r"""Return a lower bound on the optimum of (15) from an optimally scaled factor of V and a solver's dual, if any.

    For u > 0 and symmetric C in the box with A + C > 0, let M = X' Diag(u) X / n and t the largest generalised
    eigenvalue of (M, A + C).  Then 2 sqrt(q) <= u q + 1/u gives  optimum >= 1 - t mean(1/u).  Sample weights enter M
    and the mean.

    If V is sparse, C comes from a working set or from blocks, and is clipped outside; otherwise V is one block.
    """
    U, penalty = point.U, problem.pair_penalty
    if is_sparse(U):
        if float(point.value) > 1.0 - 1e-12:  # V is zero up to rounding
            return TRIVIAL
        few = 2 * int(np.count_nonzero(diagonal(U))) <= len(problem.c) >= MIN_WIDE_SIZE
        if few and problem.X.in_memory and penalty.is_even:
            return bound_from_working_set(problem, point, None if dual.C is None else as_sparse(dual.C))
        U = U if penalty.splits_into_blocks and not is_mostly_one_block(U) else dense(U)
    problem = problem_by_rows(problem, U)
    if is_sparse(U) and not problem.X.is_streamed:
        return bound_of_blocks(problem, point, dual)
    U = dense(U)
    C = None if dual.C is None or not problem.has_l1 else project_dual(problem, dense(dual.C))
    if problem.X.is_streamed:
        best, weights = certify_in_one_pass(problem, U, C)[1], []
    else:
        best, weights = TRIVIAL, [row_weights(problem, problem.inverse_sqrt(point.q))]
    weights += [] if dual.u is None else [row_weights(problem, dual.u)]
    found = best_bound(problem, weights, lambda M: candidate_multipliers(problem, U, M, C))
    return best_of(best, found)


def is_mostly_one_block(U: Factor) -> bool:
    """Return whether UU' has a block of more than half of the coordinates, on at most 1000 coordinates."""
    if U.shape[0] > MAX_DENSE_COORDINATES:
        return False
    return bool(2 * np.bincount(labels_of_pattern(as_sparse(U))).max(initial=0) > U.shape[0])


def bound_of_blocks(problem: DirectionProblem, point: PrimalPoint, dual: DualPoint) -> Bound:
    """Return a lower bound from a sparse factor, at least 0, with a solver's multipliers or the best candidates."""
    split = block_problem(problem)
    blocks, rows = Blocks(split, split.labels_of(point.U)), scipy.sparse.csr_array(point.U)[split.penalized]
    found = blocks.best_dual(point.q, blocks.restrict_multiplier(dual.C))
    if dual.C is None:
        u, multipliers = found[1], []
        for i, block in enumerate(blocks.members):
            small, U = problem.restrict(split.penalized[block]), dense(rows[block])
            candidates = candidate_multipliers(small, U, small.X.weighted_gram(u), None)
            ratios = [(blocks.block_ratio(i, u, C)[0], C) for C in candidates if C is not None]
            multipliers.append(min(ratios, key=lambda pair: pair[0])[1])
        found = blocks.best_dual(point.q, multipliers)
    return certify_blocks(blocks, found, 3).bound or TRIVIAL


# V as blocks


class Blocks:
    """Blocks of two or more coordinates, each with its columns and those of E, and A + Diag(c)^2 on them."""

    def __init__(self, problem: BlockProblem, labels: Labels) -> None:
        groups = groups_of(labels)
        self.problem, self.labels, self.largest = problem, labels, max(map(len, groups), default=0)
        self.members = [group for group in groups if len(group) > 1]
        pair_penalty, places = problem.problem.pair_penalty, problem.penalized
        self.penalties = [pair_penalty.restrict(places[block]) for block in self.members]
        self.singles = np.flatnonzero(np.bincount(labels)[labels] == 1)
        self.data = [problem.X.columns(block).hstack(problem.F) for block in self.members]
        self.right: list[Array] = []  # A + Diag(c)^2
        for block, data in zip(self.members, self.data, strict=True):
            rows, s = data, len(block)
            if problem.Y is not problem.X:
                rows = problem.Y.columns(block).hstack(problem.whitened_rows[-len(problem.problem.Y) :])
            right = np.asarray(rows.gram(np.ones(len(rows))) / len(rows))
            right[:s, :s] += np.diag(problem.a[block] ** 2 + problem.c[block] ** 2)
            right[s:, s:] = np.eye(len(right) - s)
            self.right.append(right)

    # The dual

    def best_dual(self, q: Array, C: list[Array]) -> tuple[float, Array, list[Array]]:
        """Return the smallest t for the weights u = 1/sqrt(q), u, and the multipliers.

        M <= t (A + C + Diag(c)^2) holds on single coordinates and blocks, each with E. The multipliers are the given
        ones, shrunk if A + C is nearly singular.  t has a margin for rounding, so that the proof succeeds; it is not
        certified.
        """
        u, _ = row_weights(self.problem.problem, self.problem.problem.inverse_sqrt(q))
        ratios = [self.block_ratio(i, u, inside) for i, inside in enumerate(C)]
        single = float(single_ratios(self.problem, u, self.singles).max(initial=0.0))
        return float(max([single, *(t for t, _ in ratios)])), u, [shrunk for _, shrunk in ratios]

    def block_ratio(self, i: int, u: Array, C: Array) -> tuple[float, Array]:
        """Return the smallest t with M <= t (A + C + Diag(c)^2) on a block and E, and C, shrunk if that decreases t."""
        check_deadline()
        M, inside = symmetric(self.data[i].weighted_gram(u)), np.zeros(self.right[i].shape)
        inside[: len(C), : len(C)] = C
        t, weight, _ = best_combination(M, inside, self.right[i])
        return t * (1.0 + 100.0 * sum_error(4 * self.problem.n_terms + 128)), weight * C

    # Factors and multipliers in the problem's coordinates

    def factor(self, weights: Array, intercepts: Array, free_factor: Array, factors: list[Array]) -> Sparse:
        """Return the factor of V in the problem's coordinates.

        weights (m1,) and intercepts (m1, f) belong to the single coordinates, one column each; free_factor (f, r) to
        the unpenalised coordinates alone; factors (s + f, r) to the blocks.
        """
        problem, D, m1 = self.problem, len(self.problem.problem.c), len(weights)
        single_entries = np.column_stack([weights, intercepts @ problem.inner.W.T])
        rows = np.column_stack([problem.penalized[self.singles], np.tile(problem.free, (m1, 1))])
        starts = np.arange(m1 + 1) * (1 + len(problem.free))
        parts: list[Sparse] = [scipy.sparse.csc_array((single_entries.ravel(), rows.ravel(), starts), shape=(D, m1))]
        positions = [np.concatenate([problem.penalized[block], problem.free]) for block in self.members]
        for position, U in zip([problem.free, *positions], [free_factor, *factors], strict=True):
            s = len(position) - len(problem.free)
            parts.append(scatter(np.vstack([U[:s], problem.inner.W @ U[s:]]), position, D))
        return scipy.sparse.csc_array(scipy.sparse.hstack(parts))

    def multiplier(self, C: list[Array]) -> scipy.sparse.csr_array:
        """Return the multipliers of the blocks as one sparse matrix in the problem's coordinates."""
        D, inside = len(self.problem.problem.c), scipy.sparse.block_diag([np.zeros((0, 0)), *C], format="coo")
        places = self.problem.penalized[np.concatenate([NO_PAIRS.j, *self.members])]
        return scipy.sparse.csr_array((inside.data, (places[inside.row], places[inside.col])), shape=(D, D))

    def restrict_multiplier(self, C: Factor | None) -> list[Array]:
        """Return the entries of a multiplier inside the blocks, projected onto the dual set; 0 if C is None."""
        if C is None:
            return [np.zeros((len(block), len(block))) for block in self.members]
        penalized = self.problem.penalized
        inside = scipy.sparse.csr_array(scipy.sparse.csr_array(C)[penalized][:, penalized])
        given = [symmetric(dense(inside[block][:, block])) for block in self.members]
        return [penalty.project_safe(C) for penalty, C in zip(self.penalties, given, strict=True)]


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def single_ratios(problem: BlockProblem, u: Array, singles: Indices) -> Array:
    """Return the largest generalised eigenvalue of (M, A + Diag(c)^2) on each single coordinate with E, shape (m1,).

    Each has a margin for rounding; it is not certified.
    """
    M, right = problem.weighted_squares(u)[singles], problem.diagonal[singles]
    right = np.asarray(np.where(right > 0.0, right, 1.0))
    error = sum_error(4 * problem.n_terms + 128)
    if not len(problem.free):
        return np.asarray(M / right) * (1.0 + 4.0 * error)
    uF = u[:, None] * problem.F
    MF, Mcross, r = problem.F.T @ uF / len(u), problem.X.rmatvec(uF)[singles], problem.cross[singles]
    # In the coordinates e_j - r_j, r_j on E, A + Diag(c)^2 is diagonal.
    left = np.maximum(right - np.sum(r**2, axis=1), problem.c[singles] ** 2)
    residual = Mcross - r @ MF
    pencil = np.empty((len(singles), 1 + len(MF), 1 + len(MF)))
    pencil[:, 0, 0] = (M - np.sum((Mcross + residual) * r, axis=1)) / left
    pencil[:, 0, 1:] = pencil[:, 1:, 0] = residual / np.sqrt(left)[:, None]
    pencil[:, 1:, 1:] = MF
    mass = np.trace(pencil, axis1=1, axis2=2) + (M + right + np.trace(MF)) * (1.0 + right / left)
    return np.asarray(np.linalg.eigvalsh(pencil)[:, -1] + 8.0 * error * mass)


def certify_blocks(blocks: Blocks, dual: tuple[float, Array, list[Array]], n_tries: int) -> Verdict:
    """Prove a lower bound by screening all pairs in different blocks, at about the smallest t that succeeds.

    The dual is that of `Blocks.best_dual`.
    """
    (t, u, C), problem, verdict = dual, blocks.problem, Verdict()
    C = [penalty.project_safe(symmetric(inside)) for penalty, inside in zip(blocks.penalties, C, strict=True)]

    def shortfall(t: float, attempt: int) -> float | None:
        nonlocal verdict
        remainder = eliminate(problem, u, t)
        if remainder is None:
            return np.inf
        pairs = screen_pairs(remainder, blocks.labels)
        violated = prove(remainder, pairs, list(zip(blocks.members, C, strict=True)))
        if attempt == 0:
            members = np.concatenate([NO_PAIRS.j, *(members for members, _, _ in violated)])
            verdict = Verdict(None, members, pairs)
        if not violated:
            return None
        # The smallest eigenvalue of S is a concave function of t, so Newton's steps end before its root, even if 1.1
        # times as long; later steps are longer.
        steps = [0.0]
        for members, values, directions in violated:
            value = float(values[0])
            M = float(np.mean(u * (problem.X.columns(members) @ directions[:, 0]) ** 2))
            steps.append(1.1 * 1.4**attempt * abs(value) * t / max(M + value, abs(value), 1e-300))
        return max(steps)

    t = first_certified(shortfall, t * (1.0 + 1e-10), 1 + n_tries)  # S then exceeds its rounding error
    if not np.isfinite(t):
        return verdict
    proof = Multipliers(u, t, blocks.multiplier(C), problem.free, blocks.labels)
    return verdict._replace(bound=best_of(TRIVIAL, Bound(bound_at(t, problem.problem.mean_inverse(u)), proof)))


# Problem (21), and streamed rows


def bracket_normalized(problem: DirectionProblem, U: Array, dual: DualPoint = NO_DUAL) -> Bracket:
    """Return certified bounds on the optimum of (21), min -(g(V) - sum c_i c_j |V_ij|) over tr AV = 1, from a factor.

    If theta > 0 and M/2 - C <= theta A, which is M <= t (A + C) at t = 2 theta for weights c_i c_j / theta, the optimum
    is at least -(mean(1/u)/2 + theta).  It is at least -1, and at most 0 if the only penalty is the ridge.  If the l1
    term exceeds half of g, there is no such theta, and the bound is -1.
    """
    size = float(np.sum((problem.R @ U) ** 2))
    if size == 0.0:
        return Bracket(-1.0, np.inf if problem.has_l1 else 0.0)
    U = U / size**0.5
    theta = problem.mean_sqrt(U) / 2 - (problem.convex_term(U) - 1.0)
    u, inverse_mean = row_weights(problem, problem.inverse_sqrt(problem.X.quadratic_forms(U)))
    slack = project_dual(problem, problem.X.weighted_gram(u) / 2 - theta * problem.A)
    given = [] if dual.C is None else [project_dual(problem, dense(dual.C))]
    candidates = [*given, problem.pair_penalty.subgradient(U @ U.T, NEGLIGIBLE_ENTRY, slack), slack]
    if problem.has_l1:  # if n < d and |C_ij| = c_i c_j on a block, A + C + Diag(c)^2 is singular, and proves nothing
        candidates += [(1.0 - shrinkage) * C for shrinkage in SHRINKAGES for C in candidates]
    least, proof = 1.0 - round_up(inverse_mean, MEAN_ROUNDINGS) / 2, None
    for C in candidates:
        below = 1e-14
        while least - theta > 1.01 * below:
            larger = theta + (below * (least - theta)) ** 0.5
            tried = Multipliers(u, 2.0 * larger, C if problem.has_l1 else None)
            if np.isfinite(prove_normalized(problem, tried)):
                least, proof = larger, tried
            else:
                below = larger - theta
    lower = -1.0 if proof is None else prove_normalized(problem, proof)
    n_excluded = problem.coordinates.n_excluded
    return Bracket(lower, normalized_value(problem, U), n_excluded, proof if lower > -1.0 else None)


def certify_in_one_pass(problem: DirectionProblem, U: Array, C: Array | None) -> tuple[PrimalPoint, Bound, Array]:
    """Return an optimally scaled factor, a lower bound with this C, and M, (D, D), from one pass over all rows.

    M = X' Diag(u) X / n, with u = 1/sqrt(q) at q >= 1e-12 tr(AUU').
    """
    G = dense(problem.coordinates.inverse_transform(U))
    U, M, largest, inverse_mean, mean_sqrt, mean_q = sums_of_rows(problem, G)
    convex_term = problem.convex_term(U, mean_q)
    point = problem.rescale_with(U, mean_sqrt, convex_term)
    multiple = mean_sqrt / convex_term if point.value < 1.0 else 1.0
    scaled_M = symmetric(M) / multiple
    candidates = candidate_multipliers(problem, dense(point.U), scaled_M, C)
    found = min((least_multipliers(problem, largest, M, one) for one in candidates), key=lambda one: one.t)
    lower = bound_at(found.t, inverse_mean, MEAN_ROUNDINGS + problem.X.accumulation_length)
    return point, best_of(TRIVIAL, Bound(lower, found._replace(u=np.zeros(0), G=G))), scaled_M
