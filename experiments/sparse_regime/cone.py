r"""Statistical dimension of the cone that decides the limit of a vanishing penalty: theory for the sparse panels.

On noiseless data V* = vv' solves the unpenalised problem: x_i'V*x_i = 1 for all i.  As lambda falls to 0 the solution
has the smallest |V|_1 among all solutions, and V* is the unique one if and only if no direction Delta != 0 of the
tangent cone of the semidefinite matrices at V* has x_i' Delta x_i = 0 for all i and a directional derivative of |.|_1
at most 0.  In coordinates in which the signal y comes first, x = (y, z), z Gaussian,

.. math:: \Delta = \begin{pmatrix} a & b^\top \\ b & C \end{pmatrix}, \quad C \succeq 0, \qquad
          x^\top \Delta x = a + \mathrm{tr}\, C + 2 y\, b^\top z + (z^\top C z - \mathrm{tr}\, C).

One condition on the mean gives a = -tr C, and the others measure (b, C) at random, with variance 4|b|^2 + 2|C|^2: by
the Frobenius norm.  So the number of points at which V* becomes the only solution should be 1 + delta, delta the
statistical dimension of

.. math:: K = \{(b, C) : C \succeq 0, \ \text{derivative of } |\cdot|_1 \text{ at } V^* \text{ along } \Delta \le 0\},

as for Gaussian measurements (Amelunxen, Lotz, McCoy and Tropp, 2014; for these measurements it is a conjecture).
Without the derivative, 1 + delta = d + d(d-1)/4; with l = 1 it is (d + 1)/2.
"""

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.stats

from diffrac_cvx.typing import Array

STEPS = 300
PRECISION = 1e-6  # relative decrease at which the iterations stop
PATIENCE = 6
SCALE_PRECISION = 1e-3  # for the multiplier of the derivative, relative to the largest entry of the matrix


def draw_dimension(sparsity: int, d: int, rng: np.random.Generator) -> float:
    """Return |projection of a Gaussian matrix onto K|^2, whose mean is the statistical dimension.

    It is the squared distance to the polar cone, {t (Xi - a I) - P}: Xi a subgradient of |.|_1 at V*, P >= 0 on the
    block of C, a = t s its entry at the signal; convex in t, minimised over t >= 0 by Brent's method,
    and for each t over Xi.
    """
    return projected_square(draw_gaussian(d, rng), sparsity)


def projected_square(G: Array, sparsity: int) -> float:
    """Return |projection of G onto K|^2; the multiplier t is often 0 if d is close to the sparsity."""
    rotation = scipy.linalg.hadamard(sparsity) / sparsity**0.5
    largest = float(np.max(np.abs(G)))  # upper bound on t: beyond it the residual on the support only grows
    found = scipy.optimize.minimize_scalar(
        lambda t: polar_distance(G, float(t), rotation),
        bounds=(0.0, largest),
        method="bounded",
        options={"xatol": SCALE_PRECISION * largest},
    )
    _, without_derivative = residual_of(G, np.zeros_like(G), 0.0, rotation)  # t = 0
    return min(float(found.fun), without_derivative)


def draw_gaussian(d: int, rng: np.random.Generator) -> Array:
    """Return a symmetric Gaussian matrix, standard in the Frobenius norm: variance 1 on the diagonal, 1/2 off it."""
    A = rng.standard_normal((d, d))
    upper = np.triu(A, 1) / 2**0.5
    return np.asarray(upper + upper.T + np.diag(np.diag(A)))


def polar_distance(G: Array, t: float, rotation: Array) -> float:
    """Return min |G - t (Xi - s I) + P|^2 over subgradients Xi and P >= 0 on the block of C, without the entry of a.

    T = t Xi is t on the support and in [-t, t] elsewhere; accelerated projected gradient with step 1/2, which is exact
    as the gradient is twice a projection.

    Parameters
    ----------
    G : (d, d) array
        In coordinates in which the signal comes first.
    t : float
        Positive.
    rotation : (l, l) array
        From the support's coordinates to these: orthogonal, its first row flat.
    """
    l = len(rotation)
    T = previous = np.zeros_like(G)
    momentum, best, idle = 1.0, np.inf, 0
    for _ in range(STEPS):
        residual, value = residual_of(G, T, t, rotation)
        idle = 0 if value < best * (1.0 - PRECISION) else idle + 1
        best = min(best, value)
        if idle >= PATIENCE:
            break
        following = T + turn(residual, rotation.T)
        following = np.clip(following, -t, t)
        following[:l, :l] = t
        if np.sum((T - following) * (following - previous)) > 0:
            momentum = 1.0
        after = (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5) / 2.0
        T = following + (momentum - 1.0) / after * (following - previous)
        T[:l, :l] = t
        previous, momentum = following, after
    return min(best, residual_of(G, previous, t, rotation)[1]) if np.any(previous) else best


def residual_of(G: Array, T: Array, t: float, rotation: Array) -> tuple[Array, float]:
    """Return the residual G - L(T) + P at the optimal P, and its squared norm; the entry of a is 0."""
    residual = G - turn(T, rotation)
    residual[np.diag_indices(len(G))] += t * len(rotation)
    residual[0, 0] = 0.0
    values, vectors = np.linalg.eigh(residual[1:, 1:])
    positive = np.maximum(values, 0.0)
    residual[1:, 1:] = (vectors * positive) @ vectors.T
    return residual, float(2.0 * np.sum(residual[0] ** 2) + np.sum(positive**2))


def turn(T: Array, rotation: Array) -> Array:
    """Return the symmetric matrix with its first coordinates rotated."""
    l = len(rotation)
    turned = T.copy()
    turned[:l] = rotation @ T[:l]
    turned[:, :l] = turned[:, :l] @ rotation.T
    return turned


def dimension_bound(sparsity: int, d: int) -> float:
    r"""Return a closed-form upper bound of the statistical dimension: of order (l-1)^2 d log(d / (l-1)^2).

    For T the matrix clipped at t, P = 0, and any t,

    .. math:: \delta \le (l-1) + \tfrac{l(l-1)}2 + (l-1) l^2 t^2 + (d-l) (1 + (l-1)^2 t^2)
              + \big((d-l)(d-l-1) + 2 l (d-l)\big)\, \mathbb{E} \big(|g| / \sqrt2 - t\big)_+^2 .

    It never exceeds that of the cone without the derivative, d - 1 + d(d-1)/4.
    """
    l, rest = sparsity, d - sparsity
    pairs = rest * (rest - 1) + 2 * l * rest

    def bound(t: float) -> float:
        z = t * 2.0**0.5
        tail = (1.0 + z**2) * scipy.stats.norm.sf(z) - z * scipy.stats.norm.pdf(z)  # E (|g| - z)_+^2 / 2
        fixed = (l - 1) + l * (l - 1) / 2 + (l - 1) * (l * t) ** 2
        return float(fixed + rest * (1.0 + ((l - 1) * t) ** 2) + pairs * tail)

    found = scipy.optimize.minimize_scalar(bound, bounds=(1e-3, 12.0), method="bounded")
    return min(float(found.fun), d - 1 + d * (d - 1) / 4)
