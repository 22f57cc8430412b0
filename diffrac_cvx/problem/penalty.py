"""The penalty on the direction: a ridge and a squared l1 norm, each with a weight."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, nonnegative

Weight = float | npt.ArrayLike | None


@dataclass(frozen=True, init=False)
class Penalty:
    r"""Weigh a ridge and a squared l1 norm of the direction.

    .. math::
        \Gamma(V) = \sum_i a_i^2 V_{ii} + \sum_{ij} c_i c_j |V_{ij}|, \qquad
        \Gamma(vv^\top) = \sum_i a_i^2 v_i^2 + \Big(\sum_i c_i |v_i|\Big)^2

    With one weight for all features this is ``ridge`` times :math:`\|v\|_2^2` plus ``lam``, the paper's lambda, times
    :math:`\|v\|_1^2`.  A larger ``lam`` leaves fewer features in the direction; a larger ``ridge`` makes all
    coefficients smaller and prefers directions along which the data vary much.

    Source: section 3.

    Parameters
    ----------
    a, c : float or (d,) array
        The roots of the weights, ``a**2 == ridge`` and ``c**2 == lam``, as the paper writes them.
    lam : float or (d,) array, optional
        Weight of the squared l1 norm, instead of ``c``.
    ridge : float or (d,) array, optional
        Weight of the ridge, instead of ``a``.

    Raises
    ------
    ParameterError
        If a weight is negative or not finite, an array is not one-dimensional, or a weight is given with its root.

    Examples
    --------
    >>> Penalty(lam=0.01, ridge=1.0)
    Penalty(lam=0.01, ridge=1.0)
    >>> Penalty(c=0.5)
    Penalty(lam=0.25, ridge=0.0)
    """

    a: float | Array = field(repr=False)
    c: float | Array = field(repr=False)
    lam: float | Array = field(compare=False)
    ridge: float | Array = field(compare=False)

    def __init__(
        self,
        a: float | npt.ArrayLike = 0.0,
        c: float | npt.ArrayLike = 0.0,
        *,
        lam: float | npt.ArrayLike | None = None,
        ridge: float | npt.ArrayLike | None = None,
    ) -> None:
        for name, value, root, given in (("ridge", ridge, "a", a), ("lam", lam, "c", c)):
            if value is None:
                size = _weights(given, root)
                weight = _frozen(np.square(size))
            elif np.any(np.asarray(given) != 0.0):
                raise ParameterError(f"give {name} or its root {root}, not both")
            else:
                weight = _weights(value, name)
                size = _frozen(np.sqrt(weight))
            object.__setattr__(self, name, weight)
            object.__setattr__(self, root, size)

    @classmethod
    def l1(cls, lam: float, a: float | npt.ArrayLike = 0.0) -> Self:
        """Return the penalty of the paper's experiments, lam ||v||_1^2, and a ridge of weight a^2."""
        return cls(a=a, lam=nonnegative(lam, "lam"))

    def weights(self, d: int) -> tuple[Array, Array]:
        """Return a and c as (d,) arrays.

        Raises
        ------
        ParameterError
            If an array has another length than d.
        """
        for name in ("a", "c"):
            weight = getattr(self, name)
            if np.ndim(weight) == 1 and len(weight) != d:
                raise ParameterError(f"{name} has {len(weight)} weights for {d} features")
        return np.full(d, self.a, dtype=float), np.full(d, self.c, dtype=float)

    def times(self, scale: float) -> "Penalty":
        """Return the penalty with Gamma multiplied by a number >= 0."""
        return Penalty(np.asarray(self.a) * scale**0.5, np.asarray(self.c) * scale**0.5)

    @property
    def has_l1(self) -> bool:
        """Whether any c_i > 0."""
        return bool(np.any(np.asarray(self.c) > 0))


def suggested_lam(n: int, d: int, ridge: float) -> float:
    """Return the l1 weight to begin with where there are more columns than rows, ridge sqrt(log d / n).

    Columns at unit variance; a rule of thumb, see the guide on wide tables for what stands behind it.
    """
    return float(ridge * (np.log(d) / n) ** 0.5)


def weights_of(penalty: Penalty, d: int) -> tuple[Array, Array]:
    """Return a and c of a penalty as (d,) arrays, or raise an error that says how to make one.

    Raises
    ------
    ParameterError
        If it is not a Penalty, or its arrays have another length than d.
    """
    return require_penalty(penalty).weights(d)


def require_penalty(penalty: Penalty) -> Penalty:
    """Return a penalty, or raise an error that says how to make one."""
    if not isinstance(penalty, Penalty):
        raise ParameterError(f"penalty = {penalty!r} must be a Penalty, such as Penalty(lam=0.01) or Penalty(ridge=1)")
    return penalty


def penalty_of(penalty: Penalty, lam: Weight, ridge: Weight) -> Penalty:
    """Return a penalty, or that of the weights which were given instead.

    Raises
    ------
    ParameterError
        If both are given, or a weight is not usable.
    """
    if lam is None and ridge is None:
        return require_penalty(penalty)
    if penalty is not NO_PENALTY:
        raise ParameterError("give a penalty or the weights lam and ridge, not both")
    return Penalty(lam=0.0 if lam is None else lam, ridge=0.0 if ridge is None else ridge)


def _frozen(values: Array) -> float | Array:
    if np.ndim(values) == 0:
        return float(values)
    values.setflags(write=False)
    return values


def _weights(value: float | npt.ArrayLike, name: str) -> float | Array:
    array = np.asarray(value)
    if array.ndim > 1 or array.dtype.kind not in "biuf":
        raise ParameterError(f"{name} = {value!r} must be a number or a 1-d array of numbers")
    array = array.astype(np.float64)
    bad = ~(np.isfinite(array) & (array >= 0) & (array <= 1e100))
    if bad.any():
        raise ParameterError(f"{name} = {array[bad].ravel()[0]:g} must be finite and not negative")
    return _frozen(array)


def ridge_of(penalty: Penalty, d: int) -> Array:
    """Return the ridge of a penalty without an l1 part, else raise an error that says which formulation takes one."""
    a, c = weights_of(penalty, d)
    if c.any():
        raise ParameterError("an l1 penalty (lam > 0) has no formulation in Y alone; use lifted or v_space")
    return a


NO_PENALTY = Penalty()
