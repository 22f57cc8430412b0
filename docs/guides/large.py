r"""
How large can I go
==================

This page says what grows with n and d, what was measured, and what to do where a problem is too large. All of it is about
Eq. (15), the problem in the direction V, a matrix of d × d: the number of points enters through products with X alone.
"""

# %%
# What it costs
# -------------
# The unit is a *Gram pass*, the time of one product :math:`X^\top X`, :math:`n d^2` multiplications. Reading X once costs
# :math:`n d`, a factorisation of a d × d matrix :math:`d^3`.
#
# - **Many points.** Every solver of this package is linear in n, in time and in memory.
# - **Many features, and a sparse penalty.** Where λ is large enough, most features do not act together and V is block diagonal
#   (:doc:`components`). ``low_rank`` solves the blocks, and a problem with thousands of features is then one in a few thousand
#   numbers and not in their squares.
# - **Many features that act together.** With a small λ, or none, V is dense: the memory is that of a few d × d matrices, and
#   the time grows with :math:`d^3`.
# - **Through CVXPY.** The constraints have about :math:`n d^2 / 2` coefficients, and CLARABEL adds a matrix with
#   :math:`d^4 / 4` entries: ``solve`` estimates both and refuses what does not fit, before it builds anything.

# %%
# What was measured
# -----------------
# Seconds to a proved relative gap, :math:`(\mathrm{upper} - \mathrm{lower}) / \mathrm{upper}`, of 0.01 and of 0.0001. A number
# after > is the limit that a solve had; *no*: the method ended without the gap; *not run*: by an estimate of its memory.
#
# .. include:: ../large_seconds.inc
#
# .. include:: ../large_picture.inc
#
# The relative gap that the best answer of each has, and the seconds it took. All answers have been certified again by
# `certify_v`, in a process other than the solver's, and a lower bound found from one answer serves all of them; a star is a
# solver's own bracket where V is too large for that.
#
# .. include:: ../large_gaps.inc
#
# The memory in MB that the solves took at their peak beside the data:
#
# .. include:: ../large_memory.inc
#
# One solve at a time, each in a process of its own; ``make benchmark`` measures it again, and ``figures/benchmark.md`` has the
# number of Gram passes and the reasons of what was not run. *planted* has a direction of ten features with noise 0.3, *dense*
# Gaussian columns of which neighbours have correlation 0.7, without clusters; columns have mean 0 and variance 1.

# %%
# What to do
# ----------
# **Set a limit.** The bracket is valid whenever the solver stops, so a limit of time costs accuracy and not validity. A relative
# gap says more than an absolute one where the optimum is small:

import diffrac_cvx as dc

X = dc.datasets.make_planted(500, 60, sparsity=10, noise=0.3, rng=0).X
for lam in (0.045, 0.0013):
    penalty = dc.Penalty.l1(lam)
    result = dc.low_rank(X, penalty=penalty, tol=1e-4, time_limit=10)
    groups = dc.find_components(X, result, penalty=penalty).max() + 1
    print(f"lambda {lam:<6g} [{result.lower:.5f}, {result.upper:.5f}]  relative gap {result.gap / result.upper:.0e}  "
          f"{groups} components: {result.status}")  # fmt: skip

# %%
# **Start from a large λ.** For large λ there are many components, and the problem is quick. On the way to a smaller one they
# join: :func:`diffrac_cvx.paths.lambda_path` goes that way with warm starts.
#
# **Know what CVXPY would need.** The estimate comes before anything large is made:

large = dc.datasets.make_planted(2000, 400, noise=0.3, rng=0).X
try:
    dc.solve(dc.v_space(large, penalty=dc.Penalty.l1(0.01)), "SCS", memory_limit=8)
except dc.ResourceError as error:
    print(error)

# %%
# **More points than memory holds** are not supported: X is one array in memory. A sample of the rows gives a direction, and
# `certify_v` on more rows says how good that direction is for them:

X = dc.datasets.make_planted(20_000, 20, noise=0.3, rng=0).X
sample = dc.low_rank(X[:2000], penalty=dc.Penalty.l1(0.01), tol=1e-5)
lower, upper = dc.certify_v(X, sample.V, penalty=dc.Penalty.l1(0.01))
print(f"from a tenth of the rows: optimum of all rows in [{lower:.5f}, {upper:.5f}]")
