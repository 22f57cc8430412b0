"""Simulated data: two clusters along a sparse direction, and noise columns."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, as_generator, in_unit_interval, nonnegative, one_of, positive_int
from diffrac_cvx.points.linear_algebra import inverse_or_one

DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.uniform(-(3**0.5), 3**0.5, shape),
    "rademacher": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
    "laplace": lambda rng, shape: rng.laplace(scale=0.5**0.5, size=shape),
    "student": lambda rng, shape: 0.6**0.5 * rng.standard_t(5, shape),
}


class Planted(NamedTuple):
    """Data X (n, d), labels y (n,), and the direction v (d,) that separates them: X v = Pi y if noise = 0."""

    X: Array
    y: Array
    v: Array


def make_planted(
    n: int,
    d: int,
    sparsity: int = 1,
    imbalance: float = 0.0,
    noise: float = 0.0,
    *,
    law: str = "gaussian",
    rng: np.random.Generator | int = 0,
) -> Planted:
    r"""Return simulated data with two clusters planted along a sparse direction.

    The signal is y + noise * (a Gaussian vector).  A random rotation mixes the signal with ``sparsity - 1`` noise
    columns to form the first columns; the other noise columns are not mixed.  All columns are centred and divided by
    their root mean square.  Therefore

    .. math::
        X v = \Pi_n (y + \mathrm{noise} \cdot \varepsilon), \qquad v_j = 0 \text{ for } j > \mathrm{sparsity}

    exactly, in the returned coordinates.  At ``sparsity=1`` the first column is the signal itself.

    Source: section 7.1; the noise and its kurtosis, section 5.1.2; unit columns, assumption (A1) of Appendix E.

    Parameters
    ----------
    n, d : int
        Numbers of points, at least 2, and of dimensions.
    sparsity : int
        Number of nonzero entries of v, from 1 to d.
    imbalance : float
        Imbalance (1'y/n)^2, in [0, 1), rounded to the nearest value possible with n points; the larger cluster is +1.
    noise : float
        Standard deviation of the noise on the labels.
    law : {"gaussian", "uniform", "rademacher", "laplace", "student"}
        Distribution of the noise columns, with variance 1; "student" has 5 degrees of freedom.
    rng : numpy.random.Generator or int
        Random number generator, or its seed.

    Raises
    ------
    ParameterError
        If a parameter is outside its range.
    ResourceError
        If the table would not fit in memory.
    """
    n, d, sparsity = positive_int(n, "n"), positive_int(d, "d"), positive_int(sparsity, "sparsity")
    if n < 2:
        raise ParameterError(f"n = {n} must be at least 2.")
    if sparsity > d:
        raise ParameterError(f"sparsity = {sparsity} must be at most d = {d}.")
    entries = 4.0 * n * d + 2.0 * sparsity**2
    require_memory(8.0 * entries, f"a table of {n} points and {d} columns", "decrease n or d")
    noise = nonnegative(noise, "noise")
    draw = DISTRIBUTIONS[one_of(law, "law", DISTRIBUTIONS)]
    random = as_generator(rng)
    imbalance = in_unit_interval(imbalance, "imbalance")
    if imbalance == 1.0:
        raise ParameterError("imbalance = 1 gives a single cluster; it must be less than 1.")
    larger = np.arange((n + 1) // 2, n)  # possible numbers of points labelled +1
    m = larger[np.argmin(np.abs(((2 * larger - n) / n) ** 2 - imbalance))]
    y = random.permutation(np.repeat([1.0, -1.0], [m, n - m]))
    signal = y + noise * random.standard_normal(n)
    columns = np.column_stack([signal, draw(random, (n, d - 1))])
    columns -= columns.mean(axis=0)
    v, Q = np.zeros(d), draw_rotation(sparsity, random)
    columns[:, :sparsity] = columns[:, :sparsity] @ Q
    v[:sparsity] = Q[0]
    scale = np.sqrt(np.mean(columns**2, axis=0))
    return Planted(columns * inverse_or_one(scale), y, v * scale)


def draw_rotation(size: int, rng: np.random.Generator) -> Array:
    """Return a uniformly distributed random rotation (determinant 1), the identity at size 1."""
    Q, R = np.linalg.qr(rng.standard_normal((size, size)))
    Q *= np.sign(np.diag(R))  # without this line the distribution would depend on how QR is computed
    Q[:, 0] *= np.sign(np.linalg.det(Q))
    return Q
