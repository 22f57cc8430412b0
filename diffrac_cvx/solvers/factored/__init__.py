"""The low-rank solver: V = UU', and an augmented Lagrangian in U."""

from diffrac_cvx.solvers.factored.solver import low_rank

__all__ = ["low_rank"]
