"""Statements of the paper compared with measurements: every verdict follows from a rule that can fail."""

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import fill

from experiments.harness import findings
from experiments.harness.findings import Verdict
from experiments.harness.tables import split_parts

__all__ = ["Finding", "Verdict", "describe", "format_claims", "judge", "split_parts"]


@dataclass(frozen=True)
class Finding:
    """A result on which the paper makes no statement; it has no verdict.

    Attributes
    ----------
    statement : str
        Question or quantity studied.
    measured : str
        Measured numbers, fitted ones with their intervals.
    comment : str
        Context; may be empty.
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


def format_claims(claims: Iterable[Finding | findings.Finding]) -> str:
    """Format claims as paragraphs for a terminal."""
    return "\n".join(
        findings.describe(claim)
        if isinstance(claim, findings.Finding)
        else fill(describe(claim), width=116, subsequent_indent="    ")
        for claim in claims
    )


def describe(finding: Finding) -> str:
    """Format a finding as one line."""
    return f"[beyond the paper] {finding.statement} -- {finding.measured} {finding.comment}".rstrip()
