"""Lower bounds on (15) at a block diagonal V: all pairs of coordinates are screened, without a dense matrix."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from diffrac_cvx.certificates.block_problem import BlockProblem, IntegerArray, Partition, block_problem
from diffrac_cvx.certificates.direction_bounds import DualPoint, bracket, bracket_streamed
from diffrac_cvx.certificates.proof import NO_PAIRS, Pairs, Remainder, ViolatedComponent, bound_at, eliminate, prove
from diffrac_cvx.certificates.screening import (
    NEAR_BOUND,
    cheap_safe_radius,
    largest_safe_t,
    recompute_pairs,
    screen_pairs,
)
from diffrac_cvx.certificates.search import best_combination, candidate_multipliers, candidate_weights
from diffrac_cvx.certificates.working_set import bound_from_working_set
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Sparse, as_sparse, dense, is_sparse
from diffrac_cvx.points.floating_point import sum_error
from diffrac_cvx.points.linear_algebra import (
    EPS,
    LARGE_SIZE,
    eigh,
    symmetric,
    times,
    whitener_of_gram,
)
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint, problem_by_rows
from diffrac_cvx.problem.result import Bracket, Labels

MAX_SINGLE_BLOCK_SIZE = 1200  # of grouped coordinates, up to which a mostly zero V is certified as one block
WORKING_SET_MIN_SIZE = 200  # of coordinates, from which on a mostly zero V is certified by a working set
MIN_GAIN = 1e-12  # 1 - objective, below which V is zero up to rounding
STEP_GROWTH = 1.4  # growth of each step to a larger t after the first


class BlockRatios(NamedTuple):
    """Largest generalised eigenvalues of (M, A + C + Diag(c)^2) on single coordinates and on blocks, at weights u."""

    u: Array  # (n,), weights of the rows
    inverse_mean: float  # mean(1/u)
    single: Array  # (m1,), of the single coordinates, each with E
    block: list[float]  # of the blocks, each with E
    C: list[Array]  # (s, s) each, their multipliers: those given, shrunk if A + C is nearly singular

    @property
    def largest(self) -> float:
        """Largest ratio: the t at which the bound of the block diagonal problem is 1 - t mean(1/u)."""
        return float(max([*self.block, self.single.max(initial=0.0)]))

    @property
    def bound(self) -> float:
        """Lower bound if no pair in different blocks violates its box."""
        return bound_at(self.largest, self.inverse_mean)


class Blocks:
    """Blocks of a partition, each with the columns of E, and A + Diag(c)^2 on them."""

    def __init__(self, problem: BlockProblem, partition: Partition) -> None:
        self.problem, self.partition = problem, partition
        self.data = [problem.data_of(block) for block in partition.blocks]
        self.right = [problem.right_of(block, data) for block, data in zip(partition.blocks, self.data, strict=True)]

    @cached_property
    def whiteners(self) -> list[Array]:
        """W of each block, with W' right W = I."""
        return [whiten(right) for right in self.right]

    def ratios(self, q: Array, C: list[Array]) -> BlockRatios:
        """Return the ratios at u = 1/sqrt(q), with the floor on q that gives the best bound."""
        found = (self.ratios_at(u, inverse_mean, C) for u, inverse_mean in candidate_weights(self.problem.problem, q))
        return max(found, key=lambda ratios: ratios.bound)

    def ratios_at(self, u: Array, inverse_mean: float, C: list[Array]) -> BlockRatios:
        """Return the ratios at weights u of the rows."""
        single = single_ratios(self.problem, u, self.partition.singles)
        found = [self.block_ratio(i, u, inside) for i, inside in enumerate(C)]
        return BlockRatios(u, inverse_mean, single, [t for t, _ in found], [shrunk for _, shrunk in found])

    def block_ratio(self, i: int, u: Array, C: Array) -> tuple[float, Array]:
        """Return the least t with M <= t (A + C + Diag(c)^2) on a block and E, and C, shrunk if that decreases t.

        The t allows for rounding, so that the proof succeeds; it is not certified.
        """
        check_deadline()
        W, s, M = self.whiteners[i], len(C), symmetric(self.data[i].weighted_gram(u))
        relative_error = sum_error(4 * self.problem.n_terms + 128)
        # A block and E are proved in coordinates of size one: an error there is larger in the coordinates W.
        size = float(np.max(np.sum(W**2, axis=0), initial=0.0)) * relative_error
        Mz, inside = symmetric(times(W.T, times(M, W))), symmetric(times(W[:s].T, times(C, W[:s])))
        found = best_combination(Mz, inside, size * float(np.trace(M)), size * float(np.trace(self.right[i])))
        return found.t_with_error, found.weight * C


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def single_ratios(problem: BlockProblem, u: Array, singles: IntegerArray) -> Array:
    """Return the largest generalised eigenvalue of (M, A + Diag(c)^2) on each single coordinate with E, shape (m1,).

    Each allows for rounding; it is not certified.
    """
    M, right = problem.weighted_squares(u)[singles], problem.diagonal[singles]
    right = np.asarray(np.where(right > 0.0, right, 1.0))
    error = sum_error(4 * problem.n_terms + 128)
    if not len(problem.free):
        return np.asarray(M / right) * (1.0 + 4.0 * error)
    uF = u[:, None] * problem.F
    MF, Mcross, r = problem.F.T @ uF / len(u), problem.X.rmatvec(uF)[singles], problem.cross[singles]
    # Coordinates e_j - r_j on E make A + Diag(c)^2 diagonal.
    left = np.maximum(right - np.sum(r**2, axis=1), problem.c[singles] ** 2)
    residual = Mcross - r @ MF
    pencil = np.empty((len(singles), 1 + len(MF), 1 + len(MF)))
    pencil[:, 0, 0] = (M - np.sum((Mcross + residual) * r, axis=1)) / left
    pencil[:, 0, 1:] = pencil[:, 1:, 0] = residual / np.sqrt(left)[:, None]
    pencil[:, 1:, 1:] = MF
    mass = np.trace(pencil, axis1=1, axis2=2) + (M + right + np.trace(MF)) * (1.0 + right / left)
    return np.asarray(np.linalg.eigvalsh(pencil)[:, -1] + 8.0 * error * mass)


def whiten(right: Array) -> Array:
    """Return W with W' right W = I for a positive semidefinite matrix, without null directions, where M is 0 too."""
    check_deadline()
    W = whitener_of_gram(right) if len(right) > LARGE_SIZE // 2 else None
    if W is not None:
        return W
    values, vectors = eigh(right)
    keep = values > 8 * len(right) * EPS * values[-1]
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]))


class CertificateAttempt(NamedTuple):
    """Result of one screening of all pairs."""

    lower: float | None  # the bound, if certified
    pairs: Pairs = NO_PAIRS  # in different blocks, near the bound of their box or violating it
    violated: Sequence[ViolatedComponent] = ()  # components where the bound fails
    certified: Labels | None = None  # (m,), certified components, if there is a bound

    @property
    def violated_coordinates(self) -> IntegerArray:
        """Coordinates of the components where the bound fails."""
        return np.concatenate([np.zeros(0, dtype=np.intp), *(component.members for component in self.violated)])


class BlockCertificate(NamedTuple):
    """Ratios for a certificate, with the q and the value of the primal point."""

    ratios: BlockRatios
    q: Array
    value: float

    @property
    def gap(self) -> float:
        """Gap of the block diagonal problem: that of (15) if no pair in different blocks violates its box."""
        return self.value - self.ratios.bound

    def bound(self, t: float) -> float:
        """Return the lower bound at t."""
        return bound_at(t, self.ratios.inverse_mean)

    @property
    def min_t(self) -> float:
        """Slightly more than the largest ratio, so that S is positive definite beyond rounding."""
        return self.ratios.largest * (1.0 + 1e-10)


def certify_blocks(blocks: Blocks, certificate: BlockCertificate, n_tries: int) -> CertificateAttempt:
    """Certify a lower bound from one screening of all pairs in different blocks, at the least t that succeeds.

    Pairs near their bound, |G_jk| > NEAR_BOUND t c_j c_k, are stored, so that up to `n_tries` larger t need no further
    screening.  The returned pairs are those at the first t.
    """
    problem, ratios, t = blocks.problem, certificate.ratios, certificate.min_t
    remainder = eliminate(problem, ratios.u, t)
    if remainder is None:
        return CertificateAttempt(None)
    radius = cheap_safe_radius(problem, certificate.q, certificate.value - certificate.bound(t), ratios.u, t)
    found = screen_pairs(remainder, blocks.partition.labels, NEAR_BOUND, radius)
    first = try_certificate(blocks, certificate, remainder, found.pairs, found.certified)
    attempt, safe = first, largest_safe_t(problem, t)
    for i in range(n_tries):
        if attempt.lower is not None:
            break
        t = larger_t(blocks, ratios, t, attempt.violated, STEP_GROWTH**i)
        remainder = eliminate(problem, ratios.u, t)
        if remainder is None:
            break
        pairs = (
            recompute_pairs(remainder, found.pairs)
            if t <= safe
            else screen_pairs(remainder, blocks.partition.labels, 1.0).pairs
        )
        attempt = try_certificate(blocks, certificate, remainder, pairs, None)
    return first._replace(lower=attempt.lower, certified=attempt.certified)


def try_certificate(
    blocks: Blocks, certificate: BlockCertificate, remainder: Remainder, pairs: Pairs, certified: Labels | None
) -> CertificateAttempt:
    """Return the bound at t if S is positive semidefinite on all components that violated pairs connect.

    Otherwise return the components where it is not.
    """
    violated = prove(remainder, pairs, list(zip(blocks.partition.blocks, certificate.ratios.C, strict=True)))
    if violated:
        return CertificateAttempt(None, pairs, violated)
    return CertificateAttempt(certificate.bound(remainder.t), pairs, certified=certified)


def larger_t(
    blocks: Blocks, ratios: BlockRatios, t: float, violated: Sequence[ViolatedComponent], stretch: float = 1.0
) -> float:
    """Return a larger t at which the bound may hold, by a Newton step, 1.1 times as long, on each violated block.

    The least eigenvalue of S is a concave function of t: Newton's steps end before its root, so later ones have to be
    stretched.
    """
    X, largest = blocks.problem.X, t
    for members, values, directions in violated:
        value = float(values[0])
        M = float(np.mean(ratios.u * (X.columns(members) @ directions[:, 0]) ** 2))
        largest = max(largest, t + 1.1 * stretch * abs(value) * t / max(M + value, abs(value), 1e-300))
    return largest


def bracket_blocks(problem: DirectionProblem, point: PrimalPoint, C: Sparse | None = None) -> Bracket:
    """Return certified bounds on (15) from a sparse factor of V and multipliers inside its blocks, if any."""
    if point.value > 1.0 - MIN_GAIN:
        return Bracket(0.0, float(point.value))
    blocked = block_problem(problem)
    U = as_sparse(point.U)
    n_used = int(np.count_nonzero(np.diff(scipy.sparse.csr_array(U).indptr)))
    if problem.X.in_memory and U.shape[0] >= WORKING_SET_MIN_SIZE and 2 * n_used <= U.shape[0]:
        return Bracket(bound_from_working_set(problem, point, C), float(point.value))
    blocks = Blocks(blocked, blocked.partition_of(U))
    ratios = blocks.ratios(point.q, blocked.restrict_multiplier(blocks.partition, C))
    if C is None:
        ratios = blocks.ratios(point.q, choose_multipliers(blocks, point, ratios.u))
    lower = certify_blocks(blocks, BlockCertificate(ratios, point.q, point.value), 3).lower or 0.0
    return Bracket(float(max(lower, 0.0)), float(point.value))


def choose_multipliers(blocks: Blocks, point: PrimalPoint, u: Array) -> list[Array]:
    """Return the candidate for C with the smallest ratio, for each block."""
    blocked, rows, multipliers = blocks.problem, scipy.sparse.csr_array(point.U), []
    for i, block in enumerate(blocks.partition.blocks):
        small, U = blocked.problem.restrict(blocked.penalized[block]), dense(rows[blocked.penalized[block]])
        candidates = [
            C for C in candidate_multipliers(small, U, partial(small.X.weighted_gram, u), None) if C is not None
        ]
        multipliers.append(min(candidates, key=lambda C: blocks.block_ratio(i, u, C)[0]))
    return multipliers


def bracket_any(problem: DirectionProblem, point: PrimalPoint, dual: DualPoint | None = None) -> Bracket:
    """Return certified bounds on (15): by blocks if the factor is sparse, else dense; streamed rows in one pass."""
    if not problem.pair_penalty.splits_into_blocks:
        use_working_set = is_sparse(point.U) and problem.X.in_memory and len(problem.c) > MAX_SINGLE_BLOCK_SIZE
        if use_working_set and problem.pair_penalty.is_even:
            C = None if dual is None or dual.C is None else as_sparse(dual.C)
            return Bracket(bound_from_working_set(problem, point, C), float(point.value))
        point = point._replace(U=dense(point.U))
        dual = dual if dual is None or dual.C is None else dual._replace(C=dense(dual.C))
    problem = problem_by_rows(problem, point.U)
    if problem.X.is_streamed:
        return bracket_streamed(problem, dense(point.U), dual)
    if not is_sparse(point.U):
        return bracket(problem, point, dual)
    return bracket_blocks(problem, point, None if dual is None or dual.C is None else as_sparse(dual.C))
