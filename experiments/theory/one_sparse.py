r"""Proposition 2 numerically, with its own noise: |z| <= R <= 1.

Let X = [y, Z], y balanced, n points, :math:`s_j` the mean square of column j after centring, at most 1 here, and
:math:`V_* = e_1 e_1^\top / (1 + \lambda)^2`.  Every solution has the scores of :math:`V_*`, so that the multiplier of
V >= 0 is :math:`\lambda (U - X^\top X / n)` for a U with ones on the diagonal and entries in [-1, 1] elsewhere.  With
U = X'X/n off the diagonal it is :math:`\lambda \mathrm{Diag}(1 - s_j)`, to which a solution is orthogonal: V has no
entry outside the columns with s_j = 1.  If the noise has none, V_* is the unique solution.  If it has one, that is a
balanced vector of signs, and :math:`e_j e_j^\top / (1 + \lambda)^2` is another solution.
"""

import warnings

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Row
from experiments.theory.noise_columns import LAWS, balanced_points, bound_of, scaled_law


def is_only_sparse_solution(X: Array) -> bool:
    """Return whether V* is the unique solution for X = [y, Z] (centred here), y balanced, all |Z| at most 1 before."""
    return bool(np.all(np.mean((X - X.mean(axis=0))[:, 1:] ** 2, axis=0) < 1 - 1e-9))


def points_of_paper(d: int, m: float, beta: float, R: float) -> tuple[int, int]:
    """Return the even numbers of points required by Proposition 2 (a) and (b)."""
    b = d * R**2 / (m**2 * (beta - 1))
    return even(b * (1 + (d + beta) * m**2)), even(b)


def even(n: float) -> int:
    """Return the next even number."""
    return 2 * int(np.ceil(n / 2))


def measure_one_sparse(law: str, R: float, d: int, replication: int) -> Row:
    """Decide whether V* is the unique solution at the n of Proposition 2, and solve there without the working set.

    With the working set the solver returns V* whenever it is a solution, which would not test uniqueness.
    """
    beta = LAWS[law][0]
    m = R**2 / bound_of(law, 1.0) ** 2
    n_a, n_b = points_of_paper(d, m, beta, R)
    rng = np.random.default_rng([2017, 61, list(LAWS).index(law), int(100 * R), d, replication])
    B = balanced_points(scaled_law(law, m), max(n_a, n_b), d, rng)
    row: Row = {"beta": beta, "m": m, "n_a": n_a, "n_b": n_b}
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        for name, n in (("a", n_a), ("b", n_b)):
            X = B[:n] - B[:n].mean(axis=0)
            result = dc.low_rank(X, 1.0, dc.Penalty.l1(n**-0.5), tol=1e-6, working_set=False)
            row |= {
                f"unique_{name}": int(is_only_sparse_solution(X)),
                f"error_{name}": dc.metrics.clustering_error(B[:n, 0], dc.rounding.kmeans_centered(result.F)),
                f"eigenvalue_ratio_{name}": dc.metrics.eigenvalue_ratio(result.F),
                f"gap_{name}": result.gap,
            }
    return row
