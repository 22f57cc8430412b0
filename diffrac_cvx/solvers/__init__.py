"""Solvers: CVXPY, FISTA on the smoothed dual, and low-rank factors of V; building blocks for solvers of (15)."""

from diffrac_cvx.certificates.direction_bounds import DualPoint
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.solvers.driver import Iterate, Stopping, WarmStart, solve_by_iterates
from diffrac_cvx.solvers.factored.solver import low_rank
from diffrac_cvx.solvers.fista_dual import fista
from diffrac_cvx.solvers.reference import solve

__all__ = [
    "DirectionProblem",
    "DualPoint",
    "Iterate",
    "Stopping",
    "WarmStart",
    "fista",
    "low_rank",
    "solve",
    "solve_by_iterates",
]
