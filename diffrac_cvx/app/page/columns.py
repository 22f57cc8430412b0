"""Roles of the columns of a user's table: feature, reference labels, excluded, or one-hot."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from diffrac_cvx.app.labels import join_words
from diffrac_cvx.datasets.columns import classify_column, format_list, split_numbers
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array

FEATURE, KNOWN_GROUPS, LEFT_OUT, ZERO_ONE = ROLES = ("feature", "reference labels", "excluded", "one-hot")
MAX_CHIPS = 40  # columns with a control each
MAX_GROUP_VALUES = 12  # distinct values of reference labels
GROUP_COLUMN_NAMES = (
    "class", "classes", "cluster", "diagnosis", "group", "groups", "kind", "label", "labels", "outcome", "quality",
    "species", "target", "type", "y",
)  # fmt: skip


class Guess(NamedTuple):
    """Detected role of a column, with a message unless it is an ordinary feature."""

    role: str = FEATURE
    message: str = ""


POSSIBLE_GROUPS = Guess(LEFT_OUT, "excluded, but possibly reference labels, or categories for one-hot")
LIKELY_GROUPS = Guess(KNOWN_GROUPS, "used as reference labels, for evaluation only")
LIKELY_COUNTS = Guess(
    FEATURE, "used as features although they hold few distinct integers; change the role if they are categories"
)


def guess_columns(frame: Any) -> dict[str, Guess]:
    """Return the detected roles of the columns of a data frame, at most one as reference labels."""
    given, decimal = frame.attrs.get("label"), frame.attrs.get("decimal", ".")
    guesses = {str(name): guess_column(str(name), frame.iloc[:, j], decimal) for j, name in enumerate(frame.columns)}
    groups = [name for name, one in guesses.items() if one.role == KNOWN_GROUPS]
    chosen = given if given in guesses else groups[0] if len(groups) == 1 else None
    guesses |= dict.fromkeys(groups, POSSIBLE_GROUPS)
    return guesses if chosen is None else {**guesses, chosen: LIKELY_GROUPS}


def guess_column(name: str, column: Any, decimal: str) -> Guess:
    """Return the detected role of a column."""
    numbers, text = split_numbers(column, decimal)
    if text.any():
        kind = classify_column(name, column, numbers, text).kind
        if kind == "some text":  # reading the table raises an error with the value to correct
            return Guess()
        if kind == "categories" and column.nunique() <= MAX_GROUP_VALUES:
            return LIKELY_GROUPS
        return Guess(LEFT_OUT, f"excluded because they hold {'text' if kind == 'names' else kind}")
    if len(numbers) > 2 and np.all(np.diff(numbers) == 1.0):
        return Guess(LEFT_OUT, "excluded as row numbers")
    if not is_few_integers(numbers):
        return Guess()
    return LIKELY_GROUPS if name.strip().lower() in GROUP_COLUMN_NAMES else LIKELY_COUNTS


def is_few_integers(numbers: Array) -> bool:
    """Whether the values are integers with few distinct values, as in a column of labels."""
    values = np.unique(numbers[np.isfinite(numbers)])
    whole = bool(np.all(np.mod(values, 1.0) == 0.0))
    return whole and 2 <= len(values) <= min(MAX_GROUP_VALUES, len(numbers) // 3)


def visible_columns(guesses: Mapping[str, Guess]) -> list[str]:
    """Return the columns whose roles are shown, those with a message first if there are too many."""
    names = list(guesses)
    if len(names) <= MAX_CHIPS:
        return names
    return sorted(names, key=lambda name: not guesses[name].message)[:MAX_CHIPS]


def describe_guesses(guesses: Mapping[str, Guess], roles: Mapping[str, str]) -> str:
    """Return the messages on columns that have their detected role, as one sentence."""
    alike: dict[str, list[str]] = {}
    for name, one in guesses.items():
        if one.message and roles.get(name, one.role) == one.role:
            alike.setdefault(one.message, []).append(repr(name))
    return "; ".join(f"{message}: {format_list(names)}" for message, names in alike.items())


def options_of_roles(roles: Mapping[str, str]) -> dict[str, Any]:
    """Return roles as parameters of `read_table`; raise `DataError` if two columns are reference labels."""
    by_role = {role: [name for name, one in roles.items() if one == role] for role in ROLES}
    groups = by_role[KNOWN_GROUPS]
    if len(groups) > 1:
        raise DataError(f"{join_words(map(repr, groups))} are all marked as reference labels. Keep one of them.")
    return {"label": groups[0] if groups else None, "drop": by_role[LEFT_OUT], "one_hot": by_role[ZERO_ONE]}
