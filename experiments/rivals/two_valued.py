"""Projection pursuit for two-valued directions: of whitened data (CURE, kurtosis) or of principal components."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.points.checks import Array, as_data, as_generator, one_of, positive_int
from diffrac_cvx.points.linear_algebra import column_basis, row_products, standardize_columns, weighted_gram
from diffrac_cvx.rounding.two_clusters import kmeans_1d, kmeans_centered
from diffrac_cvx.solvers.factored.solver import low_rank
from experiments.rivals.principal import leading_scores

RANDOM_STARTS = 20  # of the search for a direction
RELAXATION_TOL = 1e-3  # certified gap of the relaxation
RELAXATION_MAX_ITER = 2000  # of the relaxation
LOSS_MAX_ITER = 500  # steps of L-BFGS per run of CURE
QUARTIC_END, LINEAR_START = 2.0, 4.0  # a and b of the loss: quartic up to a, linear from b = 2a


def two_valued_component(
    X: npt.ArrayLike, *, criterion: str = "kurtosis", components: int = 20, rng: np.random.Generator | int
) -> Array:
    r"""Return the labels of exact 2-means along a two-valued component, columns at unit variance, the first at +1.

    The scores of the first principal components are scaled to unit variance.  The criterion selects

    - ``"kurtosis"``: the component of smallest kurtosis, which is 1 for two equally frequent values and 3 for a
      Gaussian; with ``components=1``, the first component whatever its kurtosis;
    - ``"dip"``: the component of largest dip, the distance to the unimodal distributions, which needs diptest;
    - ``"pursuit"``: the linear combination of smallest kurtosis, the best local optimum from each component and from
      twenty random directions;
    - ``"diffrac"``: the labels of the relaxation of these scores without an l1 penalty, from `low_rank` and
      `rounding.kmeans_centered`.

    O(n d min(n, d)), plus less than a second for the selection.

    Source: Pena and Prieto, "Cluster identification using projections", JASA 2001, for the kurtosis; Hartigan and
    Hartigan, Annals of Statistics 1985, for the dip.

    Parameters
    ----------
    criterion : {"kurtosis", "dip", "pursuit", "diffrac"}
        Criterion for two values; default "kurtosis".
    components : int
        Number of components to search; default 20.  At most n/2 are used: with n - 1, every labelling is a direction.

    X, rng and errors are those of `baselines.kmeans_standardized`.
    """
    data = standardize_columns(as_data(X))
    search = PURSUIT_CRITERIA[one_of(criterion, "criterion", PURSUIT_CRITERIA)]
    components, random = positive_int(components, "components"), as_generator(rng)
    if not data.any():  # all points are equal
        return np.ones(len(data))
    n = len(data)
    return search(leading_scores(data, min(components, n // 2)) * n**0.5, random)


def _dip(values: Array) -> float:
    from diptest import dipstat  # here because diptest is an optional dependency

    return float(dipstat(values))


def _by_pursuit(Z: Array, random: np.random.Generator) -> Array:
    starts = np.vstack([np.eye(Z.shape[1]), random.standard_normal((RANDOM_STARTS, Z.shape[1]))])
    found = [scipy.optimize.minimize(kurtosis_along, v, args=(Z,), jac=True, method="L-BFGS-B") for v in starts]
    return kmeans_1d(Z @ min(found, key=lambda end: float(end.fun)).x)


PURSUIT_CRITERIA: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "kurtosis": lambda Z, _: kmeans_1d(Z[:, np.argmin(np.mean(Z**4, axis=0))]),
    "dip": lambda Z, _: kmeans_1d(Z[:, np.argmax([_dip(z) for z in Z.T])]),
    "pursuit": _by_pursuit,
    "diffrac": lambda Z, _: kmeans_centered(low_rank(Z, tol=RELAXATION_TOL, max_iter=RELAXATION_MAX_ITER).F),
}


def kurtosis_along(v: Array, Z: Array) -> tuple[float, Array]:
    """Return the kurtosis of whitened points, (n, r), along a direction, (r,), of any length, and its gradient."""
    length = float(np.linalg.norm(v))
    u = v / length
    scores = Z @ u
    value = float(np.mean(scores**4))
    return value, 4 * (Z.T @ scores**3 / len(Z) - value * u) / length


def cure(X: npt.ArrayLike, *, n_init: int = 10, rng: np.random.Generator | int) -> Array:
    r"""Return the signs of the affine function of smallest loss in several runs, the first point at +1.

    The loss has two wells, at 1 and -1, and a penalty on the mean balances the clusters:

    .. math::
        \min_{\alpha, \beta}\ \tfrac1n \sum_i f(\alpha + \beta^\top x_i)
        + \tfrac12 (\alpha + \beta^\top \bar x)^2, \qquad f(t) = (t^2 - 1)^2 / 4 \text{ for } |t| \le a,

    and f is linear from b = 2a, with a cubic in between that keeps f'' continuous.  The problem is not convex.  Each
    run starts from a random direction, of unit variance on the data, and uses L-BFGS; the authors use perturbed
    gradient descent from one start.  With Gaussian noise, the expected loss has no second-order descent from directions
    without the signal, so that many starts may be needed; noise of larger kurtosis is easier.  The data are whitened
    once, O(n d^2); a step is O(n d).

    Source: Wang, Yan and Diaz, "Efficient clustering for stretched mixtures: landscape and optimality", NeurIPS 2020,
    with a = 2.

    Parameters, except constraints, and errors are those of alternating_optimization.
    """
    Q = column_basis(as_data(X))
    n_init, random = positive_int(n_init, "n_init"), as_generator(rng)
    n, r = Q.shape
    if r == 0:  # all points are equal
        return np.ones(n)
    Z = np.column_stack([np.ones(n), n**0.5 * Q])
    # Projected random vectors of R^n: the starts do not depend on the basis that whitens the data.
    starts = (Q.T @ random.standard_normal(n) for _ in range(n_init))
    points = (np.append(0.0, start / np.linalg.norm(start)) for start in starts)
    runs = (
        scipy.optimize.minimize(loss, at, (Z,), "L-BFGS-B", True, options={"maxiter": LOSS_MAX_ITER}) for at in points
    )
    t = Z @ min(runs, key=lambda run: float(run.fun)).x
    return np.where((t >= 0.0) == (t[0] >= 0.0), 1.0, -1.0)


def spectral_kurtosis(X: npt.ArrayLike) -> Array:
    r"""Return the 2-means labels of whitened data along an eigenvector of their fourth moments, the first point at +1.

    For whitened data z_i, with mean 0 and covariance I in r dimensions, it is the eigenvector of the smallest
    eigenvalue of

    .. math::
        M = \tfrac1n \sum_i (\|z_i\|_2^2 - r - 2)\, z_i z_i^\top .

    The expectation of M is 0 if z is Gaussian, and :math:`(\kappa - 3) u u^\top` if z is Gaussian except for one
    independent coordinate along u, of kurtosis :math:`\kappa`.  Two clusters of equal sizes have :math:`\kappa` near 1;
    if the smaller one has less than 21 % of the points, :math:`\kappa > 3` and the method fails.  O(n d^2).

    Source: the matrix is that of Hopkins, Schramm, Shi and Steurer, STOC 2016, for a planted vector in a subspace, as
    analysed by Mao and Wein, "Optimal spectral recovery of a planted vector in a subspace", 2021; Davis, Diaz and Wang,
    "Clustering a mixture of Gaussians with unknown covariance", 2021, also cluster by a spectral method with O(d^2)
    samples.  This function uses the eigenvector only; `rounding.refine` improves the labels.

    X, (n, d), is centred internally; DataError is raised if it is invalid.
    """
    Q = column_basis(as_data(X))
    n, r = Q.shape
    if r == 0:  # all points are equal
        return np.ones(n)
    Z = n**0.5 * Q
    direction = np.linalg.eigh(weighted_gram(Z, row_products(Z, Z) - r - 2.0))[1][:, 0]
    return kmeans_1d(Z @ direction)


def loss(coefficients: Array, Z: Array) -> tuple[float, Array]:
    """Return the loss and its gradient; the first column of Z, (n, r + 1), is all ones and the others have mean 0."""
    values, slopes = double_well(Z @ coefficients)
    gradient = Z.T @ slopes / len(Z)
    gradient[0] += coefficients[0]
    return float(values.mean() + coefficients[0] ** 2 / 2), gradient


def double_well(t: Array) -> tuple[Array, Array]:
    """Return f and f' at each t: (t^2 - 1)^2/4 up to |t| = a, linear from |t| = b, twice differentiable."""
    a, width = QUARTIC_END, LINEAR_START - QUARTIC_END
    slope, curvature = a**3 - a, 3 * a**2 - 1
    size = np.abs(t)
    near, far = np.minimum(size, a), np.clip(size - a, 0.0, width)
    excess = np.maximum(size - LINEAR_START, 0.0)
    values = (near**2 - 1) ** 2 / 4 + slope * far + curvature * far**2 * (0.5 - far / (6 * width))
    values += (slope + curvature * width / 2) * excess
    derivative = near**3 - near + curvature * far * (1.0 - far / (2 * width))
    return values, np.sign(t) * derivative
