r"""Relaxation of Eq. (9) in the space of labels, tightened by triangle and odd clique inequalities (cutting planes).

With labels merged into m chunklets, and a multiplier C of the l1 term, Eq. (9) is at least 1 - max z'RR'z over signs z,
with rows R of the whitened table.  The relaxation is  max tr RR'Y  over Y = FF' with unit rows, and

    -sum_{i<j} s_i s_j Y_ij <= (q - 1)/2   for the violated inequalities found so far, on q = 3, 5 or 7 chunklets.

With linear constraints on the labels, one row of Y belongs to a chunklet with a known label; its products with the
constraints are additional inequalities, and equations E z = f become (E - f e_0')F = 0.

It is solved by an augmented Lagrangian in F, minimised by L-BFGS (Burer and Monteiro, Math. Program. 95, 2003).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from diffrac_cvx.certificates.labels import LabelDual, LabelProblem, Products, Rows, Sets, clique_rows, join_rows
from diffrac_cvx.machine.deadlines import is_late
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import mirrored_times, unit_rows, upper_gram
from diffrac_cvx.points.rows import Indices
from diffrac_cvx.problem.result import Status
from diffrac_cvx.solvers.factored.augmented_lagrangian import Memory, Point, inner, take_step

SIZES = (3, 5, 7)  # numbers of chunklets of an inequality
STEPS, UPDATES, MAX_UPDATES = 50, 2, 6  # L-BFGS steps for each update of the multipliers, updates in a round
NEW_CUTS = 15  # largest number of inequalities added in a round, divided by m
SLACK = 0.01  # inequalities with more slack and without a multiplier are removed
MIN_VIOLATION = 1e-3
FIRST_ROWS = 0.12  # fraction of the rows whose triangles are searched in the first rounds
FIRST_RANK, MAX_STIFFNESS = 24, 200.0
CLIQUE_STARTS, CLIQUE_SWEEPS = 3000, 3
MANY_PLACES = 8  # the matrix is dense if at least an eighth as many pairs as entries of Y occur in an inequality
NEW_PRODUCTS = 3  # largest number of products of linear constraints added in a round, divided by m
STIFFNESS_EQUAL, WEIGHT_EQUAL = 2.0, 100.0  # weights of equations of norm one, in steps and in proofs
LEAST_WEIGHT = 1e-3  # smallest weight of a point in the lift of a diagonal, times m
NEGLIGIBLE = 0.03  # singular value of F, relative to the largest, below which a direction is dropped
PATIENCE = 3  # rounds without a better bound, after which directions that violate the dual enter F
STALLED_ROUNDS, STALLED_GAP = 15, 0.9  # rounds in which the gap must fall to this fraction


class Cliques(NamedTuple):
    """Clique inequalities on q chunklets each: -sum_{i<j} s_i s_j z_i z_j <= (q - 1)/2, and their multipliers."""

    points: Indices  # (k, q), chunklets, increasing
    signs: npt.NDArray[np.int8]  # (k, q), -1 or +1
    multipliers: Array  # (k,), >= 0

    def subset(self, mask: npt.NDArray[np.bool_]) -> "Cliques":
        """Return the inequalities selected by a mask."""
        return Cliques(self.points[mask], self.signs[mask], self.multipliers[mask])

    def rows(self) -> Rows:
        """Return the inequalities as rows."""
        return clique_rows(self.points, self.signs, self.multipliers)


class CutRelaxation:
    """State of the cutting-plane method: factor F of Y, inequalities with multipliers, and the best certified bound."""

    def __init__(self, problem: LabelProblem) -> None:
        m = len(problem.w)
        self.problem, self.rng = problem, np.random.default_rng(0)
        self.F = unit_rows(self.rng.standard_normal((m, min(m, FIRST_RANK))))
        self.C, self.relative = np.diag(problem.c**2), np.zeros((len(problem.c), len(problem.c)))
        self.box = np.outer(problem.c, problem.c)
        self.stiffness_C = min(36.0 * len(problem.c), 60.0 / max(float(self.box.max(initial=0.0)), 1e-300))
        self.rows, self.root = self.whitened_rows(), inverse_root(problem.A + self.C)
        self.U = self.best_directions(self.F)
        self.parts: list[Cliques | Products | Sets] = [
            Cliques(np.zeros((0, q), np.int64), np.zeros((0, q), np.int8), np.zeros(0)) for q in SIZES
        ]
        self.E, self.norms_E = np.zeros((m, 0)), np.zeros(0)
        if problem.linear is not None:
            given = np.flatnonzero(np.diff(problem.linear.at_most.coefficients.indptr))
            ones, anchors = np.ones(len(given)), np.full(len(given), problem.anchor)
            self.parts.append(Products(given, anchors, -ones.astype(np.int8), 0.0 * ones))
            self.norms_E = np.maximum(np.linalg.norm(problem.equations, axis=1), 1e-300)
            self.E = problem.equations.T / self.norms_E
        self.force = np.zeros((self.E.shape[1], self.F.shape[1]))  # multipliers of E'F = 0
        self.floors: Array | None = None  # multipliers of floors of Y, for more than two clusters
        self.settled_gap = np.inf  # fraction of the first gap above which F is rotated to its principal axes
        self.stiffness, self.most_stiffness, self.lower, self.n_rounds = 1.0, MAX_STIFFNESS, -np.inf, 0
        self.dual: LabelDual | None = None  # multipliers that prove `lower`
        self.index()

    # Inequalities

    def index(self) -> None:
        """Collect all inequalities in a sparse matrix: one row each, and one column for each entry of Y that occurs."""
        m, rows = len(self.rows), join_rows(*map(self.rows_of, self.parts))
        first, second = np.minimum(rows.first, rows.second), np.maximum(rows.first, rows.second)
        self.places, columns = np.unique(first * m + second, return_inverse=True)
        entries, shape = (rows.coefficients, columns, np.append(0, rows.ends)), (len(rows.ends), len(self.places))
        self.matrix = scipy.sparse.csr_array(entries, shape=shape)
        self.transposed = self.matrix.T.tocsr()
        self.multipliers, self.right = rows.multipliers, rows.right
        first, second = np.divmod(self.places, m)
        self.shape_of_T = second, np.append(0, np.cumsum(np.bincount(first, minlength=m)))

    def rows_of(self, part: Cliques | Products | Sets) -> Rows:
        """Return inequalities of one kind as rows."""
        if isinstance(part, Sets):
            return part.rows(self.problem.n_clusters)
        return part.rows() if isinstance(part, Cliques) else self.problem.product_rows(part)

    def split(self, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Return the values of the inequalities of each kind."""
        return np.split(values, np.cumsum([len(each.multipliers) for each in self.parts])[:-1])

    @property
    def n_cuts(self) -> int:
        """Number of inequalities."""
        return len(self.multipliers)

    def violations(self, Y: Array) -> Array:
        """Return the left sides of all inequalities minus their right sides, from Y on and above the diagonal."""
        if not self.n_cuts:
            return np.zeros(0)
        return np.asarray(self.matrix @ Y.ravel()[self.places] - self.right)

    def upper_matrix(self, g: Array) -> Array:
        """Return the upper triangular matrix T of the inequalities with multipliers g."""
        T = np.zeros((len(self.rows),) * 2)
        T.ravel()[self.places] = self.transposed @ g
        return T

    def weighted_product(self, g: Array, F: Array) -> Array:
        """Return (T + T')F for the matrix T of the inequalities with multipliers g, sparse if it has few entries."""
        if MANY_PLACES * len(self.places) >= len(F) ** 2:
            return mirrored_times(self.upper_matrix(g), F)
        T = scipy.sparse.csr_array((self.transposed @ g, *self.shape_of_T), shape=(len(F),) * 2)
        return np.asarray(T @ F + T.T @ F)

    def keep_only(self, mask: npt.NDArray[np.bool_]) -> None:
        """Keep the inequalities selected by a mask, and the linear constraints themselves."""
        masks = self.split(mask)
        if isinstance(self.parts[-1], Products):
            masks[-1] = masks[-1] | (self.parts[-1].chunklets == self.problem.anchor)
        self.parts = [each.subset(part) for each, part in zip(self.parts, masks, strict=True)]
        self.index()

    def add(self, points: Indices, signs: npt.NDArray[np.int8]) -> int:
        """Add the inequalities on q points each that are new, and return their number."""
        at = SIZES.index(points.shape[1])
        old = self.parts[at]
        assert isinstance(old, Cliques)
        order = np.argsort(points, axis=1)
        points, signs = np.take_along_axis(points, order, 1), np.take_along_axis(signs, order, 1)
        signs = signs * signs[:, :1]
        powers = np.uint64(0x9E3779B97F4A7C15) ** np.arange(points.shape[1], dtype=np.uint64)
        together = 2 * np.vstack([old.points, points]) + (np.vstack([old.signs, signs]) > 0)
        _, first = np.unique(together.astype(np.uint64) @ powers, return_index=True)  # hashes of the rows
        new = np.sort(first[first >= len(old.points)]) - len(old.points)
        self.parts[at] = Cliques(
            np.vstack([old.points, points[new]]),
            np.vstack([old.signs, signs[new]]),
            np.append(old.multipliers, np.zeros(len(new))),
        )
        self.index()
        return len(new)

    def add_products(self, Y: Array) -> int:
        """Add the most violated products of linear constraints and signs, and return their number."""
        old, linear = self.parts[-1], self.problem.linear
        if linear is None or not isinstance(old, Products):
            return 0
        A, b = linear.at_most.coefficients, linear.at_most.right
        products = b[:, None] * Y[self.problem.anchor] - A @ Y  # of b - a'z with the sign of each chunklet
        violation = np.abs(products) - products[:, [self.problem.anchor]]
        violation[:, self.problem.anchor] = violation[old.rows, old.chunklets] = -np.inf
        chosen = np.flatnonzero(violation.ravel() > MIN_VIOLATION)
        chosen = chosen[np.argsort(-violation.ravel()[chosen], kind="stable")[: NEW_PRODUCTS * len(Y)]]
        rows, chunklets = np.unravel_index(chosen, violation.shape)
        signs = np.where(products[rows, chunklets] > 0.0, 1, -1).astype(np.int8)
        new = Products(rows.astype(np.int64), chunklets.astype(np.int64), signs, np.zeros(len(chosen)))
        pairs: Any = zip(old, new, strict=True)
        self.parts[-1] = Products(*(np.concatenate(pair) for pair in pairs))
        self.index()
        return len(chosen)

    # Relaxation

    def whitened_rows(self) -> Array:
        """Return R, (m, D), with RR' = B (A + C)^-1 B' + (1 - nu) ww'."""
        problem = self.problem
        R = problem.B @ inverse_root(problem.A + self.C)
        return np.column_stack([R, (1.0 - problem.nu) ** 0.5 * problem.w]) if problem.nu < 1.0 else R

    def lagrangian(self, Z: Array) -> Point:
        """Return value and gradient of the augmented Lagrangian, times m, in [F; U]; rows of F may have any norm.

        Without an l1 term U is empty, because the directions are eliminated.  With one, they are W = `self.root` U /
        m^0.5: tr RR'Y is the maximum over W of 2 tr W'B'F - tr W'(A + C)W, with the maximising C up to a quadratic
        term.
        """
        problem, g, m = self.problem, self.multipliers, len(self.F)
        norms = np.sqrt(np.einsum("ij,ij->i", Z[:m], Z[:m]))
        F, U = Z[:m] / norms[:, None], Z[m:]
        if len(U):
            W = self.root @ U / m**0.5
            relative = self.relative_C(W)
            C = relative * self.box
            image, balance = problem.B.T @ F, problem.w @ F
            value = m * (inner(W, C @ W) - 2.0 * inner(W, image) - (1.0 - problem.nu) * inner(balance, balance))
            value += inner(U, U) - m * float(np.sum(self.box * (relative - self.relative) ** 2)) / (
                2.0 * self.stiffness_C
            )
            D = 2.0 * U + self.root.T @ (C @ W - image) * (2.0 * m**0.5)
            G = (-2.0 * m) * (problem.B @ W + (1.0 - problem.nu) * np.outer(problem.w, balance))
        else:
            image, D = self.rows.T @ F, U
            value, G = -m * inner(image, image), (-2.0 * m) * (self.rows @ image)
        if len(self.force):
            equation_residual = self.E.T @ F
            value += m * (
                STIFFNESS_EQUAL * inner(equation_residual, equation_residual) + inner(self.force, equation_residual)
            )
            G += m * (self.E @ (2.0 * STIFFNESS_EQUAL * equation_residual + self.force))
        if self.n_cuts or self.floors is not None:
            Y = upper_gram(F) if self.floors is None else F @ F.T
            shifted = np.maximum(g + self.stiffness * self.violations(Y), 0.0)
            value += (float(shifted @ shifted) - float(g @ g)) / (2.0 * self.stiffness)
            G += self.weighted_product(shifted, F)
            if self.floors is not None:
                floors = self.raised_floors(Y)
                value += (inner(floors, floors) - inner(self.floors, self.floors)) / (4.0 * self.stiffness)
                G -= floors @ F
        G -= F * np.einsum("ij,ij->i", F, G)[:, None]
        return Point(Z, value, np.vstack([G / norms[:, None], D]))

    def best_directions(self, F: Array) -> Array:
        """Return U of the best directions W at C = Diag(c)^2; empty without an l1 term."""
        return (
            len(F) ** 0.5 * (self.root.T @ (self.problem.B.T @ F))
            if self.problem.c.any()
            else np.zeros((0, F.shape[1]))
        )

    def relative_C(self, W: Array) -> Array:
        """Return the C of the augmented Lagrangian relative to c_j c_k, without its diagonal."""
        found = np.clip(self.relative + self.stiffness_C * (W @ W.T), -1.0, 1.0)
        np.fill_diagonal(found, 0.0)
        return found

    def minimize(self, steps: int, memory: Memory) -> None:
        """Minimise the augmented Lagrangian by at most this many L-BFGS steps."""
        at, m = self.lagrangian(np.vstack([self.F, self.U])), len(self.F)
        for _ in range(steps):
            following = None if is_late() else take_step(self.lagrangian, at, memory, lambda G: G)
            if following is None:
                break
            converged = at.value - following.value <= 1e-12 * abs(at.value)
            at = following
            if converged or np.abs(at.gradient).max() <= 1e-6:
                break
        self.F, self.U = unit_rows(at.U[:m]), at.U[m:]

    def update_multipliers(self) -> float:
        """Set all multipliers to the maximisers of the augmented Lagrangian; return the largest previous violation."""
        Y = self.F @ self.F.T
        violations = self.violations(Y)
        self.multipliers = np.maximum(self.multipliers + self.stiffness * violations, 0.0)
        parts = self.split(self.multipliers)
        self.parts = [each._replace(multipliers=part) for each, part in zip(self.parts, parts, strict=True)]
        if self.floors is not None:
            self.floors = self.raised_floors(Y)
        equation_residual = self.E.T @ self.F
        self.force = self.force + 2.0 * STIFFNESS_EQUAL * equation_residual
        if len(self.U):
            self.relative = self.relative_C(self.root @ self.U / len(self.F) ** 0.5)
            self.C = self.relative * self.box + np.diag(self.problem.c**2)
            self.rows = self.whitened_rows()
        return max(float(violations.max(initial=0.0)), float(np.abs(equation_residual).max(initial=0.0)))

    def raised_floors(self, Y: Array) -> Array:
        """Return the multipliers of Y_ij >= -1/(K - 1) in the augmented Lagrangian, symmetric with a zero diagonal."""
        assert self.floors is not None
        raised = np.maximum(self.floors - self.stiffness * (Y + 1.0 / (self.problem.n_clusters - 1.0)), 0.0)
        np.fill_diagonal(raised, 0.0)
        return np.asarray(raised)

    def certify(self) -> tuple[float, Array]:
        """Certify the bound of the multipliers; return the computed bound, and eigenvectors that violate the dual."""
        m, F = len(self.rows), self.F
        S = -(self.rows @ self.rows.T)
        if self.n_cuts:
            T = self.upper_matrix(self.multipliers)
            S += (T + T.T) / (2.0 * m)
        total = float(self.right @ self.multipliers) / m
        if self.floors is not None:
            S -= self.floors / (2.0 * m)
            total += float(self.floors.sum()) / (2.0 * m * (self.problem.n_clusters - 1.0))
        forces = self.E @ (0.5 * self.force + STIFFNESS_EQUAL * (self.E.T @ F))
        mu = -np.einsum("ij,ij->i", S @ F + forces, F)
        S += WEIGHT_EQUAL * (self.E @ self.E.T)  # E'F = 0 in the limit, so this term changes nothing there
        S[np.arange(m), np.arange(m)] += mu
        last = min(m, max(12, F.shape[1] // 3 + 1)) - 1
        values, vectors = scipy.linalg.eigh(S, subset_by_index=[0, last], check_finite=False)
        lift = self.least_lift(S, values, vectors)
        computed = 1.0 - float(np.sum(mu)) - total - float(np.sum(lift))
        if computed > self.lower:
            dual = self.dual_at(mu + lift)
            for rounding in (1e-14, 1e-12, 1e-10):
                tried = dual._replace(mu=dual.mu + rounding)
                proved = self.problem.lower_bound(tried)
                if proved > self.lower:
                    self.lower, self.dual = proved, tried
                    break
        return computed, vectors

    def dual_at(self, mu: Array) -> LabelDual:
        """Return mu with the other multipliers, on the scale of the objective and in the user's units."""
        m, columns, C = len(self.F), self.problem.columns, None
        parts = [each._replace(multipliers=each.multipliers / m) for each in self.parts]
        parts = [each.subset(each.multipliers > 0.0) for each in parts]
        cliques = [each.rows() for each in parts if isinstance(each, Cliques)]
        if self.problem.c.any():  # with zeros for excluded columns
            C = np.zeros((len(columns), len(columns)))
            C[np.ix_(columns, columns)] = self.C / np.outer(self.problem.scale, self.problem.scale)
            C = np.clip(C, -self.problem.box, self.problem.box)
        last, is_linear = parts[-1], self.problem.linear is not None
        return LabelDual(
            mu,
            rows=join_rows(*cliques) if cliques else None,
            C=C,
            products=last if isinstance(last, Products) else None,
            equal=0.5 * WEIGHT_EQUAL * self.E.T / self.norms_E[:, None] if is_linear else None,
            sets=last if isinstance(last, Sets) else None,
            floors=None if self.floors is None else np.triu(self.floors, 1) / m,
        )

    def least_lift(self, S: Array, values: Array, vectors: Array) -> Array:
        """Return an addition to the diagonal that makes S positive semidefinite, from the smallest eigenpairs of S.

        Minus the smallest eigenvalue, at all points, would suffice.  The total may be smaller with t w, where w is the
        diagonal of the negative part of S, or its square root, and t the smallest number with S + t Diag(w) >= 0.
        """
        m, negative = len(S), np.minimum(values, 0.0)
        lifts = [np.full(m, -negative[0])]
        diagonal = np.sum(vectors**2 * -negative, axis=1)
        for w in (diagonal, np.sqrt(diagonal)) if negative[0] < 0.0 else ():
            w = w / np.sum(w) + LEAST_WEIGHT / m
            root = w**-0.5
            scaled = S * root[:, None] * root
            t = scipy.linalg.eigh(scaled, eigvals_only=True, subset_by_index=[0, 0], check_finite=False)[0]
            lifts.append(max(-float(t), 0.0) * w)
        return min(lifts, key=np.sum)

    def separate(self, Y: Array, fraction: float) -> tuple[int, float]:
        """Add violated triangles, first of a part of the rows, and larger cliques if few triangles are violated.

        Return the number of new inequalities, and the fraction of the rows to search next.
        """
        m, limit = len(Y), NEW_CUTS * len(Y)
        found, worst = violated_triangles(Y, self.rng.permutation(m), max(int(fraction * m), 8), limit)
        n_new = self.add(*found) + self.add_products(Y)
        if fraction < 1.0:
            fraction = min(3.0 * fraction, 1.0) if len(found[0]) < limit // 4 else fraction
        elif worst < 0.1 and n_new < limit // 10:
            n_new += sum(self.add(*violated_cliques(self.F, q, self.rng, limit // 2)) for q in SIZES[1:])
        return n_new, fraction

    def rotate(self, vectors: Array) -> None:
        """Rotate [F; U] to its principal axes, drop negligible ones, and add directions that violate the dual."""
        singular, axes = np.linalg.svd(np.vstack([self.F, self.U]), full_matrices=False)[1:]
        kept = axes[singular > NEGLIGIBLE * singular[0]].T
        if kept.shape[1] < len(self.F):
            self.F, self.U, self.force = self.F @ kept, self.U @ kept, self.force @ kept
            self.append(vectors)

    def add_directions(self, vectors: Array) -> None:
        """Add directions that violate the dual if F has full rank."""
        singular, k = np.linalg.svd(self.F, compute_uv=False), self.F.shape[1]
        if np.sum(singular > 1e-2 * singular[0]) >= k - 1 and k < len(self.F):
            self.append(vectors)

    def append(self, vectors: Array) -> None:
        """Append directions to F: a third of its rank, at least eight."""
        m, k = self.F.shape
        new = (0.1 * m**0.5) * vectors[:, : max(8, k // 3)]
        self.F, self.U = unit_rows(np.hstack([self.F, new])), np.hstack([self.U, self.best_directions(new)])
        self.force = np.hstack([self.force, np.zeros((len(self.force), new.shape[1]))])

    def candidates(self) -> list[Array]:
        """Return scores, (m,) each, whose signs are labels: random directions; with linear rows, first the anchor's."""
        scores = self.F @ self.rng.standard_normal((self.F.shape[1], 10))
        if self.problem.linear is not None:
            scores[:, 0] = self.F @ self.F[self.problem.anchor]
            scores *= np.where(scores[self.problem.anchor] >= 0.0, 1.0, -1.0)
        return list(scores.T)

    def start(self) -> None:
        """Solve the relaxation approximately, with linear constraints and floors but without other inequalities."""
        self.minimize(8 * STEPS, Memory())
        is_plain = self.problem.linear is None and self.floors is None
        for _ in range(0 if is_plain else MAX_UPDATES):
            self.update_multipliers()
            self.minimize(STEPS, Memory())

    def solve(
        self, cutoff: Callable[[], float], improve: Callable[[Array], float], report: Callable[[], Status | None]
    ) -> Status | None:
        """Add violated inequalities until the bound reaches the cutoff; return None if progress stops before.

        `improve` improves labels and returns the best objective so far; `report` is called after each round, and
        returns the status if a limit is reached.
        """
        m = len(self.rows)
        gaps: list[float] = []
        fraction, last_violation = FIRST_ROWS, np.inf
        n_updates, highest, n_vain = UPDATES, -np.inf, 0
        # With an l1 term C converges more slowly than the other multipliers: longer rounds, and no stiffer ones.
        slow = 2 if len(self.U) else 1
        if not self.n_rounds:
            self.start()
        while True:
            # 1. Bound, and labels by rounding.
            if is_late(6.0 * m**3):  # leave the remaining time to branch and bound
                return None
            before = self.lower
            computed, vectors = self.certify()
            n_vain = 0 if self.lower > before else n_vain + 1
            best = min(map(improve, self.candidates()))
            status = report()
            if self.lower >= cutoff():
                return Status.OPTIMAL
            excess = best - 1.0 + float(np.sum((self.rows.T @ self.F) ** 2))  # value of Y minus that of labels
            gaps.append(best - self.lower + abs(excess))
            # Also true if nothing was proved, when both are infinite.
            stalled = len(gaps) > STALLED_ROUNDS and not gaps[-1] < STALLED_GAP * gaps[-1 - STALLED_ROUNDS]
            if status is not None or stalled:
                return status
            # 2. New directions, in which the dual is violated.
            if gaps[-1] > self.settled_gap * gaps[0]:
                self.rotate(vectors)
            elif best - computed > 2.0 * max(excess, 0.0) or n_vain >= PATIENCE:
                self.add_directions(vectors)
                n_vain = 0
            # 3. Violated inequalities.
            self.n_rounds += 1
            Y = self.F @ self.F.T
            self.keep_only((self.multipliers > 1e-9) | (self.violations(Y) > -SLACK))
            n_new, fraction = self.separate(Y, fraction)
            # 4. Steps of the augmented Lagrangian, more of them if the round did not improve the bound.
            memory, n_updates = Memory(), n_updates + (1 if computed < highest else -1)
            n_updates, highest = min(max(n_updates, UPDATES), slow * MAX_UPDATES), max(highest, computed)
            for _ in range(n_updates):
                self.minimize(slow * STEPS, memory)
                violation = self.update_multipliers()
            if slow == 1 and n_new < 0.02 * self.n_cuts and violation > max(0.3 * last_violation, MIN_VIOLATION):
                self.stiffness = min(1.6 * self.stiffness, self.most_stiffness)
            last_violation = violation


def inverse_root(A: Array) -> Array:
    """Return W, (d, D), with WW' the inverse of a positive semidefinite matrix, or nearly its pseudo-inverse."""
    values, vectors = np.linalg.eigh(A)
    positive = values > 1e-14 * max(float(values.max(initial=0.0)), 1e-300)
    return np.asarray(vectors[:, positive] / np.sqrt(values[positive]))


def violated_triangles(
    Y: Array, order: Indices, n_rows: int, limit: int
) -> tuple[tuple[Indices, npt.NDArray[np.int8]], float]:
    """Return the most violated triangle inequalities with a point in the first `n_rows` of an order; and the violation.

    Of the four inequalities on i, j, k, the most violated one has |Y_ij + Y_ik| - Y_jk or |Y_ij - Y_ik| + Y_jk on the
    left; all pairs j, k are evaluated together, in single precision.
    """
    Y = np.ascontiguousarray(Y[np.ix_(order, order)], dtype=np.float32)
    found: list[Array] = []
    least, n_found = np.float32(MIN_VIOLATION), 0
    for i in range(min(n_rows, len(Y) - 2)):
        if is_late():
            break
        a, block = Y[i, i + 1 :], Y[i + 1 :, i + 1 :]
        left = np.abs(a[:, None] + a)
        left -= block
        other = np.abs(a[:, None] - a)
        other += block
        np.maximum(left, other, out=left)
        j, k = np.divmod(np.flatnonzero(left > 1.0 + least), len(a))
        j, k = j[j < k], k[j < k]
        if len(j) == 0:
            continue
        total, difference = a[j] + a[k], a[j] - a[k]
        same = np.abs(total) - block[j, k] >= np.abs(difference) + block[j, k]  # signs of j and k
        sign_j = np.where(np.where(same, total, difference) > 0.0, -1.0, 1.0)
        sign_k = np.where(same, sign_j, -sign_j)
        found.append(np.column_stack([np.full(len(j), i), j + i + 1, k + i + 1, sign_j, sign_k, left[j, k] - 1.0]))
        n_found += len(j)
        if n_found > 4 * limit:
            together = np.vstack(found)
            together = together[np.argpartition(-together[:, 5], 2 * limit)[: 2 * limit]]
            found, n_found, least = [together], 2 * limit, np.float32(max(least, together[:, 5].min()))
    together = np.vstack(found) if found else np.zeros((0, 6))
    if len(together) > limit:
        together = together[np.argpartition(-together[:, 5], limit)[:limit]]
    signs = np.column_stack([np.ones(len(together)), together[:, 3:5]]).astype(np.int8)
    return (order[together[:, :3].astype(np.int64)], signs), float(together[:, 5].max(initial=0.0))


def violated_cliques(F: Array, q: int, rng: np.random.Generator, limit: int) -> tuple[Indices, npt.NDArray[np.int8]]:
    """Return violated inequalities on q points, found by exchanging one signed point at a time from random starts.

    The left side is (q - |sum_i s_i f_i|^2)/2 for the rows f of F, so a short sum is sought.
    """
    starts = np.arange(min(CLIQUE_STARTS, 40 * len(F)))
    points = rng.integers(0, len(F), (len(starts), q))
    signs = rng.choice([-1.0, 1.0], (len(starts), q))
    F, signs = F.astype(np.float32), signs.astype(np.float32)  # only to select inequalities; no bound depends on it
    total = np.einsum("tq,tqk->tk", signs, F[points])
    for position in np.tile(np.arange(q), CLIQUE_SWEEPS):
        others = total - signs[:, position, None] * F[points[:, position]]
        products = others @ F.T
        for other in range(q):
            if other != position:
                products[starts, points[:, other]] = 0.0
        chosen = np.argmax(np.abs(products), axis=1)
        points[:, position] = chosen
        signs[:, position] = np.where(products[starts, chosen] > 0.0, -1.0, 1.0)
        total = others + signs[:, position, None] * F[chosen]
    violation = (1.0 - np.sum(total**2, axis=1)) / 2.0
    distinct = np.all(np.diff(np.sort(points, axis=1), axis=1) > 0, axis=1)
    best = np.flatnonzero((violation > 20.0 * MIN_VIOLATION) & distinct)
    best = best[np.argsort(-violation[best])[:limit]]
    return points[best], signs[best].astype(np.int8)
