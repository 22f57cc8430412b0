"""Statements of the paper in its order; each is judged from a table or verified by a test."""

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Statement:
    """A statement of the paper.

    Attributes
    ----------
    name : str
        Identifier used by claims.
    place : str
        Section, equation or figure of the paper.
    text : str
        The statement, paraphrased.
    tests : tuple of str
        Tests that verify it, ``file.py::function``; empty if a table decides.
    """

    name: str
    place: str
    text: str
    tests: tuple[str, ...] = ()


def read_statements(path: Path) -> tuple[Statement, ...]:
    """Read the statements from a file with one row each; the tests of a statement are separated by blanks."""
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(
            Statement(row["name"], row["place"], row["says"], tuple(row["tests"].split()))
            for row in csv.DictReader(file)
        )


STATEMENTS = read_statements(Path(__file__).with_suffix(".csv"))
BY_NAME = {statement.name: statement for statement in STATEMENTS}
