"""Common terms of the relaxations in the matrix of labels Y: tr Y (Pi - X X^+)/n and the multiplier of diag Y = 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from diffrac_cvx.certificates.label_proof import Projection
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations.relaxation import Size, Solution

if TYPE_CHECKING:
    import cvxpy as cp

LABEL_SPACE_ALTERNATIVE = "use v_space, whose variable is d x d, or the fast solvers low_rank and fista"


def label_residual(Y: cp.Expression, H: Projection) -> cp.Expression:
    """Return tr Y (Pi - QQ') / n, with QQ' the projection on the columns of X; Y has one row per chunklet."""
    import cvxpy as cp

    Q, ones, sizes = H.sums
    n = len(H.Q)
    fit: cp.Expression = cp.sum(cp.multiply(np.diag(sizes) - np.outer(ones, ones) / n - Q @ Q.T, Y)) / n
    return fit


def imbalance_expression(Y: cp.Expression, H: Projection) -> cp.Expression:
    """Return 1'Y1 / n^2."""
    import cvxpy as cp

    ones = H.sums[1]
    found: cp.Expression = cp.sum(cp.multiply(np.outer(ones, ones), Y)) / len(H.Q) ** 2
    return found


def diagonal_multiplier(unit: cp.Constraint) -> Array | None:
    """Return the solver's multiplier mu of diag Y = 1 (CVXPY's sign is opposite), or None if it has none."""
    value = unit.dual_value
    return None if value is None or not np.all(np.isfinite(value)) else -np.ravel(value)


def read_all_ones(n: int) -> Solution:
    """Return the solution Y = 11', which is optimal with value 0 if the imbalance is not penalised."""
    return Solution(F=np.ones((n, 1)), value=0.0, bracket=Bracket(0.0, 0.0))


def label_size(n: int) -> Size:
    """Return the size of a problem whose variable is n x n."""
    return Size(points=n, side=n, nonzeros=n * n, instead=LABEL_SPACE_ALTERNATIVE)


def require_label_memory(n: int, name: str) -> None:
    """Raise ResourceError if dense n x n data would not fit in memory."""
    require_memory(10 * 8.0 * n * n, f"{name} with n = {n}", LABEL_SPACE_ALTERNATIVE)
