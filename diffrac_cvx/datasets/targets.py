"""Recognise columns that are probably not features by their names: outcomes, and names or numbers of points."""

import re

# Words in the name of an outcome, the most specific first; those of TARGET_NAMES count only as the whole name.
TARGET_WORDS = ("diagnosis", "outcome", "label", "labels", "class", "classes", "target", "species", "truth")
TARGET_NAMES = ("y", "category", "cluster", "group", "type", "subtype", "kind", "status", "response", "survived")
MAX_CLASSES = 20  # distinct values of a possible outcome
ROW_ID_WORDS = {
    "id", "name", "no", "nr", "number", "index", "row", "sample", "patient", "subject", "person", "participant",
    "respondent", "student", "user", "customer", "case", "cell", "observation",
}  # fmt: skip
MIN_DISTINCT_FRACTION = 0.9  # least fraction of distinct entries in a column that names or numbers the points
NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def target_rank(name: str) -> int | None:
    """Return the rank of a column name as that of an outcome, 0 the most likely; None if it is not one."""
    words = [word.lower() for word in NAME_PART.findall(name)]
    ranks = [TARGET_WORDS.index(word) for word in words if word in TARGET_WORDS]
    ranks += [
        len(TARGET_WORDS) + TARGET_NAMES.index(word) for word in words if word in TARGET_NAMES and len(words) == 1
    ]
    return min(ranks, default=None)


def is_row_id_name(name: str) -> bool:
    """Return whether a column name indicates names or numbers of the points."""
    words = {word.lower() for word in NAME_PART.findall(name)}
    return bool(words) and words <= ROW_ID_WORDS
