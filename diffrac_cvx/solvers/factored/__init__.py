"""The low-rank solver: V = UU', an augmented Lagrangian in U, and a working set of coordinates."""

from diffrac_cvx.solvers.factored.solver import low_rank

__all__ = ["low_rank"]
