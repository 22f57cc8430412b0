r"""
Labels and direction together: lifted
=====================================

.. math::
   \min\ \tfrac1n \mathrm{tr}\, \Pi_n Y - \tfrac2n \mathrm{tr}\, P^\top X + \tfrac1n \mathrm{tr}\, X^\top X V
   + \tfrac{\nu}{n^2} 1^\top Y 1 + \Gamma(V)
   \quad\text{over}\quad \begin{pmatrix} Y & P \\ P^\top & V \end{pmatrix} \succeq 0,\ \mathrm{diag}(Y) = 1

Equation (11), section 2.4, with the penalty of section 3.

**Where it comes from.** Y replaces :math:`y y^\top`, P replaces :math:`y v^\top`, and V replaces :math:`v v^\top`. The squared
error is linear in the three. Since V is a variable, any convex function of it can be added. Sparsity enters through the penalty
:math:`\Gamma(V) = \sum_i a_i^2 V_{ii} + \sum_{ij} c_i c_j |V_{ij}|`.

**Equivalences.** Minimising over P and V for a given Y gives :doc:`penalized_nu`, if there is no l1 penalty:
:math:`P = Y X (X^\top X)^{+}`. Minimising over Y and P for a given V gives :doc:`v_space`, for every penalty; at ν = 1 row i
contributes the largest :math:`p_i^\top x_i` with :math:`\begin{pmatrix} 1 & p_i^\top \\ p_i & V \end{pmatrix} \succeq 0`, which
is :math:`\sqrt{x_i^\top V x_i}`.

**Use it** to add your own constraints that couple labels and directions, or to check the other two relaxations.

**Cost.** A semidefinite cone of side n + d, the largest of all forms.
"""

import cvxpy as cp
import numpy as np

import diffrac_cvx as dc

X = dc.datasets.make_planted(40, 6, sparsity=2, noise=0.1, rng=0).X
sparse = dc.Penalty.l1(0.05)
for name, penalty in (
    ("no penalty", dc.Penalty()),
    ("ridge", dc.Penalty(a=0.2)),
    ("l1", sparse),
):
    both = dc.solve(dc.lifted(X, 0.8, penalty), "SCS", tol=1e-5).value
    directions = dc.solve(dc.v_space(X, 0.8, penalty), "CLARABEL").value
    print(f"{name:10}  lifted {both:.6f}   v_space {directions:.6f}")
    assert abs(both - directions) < 1e-5

# %%
# Adding a constraint
# -------------------
# ``relaxation.problem`` is an ordinary `cvxpy.Problem`. The first block of its variable ``YPV_scaled`` is Y. Here two points that
# the solution labels differently get the soft must-link constraint :math:`Y_{ij} \ge 1/2`. The value can only increase.

relaxation = dc.lifted(X, 0.8, sparse)
free = dc.solve(relaxation, "SCS", tol=1e-5)
agreement = free.F @ free.F.T
i, j = np.unravel_index(np.argmin(agreement), agreement.shape)
block = next(
    variable for variable in relaxation.problem.variables() if variable.name() == "YPV_scaled"
)
together = cp.Problem(
    relaxation.problem.objective, [*relaxation.problem.constraints, block[i, j] >= 0.5]
)
together.solve(solver="SCS", eps_abs=1e-7, eps_rel=1e-7)
before, after = agreement[i, j], block.value[i, j]
print(f"Y[{i}, {j}]: {before:.3f} without the constraint, {after:.3f} with it")
print(f"value: {free.value:.5f} without it, {together.value:.5f} with it ({together.status})")
assert together.status == "optimal"
assert together.value > free.value

# %%
# With an equality, :math:`Y_{ij} = 1`, there is no interior point, and first-order solvers stall: use `Constraints` instead,
# which merge the two points into one row. :doc:`/auto/guides/adding` turns such a problem into a relaxation with its own
# certificate.
#
# The columns are scaled in CVXPY, so that V in this variable is not in the units of X. After ``relaxation.problem.solve()``, as after
# `solve`, ``relaxation.V`` and ``relaxation.Y`` are the solution in the units of X.
