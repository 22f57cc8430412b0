"""CVXPY builders, and the `Relaxation` that they return."""

from diffrac_cvx.relaxations.relaxation import Relaxation, Size, Solution

__all__ = ["Relaxation", "Size", "Solution"]
