r"""
Correlation (trivial): correlation
==================================

.. math::
   \min_{M \succeq 0}\ - \mathrm{tr}\, M H
   \quad\text{such that}\quad \mathrm{diag}(M) = 1 + \tfrac{1}{n^2} 1^\top M 1,
   \qquad H = X (X^\top X)^{+} X^\top

Equations (23) and (24), section 2.3 and appendix B. The relaxation is trivial: its value is the same for all data.

**Where it comes from.** The squared correlation of labels with the best direction, Eq. (2), is
:math:`y^\top H y / y^\top \Pi_n y`. It needs no parameter for the imbalance. With
:math:`M = y y^\top / (1 - \alpha)`, :math:`\alpha = (1^\top y / n)^2`, it is :math:`\tfrac1n \mathrm{tr}\, M H`, and M
satisfies the constraint. Without the rank the problem is convex.

**Why it is trivial.** :math:`\mathrm{tr}\, M H \le \mathrm{tr}\, M \Pi_n = n`, so the value is at least −n. Take any centred x in
the span of the columns and the factor with the rows :math:`(\cos \varepsilon x_i,\ \sin \varepsilon x_i)`. As ε tends to 0 its
centred part tends to a multiple of x, which H leaves unchanged: the objective tends to −n, and Y to :math:`1 1^\top`.

**Equivalences.** None: it bounds the correlation by 1, which holds anyway. This is why the imbalance must be constrained or
penalised. **Use it** only to see this. **Cost:** an n × n variable.
"""

import numpy as np

import diffrac_cvx as dc

planted = dc.datasets.make_planted(20, 2, noise=0.5, rng=0)
X, n = planted.X, 20
H = X @ np.linalg.pinv(X)

# %%
# The following feasible points, from the first column of X, have values that tend to −n. The rows of F have norm one; M is FF'
# divided by one minus its imbalance.

print("epsilon   objective")
for epsilon in (1.0, 0.3, 0.1, 0.01):
    F = np.column_stack([np.cos(epsilon * X[:, 0]), np.sin(epsilon * X[:, 0])])
    alpha = np.sum(F.mean(axis=0) ** 2)
    M = F @ F.T / (1 - alpha)
    assert np.allclose(np.diag(M), 1 + M.sum() / n**2)
    objective = -np.trace(M @ H)
    print(f"{epsilon:7.2f}   {objective:.5f}")
assert objective < -n + 1e-2

# %%
# No labelling comes close: the best squared correlation of labels is less than one here.

labels = dc.rounding.kmeans_centered(dc.low_rank(X).F)
correlation = dc.metrics.squared_correlation(X, labels)
print(f"squared correlation of labels found by another relaxation: {correlation:.4f}")

# %%
# The iterates of a solver grow without bound. The returned point is converted to a feasible one, and the bound −n is known:

result = dc.solve(dc.correlation(X), "SCS", tol=1e-2, max_iter=20_000)
print(f"value {result.value:.3f}, lower bound {dc.format_lower(result.lower)}")
assert result.lower == -n
