r"""
Adding a relaxation, a solver, a rounding, a data set
=====================================================

Each is one small function or record. The examples are outside the package; the last sentence of each section says where the
same goes inside.
"""

import cvxpy as cp
import numpy as np

import diffrac_cvx as dc

planted = dc.datasets.make_planted(30, 3, noise=0.1, rng=0)
X = planted.X

# %%
# A relaxation
# ------------
# A builder returns a `Relaxation`: a CVXPY problem, a function that reads its solved variable, and its size. Reading means:
# a factor F of Y, a feasible point with its objective, and a lower bound that is proved here and not believed.
#
# The example is Eq. (8) at ν = 1 with one more constraint, :math:`Y_{ij} \ge b`: two points should be on the same side. With
# :math:`K = \tfrac1n (I - H)`, any μ and any :math:`t \ge 0`,
#
# .. math:: \mathrm{tr}\, K Y \ge 1^\top \mu + t b + n \min\big(0, \lambda_{\min}(K - \mathrm{Diag}(\mu) - t E)\big), \qquad
#    E = \tfrac12 (e_i e_j^\top + e_j e_i^\top),
#
# for all feasible Y. The solver's multipliers are good choices of μ and t. The upper bound needs a feasible point: rows of F
# at norm one, mixed with :math:`1 1^\top` until the constraint holds.

from diffrac_cvx.relaxations.relaxation import Reading, Relaxation, Size


def linked(X, i, j, b=0.5):
    """Relax the labellings, asking two points to be on the same side."""
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
        return Reading(F, None, upper, dc.Bracket(min(lower, upper), upper))

    return Relaxation("linked", "Eq. (8) with a link", problem, read, Size(n, n, 2 * n * n, "penalized_nu"))


j = int(np.flatnonzero(planted.y != planted.y[0])[0])
free = dc.solve(dc.penalized_nu(X), "SCS", tol=1e-6)
linked_result = dc.solve(linked(X, 0, j), "SCS", tol=1e-6)
for name, result in (("free", free), ("linked", linked_result)):
    print(
        f"{name:7} [{result.lower:.6f}, {result.upper:.6f}], Y[0, {j}] = {result.F[0] @ result.F[j]:.3f}; {result.status}"
    )
assert linked_result.status is dc.Status.OPTIMAL
assert linked_result.lower > free.upper

# %%
# Inside the package: one file a space in ``diffrac_cvx/relaxations/``, a name in ``diffrac_cvx/relaxations/__init__.py`` and in
# ``diffrac_cvx/__init__.py``, a page here, and an entry in ``diffrac_cvx/compare_methods.py``.
#
# A solver
# --------
# A solver of Eq. (15) is a generator of points. The common loop certifies each of them, keeps the best, and decides when to
# stop; the solver knows nothing of tolerances. The example has no l1 part. With whitened data Z the condition of optimality
# of V = UU' reads :math:`U = \tfrac1n \sum_i z_i (z_i^\top U) / \|z_i^\top U\|`, and repeating it is a solver.

from diffrac_cvx.certificates.direction_problem import direction_problem
from diffrac_cvx.inputs import as_data
from diffrac_cvx.solvers.stopping import Iterate, Start, Stopping, run


def fixed_point(X, nu=1.0, *, tol=1e-4, max_iter=10_000):
    """Solve Eq. (15) without an l1 part by a fixed-point iteration."""
    problem = direction_problem(as_data(X), nu, dc.Penalty())
    Z = problem.X  # whitened, with the column of the offset if nu < 1

    def points():
        U = np.eye(Z.shape[1])
        for done in range(1, max_iter + 1):
            ZU = Z @ U
            U = Z.T @ (ZU / np.linalg.norm(ZU, axis=1, keepdims=True)) / len(Z)
            yield Iterate(U, done)

    return run(problem, Start(), points(), Stopping(tol, max_iter), "fixed_point")


for nu in (1.0, 0.5):
    ours, theirs = fixed_point(X, nu), dc.low_rank(X, nu)
    for result in (ours, theirs):
        print(
            f"nu = {nu}: {result.solver:12} [{result.lower:.6f}, {result.upper:.6f}] after {result.n_iter} iterations"
        )
    assert ours.status is dc.Status.OPTIMAL
    assert ours.lower <= theirs.upper
    assert theirs.lower <= ours.upper

# %%
# One entry makes it part of `compare`, which names every bracket that it does not share with the others:

from diffrac_cvx.comparison.methods import METHODS, Method

METHODS["fixed_point"] = Method("(15)", lambda task: fixed_point(task.X, task.nu, tol=task.tol), takes=())
found = dc.compare(X, planted.y, methods=["low_rank", "v_space/SCS", "fixed_point"])
print(found)
del METHODS["fixed_point"]
assert not found.disagreements

# %%
# Inside the package: a module in ``diffrac_cvx/solvers/`` that imports neither CVXPY nor a relaxation, and a line in
# ``experiments/validate_cells.py``, so that ``make validate`` holds it to the reference path.
#
# A point from anywhere else, without this loop, is judged by `certify_v` (:doc:`certificates`).
#
# A rounding
# ----------
# A function from F to labels in {−1, 1}.


def by_median(F):
    """Split the leading eigenvector of the centred Y at its median: clusters of equal sizes."""
    leading = np.linalg.svd(F - F.mean(axis=0), full_matrices=False)[0][:, 0]
    return np.where(leading > np.median(leading), 1.0, -1.0)


labels = by_median(free.F)
print(f"clustering error {dc.metrics.clustering_error(planted.y, labels):.3f}")
print(f"label gap {dc.certify_labels(X, labels, free).gap:.4f}")

# %%
# Inside the package: ``diffrac_cvx/rounding.py``. An entry in ``rounding.ROUNDINGS`` makes it known to `DiffracClustering` and
# to `compare`.
#
# A data set
# ----------
# A record says what the set is, who made it, under which terms it may be used, and the checksum of its file: a gzipped CSV
# with the label last, LIBSVM text, or an ``.npz`` with X and Y. A set that is not shipped is looked for in the folder that
# ``DIFFRAC_DATA_HOME`` names. Here is one of two points a class:

import gzip
import hashlib
import os
import tempfile
from pathlib import Path

from diffrac_cvx.datasets.catalogue import SETS, DataSet

content = gzip.compress(b"length,width,label\n1.0,2.0,1\n1.1,1.9,1\n3.0,0.5,2\n3.2,0.4,2\n", mtime=0)
SETS["leaves"] = DataSet(
    name="leaves",
    kind="extra",
    file="leaves.csv.gz",
    shipped=False,
    description="Lengths and widths of four leaves; +1 is species 1",
    source="made up for this page",
    licence="CC0",
    n=4,
    d=2,
    classes=(2, 2),
    positive=1.0,
    sha256=hashlib.sha256(content).hexdigest(),
)
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "leaves.csv.gz").write_bytes(content)
    before = os.environ.get("DIFFRAC_DATA_HOME")
    os.environ["DIFFRAC_DATA_HOME"] = folder
    leaves, species = dc.datasets.load("leaves")
    os.environ.pop("DIFFRAC_DATA_HOME") if before is None else os.environ.update(DIFFRAC_DATA_HOME=before)
del SETS["leaves"]
print(leaves, species)
assert list(species) == [1, 1, -1, -1]

# %%
# Inside the package: the record goes to ``diffrac_cvx/datasets/catalogue.py``. A file that may be passed on goes to
# ``diffrac_cvx/datasets/data/``, with its origin in ``experiments/shipped_origins.py``, from which ``make data`` makes it again.
# Any other gets an address, which ``datasets.fetch`` reads.
#
# For a table of your own no record is needed: ``diffrac-cvx cluster table.csv`` (:doc:`/command_line`), or
# `diffrac_cvx.tables.read_table`.
