r"""
Imbalance penalised: penalized_nu
=================================

.. math::
   \min_{Y \succeq 0,\ \mathrm{diag}(Y) = 1}
   \tfrac1n \mathrm{tr}\, Y (\Pi_n - H_a) + \tfrac{\nu}{n^2} 1^\top Y 1,
   \qquad H_a = X (X^\top X + n\,\mathrm{Diag}(a)^2)^{+} X^\top

Equation (8), section 2.3; with the ridge a, Eq. (16).

**Where it comes from.** The constraint on the imbalance in :doc:`constrained_alpha` becomes a term with the weight ν. A
ridge :math:`\sum_i a_i^2 v_i^2` on the direction changes least squares into ridge regression, H into :math:`H_a`.

**What ν does.** At ν = 0 a single cluster, :math:`Y = 1 1^\top`, is optimal with value 0. In general its objective is ν, so the
value never exceeds ν. The value is concave and nondecreasing in ν. At ν = 1 the two terms with 1 cancel, and the problem is to
maximise :math:`\mathrm{tr}\, Y H_a`, the relaxation of max-cut with the weights :math:`-H_a`.

**Equivalences.** It equals :doc:`lifted` and :doc:`v_space` without an l1 penalty, for every ν in [0, 1] and every ridge:
minimise :doc:`lifted` over P and V. :doc:`multiclass` is equivalent to it.

**Use it** as the reference for few points and many features. Sparsity cannot be formulated in Y alone; it needs a relaxation with
V.

**Cost.** An n × n semidefinite variable for any d: hundreds of points.
"""

import numpy as np

import diffrac_cvx as dc

X = dc.datasets.make_planted(50, 4, noise=0.2, rng=0).X
penalty = dc.Penalty(a=0.3)
print("  nu   penalized_nu   lifted     v_space    low_rank")
for nu in (0.2, 0.6, 1.0):
    values = [
        dc.solve(dc.penalized_nu(X, nu, penalty), "SCS", tol=1e-5).value,
        dc.solve(dc.lifted(X, nu, penalty), "SCS", tol=1e-5).value,
        dc.solve(dc.v_space(X, nu, penalty), "CLARABEL").value,
        dc.low_rank(X, nu, penalty, tol=1e-7).value,
    ]
    print(f" {nu:.1f}   " + "".join(f"{value:11.6f}" for value in values))
    assert np.ptp(values) < 1e-5
    assert max(values) <= nu

# %%
# The matrix Y of any result gives a bracket on this problem (:doc:`/auto/guides/certificates`):

F = dc.low_rank(X, 0.6, penalty, tol=1e-7).F
print(dc.certify_y(X, F, nu=0.6, penalty=penalty))

# %%
# The builder returns a plain CVXPY problem. nu is its parameter, so that a path is compiled only once.

relaxation = dc.penalized_nu(X)
path = [dc.solve(relaxation.at(nu=nu), "SCS").value for nu in (0.25, 0.5, 0.75, 1.0)]
print(np.round(path, 4))
assert np.all(np.diff(path) > 0)
assert np.all(np.diff(path, 2) < 1e-6)

# %%
# Linear constraints on labels are stated on Y, with one more row for a point of known label. The bounds of the result refer to
# the best labels that satisfy them. Products of the constraints and triangle inequalities tighten the lower bound:

X = X[:16]
constraints = dc.Constraints(bags=[[0, 1, 2], [3, 4, 5]], order=[[6, 7, 8, 9]], sizes=(3, 5))
relaxation = dc.penalized_nu(X, ridge=0.3, constraints=constraints)
with_products = dc.penalized_nu(X, ridge=0.3, constraints=constraints, products=True)
lowers = []
for stated in (relaxation, with_products, dc.triangles(with_products)):
    result = dc.solve(stated)
    lowers.append(result.lower)
    print(result.bracket)
best = dc.optimal_labels(X, ridge=0.3, constraints=constraints)
print(best.bracket)
assert lowers[0] <= lowers[1] + 1e-6 <= lowers[2] + 2e-6 <= best.upper + 3e-6
