r"""First-order test of uniqueness without a penalty, for random points in hundreds of dimensions.

Points are (y_i, z_i), y_i = +-1.  There is another solution if and only if some C >= 0 of trace 1 with some a and b
has a y_i^2 + 2 y_i b'z_i + z_i'C z_i = 0 for all i (see `experiments.theory.unique_solution`).  Minimising the sum of
squares over a and b leaves r = P (z_i'C z_i), P the projection off the columns y_i^2 and y_i z_i, and FISTA minimises
|r|^2 over C.  The minimum is positive if \sum_i r_i z_i z_i' > 0 for any such r, since its product with C would be
\sum_i r_i z_i'C z_i, which is 0 if there is such a C.  Only this certificate leads to the answer "unique".
"""

from collections.abc import Callable

import numpy as np
import scipy.linalg

from diffrac_cvx.typing import Array

MOST, CHECK_INTERVAL = 6000, 5  # iterations, and those between two checks of the smallest eigenvalue
NONE_LEFT = 1e-9  # root mean square of r below which another solution exists
POSITIVE = 1e-12  # smallest eigenvalue, over n times the root mean square of r, that exceeds rounding errors
POWERS, LONGER = 8, 1.05  # iterations of the power method for the step size, and its safety factor


def is_only_solution(y: Array, Z: Array) -> bool | None:
    """Decide whether the solution is supported by the first coordinate alone; None if undecided in `MOST` iterations.

    Parameters
    ----------
    y : (n,) array
        Labels.
    Z : (n, m) array
        Remaining coordinates.
    """
    n, m = Z.shape
    if n <= m + 1:
        return False
    known, _ = np.linalg.qr(np.column_stack([y**2, y[:, None] * Z]))

    def residual_of(C: Array) -> Array:
        forms = np.einsum("ij,ij->i", Z @ C, Z)
        return np.asarray(forms - known @ (known.T @ forms))

    def gradient_of(r: Array) -> Array:
        return np.asarray(Z.T @ (r[:, None] * Z))

    curvature = largest_curvature(lambda C: gradient_of(residual_of(C)), m)
    C = ahead = np.eye(m) / m
    r = r_ahead = residual_of(C)
    momentum = 1.0
    for k in range(MOST):
        following = nearest_of_trace_one(ahead - gradient_of(r_ahead) / curvature)
        r_next = residual_of(following)
        size = float(np.linalg.norm(r_next))
        if size <= NONE_LEFT * n**0.5:
            return False
        if k % CHECK_INTERVAL == 0:
            least = scipy.linalg.eigh(gradient_of(r_next), eigvals_only=True, subset_by_index=[0, 0])[0]
            if least > POSITIVE * n**0.5 * size:
                return True
        if np.sum((ahead - following) * (following - C)) > 0:
            momentum = 1.0
        after = (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5) / 2.0
        extrapolation = (momentum - 1.0) / after
        ahead, r_ahead = following + extrapolation * (following - C), r_next + extrapolation * (r_next - r)
        C, r, momentum = following, r_next, after
    return None


def largest_curvature(apply: Callable[[Array], Array], m: int) -> float:
    """Return the largest eigenvalue of a map on symmetric matrices of side m, by the power method, with a margin."""
    rng = np.random.default_rng(2017)
    E = rng.standard_normal((m, m))
    E = E + E.T
    for _ in range(POWERS):
        E = apply(E / np.linalg.norm(E))
    return LONGER * float(np.linalg.norm(E))


def nearest_of_trace_one(A: Array) -> Array:
    """Return the nearest positive semidefinite matrix of trace 1."""
    values, vectors = np.linalg.eigh(A)
    falling = values[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(A) + 1)
    values = np.maximum(values - excess[np.nonzero(falling > excess)[0][-1]], 0.0)
    return np.asarray((vectors * values) @ vectors.T)
