r"""
Labels and direction together: lifted
=====================================

.. math::
   \min_{\begin{pmatrix} Y & P^\top \\ P & V \end{pmatrix} \succeq 0,\ \mathrm{diag}(Y) = 1}
   \tfrac1n \mathrm{tr}(Y - 2 X P + X^\top X V) + \tfrac{\nu}{n^2} 1^\top Y 1 + \Gamma(V)

Equation (11), up to centring: P stands for v y', V for vv'. Because V is a variable, any convex penalty of it can be
added, and

.. math:: \Gamma(V) = \sum_i a_i^2 V_{ii} + \sum_{ij} c_i c_j |V_{ij}|

is the ridge and the squared l1 norm of v at V = vv'. This is how sparsity enters.

**Equal to** `v_space`: minimising over Y and P leaves the problem in V. **Use it** to read P, or to add constraints
of your own that tie labels and directions. **Cost:** a cone of side n + d.
"""

import cvxpy as cp

import diffrac_cvx as dc

planted = dc.datasets.make_planted(40, 6, sparsity=2, noise=0.1, rng=0)
penalty = dc.Penalty.l1(0.05)
lifted = dc.lifted(planted.X, 0.8, penalty)
print("lifted ", dc.solve(lifted, "SCS", tol=1e-5).value)
print("v_space", dc.solve(dc.v_space(planted.X, 0.8, penalty), "CLARABEL").value)

# %%
# ``relaxation.problem`` is a `cvxpy.Problem` like any other. Here two points are told to share a label, Y[0, 1] = 1:

Y = next(variable for variable in lifted.problem.variables() if variable.shape[0] >= 40)
together = cp.Problem(lifted.problem.objective, [*lifted.problem.constraints, Y[0, 1] == 1])
together.solve(solver="SCS", eps=1e-6)
print(f"with the constraint {together.value:.5f}, without {lifted.problem.value:.5f}")
