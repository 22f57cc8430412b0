"""What was measured about the paper's statements, and the verdicts: each by a rule that can fail."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from textwrap import fill

import pandas as pd

from experiments.harness.statements import BY_NAME, Statement


class Verdict(Enum):
    """What a rule says of a statement; the value is the word on the page."""

    AGREES = "agrees"
    PARTLY = "partly agrees"
    DIFFERS = "differs"
    NOT_COMPARABLE = "not comparable"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper held against a table.

    Attributes
    ----------
    name : str
        Of the statement, see `statements`.
    measured : str
        Our numbers, fitted ones with their intervals.
    verdict : Verdict
        What the rule gives.
    rule : str
        The rule, in words: what it takes to agree, and to agree in part.
    comment : str
        What the rule does not decide; may be empty.
    """

    name: str
    measured: str
    verdict: Verdict
    rule: str
    comment: str = ""

    @property
    def statement(self) -> Statement:
        """The statement."""
        return BY_NAME[self.name]


@dataclass(frozen=True)
class Finding:
    """A result that the paper does not state: it has no verdict.

    Attributes
    ----------
    statement : str
        What was looked at.
    measured, comment : str
        As of a `Claim`.
    """

    statement: str
    measured: str
    comment: str = ""


def judge(agrees: bool, partly: bool = False, *, tested: bool = True, comparable: bool = True) -> Verdict:
    """Return the verdict of a rule: what it takes to agree, to agree in part, to be tested and comparable at all."""
    if not tested:
        return Verdict.NOT_TESTED
    if not comparable:
        return Verdict.NOT_COMPARABLE
    return Verdict.AGREES if agrees else Verdict.PARTLY if partly else Verdict.DIFFERS


def split_parts(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the table of each part with its own columns, whole numbers as integers again."""
    found = {}
    for name, part in table.groupby("part"):
        part = part.dropna(axis=1, how="all")
        whole = [name for name, values in part.items() if values.dtype == float and (values == values.round()).all()]
        found[str(name)] = part.astype(dict.fromkeys(whole, int)).reset_index(drop=True)
    return found


def format_claims(claims: Iterable[Claim | Finding]) -> str:
    """Return claims as paragraphs for a terminal."""
    return "\n".join(fill(describe(claim), width=116, subsequent_indent="    ") for claim in claims)


def describe(claim: Claim | Finding) -> str:
    """Return a claim in one line."""
    if isinstance(claim, Finding):
        return f"[beyond the paper] {claim.statement} -- {claim.measured} {claim.comment}".rstrip()
    statement = f"{claim.statement.place}: {claim.statement.text}"
    return f"[{claim.verdict.value}] {statement} -- {claim.measured} {claim.comment}".rstrip()
