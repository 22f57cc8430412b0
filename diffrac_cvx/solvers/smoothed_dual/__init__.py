"""FISTA on the smoothed dual of Eq. (21): published and accelerated variants."""

from diffrac_cvx.solvers.smoothed_dual.solver import fista

__all__ = ["fista"]
