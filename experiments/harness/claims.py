"""What the paper says, what was measured, and whether the two agree: one record a statement."""

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import fill


@dataclass(frozen=True)
class Claim:
    """A statement of the paper held against a table.

    Attributes
    ----------
    place : str
        Where the paper makes it.
    says : str
        The statement, in our words.
    measured : str
        Our numbers.
    agrees : bool or None
        Whether the numbers bear it out; None for a result that the paper does not have.
    why : str
        The reason, or what remains open; may be empty.
    """

    place: str
    says: str
    measured: str
    agrees: bool | None
    why: str = ""

    @property
    def verdict(self) -> str:
        """The word for `agrees`."""
        return {True: "agrees", False: "differs", None: "not in the paper"}[self.agrees]


def format_claims(claims: Iterable[Claim]) -> str:
    """Return claims as paragraphs for a terminal."""
    return "\n".join(
        fill(
            f"[{claim.verdict}] {claim.place}: {claim.says} -- {claim.measured} {claim.why}".rstrip(),
            width=116,
            subsequent_indent="    ",
        )
        for claim in claims
    )
