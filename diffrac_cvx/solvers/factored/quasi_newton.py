"""L-BFGS steps on matrices, with a memory that is kept when the objective function changes."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.checks import Array

Metric = Callable[[Array], Array]


class Point(NamedTuple):
    """Point with the value and the gradient there."""

    U: Array
    value: float
    gradient: Array


class Memory:
    """L-BFGS memory: the last steps and gradient changes, as matrices of the shape of the unknown."""

    def __init__(self) -> None:
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=10)

    def add(self, step: Array, change: Array) -> None:
        """Store a pair if the curvature along it is positive."""
        curvature = inner(step, change)
        if curvature > 1e-10 * np.sqrt(inner(step, step) * inner(change, change)):
            self.pairs.append((step, change, curvature))

    def direction(self, gradient: Array, metric: Metric) -> Array:
        """Return the quasi-Newton direction, with a multiple of the metric as initial inverse Hessian."""
        G = gradient.copy()
        weights = []
        for step, change, curvature in reversed(self.pairs):
            weights.append(inner(step, G) / curvature)
            G -= weights[-1] * change
        G = metric(G)
        if self.pairs:
            _, change, curvature = self.pairs[-1]
            G *= curvature / inner(change, metric(change))
        for (step, change, curvature), weight in zip(self.pairs, reversed(weights), strict=True):
            G += (weight - inner(change, G) / curvature) * step
        return -G

    def rotate(self, Q: Array) -> None:
        """Transform the memory for a change of the unknown from U to UQ."""
        turned = [(step @ Q, change @ Q) for step, change, _ in self.pairs]
        self.pairs.clear()
        for step, change in turned:
            self.add(step, change)


def inner(X: Array, Y: Array) -> float:
    """Return tr X'Y."""
    return float(np.vdot(X, Y))


def take_step(function: Callable[[Array], Point], at: Point, memory: Memory, metric: Metric) -> Point | None:
    """Return the next point by backtracking along the quasi-Newton direction; None if no step is accepted.

    A step is accepted by the Armijo condition or, if rounding hides the decrease, by the approximate Wolfe condition on
    slopes (Hager and Zhang, SIAM J. Optim. 16, 2005).
    """
    count_work(48.0 * (len(memory.pairs) + 2) * at.U.size)  # memory passes
    size = 1.0 + abs(at.value)
    D = memory.direction(at.gradient, metric)
    slope = inner(D, at.gradient)
    if not slope < 0.0:
        memory.pairs.clear()
        D = -metric(at.gradient)
        slope = inner(D, at.gradient)
    if not slope < -1e-23 * size:  # the gradient is rounding error
        return None
    length = 1.0 if memory.pairs else min(1.0, 0.3 * (inner(at.U, at.U) / inner(D, D)) ** 0.5)
    for _ in range(12):
        new = function(at.U + length * D)
        change = new.value - at.value
        hidden = change <= 1e-13 * size and inner(D, new.gradient) <= -0.8 * slope
        if change <= 1e-4 * length * slope or hidden:
            memory.add(new.U - at.U, new.gradient - at.gradient)
            return new
        # Minimum of the interpolating parabola, kept away from both ends.
        parabola = -length * slope / (2.0 * (change - length * slope))
        length *= min(max(parabola, 0.1), 0.5) if np.isfinite(parabola) else 0.1
    return None
