"""When the planted direction of a noiseless 1-sparse problem is its only solution, and where that should flip."""

from typing import TypeVar

import numpy as np
import scipy.optimize

from diffrac_cvx.typing import Array

INDEPENDENT = 1e-6  # the least singular value beside the largest, above which rounding made none of it
Size = TypeVar("Size", float, Array)


def is_only_solution(X: Array) -> bool:
    """Decide whether V* = e1 e1'/(1 + lambda)^2 is the only solution of the noiseless 1-sparse problem, for any lambda.

    With unit-variance columns C = lambda X'X/n is dual optimal and inside the box off the diagonal, so every solution
    is diagonal, V = Diag(p); and all have the same q.  V* is the only one if and only if no direction delta, with
    delta_j >= 0 for j > 1, keeps q: none where the squares of the columns are independent, else a linear program.
    """
    squares = X**2
    n, d = squares.shape
    if d == 1 or (n >= d and has_full_rank(squares)):
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


def has_full_rank(A: Array) -> bool:
    """Whether the columns of a matrix are independent, and not by rounding: least squares would tell them apart."""
    return bool(np.linalg.cond(A) < 1.0 / INDEPENDENT)


def wendel(d: Size) -> Size:
    """Return (d + 1)/2: half of the instances have one solution there, if the rows (x_j^2 - 1) pointed at random.

    They lie in a space of n - 1 dimensions, and V* is the only solution where no d - 1 of them hold the origin in their
    hull.  Source: J. G. Wendel, A problem in geometric probability, 1962.
    """
    return (d + 1) / 2
