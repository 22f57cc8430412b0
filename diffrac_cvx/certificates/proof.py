"""Proof of lower bounds on (15), rounding included: the only code, with the sums in `points`, that they rely on.

For u > 0 and C in the dual set of the penalty let M = X' Diag(u) X / n.  If S = t (A + C + Diag(c)^2) - M >= 0, then 2
sqrt(q) <= u q + 1/u gives  optimum >= 1 - t mean(1/u).  The caller chooses u, t and a part of C in ordinary floating
point.  This module proves in three steps that S >= 0 for some C with this part.

1. `eliminate` a set E of coordinates: with S = LL' on E and K = L^-1 S_EN, S_NN - K'K >= 0 is left on the others, N.
2.  Clip between blocks of N: with G = M - t A + K'K, t C = G there if that is in the dual set, so that S is exactly 0
  and its rounding harmless; otherwise the excess of G remains.  For any matrix Z, t C = clip(G + ZZ') is valid too.
3. `prove` positivity on each component of the blocks and the excess, by diagonal dominance or Cholesky factorisation.

Entry jk of S is computed from terms of size at most h_j h_k, h_j^2 = t (A_jj + c_j^2) + M_jj.  On N, the rounding error
of entry jk is at most e_jk = F_j'F_k, hence sum_j e_jj on a component.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.certificates.block_problem import BlockProblem
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, as_sparse, dense, is_sparse, row_sums
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, round_up, sum_error
from diffrac_cvx.points.linear_algebra import cholesky, eigh, lanczos, solve_lower, symmetric, times
from diffrac_cvx.points.ranges import are_finite
from diffrac_cvx.points.rows import Indexer, Indices, Mask
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.problem.penalties.group import (
    GroupNorms,
    block_norms,
    largest_singular_values,
    project_spectral_ball,
)
from diffrac_cvx.problem.result import Labels

MEAN_ROUNDINGS = 400  # upper bound on the roundings of a mean by NumPy's pairwise sums
INSIDE = 1.0 - 16.0 * UNIT_ROUNDOFF  # shrinks a bound, so that C is inside it after rounding
MAX_FACTORIZED_SIZE = 4000  # rows of a component that are factorised
LANCZOS_RTOL = 3e-3  # for the smallest eigenvalues of larger components, on which no proof relies
MAX_DENSE_SIZE = 300  # rows up to which a component is factorised whole, and all eigenvectors are computed

# The statement


class Multipliers(NamedTuple):
    """Multipliers that prove the lower bound 1 - t mean(1/u) on (15), in the coordinates of its problem.

    C is given on E and in blocks of N; elsewhere it is the clipped G + ZZ'.  Without C, the diagonal part of the l1
    term is added to the ridge, and the rest is omitted.  For rows that are read in one pass, a factor G replaces u:
    then u = 1/sqrt(q) at V = GG'.
    """

    u: Array  # (n,), weights of the rows, 0 for zero rows; (0,) if G is given
    t: float
    C: Factor | None = None  # (D, D), off the diagonal
    free: Indices | None = None  # E, increasing; all coordinates by default
    labels: Labels | None = None  # (m,), blocks of N; by default E is a working set and each coordinate of N is a block
    Z: Array | None = None  # (m, z)
    G: Array | None = None  # (d, r), or (d + 1, r) with the offset last, in the user's coordinates


class Bound(NamedTuple):
    """Lower bound, and the multipliers that prove it; without them it is trivial."""

    lower: float = 0.0
    multipliers: Multipliers | None = None


TRIVIAL = Bound()


def best_of(*bounds: Bound) -> Bound:
    """Return the largest lower bound."""
    return max(bounds, key=lambda bound: bound.lower)


# Elimination


@dataclass(frozen=True, eq=False)
class Remainder:
    """S on N after E is eliminated: Diag(t (a^2 + c^2)) + t C - G, G = X' Diag(w) X + K'K, with errors F_j'F_k.

    A correction Z adds its columns to the rows of K, and ZZ' to S.
    """

    problem: BlockProblem
    u: Array  # (n,), weights of the rows
    t: float
    K: Array  # (r, m)
    F: Array  # (3, m)
    L: Array  # (r, r), lower triangular, LL' nearly S on E
    is_whitened: bool  # whether L is in the whitened coordinates of E
    tC: Array  # (e, m), t times the multiplier between E and N
    Z: Array  # (m, z)

    @cached_property
    def gram_weights(self) -> Array:
        """Weights w of the rows, (u - t)/n if A is the Gram matrix of X."""
        return self.problem.gram_weights(self.u, self.t)

    @cached_property
    def diagonal(self) -> Array:
        """Diagonal of S without that of ZZ', (m,)."""
        squares = self.problem.weighted_squares(self.u) + np.sum(self.K**2, axis=0)
        return np.asarray(self.t * self.problem.diagonal - squares)

    @cached_property
    def errors(self) -> Array:
        """Bounds e_jj on the errors of the diagonal, (m,), whose sum bounds that of a component."""
        return np.asarray(np.sum(self.F**2, axis=0))

    @property
    def known_signs(self) -> Mask | None:
        """Mask of the coordinates with sign constraints: C_jk has no lower bound between two of them."""
        mask = self.problem.problem.pair_penalty.nonnegative
        return mask[self.problem.penalized] if mask.any() else None

    @cached_property
    def entry_error(self) -> float:
        """Bound on the error of G_jk, over c_j c_k."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # products of weights may be 0
            return float(np.max(self.errors / self.problem.c**2, initial=0.0))

    def gram(self, left: Indexer, right: Indexer) -> Array:
        """Return G for two sets of columns."""
        return self.problem.rows.gram(self.gram_weights, left, right) + self.K[:, left].T @ self.K[:, right]

    def with_correction(self, Z: Array) -> "Remainder":
        """Return the remainder with a further correction, (m, z): the multiplier then comes from G + ZZ'.

        Terms that are 0 have no rounding error, so columns where Z is 0 keep their errors.
        """
        K = np.vstack([self.K, Z.T])
        gram_error = np.where(Z.any(axis=1), gram_error_roots(K), self.F[-1])
        return replace(self, K=K, F=np.vstack([self.F[:-1], gram_error]), Z=np.hstack([self.Z, Z]))

    def bounds(self, j: Indices, k: Indices) -> Array:
        """Return t times the half-width of the box minus the error bound of G_jk; negative if the error is larger."""
        c, sides = self.problem.c, self.problem.half_widths(j, k)
        errors = np.einsum("ij,ij->j", self.F[:, j], self.F[:, k])
        return np.asarray(self.t * INSIDE * sides * c[j] * c[k] - errors * (1.0 + 1e-12))


class Pairs(NamedTuple):
    """Pairs of coordinates j < k in different blocks, G_jk, and its bound: the box minus the error of G_jk."""

    j: Indices
    k: Indices
    G: Array
    bound: Array

    @property
    def excess(self) -> Array:
        """Excess of |G_jk| over its bound, with the sign of G_jk; 0 inside the box."""
        with np.errstate(invalid="ignore"):  # G may be infinite or NaN
            return np.asarray(np.sign(self.G) * np.maximum(np.abs(self.G) - np.maximum(self.bound, 0.0), 0.0))

    def take(self, indices: Indices) -> "Pairs":
        """Return the pairs with these indices."""
        return Pairs(self.j[indices], self.k[indices], self.G[indices], self.bound[indices])

    def violated(self) -> "Pairs":
        """Return the pairs that may violate their box."""
        return self.take(np.flatnonzero(~(np.abs(self.G) <= self.bound)))


NO_PAIRS = Pairs(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0))


def eliminate(
    problem: BlockProblem,
    u: Array,
    t: float,
    C: Array | None = None,
    between: Callable[[Array, Array], Array] | None = None,
    *,
    whitened: bool | None = None,
    M: Array | None = None,
) -> Remainder | None:
    """Eliminate the coordinates E, `problem.free`, from S for u and t; None if S is not certified positive on E.

    C on E is projected onto the dual set.  ``between(P, T)``, with P = S on E and T = M - t A between E and N, returns
    t C between E and N, which is projected too; without it, C is 0 there.  M on E may be passed if it is known.

    E is factorised in its given coordinates first, then in whitened ones, which stay accurate if E is nearly collinear.
    """
    if whitened is None:
        found = None if problem.problem.basis is not None else eliminate(problem, u, t, C, between, whitened=False, M=M)
        return eliminate(problem, u, t, C, between, whitened=True, M=M) if found is None else found
    if not (np.isfinite(t) and t > 0.0):
        return None
    M = problem.inner.X.weighted_gram(u) if M is None else M
    C = None if C is None else problem.project_inner(C)
    P, radius = eliminated_matrix(problem, u, t, M, C, whitened=whitened)
    r, e, m, inner = len(P), len(problem.free), len(problem.penalized), problem.inner
    L, lift = lifted_cholesky(P, radius, 2.0 if m else 1.0)
    # Outside the span of whitened coordinates the two sides are t times the identity and 0, up to the errors.
    if L is None or (whitened and not t >= radius):
        return None
    tC, Z = np.zeros((e, m)), np.zeros((m, 0))
    if m == 0:
        return Remainder(problem, u, t, np.zeros((r, 0)), np.zeros((3, 0)), L, whitened, tC, Z)
    # S between E and N, and bounds on the errors of its columns.
    weights, eps, h = problem.gram_weights(u, t), relative_error(problem, u, t), problem.sizes(u, t)
    T = problem.products(weights, problem.given)
    if between is not None and e:
        given, used = np.eye(e), problem.used
        given[np.ix_(used, used)] = eliminated_matrix(problem, u, t, M, C, whitened=False)[0] if whitened else P
        tC = problem.off_diagonal.project_safe(between(given, T), t)
    if whitened:
        W, (data_error, right_error, _), top = inner.W, inner.whitening_error, problem.problem.sums.largest_weight(u)
        norm = (t * W.shape[1] * (1.0 + right_error) + float(np.sum(u @ problem.F**2)) / len(u)) ** 0.5
        S = W.T @ tC - problem.products(weights, problem.whitened_rows)
        cross = (eps * norm + data_error * (t + top) ** 0.5 * (1.0 + eps)) * h
        cross += sum_error(e + 8) * float(np.linalg.norm(W)) * np.linalg.norm(tC, axis=0)
    else:
        S = (tC - T)[problem.used]
        cross = eps * float(np.linalg.norm(problem.inner_sizes(u, t, M))) * h
        cross += sum_error(e + 8) * np.linalg.norm(tC, axis=0)
    K = solve_lower(L, S) if r else S
    if not are_finite(L, K):
        return None
    sizes = np.linalg.norm(K, axis=0)
    # S >= [L; K'][L; K']' + [[margin, R], [R', S_NN - K'K]] with columns R_j of norm at most `rest`.
    rest = np.linalg.norm(S - L @ K, axis=0) + sum_error(r + 4) * np.linalg.norm(L) * sizes + cross
    margin = lift / 2.0
    F = np.stack([eps**0.5 * h, rest / max(margin, 1e-300) ** 0.5 if r else 0.0 * h]) * round_up(1.0, 16)
    return Remainder(problem, u, t, K, np.vstack([F, gram_error_roots(K)]), L, whitened, tC, Z)


def gram_error_roots(K: Array) -> Array:
    """Return numbers whose products bound the errors of the entries of K'K, (m,)."""
    return np.asarray(sum_error(len(K) + 8) ** 0.5 * round_up(1.0, 16) * np.linalg.norm(K, axis=0))


def relative_error(problem: BlockProblem, u: Array, t: float) -> float:
    """Return a bound on the errors of S_jk, divided by h_j h_k, from its sums and from the centring of the columns.

    A centred column, or column of signed sums of points, has an error of at most sum_error(k + 16) A_jj^(1/2) in the
    Euclidean norm divided by sqrt(n).  In the norm weighted by |w| the error is at most this times (t + max u)^(1/2),
    and A_jj^(1/2) (t + max u)^(1/2) <= h_j (1 + max u / t)^(1/2).
    """
    k = problem.n_terms
    moved = sum_error(k + 16) * (1.0 + problem.problem.sums.largest_weight(u) / t) ** 0.5
    return round_up(sum_error(k + 32) + (2.0 + moved) * moved)


def eliminated_matrix(
    problem: BlockProblem, u: Array, t: float, M: Array, C: Array | None, *, whitened: bool
) -> tuple[Array, float]:
    """Return S on E and a bound on its error, in given coordinates without those where S is 0, or in whitened ones.

    The bound is in the spectral norm.
    """
    inner, used = problem.inner, problem.used
    if not whitened:
        P = t * (inner.summed_A + np.diag(inner.c**2)) - symmetric(M)
        radius = relative_error(problem, u, t) * float(np.sum(problem.inner_sizes(u, t, M) ** 2))
        if C is not None:
            P += t * C
            radius += sum_error(4) * t * float(np.linalg.norm(C))
        return (P if len(used) == len(P) else P[np.ix_(used, used)]), round_up(radius)
    (data_error, right_error, gram_factor), top = inner.whitening_error, problem.problem.sums.largest_weight(u)
    Mw, W = symmetric(M if inner.basis is not None else inner.Z.weighted_gram(u)), inner.W
    P, mass, moved, r = t * np.eye(len(Mw)) - Mw, float(np.trace(Mw)), top**0.5 * data_error, len(Mw)
    radius = t * (right_error + sum_error(4) * r) + sum_error(problem.n_terms + 12) * gram_factor * mass
    radius += (2.0 * mass**0.5 + moved) * moved
    if C is not None:
        C = project_dual(inner, C)
        P += t * symmetric(times(W.T, times(C, W)))
        radius += t * sum_error(2 * len(C) + 12) * float(np.sum(W**2) * np.linalg.norm(C))
    return P, round_up(radius, 8)


# The remainder


def prove(
    remainder: Remainder,
    pairs: Pairs | None,
    blocks: Sequence[tuple[Indices, Array]] = (),
    *,
    max_directions: int = 1,
) -> list[tuple[Indices, Array, Array]]:
    """Certify that S is positive definite on each component; return the components where this fails.

    For each of these, return its coordinates, the smallest values of v'Sv minus their error, increasing, and the unit
    vectors v as columns.

    `pairs` contains all pairs of different blocks that may violate their box, from `screen_pairs`; it is None for
    feature groups, which are the blocks, with C = 0.  Blocks are given with their C; every other coordinate is a block
    of its own.
    """
    m, t = len(remainder.problem.c), remainder.t
    if m == 0:
        return []
    if pairs is None:
        blocks, entries = clip_groups(remainder)
    else:
        some = pairs.violated()
        entries = (np.append(some.j, some.k), np.append(some.k, some.j), -np.tile(some.excess, 2))
    E = scipy.sparse.csr_array((entries[2], entries[:2]), shape=(m, m))
    chains = [(block[:-1], block[1:]) for block, _ in blocks]
    links = [np.concatenate([entries[i], *(chain[i] for chain in chains)]) for i in (0, 1)]
    graph = scipy.sparse.coo_array((np.ones(len(links[0]), dtype=bool), (links[0], links[1])), shape=(m, m))
    labels = connected_components(graph, directed=False)[1]
    errors, sums, inside = remainder.errors, row_sums(E), []
    for block, C in blocks:
        check_deadline()
        within = t * C - remainder.gram(block, block)
        within[np.diag_indices(len(block))] = 0.0
        sums[block] += np.abs(within).sum(axis=1)
        # With sign constraints, a multiplier may be larger than the terms of S.
        errors = errors.copy()
        errors[block] += sum_error(4) * t * float(np.linalg.norm(C)) / len(block)
        inside.append(within)
    left = remainder.diagonal - np.bincount(labels, errors, minlength=m)[labels]
    open_labels = labels[~(left > round_up(1.0, m + 8) * sums)]  # all rows of the other components are dominant
    if len(open_labels) and remainder.Z.any():  # ZZ' connects its rows, and all nondominant ones
        is_joined = np.isin(labels, np.append(open_labels, labels[remainder.Z.any(axis=1)]))
        labels, open_labels = np.where(is_joined, m, labels), np.array([m])
    order = np.flatnonzero(np.isin(labels, open_labels))
    order = order[np.argsort(labels[order], kind="stable")]
    violated, position = [], np.zeros(m, dtype=np.intp)
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(order) else []:
        position[members] = np.arange(len(members))
        S: Factor = scipy.sparse.csr_array(E[members][:, members])
        own = [i for i, (block, _) in enumerate(blocks) if labels[block[0]] == labels[members[0]]]
        if own:
            S = dense(S)
            for i in own:
                S[np.ix_(position[blocks[i][0]], position[blocks[i][0]])] += inside[i]
        found = check_component(left[members], S, remainder.Z[members], max_directions)
        if found is not None:
            violated.append((members, *found))
    return violated


def clip_groups(
    remainder: Remainder,
) -> tuple[list[tuple[Indices, Array]], tuple[Indices, Indices, Array]]:
    """Return the feature groups with C = 0, and the entries of S between them: none if C = G/t is in the dual set.

    Otherwise they are the excess of G over its projection onto the spectral-norm ball.
    """
    problem, m = remainder.problem, len(remainder.problem.c)
    groups = problem.problem.pair_penalty.restrict(problem.penalized).groups
    first = np.array([group[0] for group in groups], dtype=np.intp)
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])[np.argsort(np.concatenate(groups))]
    penalty = GroupNorms(problem.c, labels)
    check_deadline(2.0 * len(remainder.gram_weights) * float(m) ** 2)
    G, no_index = remainder.gram(slice(None), slice(None)), np.zeros(0, dtype=np.intp)
    errors = np.sqrt(np.bincount(labels, remainder.errors, minlength=len(penalty.groups)))
    norms, rows, columns, values = block_norms(G, penalty.groups), [no_index], [no_index], [np.zeros(0)]
    sides = remainder.t * INSIDE * problem.half_widths(first[:, None], first) * penalty.bounds
    errors = np.outer(errors, errors) * (1.0 + 1e-12)
    beyond = ~(norms * round_up(1.0, m + 8) + errors <= sides)
    for g, h, indices in penalty.blocks(np.triu(beyond, 1)):
        blocks, side = G[indices], sides[g, h]
        mask = ~(largest_singular_values(blocks) + errors[g, h] <= side)
        blocks = blocks[mask]
        excess = project_spectral_ball(blocks, side[mask]) - blocks
        j, k = (np.broadcast_to(index[mask], blocks.shape).ravel() for index in indices)
        rows += [j, k]
        columns += [k, j]
        values += [excess.ravel(), excess.ravel()]
    places = [(group, np.zeros((len(group), len(group)))) for group in penalty.groups if len(group) > 1]
    return places, (np.concatenate(rows), np.concatenate(columns), np.concatenate(values))


def check_component(diagonal: Array, E: Factor, Z: Array, max_directions: int) -> tuple[Array, Array] | None:
    """Return None if Diag(diagonal) + E + ZZ' is certified positive definite, otherwise its smallest eigenpairs.

    For a large matrix, the rows that are not dominant are factorised first, then all rows.  Before these attempts its
    smallest eigenvalue is estimated, unless ``max_directions`` is 0.
    """
    size, sums = len(diagonal), row_sums(E)
    found = np.array([-np.inf]), np.eye(size, 1)
    if not are_finite(diagonal, sums, Z):
        return found
    is_large = size > MAX_DENSE_SIZE and is_sparse(E)
    if is_large and max_directions:
        found = least_eigenpairs(diagonal, E, Z, max_directions)
        if found[0][0] < 0.0:
            return found
    weak, all_rows = ~(diagonal > 2.0 * sums), np.ones(size, dtype=bool)
    if int(weak.sum()) > MAX_FACTORIZED_SIZE:
        weak = ~(diagonal > sums)
    for mask in (weak, all_rows) if is_large else (all_rows,):
        if int(mask.sum()) <= MAX_FACTORIZED_SIZE and is_sum_positive(diagonal, E, Z, mask):
            return None
    return found if is_large or not max_directions else least_eigenpairs(diagonal, E, Z, max_directions)


def least_eigenpairs(diagonal: Array, E: Factor, Z: Array, k: int) -> tuple[Array, Array]:
    """Return approximately the k smallest eigenpairs of Diag(diagonal) + E + ZZ', or fewer."""
    if len(diagonal) <= MAX_DENSE_SIZE:
        values, vectors = eigh(np.diag(diagonal) + dense(E) + Z @ Z.T)
    else:
        shift = float(np.mean(diagonal))  # the accuracy is relative, and eigenvalues may be near 0
        values, vectors = lanczos(
            lambda x: (diagonal - shift) * x + E @ x + Z @ (Z.T @ x), len(diagonal), k, "SA", LANCZOS_RTOL
        )
        values += shift
    return values[:k], vectors[:, :k]


def is_sum_positive(diagonal: Array, E: Factor, Z: Array, weak: Mask) -> bool:
    """Whether Diag(diagonal) + E + ZZ' is certified positive definite, by a factorisation of the weak rows.

    E is symmetric, with a zero diagonal.  The other rows must be dominant: D, their diagonal minus their absolute
    off-diagonal sums, is a lower bound on them.  For any T, ZZ' >= ZT' + TZ' - TT'; here T is on the weak rows.
    Eliminating the other rows leaves Y T' + T Y' - T H T' of this, with Y = Z - E D^-1 Z on the weak rows and H = 1 +
    Z' D^-1 Z.
    """
    strong, chosen = np.flatnonzero(~weak), np.flatnonzero(weak)
    margins = diagonal[strong] - round_up(1.0, len(weak)) * row_sums(E[strong][:, strong])
    if not np.all(margins > 0.0):
        return False
    between = as_sparse(E[chosen][:, strong])
    scaled = as_sparse(between @ scipy.sparse.diags_array(1.0 / margins))
    S = np.diag(diagonal[chosen]) + dense(E[chosen][:, chosen]) - dense(as_sparse(scaled @ between.T))
    mass = float(np.sum(np.abs(diagonal[chosen]))) + float(np.abs(np.diag(S)).sum())
    if Z.shape[1]:
        Y, H = Z[chosen] - scaled @ Z[strong], np.eye(Z.shape[1]) + Z[strong].T @ (Z[strong] / margins[:, None])
        T = np.linalg.solve(H, Y.T).T
        S += Y @ T.T + T @ Y.T - T @ H @ T.T
        sizes = np.abs(Z[chosen]) + abs(scaled) @ np.abs(Z[strong])
        mass += 4.0 * float(np.linalg.norm(sizes) * np.linalg.norm(T) + np.trace(H) * np.sum(T**2))
    shift = round_up(sum_error(2 * len(chosen) + len(weak) + 3 * Z.shape[1] + 24) * mass)
    return cholesky_or_none(symmetric(S) - shift * np.eye(len(S))) is not None


def lifted_cholesky(S: Array, radius: float, multiple: float = 1.0) -> tuple[Array | None, float]:
    """Return the Cholesky factor of S minus a multiple of its error bound (radius and rounding), and this multiple."""
    lift = multiple * round_up(radius + sum_error(2 * len(S) + 8) * float(np.abs(np.diag(S)).sum()))
    return cholesky_or_none(S - lift * np.eye(len(S))), lift


def cholesky_or_none(S: Array) -> Array | None:
    """Return the Cholesky factor of a symmetric matrix, or None if there is none; LAPACK may continue with NaN."""
    if not are_finite(S):
        return None
    try:
        L = cholesky(S)
    except np.linalg.LinAlgError:
        return None
    return L if are_finite(L) else None


# Values of bounds


class Sums(NamedTuple):
    """Sums of one pass over the rows, for the weights u = 1/sqrt(q) at q >= 1e-12 tr(AUU')."""

    U: Array  # (D, r), the factor in the coordinates of the problem
    M: Array  # (D, D), X' Diag(u) X / n
    largest: Array  # (1,), bound on the weights, which are not stored
    inverse_mean: float  # mean of 1/u, 0 for zero rows
    mean_sqrt: float  # mean of sqrt(q)
    mean_q: float


def sums_of_rows(problem: DirectionProblem, G: Array) -> Sums:
    """Return the sums of one pass over all rows that certify bounds at a factor of V in the user's coordinates."""
    U = dense(problem.coordinates.transform_factor(G))
    n, floors = len(problem.X), np.array([1e-12, 1e-2]) * max(float(np.sum(U * (problem.A @ U))), 1e-300)
    grams, inverse_sums, sqrt_sum, square_sum = problem.X.weighted_sums(U, floors)
    # The largest weight is that of the larger floor if no q is below it.
    largest = floors[int(np.ptp(inverse_sums) == 0.0)] ** -0.5
    return Sums(U, grams[0] / n, np.array([largest]), float(inverse_sums[0] / n), sqrt_sum / n, float(square_sum / n))


def bound_at(t: float, inverse_mean: float, n_roundings: int = MEAN_ROUNDINGS) -> float:
    """Return a lower bound on 1 - t inverse_mean, for a mean of positive numbers with `n_roundings`."""
    if not np.isfinite(t):  # whatever the mean, even 0
        return -np.inf
    product = round_up(t * inverse_mean, n_roundings)
    return 1.0 - product - 2 * UNIT_ROUNDOFF if np.isfinite(product) else -np.inf


def project_dual(problem: DirectionProblem, C: Array) -> Array:
    """Return C projected onto the dual set: a solver's multiplier slightly outside would prove nothing."""
    C = problem.pair_penalty.project_safe(symmetric(C))
    # Along directions outside the coordinates W, the right side of a bound is C alone, so C must be 0 there.  This
    # holds if C is 0 on the columns without another penalty, because only these contribute to such directions.
    if np.any(problem.pair_penalty.reference_weights > problem.c) and problem.W.shape[1] < len(C):
        unpenalized = (problem.a == 0.0) & (problem.c == 0.0)
        C[unpenalized], C[:, unpenalized] = 0.0, 0.0
    return C
