"""The penalty on the direction: a ridge with weights a and a squared l1 norm with weights c."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.inputs import Array, nonnegative


@dataclass(frozen=True)
class Penalty:
    r"""Weigh a ridge and a squared l1 norm of the direction.

    .. math::
        \Gamma(V) = \sum_i a_i^2 V_{ii} + \sum_{ij} c_i c_j |V_{ij}|, \qquad
        \Gamma(vv^\top) = \sum_i a_i^2 v_i^2 + \Big(\sum_i c_i |v_i|\Big)^2

    Source: section 3.  The "lambda" of the paper's experiments is c_i^2 for all i: ``Penalty.l1(lambda)``.

    Parameters
    ----------
    a, c : float or (d,) array
        Weights, nonnegative; a scalar is the same weight for every feature.

    Raises
    ------
    ParameterError
        If a weight is negative or not finite, or an array is not one-dimensional.
    """

    a: float | Array = 0.0
    c: float | Array = 0.0

    def __post_init__(self) -> None:
        for name in ("a", "c"):
            object.__setattr__(self, name, _weights(getattr(self, name), name))

    @classmethod
    def l1(cls, lam: float, a: float | npt.ArrayLike = 0.0) -> Self:
        """Return the penalty of the paper's experiments: lam ||v||_1^2, and a ridge."""
        return cls(a=_weights(a, "a"), c=nonnegative(lam, "lam") ** 0.5)

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


def weights_of(penalty: Penalty, d: int) -> tuple[Array, Array]:
    """Return a and c of a penalty as (d,) arrays, or raise an error that says how to make one.

    Raises
    ------
    ParameterError
        If it is not a Penalty, or its arrays have another length than d.
    """
    if not isinstance(penalty, Penalty):
        raise ParameterError(f"penalty = {penalty!r} must be a Penalty, such as Penalty(a=0.1) or Penalty.l1(0.01)")
    return penalty.weights(d)


def _weights(value: float | npt.ArrayLike, name: str) -> float | Array:
    array = np.asarray(value)
    if array.ndim > 1 or array.dtype.kind not in "biuf":
        raise ParameterError(f"{name} = {value!r} must be a number or a 1-d array of numbers")
    array = array.astype(np.float64)
    bad = ~(np.isfinite(array) & (array >= 0) & (array <= 1e100))
    if bad.any():
        raise ParameterError(f"{name} = {array[bad].ravel()[0]:g} must be finite and not negative")
    if array.ndim == 0:
        return float(array)
    array.setflags(write=False)
    return array


def ridge_of(penalty: Penalty, d: int) -> Array:
    """Return the ridge of a penalty without an l1 part, else raise an error that says which formulation takes one."""
    a, c = weights_of(penalty, d)
    if c.any():
        raise ParameterError("an l1 penalty (c > 0) has no formulation in Y alone; use lifted or v_space")
    return a


NO_PENALTY = Penalty()
