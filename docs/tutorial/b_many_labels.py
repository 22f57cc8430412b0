r"""
Many labels at once
===================

Points may have several labels, each an affine function of the features. The relaxation is the same whatever their
number: its solutions are mixtures of :math:`11^\top` and the :math:`y_i y_i^\top` (section 5.3 of the paper).
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.plotting import SpectrumDisplay

rng = np.random.default_rng(0)
Y = rng.choice([-1.0, 1.0], size=(500, 3))
X = np.hstack([Y, rng.standard_normal((500, 5))]) @ rng.standard_normal((8, 8))

result = dc.fista(X, tol=1e-2)
SpectrumDisplay.from_result(result).plot()

# %%
# Three eigenvalues stand out. `diffrac_cvx.rounding.procrustes` turns them into labels: alternating Procrustes problems
# from random rotations,
#
# .. math:: \min_{R^\top R = I,\ a,\ y_i} \|F R - [a_0 1, a_1 y_1, \dots, a_k y_k]\|_F^2.

found = dc.rounding.procrustes(result.F, 3)
print(f"misfit {found.objective:.4f}, weights {np.round(found.weights, 3)}")
print(f"tr of the two projections {dc.metrics.label_subspace_overlap(Y, found):.3f} of 3")
print(dc.metrics.label_correlations(Y, found).round(2))

# %%
# The tolerance is loose on purpose: the smoothing of ``fista`` keeps all labels in the mixture, while an exact solution
# may leave one of them out. With imbalanced labels that happens.
#
# A classical alternative is to look for classes. The relaxation of k classes turns out to be the same problem:

value = dc.solve(dc.multiclass(X[:60], 3)).value
same = 1 / 3 + 2 / 3 * dc.solve(dc.penalized_nu(X[:60])).value
print(f"multiclass {value:.5f}, by Eq. (8) {same:.5f}")
plt.show()
