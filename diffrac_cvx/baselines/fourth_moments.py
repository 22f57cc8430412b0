"""A spectral method: the direction of least kurtosis, from fourth moments of whitened data."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array, as_data
from diffrac_cvx.points.linear_algebra import column_basis, moment, row_products
from diffrac_cvx.rounding.two_clusters import two_means


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

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.

    Raises
    ------
    DataError
        If X cannot be used as given.
    """
    Q = column_basis(as_data(X))
    n, r = Q.shape
    if r == 0:  # all points are equal
        return np.ones(n)
    Z = n**0.5 * Q
    direction = np.linalg.eigh(moment(Z, row_products(Z, Z) - r - 2.0))[1][:, 0]
    return two_means(Z @ direction)
