"""Roles of the columns of a user's table: feature, reference labels, excluded, or one-hot."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from diffrac_cvx.app.labels import join_words
from diffrac_cvx.datasets.columns import format_list, is_mostly_numeric
from diffrac_cvx.errors import DataError

FEATURE, KNOWN_GROUPS, LEFT_OUT, ZERO_ONE = ROLES = ("feature", "reference labels", "excluded", "one-hot")
MAX_CHIPS = 40  # columns with a control each


class Guess(NamedTuple):
    """Initial role of a column, with a message unless it is a feature."""

    role: str = FEATURE
    message: str = ""


TEXT = Guess(LEFT_OUT, "excluded because they hold text; they may be reference labels, or categories for one-hot")
LABELS = Guess(KNOWN_GROUPS, "used as reference labels, for evaluation only")


def guess_columns(frame: Any) -> dict[str, Guess]:
    """Return the initial roles of the columns of a data frame: numbers are features, some text among them included."""
    guesses = {
        str(name): TEXT if column.dtype == object and not is_mostly_numeric(column) else Guess()
        for name, column in frame.items()
    }
    label = frame.attrs.get("label")
    return guesses | ({label: LABELS} if label in guesses else {})


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
