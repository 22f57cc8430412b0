r"""
Comparing methods
=================

`compare` runs relaxations, solvers and baselines on the same data. It puts the values of equivalent relaxations on the scale
of Eq. (15) and names every pair of proved brackets that do not meet. It needs the extra ``app``.
"""

import diffrac_cvx as dc

planted = dc.datasets.make_planted(60, 5, noise=0.3, rng=0)
found = dc.compare(planted.X, planted.y)
assert not found.disagreements
found

# %%
# The columns: the proved bracket and its gap, the numerical rank of Y and its second eigenvalue over the first, the proved
# distance of the rounded labels from the optimum of Eq. (9) by the best lower bound of all methods, the clustering error of
# each rounding where labels are given, time and iterations. ``memory=True`` runs each method in a process of its own and
# adds its peak.
#
# ``found.table`` is a data frame with all of this, ``found.results`` holds the solutions by name, ``found.labels`` the labels,
# ``found.agreement`` their squared correlations.

print(found.table[["problem", "gap", "iterations"]].head(3))
print(found.agreement[0].round(2))

# %%
# Penalties and sizes
# -------------------
# The quick methods run first, and ``finished=`` is told what each has found. A method that does not take the penalty, or whose
# cone is too large to be run without being asked for, is left out, and so is ``"fista published"``, which takes all of its steps
# on most tables; the last notes say so. ``methods=[...]`` asks for any of them by name.

penalty = dc.Penalty.l1(0.05)
print(
    dc.compare(
        planted.X,
        penalty=penalty,
        methods=["low_rank", "v_space/SCS", "penalized_nu/SCS", "alternating"],
    )
)

# %%
# The methods
# -----------
#
# .. include:: ../methods.inc
#
# The same on the command line: :doc:`/command_line`.
