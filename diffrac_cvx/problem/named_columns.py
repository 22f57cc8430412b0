"""Penalties on the columns of a table: feature groups and nonnegative columns, given by name or by number."""

from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, did_you_mean, format_exact
from diffrac_cvx.problem.feature_groups import (
    FeatureGroups,
    GroupsLike,
    Names,
    read_feature_groups,
    read_nonnegative,
)
from diffrac_cvx.problem.penalty import Penalty

GroupWeights = str | npt.ArrayLike


def penalty_on_columns(
    weights: Penalty,
    groups: GroupsLike | FeatureGroups | None = None,
    nonnegative: Any = None,
    *,
    d: int,
    group_weights: GroupWeights = "equal",
    names: Names = None,
) -> Penalty:
    """Return a penalty of these weights with groups and nonnegative columns, among d columns that may have names.

    Raises
    ------
    ParameterError
        If a column does not exist, is in no group or in several, or ``group_weights`` does not match the groups.
    """
    given = None if groups is None else read_feature_groups(groups, d, names)
    relative = relative_weights(group_weights, given or FeatureGroups.singles(d, names))
    c: Any = weights.c if relative is None else np.asarray(weights.c) * np.sqrt(relative)
    return Penalty(weights.a, c, groups=given, nonnegative=read_nonnegative(nonnegative, d, names))


def column_names(X: Any) -> Names:
    """Return the column names of a data frame; None if there are none, or they are not all strings."""
    columns = [] if getattr(X, "columns", None) is None else list(X.columns)
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def relative_weights(group_weights: GroupWeights, groups: FeatureGroups) -> Array | None:
    """Return the factors of lam for each group; None if all are 1.

    Raises
    ------
    ParameterError
        If they are neither "equal" nor "size", nor a number >= 0 for each group.
    """
    requirement = "must be 'equal', 'size', or a finite number >= 0 for each group"
    if isinstance(group_weights, str):
        if group_weights not in ("equal", "size"):
            hint = did_you_mean(group_weights, ("equal", "size"))
            raise ParameterError(f"group_weights = {group_weights!r} {requirement}{hint}")
        return None if group_weights == "equal" or groups.are_single else groups.sizes.astype(float)
    values = np.asarray(group_weights)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise ParameterError(f"group_weights = {group_weights!r} {requirement}")
    if len(values) != len(groups.names):
        raise ParameterError(
            f"group_weights has {len(values)} numbers for {len(groups.names)} groups. Give one per group."
        )
    wrong = ~(np.isfinite(values) & (values >= 0.0))
    if wrong.any():
        g = int(np.argmax(wrong))
        raise ParameterError(f"group_weights has {format_exact(values[g])} for {groups.names[g]!r}. It {requirement}.")
    return values.astype(float)
