r"""
Classes instead of labels: multiclass
=====================================

.. math::
   \min_{\mathrm{diag}(Y) = 1,\ Y \succeq 11^\top / k}
   \tfrac1n \mathrm{tr}\, Y (\Pi_n - H) + \tfrac{\nu}{n^2} 1^\top Y 1,
   \qquad H = X (X^\top X)^{+} X^\top

Section 4: the set of Bach and Harchaoui (DIFFRAC), here with the penalty on the imbalance.

**Where it comes from.** Let the n × k matrix y contain the indicators of a partition into k classes. :math:`Y = y y^\top` is 1
for points of the same class and 0 otherwise, and :math:`k Y - 1 1^\top \succeq 0`. The paper prints this inequality in the
reverse sense.

**Equivalences.** It is equivalent to :doc:`penalized_nu`. Write :math:`Y = \tfrac1k 1 1^\top + (1 - \tfrac1k) S`. Then Y is
feasible if and only if
:math:`S \succeq 0` and :math:`\mathrm{diag}(S) = 1`. The objective is linear, the residual of :math:`1 1^\top` is 0 and its
imbalance 1, so the value is :math:`\nu/k + (1 - 1/k)` times that of Eq. (8), and the solutions correspond. The relaxation
does not depend on the number of classes. Only the rounding, k-means on the rows of F, depends on it.

**Use it** to compare labels with classes. **Cost:** an n × n variable under a general semidefinite constraint, which is more
expensive than the equivalent `penalized_nu`.
"""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import diffrac_cvx as dc

rng = np.random.default_rng(0)
classes = rng.integers(3, size=60)
X = np.eye(3)[classes][:, :2] + 0.05 * rng.standard_normal((60, 2))

nu = 0.8
p = dc.solve(dc.penalized_nu(X, nu), "SCS", tol=1e-6).value
print(" k   multiclass   nu/k + (1 - 1/k) p")
for k in (2, 3, 5):
    value = dc.solve(dc.multiclass(X, k, nu), "SCS", tol=1e-6).value
    print(f" {k}     {value:.6f}             {nu / k + (1 - 1 / k) * p:.6f}")
    assert abs(value - nu / k - (1 - 1 / k) * p) < 1e-5

# %%
# Three classes: the solution does not depend on k, the rounding does.

F = dc.low_rank(X, nu).F
found = KMeans(3, n_init=10, random_state=0).fit_predict(F)
print(f"adjusted Rand index of the classes {adjusted_rand_score(classes, found):.2f}")
