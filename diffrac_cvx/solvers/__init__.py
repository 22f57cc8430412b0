"""Solvers: through CVXPY, by FISTA on the smoothed dual, and in a factor of V."""

from diffrac_cvx.solvers.factored import low_rank
from diffrac_cvx.solvers.reference import solve
from diffrac_cvx.solvers.smoothed_dual import fista

__all__ = ["fista", "low_rank", "solve"]
