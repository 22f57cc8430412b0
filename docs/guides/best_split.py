r"""
Global optimality of a split
============================

Every method returns labels. Do other labels have a lower cost? There are many candidates: n points have :math:`2^{n-1}` splits.
`optimal_labels` answers it by branch and bound and by cutting planes. It returns labels, and a lower and an upper bound on the
lowest cost of all labels in Eq. (9). If the bounds are close enough, its labels are proved optimal.
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc

X, classes = dc.datasets.load("breast_cancer", scaling="standardize")
found = dc.optimal_labels(X, ridge=0.1, tol=1e-5, time_limit=30)
print(found)

# %%
# No split of the 683 rows in two, along any direction of the 10 columns, costs less than the first number, and the labels in
# ``found.labels`` cost at most the second. Both bounds account for rounding errors (:doc:`reliability`). The cost is that of Eq.
# (9) at ν = 1, with the given ridge. Another ridge, or other units of the columns, define another problem, and the labels of
# lowest cost need not be the true ones. Here are other labels, with their additional cost and their error with respect to the
# diagnosed classes.

relaxed = dc.low_rank(X, ridge=0.1)
others = {
    "best split": found.labels,
    "relaxation, rounded": dc.rounding.kmeans_centered(relaxed.F),
    "k-means": dc.baselines.kmeans_standardized(X, rng=0),
    "true classes": classes,
}
for name, labels in others.items():
    above = dc.certify_labels(X, labels, found.lower, penalty=dc.Penalty(ridge=0.1)).gap
    error = dc.metrics.clustering_error(classes, labels)
    print(f"{name:20} costs at most {above:.5f} more, error to the classes {error:.3f}")

# %%
# How the bracket closes
# ----------------------
# The first bound is that of the relaxation, ``found.root_bound``. Branch and bound then fixes the label of one more point to each
# of its two values, and solves a smaller relaxation for each. If the bound of one of them reaches the cost of the best labels so
# far, all splits with these labels are discarded.
#
# If a fixed amount of work does not suffice, cutting planes follow. Any labels of three points satisfy the triangle inequality
# :math:`s_i s_j y_i y_j + s_i s_k y_i y_k + s_j s_k y_j y_k \ge -1` for all signs s, since two of the three numbers
# :math:`s_i y_i` are equal. If the matrix Y of the relaxation violates it, the inequality is added and the relaxation is solved
# again. If no triangle is violated, inequalities on five and seven points are added. With these inequalities, the solution of the
# relaxation is the optimal labels for most real tables, so that no branching is needed. For tables of one or two columns without
# an l1 penalty, the offset counting as a column if ν < 1, triangles alone give the optimal cost, whatever the number of points:
# Theorem 8 of :doc:`/note`.
#
# ``found.history`` contains the bounds over time, and `plotting.BracketDisplay` draws them. Here are three data sets at ridge
# 0.3:

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
for ax, name in zip(axes, ("breast_cancer", "heart", "liver_disorders"), strict=True):
    table = dc.datasets.load(name, scaling="standardize")[0]
    search = dc.optimal_labels(table, ridge=0.3, tol=1e-4, time_limit=20)
    bounds = [dc.Progress(k, *step) for k, step in enumerate(search.history)]
    dc.plotting.BracketDisplay([bounds], [name]).plot(ax, against="seconds")
    print(f"{name}: {search}")

# %%
# The search can be stopped at any time, by ``time_limit`` or by a callback that returns True. It then returns the best labels so
# far and valid bounds. With `Constraints` on rows, only labels that satisfy them are considered, and the bounds refer to the cost
# of these (:doc:`known_points`, :doc:`weak_supervision`). The increase of the optimum measures how much the constraints disagree
# with the optimal split.
#
# A certificate as a file
# -----------------------
# The search is long, but its proof is short: given the multipliers of the inequalities, one Cholesky factorisation proves the
# bound, or one for each branch. ``found.certificate`` contains these multipliers. Anyone who has the table can verify the file,
# without trusting the search: `check_certificate` shares no code with it.

from pathlib import Path
from tempfile import TemporaryDirectory

heart = dc.datasets.load("heart", scaling="standardize")[0]
with TemporaryDirectory() as folder:
    file = Path(folder) / "heart.npz"
    dc.optimal_labels(heart, ridge=1.0).certificate.save(file)
    print(dc.check_certificate(heart, file))
    altered = heart.copy()
    altered[0, 0] += 0.5
    try:
        dc.check_certificate(altered, file)
    except dc.DataError as error:
        print(error)

# %%
# In the program: ``diffrac-cvx cluster table.csv --prove --certificate labels.npz``. In Python,
# ``DiffracClustering(prove=True).fit(X).optimal_.certificate`` is the certificate for the table X.
#
# L1-norm principal component analysis
# ------------------------------------
# The first component in the L1 norm is the direction v of length 1 that maximises :math:`\|X v\|_1`. It is :math:`X^\top y` of
# the labels y that maximise :math:`\|X^\top y\|_2`, scaled to length 1. In the principal axes, a ridge that compensates for the
# variance of each axis turns the metric of Eq. (9) into a multiple of the identity, so the same search finds the component and
# proves it. The usual heuristic flips the sign of one point at a time, from the signs of a principal component (Markopoulos et
# al., IEEE Trans. Signal Process. 65, 2017).


def l1_component(X, **options):
    """Return the first L1-norm principal component of centred X, and the search that proves it."""
    singular_values, axes = np.linalg.svd(X, full_matrices=False)[1:]
    variances = singular_values**2 / len(X)
    search = dc.optimal_labels(X @ axes.T, ridge=variances[0] - variances, **options)
    v = X.T @ search.labels
    return v / np.linalg.norm(v), search


def flip_signs(X, y):
    """Flip the sign that most increases |X'y|, as long as one does."""
    y = y.copy()
    while (gains := np.sum(X**2, axis=1) - y * (X @ (X.T @ y))).max() > 1e-9:
        y[np.argmax(gains)] *= -1.0
    return y


for n in (50, 200, 500):
    sample = np.random.default_rng(n).standard_t(3, (n, 8))
    sample -= sample.mean(axis=0)
    v, search = l1_component(sample, tol=1e-4, time_limit=30)
    starts = np.where(sample @ np.linalg.svd(sample)[2].T >= 0, 1.0, -1.0)
    flipped = [np.linalg.norm(sample.T @ flip_signs(sample, y)) for y in starts.T]
    print(
        f"n = {n}: |Xv|_1 = {np.abs(sample @ v).sum():.2f}, {search.status.name}, {search.seconds:.1f} s"
    )
    print(
        f"   sign flips from the first component {flipped[0]:.2f}, from the best of eight {max(flipped):.2f}"
    )

# %%
# The optimum is certified; sign flips may miss it, whichever component they start from.
#
# Run time
# --------
# The problem is NP-hard, and the time may grow exponentially. ``found.hardness`` predicts it before the search: it is d_eff
# (d_eff + 1) / 2n, where d_eff is the effective number of columns at the given ridge. Nearly all tables of ``make optimal`` with
# a hardness up to about 0.25 are solved in seconds, and many up to 2. :doc:`/beyond` has the fractions and times.
#
# This is an observation on these tables, not a theorem. For clusters of equal size at the corners of a regular simplex in d
# dimensions, d even and at least 4, a gap remains after all triangles, however many points there are, and thus at arbitrarily
# small hardness (:doc:`/note`, section 7). Inequalities on more points, or branching, must close it:

centred = np.eye(5) - 0.2
corners = 5**0.5 * centred @ np.linalg.svd(centred)[2][:4].T  # five corners in four dimensions
for copies in (1, 4, 10):
    simplex = np.repeat(corners, copies, axis=0)
    found = dc.optimal_labels(simplex)
    print(
        f"n = {len(simplex)}: hardness {found.hardness:.2f}, bound of the relaxation {dc.format_lower(found.root_bound)}, "
        f"optimum in {found.bracket}"
    )
tightened = dc.triangles(dc.penalized_nu(corners))
bound = tightened.problem.solve(solver="CLARABEL")
print(f"bound of the relaxation with all triangles {max(bound, 0.0):.4f}")

# %%
# Other exact solvers
# -------------------
# The last two rows quote published results of the authors of other solvers, for other problems, instances and machines. Neither
# solver was run here. The table shows typical sizes, not which solver is faster.
#
# .. include:: ../exact_solvers.inc
#
# SOS-SDP: Piccialli, Sudoso and Wiegele, *INFORMS Journal on Computing* 34, 2022, abstract. BiqBin: Gusmeroli, Hrga, Lužar, Povh,
# Siebenhofer and Wiegele, *ACM Transactions on Mathematical Software* 48, 2022, abstract; it gives no sizes. BiqBin could solve
# Eq. (9) without an l1 penalty as a maximum-cut problem; SOS-SDP minimises another objective, the squared distances to the means
# of the clusters.
#
# Limitations
# -----------
# The optimal split is not always closer to the true classes than other splits, and fast methods often find it too
# (:doc:`/beyond`).
#
# Alternating optimisation never proves that its labels are optimal. Enumeration of all directions does, but their number grows
# like n to the power d - 1. Cutting planes need memory in proportion to the square of n; a thousand points take seconds to
# minutes. Branch and bound alone is used for tables with more than 1000 columns (with an l1 penalty, with more columns than
# points), and for feature groups and sign constraints. With an l1 penalty cutting planes converge slowly.
