r"""
Direction alone: v_space
========================

.. math::
   \min_{V \succeq 0}\ 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \tfrac1n \mathrm{tr}\, X^\top X V + \Gamma(V)

Equations (12), (15) and (20), sections 2.4 and 3; for ν < 1, Eq. (14).

**Where it comes from.** It is :doc:`lifted` minimised over Y and P. At V = vv' and ν = 1 the objective is
:math:`\tfrac1n \sum_i (|x_i^\top v| - 1)^2 + \Gamma(v v^\top)`: each projection should be 1 or −1, and Y determines which. The
optimal Y has the entries :math:`x_i^\top V x_j / \sqrt{x_i^\top V x_i\; x_j^\top V x_j}`, so that
:math:`F = \mathrm{Diag}(x_i^\top V x_i)^{-1/2}\, X V^{1/2}` needs no n × n matrix (appendix C.2).

**ν < 1.** The direction gets a penalised offset b:

.. math:: \min_b\ \tfrac1n \|y - X v - b 1\|_2^2 + \kappa b^2
   = \tfrac1n \|\Pi_n y - X v\|_2^2 + \tfrac{\kappa}{1 + \kappa} \big(\tfrac1n 1^\top y\big)^2 .

So the data get a column of ones with the ridge weight :math:`\sqrt{\kappa} = \sqrt{\nu / (1 - \nu)}`. The paper prints
:math:`\nu/(1 - \nu)` for it; the example below shows which of the two agrees with Eq. (8).

**Constraints.** If some labels are linked, :math:`y_i = s_{ij} y_j`, connected points form chunklets, each with one free sign and
with relative signs :math:`s_i`. In the relaxation, the roots have the rows :math:`r_g = \sum_{i \in g} s_i x_i`, and the
quadratic part is unchanged; constraints never lower the value (Theorem 6 of :doc:`/note`). In :doc:`penalized_nu` they are
:math:`Y_{ij} = s_{ij}`; :doc:`/auto/guides/known_points` solves both. The parameter is ``constraints``, here and in ``low_rank``.

**Scale.** With g(V) the mean of the roots and T(V) the quadratic part plus the penalty, the best multiple of V has the objective
:math:`1 - g^2/T`, and there :math:`g = T`. All results are scaled in this way.

**Equivalences.** It equals :doc:`lifted` for every ν and penalty, and :doc:`penalized_nu` without an l1 penalty.

**Use it** as the reference implementation: its cone does not grow with n. ``low_rank`` and ``fista`` solve the same problem.

**Cost.** A cone of side d + 1 and n square roots, each a row of :math:`(d+1)(d+2)/2` coefficients.
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.plotting import PathDisplay

X = dc.datasets.make_planted(200, 12, sparsity=2, noise=0.2, rng=0).X
penalty = dc.Penalty.l1(0.02)
oracle = dc.solve(dc.v_space(X, penalty=penalty), "CLARABEL")
fast = dc.low_rank(X, penalty=penalty, tol=1e-7)
print(f"CLARABEL {oracle.value:.7f}, low_rank in {fast.bracket}")
assert fast.lower - 1e-7 <= oracle.value <= fast.upper + 1e-7

# %%
# This example checks the weight of the offset. The augmented problem is Eq. (15) at nu = 1 with the uncentred data [X, 1]; here
# it is written out in CVXPY.

import cvxpy as cp


def augmented(X, offset_weight):
    """Solve Eq. (14) with a weight of the offset."""
    n, d = X.shape
    Z = np.column_stack([X, np.ones(n)])
    V = cp.Variable((d + 1, d + 1), PSD=True)
    roots = cp.sqrt(cp.sum(cp.multiply(Z @ V, Z), axis=1))
    problem = cp.Problem(
        cp.Minimize(
            1 - 2 * cp.sum(roots) / n + cp.trace(Z.T @ Z / n @ V) + offset_weight**2 * V[d, d]
        )
    )
    return problem.solve(solver="CLARABEL")


small, nu = dc.datasets.make_planted(40, 3, imbalance=0.3, noise=0.3, rng=2).X, 0.25
small = small - small.mean(axis=0)
values = {
    "penalized_nu": dc.solve(dc.penalized_nu(small, nu), "SCS", tol=1e-6).value,
    "v_space": dc.solve(dc.v_space(small, nu), "CLARABEL").value,
    "offset with the root of nu / (1 - nu)": augmented(small, np.sqrt(nu / (1 - nu))),
    "offset with nu / (1 - nu), as printed": augmented(small, nu / (1 - nu)),
}
for name, value in values.items():
    print(f"{name:38} {value:.6f}")
right = list(values.values())[:3]
assert np.ptp(right) < 1e-5
assert abs(values["offset with nu / (1 - nu), as printed"] - right[0]) > 1e-2

# %%
# A path
# ------
# The figure shows the coefficients of the direction against lambda, and the value with its certified bounds. The penalty removes
# one of the two features of the direction long before the other.

PathDisplay(dc.paths.lambda_path(X, np.logspace(-3, 0.5, 25))).plot()
plt.show()
