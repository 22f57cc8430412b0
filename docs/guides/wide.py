r"""
More columns than rows
======================

A table of genes, spectra or words has many more columns than rows, and two groups may differ in a few of the columns only.
With both penalties, ``lam`` and ``ridge``, the relaxation uses few columns and leaves the others at exactly 0. This page does
it on a made table, says what is proved and on what, and sets other methods beside it. Why it works, and when it does not, is
:doc:`wide_law`.
"""

# %%
# A made table
# ------------
# 100 rows, 2000 columns. Half of the variance of every column comes from ten factors common to all, as batch or age would do.
# Twenty columns, anywhere, are shifted up or down by the group.

import time

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc
from diffrac_cvx import baselines
from diffrac_cvx.problem.formatting import format_lower, format_upper

rng = np.random.default_rng(0)
n, d, k, factors = 100, 2000, 20, 10
y = np.repeat([1.0, -1.0], n // 2)  # used to judge the answers only
informative = rng.choice(d, size=k, replace=False)
common = rng.standard_normal((n, factors)) @ rng.standard_normal((factors, d)) / factors**0.5
X = (0.5**0.5) * (common + rng.standard_normal((n, d)))
X[:, informative] += 1.2 * y[:, None] * rng.choice([-1.0, 1.0], size=k)
X = (X - X.mean(axis=0)) / X.std(axis=0)

# %%
# Which lambda
# ------------
# The rule of :doc:`wide_law` for more columns than rows is ``lam = ridge * sqrt(log(d) / n)``, with the ridge 0.3 of the
# estimators and columns of one scale, as above. ``diffrac-cvx cluster`` suggests it where a table has more columns than rows and no
# ``--lambda`` is given, beside its answer without one. It is for tables of which a few columns are to be named: on the labelled pairs
# of ``make wide`` a smaller weight, and methods that use all columns, come nearer to the classes in the mean.
#
# .. include:: ../wide_pairs.inc
#
# A table that has a gene a row is turned by ``read_table(..., transpose=True)``, in the program ``--transpose``; where rows look like
# features, a note or the error says so. ``top_variance=500``, ``--top-variance 500``, keeps the columns of largest variance, before
# any scaling: a choice that is made without labels. ``tol`` is the gap that has to be proved; ``time_limit`` ends the search with
# what is certified so far.

ridge = 0.3
lam = ridge * (np.log(d) / n) ** 0.5
result = dc.low_rank(X, lam=lam, ridge=ridge, tol=0.02, time_limit=15)
labels = dc.rounding.kmeans_centered(result.F)
print(f"lambda {lam:.3f}: optimum in {result.bracket}; {result.status}")
index = dc.metrics.adjusted_rand_score(y, labels)
print(f"adjusted Rand index with the true groups: {index:.2f}")

# %%
# What the bracket says
# ---------------------
# The optimum of the relaxation lies in the bracket, and so does that of *all 2000 features*: the solver starts from a few features
# and adds others, but the lower bound at the end is that of every V on every feature, those left out included. The bound
# is that of :doc:`solvers`, and holds in floating point as all do (:doc:`reliability`). No split in two, along whichever direction, costs less than the
# lower end (Eq. 9). What is *not* proved is that the groups mean anything, or that other groups would not cost about the same.

print(f"proved: no split costs less than {format_lower(result.lower)}")
proof = dc.certify_labels(X, labels, result, lam=lam, ridge=ridge)
print(f"this one costs {format_upper(proof.objective)}")

# %%
# Few features carry the answer
# -----------------------------
# `Result.features` lists the features in use, the most important first. A feature j counts as in use where :math:`V_{jj}` exceeds
# a thousandth of the largest; ``rtol`` changes that. The sentence is one about the relaxation: *no V on any other set of
# features costs less by more than the gap.* It does not say that the set is the only one, and a smaller gap may add weak features.

features = result.features()
print(features)
found = np.isin(informative, features.selected).sum()
print(f"{found} of the {k} informative features are in use,")
print(f"and {np.isin(features.selected[:k], informative).sum()} are among the first {k} in use")

# %%
# Beside other methods
# --------------------
# k-means follows distances and the first component variance, and both are those of the factors here. That is no reason to look
# no further: *a direction whose scores take two values can be searched for among the leading components*, which needs no
# penalty and takes a fraction of a second. Where the groups are among these components
# ``baselines.two_valued_component(criterion="pursuit")`` can win, and is the rival to take seriously: it finds the groups of
# this table, too. What it does not give is the features or a proof. Sparse k-means and IF-PCA choose columns by what each shows of itself, and can do well where columns are independent.

rivals = {
    "k-means": lambda: baselines.kmeans_standardized(X, rng=0),
    "first component": lambda: baselines.first_component(X),
    "IF-PCA": lambda: baselines.ifpca(X, rng=0),
    "component, by kurtosis": lambda: baselines.two_valued_component(
        X, criterion="kurtosis", rng=0
    ),
    "component, by pursuit": lambda: baselines.two_valued_component(
        X, criterion="pursuit", rng=0
    ),
}
for name, method in rivals.items():
    print(f"{name:<24} {dc.metrics.adjusted_rand_score(y, method()):5.2f}")
print(f"{'this relaxation':<24} {dc.metrics.adjusted_rand_score(y, labels):5.2f}")

# %%
# One table shows how it is done, and not which method is better. ``make wide`` runs all of them on many made and real tables, and
# writes ``figures/wide.md``, with the tables on which this method loses.
#
# Which features are stable
# -------------------------
# A feature that is in use on most halves of the rows matters; one that is in use on a few is an accident of the sample. Ten halves
# of 50 rows, with the lambda of the rule for 50 rows, to a loose gap: a ranking needs no exact solution.

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
    used[part.features(rtol=0.01).selected] += 1
    agreement.append(
        dc.metrics.adjusted_rand_score(labels[rows], dc.rounding.kmeans_centered(part.F))
    )

frequency = used / halves
is_informative = np.isin(np.arange(d), informative)
print(f"groups of the halves and of all rows: adjusted Rand index {np.mean(agreement):.2f}")
for least in (0.3, 0.5, 0.8):
    often = frequency >= least
    right = (often & is_informative).sum()
    print(f"in use on {least:.0%} of the halves: {often.sum():>3}, {right} of them informative")

# %%

figure, axes = plt.subplots(1, 2, figsize=(7.5, 2.8), layout="constrained")
energies = np.diag(result.V)[features.selected]
shown = is_informative[features.selected]
place = np.arange(len(shown))
for chosen, color, name in ((shown, "C0", "informative"), (~shown, "0.7", "not")):
    axes[0].scatter(
        place[chosen], energies[chosen] / energies.max(), s=10, color=color, label=name
    )
    mask = is_informative if name == "informative" else ~is_informative
    axes[1].hist(
        frequency[mask & (frequency > 0)],
        bins=np.linspace(0.05, 1.05, 11),
        color=color,
        histtype="step",
        lw=2,
    )
axes[0].set(
    yscale="log", xlabel="feature in use, by importance", ylabel=r"$V_{jj}$ over the largest"
)
axes[0].legend(frameon=False)
axes[1].set(yscale="log", xlabel="share of the halves that use a feature", ylabel="features")
plt.show()

# %%
# Where it fails
# --------------
# - Groups that hardly differ in any column: with shifts of much less than a standard deviation of the noise, and few rows, the
#   true groups cost more than those of noise, and no rule for lambda helps (:doc:`wide_law`, *two numbers*).
# - Several splits that cost about the same, as with batches and tumour types at once: the relaxation returns one, and the proof is about
#   cost, not about which of them is wanted. Look at the agreement of the halves.
# - Groups that differ in most columns a little: a small ``lam``, or none, is right, and k-means may be better.
# - Counts and intensities: take logarithms first.
