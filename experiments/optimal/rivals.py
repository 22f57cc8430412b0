"""Alternatives: all sign patterns of directions, an integer program, alternation with restarts.

All of them maximise :math:`|R^\\top y|^2` over labels, where R are the whitened rows.
"""

import time
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse

from diffrac_cvx.typing import Array

BLOCK = 2_000_000  # numbers in memory at a time
MOST_ROUNDS = 200  # of alternation, which converges after far fewer


class Exact(NamedTuple):
    """Smallest objective found by a method, its certified lower bound, and its processor time in seconds."""

    cost: float
    lower: float
    seconds: float


def try_all_directions(R: Array) -> Exact:
    """Try all labels sign(R v), which include the optimal ones, for directions v in two or three dimensions.

    Such a labelling differs from that of a v orthogonal to d - 1 rows only in the signs of these rows, which are free.
    """
    start = time.process_time()
    n, d = R.shape
    pairs = np.triu_indices(n, 1) if d == 3 else (np.arange(n),)
    free = [R[index] for index in pairs]
    normals = np.cross(free[0], free[1]) if d == 3 else np.column_stack([-R[:, 1], R[:, 0]])
    most = 0.0
    for first in range(0, len(normals), max(1, BLOCK // n)):
        block = slice(first, first + max(1, BLOCK // n))
        y = np.where(normals[block] @ R.T >= 0.0, 1.0, -1.0)
        for index in pairs:
            y[np.arange(len(y)), index[block]] = 0.0
        sums = y @ R
        for signs in product((-1.0, 1.0), repeat=d - 1):
            moved = sums + sum(sign * rows[block] for sign, rows in zip(signs, free, strict=True))
            most = max(most, float(np.max(np.sum(moved**2, axis=1))))
    return Exact(1.0 - most, 1.0 - most, time.process_time() - start)


def solve_integer_program(R: Array, time_limit: float) -> Exact:
    """Solve the problem as a mixed-integer linear program with HiGHS.

    With y = 2z - 1 the products z_i z_j become variables w_ij: at most z_i and z_j if a large product is better,
    at least 0 and z_i + z_j - 1 if a small one is.  The first label is +1.
    """
    start, n = time.process_time(), len(R)
    G = R @ R.T
    i, j = np.triu_indices(n, 1)
    weight = 2.0 * G[i, j]
    m, wanted = len(i), np.flatnonzero(weight > 0.0)
    others = np.setdiff1d(np.arange(m), wanted)
    products, z = scipy.sparse.eye_array(m, format="csr"), scipy.sparse.eye_array(n, format="csr")
    upper = scipy.sparse.vstack([scipy.sparse.hstack([-z[index[wanted]], products[wanted]]) for index in (i, j)])
    lower = scipy.sparse.hstack([z[i[others]] + z[j[others]], -products[others]])
    # y_i y_j = 4 w_ij - 2 z_i - 2 z_j + 1
    linear = -2.0 * (np.bincount(i, weight, n) + np.bincount(j, weight, n))
    constant = float(np.trace(G) + weight.sum())
    solved = scipy.optimize.milp(
        -np.concatenate([linear, 4.0 * weight]),
        integrality=np.concatenate([np.ones(n), np.zeros(m)]),
        bounds=scipy.optimize.Bounds(np.concatenate([[1.0], np.zeros(n + m - 1)]), np.ones(n + m)),
        constraints=[
            scipy.optimize.LinearConstraint(upper, -np.inf, 0.0),
            scipy.optimize.LinearConstraint(lower, -np.inf, 1.0),
        ],
        options={"time_limit": time_limit, "mip_rel_gap": 1e-6},
    )
    spent = time.process_time() - start
    if solved.x is None:
        return Exact(float("nan"), 0.0, spent)
    y = np.where(solved.x[:n] > 0.5, 1.0, -1.0)
    bound = float("-inf") if solved.mip_dual_bound is None else float(solved.mip_dual_bound)
    return Exact(1.0 - float(np.sum((y @ R) ** 2)), max(1.0 - constant + bound, 0.0), spent)


def alternate_from(R: Array, y: Array) -> Array:
    """Return the labels to which alternation converges from each row of y (k, n): y <- sign(R R'y)."""
    for _ in range(MOST_ROUNDS):
        following = np.where((y @ R) @ R.T >= 0.0, 1.0, -1.0)
        if np.array_equal(following, y):
            break
        y = following
    return y


def random_labels(R: Array, runs: int, rng: np.random.Generator) -> Array:
    """Return the labels of random directions, (runs, n)."""
    return np.where(rng.standard_normal((runs, R.shape[1])) @ R.T >= 0.0, 1.0, -1.0)
