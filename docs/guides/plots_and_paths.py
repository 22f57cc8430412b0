r"""
Plots and paths
===============

The displays in `diffrac_cvx.plotting` follow scikit-learn's conventions: a class method computes, ``plot(ax=...)`` draws and
returns the display, and the artists are attributes. They need matplotlib and do not change global settings.

============================ ============================================================ ======================
display                      shows                                                        from
============================ ============================================================ ======================
`plotting.BracketDisplay`    certified bounds over time                                   results, `optimal_labels`
`plotting.SpectrumDisplay`   eigenvalues of Y and V                                       a result
`plotting.StructureDisplay`  scores of rows that did not choose the direction of a split  `structure_test`
`plotting.DirectionDisplay`  coefficients of the direction                                a result, an estimator
`plotting.ProjectionDisplay` labels along the direction                                   scores, an estimator
`plotting.PathDisplay`       coefficients, value and error along nu or lambda             a path
============================ ============================================================ ======================

One solution
------------
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.plotting import DirectionDisplay, PathDisplay, SpectrumDisplay

planted = dc.datasets.make_planted(120, 8, sparsity=2, imbalance=0.1, noise=0.2, rng=0)
result = dc.low_rank(planted.X, 0.5, dc.Penalty.l1(0.02))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
SpectrumDisplay.from_result(result).plot(left)
DirectionDisplay.from_result(result, planted.X).plot(right)

# %%
# The direction of a matrix V is its leading direction in the metric of the data, `paths.leading_direction`.
#
# Paths
# -----
# `paths.nu_path` and `paths.lambda_path` solve along a grid, with warm starts and certified bounds for each solution; λ
# decreases, so that components of a sparse problem merge. The functions return a `paths.RegularizationPath` of arrays, with the
# parameter in increasing order. ``time_limit`` applies to the whole path.

path = dc.paths.nu_path(planted.X, np.logspace(-2, 0, 15), y=planted.y)
print(f"largest gap {dc.format_upper(path.gap.max())}, {path.seconds.sum():.2f} seconds in all")
print("error of the rounded labels:", path.error.round(2))
assert path.gap.max() <= 1e-5
PathDisplay(path).plot()

# %%
# The imbalance of the solutions decreases with nu: the larger the weight, the more equal the clusters.

print(np.column_stack([path.parameter, path.imbalance])[::4].round(3))
assert path.imbalance[0] > path.imbalance[-1]
plt.show()
