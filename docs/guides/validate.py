r"""
Validate a solver
=================

`validate` checks any solver of Eq. (15) against the CVXPY reference. The solver is a function of the data, nu and the
penalty that returns V, F or a `Result`. Here is a short one: a fixed-point iteration for problems without an l1 penalty,
and the package's own solver for the others.
"""

import numpy as np

import diffrac_cvx as dc


def fixed_point(X, nu, penalty, n_iter=1000):
    """Iterate V = GG', with G = A^+ X'F and F the rows of XG scaled to norm 1; return V."""
    n, d = X.shape
    a, c = penalty.weights(d)
    if c.any() or nu == 0:
        return dc.low_rank(X, nu, penalty).V
    X = X - X.mean(axis=0)
    if nu < 1:  # the offset, as a column of ones with its own ridge
        X, a = np.c_[X, np.ones(n)], np.r_[a, np.sqrt(nu / (1 - nu))]
    units = np.sqrt(np.mean(X**2, axis=0) + a**2)
    X, a = X / units, a / units
    inverse = np.linalg.pinv(X.T @ X / n + np.diag(a**2), rcond=1e-10, hermitian=True)
    G = inverse
    for _ in range(n_iter):
        XG = X @ G
        norms = np.linalg.norm(XG, axis=1, keepdims=True)
        G = inverse @ (X.T @ np.divide(XG, norms, out=np.zeros_like(XG), where=norms > 0)) / n
    return G @ G.T / np.outer(units, units)


found = dc.validate(fixed_point, n_instances=12, tol=1e-3)
assert found.passed
found

# %%
# Each row is an instance: its size, nu, the penalty and a trait of the data. ``objective`` is recomputed from the V returned;
# ``lower`` and ``upper`` are certified bounds from this V, ``reference_lower`` and ``reference_upper`` those of `v_space` with
# CLARABEL. ``tol`` is the excess over the optimum that is accepted, 1e-4 by default.
#
# A mistake
# ---------
# This version forgets the offset, so it solves nu = 1 only:


def without_offset(X, nu, penalty):
    return fixed_point(X, 1.0, penalty)


found = dc.validate(without_offset, n_instances=12, tol=1e-3)
for violation in found.violations[:3]:
    print(violation)
print(found.diagnosis)
assert "V is optimal for nu = 1" in found.diagnosis

# %%
# The violations say by how much V misses the optimum, the **diagnosis** why. It compares the failing instances with the
# others, and tries common mistakes: it solves the problem without centred rows, with c^2 or sqrt(c) instead of c, an l1
# penalty without its diagonal, a ridge a^2, another weight of the offset and so on, and names the one for which the V
# returned are optimal. It also recognises a V or a value of the wrong scale, a rank of one, and an early stop.
#
# ``found.instances`` has X, nu and the penalty of each instance, to debug the solver there.
#
# A solver that may take long gets a limit: ``instance_time_limit=10`` on each instance, ``time_limit=600`` on all.
#
# A solver with bounds
# --------------------
# A `Result` claims more, and all of it is checked: the value is the objective at V, F belongs to V, the bounds contain the
# optimum, and the status OPTIMAL comes with a gap of at most tol. Here the bounds are too narrow:

from dataclasses import replace


def overconfident(X, nu, penalty):
    result = dc.low_rank(X, nu, penalty, tol=0.05)
    return replace(result, lower=result.upper, status=dc.Status.OPTIMAL)


found = dc.validate(overconfident, n_instances=4)
print(found.violations[0])
assert not found.passed

# %%
# The solvers of this package pass:

print(dc.validate(dc.low_rank, n_instances=12).messages())

# %%
# ``make validate`` compares all solvers and formulations of the package on all 200 kinds of instances, with the same checks.
