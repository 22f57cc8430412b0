"""The paper's experiments: a folder for each figure or table; tables first, figures from tables."""

import cvxpy  # noqa: F401  # what is large is imported before anything is timed

from diffrac_cvx import comparison, paths, registry, relaxations, solvers  # noqa: F401
