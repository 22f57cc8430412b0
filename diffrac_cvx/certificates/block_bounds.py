"""Lower bounds on (15) at a block diagonal V: all pairs of coordinates are screened, without a dense matrix."""

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_problem import BlockProblem, IntegerArray, groups_of, scatter
from diffrac_cvx.certificates.proof import NO_PAIRS, bound_at, eliminate, prove
from diffrac_cvx.certificates.screening import Verdict, screen_pairs
from diffrac_cvx.certificates.search import best_combination_of, row_weights
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, Sparse, dense
from diffrac_cvx.points.floating_point import sum_error
from diffrac_cvx.points.linear_algebra import symmetric
from diffrac_cvx.problem.result import Labels


class Blocks:
    """Blocks of two or more coordinates, each with the columns of E, and A + Diag(c)^2 on them."""

    def __init__(self, problem: BlockProblem, labels: Labels) -> None:
        groups = groups_of(labels)
        self.problem, self.labels, self.largest = problem, labels, max(len(group) for group in groups)
        self.members = [group for group in groups if len(group) > 1]
        self.singles = np.flatnonzero(np.bincount(labels)[labels] == 1)
        self.data = [problem.data_of(block) for block in self.members]
        self.right = [problem.right_of(block, data) for block, data in zip(self.members, self.data, strict=True)]

    # The dual

    def best_dual(self, q: Array, C: list[Array]) -> tuple[float, Array, list[Array]]:
        """Return the least t with the weights u = 1/sqrt(q), u, and the multipliers.

        M <= t (A + C + Diag(c)^2) on single coordinates and blocks, each with E.  The multipliers are those given,
        shrunk if A + C is nearly singular.  t allows for rounding, so that the proof succeeds; it is not certified.
        """
        u, _ = row_weights(self.problem.problem, q)
        ratios = [self.block_ratio(i, u, inside) for i, inside in enumerate(C)]
        single = float(single_ratios(self.problem, u, self.singles).max(initial=0.0))
        return float(max([single, *(t for t, _ in ratios)])), u, [shrunk for _, shrunk in ratios]

    def block_ratio(self, i: int, u: Array, C: Array) -> tuple[float, Array]:
        """Return the least t with M <= t (A + C + Diag(c)^2) on a block and E, and C, shrunk if that decreases t."""
        check_deadline()
        M, inside = symmetric(self.data[i].weighted_gram(u)), np.zeros(self.right[i].shape)
        inside[: len(C), : len(C)] = C
        t, weight = best_combination_of(M, self.right[i], inside)
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
        return [
            self.problem.pair_penalty_of(block).project_safe(symmetric(dense(inside[block][:, block])))
            for block in self.members
        ]


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


def certify_blocks(blocks: Blocks, dual: tuple[float, Array, list[Array]], n_tries: int) -> Verdict:
    """Prove a lower bound by screening all pairs in different blocks, at the least t that succeeds, or one larger.

    The dual is that of `Blocks.best_dual`.
    """
    problem, (t, u, C), verdict = blocks.problem, dual, Verdict()
    inside, t = list(zip(blocks.members, C, strict=True)), t * (1.0 + 1e-10)  # S is then positive beyond rounding
    for attempt in range(1 + n_tries):
        remainder = eliminate(problem, u, t)
        if remainder is None:
            break
        pairs = screen_pairs(remainder, blocks.labels)
        violated = prove(remainder, pairs, inside)
        if attempt == 0:
            members = np.concatenate([NO_PAIRS.j, *(members for members, _, _ in violated)])
            verdict = Verdict(None, members, pairs)
        if not violated:
            return verdict._replace(lower=bound_at(t, problem.problem.mean_inverse(u)))
        t = larger_t(problem, u, t, violated, 1.4**attempt)
    return verdict


def larger_t(
    problem: BlockProblem, u: Array, t: float, violated: list[tuple[IntegerArray, Array, Array]], stretch: float = 1.0
) -> float:
    """Return a larger t at which the bound may hold, by a Newton step, 1.1 times as long, on each violated block.

    The least eigenvalue of S is a concave function of t: Newton's steps end before its root, so later ones have to be
    stretched.
    """
    largest = t
    for members, values, directions in violated:
        value = float(values[0])
        M = float(np.mean(u * (problem.X.columns(members) @ directions[:, 0]) ** 2))
        largest = max(largest, t + 1.1 * stretch * abs(value) * t / max(M + value, abs(value), 1e-300))
    return largest
