r"""
Imbalance fixed: constrained_alpha
==================================

.. math::
   \min_{Y \succeq 0,\ \mathrm{diag}(Y) = 1,\ 1^\top Y 1 = \alpha n^2}
   \tfrac1n \mathrm{tr}\, Y (\Pi_n - X (X^\top X)^{+} X^\top)

Equation (7). Y stands for yy', the constraint for the imbalance of the clusters: :math:`\alpha = (1^\top y/n)^2`, 0
when they have equal sizes. Without it Y = 11' is optimal, one cluster.

**Equal to** the penalised relaxation at some nu, see the duality below. **Use it** when the imbalance is known, or to
see how solutions change with it. **Cost:** an n × n semidefinite variable, some hundreds of points.
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.plotting import DualityDisplay

planted = dc.datasets.make_planted(40, 4, imbalance=0.25, rng=1)
relaxation = dc.constrained_alpha(planted.X, 0.25)
result = dc.solve(relaxation, "SCS", tol=1e-5)
print(result)

# %%
# At the planted imbalance a noiseless solution is yy'. Between it and 1 the solution is a mixture of yy' and 11', of
# rank two: the leading eigenvector need not be y, but that of :math:`\Pi Y \Pi` is. ``kmeans_centered`` uses it.

for alpha in (0.25, 0.5, 0.8):
    F = dc.solve(relaxation.at(alpha=alpha), "SCS", tol=1e-5).F
    errors = [
        dc.metrics.clustering_error(planted.y, rounded(F))
        for rounded in (dc.rounding.sign_leading, dc.rounding.kmeans_centered)
    ]
    print(
        f"alpha = {alpha}: rank {dc.metrics.numerical_rank(F)}, error {errors[0]:.2f} (leading), {errors[1]:.2f} (centred)"
    )

# %%
# The penalised value p(nu) is the least over alpha of the constrained value q(alpha) + nu alpha:

noisy = dc.datasets.make_planted(40, 4, imbalance=0.25, noise=0.3, rng=1)
DualityDisplay.from_data(noisy.X, np.logspace(-2, 0, 12)).plot()
plt.show()
