r"""
Certificates
============

Solvers may stop early, lose digits, or solve a slightly different problem. Every bound on an optimum that this package reports is
therefore certified afterwards from the returned point, by weak duality: an upper bound is the objective at a feasible point, a
lower bound is the dual value at a feasible point. Three functions do this for points and labels from any source.

.. list-table::
   :header-rows: 1
   :widths: auto

   * - function
     - input
     - bounds the optimum of
     - cost
   * - `certify_v`
     - any d × d matrix V, dense or sparse, or a `Result`
     - Eq. (12), (14), (15)
     - :math:`O(n d^2 + d^3)`; with an l1 penalty, up to some thousand eigenvalue problems of size d; if V has blocks, of the
       sizes of the blocks
   * - `certify_y`
     - any Y, or a factor F with r columns
     - Eq. (7), (8), (16)
     - :math:`O(n d (d + r))`, some tens of times; with Y instead of F, :math:`O(n^3)` once
   * - `certify_labels`
     - labels, and a lower bound
     - Eq. (9), the NP-hard problem
     - one (nonnegative) least squares with d (2d) unknowns

Directions: certify_v
---------------------
**Upper bound.** V is projected onto the positive semidefinite matrices and optimally scaled: its objective is :math:`1 - g^2/T`
with
:math:`g = \tfrac1n \sum_i \sqrt{q_i}`, :math:`q_i = x_i^\top V x_i`, :math:`T = \mathrm{tr}\, V A + \sum_{ij} c_i c_j |V_{ij}|`
and :math:`A = \tfrac1n X^\top X + \mathrm{Diag}(a)^2`.

**Lower bound.** For any u > 0 and any C in the box :math:`|C_{ij}| \le c_i c_j`,

.. math:: 2 \sqrt{q_i} \le u_i q_i + 1/u_i, \qquad \sum_{ij} c_i c_j |V_{ij}| \ge \mathrm{tr}\, C V,

so that the objective of every V is at least
:math:`1 - \mathrm{mean}(1/u) + \mathrm{tr}\, V (A + C - \tfrac1n X^\top \mathrm{Diag}(u) X)`. If the matrix in parentheses is
positive semidefinite, this is at least :math:`1 - \mathrm{mean}(1/u)`. Scaling u achieves this:

.. math:: \text{optimum} \ge 1 - t\, \mathrm{mean}(1/u), \qquad
   t = \lambda_{\max}\big(\tfrac1n X^\top \mathrm{Diag}(u) X,\ A + C\big).

u is derived from V as :math:`1/\sqrt{q_i}`. C is :math:`c_i c_j\, \mathrm{sign} V_{ij}` where V is not zero, and fitted
elsewhere. A bad choice gives a wide bracket, never an invalid one.
"""

import numpy as np

import diffrac_cvx as dc

X = dc.datasets.make_planted(100, 5, noise=0.2, rng=0).X
penalty = dc.Penalty(lam=0.01)
result = dc.low_rank(X, 0.8, penalty, tol=1e-6)
rng = np.random.default_rng(0)
points = {
    "a solution": result.V,
    "the same, with errors": result.V + 0.01 * rng.standard_normal(result.V.shape),
    "the identity": np.eye(5),
    "a random matrix": rng.standard_normal((5, 5)),
}
for name, V in points.items():
    bracket = dc.certify_v(X, V, 0.8, penalty)
    print(f"{name:22} {bracket}  gap {dc.format_upper(bracket.gap)}")
    assert bracket.lower <= result.upper
    assert result.lower <= bracket.upper

# %%
# A solver's own bracket, ``result.lower`` and ``result.upper``, also uses its multipliers u and C, and is narrower if V does not
# determine them. From a `Result`, `certify_v` uses the factor of V and the multiplier C, but not its bracket.
#
# If V is zero between blocks of features, t comes from the blocks, and C between them from the pairs of features, so that
# no d × d matrix is formed: :doc:`components` has this bound and its proof.
#
# An inaccurate solver
# ~~~~~~~~~~~~~~~~~~~~
# SCS with a loose tolerance reports "optimal" and a value whose second digit is wrong; here the value is not even in the bracket
# certified from SCS's own point. That bracket contains the optimum, and its width measures the accuracy of the point.

relaxation = dc.v_space(X, 0.8, penalty)
loose = dc.solve(relaxation, "SCS", eps_abs=3e-2, eps_rel=3e-2)
print(f"SCS reports {relaxation.problem.value:.6f} ({relaxation.problem.status})")
print(f"certified   {loose.bracket}: {loose.status}")
assert loose.lower <= result.lower <= result.upper <= loose.upper
assert relaxation.problem.value > loose.upper

# %%
# A problem that you solve yourself
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# ``relaxation.problem`` is a plain CVXPY problem in scaled columns: the value of its variable ``V_scaled`` is not V.
# ``relaxation.V`` and ``relaxation.Y`` return the solution in the units of X.

relaxation.problem.solve(solver="CLARABEL")
own = dc.certify_v(X, relaxation.V, 0.8, penalty)
print(f"CVXPY reports {relaxation.problem.value:.6f}, certified {own}")
assert own.lower <= result.upper
assert result.lower <= own.upper <= result.upper + 1e-4

# %%
# Labels' matrices: certify_y
# ---------------------------
# With :math:`K = \tfrac1n (\Pi_n - H_a) + \tfrac{\nu}{n^2} 1 1^\top`, Eq. (8) minimises tr KY over :math:`Y \succeq 0`,
# :math:`\mathrm{diag}(Y) = 1`.
#
# **Upper bound.** The rows of F are scaled to norm one. For Eq. (7) they are then moved, or mixed with another feasible point,
# until the imbalance is α.
#
# **Lower bound.** For any :math:`\mu \in \mathbb{R}^n`, since tr Y = n,
#
# .. math:: \mathrm{tr}\, K Y = 1^\top \mu + \mathrm{tr}\, (K - \mathrm{Diag}(\mu)) Y
#    \ \ge\ 1^\top \mu + n \min\big(0, \lambda_{\min}(K - \mathrm{Diag}(\mu))\big).
#
# The choice is :math:`\mu_i = (K Y)_{ii}`, which is optimal if Y is. K is diagonal plus low rank. Counting the signs of the
# eigenvalues of a matrix of size d + 1 (Sylvester's law of inertia) decides whether the smallest eigenvalue exceeds a given
# number, so no n × n matrix is formed. If α is given, the multiplier of the constraint is found by a scalar search.

plain = dc.low_rank(X, 0.8, tol=1e-7)
for name, bracket in {
    "Eq. (8), from F": dc.certify_y(X, plain.F, nu=0.8),
    "Eq. (8), from Y": dc.certify_y(X, plain.F @ plain.F.T, nu=0.8),
    "Eq. (14), from V": dc.Bracket(plain.lower, plain.upper),
}.items():
    print(f"{name:17} {bracket}")
alpha = np.sum(plain.F.mean(axis=0) ** 2)
bracket = dc.certify_y(X, plain.F, alpha=alpha)
print(f"Eq. (7) at alpha = {alpha:.1e}: {bracket}")

# %%
# Labels: certify_labels
# ----------------------
# The lower bound of a relaxation is a lower bound on Eq. (9) for all :math:`2^n` labellings. The objective at the labels, with
# the best v, minus this bound is a certified optimality gap for the NP-hard problem itself. If the gap is below 1e-6, the labels
# are optimal for all practical purposes.

print("noise   objective       gap")
gaps = {}
for noise in (0.0, 0.1, 0.3, 0.6):
    data = dc.datasets.make_planted(100, 5, noise=noise, rng=0).X
    result = dc.low_rank(data, tol=1e-8)
    proof = dc.certify_labels(data, dc.rounding.kmeans_centered(result.F), result)
    gaps[noise] = proof.gap
    print(
        f"{noise:5.1f}   {dc.format_upper(proof.objective):>9}   {dc.format_upper(proof.gap)}"
    )
assert gaps[0.0] < 1e-6

# %%
# The gap is the sum of the suboptimality of the labels and the looseness of the relaxation, which cannot be separated. A
# large gap does not imply that the labels are bad. With few points all labellings can be enumerated:

from itertools import product

data = dc.datasets.make_planted(12, 2, noise=0.6, rng=3).X
result = dc.low_rank(data, tol=1e-8)
labels = dc.rounding.kmeans_centered(result.F)
proof = dc.certify_labels(data, labels, result)
best = min(
    dc.certify_labels(data, np.array(y), 0.0).objective for y in product([-1.0, 1.0], repeat=12)
)
print(f"relaxation            {dc.format_lower(proof.lower)}")
print(f"best of all labellings {dc.format_upper(best)}")
print(f"rounded labels         {dc.format_upper(proof.objective)}")
assert proof.lower <= best <= proof.objective

# %%
# A narrow bracket
# ----------------
# A narrow bracket on the value does not imply that two solutions are close. The objective is flat near the optimum: points whose
# values differ by 1e-7 can differ by 1e-3 in the entries of Y. :doc:`/proofs` lists what else is not proved.
