r"""
Components of the sparse problem
================================

With a sparse penalty most features do not act together. This page says which cannot, and proves it: the optimum of Eq. (15)
splits into groups of features, and one solution shows them.
"""

# %%
# The statement
# -------------
# Notation of Eq. (15): :math:`q_i = x_i^\top V x_i`, :math:`A = X^\top X / n + \mathrm{Diag}(a)^2`. For an optimal V put
# :math:`u_i = q_i^{-1/2}`, :math:`M = X^\top \mathrm{Diag}(u) X / n` and :math:`G = M - A`. The function
# :math:`-\tfrac2n \sum_i \sqrt{q_i}` is strictly convex in q, so q, u and G are the same for all optimal V. By duality V is
# optimal if and only if there is a symmetric C with :math:`|C_{jk}| \le c_j c_k`, :math:`C_{jj} = c_j^2`, such that
#
# .. math:: S = A + C - M \succeq 0, \qquad S V = 0, \qquad \sum_{jk} C_{jk} V_{jk} = \sum_{jk} c_j c_k |V_{jk}| .
#
# *Join features j and k where* :math:`|G_{jk}| \ge c_j c_k`. *Every optimal V is block diagonal along the connected components of
# this graph.* Conversely, *let V be optimal among the matrices that are block diagonal along some partition; if*
# :math:`|G_{jk}| \le c_j c_k` *between its blocks, V is optimal among all matrices.*
#
# **Proof of the converse.** V has multipliers C inside the blocks. Between them put :math:`C_{jk} = G_{jk}`, which is inside the
# box. Then S is block diagonal, its blocks are those of the restricted problem, and S, C satisfy the conditions above.
#
# **Proof of the first part.** Take any optimal S and C. Replace C between components by G, which lies strictly inside the box
# there. The new S is the block diagonal part of the old one, so it is still positive semidefinite, and the dual value,
# which depends on u alone, is unchanged: the new C is optimal too. For every optimal V the last condition then holds with the
# new C, and where :math:`|C_{jk}| < c_j c_k` it says :math:`V_{jk} = 0`.
#
# Equality has to join: where a block of V has full rank, S vanishes on it and :math:`|G|` equals the box.
#
# **The offset, and features without an l1 weight.** For ν < 1 the data have one more column, the offset, with c = 0. It touches
# every feature. Let Z be the coordinates with c = 0, where C is 0: S is positive semidefinite if and only if :math:`S_{ZZ}`
# is and its Schur complement is, so the statements hold for the others with
#
# .. math:: G + G_{\cdot Z}\, S_{ZZ}^{-1}\, G_{Z \cdot} \quad \text{in place of } G .

# %%
# From a solution that is not exact
# ---------------------------------
# A solver returns a V with a proved gap δ, and its G is not the optimal one, here :math:`G^*`. With :math:`r_i = \sqrt{q_i}` and
# the optimal multipliers, duality gives
#
# .. math:: \delta \ge \frac1n \sum_i \big(u_i^* q_i - 2 \sqrt{q_i} + 1 / u_i^*\big) = \frac1n \sum_i \frac{(r_i - r_i^*)^2}{r_i^*},
#
# since :math:`\mathrm{tr}\, V A + \sum c_j c_k |V_{jk}| \ge \mathrm{tr}\, V (S^* + M^*) \ge \tfrac1n \sum_i u_i^* q_i`. By Cauchy and
# Schwarz,
#
# .. math:: |G_{jk} - G^*_{jk}| = \Big|\frac1n \sum_i x_{ij} x_{ik} \frac{r_i^* - r_i}{r_i r_i^*}\Big|
#    \le \Big(\delta \cdot \frac1n \sum_i \frac{x_{ij}^2 x_{ik}^2}{r_i^2\, r_i^*}\Big)^{1/2},
#
# and the first inequality bounds each :math:`r_i^*` from below. `find_components` joins every pair that this leaves open, so what
# it separates is proved to be separated in every optimal V, whatever the accuracy of the solution; a smaller gap separates
# more. This is the idea of gap-safe screening.

# %%
# An example
# ----------
# Two features carry the labels together, ten are noise. `find_components` draws the graph from a solution.

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc

planted = dc.datasets.make_planted(200, 12, sparsity=2, noise=0.2, rng=0)
X = planted.X

results, components = {}, {}
for lam in (1e-3, 1e-2, 3e-2, 1e-1):
    penalty = dc.Penalty.l1(lam)
    results[lam] = dc.low_rank(X, penalty=penalty, tol=1e-7)
    components[lam] = dc.find_components(X, results[lam], penalty=penalty)
    print(f"lambda = {lam:<6g} components {components[lam]}")

# %%
# The larger λ is, the fewer pairs are joined. From some λ on every feature is alone: V is diagonal, and the problem is one in
# d numbers. Here is V at two of them, with the features in the order of their components.

figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for ax, lam in zip(axes, (1e-3, 3e-2), strict=True):
    order = np.argsort(components[lam], kind="stable")
    V = results[lam].V[np.ix_(order, order)]
    image = ax.imshow(np.abs(V) / np.abs(V).max(), cmap="Greys", norm="log", vmin=1e-4, vmax=1)
    ax.set_title(rf"$\lambda = {lam:g}$, components: {components[lam].max() + 1}", loc="left")
    ax.set(xlabel="feature, by component", xticks=range(0, 12, 2), yticks=range(0, 12, 2))
figure.colorbar(image, ax=axes, label=r"$|V_{jk}|$ over its largest entry")

# %%
# What is optimal block by block is optimal: the value of the problem on the blocks alone, solved by an interior point with
# the entries between components fixed at 0, is the value of the whole problem. ``tests/test_components.py`` does this on 200
# random instances, with equal and different weights, some of them 0, a ridge, and ν of 1 and 1/2.
#
# With ``rtol`` the graph is that of the solution itself, with a pair joined where :math:`|G_{jk}|` is within ``rtol`` of the box:
# nothing is proved then, and more is separated.

loose = dc.fista(X, penalty=dc.Penalty.l1(3e-2), tol=1e-2)
for rtol in (None, 1e-2):
    print(f"gap {loose.gap:.0e}, rtol {rtol}: {dc.find_components(X, loose, penalty=dc.Penalty.l1(3e-2), rtol=rtol)}")
