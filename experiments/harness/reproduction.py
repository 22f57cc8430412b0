"""Write docs/reproduction.md and its summary in the README: every statement with its verdict, from the tables.

Run ``make reproduction``.  It fails if a statement has neither a verdict nor a test.

Experiments beyond the paper that cluster data have sections too.  Experiments that test this package's solvers
(``validate``, ``stress``, ``convergence``, ``benchmark``) are described in the guides about solvers and reliability:
they make no statement about the paper.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from diffrac_cvx.machine.writing import write_text
from experiments.harness.claims import Claim, Finding, Verdict
from experiments.harness.provenance import describe_stale
from experiments.harness.statements import STATEMENTS, Statement
from experiments.harness.tables import read_table

PAGE, README, FIGURES = Path("docs/reproduction.md"), Path("README.md"), Path("figures")
MARKS = ("<!-- what differs -->\n", "<!-- end of what differs -->")
EXPERIMENTS = (  # folders, each with TITLE, ABOUT and claims in its claims.py
    "phase_transition",
    "sparse_regime",
    "unbalanced",
    "runtime",
    "robustness",
    "noise",
    "rivals",
    "theory",
    "affine_law",
    "two_class",
    "multi_label",
    "many_clusters",
    "choice",
    "wide",
    "wide_law",
    "optimal",
    "few_labels",
    "structure",
    "groups",
)
NOT_SIMPLE = (Verdict.DIFFERS, Verdict.PARTLY, Verdict.NOT_COMPARABLE, Verdict.NOT_TESTED)
HEAD = """\
# Reproduction of the paper, statement by statement

Every statement of N. Flammarion, B. Palaniappan and F. Bach, *Robust Discriminative Clustering with Sparse
Regularizers*, JMLR 18(80), 2017, in the order of the paper, with a verdict or with the test that verifies it. The
numbers come from the tables in `figures/`. `make figures` measures these tables again and then writes this page.
`make optimal`, `make few-labels`, `make choice` and `make wide` are separate; all but the first download packages.

Each verdict follows from the rule printed next to it (code: `experiments/*/claims.py`): *agrees*, *partly agrees*,
*differs*, *not comparable* (the software or data of the paper are not available), *not tested* (the table does not
decide). The range in brackets after a fitted number is its 95 % interval, by the bootstrap over replications unless
stated otherwise. Comments give context and do not affect the verdict.

"Error" is the clustering error 1 - (y'ŷ/n)²; "gap" is a certified bound on the distance to the optimum.
"""
STALE = """\
`figures/provenance.json` records, for each table, a checksum of every module that its numbers depend on at the time of
measurement; comments and layout do not count. `python -m experiments.stale` compares these with the current code."""


@dataclass(frozen=True)
class Section:
    """Section of the page for one experiment."""

    stem: str
    title: str
    about: str
    found: list[Claim | Finding]

    @property
    def command(self) -> str:
        """Command that writes the figure and the table."""
        return f"make {self.stem.replace('_', '-')}"

    @property
    def claims(self) -> list[Claim]:
        """Statements of the paper that are judged here."""
        return [claim for claim in self.found if isinstance(claim, Claim)]

    @property
    def findings(self) -> list[Finding]:
        """Results on which the paper makes no statement."""
        return [finding for finding in self.found if isinstance(finding, Finding)]


def read_sections(tables: Path = FIGURES) -> list[Section]:
    """Return the sections of all experiments, empty for those without a table in the folder."""
    return [read_section(stem, tables) for stem in EXPERIMENTS]


def read_section(stem: str, tables: Path = FIGURES) -> Section:
    """Return the section of an experiment."""
    module = import_module(f"experiments.{stem}.claims")
    path = tables / f"{stem}.csv"
    return Section(stem, module.TITLE, module.ABOUT, list(module.claims(read_table(path)) if path.exists() else []))


def open_statements(sections: list[Section]) -> list[Statement]:
    """Return the statements with neither a verdict nor a test."""
    judged = {claim.name for section in sections for claim in section.claims}
    return [statement for statement in STATEMENTS if statement.name not in judged and not statement.tests]


def format_page(sections: list[Section]) -> str:
    """Return the page."""
    claims = {claim.name: claim for section in sections for claim in section.claims}
    stale = "\n".join(["## The code of the tables", "", STALE, "", describe_stale(), ""])
    parts = [HEAD, summarize(claims), format_list(claims), *map(format_section, sections), stale]
    return "\n".join(parts)


def count_verdicts(claims: dict[str, Claim]) -> str:
    """Return the number of statements with each verdict, and of those verified by tests."""
    counts = Counter(claim.verdict for claim in claims.values())
    tested = sum(statement.name not in claims and bool(statement.tests) for statement in STATEMENTS)
    words = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    return (
        f"Of {len(STATEMENTS)} numbered statements, {sum(counts.values())} are judged from tables: {words}. The other "
        f"{tested} are mathematical and verified by tests."
    )


def summarize(claims: dict[str, Claim], verdicts: Sequence[Verdict] = NOT_SIMPLE) -> str:
    """Return the counts, and the statements with the given verdicts."""
    lines = [count_verdicts(claims), ""]
    for verdict in verdicts:
        named = [claims[s.name] for s in STATEMENTS if s.name in claims and claims[s.name].verdict is verdict]
        lines += [f"- **{capital(verdict.value)}**: {c.statement.place} ({c.statement.text})." for c in named]
    return "\n".join([*lines, ""])


def format_list(claims: dict[str, Claim]) -> str:
    """Return the numbered list of all statements."""
    lines = ["## The paper's statements", "", "| | where | statement | verdict or test |", "| --- | --- | --- | --- |"]
    for number, statement in enumerate(STATEMENTS, 1):
        if statement.name in claims:
            held = claims[statement.name].verdict.value
        else:
            held = ", ".join(f"`tests/{test}`" for test in statement.tests) or "**open**"
        text = statement.text.replace("|", "\\|")
        lines.append(f"| {number} | {statement.place} | {text} | {held} |")
    return "\n".join([*lines, ""])


def format_section(section: Section) -> str:
    """Return the text of one section."""
    lines = [f"## {section.title}", ""]
    if not section.found:
        return "\n".join([*lines, f"Not measured yet: `{section.command}` writes figures/{section.stem}.csv.", ""])
    lines += [
        f"![{section.title}](../figures/{section.stem}.png)",
        "",
        f"`{section.command}` · [table](../figures/{section.stem}.csv) · {section.about}",
    ]
    if section.claims:
        lines.append("")
    for claim in section.claims:
        place = f"{STATEMENTS.index(claim.statement) + 1}. {claim.statement.place}"
        lines.append(f"- **{place}: {claim.verdict.value}.** {capital(claim.statement.text)}.")
        lines.append(f"  *Measured:* {claim.measured} *Rule:* {claim.rule}{comment_of(claim)}")
    if section.findings:
        lines += ["", "Beyond the paper:", ""]
    for finding in section.findings:
        lines += [f"- **{capital(finding.statement)}.** {finding.measured}{comment_of(finding)}"]
    return "\n".join([*lines, ""])


def comment_of(claim: Claim | Finding) -> str:
    """Return the comment, labelled as such."""
    return f" *Comment:* {claim.comment}" if claim.comment else ""


def capital(text: str) -> str:
    """Capitalise a phrase unless it begins with a symbol or a lower-case name."""
    return text if text[1:2] in "' >=_<" or text.startswith(("cvx", "yy'", "vv'")) else text[0].upper() + text[1:]


def renew_readme(text: str, claims: dict[str, Claim]) -> str:
    """Return the README with its summary of the verdicts replaced."""
    before, rest = text.split(MARKS[0])
    said = summarize(claims, (Verdict.DIFFERS,))
    return before + MARKS[0] + "\n" + said + "\n" + MARKS[1] + rest.split(MARKS[1])[1]


def main() -> int:
    """Write the page and the summary; return 1 if a statement is open."""
    sections = read_sections()
    claims = {claim.name: claim for section in sections for claim in section.claims}
    write_text(PAGE, format_page(sections))
    write_text(README, renew_readme(README.read_text(encoding="utf-8"), claims))
    print(f"wrote {PAGE} and {README}: {count_verdicts(claims)}")
    missing = open_statements(sections)
    for statement in missing:
        print(f"neither a verdict nor a test: {statement.place}: {statement.text} ({statement.name})", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
