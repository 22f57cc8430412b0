"""Derivative of the optimal value of problem (15) in its parameters and data, at a computed V."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, format_indices
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.factors import Factor, dense, diagonal
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.formatting import format_bracket, width_of
from diffrac_cvx.problem.penalty import Penalty, weights_of


@dataclass(frozen=True, eq=False)
class Gradient:
    r"""Derivative of the optimal value of problem (15), by the envelope theorem at the V of a result.

    If the optimal V is unique, this is the derivative.  Otherwise the value has only one-sided derivatives, and this is
    the expression at one optimal V.  Its error is at most of the order of the square root of the certified gap.

    The value is jointly concave in lam, the ridge and nu.  So at **any** V, optimal or not, the optimum for other
    weights and another nu is at most the result's ``upper`` plus the derivative times the change.

    Source: Danskin, The theory of max-min, Springer, 1967; not in the paper.

    Attributes
    ----------
    lam : float
        With respect to the weight of the squared l1 norm, :math:`\sum_{jk} |V_{jk}|`, if it was one number; for an
        array with respect to a factor of all weights at 1, which is the value of the penalty.
    ridge : float or (d,) array
        With respect to the weight of the ridge: tr V of the features if it was one number, else :math:`V_{jj}`.
    nu : float
        With respect to the weight of the imbalance: the imbalance itself, 1'Y1/n^2 of the relaxed labels.
    X : (n, d) array
        With respect to the entries of X as given: row i is the effect of moving point i, and the mean with it.  Rows of
        points of weight 0 are zero.
    warnings : tuple of str
        Reasons why the derivative may not exist or may be rough, one sentence each; empty if there are none.
    """

    lam: float
    ridge: float | Array
    nu: float
    X: Array = field(repr=False)
    warnings: tuple[str, ...] = ()


def value_gradient(
    G: Factor,
    bracket: tuple[float, float],
    n_excluded: int = 0,
    *,
    X: Any,
    nu: float,
    penalty: Penalty,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
) -> Gradient:
    r"""Return the derivative of the value of problem (15) at V = GG', which has its optimal scale.

    With normalised weights p of the points, and signs s in the chunklets g of must-link points, the value at V is

    .. math:: 1 - 2 \sum_g \big|V^{1/2} \sum_{i \in g} s_i p_i x_i\big| + \sum_i p_i |V^{1/2} x_i|^2 + \Gamma(V).

    In x_i its derivative is :math:`2 p_i V^{1/2} (V^{1/2} x_i - F_i)`, with F_i the vector of its label, minus p_i
    times the sum of these over all points, because the rows are centred.

    Raises
    ------
    DataError
        If the table is not the one that V belongs to.
    ResourceError
        If a matrix of the size of X would not fit in memory.
    """
    sample = read_points(X, sample_weight, constraints=constraints, are_many=lambda _n, _d: True)
    points, d = sample.X, G.shape[0] - int(nu < 1.0)
    if points.shape[1] != d:
        raise DataError(f"X has {points.shape[1]} columns, but the result has {d}. Pass the table that was solved.")
    require_memory(8.0 * sample.n_all * 3 * (d + G.shape[1]), "the derivative in the entries of X", "use fewer rows")
    offset = dense(G[d:]).ravel() if G.shape[0] > d else np.zeros(G.shape[1])
    XG, chunklets, p = np.asarray(points @ G[:d]) + offset, points.chunklets, points.normalized_weights
    rows, sizes, signed = chunklets.signed_sums(p[:, None] * XG), chunklets.sums(p), np.abs(chunklets.signed_sums(p))
    norms = np.linalg.norm(rows, axis=1)
    value, (lower, upper), rounding = 1.0 - float(norms.sum()), bracket, 1e-6
    if not lower - rounding <= value <= upper + rounding:
        raise DataError(
            f"the value of V on this table is {value:.6g}, outside the bounds {format_bracket(lower, upper)} of the "
            "result. Pass the table that was solved, unchanged."
        )
    # Where x_i'Vx_i is 0, up to rounding, the vector F_i of the label is free: those that agree have the largest
    # imbalance.
    free = norms <= 1e-9 * sizes * float(p @ np.sum(XG**2, axis=1)) ** 0.5
    F = chunklets.expand(np.where(free, 0.0, 1.0 / np.where(free, 1.0, norms))[:, None] * rows)
    imbalance = min((float(np.linalg.norm(p @ F)) + float(signed[free].sum())) ** 2, 1.0)
    diagonal_entries, pair_penalty = diagonal(G[:d]), penalty.pair_penalty(d)
    ridge = diagonal_entries if np.ndim(penalty.ridge) else float(diagonal_entries.sum())
    lam = (pair_penalty if np.ndim(penalty.c) else pair_penalty.with_weights(np.ones(d))).value(G[:d])
    scaled_residuals = 2.0 * p[:, None] * (XG - F)
    scaled_residuals -= np.multiply.outer(p, scaled_residuals.sum(axis=0))
    kinks, weights = sample.expand(chunklets.repeat(free)), weights_of(penalty, d)
    constant = ~points.used_columns() & (weights.a == 0.0) & (weights.c == 0.0)
    rough = width_of(lower, upper) > max(1e-3 * upper, 1e-10)  # a gap of rounding is never rough
    jumps = "are constant and not penalised: the value is discontinuous there."
    checks = (
        (rough, f"Only {format_bracket(lower, upper)} is certified, so the derivative is rough. Use a smaller tol."),
        (kinks.any(), f"x_i'Vx_i is 0 at the points {format_indices(kinks)}: the value has a kink there."),
        (constant.any(), f"The columns {format_indices(constant)} {jumps}"),
        (n_excluded > 0, f"Columns, {n_excluded} in all, are excluded: the value is discontinuous in them."),
    )
    warnings = tuple(message for applies, message in checks if applies)
    return Gradient(lam, ridge, imbalance, sample.expand((G[:d] @ scaled_residuals.T).T), warnings)


Instance = partial[Gradient]  # a solved problem (15): `value_gradient` with its table, not copied, and parameters


def make_instance(
    X: Any,
    nu: float,
    penalty: Penalty,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
) -> Instance:
    """Return the instance, without the table if it has the package's own form, so that it can be freed."""
    X = None if isinstance(X, Points) else X
    return partial(value_gradient, X=X, nu=nu, penalty=penalty, sample_weight=sample_weight, constraints=constraints)
