"""Exact solver: branch and bound for certified optimal labels."""

from diffrac_cvx.solvers.exact.search import OptimalLabels, optimal_labels

__all__ = ["OptimalLabels", "optimal_labels"]
