r"""
Certificates
============

A number is worth what is proved about it. Three functions judge points and labels from anywhere.

Directions: certify_v
---------------------
For any matrix V the upper bound is the objective at its projection on the semidefinite matrices, best scaled:
:math:`1 - g^2/T`, with g the mean of :math:`\sqrt{x_i^\top V x_i}` and T the quadratic part and the penalty. The
lower bound is a point of the dual: weights u > 0 and a matrix C in the box :math:`|C_{ij}| \le c_i c_j` give

.. math:: 1 - t\, \mathrm{mean}(1/u), \qquad t = \lambda_{\max}\big(\tfrac1n X^\top \mathrm{Diag}(u) X,\ A + C\big).

Both are read off V. The cost is one pass over X and an eigenvalue problem of side d.
"""

import numpy as np

import diffrac_cvx as dc

planted = dc.datasets.make_planted(100, 5, noise=0.2, rng=0)
X, penalty = planted.X, dc.Penalty(c=0.1)
result = dc.low_rank(X, 0.8, penalty, tol=1e-6)
print("a solution ", dc.certify_v(X, result.V, 0.8, penalty))
rng = np.random.default_rng(0)
print("perturbed  ", dc.certify_v(X, result.V + 0.01 * rng.standard_normal(result.V.shape), 0.8, penalty))
print("anything   ", dc.certify_v(X, np.eye(5), 0.8, penalty))

# %%
# From V alone the box C must be guessed, so a solver's own bracket, which uses its multipliers, can be narrower.
#
# Labels' matrices: certify_y
# ---------------------------
# For Eq. (7), (8) and (16), from Y or a factor F. The lower bound is
# :math:`1^\top\mu + n \min(0, \lambda_{\min}(K - \mathrm{Diag}(\mu)))`; the smallest eigenvalue is bounded by counting signs
# of a small matrix (Sylvester), so that F with r columns costs :math:`O(n r^2)`.

plain = dc.low_rank(X, 0.8, tol=1e-6)
print("Eq. (8)", dc.certify_y(X, plain.F, nu=0.8), "Eq. (12), (14)", (plain.lower, plain.upper))

# %%
# Labels: certify_labels
# ----------------------
# The relaxation bounds the combinatorial problem from below, so labels have a proved optimality gap. Where it is below
# 1e-6 the labels are optimal for the NP-hard problem.

for noise in (0.0, 0.2, 0.5):
    data = dc.datasets.make_planted(100, 5, noise=noise, rng=0).X
    result = dc.low_rank(data, tol=1e-8)
    proof = dc.certify_labels(data, dc.rounding.kmeans_centered(result.F), result)
    print(f"noise {noise}: objective {proof.objective:.6f}, gap {proof.gap:.1e}")
