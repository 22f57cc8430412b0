r"""Relaxed squared l1 norm, sum_jk c_j c_k |V_jk|, with the box |C_jk| <= c_j c_k as its dual set: groups of one."""

from functools import cached_property
from typing import Any

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, abs_gram_matvec, abs_gram_sum, diagonal, scale_rows
from diffrac_cvx.points.floating_point import round_up, sum_error
from diffrac_cvx.problem.penalties.base import (
    INSIDE_BOX,
    Expression,
    IndexArray,
    OffDiagonalDual,
    PairPenalty,
    diagonal_scale,
)
from diffrac_cvx.problem.penalties.lassos import solve_lassos


class L1(PairPenalty):
    """Weighted sum of the absolute values of the entries of V."""

    is_box = splits_into_blocks = has_off_diagonal = True

    @cached_property
    def half_width(self) -> Array:
        """Half-width of the box, (D, D): c_i c_j, not rounded up."""
        half_width = np.outer(self.c, self.c) * INSIDE_BOX
        if not self.diagonal:
            np.fill_diagonal(half_width, 0.0)
        return half_width

    def project_safe(self, C: Array) -> Array:
        return np.asarray(np.clip(C, -self.half_width, self.half_width))

    def project_inexact(self, C: Array) -> Array:
        if self.c.min(initial=1.0) == 1.0 == self.c.max(initial=1.0):  # relative to the weights: no box matrix needed
            np.clip(C, -INSIDE_BOX, INSIDE_BOX, out=C)
            if not self.diagonal:
                np.fill_diagonal(C, 0.0)
            return C
        return np.asarray(np.clip(C, -self.half_width, self.half_width, out=C))

    def subgradient(self, V: Array, threshold: float, slack: Array) -> Array:
        return np.where(np.abs(V) > threshold * diagonal_scale(V), self.half_width * np.sign(V), slack)

    def zero_inactive(self, V: Array, C: Array) -> Array:
        return np.where(np.abs(C) >= self.half_width * (1.0 - 1e-12), V, 0.0)

    def value(self, U: Factor) -> float:
        return abs_gram_sum(scale_rows(U, self.c))

    def value_error_bound(self, U: Factor) -> float:
        # The error of entry jk is at most sum_error times |U_j||U_k|'; their sum over jk is one of squared column sums.
        scaled: Any = abs(scale_rows(U, self.c))
        sums = np.asarray(scaled.sum(axis=0)).ravel()
        return round_up(sum_error(U.shape[0] + U.shape[1] + 8) * float(sums @ sums), U.shape[0] + 8)

    def sums_of_norms(self, U: Factor) -> tuple[Array, Array]:
        return abs_gram_matvec(U, self.c), diagonal(U)

    def support_function(self, V: Array) -> float:
        return float(np.sum(self.half_width * np.abs(V)))

    def dual_norms(self, G: Array) -> Array:
        norms = np.abs(G)
        norms[np.diag_indices(len(norms))] = 0.0
        return norms

    def off_diagonal(self, rows: IndexArray, columns: IndexArray) -> OffDiagonalDual:
        return L1OffDiagonal(self.c[rows], self.c[columns])

    def expression(self, cp: Any, V: Any, scale: Any) -> Expression:
        bound = cp.Variable(V.shape, name="abs_V")
        above, below = bound >= V, bound >= -V

        def multiplier() -> Array | None:
            if above.dual_value is None or below.dual_value is None:
                return None
            return np.asarray(above.dual_value - below.dual_value)

        return Expression(scale * cp.sum(cp.multiply(np.outer(self.c, self.c), bound)), [above, below], multiplier)


class L1OffDiagonal(OffDiagonalDual):
    """Box |C_jk| <= c_j c_k between row coordinates j and column coordinates k."""

    def __init__(self, c_rows: Array, c_columns: Array) -> None:
        self.c_rows, self.c_columns = c_rows, c_columns

    def bound(self, t: float) -> Array:
        """Return t c_j c_k, slightly decreased."""
        return np.asarray(t * INSIDE_BOX * np.outer(self.c_rows, self.c_columns))

    def project_safe(self, tC: Array, t: float) -> Array:
        bound = self.bound(t)
        return np.asarray(np.clip(tC, -bound, bound))

    def violated_columns(self, T: Array, t: float) -> IndexArray:
        return np.flatnonzero((np.abs(T) > self.bound(t)).any(axis=0))

    def prox(self, Z: Array, t: float) -> Array:
        bound = self.bound(t)
        return np.asarray(Z - np.clip(Z, -bound, bound))

    def restrict(self, columns: IndexArray) -> "L1OffDiagonal":
        return L1OffDiagonal(self.c_rows, self.c_columns[columns])

    def best_multiplier(self, P: Array, T: Array, t: float) -> Array:
        return np.asarray(T - P @ solve_lassos(P, T, np.ascontiguousarray(self.bound(t))))
