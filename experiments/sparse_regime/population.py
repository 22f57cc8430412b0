"""The sparse problem with infinitely many points, for a flat direction: three unknowns, by symmetry."""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

from diffrac_cvx.typing import Array

NODES = 24


class Population(NamedTuple):
    """The solution V = w uu' + e (I_J - uu') + f (I - I_J), u = v/|v|, J the support, and the optimal value."""

    w: float
    e: float
    f: float
    value: float


def chi_squared(k: int) -> tuple[Array, Array]:
    """Return quadrature nodes and weights for the mean over a chi-squared variable of k degrees of freedom."""
    if k == 0:
        return np.zeros(1), np.ones(1)
    at = np.arange(NODES)  # Golub and Welsch: weights of sum 1, even if Gamma(k/2) overflows
    beside = np.sqrt(at[1:] * (at[1:] + k / 2 - 1))
    nodes, vectors = scipy.linalg.eigh_tridiagonal(2.0 * at + k / 2, beside)
    return 2.0 * np.asarray(nodes, dtype=np.float64), np.asarray(vectors[0] ** 2, dtype=np.float64)


def solve_population(sparsity: int, d: int, lam: float) -> Population:
    r"""Return the solution as n tends to infinity: X_J = [y, Z] H with a flat first row of H, Gaussian noise.

    .. math:: \min\ 1 - 2\, \mathbb{E} \sqrt{w + e \chi^2_{l-1} + f \chi^2_{d-l}}
              + (1 + \lambda)(w + (l-1) e + (d-l) f) + \lambda (l-1) |w - e|

    The distribution of x is invariant under permutations of the support and of the other coordinates and under signs of
    the latter, and the problem is convex, so some solution has this form.
    """
    l = sparsity
    inside, inside_weights = chi_squared(l - 1)
    outside, outside_weights = chi_squared(d - l)
    weights = inside_weights[:, None] * outside_weights

    def objective(x: Array) -> tuple[float, Array]:
        gap, e, f = x  # w = e + gap
        root = np.sqrt(gap + e + e * inside[:, None] + f * outside + 1e-300)
        mean, inverse = np.sum(weights * root), weights / root
        slopes = np.array([np.sum(inverse), np.sum(inverse * (1.0 + inside[:, None])), np.sum(inverse * outside)])
        trace = np.array([1.0, l, d - l])
        value = 1.0 - 2.0 * mean + (1.0 + lam) * (trace @ x) + lam * (l - 1) * gap
        return float(value), -slopes + (1.0 + lam) * trace + lam * (l - 1) * np.array([1.0, 0.0, 0.0])

    starts = (np.array([0.9, 0.01 / d, 0.01 / d]), np.array([0.1, 0.9 / d, 0.9 / d]))
    bounds = scipy.optimize.Bounds(np.zeros(3), np.full(3, np.inf))
    options: dict[str, Any] = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    minimize: Any = scipy.optimize.minimize  # its stubs do not know jac=True
    runs = [minimize(objective, x, jac=True, bounds=bounds, method="L-BFGS-B", options=options) for x in starts]
    best = min(runs, key=lambda run: float(run.fun))
    gap, e, f = (float(entry) for entry in best.x)
    return Population(e + gap, e, f, float(best.fun))
