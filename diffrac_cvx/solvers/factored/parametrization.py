"""Parametrisations of V: one factor, or factors of blocks; and (15) at a fixed C."""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from diffrac_cvx.certificates.direction_bounds import Blocks
from diffrac_cvx.machine import deadlines
from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import (
    LARGE_SIZE,
    cholesky,
    inverse_of_positive,
    inverse_or_one,
    row_products,
    solve_lower,
    times,
)
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.solvers.factored.quasi_newton import Metric, inner

LARGE_UNIT = 8.0  # size of V in a column, relative to that suggested by the variances, from which units are used


class FactorParametrization:
    """Parametrisation V = UU' on all coordinates, and (15) at a fixed C.

    With correlated columns, the curvature varies less in the metric B + 1.  ``units`` replaces the 1 by Diag(units)^-2
    for a V of other size than the column variances suggest, whose entries are of the size of the products of the units.
    This occurs if a few outlying rows have nearly all of the variance: V is then nearly orthogonal to them, and of the
    size that suits the other rows.  The objective is then a sum of squares without cancellation of large terms.
    """

    def __init__(self, problem: DirectionProblem, units: Array | None = None) -> None:
        d = len(problem.c)
        self.problem, self.units = problem, np.ones(d) if units is None else units
        self.left: Metric | None = None
        self.root: Array | None = None  # of B + Diag(units)^-2; the last d rows are Diag(units)^-1
        if units is None:
            self.B = problem.A + np.diag(problem.c**2)
            if np.sum(self.B**2) > 3.0 * np.trace(self.B):  # tr B^2 / tr B is 1 + d/n for noise
                self.left = inverse_of_B_and_one(problem, self.B)
        else:
            deadlines.check_deadline(40.0 * float(d) ** 3 if d > LARGE_SIZE else 0.0)
            count_work(60.0 * float(d) ** 3)
            self.root = np.vstack([problem.R, np.diag(problem.c), np.diag(1.0 / units)])
            _, singular, right = np.linalg.svd(self.root, full_matrices=False)
            T = right.T / singular
            self.left = lambda Z: times(T, times(T.T, Z))

    def factors(self, U: Array) -> list[Array]:
        return [U]

    def value_and_gradient(self, U: Array, products: list[Array]) -> tuple[float, Array]:
        """Return the value and the gradient in U, from the product C U."""
        problem, n = self.problem, len(self.problem.X)
        total, gradient = problem.X.sqrt_sum_and_gradient(U)
        CU = products[0] if products else np.zeros_like(U)
        if self.root is not None:
            root = self.root[: -len(U)]
            RU = root @ U
            cost, KU = inner(RU, RU) + inner(U, CU), root.T @ RU + CU
        else:
            if has_few_rows(problem):  # then products with X are cheaper than with B
                BU = problem.Y.rmatvec(problem.Y @ U) + (problem.a**2 + problem.c**2)[:, None] * U
            else:
                BU = times(self.B, U)
            KU = BU + CU
            cost = inner(U, KU)
        return float(1 - 2 * (total / n) + cost), 2 * KU - (2 / n) * gradient

    def multiplier_gradient(self, products: list[Array]) -> Array:
        """Return 2 C U."""
        return 2 * products[0]

    def metric(self, U: Array) -> Metric:
        """Return the initial inverse Hessian, the map Z -> (B + 1)^-1 Z (G + shrinkage)^-1, G = U'U.

        With units it is the metric of U at B + Diag(units)^-2, and G the Gram matrix there.
        """
        image = U if self.root is None else self.root @ U
        G, left = times(image.T, image), self.left
        right = shrunk_inverse(G, approximate_top_eigenvalue(G), 1e-2 if self.problem.has_l1 else 1e-1)
        return (lambda Z: times(Z, right)) if left is None else (lambda Z: left(times(Z, right)))


class BlockPoint(NamedTuple):
    """Block diagonal V."""

    weights: Array  # (m1,), of the single coordinates; each is one column of the factor
    intercepts: Array  # (m1, f), entries of these columns on the unpenalised coordinates
    free_factor: Array  # (f, f), factor of the part of V on the unpenalised coordinates only
    factors: list[Array]  # (s + f, r) each, of the blocks

    @property
    def parts(self) -> list[Array]:
        return [self.weights, self.intercepts, self.free_factor, *self.factors]

    def times(self, multiple: float) -> "BlockPoint":
        """Return the point with V scaled by the square of a multiple."""
        return self.like(self.flat() * multiple)

    def flat(self) -> Array:
        return np.concatenate([part.ravel() for part in self.parts])

    def like(self, entries: Array) -> "BlockPoint":
        """Return a point of the same shapes from its entries."""
        pieces, start = [], 0
        for part in self.parts:
            pieces.append(entries[start : start + part.size].reshape(part.shape))
            start += part.size
        return BlockPoint(pieces[0], pieces[1], pieces[2], pieces[3:])


class BlockParametrization:
    """Parametrisation of a block diagonal V by all entries of a `BlockPoint`; single coordinates have no multiplier."""

    def __init__(self, blocks: Blocks, shape: BlockPoint) -> None:
        self.blocks, self.problem, self.shape = blocks, blocks.problem, shape
        self.singles, self.sizes = blocks.singles, [len(block) for block in blocks.members]
        self.diagonal, self.cross = self.problem.diagonal[self.singles], self.problem.cross[self.singles]

    def quadratic_forms(self, point: BlockPoint, products: list[Array]) -> Array:
        """Return q from the point and the products of the blocks' data with their factors."""
        weights, intercepts, F = point.weights, point.intercepts, self.problem.F
        q = self.problem.squares @ self.expand(weights**2)
        if F.shape[1]:
            q += 2 * row_products(F, self.problem.X @ self.expand(weights[:, None] * intercepts))
            q += row_products(F @ (intercepts.T @ intercepts + point.free_factor @ point.free_factor.T), F)
        for XU in products:
            q += row_products(XU, XU)
        return np.asarray(np.maximum(q, 0.0))

    def expand(self, values: Array) -> Array:
        """Return values of the single coordinates as values of all, 0 in the blocks."""
        full = np.zeros((self.problem.X.shape[1], *values.shape[1:]))
        full[self.singles] = values
        return full

    def products(self, point: BlockPoint) -> list[Array]:
        """Return the products of the blocks' data with their factors, (n, r) each."""
        return [data @ U for data, U in zip(self.blocks.data, point.factors, strict=True)]

    def factors(self, params: Array) -> list[Array]:
        """Return the factors of the blocks on their own coordinates."""
        return [U[:s] for U, s in zip(self.shape.like(params).factors, self.sizes, strict=True)]

    def value_and_gradient(self, params: Array, products: list[Array]) -> tuple[float, Array]:
        """Return the value and the gradient in all entries."""
        point = self.shape.like(params)
        data_products = self.products(point)
        roots = np.sqrt(self.quadratic_forms(point, data_products))
        u = np.where(roots > 0.0, inverse_or_one(roots), 0.0)
        value, pieces = self.single_part(point, u)
        value += 1.0 - 2.0 * float(roots.mean())
        for i, (U, XU, CU) in enumerate(zip(point.factors, data_products, products, strict=True)):
            KU = times(self.blocks.right[i], U)
            KU[: len(CU)] += CU
            value += inner(U, KU)
            pieces.append((2 * KU - 2 * self.blocks.data[i].rmatvec(u[:, None] * XU)).ravel())
        return value, np.concatenate(pieces)

    def single_part(self, point: BlockPoint, u: Array) -> tuple[float, list[Array]]:
        """Return the part of tr VB outside the blocks, and the flat gradients in weights, intercepts, free factor."""
        weights, intercepts, free_factor, _ = point
        F = self.problem.F
        slope = 2 * weights * (self.diagonal - self.problem.weighted_squares(u)[self.singles])
        if not F.shape[1]:
            return self.single_cost(point), [slope, intercepts.ravel(), free_factor.ravel()]
        uF = u[:, None] * F
        between, MF = self.cross - self.problem.X.rmatvec(uF)[self.singles], F.T @ uF / len(F)
        slope += 2 * row_products(between, intercepts)
        slopes = 2 * (weights[:, None] * between + intercepts - intercepts @ MF)
        return self.single_cost(point), [slope, slopes.ravel(), 2 * (free_factor - MF @ free_factor).ravel()]

    def single_cost(self, point: BlockPoint) -> float:
        """Return the part of tr VB outside the blocks."""
        weights, intercepts, free_factor, _ = point
        between = np.sum(weights * row_products(self.cross, intercepts))
        return float(np.sum(self.diagonal * weights**2) + np.sum(intercepts**2) + np.sum(free_factor**2) + 2 * between)

    def multiplier_gradient(self, products: list[Array]) -> Array:
        """Return 2 C U on the blocks, 0 elsewhere."""
        gradient = self.shape.times(0.0)
        for U, CU in zip(gradient.factors, products, strict=True):
            U[: len(CU)] = 2 * CU
        return gradient.flat()

    def metric(self, params: Array) -> Metric:
        """Return the map Z -> Z (U'U + shrinkage)^-1 on the penalised coordinates of each block, as for one block."""
        point, shrinkage = self.shape.like(params), 0.03  # V is diagonal at first, and its entries have to separate
        grams = [times(U.T, U) for U in point.factors]
        top = max(float(np.max(point.weights**2, initial=1e-300)), *(approximate_top_eigenvalue(G) for G in grams), 0.0)
        single = 1.0 / (point.weights**2 / top + shrinkage)
        rights = [shrunk_inverse(G, top, shrinkage) for G in grams]

        def apply(Z: Array) -> Array:
            parts = self.shape.like(Z)
            factors = [
                np.vstack([times(part[:s], right), part[s:]])
                for part, right, s in zip(parts.factors, rights, self.sizes, strict=True)
            ]
            return BlockPoint(parts.weights * single, parts.intercepts, parts.free_factor, factors).flat()

        return apply

    def cost(self, point: BlockPoint) -> float:
        """Return tr VA + sum_ij c_i c_j |V_ij|."""
        total = self.single_cost(point)
        for U, right, block in zip(point.factors, self.blocks.right, self.blocks.members, strict=True):
            V = times(U[: len(block)], U[: len(block)].T)
            total += inner(U, times(right, U)) + self.problem.pair_penalty_of(block).support_function(V)
        return total

    def rescale(self, point: BlockPoint) -> tuple[BlockPoint, float, Array]:
        """Return the optimal multiple of a point, its objective in (15), and q."""
        q = self.quadratic_forms(point, self.products(point))
        mean_sqrt, cost = float(np.mean(np.sqrt(q))), self.cost(point)
        if mean_sqrt == 0.0 or cost == 0.0:
            return point, 1.0, q
        return point.times(mean_sqrt / cost), max(1.0 - mean_sqrt**2 / cost, 0.0), q * (mean_sqrt / cost) ** 2


def choose_parametrization(problem: DirectionProblem) -> FactorParametrization:
    """Return the parametrisation, with units if V is large, or of unequal sizes with fewer rows than columns.

    The squared size relative to that suggested by the variances is estimated by the least-squares directions of random
    labels: the diagonal of B^+ A B^+, B = A + Diag(c)^2.
    """
    if not problem.has_l1 or problem.X.is_streamed:
        return FactorParametrization(problem)
    if problem.is_large:
        inverse = times(problem.W, problem.W.T)
        squares = np.maximum(np.diag(inverse) - np.square(inverse) @ problem.c**2, 0.0)
    else:
        B = problem.A + np.diag(problem.c**2)
        directions = scipy.linalg.lstsq(B, problem.R.T, check_finite=False)[0]
        squares = row_products(directions, directions)
    units = np.maximum(np.sqrt(squares), 1.0)
    limit = LARGE_UNIT if len(problem.X) >= len(units) else min(LARGE_UNIT, 3.0 * units.min())
    return FactorParametrization(problem, units if units.max() >= limit else None)


def shrunk_inverse(G: Array, top: float, shrinkage: float) -> Array:
    """Return (G / top + shrinkage)^-1.

    The value depends on the square of a small component of U; with this scaling it changes equally fast in all
    directions (Tong, Ma, Chi, JMLR 2021).
    """
    return inverse_of_positive(G / top + shrinkage * np.eye(len(G)))


def approximate_top_eigenvalue(G: Array) -> float:
    """Return the approximate largest eigenvalue of G = U'U by power steps, at least the largest diagonal entry."""
    z = G[:, np.argmax(np.diag(G))]
    for _ in range(8):
        z = G @ (z / max(float(np.linalg.norm(z)), 1e-300))
    return max(float(np.linalg.norm(z)), float(np.diag(G).max()), 1e-300)


def has_few_rows(problem: DirectionProblem) -> bool:
    """Return whether A is X'X/n + Diag(a)^2 of few rows in memory, so that products with X are cheaper than with A."""
    from_rows = problem.root is None and problem.basis is None
    return from_rows and 4 * len(problem.Y) <= len(problem.c)


def inverse_of_B_and_one(problem: DirectionProblem, B: Array) -> Metric:
    """Return the map Z -> (B + 1)^-1 Z, B = X'X/n + Diag(a)^2 + Diag(c)^2; by Woodbury's identity if rows are few."""
    if not has_few_rows(problem):
        inverse = inverse_of_positive(B + np.eye(len(B)))
        return lambda Z: times(inverse, Z)
    diagonal = (problem.a**2 + problem.c**2 + 1.0)[:, None]
    rows = problem.Y.array() / len(problem.Y) ** 0.5
    scaled = rows / diagonal.T
    L = cholesky(np.eye(len(rows)) + times(scaled, rows.T))
    F = solve_lower(L, scaled)
    return lambda Z: Z / diagonal - times(F.T, times(F, Z))
