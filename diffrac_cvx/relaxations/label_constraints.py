r"""Constraints on labels, stated on the matrix Y of a relaxation, and the label bounds that its multipliers prove.

With linear constraints A y <= b, E y = f the labels +1 and -1 are not interchangeable.  Y is bordered by the row of a
point with label y_0 = 1, so that Y_0i = y_i; points with known labels are merged into this point.  At Y = yy' the
following hold:

    A Y_0 <= b,    (E - f e_0') Y = 0,    (b - A Y_0) 1' -+ (b Y_0' - A Y) >= 0,

and triangle inequalities.  The last two are all products of an equation with y_j, and of an inequality with 1 +- y_j.

Source: Lovasz and Schrijver, Cones of matrices and set-functions, SIAM J. Optim. 1, 1991, for the products; Deza and
Laurent, Geometry of Cuts and Metrics, 1997, for the triangles.  Not in the paper.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.certificates.certificate import Certificate, Proof
from diffrac_cvx.certificates.checker import at_imbalance, entries_of, state
from diffrac_cvx.certificates.labels import LabelDual, LabelProblem, Products, Rows, clique_rows, join_rows
from diffrac_cvx.certificates.values import certified_labels_value, or_zero_direction
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, positive_int
from diffrac_cvx.points.constraints import UNCONSTRAINED, Constraints
from diffrac_cvx.points.linear_algebra import unit_rows
from diffrac_cvx.points.reading import raw_table
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations.relaxation import LabelMatrix, Point, Relaxation, Solution, value_of
from diffrac_cvx.rounding.directions import LabelRegression
from diffrac_cvx.solvers.exact.cuts import WEIGHT_EQUAL, inverse_root, violated_triangles
from diffrac_cvx.solvers.exact.feasible import FeasibleSigns, require_feasible

if TYPE_CHECKING:
    import cvxpy as cp

    from diffrac_cvx.points.rows import Indices

MOST_TRIANGLES = 3300  # largest number stated at once: those on 18 points
NEW_TRIANGLES = 15  # largest number added in a round, divided by m
TRIANGLE_SIGNS = np.array([(1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1)], dtype=np.int8)
FEASIBILITY = 1e-9  # violation of a constraint that counts as rounding
NEARLY_TIGHT = 1e-3  # norm of an inequality's slack, as a row of products with F, at which it counts as tight
MIN_MULTIPLIER = 1e-12
PROJECTIONS = 200  # alternating projections of a point onto the equations and onto unit rows
N_LABELS, MAX_STEPS = 40, 30  # labels of a feasible point and of roundings; steps of their alternation
SHARES_OF_C = (1.0, 1.0 - 1e-6, 1.0 - 1e-4, 0.99, 0.0)  # multiples of a C that may be slightly infeasible


class Triangles(NamedTuple):
    """Triangle inequalities -(s_i s_j Y_ij + s_i s_k Y_ik + s_j s_k Y_jk) <= 1 on chunklets i < j < k."""

    chunklets: Indices  # (k, 3)
    signs: npt.NDArray[np.int8]  # (k, 3)


NO_TRIANGLES = Triangles(np.zeros((0, 3), np.int64), np.zeros((0, 3), np.int8))


class Rounded(NamedTuple):
    """Labels that satisfy the constraints."""

    value: float  # certified upper bound on their objective
    direction: Array  # (d,)
    labels: Array  # (n,)
    signs: Array  # (m,), of chunklets


class LabelConstraints:
    """Constraints on labels for the Y, (m, m), of a builder: states them in CVXPY and reads bounds on the best labels.

    Parameters
    ----------
    X : (n, d) array
        Table, as given to the builder.
    points : Table
        Its points, with excluded columns.
    penalty : Penalty
        Ridge and l1 weights.
    constraints : Constraints or None
        All constraints.
    products : bool
        Whether products of inequalities and signs are stated.

    Raises
    ------
    DataError, ParameterError
        If the constraints do not fit the points or contradict each other, or the penalty has groups or signs.
    """

    def __init__(
        self, X: npt.ArrayLike, points: Table, penalty: Penalty, constraints: Constraints | None, *, products: bool
    ) -> None:
        given, (n, d) = constraints or Constraints(), points.shape
        self.X, self.points, self.penalty, self.constraints = X, points, penalty, constraints
        self.chunklets, self.linear = given.chunklets_of(n), given.linear_of(n)
        self.weights, self.has_products = weights_of(penalty, d), products
        self.regression = LabelRegression(points, self.weights)
        if not self.weights.is_l1:
            raise ParameterError(
                "penalty has feature groups or known signs, and the relaxation constraints of labels. Pass one of them."
            )
        problem, self.feasible = self.problem(1.0), None
        self.m, self.anchor = len(problem.w), problem.anchor
        if problem.linear is not None:
            self.feasible = FeasibleSigns(problem.linear, problem.anchor)
            require_feasible(self.feasible, has_known=self.chunklets.has_known_labels)
        self.triangles = NO_TRIANGLES
        self.stated: dict[str, cp.Constraint] = {}

    def problem(self, nu: float) -> LabelProblem:
        """Return the problem of labels whose multipliers prove a bound."""
        n, d = self.points.shape
        columns = np.ones(d, dtype=bool)
        columns[[] if self.points.excluded is None else self.points.excluded.columns] = False
        return LabelProblem(
            raw_table(self.X),
            nu,
            self.weights.a,
            self.weights.c,
            np.ones(n),
            *self.chunklets[:2],
            columns,
            self.linear,
            self.chunklets.labeled,
        )

    # Statement

    def state(self, Y: cp.Expression, triangles: Triangles = NO_TRIANGLES) -> list[cp.Constraint]:
        """State the constraints on Y, (m, m), in CVXPY."""
        import cvxpy as cp

        problem, m, stated = self.problem(1.0), self.m, dict[str, Any]()
        if problem.linear is not None:
            A, b = problem.linear.at_most.coefficients, problem.linear.at_most.right
            y, E = Y[:, self.anchor], problem.equations
            if len(b):
                slack = b - A @ y
                stated["at_most"] = slack >= 0
            if len(b) and self.has_products:
                others = np.arange(m) != self.anchor
                slacks = cp.reshape(slack, (len(b), 1), order="C") @ np.ones((1, m - 1))
                signed = (b[:, None] @ Y[[self.anchor], :] - A @ Y)[:, others]
                stated |= {"plus": slacks - signed >= 0, "minus": slacks + signed >= 0}
            if len(E):
                stated["equal"] = E @ Y == 0
        if len(triangles.signs):
            (i, j, k), (s, t, u) = triangles.chunklets.T, triangles.signs.T
            sides = cp.multiply(s * t, Y[i, j]) + cp.multiply(s * u, Y[i, k]) + cp.multiply(t * u, Y[j, k])
            stated["triangles"] = sides >= -1
        self.stated, self.triangles = stated, triangles
        return list(stated.values())

    def rows(self, problem: LabelProblem, multipliers: dict[str, Array]) -> tuple[Rows, Products | None]:
        """Return all stated inequalities, with these multipliers, as rows and products."""
        cliques = clique_rows(*self.triangles, multipliers.get("triangles", np.zeros(len(self.triangles.signs))))
        if problem.linear is None:
            return cliques, None
        given, others = np.arange(len(problem.linear.at_most.right)), np.delete(np.arange(self.m), self.anchor)
        parts = [(given, np.full(len(given), self.anchor), -1, multipliers.get("at_most"))]
        for name, sign in (("plus", 1), ("minus", -1)):
            if name in self.stated:
                pairs = np.repeat(given, len(others)), np.tile(others, len(given))
                parts.append((*pairs, sign, multipliers.get(name)))
        return cliques, Products(
            np.concatenate([rows for rows, *_ in parts]),
            np.concatenate([chunklets for _, chunklets, *_ in parts]),
            np.concatenate([np.full(len(rows), sign, np.int8) for rows, _, sign, _ in parts]),
            np.concatenate([np.zeros(len(rows)) if g is None else np.ravel(g) for rows, *_, g in parts]),
        )

    # Bounds

    def dual(self, problem: LabelProblem, mu: Array, C: Array | None) -> LabelDual:
        """Return the solver's multipliers, with mu of diag Y = 1, as multipliers of the label problem."""
        found = {}
        for name, constraint in self.stated.items():
            value = constraint.dual_value
            usable = value is not None and np.all(np.isfinite(value))
            found[name] = np.asarray(value, dtype=np.float64) if usable else np.zeros(constraint.shape)
        inequalities = {name: np.maximum(value, 0.0) for name, value in found.items() if name != "equal"}
        rows, products = self.rows(problem, inequalities)
        active = np.flatnonzero(rows.multipliers > MIN_MULTIPLIER)
        rows = clique_rows(self.triangles.chunklets[active], self.triangles.signs[active], rows.multipliers[active])
        products = None if products is None else products.subset(products.multipliers > MIN_MULTIPLIER)
        equal = None
        if problem.linear is not None:
            E = problem.equations
            norms = np.maximum(np.linalg.norm(E, axis=1), 1e-300)[:, None]
            equal = 0.5 * (found.get("equal", np.zeros(E.shape)) + WEIGHT_EQUAL * E / norms**2)
        counts = self.chunklets.sums(np.ones(len(self.points)))
        diagonal = np.append(counts, np.zeros(self.m - len(counts))) / len(self.points) - mu
        if "plus" in found and problem.linear is not None:  # products of y_j with itself are constants in the proof
            others = np.arange(self.m) != self.anchor
            A = problem.linear.at_most.coefficients.toarray()[:, others]
            diagonal[others] += np.sum(A * (inequalities["minus"] - inequalities["plus"]), axis=0)
        return LabelDual(diagonal, rows, C, products, equal)

    def prove(self, point: Point, alpha: float | None) -> tuple[float, tuple[Proof, ...]]:
        """Return a lower bound on Eq. (9) over all labels that satisfy the constraints, with its proof.

        If alpha is given, only labels of this imbalance count, and Eq. (9) is without the penalty of the imbalance.
        To make the dual matrix positive semidefinite, its smallest eigenvalue is subtracted from mu.
        """
        weight, mu, C = 1.0 - point.nu, point.mu, point.C
        nu = point.nu if alpha is None else 1.0 - weight
        problem = self.problem(nu)
        trivial = nu if alpha is None and not self.points.used_columns().any() else 0.0
        best, box = (trivial, tuple[Proof, ...]()), problem.box
        if mu is None:
            return best
        for share in SHARES_OF_C if C is not None else (1.0,):
            part = None if C is None else np.clip(share * C, -box, box)
            dual = self.dual(problem, mu, part)
            M, m = problem.dual_matrix(dual)[0], self.m
            if not np.all(np.isfinite(M)):
                continue
            R = M[:m, m:] @ inverse_root(M[m:, m:])
            least = float(np.linalg.eigvalsh(M[:m, :m] - R @ R.T)[0])
            for rounding in (1e-14, 1e-12, 1e-10, 1e-8):
                lifted = dual._replace(mu=dual.mu + max(-least, 0.0) + rounding)
                lower = problem.lower_bound(lifted)
                lower = lower if alpha is None else at_imbalance(lower, nu, alpha)
                if lower > best[0]:
                    fields = {
                        "weight": None if alpha is None else weight,
                        "products": lifted.products,
                        "equal": lifted.equal,
                        **entries_of(lifted.C),
                    }
                    best = lower, (Proof(diagonal=lifted.mu, rows=lifted.rows, **fields),)
                if lower > -np.inf:
                    break
        return best

    def round_factor(self, F: Array, nu: float) -> list[Rounded]:
        """Return labels that satisfy the constraints, in order of increasing objective."""
        problem, rng = self.problem(nu), np.random.default_rng(0)
        R = problem.B @ inverse_root(problem.A + np.diag(problem.c**2))
        R = np.column_stack([R, (1.0 - nu) ** 0.5 * problem.w]) if nu < 1.0 else R
        scores = F @ rng.standard_normal((F.shape[1], N_LABELS))
        scores[:, N_LABELS // 2 :] = rng.standard_normal((self.m, N_LABELS - N_LABELS // 2))  # diverse directions
        if self.feasible is not None:
            scores *= np.where(scores[self.anchor] >= 0.0, 1.0, -1.0)
            scores[:, 0] = F @ F[self.anchor]
        found: dict[bytes, Array] = {}
        for column in scores.T:
            z = self.signs(column)
            for _ in range(MAX_STEPS):
                if z is None or z.tobytes() in found:
                    break
                found[z.tobytes()] = z
                z = self.signs(R @ (R.T @ z))
        rounded = []
        for z in found.values():
            labels = self.chunklets.labels_from_signs(z[: self.chunklets.n_chunklets])
            oriented, v = self.regression.oriented(labels)
            value = certified_labels_value(self.points, oriented, v, nu, self.weights)
            rounded.append(Rounded(*or_zero_direction(value, v), labels, z))
        return sorted(rounded, key=lambda one: one.value)

    def signs(self, scores: Array) -> Array | None:
        """Return the best signs of chunklets for scores, among those that satisfy the constraints."""
        return np.where(scores >= 0.0, 1.0, -1.0) if self.feasible is None else self.feasible(scores)

    # A feasible point

    def oriented(self, F: Array, G: Array | None) -> tuple[Array, Array | None]:
        """Return the factors in coordinates with y_0 = 1 as the first axis, so that F has y in its first column."""
        if self.feasible is None:
            return F, G
        normal = F[self.anchor] / np.linalg.norm(F[self.anchor]) - np.eye(F.shape[1])[0]
        reflection = np.eye(F.shape[1]) - 2.0 * np.outer(normal, normal) / max(float(normal @ normal), 1e-300)
        return F @ reflection, None if G is None else G @ reflection

    def nearest_feasible(self, point: Point, rounded: list[Rounded]) -> tuple[Array, Array | None]:
        """Return factors, (m, r) and (d, r), of a feasible point near the solver's, up to rounding.

        It is the projection of the point onto the equations, mixed with as much of the mean of labels as the
        inequalities need.  If this violates an inequality that all these labels satisfy with equality, it is the best
        labels.
        """
        F, best = unit_rows(point.F), rounded[0]
        labels = best.signs[:, None], None if point.G is None else best.direction[:, None]
        problem, Z = self.problem(point.nu), np.column_stack([one.signs for one in rounded])
        if problem.linear is not None:
            A, b = problem.linear.at_most.coefficients, problem.linear.at_most.right
            at_F = np.linalg.norm(A @ F - np.outer(b, F[self.anchor]), axis=1)
            is_tight = np.all(b[:, None] - A @ Z <= FEASIBILITY, axis=1) & (at_F <= NEARLY_TIGHT)
            tight = np.flatnonzero(is_tight)  # inequalities that are equations for all these labels, and nearly for F
            implied = A[tight].toarray()
            implied[:, self.anchor] -= b[tight]
            E = np.vstack([problem.equations, implied])
            values, vectors = np.linalg.eigh(E.T @ E)
            normals = vectors[:, values > 1e-12 * max(float(values[-1]), 1e-300)]
            for _ in range(PROJECTIONS if len(E) else 0):
                F = unit_rows(F - normals @ (normals.T @ F))
            if np.abs(normals.T @ F).max(initial=0.0) > FEASIBILITY:
                return labels
        cliques, products = self.rows(problem, {})
        rows = cliques if products is None else join_rows(cliques, problem.product_rows(products))
        entries = rows.coefficients, rows.first * self.m + rows.second, np.append(0, rows.ends)
        T = scipy.sparse.csr_array(entries, shape=(len(rows.ends), self.m**2))
        over, slack = T @ (F @ F.T).ravel() - rows.right, rows.right - T @ (Z @ Z.T).ravel() / Z.shape[1]
        violated = over > FEASIBILITY
        over, slack = over[violated], np.maximum(slack[violated], 0.0)
        part = float(np.max(over / (over + slack), initial=0.0))
        if part == 1.0:
            return labels
        inside, outside = (1.0 - part) ** 0.5, (part / Z.shape[1]) ** 0.5
        W = np.column_stack([one.direction for one in rounded])
        return np.hstack([inside * F, outside * Z]), None if point.G is None else np.hstack(
            [inside * point.G, outside * W]
        )


def n_rows_of_labels(constraints: Constraints | None, points: Table) -> int:
    """Return the number of rows of Y: chunklets, and one for y_0 = 1 with linear constraints but no known labels."""
    m = points.chunklets.n_chunklets or len(points)
    return m + int(constraints is not None and constraints.are_linear and not points.has_known_labels)


def under_constraints(relaxation: Relaxation, matrix: LabelMatrix, stated: Triangles = NO_TRIANGLES) -> Relaxation:
    """Return a relaxation with the constraints on labels, and triangle inequalities, stated on its Y."""
    import cvxpy as cp

    labels, base, alpha = matrix.constraints(), matrix.base or relaxation, matrix.alpha

    def read() -> Solution:
        point = matrix.read()
        lower, proofs = labels.prove(point, None if alpha is None else value_of(alpha))
        rounded = labels.round_factor(point.F, point.nu) if alpha is None else []
        n_excluded = labels.points.n_excluded
        if not rounded:  # labels of a given imbalance were not found, or an integer program reached its limit
            found = matrix.value_at(*labels.oriented(point.F, point.G))
            return Solution(found.F, max(found.value, lower), Bracket(lower, 1.0, n_excluded), found.G, proofs=proofs)
        best = rounded[0]
        found = matrix.value_at(*labels.oriented(*labels.nearest_feasible(point, rounded)))
        if found.value > best.value:  # these labels are a better point
            found = matrix.value_at(best.signs[:, None], None if point.G is None else best.direction[:, None])
        value = max(min(found.value, best.value), lower)
        bounds, attained = Bracket(lower, best.value, n_excluded), (best.labels, best.direction)
        return Solution(found.F, value, bounds, found.G, proofs=proofs, labels=attained)

    def pose() -> Certificate:
        points = replace(labels.points, chunklets=UNCONSTRAINED)
        given = labels.penalty, points, None, labels.constraints
        if alpha is not None:
            return state("labels_at_alpha", 1.0, *given, alpha=value_of(alpha))
        return state("labels", value_of(base.parameters["nu"]), *given)

    problem = cp.Problem(base.problem.objective, [*base.problem.constraints, *labels.state(matrix.Y, stated)])
    n_rows = sum(int(np.prod(constraint.shape)) for constraint in labels.stated.values())
    size, matrix = base.size._replace(nonzeros=base.size.nonzeros + 3 * n_rows), replace(matrix, base=base)
    return replace(base, problem=problem, read=read, pose=pose, size=size, shortcut=lambda: None, label_matrix=matrix)


def triangles(relaxation: Relaxation, *, max_rounds: int = 20) -> Relaxation:
    r"""Return a relaxation in Y with the triangle inequalities of labels, the first cutting planes of `optimal_labels`.

    .. math::
        s_i s_j Y_{ij} + s_i s_k Y_{ik} + s_j s_k Y_{jk} \ge -1 \quad\text{for all } i < j < k,\ s \in \{-1, 1\}^3

    All are stated if Y has at most 18 rows.  Otherwise `solve` adds the violated ones and solves again, until none is
    violated or ``max_rounds`` is reached; the attribute ``problem`` then contains none.  The bounds of ``solve`` on the
    returned relaxation refer to the best labels, like those of `penalized_nu` with linear constraints.

    At nu = 1 and without an l1 penalty, the optimum equals that of the best labels if X has at most two columns, for
    every n (Theorem 8 of the companion note).  With four or more columns it may be lower.

    Source: Deza and Laurent, Geometry of Cuts and Metrics, 1997.  Not in the paper.

    Parameters
    ----------
    relaxation : Relaxation
        Relaxation from `penalized_nu`, `constrained_alpha` or `lifted`, with any constraints.
    max_rounds : int
        Largest number of times that violated inequalities are added; default 20.

    Raises
    ------
    ParameterError
        If the relaxation has no matrix Y of labels, or its penalty has feature groups or sign constraints.

    Examples
    --------
    >>> import diffrac_cvx as dc
    >>> X = dc.datasets.make_planted(9, 3, noise=0.5, rng=0).X
    >>> tighter = dc.triangles(dc.penalized_nu(X, ridge=0.1))
    >>> bool(dc.solve(tighter).lower > dc.solve(dc.penalized_nu(X, ridge=0.1)).lower)
    True
    """
    max_rounds = positive_int(max_rounds, "max_rounds")
    matrix = getattr(relaxation, "label_matrix", None)
    if matrix is None:
        name = getattr(relaxation, "name", type(relaxation).__name__)
        raise ParameterError(f"{name} has no matrix of labels. Pass penalized_nu, constrained_alpha or lifted.")
    m = matrix.Y.shape[0]
    if 4 * m * (m - 1) * (m - 2) // 6 > MOST_TRIANGLES:
        return in_rounds(relaxation, matrix, NO_TRIANGLES, max_rounds)
    triples = np.array(list(combinations(range(m), 3)), dtype=np.int64).reshape(-1, 3)
    everywhere = Triangles(np.repeat(triples, 4, axis=0), np.tile(TRIANGLE_SIGNS, (len(triples), 1)))
    return under_constraints(relaxation, matrix, everywhere)


def in_rounds(relaxation: Relaxation, matrix: LabelMatrix, stated: Triangles, rounds: int) -> Relaxation:
    """Return a relaxation that is solved again with the triangle inequalities that its solution violates."""

    def tighten() -> Relaxation | None:
        F = matrix.read().F
        (chunklets, signs), _ = violated_triangles(F @ F.T, np.arange(len(F)), len(F), NEW_TRIANGLES * len(F))
        if not len(signs) or not rounds:
            return None
        more = Triangles(np.vstack([stated.chunklets, chunklets]), np.vstack([stated.signs, signs]))
        return in_rounds(relaxation, matrix, more, rounds - 1)

    return replace(under_constraints(relaxation, matrix, stated), tighten=tighten)
