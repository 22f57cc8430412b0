"""What each column of a user's own table is: a feature, the known groups, left out, or columns of 0 and 1."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from diffrac_cvx.app.labels import join_words
from diffrac_cvx.datasets.columns import classify_column, format_list, split_numbers
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array

FEATURE, KNOWN_GROUPS, LEFT_OUT, ZERO_ONE = ROLES = ("feature", "known groups", "left out", "0/1")
MAX_CHIPS = 40  # columns whose roles are chosen on the page one by one
MAX_GROUP_VALUES = 12  # different values that groups can have
GROUP_COLUMN_NAMES = (
    "class", "classes", "cluster", "diagnosis", "group", "groups", "kind", "label", "labels", "outcome", "quality",
    "species", "target", "type", "y",
)  # fmt: skip


class Guess(NamedTuple):
    """What a column seems to be, and what has to be said of it: nothing of a feature like others."""

    role: str = FEATURE
    message: str = ""


POSSIBLE_GROUPS = Guess(LEFT_OUT, "left out, but perhaps the known groups, or columns of 0 and 1")
LIKELY_GROUPS = Guess(KNOWN_GROUPS, "taken for the known groups, which only judge the answer")
LIKELY_COUNTS = Guess(FEATURE, "few whole numbers, counted as features: say so if they are groups")


def guess_columns(frame: Any) -> dict[str, Guess]:
    """Return what each column of a data frame seems to be; at most one is taken for the known groups."""
    given, decimal = frame.attrs.get("label"), frame.attrs.get("decimal", ".")
    guesses = {str(name): guess_column(str(name), frame.iloc[:, j], decimal) for j, name in enumerate(frame.columns)}
    groups = [name for name, one in guesses.items() if one.role == KNOWN_GROUPS]
    chosen = given if given in guesses else groups[0] if len(groups) == 1 else None
    guesses |= dict.fromkeys(groups, POSSIBLE_GROUPS)
    return guesses if chosen is None else {**guesses, chosen: LIKELY_GROUPS}


def guess_column(name: str, column: Any, decimal: str) -> Guess:
    """Return what one column seems to be."""
    numbers, text = split_numbers(column, decimal)
    if text.any():
        kind = classify_column(name, column, numbers, text).kind
        if kind == "some text":  # it has to be corrected, which an error says when the table is read
            return Guess()
        if kind == "categories" and column.nunique() <= MAX_GROUP_VALUES:
            return LIKELY_GROUPS
        return Guess(LEFT_OUT, f"left out, as they hold {'text' if kind == 'names' else kind}")
    if len(numbers) > 2 and np.all(np.diff(numbers) == 1.0):
        return Guess(LEFT_OUT, "left out, as they number the rows")
    if not is_few_integers(numbers):
        return Guess()
    return LIKELY_GROUPS if name.strip().lower() in GROUP_COLUMN_NAMES else LIKELY_COUNTS


def is_few_integers(numbers: Array) -> bool:
    """Whether there are only a few different whole numbers, fewer than rows, as in a column of groups."""
    values = np.unique(numbers[np.isfinite(numbers)])
    whole = bool(np.all(np.mod(values, 1.0) == 0.0))
    return whole and 2 <= len(values) <= min(MAX_GROUP_VALUES, len(numbers) // 3)


def visible_columns(guesses: Mapping[str, Guess]) -> list[str]:
    """Return the columns whose roles are shown: of very many, first those of which something is said."""
    names = list(guesses)
    if len(names) <= MAX_CHIPS:
        return names
    return sorted(names, key=lambda name: not guesses[name].message)[:MAX_CHIPS]


def describe_guesses(guesses: Mapping[str, Guess], roles: Mapping[str, str]) -> str:
    """Return what has to be said of columns, in a sentence, unless another role was chosen."""
    alike: dict[str, list[str]] = {}
    for name, one in guesses.items():
        if one.message and roles.get(name, one.role) == one.role:
            alike.setdefault(one.message, []).append(repr(name))
    return "; ".join(f"{message}: {format_list(names)}" for message, names in alike.items())


def options_of_roles(roles: Mapping[str, str]) -> dict[str, Any]:
    """Return roles as the options of `read_table`, or raise a `DataError` that names two columns of groups."""
    by_role = {role: [name for name, one in roles.items() if one == role] for role in ROLES}
    groups = by_role[KNOWN_GROUPS]
    if len(groups) > 1:
        raise DataError(f"{join_words(map(repr, groups))} are all said to be the known groups: keep one of them")
    return {"label": groups[0] if groups else None, "drop": by_role[LEFT_OUT], "one_hot": by_role[ZERO_ONE]}
