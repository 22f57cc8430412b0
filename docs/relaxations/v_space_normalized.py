r"""
Direction at unit size: v_space_normalized
==========================================

.. math::
   \min_{V \succeq 0,\ \mathrm{tr}\, A V = 1}\ - \tfrac1n \sum_i \sqrt{x_i^\top V x_i} + \sum_{ij} c_i c_j |V_{ij}|,
   \qquad A = \tfrac1n X^\top X + \mathrm{Diag}(a)^2

Equation (21), section 6.1: the form whose dual the paper's algorithm smooths. The builder treats the diagonal of the l1
penalty and the offset for ν < 1 as :doc:`v_space` does.

**Equivalences.** It is equivalent to :doc:`v_space` if c = 0: if the latter has the value p, the value here is
:math:`-\sqrt{1 - p}`, by optimal scaling of V.

**If c > 0 it is another problem.** The penalty is then balanced against g, not against :math:`g^2`. There is an exact relation:
a solution V with weights c' also solves, up to its scale, Eq. (15) with the weights

.. math:: c_i = c'_i / \sqrt{\theta}, \qquad \theta = \tfrac12 g(V) - \sum_{ij} c'_i c'_j |V_{ij}|, \qquad
   g(V) = \tfrac1n \sum_i \sqrt{x_i^\top V x_i} .

Since g is homogeneous of degree 1/2 and the other two terms of degree 1, θ is the multiplier of :math:`\mathrm{tr}\, AV = 1`, and
the optimality conditions are the same up to this factor. `fista` uses this relation: it corrects c during the iteration, so that
it finally solves Eq. (15).

**Use it** to follow the paper. **Cost:** as `v_space`.
"""

import numpy as np

import diffrac_cvx as dc

X = dc.datasets.make_planted(80, 5, sparsity=2, noise=0.2, rng=0).X
print("  nu   normalised   -sqrt(1 - p)")
for nu in (0.4, 0.7, 1.0):
    p = dc.solve(dc.v_space(X, nu), "CLARABEL").value
    value = dc.solve(dc.v_space_normalized(X, nu), "CLARABEL").value
    print(f" {nu:.1f}    {value:.6f}      {-np.sqrt(1 - p):.6f}")
    assert abs(value + np.sqrt(1 - p)) < 1e-5

# %%
# With an l1 penalty the formula fails, but the relation holds. Here are both for the same weight:

given = 0.2  # c'
normalized = dc.solve(dc.v_space_normalized(X, 1.0, dc.Penalty(c=given)), "CLARABEL")
V = normalized.V
l1 = given**2 * np.abs(V).sum()
g = np.mean(np.sqrt(np.einsum("ij,jk,ik->i", X, V, X)))
theta = g / 2 - l1
print(f"theta = {theta:.4f}")

same_c = dc.solve(dc.v_space(X, 1.0, dc.Penalty(c=given)), "CLARABEL").value
related = dc.solve(dc.v_space(X, 1.0, dc.Penalty(c=given / np.sqrt(theta))), "CLARABEL")
by_formula = -np.sqrt(1 - same_c)
print(f"with the same c: -sqrt(1 - p) = {by_formula:.4f}, Eq. (21) {normalized.value:.4f}")

by_relation = 1 - g**2 / (1 + l1 / theta)  # Eq. (15) at the best multiple of V
cosine = np.sum(V * related.V) / np.linalg.norm(V) / np.linalg.norm(related.V)
print(
    f"with c' / sqrt(theta): Eq. (15) {related.value:.6f}, at V of Eq. (21) {by_relation:.6f};",
    end=" ",
)
print(f"cosine of the two V {cosine:.6f}")
assert abs(-np.sqrt(1 - same_c) - normalized.value) > 1e-3
assert abs(related.value - by_relation) < 1e-5
