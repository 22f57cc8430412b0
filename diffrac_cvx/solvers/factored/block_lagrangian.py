"""The augmented Lagrangian of the sparse problem at a block diagonal V."""

from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.block_bounds import BlockCertificate, Blocks
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import inverse_of_positive, inverse_or_one, row_products, times
from diffrac_cvx.points.points import Poll
from diffrac_cvx.solvers.factored.augmented_lagrangian import top_energy
from diffrac_cvx.solvers.factored.quasi_newton import Memory, Metric, inner, take_step
from diffrac_cvx.solvers.factored.quasi_newton import Point as Evaluated

STIFFNESS = 60.0  # of the augmented Lagrangian, times the size of a block
SHRINKAGE = 0.03  # in the metric of the steps
CHECK = 10  # L-BFGS steps between looks at the gap, while blocks are at most QUICK
QUICK = 64


class Point(NamedTuple):
    """A block diagonal V.

    Attributes
    ----------
    weights, intercepts : (m1,) and (m1, f) array
        Of the single coordinates, a column of the factor each.
    rest : (f, f) array
        Factor of what V has on the unpenalised coordinates alone.
    factors : list of (s + f, r) arrays
        Those of the blocks.
    """

    weights: Array
    intercepts: Array
    rest: Array
    factors: list[Array]

    @property
    def parts(self) -> list[Array]:
        """All arrays."""
        return [self.weights, self.intercepts, self.rest, *self.factors]

    def times(self, multiple: float) -> "Point":
        """Return the point with V times the square of a multiple."""
        return from_parts([part * multiple for part in self.parts])

    def flat(self) -> Array:
        """Return all entries in one vector."""
        return np.concatenate([part.ravel() for part in self.parts])

    def like(self, entries: Array) -> "Point":
        """Return a point of the same shapes from its entries."""
        pieces, start = [], 0
        for part in self.parts:
            pieces.append(entries[start : start + part.size].reshape(part.shape))
            start += part.size
        return from_parts(pieces)


def from_parts(parts: list[Array]) -> Point:
    """Return the point with these arrays."""
    return Point(parts[0], parts[1], parts[2], parts[3:])


class BlockLagrangian:
    r"""Evaluate the augmented Lagrangian of (15) at a block diagonal V: the l1 part inside blocks by its multipliers.

    As `Lagrangian`, min over the point of 1 - 2 g + tr VB + sum_b max_C [tr C V_b - |C - C0|^2 / (2 sigma)]; the single
    coordinates have no multiplier.
    """

    def __init__(self, blocks: Blocks, C0: list[Array]) -> None:
        self.blocks, self.problem, self.partition = blocks, blocks.problem, blocks.partition
        self.C0 = C0
        self.box = [self.problem.box_of(block) for block in self.partition.blocks]
        self.sigma = [STIFFNESS * len(box) * box for box in self.box]
        self.inverse_sigma = [np.where(sigma > 0.0, inverse_or_one(sigma), 0.0) for sigma in self.sigma]
        self.n, self.m = self.problem.X.shape
        self.diagonal = self.problem.diagonal[self.partition.singles]
        self.cross = self.problem.cross[self.partition.singles]

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
        full = np.zeros((self.m, *values.shape[1:]))
        full[self.partition.singles] = values
        return full

    def products(self, point: Point) -> list[Array]:
        """Return the products of the blocks' data with their factors, (n, r) each."""
        return [data @ U for data, U in zip(self.blocks.data, point.factors, strict=True)]

    def multipliers(self, point: Point) -> list[Array]:
        """Return the maximisers C at a point."""
        return [
            np.clip(C0 + sigma * times(U[: len(C0)], U[: len(C0)].T), -box, box)
            for C0, sigma, box, U in zip(self.C0, self.sigma, self.box, point.factors, strict=True)
        ]

    def value_and_gradient(self, point: Point) -> tuple[float, Array]:
        """Return the value and the gradient in all entries."""
        products = self.products(point)
        roots = np.sqrt(self.energies(point, products))
        u = np.where(roots > 0.0, inverse_or_one(roots), 0.0)
        value, pieces = self.single_part(point, u)
        value += 1.0 - 2.0 * float(roots.mean())
        for i, (U, XU, C) in enumerate(zip(point.factors, products, self.multipliers(point), strict=True)):
            s = len(C)
            BU = times(self.blocks.right[i], U)
            BU[:s] += times(C, U[:s])
            change = C - self.C0[i]
            value += float(np.sum(U * BU) - np.sum(change * change * self.inverse_sigma[i]) / 2)
            pieces.append((2 * BU - 2 * self.blocks.data[i].products_with(u[:, None] * XU)).ravel())
        return value, np.concatenate(pieces)

    def single_part(self, point: Point, u: Array) -> tuple[float, list[Array]]:
        """Return the part of tr VB outside the blocks, and the slopes in weights, intercepts and rest, each flat."""
        weights, intercepts, rest, _ = point
        singles, F = self.partition.singles, self.problem.F
        slope = 2 * weights * (self.diagonal - self.problem.weighted_squares(u)[singles])
        value = float(np.sum(self.diagonal * weights**2))
        if not F.shape[1]:
            return value, [slope, intercepts.ravel(), rest.ravel()]
        uF = u[:, None] * F
        between, MF = self.cross - self.problem.X.products_with(uF)[singles], F.T @ uF / self.n
        value += float(2 * np.sum(weights * row_products(self.cross, intercepts)))
        value += float(np.sum(intercepts**2) + np.sum(rest**2))
        slope += 2 * row_products(between, intercepts)
        slopes = 2 * (weights[:, None] * between + intercepts - intercepts @ MF)
        return value, [slope, slopes.ravel(), 2 * (rest - MF @ rest).ravel()]

    def cost(self, point: Point) -> float:
        """Return tr VA + sum_ij c_i c_j |V_ij|."""
        weights, intercepts, rest, _ = point
        total = float(np.sum(self.diagonal * weights**2) + np.sum(intercepts**2) + np.sum(rest**2))
        total += float(2 * np.sum(weights * row_products(self.cross, intercepts)))
        for U, right, box in zip(point.factors, self.blocks.right, self.box, strict=True):
            V = times(U[: len(box)], U[: len(box)].T)
            total += float(np.sum(U * times(right, U)) + np.sum(box * np.abs(V)))
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

    def at(self, point: Point) -> Evaluated:
        """Return the entries of a point in one vector, with the value and the gradient there."""
        return Evaluated(point.flat(), *self.value_and_gradient(point))

    def update(self, point: Point, at: Evaluated) -> Evaluated:
        """Take the maximisers C at a point for the multipliers; return its new value and gradient.

        The products with X are not needed again.
        """
        value, change = at.value, [np.zeros(sum(part.size for part in point.parts[:3]))]
        before, self.C0 = [self.distance(i, C) for i, C in enumerate(self.multipliers(point))], self.multipliers(point)
        for i, (U, old, new) in enumerate(zip(point.factors, self.C0, self.multipliers(point), strict=True)):
            s = len(new)
            slope = np.zeros_like(U)
            slope[:s] = 2 * (new - old) @ U[:s]
            value += inner((new - old) @ U[:s], U[:s]) - self.distance(i, new) + before[i]
            change.append(slope.ravel())
        return Evaluated(at.U, value, at.gradient + np.concatenate(change))

    def distance(self, i: int, C: Array) -> float:
        """Return |C - C0|^2 / (2 sigma) on a block."""
        change = C - self.C0[i]
        return inner(change, change * self.inverse_sigma[i]) / 2

    def metric(self, point: Point) -> Metric:
        """Return the map Z -> Z (U'U + shrinkage)^-1 on the penalised coordinates, block by block, as for one block."""
        tops = [float(np.max(point.weights**2, initial=0.0)), *(top_energy(U.T @ U) for U in point.factors)]
        top = max(*tops, 1e-300)
        single, sizes = 1.0 / (point.weights**2 / top + SHRINKAGE), [len(box) for box in self.box]
        right = [inverse_of_positive(times(U.T, U) / top + SHRINKAGE * np.eye(U.shape[1])) for U in point.factors]

        def apply(Z: Array) -> Array:
            parts = point.like(Z)
            factors = [
                np.vstack([times(part[:s], R), part[s:]])
                for part, R, s in zip(parts.factors, right, sizes, strict=True)
            ]
            return Point(parts.weights * single, parts.intercepts, parts.rest, factors).flat()

        return apply

    def minimise(self, point: Point, steps: int, enough: float, poll: Poll) -> tuple[Point, int]:
        """Return the point after at most so many L-BFGS steps, fewer if the gap is small enough, and how many.

        The multipliers are updated as it goes; the memory of L-BFGS is kept.
        """

        def function(entries: Array) -> Evaluated:
            poll()
            return Evaluated(entries, *self.value_and_gradient(point.like(entries)))

        at, memory = self.at(point), Memory()
        for taken in range(1, steps + 1):
            if taken % CHECK == 1:
                metric = self.metric(point.like(at.U))
            new = take_step(function, at, memory, metric)
            if new is None and not self.partition.blocks:
                break
            at = at if new is None else new
            if taken % CHECK == 0 or new is None:
                current = point.like(at.U)
                if self.partition.largest <= QUICK and self.claim(current, self.multipliers(current))[1].gap <= enough:
                    break
                at = self.update(current, at)
        return point.like(at.U), taken
