"""Which column of a table is likely to be the outcome, by its name: as a feature it would give the answer away."""

import re

# Words of the name of such a column, the surest first; the others are such names only where there is no other word.
WORDS = ("diagnosis", "outcome", "label", "labels", "class", "classes", "target", "species", "truth")
NAMES = ("y", "category", "cluster", "group", "type", "subtype", "kind", "status", "response", "survived")
MOST_CLASSES = 20  # different values of a column that may be the outcome
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def outcome_rank(name: str) -> int | None:
    """Return how surely the name of a column says that it is the outcome, 0 the surest; None where it does not."""
    words = [word.lower() for word in WORD.findall(name)]
    ranks = [WORDS.index(word) for word in words if word in WORDS]
    ranks += [len(WORDS) + NAMES.index(word) for word in words if word in NAMES and len(words) == 1]
    return min(ranks, default=None)
