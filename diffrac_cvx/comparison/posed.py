"""Problem (15) as arrays, and the problems that common mistakes solve in its place."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from diffrac_cvx.comparison.instances import Instance
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.relaxations.stated_directions import least_over_directions


class PosedProblem(NamedTuple):
    r"""Problem (15), or a wrong version of it.

    .. math::
        \min_{V \succeq 0}\ 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \mathrm{tr}\, A V + \sum_{ij} C_{ij} |V_{ij}|

    with rows X (n, m), the last column of which is 1 if nu < 1, A = X'X/n + Diag(ridge) with ridge (m,), and pair
    weights C (m, m).
    """

    rows: Array
    ridge: Array
    pair_weights: Array

    def of_shape(self, V: Array) -> Array:
        """Return V with as many columns as the rows: a missing offset is zero, and another one is left out."""
        m = self.rows.shape[1]
        padded = np.zeros((m, m))
        k = min(m, len(V))
        padded[:k, :k] = V[:k, :k]
        return padded

    def terms(self, V: Array) -> tuple[float, float]:
        """Return the mean of sqrt(x_i'V x_i), and the terms that are linear in a multiple of V."""
        V = self.of_shape(V)
        squares = np.maximum(np.einsum("ij,jk,ik->i", self.rows, V, self.rows), 0.0)
        penalty = self.ridge @ np.diag(V) + np.sum(self.pair_weights * np.abs(V))
        return float(np.mean(np.sqrt(squares))), float(np.mean(squares) + penalty)

    def objective(self, V: Array) -> float:
        """Return the objective at V without rescaling it."""
        mean_sqrt, linear = self.terms(V)
        return 1.0 - 2.0 * mean_sqrt + linear

    def labels_objective(self, F: Array) -> float:
        r"""Return the objective at labels F (n, r), minimised over directions G (m, r); NaN with pair weights.

        .. math:: \min_G\ \tfrac1n \|F - X G\|_F^2 + \sum_j \mathrm{ridge}_j \|g_j\|^2

        Its minimum over F with rows of norm 1 is that of the objective in V = GG'.
        """
        if self.pair_weights.any():
            return np.nan
        n, m = self.rows.shape
        units = np.sqrt(np.mean(self.rows**2, axis=0) + self.ridge)
        scale = inverse_or_one(units)
        rows = np.vstack([self.rows / n**0.5, np.diag(self.ridge**0.5)]) * scale
        targets = np.vstack([F / n**0.5, np.zeros((m, F.shape[1]))])
        return float(np.sum((targets - rows @ np.linalg.lstsq(rows, targets, rcond=1e-12)[0]) ** 2))

    def best_multiple(self, V: Array) -> tuple[float, float]:
        """Return the factor t >= 0 that minimises the objective at tV, and this objective."""
        mean_sqrt, linear = self.terms(V)
        if linear <= 0.0:
            return 0.0, 1.0
        return (mean_sqrt / linear) ** 2, 1.0 - mean_sqrt**2 / linear

    def minimum(self) -> float:
        """Return the least objective that CLARABEL finds, infinite without a solution."""
        return least_over_directions(self.rows, self.ridge, self.pair_weights)


def pose(
    instance: Instance,
    *,
    is_centred: bool = True,
    offset_ridge: Callable[[float], Any] = lambda nu: nu / (1.0 - nu),
    change_a: Callable[[Array], Array] = np.asarray,
    change_c: Callable[[Array], Array] = np.asarray,
    change_pairs: Callable[[Array], Array] = np.asarray,
) -> PosedProblem:
    """Return problem (15) of an instance, or with a change that a solver might make by mistake.

    ``offset_ridge`` maps nu < 1 to the weight of the squared offset, the ``change`` functions a, c and cc'.
    """
    X, nu, penalty = instance
    a, c = penalty.weights(X.shape[1])
    rows = X - X.mean(axis=0) if is_centred else X
    ridge, c = change_a(a) ** 2, change_c(c)
    pair_weights = change_pairs(np.outer(c, c))
    if nu == 1.0:
        return PosedProblem(rows, ridge, pair_weights)
    rows, ridge = np.column_stack([rows, np.ones(len(X))]), np.append(ridge, offset_ridge(nu))
    return PosedProblem(rows, ridge, np.pad(pair_weights, (0, 1)))


def without_offset(instance: Instance) -> PosedProblem:
    """Return problem (15) at nu = 1."""
    return pose(instance._replace(nu=1.0))


def off_diagonal(pairs: Array) -> Array:
    """Return the pair weights without those of the diagonal."""
    return pairs - np.diag(np.diag(pairs))


def with_half_pairs(pairs: Array) -> Array:
    """Return the pair weights if each pair of features is counted once instead of twice."""
    return (pairs + np.diag(np.diag(pairs))) / 2.0


def times_n(instance: Instance, power: float) -> PosedProblem:
    """Return problem (15) with the whole penalty multiplied by a power of n."""
    factor = len(instance.X) ** (power / 2.0)
    return pose(instance, change_a=lambda a: factor * a, change_c=lambda c: factor * c)


# What a wrong solver may solve, as the end of the sentence "V is optimal ...", or "F is optimal ...".
MISTAKES: dict[str, Callable[[Instance], PosedProblem]] = {
    "for the rows without centring": lambda it: pose(it, is_centred=False),
    "for c^2 instead of c": lambda it: pose(it, change_c=np.square),
    "for sqrt(c) instead of c": lambda it: pose(it, change_c=np.sqrt),
    "for an l1 penalty without its diagonal": lambda it: pose(it, change_pairs=off_diagonal),
    "for an l1 penalty that counts each pair once": lambda it: pose(it, change_pairs=with_half_pairs),
    "without the l1 penalty": lambda it: pose(it, change_c=np.zeros_like),
    "for a^2 instead of a": lambda it: pose(it, change_a=np.square),
    "for sqrt(a) instead of a": lambda it: pose(it, change_a=np.sqrt),
    "without the ridge": lambda it: pose(it, change_a=np.zeros_like),
    "for a penalty multiplied by n": lambda it: times_n(it, 1.0),
    "for a penalty divided by n": lambda it: times_n(it, -1.0),
    "for nu = 1, that is, without the offset": without_offset,
    "for nu = 0, that is, with a free offset": lambda it: pose(it, offset_ridge=np.zeros_like),
    "for the weight nu of the squared offset instead of nu / (1 - nu)": lambda it: pose(it, offset_ridge=float),
    "for the weight (nu / (1 - nu))^2 of the squared offset instead of nu / (1 - nu)": lambda it: pose(
        it, offset_ridge=lambda nu: (nu / (1.0 - nu)) ** 2
    ),
    "for 1 - nu instead of nu": lambda it: pose(it, offset_ridge=lambda nu: (1.0 - nu) / nu if nu else np.inf),
}
