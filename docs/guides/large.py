r"""
Large problems
==============

This page covers the cost as a function of n and d, measurements, and remedies if a problem is too large. It refers to Eq. (15),
the problem in the d × d matrix V, in which the number of points enters only through products with X.
"""

# %%
# Cost
# ----
# The unit is a *Gram pass*, the time of one product :math:`X^\top X`, :math:`n d^2` multiplications. Reading X once costs
# :math:`n d`, and a factorisation of a d × d matrix :math:`d^3`. The regime determines which of these costs dominates in
# ``low_rank``.
#
# - **Components are small**: a sparse penalty that is large enough (:doc:`components`). A step costs :math:`O(n d)`, and each
#   check of all pairs of features costs half a Gram pass. If V is diagonal, one or two checks suffice. Memory is a few times that
#   of X, and no d × d matrix is formed. See the rows *planted, λ = 1/√n* of the tables.
# - **One component has most of the features**: a small λ, or none, or features that are all correlated. V is one dense block. A
#   step costs :math:`O(n d r)` with a factor of r columns, a certificate :math:`O(n d^2 + d^3)`, and the memory is estimated as
#   that of sixteen d × d matrices: 128 MB at d = 1000, 13 GB at d = 10 000. The practical limit is about a thousand features: the
#   rows *λ = 0.03/√n* show the gap that remains at the time limit.
# - **Many rows**: at least 40 000, and at least :math:`40 d^2`. The problem is solved on samples; all rows are read, by several
#   threads, only for corrections and certificates. X is not copied. See the rows with n = 100 000 and n = 1 000 000. With fewer
#   rows, every step reads all of them; the time is then linear in n.
# - **With CVXPY.** The constraints have about :math:`n d^2 / 2` coefficients, and CLARABEL adds a matrix with
#   :math:`d^4 / 4` entries: ``solve`` estimates both, and raises an error before it builds a problem that does not fit.
#
# Which λ is large enough
# ~~~~~~~~~~~~~~~~~~~~~~~
# Features j and k are joined if :math:`|G_{jk}| \ge c_j c_k`. For :math:`c_j^2 = \lambda`, columns of variance 1, and two
# unrelated features, :math:`G_{jk} = \tfrac1n \sum_i (u_i - 1) x_{ij} x_{ik}` is a mean of n products of either sign, of the
# order of the spread of u over :math:`\sqrt n`. So the regime depends on the ratio of λ to :math:`1/\sqrt n`. Here is one
# instance at four ratios:

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
# The table shows the seconds until the certified relative gap, :math:`(\mathrm{upper} - \mathrm{lower}) / \mathrm{upper}`, is
# 0.01 and 0.0001. A number after > is the time limit of the solve; *no* means that the method ended without reaching the gap;
# *not run* means that it was skipped because of its estimated memory.
#
# .. include:: ../large_seconds.inc
#
# The next table shows the relative gap of the best solution of each method, and the seconds it took. All solutions were certified
# again by `certify_v`, in another process, and the best lower bound is used for all of them. A star marks a solver's own bracket,
# if V is too large for this.
#
# .. include:: ../large_gaps.inc
#
# The peak memory of the solves in MB, in addition to the data:
#
# .. include:: ../large_memory.inc
#
# Solves run one at a time, each in its own process. ``make benchmark`` repeats the measurements; ``figures/benchmark.csv`` gives
# the reason for each solve that was not run. *planted* has a direction of ten features with noise 0.3; *dense* has Gaussian
# columns without clusters, in which neighbouring columns have correlation 0.7. Columns have mean 0 and variance 1.

# %%
# If X or its factorisation would not fit in memory, `ResourceError` is raised before the work starts. ``result.V`` raises it if
# the dense matrix would not fit; ``result.G``, with V = GG', contains the same information.

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
# **Use a larger λ, or a warm start from one.** Then there are many components, and the problem is solved quickly. As λ decreases,
# the components merge: :func:`diffrac_cvx.paths.lambda_path` uses warm starts in this order.
#
# **Exclude uninformative features.** Features that form their own components at a λ somewhat larger than yours do not interact
# with others there. This is not a proof for your λ, but `certify_v` on all features bounds the loss from excluding them.
#
# **Check the memory of CVXPY.** `solve` estimates it first:

large = dc.datasets.make_planted(2000, 400, noise=0.3, rng=0).X
try:
    dc.solve(dc.v_space(large, penalty=dc.Penalty.l1(0.01)), "SCS", memory_limit=8)
except dc.ResourceError as error:
    print(error)

# %%
# **Use tables larger than memory.** `low_rank`, `fista`, `certify_v`, `certify_labels`, the roundings, the paths and
# `DiffracClustering` (with two clusters) accept, in the same call, a table that is not an array in memory, and never convert it
# to one:
#
# - a **memory map**, ``np.load("rows.npy", mmap_mode="r")``, with at least 40 000 rows and :math:`40 d^2`: rows are read block by
#   block and their memory pages are released;
# - a **table that supports only slicing**, such as a data set of h5py or zarr, with as many rows: an object with a shape, a NumPy
#   dtype and row slices. Whole chunks are read, one at a time;
# - a **dask array** with as many rows: sums over the rows are computed by the workers that hold its chunks, and only sums and
#   small samples of rows are sent. On a cluster (:doc:`/cluster`), persist it first, so that it is not recomputed in every pass.
#   Its chunk sizes must be known: ``X.compute_chunk_sizes()``;
# - a **sparse matrix** of scipy, for word counts and categories: its columns are centred and scaled implicitly. With an
#   l1 penalty this works for many thousands of columns; without one V is dense, which limits the number of columns.
#
# With fewer rows, sample weights, constraints or more than two clusters, the first three types are read into memory; all other
# functions also read them into memory. Tables in other file formats, such as Parquet, become dask arrays by
# ``dask.dataframe.read_parquet("rows.parquet").to_dask_array(lengths=True)``.
#
# The solver reads all rows only a few times: once for every bracket in its history. Between passes it works on a sample.

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
# A dask array is passed in the same way; here its chunks are computed by threads of this process:

import dask.array as da

rows = da.random.default_rng(0).standard_normal((100_000, 10), chunks=(20_000, 10))
rows = da.concatenate(
    [rows[:, :1] + 3.0 * (da.arange(100_000, chunks=20_000)[:, None] < 50_000), rows[:, 1:]],
    axis=1,
)
result = dc.low_rank(rows, tol=1e-4)
print(f"{result.bracket} after {result.history[-1].rows / 100_000:.0f} passes")

# %%
# Here a sparse matrix is passed to an estimator:

counts = scipy.sparse.random_array((2000, 500), density=0.01, rng=rng, format="csr")
model = dc.DiffracClustering(lam=0.1, ridge=0.0).fit(counts)
gap = dc.format_upper(model.result_.gap)
print(f"{len(model.support_)} of 500 columns are selected, certified gap {gap}")

# %%
# The CVXPY builders, more than two clusters, `certify_y`, sample weights and `compare` require an array instead of a sparse
# matrix; the error message names the conversion (``X.toarray()``).
#
# The table shows measurements of ``make scale``, to a certified gap of 0.001, with one thread. *Additional memory* is the peak
# memory of the whole process minus its size before the solve:
#
# .. include:: ../scale.inc
#
# A pass costs about :math:`n d (d + 2r)` multiplications. The number of passes hardly grows with n.
