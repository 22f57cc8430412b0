"""Statements of the paper compared with measurements: every verdict follows from a rule that can fail."""

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import fill

from experiments.harness import findings
from experiments.harness.findings import Verdict
from experiments.harness.statements import BY_NAME, Statement
from experiments.harness.tables import split_parts

__all__ = ["Claim", "Finding", "Verdict", "describe", "format_claims", "judge", "split_parts"]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper compared with a table.

    Attributes
    ----------
    name : str
        Name of the statement, see `statements`.
    measured : str
        Measured numbers, fitted ones with their intervals.
    verdict : Verdict
        Verdict of the rule.
    rule : str
        The rule in words: conditions for agreement and for partial agreement.
    comment : str
        Context that the rule does not decide; may be empty.
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
    """A result on which the paper makes no statement; it has no verdict.

    Attributes
    ----------
    statement : str
        Question or quantity studied.
    measured, comment : str
        As in `Claim`.
    """

    statement: str
    measured: str
    comment: str = ""


def judge(agrees: bool, partly: bool = False, *, tested: bool = True, comparable: bool = True) -> Verdict:
    """Return the verdict of a rule, from its conditions: agrees, agrees in part, tested, comparable."""
    if not tested:
        return Verdict.NOT_TESTED
    if not comparable:
        return Verdict.NOT_COMPARABLE
    return Verdict.AGREES if agrees else Verdict.PARTLY if partly else Verdict.DIFFERS


def format_claims(claims: Iterable[Claim | Finding | findings.Finding]) -> str:
    """Format claims as paragraphs for a terminal."""
    return "\n".join(
        findings.describe(claim)
        if isinstance(claim, findings.Finding)
        else fill(describe(claim), width=116, subsequent_indent="    ")
        for claim in claims
    )


def describe(claim: Claim | Finding) -> str:
    """Format a claim as one line."""
    if isinstance(claim, Finding):
        return f"[beyond the paper] {claim.statement} -- {claim.measured} {claim.comment}".rstrip()
    statement = f"{claim.statement.place}: {claim.statement.text}"
    return f"[{claim.verdict.value}] {statement} -- {claim.measured} {claim.comment}".rstrip()
