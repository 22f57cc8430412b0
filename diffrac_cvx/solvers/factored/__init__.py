"""Low-rank solver: V = UU', with an augmented Lagrangian in U."""

from diffrac_cvx.solvers.factored.solver import low_rank

__all__ = ["low_rank"]
