r"""
Block structure of the sparse problem
=====================================

With a sparse penalty most features do not interact. This page proves which pairs cannot: the optimum of Eq. (15) splits into
groups of features, which can be found from one solution, and which ``low_rank`` solves block by block.
"""

# %%
# The theorem
# -----------
# Notation of Eq. (15): :math:`q_i = x_i^\top V x_i`, :math:`A = X^\top X / n + \mathrm{Diag}(a)^2`, weights :math:`c_j > 0` that
# may differ; features with :math:`c_j = 0` are treated below. For an optimal V put :math:`u_i = q_i^{-1/2}`,
# :math:`M = X^\top \mathrm{Diag}(u) X / n` and :math:`G = M - A`. If :math:`x_i \ne 0`, then :math:`q_i > 0` at every optimum:
# adding a small multiple ε of the identity to V costs of the order of ε and gains of the order of :math:`\sqrt\varepsilon`, also
# within any groups. Rows of zeros have no effect, and their u is set to 0. The function :math:`-\tfrac2n \sum_i \sqrt{q_i}` is
# strictly convex in q, so q, u and G are the same for all optimal V. By duality V is optimal if and only if there is a symmetric
# C with
# :math:`|C_{jk}| \le c_j c_k`, :math:`C_{jj} = c_j^2`, such that
#
# .. math:: S = A + C - M \succeq 0, \qquad S V = 0, \qquad \sum_{jk} C_{jk} V_{jk} = \sum_{jk} c_j c_k |V_{jk}| .
#
# **Theorem 1, sufficient.** *Let V be optimal among the matrices that are zero between the groups of a partition of the features. If*
# :math:`|G_{jk}| \le c_j c_k` *for all j, k in different groups, V is optimal among all matrices.*
#
# *Proof.* V has multipliers C inside the groups. Between them set :math:`C_{jk} = G_{jk}`, which is inside the box. Then S is
# zero between the groups, its blocks are those of the restricted problem, and S, C satisfy the conditions above.
#
# **Theorem 1, necessary.** *Join features j and k if* :math:`|G_{jk}| \ge c_j c_k`. *Every optimal V is zero between the
# connected components of this graph.*
#
# *Proof.* Take any optimal S and C. Replace C between components by G, which lies strictly inside the box there. The new S is the
# block diagonal part of the old one, so it is still positive semidefinite, and the dual value, which depends on u alone, is
# unchanged: the new C is optimal too. Any dual optimum and any primal optimum satisfy the conditions above. So the last condition
# holds for every optimal V with the new C, and if :math:`|C_{jk}| < c_j c_k` it implies :math:`V_{jk} = 0`.
#
# Equality must join: if a block of V has full rank, S vanishes on it and :math:`|G|` equals the box. The ridge a is on the
# diagonal of A and does not affect the proofs.
#
# **The offset, and features without an l1 weight.** For ν < 1 the data have one more column, the offset, with c = 0 and
# :math:`a^2 = \nu / (1 - \nu)`. It interacts with every feature. Let Z be the coordinates with c = 0, where C is 0, and P the
# others. The parts :math:`S_{ZZ}` and :math:`S_{ZP}` of S depend on u alone. S is positive semidefinite if and only if
# :math:`S_{ZZ}` is, the columns of :math:`S_{ZP}` are in its range, and the Schur complement
#
# .. math:: A_{PP} + C - M_{PP} - S_{PZ}\, S_{ZZ}^{+}\, S_{ZP} \succeq 0 .
#
# *If* :math:`S_{ZZ} \succ 0`, *both statements hold for the features of P with*
#
# .. math:: G = M_{PP} - A_{PP} + S_{PZ}\, S_{ZZ}^{-1}\, S_{ZP} \quad \text{in place of } M - A ,
#
# *where a matrix is zero between groups if it is so on P:* in the proofs, replace S by the Schur complement. A matrix
# :math:`V \succeq 0` that is zero between the groups of P is a sum of such matrices, one on each group with Z, so that tr SV
# involves only parts of S inside the groups with Z, which are those of the restricted problem. With the offset alone, and
# :math:`m_j = \tfrac1n \sum_i u_i x_{ij}`,
#
# .. math:: G_{jk} = (M - A)_{jk} + \frac{m_j m_k}{\sigma}, \qquad \sigma = 1 + \frac{\nu}{1 - \nu} - \frac1n \sum_i u_i .
#
# If :math:`S_{ZZ}` is singular, V may have a part on Z alone, and nothing is claimed: `find_components` puts all features into
# one component whenever it cannot prove :math:`S_{ZZ} \succ 0` at the optimum.
#
# **Feature groups, and sign constraints.** With weights :math:`w_g` of groups, whose penalty is
# :math:`\sum_{gh} w_g w_h \|V_{gh}\|_*`, the conditions on C are :math:`\|C_{gh}\|_2 \le w_g w_h` for the spectral norms of the
# blocks, and :math:`C_{gg} = w_g^2 I`. *Both statements hold with groups instead of features, if* :math:`\|G_{gh}\|_2` *is
# compared with* :math:`w_g w_h`: in the proofs the last condition means that :math:`C_{gh}` attains
# :math:`\max_{\|C_{gh}\|_2 \le w_g w_h} \mathrm{tr}\, C_{gh}^\top V_{gh}`, so that :math:`V_{gh} = 0` if the norm of
# :math:`C_{gh}` is smaller. If the coefficients of some columns are constrained to be nonnegative, any nonnegative matrix on the
# pairs of these columns may be subtracted from C. Then :math:`\|(G_{gh})_+\|_2` replaces :math:`\|G_{gh}\|_2`, where negative
# entries of these pairs are replaced by 0: :math:`C_{gh} = G_{gh}` is a matrix of norm below :math:`w_g w_h` minus a nonnegative
# one. A certified gap bounds the error of each entry of G, and so the Frobenius norm of the error of a block, which is at least
# its spectral norm.
#
# This is the rule by which the graphical lasso splits (Witten, Friedman, Simon, *J. Comput. Graph. Stat.* 20, 2011; Mazumder,
# Hastie, *JMLR* 13, 2012). There the graph depends on the data only; here it depends on u, which has to be found.

# %%
# From an inexact solution
# ---------------------------------
# A solver returns a V with a certified gap δ, and its G differs from the optimal one, :math:`G^*`. With :math:`r_i = \sqrt{q_i}`
# and the optimal multipliers, duality gives
#
# .. math:: \delta \ge \frac1n \sum_i \big(u_i^* q_i - 2 \sqrt{q_i} + 1 / u_i^*\big) = \frac1n \sum_i \frac{(r_i - r_i^*)^2}{r_i^*},
#
# since :math:`\mathrm{tr}\, V A + \sum c_j c_k |V_{jk}| \ge \mathrm{tr}\, V (S^* + M^*) \ge \tfrac1n \sum_i u_i^* q_i`. By Cauchy and
# Schwarz,
#
# .. math:: |G_{jk} - G^*_{jk}| = \Big|\frac1n \sum_i x_{ij} x_{ik} \frac{r_i^* - r_i}{r_i r_i^*}\Big|
#    \le \Big(\delta \cdot \frac1n \sum_i \frac{x_{ij}^2 x_{ik}^2}{r_i^2\, r_i^*}\Big)^{1/2},
#
# and the first inequality bounds each :math:`r_i^*` from below. *With coordinates Z*, let :math:`s_j` be the column
# :math:`S_{Zj}` at V, σ the smallest eigenvalue of :math:`S_{ZZ}`, e the sum of the bounds above over the entries of
# :math:`S_{ZZ}`, and :math:`h_j` the root of the sum of their squares over the entries of :math:`s_j`. *If* :math:`\sigma > e`,
#
# .. math:: \big|s_j^\top S_{ZZ}^{-1} s_k - s_j^{*\top} S_{ZZ}^{*-1} s_k^*\big|
#    \le |s_j| |s_k| \frac{e}{\sigma (\sigma - e)} + \frac{(|s_j| + h_j)(|s_k| + h_k) - |s_j| |s_k|}{\sigma - e} ,
#
# which is added to the bound. *Proof.* :math:`|S_{ZZ} - S_{ZZ}^*| \le e`, so that the smallest eigenvalue of :math:`S_{ZZ}^*` is
# at least :math:`\sigma - e > 0`, and :math:`S_{ZZ}^{-1} - S_{ZZ}^{*-1} = S_{ZZ}^{-1} (S_{ZZ}^* - S_{ZZ}) S_{ZZ}^{*-1}`: this
# gives the first term. The second term bounds :math:`s_j^{*\top} S_{ZZ}^{*-1} s_k^* - s_j^\top S_{ZZ}^{*-1} s_k`, with
# :math:`|s_j^* - s_j| \le h_j`. ∎
#
# `find_components` joins every undecided pair. The components that it separates are therefore proved to be separate in every
# optimal V, whatever the accuracy of the solution; a smaller gap separates more of them. This is the idea of gap-safe screening
# (Ndiaye, Fercoq, Gramfort, Salmon, *JMLR* 18, 2017).

# %%
# A bound at any point
# --------------------
# Before convergence the sufficient condition never holds exactly. The bound that the solver uses is valid at any V that is zero
# between the groups of a partition. Take any u > 0, usually :math:`q^{-1/2}`, any C in its box inside the groups, and t > 0 such
# that :math:`t (A + C) - M` is positive semidefinite on each group with Z and positive definite on Z. With K a root of the
# contribution of Z, :math:`K^\top K = S_{PZ} S_{ZZ}^{-1} S_{ZP}` for :math:`S = t (A + C) - M`, set for j and k in different
# groups
#
# .. math:: G_{jk} = (M - t A + K^\top K)_{jk}, \qquad C_{jk} = \mathrm{clip}(G_{jk} / t,\ \pm c_j c_k) .
#
# *Let T be the Schur complement* :math:`t (A + C)_{PP} - M_{PP} - K^\top K`. *Between the groups its entries are*
# :math:`-\mathrm{sign}(G_{jk}) \max(|G_{jk}| - t c_j c_k, 0)`. *Join the groups along the pairs with a nonzero entry. If T is
# positive semidefinite on each component of groups, then*
#
# .. math:: \text{optimum} \ge 1 - t \cdot \tfrac1n \sum_i 1 / u_i .
#
# *Proof.* The entry of T is :math:`t C_{jk} - G_{jk}`, as stated. So T is zero between the components, and it is positive
# semidefinite if it is so on each of them; then so is S, because :math:`S_{ZZ} \succ 0`. C is in its box everywhere, and
# :math:`M \preceq t (A + C)` gives the bound as for any other V (:doc:`certificates`).
#
# The pairs join groups for the bound only: V is unchanged. The smallest t to try is the largest generalised eigenvalue of (M, A +
# C) over the groups with Z; for a single feature without Z this is the ratio of two numbers. A component of one group needs no
# further check at this t. The others are checked by a Cholesky factorisation. If it fails, a step of Newton's method along the
# direction w of smallest :math:`w^\top T w` determines a larger t.
#
# All pairs are checked in one pass over the columns of X, with :math:`n d^2 / 2` multiplications: 512 columns at a time, with all
# later columns. No d × d matrix is stored.

# %%
# How low_rank uses it
# --------------------
# 1. V is diagonal at first: this is a convex problem in d weights, at O(nd) per step of L-BFGS.
# 2. When the gap of the restricted problem is below 0.02, or ``tol`` if that is larger, all pairs are checked, and the bound
#    above is tried for at most four values of t. If the certified gap is at most ``tol``, the problem is solved.
# 3. Otherwise the most violated pairs join groups, in the components where the bound failed. Each group gets a factor
#    of full rank and its own multipliers, and the iteration continues from the same V.
# 4. If most features are in one group, or are expected to be, or if the gap stalls with at most 1000 features, the solver
#    continues with V as one block (:doc:`solvers`).
#
# With more than eight coordinates with c = 0, or fewer than four with c > 0, V is one block from the start.

# %%
# An example
# ----------
# Two features together determine the labels; ten are noise. `find_components` computes the graph from a solution, and
# ``result.components`` describes the V that the solver returns.

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
    print(f"    low_rank: {results[lam].components}")

# %%
# The larger λ is, the fewer pairs are joined. Above some λ every feature is a component of its own: V is diagonal, and the
# problem has d unknowns. Here is V at two values of λ, with the features in the order of their components.

figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
for ax, lam in zip(axes, (1e-3, 3e-2), strict=True):
    order = np.argsort(components[lam], kind="stable")
    V = results[lam].V[np.ix_(order, order)]
    image = ax.imshow(np.abs(V) / np.abs(V).max(), cmap="Greys", norm="log", vmin=1e-4, vmax=1)
    ax.set_title(rf"$\lambda = {lam:g}$, components: {components[lam].max() + 1}", loc="left")
    ax.set(xlabel="feature, by component", xticks=range(0, 12, 2), yticks=range(0, 12, 2))
figure.colorbar(image, ax=axes, label=r"$|V_{jk}|$ over its largest entry")

# %%
# The record of a result
# ----------------------
# ``result.components`` is None if V, or more than half of its factor, has no zeros between features. Otherwise it has
#
# - ``found``: groups between which the returned V is zero, numbered by first feature; -1 for features with c = 0;
# - ``certified``: groups between which *every* optimal V is zero, by the certified gap. Two features that some optimal V joins
#   are never in different groups, but two features that no optimal V joins may be in the same group. It is None if
#   :math:`n d^2 > 10^9`; use `find_components` in this case.
#
# *V is diagonal, and every optimal V is proved to be* means both: V is diagonal, and the certified groups are single features.
# The proof accounts for rounding errors, with margins in the eigenvalues and factorisations, as for all bounds of this package
# (:doc:`certificates`).

for nu in (1.0, 0.5):
    result = dc.low_rank(X, nu, dc.Penalty.l1(3e-2), tol=1e-4)
    print(f"nu = {nu}, gap {dc.format_upper(result.gap)}: {result.components}")

# %%
# This is the bound at a point that is not optimal, the diagonal of V at a λ where two features belong together. The bracket is
# wider, and it contains the optimum. `certify_v` bounds the optimum from any matrix, which it certifies as one block.

solution = results[3e-2]
diagonal = dc.certify_v(X, np.diag(np.diag(solution.V)), penalty=dc.Penalty.l1(3e-2))
print(f"optimum in {solution.bracket}")
print(f"from the diagonal in {diagonal}")
assert diagonal.lower <= solution.upper
assert solution.lower <= diagonal.upper

# %%
# A V that is optimal block by block is optimal: ``tests/certificates/test_components.py`` solves random instances by an
# interior-point method, with the entries between components fixed at 0 and without.
