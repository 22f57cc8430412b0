r"""Relaxed sign constraints, v_j >= 0 -> V_jk >= 0 for the pairs of these coordinates: V is doubly nonnegative there.

The dual set is that of the l1 norm minus any nonnegative matrix on these pairs: C_jk <= c_j c_k, without a lower bound.
A
single coordinate with v_j >= 0 has no pairs: only directions are constrained.
"""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, sum_error
from diffrac_cvx.points.linear_algebra import cholesky, inverse_or_one, times
from diffrac_cvx.points.rows import Mask
from diffrac_cvx.problem.penalties.base import PairPenalty


class SignConstraints(PairPenalty):
    """The l1 norm with v_j >= 0 for some coordinates, and V_jk >= 0 for pairs of them."""

    is_even = False

    @cached_property
    def indices(self) -> npt.NDArray[np.intp]:
        """Coordinates with a known sign."""
        return np.flatnonzero(self.nonnegative)

    @cached_property
    def pair_mask(self) -> Mask:
        """Mask of the pairs with V_jk >= 0, (D, D)."""
        mask = np.outer(self.nonnegative, self.nonnegative)
        np.fill_diagonal(mask, False)
        return mask

    @property
    def reference_weights(self) -> Array:
        coupled = self.nonnegative & (len(self.indices) > 1)
        return np.where(coupled & (self.c == 0.0), 1.0, self.c)

    @cached_property
    def lower_ends(self) -> Array:
        return np.where(self.pair_mask, -np.inf, -self.half_width)

    def subgradient(self, V: Array, threshold: float, slack: Array) -> Array:
        return super().subgradient(np.where(self.pair_mask, np.maximum(V, 0.0), V), threshold, slack)

    def zero_inactive(self, V: Array, C: Array) -> Array:
        return np.where(self.pair_mask & ((C < 0.0) | (V < 0.0)), 0.0, super().zero_inactive(V, C))

    def dual_norms(self, G: Array) -> Array:
        return super().dual_norms(np.where(self.pair_mask, np.maximum(G, 0.0), G))

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
        """Return a factor of UU' + N + Diag(sum_k N_jk) >= 0, where N is the negative part of the pairs."""
        V = times(U, U.T)
        N = -np.where(self.pair_mask, np.minimum(V, 0.0), 0.0)
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
        """Return a bound on the negative entries of the pairs, relative to the norms of their rows, and these norms."""
        rows = dense(U[self.indices])
        sizes = np.sqrt(np.sum(rows**2, axis=1))
        unit = rows * inverse_or_one(sizes)[:, None]
        least = float(np.min(times(unit, unit.T), initial=0.0))
        return max(-least, 0.0) + 4.0 * sum_error(U.shape[1] + 8), sizes

    def value_error_bound(self, U: Factor) -> float:
        return super().value_error_bound(U) if self.is_feasible(U) else np.inf

    def is_feasible(self, U: Factor) -> bool:
        """Whether the entries of the pairs are certified to be nonnegative."""
        rows = dense(U[self.indices])
        if np.all(rows >= 0.0):
            return True
        sizes = np.sqrt(np.sum(rows**2, axis=1))
        return bool(np.all(times(rows, rows.T) >= sum_error(rows.shape[1] + 8) * np.outer(sizes, sizes)))
