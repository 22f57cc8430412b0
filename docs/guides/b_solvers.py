r"""
Solvers
=======

``low_rank``
   V = UU', L-BFGS on U, an augmented Lagrangian for the l1 part, a working set of features. A step costs
   :math:`O(n d r)` with r the rank; memory :math:`O(nd + d^2)`. The bracket is that of `certify_v`, so the non-convexity
   of the factored problem cannot produce a wrong answer, only a gap that does not close. The default choice.
``fista``
   The paper's algorithm on the smoothed dual, accelerated: the smoothing decreases in stages, step sizes adapt, the
   momentum restarts, the ends of the stages are extrapolated. An iteration costs :math:`O(n d^2 + d^3)`.
   ``variant="published"`` is the algorithm as printed.
``solve(relaxation, solver)``
   Any relaxation through CVXPY: an interior point (CLARABEL) for cones up to side 40, else SCS. The bracket is
   certified here, whatever the solver says.

All take ``tol``, the proved gap at which to stop, ``time_limit`` and ``max_iter``, and return a `Result`. The fast
ones take ``callback``, which may stop them, and ``start``.
"""

import matplotlib.pyplot as plt

import diffrac_cvx as dc
from diffrac_cvx.plotting import BracketDisplay

X = dc.datasets.make_planted(500, 20, noise=0.3, rng=0).X
penalty = dc.Penalty.l1(0.01)
runs = {
    "low_rank": dc.low_rank(X, penalty=penalty, tol=1e-5),
    "fista": dc.fista(X, penalty=penalty, tol=1e-4),
    "CLARABEL": dc.solve(dc.v_space(X, penalty=penalty), "CLARABEL"),
    "SCS": dc.solve(dc.v_space(X, penalty=penalty), "SCS"),
}
for name, result in runs.items():
    print(f"{name:9} [{result.lower:.6f}, {result.upper:.6f}]  {result.seconds:.3f} s  {result.status}")

# %%

BracketDisplay.from_result(*runs.values(), names=list(runs)).plot(against="seconds", gap=True)

# %%
# A solution starts the next one. Along a path that saves most of the steps:

first = dc.low_rank(X, penalty=dc.Penalty.l1(0.01), tol=1e-5)
for start in (None, first):
    print(dc.low_rank(X, penalty=dc.Penalty.l1(0.012), tol=1e-5, start=start).n_iter, "iterations")

# %%
# Where n is below about d + d(d-1)/4 the solution is not unique. ``low_rank`` then favours one of low rank;
# ``working_set=False`` gives one of generic rank, as an interior point does.
#
# Measured times, at equal proved gaps, are in the `reproduction report <../../reproduction.html>`__.
plt.show()
