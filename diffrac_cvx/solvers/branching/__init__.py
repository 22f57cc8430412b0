"""Branch and bound for certified optimal labels."""

from diffrac_cvx.solvers.branching.optimal import OptimalLabels, optimal_labels

__all__ = ["OptimalLabels", "optimal_labels"]
