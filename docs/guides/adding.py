r"""
Extending the package
=====================

How to add a relaxation, a solver, a rounding, a penalty, a data container, a data set or an experiment. Each addition is one
small function or class and one record. The code on this page stays outside the package; the last paragraph of each section lists
the files to change inside it.
"""

import numpy as np

import diffrac_cvx as dc

planted = dc.datasets.make_planted(30, 3, noise=0.1, rng=0)
X = planted.X

# %%
# A relaxation
# ------------
# A builder returns a `Relaxation`: a CVXPY problem, a function that reads its solved variable, and its size. That function
# returns a `Solution`: a factor F of Y, a feasible point with its objective, and a certified lower bound, independent of the
# solver's report.
#
# The example is Eq. (8) at ν = 1 with one more constraint, :math:`Y_{ij} \ge b`: two points should be on the same side. With
# :math:`K = \tfrac1n (I - H)`, any μ and any :math:`t \ge 0`,
#
# .. math:: \mathrm{tr}\, K Y \ge 1^\top \mu + t b + n \min\big(0, \lambda_{\min}(K - \mathrm{Diag}(\mu) - t E)\big), \qquad
#    E = \tfrac12 (e_i e_j^\top + e_j e_i^\top),
#
# for all feasible Y. The solver's multipliers are good choices of μ and t. The upper bound needs a feasible point: F with rows of
# norm one, mixed with :math:`1 1^\top` until the constraint is satisfied.

import cvxpy as cp

from diffrac_cvx.relaxations import Relaxation, Size, Solution


def linked(X, i, j, b=0.5):
    """Relax the labellings, with a must-link constraint on two points."""
    X = X - X.mean(axis=0)
    n = len(X)
    K = (np.eye(n) - X @ np.linalg.pinv(X)) / n
    E = np.zeros((n, n))
    E[i, j] = E[j, i] = 0.5
    Y = cp.Variable((n, n), PSD=True)
    unit, link = cp.diag(Y) == 1, Y[i, j] >= b
    problem = cp.Problem(cp.Minimize(cp.trace(K @ Y)), [unit, link])

    def read():
        values, vectors = np.linalg.eigh(Y.value)
        F = vectors * np.sqrt(np.maximum(values, 0.0))
        F /= np.linalg.norm(F, axis=1, keepdims=True)
        lacking = max(b - F[i] @ F[j], 0.0) / (1.0 - F[i] @ F[j])
        F = np.column_stack([np.sqrt(1.0 - lacking) * F, np.full(n, np.sqrt(lacking))])
        upper = np.sum((K @ F) * F)
        mu, t = -unit.dual_value, max(float(link.dual_value), 0.0)
        least = np.linalg.eigvalsh(K - np.diag(mu) - t * E)[0]
        lower = mu.sum() + t * b + n * min(0.0, least)
        return Solution(F=F, value=upper, bracket=dc.Bracket(min(lower, upper), upper))

    size = Size(points=n, side=n, nonzeros=2 * n * n, instead="use penalized_nu")
    return Relaxation("linked", "Eq. (8) with a must-link pair", problem, read, size)


j = int(np.flatnonzero(planted.y != planted.y[0])[0])
free = dc.solve(dc.penalized_nu(X), "SCS", tol=1e-6)
linked_result = dc.solve(linked(X, 0, j), "SCS", tol=1e-6)
for name, result in (("free", free), ("linked", linked_result)):
    tied = result.F[0] @ result.F[j]
    print(f"{name:7} {result.bracket}, Y[0, {j}] = {tied:.3f}; {result.status}")
assert linked_result.status is dc.Status.OPTIMAL
assert linked_result.lower > free.upper

# %%
# A record in ``registry.RELAXATIONS`` registers it for `compare`, the interactive page and the documentation: its equation, a
# summary, the parameters of its builder, the supported penalties, the rows of its matrix, and the bounds on Eq. (15) that its
# bracket implies. An additional constraint increases the minimum, so its upper bound is also an upper bound on (15), but its
# lower bound is not a lower bound.


def from_linked(bounds, task):
    """Return the bounds on the optimum of (15) that the bracket of the linked problem implies."""
    return dc.Bracket(-np.inf, bounds.upper)


dc.registry.RELAXATIONS["linked"] = dc.registry.RelaxationRecord(
    builder=lambda X: linked(X, 0, j), equations=("(8) linked",), summary="two points linked",
    takes=(), penalty=(), rows="n", bounds_15=from_linked,
)  # fmt: skip
found = dc.compare(X, planted.y, methods=["low_rank", "penalized_nu/SCS", "linked/SCS"])
print(found)
assert not found.disagreements
del dc.registry.RELAXATIONS["linked"]

# %%
# Inside the package: a file in ``diffrac_cvx/relaxations/``, its record in ``diffrac_cvx/registry.py`` and its name in
# ``diffrac_cvx/__init__.pyi``. The API reference, `compare`, the interactive page and the tests then include it. A page in
# ``docs/relaxations``, with an example, is added to the others automatically.
#
# A solver
# --------
# A solver of Eq. (15) is a generator of points. The common loop certifies each of them, keeps the best, and decides when to stop;
# the generator needs no tolerances. The example has no l1 penalty. With whitened data Z the optimality condition of V = UU' is
# :math:`U = \tfrac1n \sum_i z_i (z_i^\top U) / \|z_i^\top U\|`; the solver iterates this equation.

from diffrac_cvx.solvers import Iterate, Stopping, solve_by_iterates


def fixed_point(
    X, nu=1.0, penalty=None, *, tol=1e-4, max_iter=10_000, time_limit=None, callback=None
):
    """Solve Eq. (15) without an l1 penalty by a fixed-point iteration."""

    def iterates(problem, start):
        Z = problem.X  # whitened points, with the column of the offset if nu < 1
        U = np.eye(Z.shape[1])
        for done in range(1, max_iter + 1):
            ZU = Z @ U
            U = Z.rmatvec(ZU / np.linalg.norm(ZU, axis=1, keepdims=True))  # Z'Y/n
            yield Iterate(U, done)

    stopping = Stopping(tol, max_iter, time_limit, callback)
    return solve_by_iterates(X, nu, penalty or dc.Penalty(), iterates, stopping, "fixed_point")


for nu in (1.0, 0.5):
    ours, theirs = fixed_point(X, nu), dc.low_rank(X, nu)
    for result in (ours, theirs):
        print(f"nu = {nu}: {result.solver:12} {result.bracket}, {result.n_iter} iterations")
    assert ours.status is dc.Status.OPTIMAL
    assert ours.lower <= theirs.upper
    assert theirs.lower <= ours.upper

# %%
# One record registers it for `compare`, the interactive page and the estimators:

dc.registry.SOLVERS["fixed_point"] = dc.registry.SolverRecord(
    function=fixed_point, penalty=("ridge",)
)
found = dc.compare(X, planted.y, methods=["low_rank", "v_space/SCS", "fixed_point"])
print(found)
model = dc.DiffracClustering(solver="fixed_point").fit(X)
print(f"{model.result_.solver}: clusters of {np.bincount(model.labels_)} points")
del dc.registry.SOLVERS["fixed_point"]
assert not found.disagreements

# %%
# Inside the package: a module in ``diffrac_cvx/solvers/`` that imports neither CVXPY nor a relaxation, and a record in
# ``diffrac_cvx/registry.py``. ``make validate`` then compares the solver with the reference implementation. `certify_v` certifies
# points from any other source, without this loop (:doc:`certificates`).
#
# A rounding
# ----------
# A function from F to labels in {−1, 1}. An entry in ``rounding.ROUNDINGS`` registers it for `compare`.


def by_median(F):
    """Split the leading eigenvector of the centred Y at its median: clusters of equal sizes."""
    leading = np.linalg.svd(F - F.mean(axis=0), full_matrices=False)[0][:, 0]
    return np.where(leading > np.median(leading), 1.0, -1.0)


dc.rounding.ROUNDINGS["by_median"] = by_median
labels = by_median(free.F)
print(f"clustering error {dc.metrics.clustering_error(planted.y, labels):.3f}")
print(f"label gap {dc.format_upper(dc.certify_labels(X, labels, free).gap)}")
table = dc.compare(X, planted.y, methods=["low_rank"]).table
print(table[["error_kmeans_centered", "error_by_median"]])
del dc.rounding.ROUNDINGS["by_median"]

# %%
# Inside the package: ``diffrac_cvx/rounding/two_clusters.py``.
#
# A penalty
# ---------
# A penalty :math:`v^\top Q v` with Q positive definite needs no code: with :math:`Q = L L^\top` and :math:`w = L^\top v` it is
# the ridge :math:`\|w\|_2^2` of the data :math:`X L^{-\top}`, and all bounds for w are valid for v. The example favours similar
# coefficients in neighbouring columns, such as those of a spectrum. CVXPY solves the same problem as stated.

import scipy.linalg

smooth = np.eye(X.shape[1]) - np.eye(X.shape[1], k=1)
Q = 0.1 * np.eye(X.shape[1]) + 0.5 * smooth.T @ smooth
L = np.linalg.cholesky(Q)
in_w = dc.low_rank(scipy.linalg.solve_triangular(L, X.T, lower=True).T, ridge=1.0, tol=1e-8)
V = scipy.linalg.solve_triangular(L.T, scipy.linalg.solve_triangular(L.T, in_w.V).T)

centered = X - X.mean(axis=0)
in_v = cp.Variable(V.shape, PSD=True)
q = cp.sum(cp.multiply(centered @ in_v, centered), axis=1)
reference = cp.Problem(
    cp.Minimize(1 - 2 * cp.mean(cp.sqrt(q)) + cp.mean(q) + cp.trace(Q @ in_v))
)
reference.solve(solver="CLARABEL")
difference = np.abs(V - in_v.value).max()
print(f"{in_w.bracket}, CVXPY {reference.value:.6f}; largest difference of V {difference:.0e}")
assert in_w.lower - 1e-6 <= reference.value <= in_w.upper + 1e-6

# %%
# A penalty on pairs of features that is not quadratic is a class derived from ``PairPenalty``, the l1 norm, whose dual set is the
# box :math:`|C_{jk}| \le c_j c_k`. If the box has other half-widths :math:`r_{jk} c_j c_k`, with r in [0, 1] and 1 on the
# diagonal, the class needs ``half_widths``, which all proofs and solvers call, and three methods that map r to other coordinates.
# In the example, pairs of neighbouring columns are penalised less.

from diffrac_cvx.problem.penalties.base import PairPenalty


class PairWeights(PairPenalty):
    """The sum of r_jk c_j c_k |V_jk|."""

    def __init__(self, c, r, a=None):
        super().__init__(c, a=a)
        self.r = r

    def half_widths(self, j, k):
        return self.r[j, k]

    def with_weights(self, c, a=None):
        return PairWeights(c, self.r, self.a if a is None else a)

    def with_offset(self, a=0.0):
        r = np.pad(self.r, (0, 1), constant_values=1.0)
        return PairWeights(np.append(self.c, 0.0), r, np.append(self.a, a))

    def restrict(self, indices):
        places = np.arange(len(self.c))[indices]
        return PairWeights(self.c[places], self.r[np.ix_(places, places)], self.a[places])


class NeighbourPenalty(dc.Penalty):
    """An l1 penalty with half the weight for neighbouring columns."""

    def pair_penalty(self, d):
        a, c = self.weights(d)
        neighbours = np.eye(d, k=1) + np.eye(d, k=-1)
        return PairWeights(c, 1.0 - 0.5 * neighbours, a)


penalty = NeighbourPenalty(lam=0.1, ridge=0.1)
ours = dc.low_rank(X, penalty=penalty)
theirs = dc.solve(dc.v_space(X, penalty=penalty), "CLARABEL")
print(f"low_rank {ours.bracket}, CVXPY {theirs.bracket}")
assert ours.status is dc.Status.OPTIMAL
assert ours.lower <= theirs.upper
assert theirs.lower <= ours.upper

# %%
# Any other penalty overrides the methods that differ: its value at a factor with its rounding error; the methods of the set K of
# its multipliers (a safe projection onto K, rounding included; an approximate one, for solver steps; the maximiser at a V; the
# entries of V that are 0 because a multiplier is strictly inside K); a feasible factor near an infeasible one; and its value in
# CVXPY. Proofs rely on its declarations: ``is_box``, ``is_even`` and, if K is not a box, that the blocks of K contain
# spectral-norm balls. The base class provides the ridge, groups, directions and their cones. The builders, both fast solvers, the
# certificates and the best directions of labels then support the new penalty; ``group.py`` and ``sign.py`` are examples. Large
# problems need ``off_diagonal``, the multipliers between a working set and the other features. The cutting planes of
# `optimal_labels` and their certificate support the l1 norm only.
#
# Inside the package: a file in ``diffrac_cvx/problem/penalties/``, and a line in ``Penalty.pair_penalty``. With a false
# declaration the bounds are false: ``tests/problem/test_penalty_contract.py`` checks every declaration, and fails for such
# penalties.
#
# A data container
# ----------------
# Solvers and certificates use sums over the points, independent of the storage format. A container is a class that yields its
# rows one block at a time; the base class derives the sums and their error bounds. The bounds assume that each entry has an error
# of a few roundings of itself and that each column has mean zero up to rounding: for a column far from zero, subtract the mean,
# and then the mean of the result. A method that is overridden with another formula must be as accurate as the sum over the rows
# that it replaces. ``means`` returns the subtracted means, which are used to detect columns of pure rounding error. ``__array__``
# returns the table with its means, for weights, constraints and estimators.
#
# Inside the package: one file in ``diffrac_cvx/points/``, and a line each in ``tests/forms.py`` and ``tests/points/test_points.py``,
# which compares every container with the sums of the array.
#
# A strategy of low_rank
# ----------------------
# ``low_rank`` runs several strategies in turn and gives most of the work to the one with the smallest gap, see
# ``diffrac_cvx/solvers/race.py``. A strategy is a file with two functions, a test of whether it applies to a problem and a
# generator, and a line in ``STRATEGIES`` of ``diffrac_cvx/solvers/factored/solver.py``. The generator yields an ``Iterate`` with
# a factor U, a dual point and certified bounds; without bounds it cannot lead the race. First, and wherever else it may be
# paused, it yields a ``Pause``, with the number of operations of its next step if that is large. It calls ``check_deadline`` in
# long loops, counts work outside the package's linear algebra by ``count_work``, and takes at most ``stopping.max_iter`` steps.
# Points may be neither in memory nor dense, and a warm start may be sparse. ``tests/solvers/test_strategy_contract.py``, with a
# case for the strategy, tests it alone, and ``tests/solvers/test_race.py`` tests the race.
#
# A data set
# ----------
# A record contains the description, source and licence of the data set, and the checksum of its file: a gzipped CSV with the
# label last, LIBSVM text, or an ``.npz`` with X and Y. Add the record to ``diffrac_cvx/datasets/catalog.toml``. Put a file that
# may be redistributed into ``diffrac_cvx/datasets/data/``, with its origin in ``experiments/data/origins.py``, from which
# ``make data`` rebuilds it. Any other file is read from the folder ``DIFFRAC_DATA_HOME``; its record needs an address, from which
# ``datasets.fetch`` downloads it.
#
# Your own table needs no record: ``diffrac-cvx cluster table.csv`` (:doc:`/command_line`), or
# `datasets.read_table`.
#
# An experiment
# -------------
# An experiment consists of the cells, a function that measures one cell, a function that plots the table, and the findings:
# tables with a caption, and rules that give a verdict on them. Its command runs the cells in processes of one thread each,
# resumes after an interruption, and writes the table, the figure and the findings. The seed of a cell depends on the cell alone.
# The file below contains a complete experiment; a larger one is a folder with ``cells.py``, ``plot.py`` and ``findings.py``.

FILE = '''
"""Error of the relaxation without a penalty against the noise on the labels."""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc
from experiments.harness import STYLE, Experiment, run, save, with_band
from experiments.harness.findings import Finding, Rule, tabulate


def cells_of(grid):
    noises, replications = ([0.1, 0.5, 0.9], 20) if grid == "full" else ([0.1, 0.9], 3)
    return [{"noise": noise, "replication": r} for noise in noises for r in range(replications)]


def measure(noise, replication):
    rng = np.random.default_rng([2017, int(100 * noise), replication])
    planted = dc.datasets.make_planted(100, 5, noise=noise, rng=rng)
    result = dc.low_rank(planted.X, tol=1e-4)
    labels = dc.rounding.kmeans_centered(result.F)
    return {"gap": result.gap, "error": dc.metrics.clustering_error(planted.y, labels)}


def draw(table, stem):
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(3.2, 2.2))
        with_band(axes, table, "noise", "error", color="black", marker="o")
        axes.set_xlabel("standard deviation of the noise")
        axes.set_ylabel("clustering error")
        save(figure, stem)


GROWTH = Rule(
    "the error grows with the noise",
    "agrees if the mean grows at every step, in part if its last value is above the first",
    lambda table: table["error"].is_monotonic_increasing,
    lambda table: table["error"].iloc[-1] > table["error"].iloc[0],
)


def findings(table):
    means = tabulate(table, ["noise"], {"error": lambda rows: rows["error"].mean()})
    return [Finding("Mean error by the noise", means, [GROWTH])]


EXPERIMENT = Experiment("noise", cells_of, measure, draw, findings)
'''

import contextlib
import sys
import tempfile
from importlib import import_module
from pathlib import Path

with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    Path("noise_experiment.py").write_text(FILE)
    sys.path.insert(0, folder)
    from experiments.harness import run

    status = run(
        import_module("noise_experiment").EXPERIMENT,
        None,
        ["--grid", "smoke", "--jobs", "2", "--out", "."],
    )
    print(sorted(path.name for path in Path().glob("noise.*")))
    sys.path.remove(folder)
assert status == 0

# %%
# Inside the project: a folder in ``experiments/`` with ``cells_of`` and ``measure`` in ``cells.py``, ``findings`` in
# ``findings.py`` and ``draw`` in ``plot.py``, or all in ``cells.py``; ``make NAME`` and ``python -m experiments NAME`` then run
# it, and ``make help`` prints the first line of its docstring. If the module of its findings also has a ``TITLE`` and an
# ``ABOUT``, ``make reproduction`` writes its section of the page :doc:`/beyond`. A result on a statement of the paper is a
# ``Rule`` that names the statement, applied to the table of a ``Finding``; ``tests/experiments/rule_tables`` has tables on which
# it agrees, agrees in part and differs.
