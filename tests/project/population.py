"""The sparse problem of Theorem 3, with infinitely many points and a flat direction: three unknowns, by symmetry."""

from collections import namedtuple

import numpy as np
import scipy.linalg
import scipy.optimize

# V = w uu' + e (I_J - uu') + f (I - I_J), u = v/|v|, J the support, and the optimal value
Population = namedtuple("Population", ["w", "e", "f", "value"])


def chi_squared(k, nodes=24):
    """Quadrature nodes and weights for the mean over a chi-squared variable of k > 0 degrees of freedom."""
    at = np.arange(nodes)  # Golub and Welsch: weights of sum 1, even if Gamma(k/2) overflows
    beside = np.sqrt(at[1:] * (at[1:] + k / 2 - 1))
    values, vectors = scipy.linalg.eigh_tridiagonal(2.0 * at + k / 2, beside)
    return 2.0 * values, vectors[0] ** 2


def solve_population(l, d, lam):
    r"""Return the solution as n tends to infinity: X_J = [y, Z] H with a flat first row of H, Gaussian noise.

    .. math:: \min\ 1 - 2\, \mathbb{E} \sqrt{w + e \chi^2_{l-1} + f \chi^2_{d-l}}
              + (1 + \lambda)(w + (l-1) e + (d-l) f) + \lambda (l-1) |w - e|

    The distribution of x is invariant under permutations of the support and of the other coordinates and under signs of
    the latter, and the problem is convex, so some solution has this form.
    """
    (inside, inside_weights), (outside, outside_weights) = chi_squared(l - 1), chi_squared(d - l)
    inside, weights = inside[:, None], inside_weights[:, None] * outside_weights
    linear = (1.0 + lam) * np.array([1.0, l, d - l]) + lam * (l - 1) * np.array([1.0, 0.0, 0.0])

    def objective(x):
        gap, e, f = x  # w = e + gap
        root = np.sqrt(gap + e + e * inside + f * outside + 1e-300)
        slopes = [np.sum(weights / root * slope) for slope in (1.0, 1.0 + inside, outside)]
        return 1.0 - 2.0 * np.sum(weights * root) + linear @ x, linear - slopes

    starts = ([0.9, 0.01 / d, 0.01 / d], [0.1, 0.9 / d, 0.9 / d])
    options = {"jac": True, "bounds": [(0.0, None)] * 3, "method": "L-BFGS-B"}
    tight = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    best = min(
        (scipy.optimize.minimize(objective, x, options=tight, **options) for x in starts), key=lambda run: run.fun
    )
    gap, e, f = best.x
    return Population(e + gap, e, f, best.fun)
