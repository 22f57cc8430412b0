r"""
Adding to the package
=====================

Each of these is one small function or record.

A relaxation
------------
A builder returns a `Relaxation`: the problem, and how to read and certify its own variable.
``diffrac_cvx/relaxations/`` has one file a space; here is one outside the package, Eq. (8) with a lower bound on the
agreement of two points.
"""

import cvxpy as cp
import numpy as np

import diffrac_cvx as dc
from diffrac_cvx import compare_methods
from diffrac_cvx.relaxations.relaxation import Reading, Relaxation, Size


def linked(X, i, j):
    """Relax the labellings in which points i and j are together."""
    X = X - X.mean(axis=0)
    n = len(X)
    Y = cp.Variable((n, n), PSD=True)
    residual = np.eye(n) - 1 / n - X @ np.linalg.pinv(X)
    problem = cp.Problem(cp.Minimize(cp.trace(residual @ Y) / n + cp.sum(Y) / n**2), [cp.diag(Y) == 1, Y[i, j] == 1])

    def read():
        values, vectors = np.linalg.eigh(Y.value)
        F = vectors * np.sqrt(np.maximum(values, 0.0))
        bounds = dc.certify_y(X, F)  # a bracket on (8): its lower bound holds here too
        return Reading(F, None, problem.value, dc.Bracket(bounds.lower, max(problem.value, bounds.lower)))

    return Relaxation("linked", "Eq. (8) with a link", problem, read, Size(n, n, 2 * n * n, "penalized_nu"))


planted = dc.datasets.make_planted(30, 3, noise=0.1, rng=0)
print(dc.solve(linked(planted.X, 0, 1), "SCS"))

# %%
# A solver
# --------
# Anything that returns a `Result`. The certificate does not care where the point came from. This one takes the direction
# of the alternating optimisation:


def from_labels(X, nu, penalty):
    """Return the direction of labels found by alternating optimisation, as a Result."""
    y = dc.baselines.alternating_optimisation(X, restarts=20, rng=0)
    v = dc.certify_labels(X, y, 0.0, nu=nu, penalty=penalty).v
    lower, upper = dc.certify_v(X, np.outer(v, v), nu, penalty)
    F = np.sign(X @ v)[:, None]
    return dc.Result(upper, lower, upper, F, np.outer(v, v), dc.Status.INACCURATE, 1, 0.0, "alternating")


print(from_labels(planted.X, 1.0, dc.Penalty()))

# %%
# One entry makes it part of `compare`:

compare_methods.METHODS["from labels"] = compare_methods.Method(
    "(15)", lambda task: from_labels(task.X, task.nu, task.penalty)
)
print(dc.compare(planted.X, methods=["low_rank", "from labels"]))
del compare_methods.METHODS["from labels"]

# %%
# Inside the package a solver yields iterates to the common stopping rule of ``diffrac_cvx/solvers/certified.py``.
#
# A rounding
# ----------
# A function from F to labels in {-1, 1}; an entry in ``rounding.ROUNDINGS`` makes it known everywhere.


def by_median(F):
    """Split the leading eigenvector at its median: clusters of equal sizes."""
    left = np.linalg.svd(F - F.mean(axis=0), full_matrices=False)[0][:, 0]
    return np.where(left > np.median(left), 1.0, -1.0)


print(dc.metrics.clustering_error(planted.y, by_median(dc.low_rank(planted.X).F)))

# %%
# A data set
# ----------
# One record in ``diffrac_cvx/datasets/catalogue.py``: name, file, size, source, licence, checksum. A file that may be
# passed on goes to ``diffrac_cvx/datasets/data`` with an origin in ``experiments/shipped_origins.py``; any other gets
# the address that ``fetch`` reads.

print(dc.datasets.describe("heart"))
