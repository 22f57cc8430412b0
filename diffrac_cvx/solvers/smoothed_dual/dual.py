"""Smoothed dual of Eq. (21): value, gradient, proximal operator, Lipschitz constant (section 6, appendix G)."""

from functools import cached_property

import numpy as np

from diffrac_cvx.certificates.search import top_eigenvalue
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import LARGE_SIZE, eigh, times
from diffrac_cvx.points.points import Points
from diffrac_cvx.problem.penalties.base import INSIDE_BOX, PairPenalty


class BoxWithDiagonal(PairPenalty):
    """The l1 norm with its diagonal in the maximum, as in (21): |C_jk| <= c_j c_k also where j = k."""

    @cached_property
    def half_width(self) -> Array:
        return np.outer(self.c, self.c) * INSIDE_BOX

    def project_inexact(self, C: Array) -> Array:
        return np.asarray(np.clip(C, -self.half_width, self.half_width, out=C))


class SmoothedDual:
    r"""Problem  min over u > 0, C in the dual set  of  mean(1/u)/2 + phi_eps(W'(X' Diag(u) X / (2n) - C) W).

    The smooth term is phi_eps(D) = eps log tr exp(D / eps); the rest is separable.

    Parameters
    ----------
    X : Points
        Rows, (n, D).
    W : (D, r) array
        W'NW = I for the normaliser N of tr NV = 1: A in the paper, A + Diag(c)^2 if accelerated.
    pair_penalty : PairPenalty
        Defines the set of C; zero on the diagonal if N contains Diag(c)^2.
    """

    def __init__(self, X: Points, W: Array, pair_penalty: PairPenalty) -> None:
        self.X, self.W, self.pair_penalty, self.Z = X, W, pair_penalty, X.in_basis(W)
        self.nonzero_rows = ~self.Z.zero_rows()

    def separable_part(self, u: Array) -> float:
        """Return mean(1/u)/2 over the nonzero rows; the optimal u of a zero row is infinite."""
        return float(np.sum(1.0 / u[self.nonzero_rows])) / (2 * len(u))

    def matrix(self, u: Array, C: Array) -> Array:
        """Return D = W'(X' Diag(u) X / (2n) - C) W, linear in (u, C)."""
        D = self.Z.weighted_gram(u) / 2
        return D - times(self.W.T, times(C, self.W)) if C.any() else D

    def gradients(self, root: Array) -> tuple[Array, Array, Array]:
        """Return the factor U of V = W Q W' and the gradients of phi_eps in u and C, from a root of Q = phi_eps'(D)."""
        U = times(self.W, root)
        grad_C = -times(U, U.T)  # the paper's appendix drops this minus
        return U, self.Z.quadratic_forms(root) / (2 * len(self.Z)), grad_C

    def l1(self, U: Array) -> float:
        """Return the l1 term: the maximum of tr CUU' over the dual set."""
        return self.pair_penalty.support_function(times(U, U.T))

    def curvature_u(self, steps: int = 30, units: Array | None = None) -> float:
        """Bound the curvature of eps phi_eps in u, or in u / units: lambda_max(B'B o B'B), B = W'X' / sqrt(2n).

        The n x n matrix is nonnegative, so the largest ratio of a power step bounds its top eigenvalue from above.
        This costs O(n d^2) instead of O(max(n, d)^3) in the paper.
        """
        w, bound = np.ones(len(self.Z)), np.inf
        image_of = self.Z.squared_products(np.ones(len(self.Z)) if units is None else units)
        for _ in range(steps):
            check_deadline()
            image = image_of(w)
            live = image > 0
            if not live.any():
                return 0.0
            bound = min(bound, float(np.max(image[live] / w[live])))
            w = np.where(live, image / image.max() + 1e-12, 1.0)
        return bound

    def curvature_C(self) -> float:
        """Bound the curvature of eps phi_eps in C: lambda_max(W W')^2."""
        return top_eigenvalue(times(self.W.T, self.W)) ** 2

    def lipschitz(self, eps: float) -> float:
        """Return the Lipschitz constant of the gradient of the smooth part, with the paper's factor 2."""
        return 2.0 / eps * max(self.curvature_u(), self.curvature_C())


def softmax_value(D: Array, eps: float) -> float:
    """Return eps log tr exp(D / eps), computed from the eigenvalues only."""
    check_deadline(3.0 * float(len(D)) ** 3 if len(D) > LARGE_SIZE else 0.0)
    theta = np.linalg.eigvalsh(D)
    return float(theta[-1] + eps * np.log(np.exp((theta - theta[-1]) / eps).sum()))


def softmax_root(D: Array, eps: float) -> tuple[float, Array]:
    """Return eps log tr exp(D / eps) and a square root of its gradient, the density exp(D / eps) / tr exp(D / eps)."""
    theta, vectors = eigh(D)
    weights = np.exp((theta - theta[-1]) / eps)
    total = weights.sum()
    keep = weights > 1e-18 * total
    return float(theta[-1] + eps * np.log(total)), vectors[:, keep] * np.sqrt(weights[keep] / total)


def prox_inverse(v: Array, step: float | Array, n: int) -> Array:
    """Return argmin over u > 0 of (u - v)^2 / (2 step) + 1 / (2 n u), up to rounding.

    It is the positive root of a u^3 - a v u^2 - 1, a = 2n / step.  Newton's method starts to the right of the root,
    where the cubic is convex and increasing; the paper's starting point fails for v far below 0.
    """
    a = 2 * n / step
    right = a ** (-1 / 3)
    u = np.maximum(v, 0.0) + np.minimum(right, 1 / np.sqrt(a * np.maximum(-v, a ** (-1 / 3))))
    for _ in range(60):
        new = u - (a * u**2 * (u - v) - 1) / (a * u * (3 * u - 2 * v))
        if np.all(np.abs(new - u) <= 1e-15 * u):
            break
        u = new
    return np.asarray(u)
