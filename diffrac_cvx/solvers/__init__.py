"""Solvers: through CVXPY, by FISTA, and at low rank."""

from diffrac_cvx.solvers.fista import fista
from diffrac_cvx.solvers.low_rank import low_rank
from diffrac_cvx.solvers.reference import solve

__all__ = ["fista", "low_rank", "solve"]
