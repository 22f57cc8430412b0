"""Two values along a direction of whitened data: the least of a loss with two wells (CURE), and of the kurtosis."""

import numpy as np
import numpy.typing as npt
import scipy.optimize

from diffrac_cvx.points.checks import Array, as_data, as_generator, positive_int
from diffrac_cvx.points.linear_algebra import column_basis, moment, row_products
from diffrac_cvx.rounding.two_clusters import two_means

INNER, OUTER = 2.0, 4.0  # a and b of the loss: quartic up to a, linear from b = 2a on


def cure(X: npt.ArrayLike, *, restarts: int = 10, rng: np.random.Generator | int, max_iter: int = 500) -> Array:
    r"""Return the signs of the affine function of least loss, the best of several runs, the first point at +1.

    The loss has two wells, at 1 and -1, and the mean is penalised so that the clusters are balanced:

    .. math::
        \min_{\alpha, \beta}\ \tfrac1n \sum_i f(\alpha + \beta^\top x_i)
        + \tfrac12 (\alpha + \beta^\top \bar x)^2, \qquad f(t) = (t^2 - 1)^2 / 4 \text{ for } |t| \le a,

    and f goes on linearly from b = 2a, through a cubic that keeps f'' continuous.  The problem is not convex.  Each run
    starts from a random direction, of unit variance on the data, and is minimised by L-BFGS; the authors use perturbed
    gradient descent from one start.  Where the noise is Gaussian the expected loss has no descent of second order from
    directions without the signal, and many starts may be needed; noise of larger kurtosis is easier.  The data are
    whitened once, O(n d^2); a step is O(n d).

    Source: Wang, Yan and Diaz, "Efficient clustering for stretched mixtures: landscape and optimality", NeurIPS 2020,
    with a = 2.

    Parameters, without a time limit, and errors are those of alternating_optimisation; max_iter is the most steps.
    """
    Q = column_basis(as_data(X))
    restarts, max_iter = positive_int(restarts, "restarts"), positive_int(max_iter, "max_iter")
    random = as_generator(rng)
    n, r = Q.shape
    if r == 0:  # all points are equal
        return np.ones(n)
    Z = np.column_stack([np.ones(n), n**0.5 * Q])
    # A random vector of R^n projected on the data: the start does not depend on the basis that whitens them.
    starts = (Q.T @ random.standard_normal(n) for _ in range(restarts))
    runs = (
        scipy.optimize.minimize(
            loss, np.append(0.0, start / np.linalg.norm(start)), (Z,), "L-BFGS-B", True, options={"maxiter": max_iter}
        )
        for start in starts
    )
    t = Z @ min(runs, key=lambda run: float(run.fun)).x
    return np.where((t >= 0.0) == (t[0] >= 0.0), 1.0, -1.0)


def spectral_kurtosis(X: npt.ArrayLike) -> Array:
    r"""Return the 2-means labels of whitened data along an eigenvector of their fourth moments, the first point at +1.

    With whitened data z_i, of mean 0 and covariance I in r dimensions, it is the eigenvector of the smallest eigenvalue
    of

    .. math::
        M = \tfrac1n \sum_i (\|z_i\|_2^2 - r - 2)\, z_i z_i^\top .

    M is 0 in expectation where z is Gaussian, and :math:`(\kappa - 3) u u^\top` where it is Gaussian but for one
    independent coordinate along u, of kurtosis :math:`\kappa`.  Two clusters of equal sizes have :math:`\kappa` near 1;
    where the smaller one has less than .21 of the points, :math:`\kappa > 3` and the method fails.  O(n d^2).

    Source: the matrix is that of Hopkins, Schramm, Shi and Steurer, STOC 2016, for a planted vector in a subspace, as
    analysed by Mao and Wein, "Optimal spectral recovery of a planted vector in a subspace", 2021; Davis, Diaz and Wang,
    "Clustering a mixture of Gaussians with unknown covariance", 2021, cluster by a spectral method with O(d^2) samples,
    too.  Here it is the eigenvector alone: `rounding.refine` improves the labels.

    Parameters and errors are those of kmeans_by_column.
    """
    Q = column_basis(as_data(X))
    n, r = Q.shape
    if r == 0:  # all points are equal
        return np.ones(n)
    Z = n**0.5 * Q
    direction = np.linalg.eigh(moment(Z, row_products(Z, Z) - r - 2.0))[1][:, 0]
    return two_means(Z @ direction)


def loss(coefficients: Array, Z: Array) -> tuple[float, Array]:
    """Return the loss and its gradient; the first column of Z, (n, r + 1), is of ones and the others have mean 0."""
    values, slopes = double_well(Z @ coefficients)
    gradient = Z.T @ slopes / len(Z)
    gradient[0] += coefficients[0]
    return float(values.mean() + coefficients[0] ** 2 / 2), gradient


def double_well(t: Array) -> tuple[Array, Array]:
    """Return f and f' at each number: (t^2 - 1)^2/4 up to |t| = a, linear from b on, twice differentiable."""
    a, width = INNER, OUTER - INNER
    slope, curvature = a**3 - a, 3 * a**2 - 1
    size = np.abs(t)
    near, far = np.minimum(size, a), np.clip(size - a, 0.0, width)
    beyond = np.maximum(size - OUTER, 0.0)
    values = (near**2 - 1) ** 2 / 4 + slope * far + curvature * far**2 * (0.5 - far / (6 * width))
    values += (slope + curvature * width / 2) * beyond
    derivative = near**3 - near + curvature * far * (1.0 - far / (2 * width))
    return values, np.sign(t) * derivative
