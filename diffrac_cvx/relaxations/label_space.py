"""Relaxations in the matrix of labels Y alone: (7), (8), (16).  An n x n variable."""

import cvxpy as cp
import numpy as np

from diffrac_cvx.inputs import Array
from diffrac_cvx.memory import require_memory

INSTEAD = "use v_space, whose variable is d x d, or the fast solvers low_rank and fista"


def misfit(Y: cp.Expression, Q: Array) -> cp.Expression:
    """tr Y (Pi - QQ') / n."""
    n = len(Q)
    fit: cp.Expression = cp.sum(cp.multiply(np.eye(n) - 1.0 / n - Q @ Q.T, Y)) / n
    return fit


def multiplier(unit: cp.Constraint) -> Array | None:
    """Return mu of the constraint diag Y = 1 as the solver has it, or None (CVXPY's sign is the opposite)."""
    value = unit.dual_value
    return None if value is None or not np.all(np.isfinite(value)) else -np.asarray(value)


def require_label_memory(n: int, name: str) -> None:
    """Refuse to build dense n x n data that would not fit in memory."""
    require_memory(10 * 8.0 * n * n, f"{name} with n = {n}", INSTEAD)
