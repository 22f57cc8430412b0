r"""
Classes instead of labels: multiclass
=====================================

.. math::
   \min_{\mathrm{diag}(Y) = 1,\ Y \succeq 11^\top / k}
   \tfrac1n \mathrm{tr}\, Y (\Pi_n - X (X^\top X)^{+} X^\top) + \tfrac{\nu}{n^2} 1^\top Y 1

The relaxation of the partitions into k classes (section 4; the paper prints the last inequality in the reverse
sense). **Equal to** `penalized_nu`: with :math:`Y = 11^\top/k + (1 - 1/k) S` it is Eq. (8) in S, and the value is
:math:`\nu/k + (1 - 1/k)` times that one's. So k enters through the rounding only: k-means on the rows of F. **Use
it** to compare labels with classes. **Cost:** an n × n variable.
"""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import diffrac_cvx as dc

rng = np.random.default_rng(0)
classes = rng.integers(3, size=60)
X = np.eye(3)[classes][:, :2] + 0.05 * rng.standard_normal((60, 2))
for k in (2, 3, 5):
    value = dc.solve(dc.multiclass(X, k), "SCS", tol=1e-5).value
    print(f"k = {k}: {value:.5f}, {1 / k + (1 - 1 / k) * dc.solve(dc.penalized_nu(X), 'SCS', tol=1e-5).value:.5f}")

# %%

F = dc.solve(dc.multiclass(X, 3), "SCS").F
found = KMeans(3, n_init=10, random_state=0).fit_predict(F)
print(f"adjusted Rand index of the classes {adjusted_rand_score(classes, found):.2f}")
