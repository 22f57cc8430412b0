"""Experiments of the paper: one folder per figure or table; figures are drawn from tables."""

import cvxpy  # noqa: F401  # large packages are imported before anything is timed

from diffrac_cvx import comparison, paths, registry, relaxations, solvers  # noqa: F401
