r"""
Comparing methods
=================

`compare` runs relaxations, solvers and baselines on the same data. Values of equivalent relaxations are put on one
scale, and every pair of brackets that do not meet is named.
"""

import diffrac_cvx as dc

planted = dc.datasets.make_planted(60, 5, noise=0.3, rng=0)
found = dc.compare(planted.X, planted.y)
found

# %%
# ``found.table`` is a data frame, ``found.results`` holds the solutions, ``found.agreement`` compares the labels.

print(found.agreement.round(2))

# %%
# With an l1 part fewer methods apply, and the notes say which were left out:

print(dc.compare(planted.X, penalty=dc.Penalty.l1(0.05), methods=["low_rank", "v_space/CLARABEL", "penalized_nu/SCS"]))

# %%
# The methods
# -----------
#
# .. include:: ../methods.inc
