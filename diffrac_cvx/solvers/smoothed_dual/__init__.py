"""FISTA on the smoothed dual of Eq. (21): as published, and accelerated."""

from diffrac_cvx.solvers.smoothed_dual.solver import fista

__all__ = ["fista"]
