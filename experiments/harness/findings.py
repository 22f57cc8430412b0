"""Findings are tables with a caption; a verdict on a statement is a rule over such a table, fixed in code.

An entry of a table is a number, an `Interval`, a word, or NaN if nothing was measured.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.harness.intervals import Interval, proportion_of

Condition = Callable[[pd.DataFrame], Any]
MIN_INSTANCES = 12  # fewest instances for a rule on a share


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


with Path(__file__).with_name("statements.csv").open(newline="", encoding="utf-8") as file:
    STATEMENTS = tuple(
        Statement(row["name"], row["place"], row["says"], tuple(row["tests"].split())) for row in csv.DictReader(file)
    )
BY_NAME = {statement.name: statement for statement in STATEMENTS}


class Verdict(Enum):
    """Verdict of a rule on a statement; the value is the text on the page."""

    AGREES = "agrees"
    STRONGER = "stronger than stated"
    PARTLY = "partly agrees"
    DIFFERS = "differs"
    VACUOUS = "vacuous"
    NOT_COMPARABLE = "not comparable"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class Rule:
    """A statement, and the conditions on a table under which it agrees or agrees in part; otherwise it differs.

    Attributes
    ----------
    statement : str
        Name of a statement of the paper, see `statements`, or a sentence of our own.
    words : str
        The conditions in words.
    agrees, partly : callable
        Map the table to the truth of a condition; `partly` is asked if `agrees` is false.
    tested : callable
        Whether the table decides; by default if it has rows.
    vacuous : callable
        Whether the statement is true of a method that does nothing; by default never.
    comparable : callable
        Whether the data are those of the statement; by default always.
    stronger : callable
        Whether more holds than is stated; by default never.
    """

    statement: str
    words: str
    agrees: Condition
    partly: Condition
    tested: Condition = len
    vacuous: Condition = lambda table: False
    comparable: Condition = lambda table: True
    stronger: Condition = lambda table: False

    def __call__(self, table: pd.DataFrame) -> Verdict:
        """Return the verdict on a table."""
        if not self.tested(table):
            return Verdict.NOT_TESTED
        if not self.comparable(table):
            return Verdict.NOT_COMPARABLE
        if self.vacuous(table):
            return Verdict.VACUOUS
        if self.stronger(table):
            return Verdict.STRONGER
        return Verdict.AGREES if self.agrees(table) else Verdict.PARTLY if self.partly(table) else Verdict.DIFFERS

    @property
    def of_paper(self) -> Statement | None:
        """The statement of the paper, or None."""
        return BY_NAME.get(self.statement)


def holds_mostly(statement: str, row: str, partly: float = 0.8) -> Rule:
    """Return the rule that a row of a table of `shares` has a share of at least 90 %, in part from `partly` on."""
    return Rule(
        statement,
        f'agrees if the share of "{row}" is at least 90 % and its interval above 80 %, in part if it is at least '
        f"{100 * partly:.0f} %; not tested with fewer than {MIN_INSTANCES} instances",
        lambda table: table.loc[row, "share"].value >= 0.9 and table.loc[row, "share"].low >= 0.8,
        lambda table: table.loc[row, "share"].value >= partly,
        tested=lambda table: row in table.index and table.loc[row, "instances"] >= MIN_INSTANCES,
    )


def all_or_some(statement: str, words: str, *conditions: Condition, **given: Condition) -> Rule:
    """Return the rule that agrees if all conditions hold, and in part if one of them does."""

    def held(table: pd.DataFrame) -> list[bool]:
        return [bool(condition(table)) for condition in conditions]

    return Rule(statement, words, lambda table: all(held(table)), lambda table: any(held(table)), **given)


@dataclass(frozen=True, eq=False)
class Finding:
    """A table with its caption.

    Attributes
    ----------
    caption : str
        The quantity, its unit and the sample.
    table : DataFrame
        The numbers; the index names the rows.
    rules : sequence of Rule
        The statements that this table decides.
    comment : str
        Context that no rule decides; may be empty.
    """

    caption: str
    table: pd.DataFrame
    rules: Sequence[Rule] = ()
    comment: str = ""

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each statement, by its name."""
        return {rule.statement: rule(self.table) for rule in self.rules}


def tabulate(table: pd.DataFrame, by: Sequence[str], columns: Mapping[str, Condition]) -> pd.DataFrame:
    """Return one row for each group of rows, with the value of each function on it; the index is the group."""
    groups = list(table.groupby(list(by), sort=False))
    keys = pd.MultiIndex.from_tuples([key for key, _ in groups], names=by) if groups else None
    entries = {name: pd.Series([of(rows) for _, rows in groups], dtype=object) for name, of in columns.items()}
    found = pd.DataFrame(entries).set_axis(keys) if groups else pd.DataFrame(columns=list(columns))
    return found.set_axis(found.index.get_level_values(0)) if len(by) == 1 and groups else found


def shares(successes: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row for each sample of successes: the number of instances, and the share of successes."""
    entries = {name: {"instances": len(each), "share": proportion_of(each)} for name, each in successes.items()}
    return pd.DataFrame.from_dict(entries, orient="index", dtype=object).rename_axis("instances of")


def one_row(**entries: Any) -> pd.DataFrame:
    """Return a table of one row; underscores in the names of its columns are blanks."""
    return pd.DataFrame({name.replace("_", " "): pd.Series([entry], dtype=object) for name, entry in entries.items()})


def lines_of(table: pd.DataFrame) -> list[list[str]]:
    """Return the header and the rows of a table as texts; an index without a name is left out."""
    shown = table.reset_index() if table.index.names != [None] else table
    return [list(map(str, shown.columns)), *([format_entry(entry) for entry in row] for row in shown.to_numpy(object))]


def format_entry(entry: Any) -> str:
    """Format an entry with three digits; NaN is "none"."""
    if isinstance(entry, str | Interval | bool | np.bool_ | int | np.integer):
        return {"True": "yes", "False": "no"}.get(str(entry), str(entry))
    if pd.isna(entry):
        return "none"
    number = float(entry)
    return f"{number:.0f}" if 1e3 <= abs(number) < 1e7 else f"{number:.3g}"


def markdown(table: pd.DataFrame) -> str:
    """Return a table in Markdown."""
    head, *rows = ([entry.replace("|", "\\|") for entry in line] for line in lines_of(table))
    return "\n".join(f"|{'|'.join(line)}|" for line in (head, ["-"] * len(head), *rows))


def format_found(found: Finding, judged: bool = True, with_rules: bool = True) -> str:
    """Return the text of a finding in Markdown; without judging, every verdict is "not tested"."""
    comment = f" {found.comment}" if found.comment else ""
    parts = [f"**{capital(found.caption)}.**{comment}", "", markdown(found.table), ""]
    for words, rules in groupby(found.rules, key=lambda rule: rule.words if with_rules else ""):
        verdicts = [
            f"{name_of(rule, with_rules)}: **{(rule(found.table) if judged else Verdict.NOT_TESTED).value}**"
            for rule in rules
        ]
        parts.append(f"- {'; '.join(verdicts)}." + (f" *Rule:* {words}." if words else ""))
    return "\n".join([*parts, ""] if found.rules else parts)


def name_of(rule: Rule, with_place: bool = True) -> str:
    """Return the number, and the place, of the statement of a rule, or its sentence."""
    named = rule.of_paper
    if named is None:
        return capital(rule.statement)
    return f"{STATEMENTS.index(named) + 1}" + (f" ({named.place})" if with_place else "")


def capital(text: str) -> str:
    """Capitalise a phrase unless it begins with a symbol or a lower-case name."""
    return text if text[1:2] in "' >=_<" or text.startswith(("cvx", "yy'", "vv'")) else text[0].upper() + text[1:]
