r"""
Solvers
=======

.. list-table::
   :header-rows: 1
   :widths: auto

   * - solver
     - problem
     - cost of one step
     - memory
   * - `low_rank`, block decomposition
     - Eq. (15) with c > 0
     - :math:`O(n d)` if V is diagonal, plus :math:`O(n s r)` for each block of size s and rank r; a few checks of all pairs,
       :math:`O(n d^2)` each
     - :math:`O(n d)`
   * - `low_rank`, V on a pattern
     - Eq. (15) with c > 0
     - :math:`O(n m^2 + m^3)`, with m the number of entries of V that may be nonzero, at most 5 d
     - :math:`O(n m + m^2)`
   * - `low_rank`, one block
     - Eq. (15)
     - :math:`O(n d r)`, with r the number of columns of the factor; :math:`O(n d^2 + d^3)` for each certificate
     - :math:`O(n d + d^2)`
   * - `fista`
     - Eq. (15)
     - :math:`O(n d^2 + d^3)`
     - :math:`O(n d + d^2)`
   * - ``fista(variant="published")``
     - Eq. (15), by way of Eq. (21)
     - :math:`O(n d^2 + d^3)`
     - :math:`O(n d + d^2)`
   * - ``solve(relaxation)``
     - any relaxation, through CVXPY
     - depends on CLARABEL or SCS
     - see :doc:`/relaxations`, cost

All return a `Result` with certified bounds. All except ``solve`` use only NumPy and SciPy and run on one thread, except for
passes over many rows: to solve several problems, use several processes.

low_rank
--------
This solver is an extension of the paper. It factorises V = UU', so that V is semidefinite by construction. The problem in U is
not convex, but the bracket refers to the convex problem: a bad point results in a gap above ``tol``, with the corresponding
status, and not in a wrong result.

Several strategies may apply. None is always the fastest, so they race: each gets slices of work in turn, which double from round
to round; the strategy with the smallest certified gap gets a whole slice, and those whose gap is at most three times as large get
an eighth. The others wait until the first ends, or until two of its slices hardly reduce its gap. A bound from one strategy is
valid for all. Work is counted in floating-point operations and calls, never in seconds: the same call gives the same result on
every machine unless a time limit stops it. ``max_iter`` counts the iterations of all strategies.

**Block decomposition** applies with an l1 penalty. Then most pairs of features do not interact, and V is zero between groups of
features. V is diagonal at first. The certificate checks all pairs and joins those that must interact, and the solver continues
with these blocks until the bracket closes: :doc:`components`. No d × d matrix is formed: V is ``G @ G.T`` with a sparse
``result.G``, and ``result.V`` computes the dense matrix on access.

**Working set** applies with 200 features or more and a ridge in addition to the l1 penalty. The problem on forty features, the
working set, is solved as one block. Then the features that would enter alone are added, and those without which the bound for all
features fails. That bound needs :math:`S = t (A + C + \mathrm{Diag}(c)^2) - M \succeq 0`:

- on the working set, C is the solver's multiplier;
- between the working set and a feature outside, the feasible C that keeps S largest is the dual solution of a lasso with the
  matrix of the working set;
- the working set is eliminated; outside it, t C is the sum of M - t A and the Schur complement, clipped to its box. S is then a
  diagonal minus the sparse excess of correlated pairs. It is positive in rows where the diagonal dominates; the other rows are
  checked by a Cholesky factorisation. Directions in which S is negative determine the features that are added.

No d × d matrix is formed. A slightly infeasible multiplier weakens the bound only a little. At an optimum of value v and optimal
scale, g = T = 1 - v. The part of T that is not a penalty is the mean of q, which is at least :math:`g^2`, so the ridge and the l1
penalty together are at most v (1 - v). If :math:`v_e` is the value for penalties multiplied by 1 + e, then
:math:`v \ge v_e - e\, v (1 - v)`, and :math:`v_e` is easier to bound. Relative gaps of .3, .1 and .03 are certified in turn, so
that an interrupted solve has a bound.

**V on a pattern** applies with an l1 penalty and at most as many features as points. V often has full rank but few nonzero pairs.
The unknowns are then the diagonal of V and these pairs, each with its sign at the optimum. A column without an l1 weight, such as
that of the offset, adds a pair of either sign with every feature. A primal-dual interior-point method (with the direction of
Helmberg, Rendl, Vanderbei and Wolkowicz, *SIAM J. Optim.* 6, 1996) minimises

.. math:: 1 - 2 g(V) + \mathrm{tr}\, V (A + C) - \mu \log\det V - \mu \sum_{\mathrm{pairs}} \log |V_{jk}|.

The multiplier S of :math:`V \succeq 0` gives C off the pattern, :math:`C = M - A + S`. Pairs at which C exceeds its bound enter;
if there are few, C is certified and :math:`\mu` decreases. Newton's method takes 20 to 70 steps to a relative gap of 1e-4,
whereas V as one block takes thousands. The strategy ends if more than four pairs per feature enter, because V as one block is
then faster.

**One block** applies to any penalty. It is the only strategy without an l1 penalty or with ``working_set=False``.

1. Scale the columns to norm one; without an l1 penalty, whiten them.
2. For a multiplier :math:`C_0` of the l1 penalty, minimise the augmented Lagrangian over U by L-BFGS,

   .. math:: 1 - 2 g(U U^\top) + \mathrm{tr}\, U U^\top A + \max_{|C_{ij}| \le c_i c_j}
      \Big( \mathrm{tr}\, C U U^\top - \tfrac{1}{2\sigma} \|C - C_0\|_F^2 \Big).

   The initial Hessian approximation is the metric :math:`Z \mapsto Z (U^\top U + \delta I)^{-1}`: along a direction with a small
   component of U the value depends on the square of this component, and in this metric it changes as fast as along other
   directions (Tong, Ma, Chi, *JMLR* 22, 2021). If columns are correlated, the metric also includes A. After ten steps
   :math:`C_0 \leftarrow C`; the memory of L-BFGS is kept, because the curvature hardly changes.
3. Certify, with u and C as dual candidates. Two factorisations refine an inexact point: V is set to 0 where C is strictly inside
   its box, and C is moved towards :math:`A + C - M \succeq 0`. Stop if the gap is at most ``tol``. Otherwise remove the columns
   of U that have vanished, and repeat. If there is no progress at a low rank, append the direction in which the certificate is
   violated most.

**Many rows**, at least 40 000 and at least :math:`40 d^2`, are handled by solving on a sample of m rows, correcting, and
repeating. Let V be the last point, u its weights, and :math:`M_m(u)`, :math:`M_n(u)` the weighted Gram matrices
:math:`X^\top \mathrm{Diag}(u) X` over the sample and over all rows, divided by m and n. The surrogate

.. math:: \min_{V \succeq 0}\ 1 - 2 g_m(V) + \mathrm{tr}\, V \big(A + M_m(u) - M_n(u)\big) + \sum_{ij} c_i c_j |V_{ij}|

has the gradient of Eq. (15) at the last point, so that an optimum of Eq. (15) is a fixed point. It is a problem of the same form.
One pass over all rows at its solution gives the value, the certified bracket and the next surrogate; if a pass does not reduce
the gap by a factor of three, the sample grows by a factor of 2.5. This is multigrid optimisation (MG/OPT: Nash, *Optim. Methods
Softw.* 14, 2000) with two grids, and also the step of DANE (Shamir, Srebro, Zhang, ICML 2014) with one machine. X is neither
copied nor changed. With an l1 penalty the samples have at most half of the rows; if they do not close the gap, the other
strategies continue with a copy of all rows.

fista
-----
This is the paper's algorithm (section 6, appendix G) on a smoothed dual of Eq. (21),

.. math:: \min_{u > 0,\ |C_{ij}| \le c_i c_j} \tfrac{1}{2n} \sum_i \tfrac{1}{u_i}
   + \phi^\varepsilon\big( A^{-1/2} ( \tfrac{1}{2n} X^\top \mathrm{Diag}(u) X - C ) A^{-1/2} \big),
   \qquad \phi^\varepsilon(D) = \varepsilon \log \mathrm{tr}\, e^{D/\varepsilon},

which is at most :math:`\varepsilon \log d` above the unsmoothed one. A step is a gradient step, Newton's method for each
:math:`u_i`, a projection of C, and Nesterov's momentum.

- ``variant="published"``: fixed ε, fixed step 1/L. If ``epsilon`` is given, it also stops by the paper's rule, a gap of Eq. (21)
  of at most :math:`\varepsilon \log d`.
- ``variant="accelerated"``, the default: ε decreases in stages; u and C have separate step sizes; the momentum restarts if it
  points uphill; the ends of the stages are extrapolated to ε = 0.

Both rescale c during the iteration, since Eq. (21) is not Eq. (15) if c > 0 (:doc:`/auto/relaxations/v_space_normalized`).

solve
-----
This solves any relaxation through CVXPY. By default it uses CLARABEL, an interior-point method, for cones of side up to 40 and at
most 100 000 coefficients, and otherwise SCS, a first-order method. Any other installed CVXPY solver can be selected by name. SCS
gets ``tol / 100`` as its tolerances and CLARABEL ``tol / 10000``, since these do not control the certified gap. The size is
checked first: a problem that would not fit in memory raises an error that names a smaller formulation.
"""

import matplotlib.pyplot as plt

import diffrac_cvx as dc
from diffrac_cvx.plotting import BracketDisplay

X = dc.datasets.make_planted(500, 20, noise=0.3, rng=0).X
penalty = dc.Penalty.l1(0.01)
runs = {
    "low_rank": dc.low_rank(X, penalty=penalty, tol=1e-5),
    "fista": dc.fista(X, penalty=penalty, tol=1e-4),
    "fista, published": dc.fista(X, penalty=penalty, variant="published", tol=1e-2),
    "SCS": dc.solve(dc.v_space(X, penalty=penalty), "SCS"),
}
for name, result in runs.items():
    print(f"{name:17} {result.bracket}  {result.n_iter} iterations")
    assert result.lower <= runs["low_rank"].upper
    assert runs["low_rank"].lower <= result.upper

# %%
# The certified gap over time; SCS reports no intermediate points.

BracketDisplay.from_result(*runs.values(), names=list(runs)).plot(against="seconds", gap=True)

# %%
# Stopping
# --------
# All solvers accept ``tol``, the certified gap at which to stop (values lie in [0, 1]), ``max_iter`` and ``time_limit`` in
# seconds; `low_rank` also accepts ``rtol``, a relative gap, for small optimal values. The fast solvers accept a ``callback``,
# which is called with each `Progress`; if it returns a true value, they stop. The time limit, the callback and Ctrl-C act within
# about a second at any size: a single product or factorisation that may take longer runs in a separate thread, which is
# abandoned. The bracket is valid whatever the reason for stopping, and ``result.status`` gives this reason:


def once(progress):
    """Stop as soon as the gap is below a hundredth."""
    return progress.upper - progress.lower < 1e-2


for options in ({"max_iter": 20}, {"callback": once}, {}):
    result = dc.low_rank(X, penalty=penalty, tol=1e-6, **options)
    print(f"gap {dc.format_upper(result.gap)}: {result.status}")

# %%
# .. include:: ../statuses.inc
#
# Warm starts
# -----------
# ``start`` accepts a `Result`, of which V, the components and the multiplier are used, or any V. Along a path this saves steps:

grid = [0.016, 0.014, 0.012, 0.01]
counts = {}
for name in ("cold", "warm"):
    start, counts[name] = None, []
    for lam in grid:
        result = dc.low_rank(X, penalty=dc.Penalty.l1(lam), tol=1e-5, start=start)
        counts[name].append(result.n_iter)
        start = result if name == "warm" else None
    print(f"{name} starts: {counts[name]} steps")
assert sum(counts["warm"]) < sum(counts["cold"])

# %%
# :func:`diffrac_cvx.paths.lambda_path` and the other path functions do this (:doc:`plots_and_paths`), for λ from the largest to
# the smallest: components usually merge along this path, so that one solution is a good warm start for the next. In the reference
# implementation, ``relaxation.at(nu=...)`` changes a parameter without compiling again; CVXPY's own warm starts are not used.
#
# Nonunique solutions
# -------------------
# The optimum need not be unique. Without a penalty and for data in general position, it is not unique below about
# :math:`n = d + d(d-1)/4` points (:doc:`/reproduction`, Figure 1). With an l1 penalty ``low_rank`` then favours sparse solutions
# of low rank, by block decomposition and the working set; ``working_set=False``, which leaves only one block, gives a solution of
# generic rank, as an interior-point method does; ``fista`` gives one of high rank.
#
# :doc:`large` has the benchmark of all solvers; :doc:`/reproduction`, Figure 3, has their times over n and d.

plt.show()
