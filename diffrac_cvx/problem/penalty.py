"""Penalty on the direction: a weighted ridge and a weighted squared l1 norm or group norm."""

from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, array_of, format_exact, nonnegative, one_of
from diffrac_cvx.problem.feature_groups import (
    FeatureGroups,
    GroupsLike,
    Names,
    make_readonly,
    read_feature_groups,
    read_nonnegative,
)
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalties.group import GroupNorms
from diffrac_cvx.problem.penalties.sign import SignConstraints

Weight = float | npt.ArrayLike | None
GroupWeights = Literal["equal", "size"]


@dataclass(frozen=True, init=False, repr=False)
class Penalty:
    r"""Ridge plus squared l1 norm of the direction, with optional sign constraints, or plus squared group norm.

    .. math::
        \Gamma(V) = \sum_i a_i^2 V_{ii} + \sum_{ij} c_i c_j |V_{ij}|, \qquad
        \Gamma(vv^\top) = \sum_i a_i^2 v_i^2 + \Big(\sum_i c_i |v_i|\Big)^2

    With one weight for all features this is ``ridge`` times :math:`\|v\|_2^2` plus ``lam``, the paper's lambda, times
    :math:`\|v\|_1^2`.  A larger ``lam`` selects fewer features; a larger ``ridge`` shrinks all coefficients and favours
    directions of large variance.

    With groups, the penalty selects or excludes whole groups of columns: the second term is

    .. math::
        \sum_{gh} w_g w_h \|V_{gh}\|_*, \qquad \text{at } V = vv^\top:\ \Big(\sum_g w_g \|v_g\|_2\Big)^2

    with the nuclear norms of the blocks of V, and ``lam`` the squares of the weights.  Groups of one column give the l1
    norm.  If groups differ in size, ``lam=lam * sizes`` penalises a group as much as its separate columns.

    Sign constraints are v_j >= 0 for the columns in ``nonnegative``, and V_jk >= 0 for pairs of them.  They cannot
    be combined with groups.

    Source: section 3; groups and signs are not in the paper, see the guide on groups and signs.

    Parameters
    ----------
    a, c : float or (d,) array
        Square roots of the weights, ``a**2 == ridge`` and ``c**2 == lam``, as in the paper; 0 by default.
    lam : float or (d,) array, optional
        Weight of the squared l1 norm, as an alternative to ``c``; with groups, one number or one weight per group.
    ridge : float or (d,) array, optional
        Weight of the ridge, as an alternative to ``a``.
    groups : (d,) array of labels, mapping of name to columns, or list of lists of columns, optional
        Feature groups, which must contain every column once.  Weights and names are in the order of the mapping or the
        list, or of the first column of each label.
    nonnegative : (d,) array of bool, list of columns, or True, optional
        Columns whose coefficients must be >= 0, up to the sign of the whole direction.

    Raises
    ------
    ParameterError
        If a weight is negative or not finite, an array is not one-dimensional, a weight is given with its root,
        groups overlap, are empty, miss a column or contain an unknown one, or are given with nonnegative columns.

    Examples
    --------
    >>> Penalty(lam=0.01, ridge=1.0)
    Penalty(lam=0.01, ridge=1.0)
    >>> Penalty(c=0.5)
    Penalty(lam=0.25, ridge=0.0)
    >>> Penalty(lam=0.1, groups=["age", "smoker", "smoker"])
    Penalty(lam=0.1, ridge=0.0, groups=<2 groups of 3 columns>)
    """

    a: float | Array
    c: float | Array
    lam: float | Array = field(compare=False)
    ridge: float | Array = field(compare=False)
    groups: FeatureGroups | None
    nonnegative: Any

    def __init__(
        self,
        a: float | npt.ArrayLike = 0.0,
        c: float | npt.ArrayLike = 0.0,
        *,
        lam: float | npt.ArrayLike | None = None,
        ridge: float | npt.ArrayLike | None = None,
        groups: GroupsLike | FeatureGroups | None = None,
        nonnegative: npt.ArrayLike | bool | None = None,
    ) -> None:
        for name, value, root, given in (("ridge", ridge, "a", a), ("lam", lam, "c", c)):
            if value is None:
                size = _weights(given, root)
                weight = _frozen(np.square(size))
            elif np.any(np.asarray(given) != 0.0):
                raise ParameterError(f"{name} is given with its root {root}. Give one, not both.")
            else:
                weight = _weights(value, name)
                size = _frozen(np.sqrt(weight))
            object.__setattr__(self, name, weight)
            object.__setattr__(self, root, size)
        found = read_feature_groups(groups)
        object.__setattr__(self, "groups", found)
        object.__setattr__(self, "nonnegative", read_nonnegative(nonnegative))
        if found is not None and self.nonnegative is not None:
            raise ParameterError("groups and nonnegative are both given. Omit one of them.")
        if found is not None and np.ndim(self.c) == 1 and np.size(self.c) != len(found.names):
            raise ParameterError(
                f"lam has {np.size(self.c)} weights for {len(found.names)} groups. Give one per group."
            )

    @classmethod
    def l1(cls, lam: float, a: float | npt.ArrayLike = 0.0) -> Self:
        """Return the penalty of the paper's experiments, lam ||v||_1^2, plus a ridge of weight a^2."""
        return cls(a=a, lam=nonnegative(lam, "lam"))

    def weights(self, d: int) -> tuple[Array, Array]:
        """Return a and c as (d,) arrays, with c constant within a group.

        Raises
        ------
        ParameterError
            If the length of an array is not d, or groups or signs refer to other columns.
        """
        groups = self.feature_groups(d)
        for name, weight, size in (("a", self.a, d), ("c", self.c, len(groups.names))):
            if np.ndim(weight) == 1 and np.size(weight) != size:
                raise ParameterError(f"{name} has {np.size(weight)} weights for {size} features. Give one per feature.")
        return np.full(d, self.a, dtype=float), np.array(np.broadcast_to(self.c, len(groups.names))[groups.labels])

    def feature_groups(self, d: int) -> FeatureGroups:
        """Return the groups of d features; without groups in the penalty, each feature is a group of its own."""
        return read_feature_groups(self.groups, d) or FeatureGroups.singles(d)

    def pair_penalty(self, d: int) -> PairPenalty:
        """Return the penalty for d features, in the class for its groups and signs: the registry of the penalties.

        A single group of all columns becomes a ridge, and groups of one column the l1 norm.
        """
        (a, c), groups = self.weights(d), self.feature_groups(d)
        if len(groups.names) == 1 < d:
            a, c = np.sqrt(a**2 + c**2), np.zeros(d)
        if self.nonnegative is None:
            is_l1 = groups.are_single or not c.any()
            return PairPenalty(c, a=a) if is_l1 else GroupNorms(c, groups.labels, a=a)
        nonnegative = np.zeros(d, dtype=bool)
        nonnegative[read_nonnegative(self.nonnegative, d)] = True
        return SignConstraints(c, nonnegative=nonnegative, a=a)

    def with_weights(self, lam: Weight, ridge: Weight) -> "Penalty":
        """Return the penalty with new weights and the same groups and signs."""
        return Penalty(lam=lam, ridge=ridge, groups=self.groups, nonnegative=self.nonnegative)

    @property
    def has_l1(self) -> bool:
        """Whether the penalty couples features: any c_i > 0, or signs are constrained."""
        return bool(np.any(np.asarray(self.c) > 0)) or self.nonnegative is not None

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in ("lam", "ridge", "groups", "nonnegative")}
        return f"Penalty({', '.join(f'{name}={value!r}' for name, value in given.items() if value is not None)})"


def penalty_on_columns(
    weights: Penalty,
    groups: GroupsLike | FeatureGroups | None = None,
    nonnegative: Any = None,
    *,
    d: int,
    group_weights: GroupWeights = "equal",
    names: Names = None,
) -> Penalty:
    """Return a penalty of these weights with groups or nonnegative columns, among d columns that may have names.

    ``group_weights`` multiplies lam by 1 ("equal") or by the number of columns of each group ("size").

    Raises
    ------
    ParameterError
        If a column does not exist, is in no group or in several, there are groups and nonnegative columns, or
        ``group_weights`` is neither "equal" nor "size".
    """
    found, c = read_feature_groups(groups, d, names), weights.c
    if one_of(group_weights, "group_weights", ("equal", "size")) == "size" and found is not None:
        c = np.asarray(c) * np.sqrt(found.sizes)
    return Penalty(weights.a, c, groups=found, nonnegative=read_nonnegative(nonnegative, d, names))


def suggested_lam(n: int, d: int, ridge: float) -> float:
    """Return an initial l1 weight for tables with more columns than rows, ridge sqrt(log d / n).

    A rule of thumb for columns of unit variance; the guide on wide tables derives it.
    """
    return float(ridge * (np.log(d) / n) ** 0.5)


def weights_of(penalty: Penalty, d: int) -> PairPenalty:
    """Return the penalty that solvers use for d features; raise ParameterError if it is not a Penalty for d of them."""
    return require_penalty(penalty).pair_penalty(d)


def require_penalty(penalty: Penalty) -> Penalty:
    """Return a penalty, or raise ParameterError for any other object."""
    if not isinstance(penalty, Penalty):
        raise ParameterError(f"penalty = {penalty!r} must be a Penalty, such as Penalty(lam=0.01) or Penalty(ridge=1).")
    return penalty


def resolve_penalty(penalty: Penalty, lam: Weight, ridge: Weight) -> Penalty:
    """Return a penalty, or the penalty of the weights lam and ridge if they are given.

    Raises
    ------
    ParameterError
        If both are given, or a weight is invalid.
    """
    if lam is None and ridge is None:
        return require_penalty(penalty)
    if penalty is not NO_PENALTY:
        raise ParameterError("penalty is given with lam or ridge. Give one or the other, not both.")
    return Penalty(lam=0.0 if lam is None else lam, ridge=0.0 if ridge is None else ridge)


def _frozen(values: Array) -> float | Array:
    return make_readonly(values) if np.ndim(values) else float(values)


def _weights(value: float | npt.ArrayLike, name: str) -> float | Array:
    array = array_of(value)
    if array.ndim > 1 or array.dtype.kind not in "biuf":
        raise ParameterError(f"{name} = {value!r} must be a number or a 1-d array of numbers.")
    array = array.astype(np.float64)
    bad = ~(np.isfinite(array) & (array >= 0) & (array <= 1e100))
    if bad.any():
        raise ParameterError(f"{name} = {format_exact(array[bad].ravel()[0])} must be finite, >= 0 and at most 1e100.")
    return _frozen(array)


def ridge_of(penalty: Penalty, d: int) -> Array:
    """Return the ridge of a penalty; raise ParameterError if it has an l1 term, which needs a formulation with V."""
    weights = weights_of(penalty, d)
    if not weights.is_zero:
        what = "an l1 penalty (lam > 0)" if weights.c.any() else "a penalty with nonnegative columns"
        raise ParameterError(f"{what} has no formulation in Y alone. Use lifted or v_space.")
    return weights.a


NO_PENALTY = Penalty()
