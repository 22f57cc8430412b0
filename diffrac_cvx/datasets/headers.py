"""Whether the first line of a table holds the names of the columns or a point, decided by several lines."""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import prod

MARKS = ["", "?", "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "None", "none", "-"]  # a missing value
NUMBER = re.compile(
    r"[+-]?(\d+([.,]\d*)?|[.,]\d+|\d{1,3}([., '\u2019\u00a0\u202f]\d{3})+([.,]\d+)?)([eE][+-]?\d+)?|[+-]?inf"
)
WHOLE = re.compile(r"\d+")
UNLIKELY = 0.01  # chance, by the other lines, that a point has whole numbers in all columns, below which it is none
NAMELESS = "column 1"  # the name of a first column that has none
SHOWN = 6  # entries of a line that a message shows
MOST_NOTES = 12  # about names that are used twice


def find_header(rows: Sequence[Sequence[str]]) -> tuple[bool, str]:
    """Return whether the first of some lines is one of names, and what a user should be told of it, perhaps nothing.

    Text above numbers is a name.  A line of numbers may be one too, as where a table was written with the default
    names 0, 1, 2, ...: it is taken for one where it is unlike the lines below, because it alone has whole numbers or
    alone counts up by one; where one of its texts is not among the repeated texts below; or where it has an empty entry
    above entries that never are, as above the index that pandas writes.  Lines of another length than the first are not
    looked at.
    """
    first = [entry.strip() for entry in rows[0]]
    columns = list(zip(*(row for row in rows[1:] if len(row) == len(first)), strict=True))
    numbers = [is_number(entry) for entry in first]
    if not any(numbers) or any(
        not number and entry not in MARKS and mostly_numbers(below)
        for number, entry, below in zip(numbers, first, columns, strict=False)
    ):
        return True, ""
    if columns and (text_is_a_name(first, columns) or (all(numbers) and numbers_are_names(first, columns))):
        return True, (
            f"the first line ({show(first)}) was taken for the names of the columns: read the table without a header "
            "if it is a point"
        )
    if all(map(WHOLE.fullmatch, first)) and len(set(first)) == len(first):
        return False, (
            f"the first line ({show(first)}) was taken for a point, and the columns are called x1, x2, ...: read the "
            "table with a header if these are names"
        )
    return False, "no line of names was found: the columns are called x1, x2, ..."


def text_is_a_name(first: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether a text of the first line is new above texts that repeat, and none is one of those below."""
    found = False
    for entry, below in zip(first, columns, strict=True):
        if entry == "" and below and all(value.strip() for value in below):
            found = True
        elif not is_number(entry) and entry not in MARKS and not mostly_numbers(below):
            values = {value.strip() for value in below}
            if entry in values:
                return False
            found = found or len(values) <= len(below) / 2
    return found


def numbers_are_names(first: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether a line of different whole numbers is unlike the points below."""
    if not all(map(WHOLE.fullmatch, first)) or len(set(first)) < len(first):
        return False
    shares = [(sum(map(is_whole, below)) + 1) / (len(below) + 2) for below in columns]
    if prod(shares) < UNLIKELY:
        return True
    return len(first) > 2 and counts_up(first) and not any(map(counts_up, zip(*columns, strict=True)))


def counts_up(row: Sequence[str]) -> bool:
    """Whether entries are whole numbers, each one more than the last."""
    if not all(map(is_whole, row)):
        return False
    numbers = [int(entry) for entry in row]
    return all(after == before + 1 for before, after in pairwise(numbers))


def mostly_numbers(column: Sequence[str]) -> bool:
    """Whether at least half of the entries that are not missing are numbers."""
    present = [entry for entry in column if entry.strip() not in MARKS]
    return bool(present) and 2 * sum(map(is_number, present)) >= len(present)


def is_number(text: str) -> bool:
    """Whether a text is a number, with any decimal and thousands marks."""
    return NUMBER.fullmatch(text.strip()) is not None


def is_whole(text: str) -> bool:
    """Whether a text is a whole number without marks."""
    return WHOLE.fullmatch(text.strip()) is not None


def show(row: Sequence[str]) -> str:
    """Return the first entries of a line."""
    return ", ".join(row[:SHOWN]) + (", ..." if len(row) > SHOWN else "")


def name_columns(first: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return names, all different, from a header, and what was changed; an empty one becomes "column 1", and so on."""
    names: list[str] = []
    notes: list[str] = []
    used: set[str] = set()
    given, copies = set(first), dict.fromkeys(first, 1)
    for j, entry in enumerate(first):
        name = other = entry.strip() or f"column {j + 1}"
        while other in used or (other is not name and other in given):
            copies[name] = copies.get(name, 1) + 1
            other = f"{name} ({copies[name]})"
        if other is not name:
            notes.append(f"two columns are called {name!r}: the second is called {other!r} here")
        names.append(other)
        used.add(other)
    if len(notes) > MOST_NOTES:
        notes[MOST_NOTES:] = [f"{len(notes) - MOST_NOTES} more columns have the name of another, and a number here"]
    return names, notes
