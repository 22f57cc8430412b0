r"""When a few informative columns of a wide table reveal two clusters: the law and its bounds.

Columns are standardised, :math:`S = X^\top X / n`, and :math:`\mathrm{pen}(V) = \mathrm{ridge} \cdot \mathrm{tr} V +
\lambda |V|_1`.  The proofs are on the page *When a wide table shows its groups*.  Two numbers decide:

.. math:: c(y) = \min_{v :\ y^\top X v = n} v^\top \tilde S v + \mathrm{pen}(v v^\top), \qquad
          \kappa(\tilde S) = \min_{V \succeq 0} \mathrm{pen}(V) / \mathrm{tr} V \tilde S,

the objective of the true labels, as c / (1 + c), and the lower bound on the cost of variance within the clusters,
:math:`\tilde S = S - m m^\top` with :math:`m = X^\top y / n`.  If V has objective C / (1 + C), at least the fraction
:math:`1 - C / \kappa` of :math:`\mathrm{tr} X V X^\top` is along y, and C is at most c(y).
"""

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special
import scipy.stats

from diffrac_cvx.typing import Array

RIDGE = 0.3
HALVINGS = 12  # bisection steps for the cost of noise
ROUNDING = 1e-10  # added to a diagonal with entries near 1


def group_share(shift: float) -> float:
    """Return m^2, the fraction of the variance of an informative column that lies between the clusters."""
    return shift**2 / (1.0 + shift**2)


def flat_cost(k: int, m: float, lam: float) -> float:
    r"""Return c of the flat direction with infinitely many points; its objective is c / (1 + c).

    .. math:: c = \frac{1 + t^2 + (\mathrm{ridge} / k + \lambda) / m^2}{h(t)^2} - 1, \qquad t^2 = \frac{1 - m^2}{k m^2},
              \qquad h(t) = \mathbb{E} |1 + t z| \ge 1
    """
    t = ((1.0 - m**2) / k) ** 0.5 / m
    h = t * (2 / np.pi) ** 0.5 * np.exp(-1 / (2 * t**2)) + scipy.special.erf(1 / (t * 2**0.5))
    return float((1.0 + t**2 + (RIDGE / k + lam) / m**2) / h**2 - 1.0)


def noise_cost(n: int, d: int, lam: float) -> float:
    r"""Return the predicted :math:`\kappa` of d independent columns of noise, n < d.

    .. math:: \kappa - \lambda + 2 \kappa \sqrt{d / n}\, \sigma(\lambda \sqrt n / \kappa) = \mathrm{ridge}, \qquad
              \sigma(\tau)^2 = \mathbb{E} (|z| - \tau)_+^2

    The excess of :math:`\kappa S` over the dual box is treated as a symmetric matrix of independent entries, whose
    largest eigenvalue is twice the root of d times their variance.
    """

    def excess(kappa: float) -> float:
        tau = lam / kappa * n**0.5
        variance = 2.0 * ((1.0 + tau**2) * scipy.stats.norm.sf(tau) - tau * scipy.stats.norm.pdf(tau))
        return float(kappa - lam + 2.0 * kappa * (d * max(variance, 0.0) / n) ** 0.5 - RIDGE)

    highest = RIDGE + lam
    return highest if excess(highest) <= 0 else float(scipy.optimize.brentq(excess, 1e-9, highest))


def lower_cost(S: Array, lam: float) -> float:
    r"""Return a lower bound on :math:`\kappa(S)` by entrywise soft thresholding, decided by a Cholesky factorisation.

    With B the entries of :math:`\kappa S` clipped to [-lam, lam], and lam on the diagonal, the matrix
    :math:`\mathrm{ridge}\, I + B - \kappa S` is positive semidefinite at the returned number, up to rounding errors.
    """
    low, high = 0.0, RIDGE + lam
    if is_paid(S, high, lam):
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_paid(S, middle, lam) else (low, middle)
    return low


def is_paid(S: Array, kappa: float, lam: float) -> bool:
    """Return whether ridge I + B - kappa S is positive semidefinite, B as in `lower_cost`."""
    room = np.clip(kappa * S, -lam, lam) - kappa * S
    np.fill_diagonal(room, RIDGE + lam - kappa * np.diag(S) + ROUNDING)
    try:
        scipy.linalg.cholesky(room, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return False
    return True


def label_cost(X: Array, y: Array, lam: float) -> float:
    """Return c(y): labels y of mean 0 have objective c / (1 + c) in Eq. (9); needs a ridge or independent columns.

    With v = p - q, p and q nonnegative, it is a nonnegative least-squares problem.
    """
    m = X.T @ y / len(y)
    R = scipy.linalg.cholesky(X.T @ X / len(y) - np.outer(m, m) + RIDGE * np.eye(len(m)))
    signed = np.hstack([np.eye(len(m)), -np.eye(len(m))])
    B = np.vstack([R @ signed, lam**0.5 * np.ones(2 * len(m))])
    target = np.append(scipy.linalg.solve_triangular(R, m, trans=1), 0.0)
    z, _ = scipy.optimize.nnls(B, target)
    return float(1.0 / (m @ signed @ z))


def share_along(X: Array, y: Array, V: Array) -> float:
    """Return the fraction of tr X V X' that is along y."""
    m = X.T @ y / len(y)
    return float(m @ V @ m / np.mean(np.einsum("ij,ij->i", X @ V, X)))


def odds(value: float) -> float:
    """Return c of a value c / (1 + c)."""
    return value / (1.0 - value)
