r"""Known signs, v_j >= 0, relaxed: V_jk >= 0 for the pairs of these coordinates, so that V is doubly nonnegative there.

The dual set is that of another penalty less any nonnegative matrix on these pairs: C_jk <= c_j c_k, and no lower bound.
"""

from typing import Any

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.floating_point import UNIT, sum_error
from diffrac_cvx.points.linear_algebra import cholesky, inverse_or_one, momentum, times
from diffrac_cvx.points.points import Mask
from diffrac_cvx.problem.penalties.absolute import Absolute
from diffrac_cvx.problem.penalties.coupling import Coupling, Expression, sizes_of

NEARLY = 1e-8  # of the norms of two rows, below which a negative product is taken for rounding
ROUNDS, SETTLED = 300, 1e-12  # of projections on two sets in turn, and the relative change that ends them


class Signs(Coupling):
    """Add V_jk >= 0 for the pairs of some coordinates to another penalty."""

    def __init__(self, base: Coupling, nonnegative: Mask) -> None:
        super().__init__(base.c, diagonal=base.diagonal)
        self.base, self.nonnegative, self.is_box = base, nonnegative, base.is_box
        self.last: Array | None = None  # of the splits of C, where the next one starts
        self.chosen = np.flatnonzero(nonnegative)
        self.pairs = np.outer(nonnegative, nonnegative)
        np.fill_diagonal(self.pairs, False)

    @property
    def reference(self) -> Array:
        return np.where(self.nonnegative & (self.c == 0.0), 1.0, self.c)

    @property
    def relative(self) -> "Signs":
        return self.weighed(np.where(self.nonnegative & (self.c == 0.0), 0.0, 1.0))

    def weighed(self, c: Array) -> "Signs":
        return Signs(self.base.weighed(c), self.nonnegative)

    @property
    def parts(self) -> list[Coupling]:
        """Penalties with multipliers of their own, whose sum is C: one where that is a box."""
        return [self] if self.is_box else [self.base, Signs(Absolute(np.zeros(len(self.c))), self.nonnegative)]

    def project(self, C: Array) -> Array:
        rest = self.split(C)
        inner = self.base.project(C - rest)
        rest = self.negative(C - inner)
        # Rounding of the sum may not leave less than nothing to be taken off.
        return np.asarray(inner + np.where(-rest > 8.0 * UNIT * np.abs(inner), rest, 0.0))

    def clip(self, C: Array) -> Array:
        rest = self.split(C)
        inner = self.base.clip(C - rest)
        np.add(inner, self.negative(C - inner), out=C)
        return C

    def split(self, C: Array) -> Array:
        """Return the part of C that is at most 0 on the pairs, at which the rest is about nearest to the other set.

        By accelerated projected gradient steps, from where the last split ended; a box needs none.
        """
        rest = self.negative(C - self.base.clip(C.copy()))
        if self.is_box:
            return rest
        rest = rest if self.last is None else self.last
        ahead, t, scale = rest, 1.0, float(np.abs(C).max(initial=0.0))
        for _ in range(ROUNDS):
            before = rest
            rest = self.negative(C - self.base.clip(C - ahead))
            step = rest - before
            if float(np.abs(rest - ahead).max(initial=0.0)) <= SETTLED * scale:
                break
            t, weight = momentum(t) if np.vdot(rest - ahead, step) >= 0.0 else (1.0, 0.0)
            ahead = rest + weight * step
        self.last = rest
        return rest

    def negative(self, C: Array) -> Array:
        """Return the negative part of the entries of the pairs, 0 elsewhere."""
        return np.where(self.pairs, np.minimum(C, 0.0), 0.0)

    def attaining(self, V: Array, threshold: float, slack: Array) -> Array:
        above = self.pairs & (V <= threshold * sizes_of(V))
        return self.project(np.where(above, slack, self.base.attaining(np.where(above, 0.0, V), threshold, slack)))

    def active(self, V: Array, C: Array) -> Array:
        inner = self.base.project(C)
        kept = self.base.active(V, inner)
        return np.where(self.pairs & ((C < inner) | (kept < 0.0)), 0.0, kept)

    def value(self, U: Factor) -> float:
        return self.base.value(U)

    def maximum(self, V: Array) -> float:
        return self.base.maximum(V)

    def feasible(self, U: Factor) -> Factor:
        """Return a factor whose entries of the pairs are nonnegative, rounding counted, by little more of the diagonal.

        What is negative is added to both entries of a pair, and its size to the diagonal; one more column takes care of
        rounding.
        """
        if self.is_allowed(U):
            return U
        lacking, sizes = self.lacking(U)
        if lacking > NEARLY:
            U = self.without_negative(dense(U))
            lacking, sizes = self.lacking(U)
        column = np.zeros((U.shape[0], 1))
        column[self.chosen, 0] = np.sqrt(lacking * (1.0 + 64.0 * UNIT)) * sizes
        return np.hstack([dense(U), column])

    def without_negative(self, U: Array) -> Array:
        """Return a factor of UU' + N + Diag(sum_k N_jk) >= 0, N the negative part of the pairs."""
        V = times(U, U.T)
        N = -self.negative(V)
        V += N
        V[np.diag_indices(len(V))] += N.sum(axis=0)
        scale = inverse_or_one(np.sqrt(np.diag(V)))
        correlations = V * np.outer(scale, scale)
        correlations[np.diag_indices(len(V))] = 1.0 + 1e-13
        try:
            return np.asarray(cholesky(correlations) * np.sqrt(np.diag(V))[:, None])
        except np.linalg.LinAlgError:
            return U

    def lacking(self, U: Factor) -> tuple[float, Array]:
        """Return by how much an entry of the pairs may be negative, over the norms of its rows, and these norms."""
        rows = dense(U[self.chosen])
        sizes = np.sqrt(np.sum(rows**2, axis=1))
        unit = rows * inverse_or_one(sizes)[:, None]
        least = float(np.min(times(unit, unit.T), initial=0.0))
        return max(-least, 0.0) + 4.0 * sum_error(U.shape[1] + 8), sizes

    def error_of_value(self, U: Factor) -> float:
        return self.base.error_of_value(U) if self.is_allowed(U) else np.inf

    def is_allowed(self, U: Factor) -> bool:
        """Whether the entries of the pairs are proved to be nonnegative."""
        rows = dense(U[self.chosen])
        if np.all(rows >= 0.0):
            return True
        sizes = np.sqrt(np.sum(rows**2, axis=1))
        return bool(np.all(times(rows, rows.T) >= sum_error(rows.shape[1] + 8) * np.outer(sizes, sizes)))

    def expression(self, cp: Any, V: Any, scale: Any) -> Expression:
        known = V[self.chosen, :][:, self.chosen] >= 0
        without = Expression(cp.Constant(0.0), [], self.zero)
        base = self.base.expression(cp, V, scale) if self.c.any() else without

        def multiplier() -> Array | None:
            C = base.multiplier()
            if C is None or known.dual_value is None:
                return None
            C[np.ix_(self.chosen, self.chosen)] -= np.asarray(known.dual_value)
            return C

        return Expression(base.value, [*base.constraints, known], multiplier)
