r"""Relaxed sign constraints, v_j >= 0 -> V_jk >= 0 for the pairs of these coordinates: V is doubly nonnegative there.

The dual set is that of another penalty minus any nonnegative matrix on these pairs: C_jk <= c_j c_k, no lower bound.
A single coordinate with v_j >= 0 has no pairs: only directions are constrained.
"""

from functools import cached_property
from typing import Any

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, sum_error
from diffrac_cvx.points.linear_algebra import cholesky, inverse_or_one, momentum, times
from diffrac_cvx.points.points import Indexer, Mask
from diffrac_cvx.problem.penalties.base import IndexArray, OffDiagonalDual, PairPenalty, diagonal_scale


class SignConstraints(PairPenalty):
    """Another penalty with v_j >= 0 for some coordinates, and V_jk >= 0 for the pairs of them."""

    is_even = False
    nonnegative: Mask

    def __init__(self, base: PairPenalty, nonnegative: Mask) -> None:
        super().__init__(base.c, base.labels)
        self.base, self.nonnegative, self.is_box = base, nonnegative, base.is_box
        self.warm_start: Array | None = None  # nonpositive part at the end of the last split of C
        self.indices = np.flatnonzero(nonnegative)
        self.coupled = nonnegative & (len(self.indices) > 1)  # coordinates with pairs

    @cached_property
    def pair_mask(self) -> Mask:
        """Mask of the pairs with V_jk >= 0, (D, D)."""
        mask = np.outer(self.coupled, self.coupled)
        np.fill_diagonal(mask, False)
        return mask

    def with_weights(self, c: Array) -> "SignConstraints":
        return SignConstraints(self.base.with_weights(c), self.nonnegative)

    def restrict(self, indices: Indexer) -> PairPenalty:
        base, nonnegative = self.base.restrict(indices), self.nonnegative[indices]
        return SignConstraints(base, nonnegative) if nonnegative.any() else base

    def with_offset(self) -> "SignConstraints":
        return SignConstraints(self.base.with_offset(), np.append(self.nonnegative, False))

    @property
    def reference_weights(self) -> Array:
        return np.where(self.coupled & (self.c == 0.0), 1.0, self.c)

    def project_safe(self, C: Array) -> Array:
        nonpositive = self.split(C)
        inner = self.base.project_safe(C - nonpositive)
        nonpositive = self.negative_part(C - inner)
        # Rounding of the sum must not make the subtracted part negative.
        return np.asarray(inner + np.where(-nonpositive > 8.0 * UNIT_ROUNDOFF * np.abs(inner), nonpositive, 0.0))

    def project_inexact(self, C: Array) -> Array:
        nonpositive = self.split(C)
        inner = self.base.project_inexact(C - nonpositive)
        np.add(inner, self.negative_part(C - inner), out=C)
        return C

    def split(self, C: Array) -> Array:
        """Return a part of C that is nonpositive on the pairs and makes the rest nearly closest to the base's dual set.

        By accelerated projected gradient steps, from the end of the last split; a box needs none.
        """
        nonpositive = self.negative_part(C - self.base.project_inexact(C.copy()))
        if self.is_box:
            return nonpositive
        nonpositive = nonpositive if self.warm_start is None else self.warm_start
        extrapolated, t, scale = nonpositive, 1.0, float(np.abs(C).max(initial=0.0))
        for _ in range(300):  # projections onto the two sets, until the relative change is small
            previous = nonpositive
            nonpositive = self.negative_part(C - self.base.project_inexact(C - extrapolated))
            step = nonpositive - previous
            if float(np.abs(nonpositive - extrapolated).max(initial=0.0)) <= 1e-12 * scale:
                break
            t, weight = momentum(t) if np.vdot(nonpositive - extrapolated, step) >= 0.0 else (1.0, 0.0)
            extrapolated = nonpositive + weight * step
        self.warm_start = nonpositive
        return nonpositive

    def negative_part(self, C: Array) -> Array:
        """Return the negative part on the pairs, 0 elsewhere."""
        return np.where(self.pair_mask, np.minimum(C, 0.0), 0.0)

    def subgradient(self, V: Array, threshold: float, slack: Array) -> Array:
        above = self.pair_mask & (V <= threshold * diagonal_scale(V))
        return self.project_safe(
            np.where(above, slack, self.base.subgradient(np.where(above, 0.0, V), threshold, slack))
        )

    def zero_inactive(self, V: Array, C: Array) -> Array:
        inner = self.base.project_safe(C)
        thresholded = self.base.zero_inactive(V, inner)
        return np.where(self.pair_mask & ((C < inner) | (thresholded < 0.0)), 0.0, thresholded)

    def value(self, U: Factor) -> float:
        return self.base.value(U)

    def sums_of_norms(self, U: Factor) -> tuple[Array, Array]:
        return self.base.sums_of_norms(U)

    def dual_norms(self, G: Array) -> Array:
        return self.base.dual_norms(np.where(self.pair_mask, np.maximum(G, 0.0), G))

    def support_function(self, V: Array) -> float:
        return self.base.support_function(V)

    def off_diagonal(self, rows: IndexArray, columns: IndexArray) -> OffDiagonalDual:
        """Return the dual set of the other penalty, which is a part of this one."""
        return self.base.off_diagonal(rows, columns)

    def make_feasible(self, U: Factor) -> Factor:
        """Return a factor of a V that is nonnegative on the pairs, rounding included, with a slightly larger diagonal.

        Negative entries of pairs are removed, and their absolute values added to the diagonal; one more column covers
        rounding.
        """
        if self.is_feasible(U):
            return U
        deficit, sizes = self.deficit(U)
        if deficit > 1e-8:  # smaller negative products, relative to the norms of two rows, count as rounding
            U = self.without_negative(dense(U))
            deficit, sizes = self.deficit(U)
        column = np.zeros((U.shape[0], 1))
        column[self.indices, 0] = np.sqrt(deficit * (1.0 + 64.0 * UNIT_ROUNDOFF)) * sizes
        return np.hstack([dense(U), column])

    def without_negative(self, U: Array) -> Array:
        """Return a factor of UU' + N + Diag(sum_k N_jk) >= 0, N the negative part of the pairs."""
        V = times(U, U.T)
        N = -self.negative_part(V)
        V += N
        V[np.diag_indices(len(V))] += N.sum(axis=0)
        scale = inverse_or_one(np.sqrt(np.diag(V)))
        correlations = V * np.outer(scale, scale)
        correlations[np.diag_indices(len(V))] = 1.0 + 1e-13
        try:
            return np.asarray(cholesky(correlations) * np.sqrt(np.diag(V))[:, None])
        except np.linalg.LinAlgError:
            return U

    def deficit(self, U: Factor) -> tuple[float, Array]:
        """Return how negative an entry of the pairs may be, relative to the norms of its rows, and these norms."""
        rows = dense(U[self.indices])
        sizes = np.sqrt(np.sum(rows**2, axis=1))
        unit = rows * inverse_or_one(sizes)[:, None]
        least = float(np.min(times(unit, unit.T), initial=0.0))
        return max(-least, 0.0) + 4.0 * sum_error(U.shape[1] + 8), sizes

    def value_error_bound(self, U: Factor) -> float:
        return self.base.value_error_bound(U) if self.is_feasible(U) else np.inf

    def is_feasible(self, U: Factor) -> bool:
        """Whether the entries of the pairs are certified to be nonnegative."""
        rows = dense(U[self.indices])
        if np.all(rows >= 0.0):
            return True
        sizes = np.sqrt(np.sum(rows**2, axis=1))
        return bool(np.all(times(rows, rows.T) >= sum_error(rows.shape[1] + 8) * np.outer(sizes, sizes)))

    def expression(self, cp: Any, V: Any, scale: Any) -> tuple[Any, list[Any]]:
        if not self.coupled.any():
            return self.base.expression(cp, V, scale)
        value, constraints = self.base.expression(cp, V, scale) if self.c.any() else (cp.Constant(0.0), [])
        return value, [*constraints, V[self.indices, :][:, self.indices] >= 0]

    def multiplier(self, constraints: list[Any]) -> Array | None:
        if not self.coupled.any():
            return self.base.multiplier(constraints)
        *of_base, signs = constraints
        C = self.base.multiplier(of_base) if self.c.any() else self.zero()
        if C is None or signs.dual_value is None:
            return None
        C[np.ix_(self.indices, self.indices)] -= np.asarray(signs.dual_value)
        return C
