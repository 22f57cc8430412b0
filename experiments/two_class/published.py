"""The paper's Algorithm 1 as printed, with its misprints corrected, and its labels after some iterations.

`diffrac_cvx.fista` with ``variant="published"`` works in columns of unit norm, rescales the l1 penalty until the
problem solved is (15), and keeps the point with the smallest value.  None of this is done here: (21) is solved in the
columns as they are, with c as given and the step 1/L of appendix G, and the last iterate counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.points.dense import array_rows
from diffrac_cvx.points.linear_algebra import momentum
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.solvers.fista_dual import SmoothedDual, prox_inverse, softmax_root
from diffrac_cvx.typing import Array

CHECK_EVERY = 25  # iterations between two checks of the gap
RANK = 1e-12  # relative to the largest eigenvalue of A: smaller ones are rounding errors


@dataclass(frozen=True, eq=False)
class Normalized:
    """Problem (21): maximise g(V) - sum c_i c_j |V_ij| over V >= 0 with tr AV = 1.

    Attributes
    ----------
    X : (n, D) array
        The points, with a column of ones if nu < 1: the augmentation of section 3.
    W : (D, r) array
        W W' is the inverse of A on its range, and V = W Q W' with tr Q = 1.
    c : (D,) array
        Weights of the l1 penalty.
    """

    X: Array
    W: Array
    c: Array

    @cached_property
    def Z(self) -> Array:
        """X W, (n, r)."""
        return np.asarray(self.X @ self.W)

    @cached_property
    def box(self) -> Array:
        """c_i c_j, (D, D)."""
        return np.outer(self.c, self.c)

    def matrix(self, u: Array, C: Array) -> Array:
        """Return W'(X' Diag(u) X / (2n) - C)W."""
        moment = (self.Z.T * (u / (2 * len(u)))) @ self.Z
        return moment - self.W.T @ C @ self.W if self.c.any() else moment


class Point(NamedTuple):
    """An iterate: the multipliers u and C, a root of Q where V = W Q W', the quadratic forms q_i = x_i'Vx_i, and V."""

    u: Array
    C: Array
    root: Array
    q: Array
    V: Array


class Left(NamedTuple):
    """Result of the algorithm: F with Y = FF', the number of iterations, and the duality gap of (21)."""

    F: Array
    iterations: int
    gap: float


def normalized(X: Array, nu: float, penalty: dc.Penalty) -> Normalized:
    """Return (21) for centred points, (n, d), a weight nu in [0, 1] of the imbalance, and a penalty."""
    a, c = penalty.weights(X.shape[1])
    if nu < 1.0:
        X, a, c = np.column_stack([X, np.ones(len(X))]), np.append(a, (nu / (1.0 - nu)) ** 0.5), np.append(c, 0.0)
    values, vectors = np.linalg.eigh(X.T @ X / len(X) + np.diag(a**2))
    mask = values > RANK * values[-1]
    return Normalized(X, vectors[:, mask] / np.sqrt(values[mask]), c)


def iterates(problem: Normalized, epsilon: float) -> Iterator[Point]:
    """Yield the iterates indefinitely, from C = 0 and the optimal u for V = A^-1 / r."""
    Z, W, box, n = problem.Z, problem.W, problem.box, len(problem.X)
    # 1/L, with the contribution of C to L even if c = 0, as printed
    step = 1.0 / SmoothedDual(array_rows(problem.X), problem.W, PairPenalty(problem.c)).lipschitz(epsilon)
    u, C, t = 1.0 / np.sqrt(np.mean(Z**2, axis=1)), np.zeros_like(box), 1.0
    ahead = (u, C)
    while True:
        _, root = softmax_root(problem.matrix(*ahead), epsilon)
        q = np.sum((Z @ root) ** 2, axis=1)
        U = W @ root
        V = U @ U.T
        new_u = prox_inverse(ahead[0] - step * q / (2 * n), step, n)
        new_C = np.clip(ahead[1] + step * V, -box, box)  # appendix G drops the minus of this gradient
        t, weight = momentum(t)
        ahead = (new_u + weight * (new_u - u), new_C + weight * (new_C - C))
        u, C = new_u, new_C
        yield Point(u, C, root, q, V)


def gap_of(problem: Normalized, point: Point) -> float:
    """Return the duality gap of (21) at an iterate."""
    upper = np.mean(1.0 / point.u) / 2 + np.linalg.eigvalsh(problem.matrix(point.u, point.C))[-1]
    return float(upper - (np.mean(np.sqrt(point.q)) - np.sum(problem.box * np.abs(point.V))))


def run(problem: Normalized, stop: float, limits: Sequence[int]) -> list[Left]:
    """Run until the gap of (21) is `stop`, which is epsilon log d; return the result there, or at each limit."""
    epsilon = stop / max(np.log(problem.X.shape[1]), 1.0)
    found: list[Left] = []
    for k, point in enumerate(islice(iterates(problem, epsilon), max(limits)), 1):
        if k % CHECK_EVERY == 0 or k in limits:
            gap = gap_of(problem, point)
            left = Left(problem.Z @ point.root / np.sqrt(point.q)[:, None], k, gap)
            found += [left] * (limits.count(k) if gap > stop else len(limits) - len(found))
        if len(found) == len(limits):
            break
    return found
