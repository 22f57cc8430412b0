"""Uniqueness of the planted direction of a noiseless 1-sparse problem, and its expected threshold."""

from typing import TypeVar

import numpy as np
import scipy.optimize

from diffrac_cvx.typing import Array

INDEPENDENT = 1e-6  # smallest relative singular value that cannot be a rounding error
Size = TypeVar("Size", float, Array)


def is_only_solution(X: Array) -> bool:
    """Decide whether V* = e1 e1'/(1 + lambda)^2 solves the noiseless 1-sparse problem uniquely, for any lambda.

    With unit-variance columns C = lambda X'X/n is dual optimal and strictly inside the dual box off the diagonal, so
    every solution is diagonal, V = Diag(p), and all have the same q.  V* is unique if and only if no direction delta,
    with delta_j >= 0 for j > 1, keeps q: none if the squares of the columns are independent, else a linear program.
    """
    squares = X**2
    n, d = squares.shape
    if d == 1 or (n >= d and np.linalg.cond(squares) < 1.0 / INDEPENDENT):
        return True
    total = np.append(0.0, np.ones(d - 1))
    found = scipy.optimize.linprog(
        np.zeros(d),
        A_eq=np.vstack([squares, total]),
        b_eq=np.append(np.zeros(n), 1.0),
        bounds=[(None, None), *[(0, None)] * (d - 1)],
        method="highs",
    )
    return bool(found.status == 2)


def wendel(d: Size) -> Size:
    """Return (d + 1)/2, the n at which half of the instances are unique if the rows (x_j^2 - 1) point at random.

    They lie in a space of n - 1 dimensions, and V* is the unique solution if no d - 1 of them have the origin in their
    convex hull.  Source: J. G. Wendel, A problem in geometric probability, 1962.
    """
    return (d + 1) / 2
