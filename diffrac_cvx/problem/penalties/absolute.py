r"""The squared l1 norm, relaxed: sum_jk c_j c_k |V_jk|, whose dual set is the box |C_jk| <= c_j c_k."""

from functools import cached_property
from typing import Any

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, scale_rows, sum_of_absolute_products
from diffrac_cvx.points.floating_point import round_up, sum_error
from diffrac_cvx.problem.penalties.coupling import SIDE, Coupling, Expression, sizes_of


class Absolute(Coupling):
    """Weigh the absolute values of the entries of V."""

    is_box = True

    @cached_property
    def box(self) -> Array:
        """The largest C, (D, D): c_i c_j, not rounded up."""
        box = np.outer(self.c, self.c) * SIDE
        if not self.diagonal:
            np.fill_diagonal(box, 0.0)
        return box

    def weighed(self, c: Array) -> "Absolute":
        return Absolute(c, diagonal=self.diagonal)

    def project(self, C: Array) -> Array:
        return np.asarray(np.clip(C, -self.box, self.box))

    def clip(self, C: Array) -> Array:
        if self.c.min(initial=1.0) == 1.0 == self.c.max(initial=1.0):  # relative to the weights: no box is made
            np.clip(C, -SIDE, SIDE, out=C)
            if not self.diagonal:
                np.fill_diagonal(C, 0.0)
            return C
        return np.asarray(np.clip(C, -self.box, self.box, out=C))

    def attaining(self, V: Array, threshold: float, slack: Array) -> Array:
        return np.where(np.abs(V) > threshold * sizes_of(V), self.box * np.sign(V), slack)

    def active(self, V: Array, C: Array) -> Array:
        return np.where(np.abs(C) >= self.box * (1.0 - 1e-12), V, 0.0)

    def value(self, U: Factor) -> float:
        return sum_of_absolute_products(scale_rows(U, self.c))

    def error_of_value(self, U: Factor) -> float:
        # Entry jk is off by sum_error of |U_j||U_k|' at most, and sum_jk of that is a sum of squares over the columns.
        scaled: Any = abs(scale_rows(U, self.c))
        sums = np.asarray(scaled.sum(axis=0)).ravel()
        return round_up(sum_error(U.shape[0] + U.shape[1] + 8) * float(sums @ sums), U.shape[0] + 8)

    def maximum(self, V: Array) -> float:
        return float(np.sum(self.box * np.abs(V)))

    def expression(self, cp: Any, V: Any, scale: Any) -> Expression:
        bound = cp.Variable(V.shape, name="abs_V")
        above, below = bound >= V, bound >= -V

        def multiplier() -> Array | None:
            if above.dual_value is None or below.dual_value is None:
                return None
            return np.asarray(above.dual_value - below.dual_value)

        return Expression(scale * cp.sum(cp.multiply(np.outer(self.c, self.c), bound)), [above, below], multiplier)
