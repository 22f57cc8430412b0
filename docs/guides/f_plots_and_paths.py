r"""
Plots and paths
===============

Displays follow scikit-learn: a class method computes, ``plot(ax=...)`` draws, the artists are attributes.
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.plotting import DirectionDisplay, PathDisplay, PhaseMapDisplay, SpectrumDisplay

planted = dc.datasets.make_planted(120, 8, sparsity=2, imbalance=0.1, noise=0.2, rng=0)
result = dc.low_rank(planted.X, 0.5, dc.Penalty.l1(0.02))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
SpectrumDisplay.from_result(result).plot(left)
DirectionDisplay.from_result(result, planted.X).plot(right)

# %%
# Paths are solved with warm starts, each point with its bracket; ``path`` holds the arrays.

path = dc.paths.nu_path(planted.X, np.logspace(-2, 0, 15), y=planted.y)
print(path.gap.max())
PathDisplay(path).plot()

# %%
# A map over n and d takes any table with such columns:

rows = [
    {
        "n": n,
        "d": d,
        "error": dc.metrics.clustering_error(data.y, dc.rounding.kmeans_centered(dc.low_rank(data.X, tol=1e-3).F)),
    }
    for n in range(20, 101, 10)
    for d in range(4, 17, 3)
    for data in [dc.datasets.make_planted(n, d, rng=100 * n + d)]
]
PhaseMapDisplay.from_table({key: [row[key] for row in rows] for key in rows[0]}).plot()
plt.show()
