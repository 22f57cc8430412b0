"""Augmented Lagrangian of the l1 part in the factor U of V = UU', minimised by L-BFGS: no eigendecomposition."""

from collections.abc import Iterator

import numpy as np
import scipy.optimize

from diffrac_cvx.certificates.direction_bounds import Dual, inverse_roots
from diffrac_cvx.certificates.direction_problem import DirectionProblem
from diffrac_cvx.inputs import Array
from diffrac_cvx.linalg import inverse_or_one, moment, principal_columns, row_blocks, row_energies, row_products
from diffrac_cvx.solvers.stopping import Iterate

STIFFNESS = 60.0  # times D: too small costs outer rounds, too large makes the inner problem ill conditioned
INNER = 60  # L-BFGS steps a round; the multiplier is updated before the minimum is exact
STALL = 8  # rounds without progress before the rank is allowed to grow again


def roots_and_pull(X: Array, U: Array) -> tuple[float, Array]:
    """Return sum_i sqrt(q_i) and X' Diag(1/sqrt(q)) X U, q_i = ||x_i'U||^2, in one pass over X."""
    total, pull = 0.0, np.zeros_like(U)
    for block in row_blocks(X):
        XU = block @ U
        roots = np.sqrt(row_products(XU, XU))
        total += float(roots.sum())
        # At x_i'U = 0 the root has no gradient; 0 is in the limit of its subgradients along symmetric directions.
        XU /= np.where(roots > 0.0, roots, 1.0)[:, None]
        pull += block.T @ XU
    return total, pull


class Lagrangian:
    r"""Evaluate min over U of 1 - 2 g(UU') + tr UU'A + max_C [tr C UU' - |C - C0|^2 / (2 sigma)], |C_ij| <= c_i c_j.

    The maximum is attained at C = clip(C0 + sigma UU'); sigma is taken entrywise, in proportion to c_i c_j.
    The diagonal of the l1 part is linear on V >= 0 and is added to A.
    """

    def __init__(self, problem: DirectionProblem, C0: Array | None = None) -> None:
        self.problem = problem
        self.B = problem.A + np.diag(problem.c**2)
        size = len(self.B)
        self.C0 = np.zeros((size, size)) if C0 is None else C0
        self.sigma = STIFFNESS * size * problem.box
        self.inverse_sigma = np.where(self.sigma > 0, inverse_or_one(self.sigma), 0.0)

    def multiplier(self, U: Array) -> Array:
        """Return the maximiser C at U."""
        return np.asarray(np.clip(self.C0 + self.sigma * (U @ U.T), -self.problem.box, self.problem.box))

    def value_and_gradient(self, U: Array) -> tuple[float, Array]:
        """Return the value at U and its gradient 2 (A + C - M) U, M = X' Diag(1/sqrt(q)) X / n."""
        n = len(self.problem.X)
        total, pull = roots_and_pull(self.problem.X, U)
        gain = total / n
        if not self.problem.has_l1:
            BU = self.B @ U
            return float(1 - 2 * gain + np.sum(U * BU)), 2 * BU - (2 / n) * pull
        V = U @ U.T
        C = np.clip(self.C0 + self.sigma * V, -self.problem.box, self.problem.box)
        change = C - self.C0
        KU = (self.B + C) @ U
        value = 1 - 2 * gain + np.sum(U * KU) - np.sum(change * change * self.inverse_sigma) / 2
        return float(value), 2 * KU - (2 / n) * pull

    def minimise(self, U: Array, steps: int) -> tuple[Array, int]:
        """Return U after at most so many L-BFGS steps, and how many there were."""

        def flat(entries: Array) -> tuple[float, Array]:
            value, gradient = self.value_and_gradient(entries.reshape(U.shape))
            return value, gradient.ravel()

        found = scipy.optimize.minimize(
            flat,
            U.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxcor": 10, "maxiter": steps, "maxfun": 3 * steps, "ftol": 0.0, "gtol": 1e-14},
        )
        return np.asarray(found.x).reshape(U.shape), int(found.nit)

    def escape(self, U: Array) -> Array:
        """Append the direction in which the certificate is violated most, so that a rank too small can grow."""
        M = moment(self.problem.X, inverse_roots(row_energies(self.problem.X, U)))
        _, vectors = np.linalg.eigh(M - self.B - self.multiplier(U))
        return np.column_stack([U, 1e-2 * np.sqrt(np.sum(U**2) + 1e-12) * vectors[:, -1:]])


def spread_start(problem: DirectionProblem) -> Array:
    """Return a full-rank start without a preferred direction; a little noise, so that it is not a symmetric point."""
    size = problem.X.shape[1]
    noise: Array = np.random.default_rng(0).standard_normal((size, size))
    start: Array = (np.eye(size) + 1e-2 * noise) / size
    return start


def iterates(
    problem: DirectionProblem, max_iter: int, U: Array | None = None, C: Array | None = None
) -> Iterator[Iterate]:
    """Yield a point and its multiplier after every round, until so many L-BFGS steps are done."""
    point = problem.best_scale(spread_start(problem) if U is None else U)
    done, best, rounds_since = 0, np.inf, 0
    steps = INNER
    while done < max_iter:
        objective = point.value
        lagrangian = Lagrangian(problem, C)
        U = point.U if point.U.any() else spread_start(problem)
        U, taken = lagrangian.minimise(U, min(steps, max_iter - done))
        C = lagrangian.multiplier(U) if problem.has_l1 else None
        done += max(taken, 1)
        U = principal_columns(U, rtol=1e-12)
        point = problem.best_scale(U)
        yield Iterate(U, done, Dual(C=C), point)
        steps = INNER if problem.has_l1 else min(2 * steps, 1000)
        rounds_since = 0 if objective < best - 1e-3 * abs(best) else rounds_since + 1
        best = min(best, objective)
        if rounds_since >= STALL and U.shape[1] < len(U):
            point, rounds_since = problem.best_scale(lagrangian.escape(U)), 0
