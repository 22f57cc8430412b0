"""What V is in the unknown of the steps: one factor, a scaled one, or the factors of blocks; and (15) at a fixed C."""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from diffrac_cvx.certificates.block_bounds import BlockCertificate, Blocks
from diffrac_cvx.machine import time_budget
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import LARGE, cholesky, inverse_of_positive, inverse_or_one, row_products, times
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.solvers.factored.quasi_newton import Metric, inner
from diffrac_cvx.solvers.factored.tuning import ONE_BLOCK


class OneFactor:
    """V = UU' on all coordinates; the unknown is U, and V has entries of the size of the products of the units."""

    def __init__(self, problem: DirectionProblem) -> None:
        self.problem, self.units, self.B = problem, np.ones(len(problem.c)), problem.A + np.diag(problem.c**2)
        # Correlated columns: steps in the metric B + 1, in which the curvature along them varies less.
        self.left: Metric | None = None
        if np.sum(self.B**2) > ONE_BLOCK.correlated * np.trace(self.B):
            self.left = inverse_of_B_and_one(problem, self.B)

    def factor(self, unknown: Array) -> Array:
        return unknown

    def unknown(self, U: Array) -> Array:
        return U

    def factors(self, unknown: Array) -> list[Array]:
        return [self.factor(unknown)]

    def value_and_gradient(self, unknown: Array, products: list[Array]) -> tuple[float, Array]:
        """Return the value and the gradient in U."""
        n = len(self.problem.X)
        total, pull = self.problem.X.roots_and_pull(unknown)
        KU = self.times_B(unknown)
        for CU in products:
            KU = KU + CU
        return float(1 - 2 * (total / n) + inner(unknown, KU)), 2 * KU - (2 / n) * pull

    def times_B(self, U: Array) -> Array:
        """Return B U; by X where there are few rows."""
        problem, rows = self.problem, self.problem.Y
        if not has_few_rows(problem):
            return times(self.B, U)
        return rows.products_with(rows @ U) + (problem.a**2 + problem.c**2)[:, None] * U

    def slope(self, products: list[Array]) -> Array:
        """Return 2 C U."""
        return 2 * products[0]

    def metric(self, unknown: Array) -> Metric:
        """Return the map Z -> (B + 1)^-1 Z (U'U + shrinkage)^-1, the first guess of the inverse of the Hessian."""
        G = times(unknown.T, unknown)
        shrinkage = ONE_BLOCK.shrinkage if self.problem.is_coupled else ONE_BLOCK.shrinkage_without_l1
        left, right = self.left, shrunk_inverse(G, top_energy(G), shrinkage)
        return (lambda Z: times(Z, right)) if left is None else (lambda Z: left(times(Z, right)))


class ScaledFactor(OneFactor):
    """The same in the unknown T^-1 U, where the data ask for a V of other size than the columns' variances do.

    A few outlying rows have nearly all of the variance.  Where V can avoid them, it is as large as the other rows ask
    for, and nearly orthogonal to the outlying ones.  T'(B + Diag(units)^-2) T = I: in the unknown the cost is a sum of
    squares in which nothing large cancels, and its curvature is about one in all directions.
    """

    def __init__(self, problem: DirectionProblem, units: Array) -> None:
        self.problem, self.units, self.left = problem, units, None
        root = np.vstack([problem.R, np.diag(problem.c)])
        time_budget.poll(40.0 * float(len(units)) ** 3 if len(units) > LARGE else 0.0)
        _, singular, right = np.linalg.svd(np.vstack([root, np.diag(1.0 / units)]), full_matrices=False)
        self.T, self.inverse_T = right.T / singular, singular[:, None] * right
        self.Z, self.root = problem.X.in_basis(self.T), root @ self.T

    def factor(self, unknown: Array) -> Array:
        return np.asarray(self.T @ unknown)

    def unknown(self, U: Array) -> Array:
        return np.asarray(self.inverse_T @ U)

    def value_and_gradient(self, unknown: Array, products: list[Array]) -> tuple[float, Array]:
        """Return the value at U = TY, and its gradient in Y."""
        n, RY = len(self.Z), self.root @ unknown
        total, pull = self.Z.roots_and_pull(unknown)
        value = 1 - 2 * total / n + inner(RY, RY) + inner(self.factor(unknown), products[0])
        return float(value), 2 * (self.root.T @ RY + self.T.T @ products[0]) - (2 / n) * pull

    def slope(self, products: list[Array]) -> Array:
        """Return 2 T' C U."""
        return np.asarray(self.T.T @ super().slope(products))


class Point(NamedTuple):
    """A block diagonal V."""

    weights: Array  # (m1,), of the single coordinates, a column of the factor each
    intercepts: Array  # (m1, f), the same on the unpenalised coordinates
    rest: Array  # (f, f), factor of what V has on the unpenalised coordinates alone
    factors: list[Array]  # (s + f, r) each, those of the blocks

    @property
    def parts(self) -> list[Array]:
        return [self.weights, self.intercepts, self.rest, *self.factors]

    def times(self, multiple: float) -> "Point":
        """Return the point with V times the square of a multiple."""
        return from_parts([part * multiple for part in self.parts])

    def flat(self) -> Array:
        return np.concatenate([part.ravel() for part in self.parts])

    def like(self, entries: Array) -> "Point":
        """Return a point of the same shapes from its entries."""
        pieces, start = [], 0
        for part in self.parts:
            pieces.append(entries[start : start + part.size].reshape(part.shape))
            start += part.size
        return from_parts(pieces)


def from_parts(parts: list[Array]) -> Point:
    return Point(parts[0], parts[1], parts[2], parts[3:])


class BlockFactors:
    """V block diagonal; the unknown has all entries of a `Point`, and single coordinates have no multiplier."""

    def __init__(self, blocks: Blocks, shape: Point) -> None:
        self.blocks, self.problem, self.shape = blocks, blocks.problem, shape
        self.singles, self.sizes = blocks.partition.singles, [len(block) for block in blocks.partition.blocks]
        self.diagonal, self.cross = self.problem.diagonal[self.singles], self.problem.cross[self.singles]

    def energies(self, point: Point, products: list[Array]) -> Array:
        """Return q from the point and the products of the blocks' data with their factors."""
        weights, intercepts, F = point.weights, point.intercepts, self.problem.F
        q = self.problem.squares @ self.spread(weights**2)
        if F.shape[1]:
            q += 2 * row_products(F, self.problem.X @ self.spread(weights[:, None] * intercepts))
            q += row_products(F @ (intercepts.T @ intercepts + point.rest @ point.rest.T), F)
        for XU in products:
            q += row_products(XU, XU)
        return np.asarray(np.maximum(q, 0.0))

    def spread(self, values: Array) -> Array:
        """Return values of the single coordinates as values of all, 0 in the blocks."""
        full = np.zeros((self.problem.X.shape[1], *values.shape[1:]))
        full[self.singles] = values
        return full

    def products(self, point: Point) -> list[Array]:
        """Return the products of the blocks' data with their factors, (n, r) each."""
        return [data @ U for data, U in zip(self.blocks.data, point.factors, strict=True)]

    def factors(self, unknown: Array) -> list[Array]:
        """Return the factors of the blocks on their own coordinates."""
        return [U[:s] for U, s in zip(self.shape.like(unknown).factors, self.sizes, strict=True)]

    def value_and_gradient(self, unknown: Array, products: list[Array]) -> tuple[float, Array]:
        """Return the value and the gradient in all entries."""
        point = self.shape.like(unknown)
        data_products = self.products(point)
        roots = np.sqrt(self.energies(point, data_products))
        u = np.where(roots > 0.0, inverse_or_one(roots), 0.0)
        value, pieces = self.single_part(point, u)
        value += 1.0 - 2.0 * float(roots.mean())
        for i, (U, XU, CU) in enumerate(zip(point.factors, data_products, products, strict=True)):
            KU = times(self.blocks.right[i], U)
            KU[: len(CU)] += CU
            value += inner(U, KU)
            pieces.append((2 * KU - 2 * self.blocks.data[i].products_with(u[:, None] * XU)).ravel())
        return value, np.concatenate(pieces)

    def single_part(self, point: Point, u: Array) -> tuple[float, list[Array]]:
        """Return the part of tr VB outside the blocks, and the slopes in weights, intercepts and rest, each flat."""
        weights, intercepts, rest, _ = point
        F = self.problem.F
        slope = 2 * weights * (self.diagonal - self.problem.weighted_squares(u)[self.singles])
        if not F.shape[1]:
            return self.single_cost(point), [slope, intercepts.ravel(), rest.ravel()]
        uF = u[:, None] * F
        between, MF = self.cross - self.problem.X.products_with(uF)[self.singles], F.T @ uF / len(F)
        slope += 2 * row_products(between, intercepts)
        slopes = 2 * (weights[:, None] * between + intercepts - intercepts @ MF)
        return self.single_cost(point), [slope, slopes.ravel(), 2 * (rest - MF @ rest).ravel()]

    def single_cost(self, point: Point) -> float:
        """Return the part of tr VB outside the blocks."""
        weights, intercepts, rest, _ = point
        between = np.sum(weights * row_products(self.cross, intercepts))
        return float(np.sum(self.diagonal * weights**2) + np.sum(intercepts**2) + np.sum(rest**2) + 2 * between)

    def slope(self, products: list[Array]) -> Array:
        """Return 2 C U on the blocks, 0 elsewhere."""
        slope = from_parts([np.zeros_like(part) for part in self.shape.parts])
        for U, CU in zip(slope.factors, products, strict=True):
            U[: len(CU)] = 2 * CU
        return slope.flat()

    def metric(self, unknown: Array) -> Metric:
        """Return the map Z -> Z (U'U + shrinkage)^-1 on the penalised coordinates, block by block, as for one block."""
        point = self.shape.like(unknown)
        grams = [times(U.T, U) for U in point.factors]
        top = max(float(np.max(point.weights**2, initial=1e-300)), *(top_energy(G) for G in grams), 0.0)
        single = 1.0 / (point.weights**2 / top + ONE_BLOCK.shrinkage_of_blocks)
        rights = [shrunk_inverse(G, top, ONE_BLOCK.shrinkage_of_blocks) for G in grams]

        def apply(Z: Array) -> Array:
            parts = self.shape.like(Z)
            factors = [
                np.vstack([times(part[:s], right), part[s:]])
                for part, right, s in zip(parts.factors, rights, self.sizes, strict=True)
            ]
            return Point(parts.weights * single, parts.intercepts, parts.rest, factors).flat()

        return apply

    def cost(self, point: Point) -> float:
        """Return tr VA + sum_ij c_i c_j |V_ij|."""
        total = self.single_cost(point)
        for U, right, block in zip(point.factors, self.blocks.right, self.blocks.partition.blocks, strict=True):
            V = times(U[: len(block)], U[: len(block)].T)
            total += inner(U, times(right, U)) + self.problem.coupling_of(block).maximum(V)
        return total

    def best_scale(self, point: Point) -> tuple[Point, float, Array]:
        """Return the best multiple of a point, its objective in (15), and q."""
        q = self.energies(point, self.products(point))
        gain, cost = float(np.mean(np.sqrt(q))), self.cost(point)
        if gain == 0.0 or cost == 0.0:
            return point, 1.0, q
        return point.times(gain / cost), max(1.0 - gain**2 / cost, 0.0), q * (gain / cost) ** 2

    def claim(self, point: Point, C: list[Array]) -> tuple[Point, BlockCertificate]:
        """Return a point at its best scale, and the ratios that bound the block diagonal problem from below."""
        point, value, q = self.best_scale(point)
        return point, BlockCertificate(self.blocks.ratios(q, C), q, value)


def suitable_factor(problem: DirectionProblem) -> OneFactor:
    """Return the unknown that suits the data.

    The size of V is judged by that of the directions of least squares for labels at random, B^-1 X'X B^-1 / n.
    """
    if not problem.is_coupled or problem.X.in_passes:
        return OneFactor(problem)
    units = np.maximum(np.sqrt(sizes_of_directions(problem)), 1.0)
    usual = units.max() < min(ONE_BLOCK.outlying, ONE_BLOCK.unequal * units.min())
    return OneFactor(problem) if usual else ScaledFactor(problem, units)


def sizes_of_directions(problem: DirectionProblem) -> Array:
    """Return the diagonal of B^+ A B^+, B = A + Diag(c)^2."""
    if problem.is_large:
        inverse = times(problem.W, problem.W.T)
        return np.maximum(np.diag(inverse) - np.square(inverse) @ problem.c**2, 0.0)
    B = problem.A + np.diag(problem.c**2)
    directions = scipy.linalg.lstsq(B, problem.R.T, check_finite=False)[0]
    return row_products(directions, directions)


def shrunk_inverse(G: Array, top: float, shrinkage: float) -> Array:
    """Return (G / top + shrinkage)^-1.

    Along a direction with a small part in UU', the value depends on that part's square: scaled so, it changes as fast
    as along the others (Tong, Ma, Chi, JMLR 2021).
    """
    return inverse_of_positive(G / top + shrinkage * np.eye(len(G)))


def top_energy(G: Array) -> float:
    """Return nearly the largest eigenvalue of G = U'U, by power steps; it is at least the largest diagonal entry."""
    z = G[:, np.argmax(np.diag(G))]
    for _ in range(8):
        z = G @ (z / max(float(np.linalg.norm(z)), 1e-300))
    return max(float(np.linalg.norm(z)), float(np.diag(G).max()), 1e-300)


def has_few_rows(problem: DirectionProblem) -> bool:
    """Whether A is X'X/n + Diag(a)^2 of few rows in memory, so that products with X cost less than those with A."""
    from_rows = problem.Y.in_memory and problem.root is None and problem.basis is None
    return from_rows and 4 * len(problem.Y) <= len(problem.c)


def inverse_of_B_and_one(problem: DirectionProblem, B: Array) -> Metric:
    """Return the map Z -> (B + 1)^-1 Z, B = X'X/n + Diag(a)^2 + Diag(c)^2; by X where there are few rows (Woodbury)."""
    if not has_few_rows(problem):
        inverse = inverse_of_positive(B + np.eye(len(B)))
        return lambda Z: times(inverse, Z)
    diagonal = (problem.a**2 + problem.c**2 + 1.0)[:, None]
    rows = problem.Y.array() / len(problem.Y) ** 0.5
    scaled = rows / diagonal.T
    L = cholesky(np.eye(len(rows)) + times(scaled, rows.T))
    F = scipy.linalg.solve_triangular(L, scaled, lower=True, check_finite=False)
    return lambda Z: Z / diagonal - times(F.T, times(F, Z))
