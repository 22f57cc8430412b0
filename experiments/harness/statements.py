"""The paper's statements, in its order: each is judged from a table or held by a test, and the page shows which."""

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Statement:
    """Something that the paper says.

    Attributes
    ----------
    name : str
        What claims refer to it by.
    place : str
        Where the paper says it.
    text : str
        The statement, in our words.
    tests : tuple of str
        The tests that hold it, ``file.py::function``; empty where a table decides.
    """

    name: str
    place: str
    text: str
    tests: tuple[str, ...] = ()


def read_statements(path: Path) -> tuple[Statement, ...]:
    """Return the statements of a file with a row for each, its tests with blanks between them."""
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(
            Statement(row["name"], row["place"], row["says"], tuple(row["tests"].split()))
            for row in csv.DictReader(file)
        )


STATEMENTS = read_statements(Path(__file__).with_suffix(".csv"))
BY_NAME = {statement.name: statement for statement in STATEMENTS}
