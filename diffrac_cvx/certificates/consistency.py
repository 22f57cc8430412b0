"""Consistency check of lower bounds in the user's units, independent of the code that proves them.

A lower bound on the relaxation also bounds Eq. (9), at any labels and any direction.  So rounded labels with a fitted
direction, neither of which needs to be optimal, refute a bound if their objective is below it.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
import scipy.sparse.linalg

from diffrac_cvx.certificates.values import certified_labels_value, certified_value
from diffrac_cvx.errors import InvalidBoundError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense, is_sparse
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.ranges import is_out_of_range
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalty import Penalty, weights_of

POWER_ITERATIONS = 20  # for the leading eigenvector of Y
LSMR_STEPS, LSMR_TOL = 30, 1e-4  # from 3 to 30 steps; the error of the objective is the tolerance squared
MAX_ENTRIES_READ = 1.2e8  # entries of X that LSMR reads in total, about a second
REWEIGHTING_STEPS = 4  # of iteratively reweighted least squares for the l1 term


def require_consistent(lower: float, objective: float, what: str) -> None:
    """Raise InvalidBoundError, with both numbers, if an objective is below its lower bound."""
    if lower > objective:
        raise InvalidBoundError(
            f"the objective of {what} is at most {objective!r}, below the lower bound {lower!r}, which does not match "
            "these data, nu, penalty and weights. If columns are excluded (n_excluded > 0), it is for X without them.",
            lower=lower,
            objective=objective,
        )


@dataclass(frozen=True, eq=False)
class RoundingBound:
    """Upper bound on Eq. (9) in the user's units, by rounding."""

    X: Table  # (n, d), centred
    nu: float
    penalty: Penalty

    def or_trivial(self, G: Factor) -> tuple[Factor, float]:
        """Return V = GG' with an upper bound on its value, or V = 0, of value 1, if that bound is not below 1.

        With sign constraints, V is replaced by a feasible one nearby.  The rows of G may be large and cancel if the
        scales of the coordinates span the whole range of double precision.
        """
        d = self.X.shape[1]
        pair_penalty = weights_of(self.penalty, d)
        G = (pair_penalty if G.shape[0] == d else pair_penalty.with_offset()).make_feasible(G)
        G = G.sorted_indices() if is_sparse(G) else G  # if SciPy sorted them later, the value would round differently
        value = certified_value(self.X, self.nu, self.penalty, G)
        return (G, value) if value <= 1.0 else (np.zeros((G.shape[0], 1)), 1.0)  # V = 0 for NaN too

    def upper_bound(self, F: Array | None, G: Factor | None) -> float:
        """Return an upper bound on the optimum of Eq. (9), from Y = FF' or V = GG': the objective of rounded labels.

        Infinite if X is streamed, because streamed solvers exclude no columns, or if numbers leave double precision.
        """
        F = None if F is None or len(F) != len(self.X) else F  # F may have rows of points of weight 0
        if self.X.rows.is_streamed or (F is None and G is None):
            return np.inf
        try:
            y = self.round_labels(F, G)
            return np.inf if y is None else self.objective(y)
        except (ArithmeticError, ValueError) as error:
            if not is_out_of_range(error):
                raise
            return np.inf

    def round_labels(self, F: Array | None, G: Factor | None) -> Array | None:
        """Return the signs of the centred leading eigenvector of Y or XVX'; None if there is no such vector."""
        y = np.random.default_rng(0).standard_normal(len(self.X))
        for _ in range(POWER_ITERATIONS):
            image = F @ (F.T @ y) if F is not None else self.apply(cast(Factor, G), y)
            size = float(np.linalg.norm(image))
            if not 0.0 < size < np.inf:
                return None
            y = image / size
        scores = self.X.times_counts(y - self.X.mean_of(y))
        scores = self.X.chunklets.expand(self.X.chunklets.signed_sums(scores))
        return np.where(scores >= 0.0, 1.0, -1.0)

    def apply(self, G: Factor, y: Array) -> Array:
        """Return X V X'y for V = GG', including the offset if G has a last row for it."""
        d = self.X.shape[1]
        offset = dense(G[d:]).ravel() if G.shape[0] > d else np.zeros(G.shape[1])
        weights = np.asarray(G[:d].T @ (self.X.rmatvec(y) * len(y))) + offset * y.sum()
        return np.asarray(self.X @ np.asarray(G[:d] @ weights) + float(offset @ weights))

    def objective(self, y: Array) -> float:
        """Return an upper bound on the objective of labels, at a nearly optimal direction."""
        weights = weights_of(self.penalty, self.X.shape[1])
        v = self.fit_direction(y - self.X.mean_of(y), weights)
        nearest = weights.nearest_direction
        return min(
            certified_labels_value(self.X, sign * y, nearest(sign * v), self.nu, weights)
            for sign in ((1.0,) if weights.is_even else (1.0, -1.0))
        )

    def fit_direction(self, target: Array, weights: PairPenalty) -> Array:
        """Return nearly the minimiser v of |target - X v|^2/n + sum a_i^2 v_i^2 + (sum c_i |v_i|)^2, or its group form.

        The l1 term is the minimum of sum c_i^2 v_i^2 / e_i over e >= 0 with sum 1, at e_i proportional to c_i |v_i|.
        """
        a, c = weights.a, weights.c
        scale = inverse_or_one(np.sqrt(self.X.mean_squares() + a**2 + c**2))
        start = np.abs(self.X.rmatvec(target)) * scale**2
        v = start if start.any() else np.ones(len(start))
        for _ in range(REWEIGHTING_STEPS if c.any() else 1):
            e = c * weights.group_norms(v)
            e = np.maximum(e / max(float(e.sum()), 1e-300), 1e-12)
            v = self.solve_least_squares(target, scale, np.sqrt(a**2 + c**2 / e))
        return v

    def solve_least_squares(self, target: Array, scale: Array, ridge: Array) -> Array:
        """Return nearly the minimiser v of |target - X v|^2/n + sum ridge_i^2 v_i^2, computed in unit columns."""
        n, d = self.X.shape
        units = inverse_or_one(np.sqrt(1.0 / scale**2 + ridge**2))
        X, target = self.X.weighted_rows(), self.X.times_root_counts(target) * n**-0.5
        system = scipy.sparse.linalg.LinearOperator(
            (n + d, d),
            matvec=lambda v: np.append((X @ (units * v.ravel())) * n**-0.5, ridge * units * v.ravel()),
            rmatvec=lambda y: units * (X.rmatvec(y.ravel()[:n]) * n**0.5 + ridge * y.ravel()[n:]),
            dtype=np.float64,
        )
        steps = max(3, min(LSMR_STEPS, int(MAX_ENTRIES_READ / (n * d))))
        found = scipy.sparse.linalg.lsmr(
            system, np.append(target, np.zeros(d)), atol=LSMR_TOL, btol=LSMR_TOL, maxiter=steps
        )[0]
        return np.asarray(found * units)
