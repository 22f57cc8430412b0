"""Which columns are likely to be no features, by their names: the outcome, and what names or numbers the points."""

import re

# Words of the name of an outcome, the surest first; the others are such names only where there is no other word.
TARGET_WORDS = ("diagnosis", "outcome", "label", "labels", "class", "classes", "target", "species", "truth")
TARGET_NAMES = ("y", "category", "cluster", "group", "type", "subtype", "kind", "status", "response", "survived")
MAX_CLASSES = 20  # different values of a column that may be the outcome
ROW_ID_WORDS = {
    "id", "name", "no", "nr", "number", "index", "row", "sample", "patient", "subject", "person", "participant",
    "respondent", "student", "user", "customer", "case", "cell", "observation",
}  # fmt: skip
MIN_DISTINCT_FRACTION = 0.9  # share of the entries of a column of names or of numbers of points that are different
NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def target_rank(name: str) -> int | None:
    """Return how surely the name of a column says that it is the outcome, 0 the surest; None where it does not."""
    words = [word.lower() for word in NAME_PART.findall(name)]
    ranks = [TARGET_WORDS.index(word) for word in words if word in TARGET_WORDS]
    ranks += [
        len(TARGET_WORDS) + TARGET_NAMES.index(word) for word in words if word in TARGET_NAMES and len(words) == 1
    ]
    return min(ranks, default=None)


def is_row_id_name(name: str) -> bool:
    """Whether the name of a column says that it names or numbers the points."""
    words = {word.lower() for word in NAME_PART.findall(name)}
    return bool(words) and words <= ROW_ID_WORDS
