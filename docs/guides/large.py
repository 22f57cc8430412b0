r"""
Large problems
==============

This page covers the cost in n and d, measurements, and what to do if a problem is too large. All of it is about
Eq. (15), the problem in the d × d matrix V: the number of points enters only through products with X.
"""

# %%
# Cost
# ----
# The unit is a *Gram pass*, the time of one product :math:`X^\top X`, :math:`n d^2` multiplications. Reading X once costs
# :math:`n d`, a factorisation of a d × d matrix :math:`d^3`. Which of these ``low_rank`` pays depends on the regime.
#
# - **Components are small**: a sparse penalty that is large enough (:doc:`components`). A step costs :math:`O(n d)`, and each check
#   of all pairs of features half a Gram pass. If V is diagonal, one or two checks are
#   enough. Memory is a few times that of X, and no d × d matrix is formed. See the rows *planted, λ = 1/√n* of the tables.
# - **One component has most of the features**: a small λ, or none, or features that are all correlated. V is one dense block. A step
#   costs :math:`O(n d r)` with a factor of r columns, a certificate :math:`O(n d^2 + d^3)`, and memory is taken to be that of
#   sixteen d × d matrices: 128 MB at d = 1000, 13 GB at d = 10 000. About a thousand features is the practical end: the rows
#   *λ = 0.03/√n* show the gap that a limit of time leaves.
# - **Many rows**: at least 40 000, and at least :math:`40 d^2`. The problem is solved on samples, and all rows are read only for
#   corrections and certificates, by several threads. X is not copied. See the rows with n = 100 000 and n = 1 000 000. With fewer rows
#   for the number of features every step reads all of them; the time is linear in n.
# - **Through CVXPY.** The constraints have about :math:`n d^2 / 2` coefficients, and CLARABEL adds a matrix with
#   :math:`d^4 / 4` entries: ``solve`` estimates both, and raises an error before it builds a problem that does not fit.
#
# Which λ is large enough
# ~~~~~~~~~~~~~~~~~~~~~~~
# Features j and k are joined where :math:`|G_{jk}| \ge c_j c_k`. With :math:`c_j^2 = \lambda` and columns of variance 1, and two
# features that have nothing to do with each other, :math:`G_{jk} = \tfrac1n \sum_i (u_i - 1) x_{ij} x_{ik}` is a mean of n
# products of either sign, of the order of the spread of u over :math:`\sqrt n`. So the regime is decided by the multiple of
# :math:`1/\sqrt n` that λ is. Here is one instance at four of them:

import diffrac_cvx as dc

n = 500
X = dc.datasets.make_planted(n, 60, sparsity=10, noise=0.3, rng=0).X
for multiple in (1.0, 0.3, 0.1, 0.03):
    penalty = dc.Penalty.l1(multiple / n**0.5)
    result = dc.low_rank(X, penalty=penalty, tol=1e-5, time_limit=20)
    groups = dc.find_components(X, result, penalty=penalty)
    gap = dc.format_upper(result.gap / result.upper)
    print(
        f"{multiple:>4} / sqrt(n): {groups.max() + 1:2} components proved, relative gap {gap}"
    )

# %%
# Measurements
# ------------
# Seconds to a certified relative gap, :math:`(\mathrm{upper} - \mathrm{lower}) / \mathrm{upper}`, of 0.01 and of 0.0001. A number
# after > is the limit that a solve had; *no*: the method ended without the gap; *not run*: by an estimate of its memory.
#
# .. include:: ../large_seconds.inc
#
# The relative gap that the best answer of each has, and the seconds it took. All answers have been certified again by
# `certify_v`, in a process other than the solver's, and a lower bound found from one answer serves all of them; a star is a
# solver's own bracket if V is too large for that.
#
# .. include:: ../large_gaps.inc
#
# The peak memory of the solves in MB, in addition to the data:
#
# .. include:: ../large_memory.inc
#
# Solves run one at a time, each in its own process. ``make benchmark`` repeats the measurements; ``figures/benchmark.csv`` gives the
# reason for each solve that was not run. *planted* has a direction of ten features with noise 0.3, *dense*
# Gaussian columns of which neighbours have correlation 0.7, without clusters; columns have mean 0 and variance 1.

# %%
# If X or its factorisation would not fit in memory, `ResourceError` is raised before the work starts. ``result.V`` raises it if the
# dense matrix would not fit; ``result.G``, with V = GG', has the same information.

d = 2000
X = dc.datasets.make_planted(200, d, sparsity=10, noise=0.3, rng=0).X
result = dc.low_rank(X, penalty=dc.Penalty.l1(200**-0.5), tol=1e-4)
print(f"{result.bracket}: {result.components}")
print(f"G has {result.G.nnz} entries that are not 0, V would have {d**2}")

# %%
# Making it faster
# ----------------
# **Set a limit, or a larger tolerance** (:doc:`solvers`). After a limit, continue from the result: ``low_rank(X, ..., start=result)``.
# The first table shows how much longer a relative gap of 0.0001 takes than one of 0.01.
#
# **Use a larger λ, or start from one.** Then there are many components, and the problem is solved quickly. As λ decreases they
# merge: :func:`diffrac_cvx.paths.lambda_path` uses warm starts in this order.
#
# **Exclude uninformative features.** Features that form their own components at a λ somewhat larger than yours do not interact
# with others there; that is no proof for your λ, but `certify_v` on all features bounds the loss from excluding them.
#
# **Check the memory of CVXPY.** `solve` estimates it first:

large = dc.datasets.make_planted(2000, 400, noise=0.3, rng=0).X
try:
    dc.solve(dc.v_space(large, penalty=dc.Penalty.l1(0.01)), "SCS", memory_limit=8)
except dc.ResourceError as error:
    print(error)

# %%
# **More than memory holds.** `low_rank`, `fista`, `certify_v`, `certify_labels`, the roundings, the paths and `DiffracClustering`
# (with two clusters) accept a table that is not an array in memory, by the same call, and never convert it to one:
#
# - a **memory map**, ``np.load("rows.npy", mmap_mode="r")``, with at least 40 000 rows and :math:`40 d^2`: rows are read block by
#   block and their pages let go;
# - a **table that only slices**, such as a data set of h5py or zarr, with as many rows: an object with a shape, a NumPy dtype and
#   row slices. Whole chunks are read, one at a time;
# - a **dask array** with as many rows: sums over the rows are computed where its chunks lie, and only sums and small samples of
#   rows are sent. On a cluster (:doc:`/cluster`), persist it first, so that no pass computes it again. Its chunk sizes have to be
#   known: ``X.compute_chunk_sizes()``;
# - a **sparse matrix** of scipy, for word counts and categories: its columns are centred and scaled implicitly. With an
#   l1 penalty this works for many thousands of columns; without one V is dense, which limits the number of columns.
#
# With fewer rows, sample weights, constraints or more than two clusters, the first three are read into memory, and so they are by
# all other functions. Tables in other files, such as Parquet, become dask arrays by
# ``dask.dataframe.read_parquet("rows.parquet").to_dask_array(lengths=True)``.
#
# The solver reads all rows a few times: once for every bracket in its history. Between passes it works on a sample.

import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse

rng = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "rows.npy"
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(100_000, 10))
    file[:] = rng.standard_normal(file.shape)
    file[:50_000, 0] += 3.0
    result = dc.low_rank(np.load(path, mmap_mode="r"), tol=1e-4)
    print(f"{result.bracket} after {result.history[-1].rows / 100_000:.0f} passes")
    # F is computed from the table on access; result.factor is small, and suffices here.
    labels = dc.rounding.kmeans_centered(result.factor)
    print(f"clusters of {np.sum(labels > 0)} and {np.sum(labels < 0)} points")

# %%
# A dask array has the same calls, here with chunks in threads of this process:

import dask.array as da

rows = da.random.default_rng(0).standard_normal((100_000, 10), chunks=(20_000, 10))
rows = da.concatenate(
    [rows[:, :1] + 3.0 * (da.arange(100_000, chunks=20_000)[:, None] < 50_000), rows[:, 1:]],
    axis=1,
)
result = dc.low_rank(rows, tol=1e-4)
print(f"{result.bracket} after {result.history[-1].rows / 100_000:.0f} passes")

# %%
# A sparse matrix is given to an estimator:

counts = scipy.sparse.random_array((2000, 500), density=0.01, rng=rng, format="csr")
model = dc.DiffracClustering(lam=0.1, ridge=0.0).fit(counts)
gap = dc.format_upper(model.result_.gap)
print(f"{len(model.support_)} of 500 columns are selected, certified gap {gap}")

# %%
# CVXPY's builders, more than two clusters, `certify_y`, sample weights and `compare` require an array instead of a sparse matrix;
# their error names the conversion (``X.toarray()``).
#
# Measurements of ``make scale``, to a certified gap of 0.001, with one thread. *Additional memory* is the peak of the whole process
# minus its size before:
#
# .. include:: ../scale.inc
#
# A pass costs about :math:`n d (d + 2r)` multiplications. The number of passes hardly grows with n.
