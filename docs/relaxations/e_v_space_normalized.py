r"""
Direction at unit size: v_space_normalized
==========================================

.. math::
   \min_{V \succeq 0,\ \mathrm{tr}\, A V = 1}\ - \tfrac1n \sum_i \sqrt{x_i^\top V x_i} + \sum_{ij} c_i c_j |V_{ij}|,
   \qquad A = \tfrac1n X^\top X + \mathrm{Diag}(a)^2

Equation (21), the form that the paper's algorithm smooths. **Equal to** `v_space` when c = 0: its value is
:math:`-\sqrt{1 - p}`, p that of `v_space`. With an l1 part it is another problem, which the paper calls very similar;
**Use it** to follow the paper; `fista` rescales c as it goes, so that what it solves is (15).
"""

import numpy as np

import diffrac_cvx as dc

X = dc.datasets.make_planted(80, 5, noise=0.2, rng=0).X
p = dc.solve(dc.v_space(X, 0.7), "CLARABEL").value
print(dc.solve(dc.v_space_normalized(X, 0.7), "CLARABEL").value, -np.sqrt(1 - p))

# %%
# With c > 0 the two are not tied:

penalty = dc.Penalty(c=0.5)
p = dc.solve(dc.v_space(X, 0.7, penalty), "CLARABEL").value
print(dc.solve(dc.v_space_normalized(X, 0.7, penalty), "CLARABEL").value, -np.sqrt(1 - p))
