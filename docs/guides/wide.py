r"""
More columns than rows
======================

A table of genes, spectra or words has many more columns than rows, and two groups may differ in only a few of the columns. With
both penalties, ``lam`` and ``ridge``, the relaxation selects few columns; the coefficients of the others are exactly 0. This page
shows this on a simulated table, explains the certified bounds, and compares other methods. :doc:`wide_law` explains why this
works, and when it does not.
"""

# %%
# A simulated table
# -----------------
# The table has 100 rows and 2000 columns. Half of the variance of every column comes from ten common factors, such as batch or
# age. In twenty random columns the two groups are shifted up or down.

import time

import numpy as np

import diffrac_cvx as dc

rng = np.random.default_rng(0)
n, d, k, factors = 100, 2000, 20, 10
y = np.repeat([1.0, -1.0], n // 2)  # used for evaluation only
informative = rng.choice(d, size=k, replace=False)
common = rng.standard_normal((n, factors)) @ rng.standard_normal((factors, d)) / factors**0.5
X = (0.5**0.5) * (common + rng.standard_normal((n, d)))
X[:, informative] += 1.2 * y[:, None] * rng.choice([-1.0, 1.0], size=k)
X = (X - X.mean(axis=0)) / X.std(axis=0)

# %%
# Which lambda
# ------------
# The rule of :doc:`wide_law` for more columns than rows is ``lam = ridge * sqrt(log(d) / n)``, with the ridge 0.3 of the
# estimators and standardised columns, as above. Use this value to select a few columns. On the labelled pairs of ``make wide``,
# smaller weights and some methods that use all columns agree better with the classes on average (:doc:`/beyond`).
#
# ``read_table(..., transpose=True)``, or ``--transpose`` in the program, transposes a table with one gene per row.
# ``top_variance=500``, or ``--top-variance 500``, keeps the columns of largest variance, before any scaling and without using
# labels. ``tol`` is the tolerance on the duality gap; ``time_limit`` ends the search with the bounds so far.

ridge = 0.3
lam = ridge * (np.log(d) / n) ** 0.5
result = dc.low_rank(X, lam=lam, ridge=ridge, tol=0.02, time_limit=15)
labels = dc.rounding.kmeans_centered(result.F)
print(f"lambda {lam:.3f}: optimum in {result.bracket}; {result.status}")
index = dc.metrics.adjusted_rand_score(y, labels)
print(f"adjusted Rand index with the true groups: {index:.2f}")

# %%
# Selected features
# -----------------
# `Result.features` lists the selected features, the most important first. Feature j is selected if :math:`V_{jj}` exceeds a
# thousandth of the largest; ``rtol`` changes this threshold. The guarantee refers to the relaxation: *no V on any other set of
# features has an objective that is lower by more than the gap.* The set need not be unique, and a smaller gap may add weak
# features.

features = result.features()
print(f"{len(features)} of {d} features are selected, certified to a gap of {result.gap:.2g}:")
found = np.isin(informative, features).sum()
print(f"{found} of the {k} informative features are selected,")
print(f"and {np.isin(features[:k], informative).sum()} are among the first {k} selected")

# %%
# Comparison with other methods
# -----------------------------
# k-means and a Gaussian mixture depend on distances and variances, and here the factors dominate both.

partitions = {
    "k-means": dc.baselines.kmeans_standardized(X, rng=0),
    "Gaussian mixture": dc.baselines.gaussian_mixture(X, rng=0),
    "this relaxation": labels,
}
for name, partition in partitions.items():
    print(f"{name:<24} {dc.metrics.adjusted_rand_score(y, partition):5.2f}")

# %%
# One table does not show which method is better. ``make wide`` compares more methods on many simulated and real tables, where
# each method chooses its own parameters (:doc:`/beyond`; code: ``experiments/rivals``). Projection pursuit searches the leading
# components for a bimodal direction; it also finds the groups of this table, in a fraction of a second, but neither selects
# features nor certifies a bound. It is better if many columns differ a little. Sparse components are better if the columns are
# independent and differ little. If common factors dominate, a strong rival is a sparse component of the residual after their
# removal: it is better with unequal clusters, and worse if many or very few columns differ.
#
# Feature stability
# -----------------
# A feature selected on most half-samples of the rows matters; a feature selected on a few may be an artefact of the sample. Here
# are ten half-samples of 50 rows, with the lambda of the rule for 50 rows. They are solved to a loose gap, because a ranking
# needs no exact solution.

halves, used, agreement = 10, np.zeros(d), []
end = time.perf_counter() + 15
for _ in range(halves):
    rows = rng.choice(n, size=n // 2, replace=False)
    half = X[rows] - X[rows].mean(axis=0)
    half /= half.std(axis=0)
    part = dc.low_rank(
        half,
        lam=lam * 2**0.5,
        ridge=ridge,
        tol=0.05,
        time_limit=max(end - time.perf_counter(), 0.5),
    )
    used[part.features(rtol=0.01)] += 1
    agreement.append(
        dc.metrics.adjusted_rand_score(labels[rows], dc.rounding.kmeans_centered(part.F))
    )

frequency = used / halves
is_informative = np.isin(np.arange(d), informative)
print(f"groups of the halves and of all rows: adjusted Rand index {np.mean(agreement):.2f}")
for least in (0.3, 0.5, 0.8):
    often = frequency >= least
    right = (often & is_informative).sum()
    print(
        f"selected on {least:.0%} of the halves: {often.sum():>3}, {right} of them informative"
    )

# %%
# Limitations
# -----------
# - Groups that hardly differ in any column: with shifts of much less than a standard deviation of the noise, and few rows, the
#   true groups cost more than splits of noise, and no rule for lambda helps (:doc:`wide_law`, *two numbers*).
# - Several splits of similar cost, as with batches and tumour types at once: the relaxation returns one, and the bounds refer to
#   the cost, not to which split you want. Check the agreement of the half-samples.
# - Groups that differ a little in most columns: use a small ``lam``, or none; k-means may be better.
# - Groups that differ less, or have unequal sizes, in the presence of common factors: with 20 columns shifted by .8 instead of
#   1.2, or with 30 rows in one group, a sparse component after removal of the factors almost always finds the groups of
#   ``make wide``, and the relaxation rarely does.
# - Counts and intensities: take logarithms first.
