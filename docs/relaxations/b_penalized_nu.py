r"""
Imbalance penalised: penalized_nu
=================================

.. math::
   \min_{Y \succeq 0,\ \mathrm{diag}(Y) = 1}
   \tfrac1n \mathrm{tr}\, Y (\Pi_n - X (X^\top X + n \Lambda)^{+} X^\top) + \tfrac{\nu}{n^2} 1^\top Y 1

Equation (8), and (16) with a ridge, :math:`\Lambda = \mathrm{Diag}(a)^2`. A weight nu in [0, 1] on the imbalance
takes the place of the constraint. At nu = 0 one cluster is optimal with value 0; the value is at most nu.

**Equal to** `lifted` and `v_space` without an l1 part, for every nu. **Use it** as the reference on small problems.
**Cost:** an n × n variable; the directions' form below has a d × d one.
"""

import diffrac_cvx as dc

planted = dc.datasets.make_planted(50, 4, noise=0.2, rng=0)
penalty = dc.Penalty(a=0.3)
for nu in (0.2, 0.6, 1.0):
    values = [
        dc.solve(build(planted.X, nu, penalty), solver, tol=1e-5).value
        for build, solver in ((dc.penalized_nu, "SCS"), (dc.lifted, "SCS"), (dc.v_space, "CLARABEL"))
    ]
    print(f"nu = {nu}: " + ", ".join(f"{value:.6f}" for value in values))

# %%
# The builder returns a plain CVXPY problem, compiled once; nu is its parameter.

relaxation = dc.penalized_nu(planted.X)
print(relaxation.problem.size_metrics.num_scalar_variables, "scalar variables")
print([round(dc.solve(relaxation.at(nu=nu), "SCS").value, 4) for nu in (0.25, 0.5, 1.0)])
