r"""
Comparing methods
=================

`compare` runs relaxations, solvers and baselines on the same data. It converts the values of equivalent relaxations to the scale
of Eq. (15) and reports every pair of certified brackets that do not overlap. It needs the extra ``app``.
"""

import diffrac_cvx as dc

planted = dc.datasets.make_planted(60, 5, noise=0.3, rng=0)
found = dc.compare(planted.X, planted.y)
assert not found.disagreements
found

# %%
# The columns: the certified bounds and their gap, the numerical rank of Y and its second eigenvalue over the first, the
# optimality gap of the rounded labels in Eq. (9) by the best lower bound of all methods, the clustering error of
# each rounding if labels are given, time and iterations. ``time_limit`` is for all methods together.
#
# ``found.table`` is a data frame with these columns, ``found.results`` holds the solutions by name, ``found.labels`` the labels,
# and ``found.notes`` why methods were not run.

print(found.table[["problem", "gap", "iterations"]].head(3))
labels = found.labels
print(
    {
        name: round(1 - dc.metrics.clustering_error(labels["low_rank"], y), 2)
        for name, y in labels.items()
    }
)

# %%
# Penalties and sizes
# -------------------
# The fast solvers and the baselines run first. By default `compare` skips methods that do not accept the
# penalty, whose cone is large, or that need all of their iterations on most tables (``"fista published"``); the last notes list
# them. ``methods=[...]`` selects any of them by name.

penalty = dc.Penalty.l1(0.05)
print(
    dc.compare(
        planted.X,
        penalty=penalty,
        methods=["low_rank", "v_space/SCS", "penalized_nu/SCS", "alternating"],
    )
)

# %%
# Large tables
# ------------
# The name of a relaxation alone selects its CVXPY solver by size: CLARABEL if its matrix has at most 41 rows, otherwise SCS. The
# matrices of (7), (8) and (11) have a row for each point. With 300 points SCS takes about half a minute for each of them; with
# ``time_limit`` it stops earlier, with valid bounds. A longer limit also admits more methods to the default.
#
# ``sample=100`` compares on 100 random rows instead, drawn with the seed ``rng``; ``found.sample`` has their indices. Every number
# is then that of the sample, not that of the table.

large = dc.datasets.make_planted(300, 5, noise=0.3, rng=0)
relaxations = ["constrained_alpha", "penalized_nu", "lifted", "v_space"]
found = dc.compare(large.X, large.y, methods=relaxations, ridge=0.3, sample=30)
print(found.table[["problem", "rows", "value", "gap"]])

# %%
# The methods
# -----------
#
# .. include:: ../methods.inc
#
# On the command line: ``diffrac-cvx compare`` (:doc:`/command_line`).
