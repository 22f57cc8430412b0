"""Branch and bound on constraints: labels that are proved optimal."""

from diffrac_cvx.solvers.branching.optimal import OptimalLabels, optimal_labels

__all__ = ["OptimalLabels", "optimal_labels"]
