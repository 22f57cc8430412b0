r"""
Direction alone: v_space
========================

.. math::
   \min_{V \succeq 0}\ 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \tfrac1n \mathrm{tr}\, X^\top X V + \Gamma(V)

Equations (12), (15) and (20); for nu < 1 the data get a constant column with the ridge :math:`\sqrt{\nu/(1-\nu)}`
(Eq. 14; the paper prints its square). The optimal Y has the entries :math:`x_i^\top V x_j / \sqrt{x_i^\top V x_i\,
x_j^\top V x_j}`.

**Equal to** `lifted` for every nu and penalty, and to `penalized_nu` without l1 part. **Use it** as the oracle: its
cone has side d, whatever n. **Cost:** n terms of second order and a d × d cone; the fast solvers work on this form.
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.plotting import PathDisplay

planted = dc.datasets.make_planted(200, 12, sparsity=2, noise=0.2, rng=0)
penalty = dc.Penalty.l1(0.02)
oracle = dc.solve(dc.v_space(planted.X, penalty=penalty), "CLARABEL")
fast = dc.low_rank(planted.X, penalty=penalty, tol=1e-6)
print(f"CLARABEL {oracle.value:.7f}, low_rank in [{fast.lower:.7f}, {fast.upper:.7f}]")

# %%
# Coefficients of the direction as lambda decreases to the right:

PathDisplay.from_lambda(planted.X, np.logspace(-3, 0.5, 25)).plot()
plt.show()
