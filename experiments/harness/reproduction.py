"""Write the pages docs/reproduction.md, rules.md and beyond.md, and passages of the README and docs/paper/paper.md.

The first page has every statement of the paper with its verdict, the second the rules of the verdicts; the third has
every other experiment whose findings have a TITLE and an ABOUT.  Run ``make reproduction``.  It fails if a statement
has neither a verdict nor a test, or if the result of an exhibit was written for other verdicts.

Experiments that test this package's solvers (``validate``, ``stress``, ``convergence``, ``benchmark``) are described in
the guides about solvers and reliability: they make no statement about the paper.
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from diffrac_cvx.machine.writing import write_text
from experiments import answer
from experiments.benchmark import findings as benchmark
from experiments.choice import findings as choice
from experiments.choice import unequal
from experiments.harness import message, paper, provenance
from experiments.harness.command import find_experiments, load, modules_of
from experiments.harness.findings import (
    BY_NAME,
    STATEMENTS,
    Finding,
    Statement,
    Verdict,
    capital,
    format_found,
    name_of,
)
from experiments.harness.tables import read_table
from experiments.structure import findings as structure

PAGE, RULES_PAGE, BEYOND_PAGE = Path("docs/reproduction.md"), Path("docs/rules.md"), Path("docs/beyond.md")
README, FIGURES = Path("README.md"), Path("figures")
PASSAGES: dict[str, Callable[[pd.DataFrame], str]] = {
    **message.PASSAGES,
    "answer": answer.passage,
    "benchmark": benchmark.passage,
    "choice": choice.passage,
    "structure": structure.passage,
    "unequal": unequal.passage,
}
CURRENT = (  # tables measured with the solvers of this version
    "answer", "choice", "many_clusters", "optimal", "phase_transition", "sparse_noise", "structure", "unbalanced",
    "unequal", "validation", "weak",
)  # fmt: skip
END = "<!-- end -->\n"  # of a passage of the README or the paper; its begin names the table
OF_PAPER = (  # in the order of the paper
    "phase_transition", "sparse_noise", "sparse_regime", "unbalanced", "runtime", "robustness", "theory", "two_class",
    "multi_label",
)  # fmt: skip
BEYOND = tuple(
    name
    for name, path in find_experiments().items()
    if name not in OF_PAPER and any("\nTITLE = " in module.read_text("utf-8") for module in modules_of(path))
)
EXPERIMENTS = OF_PAPER + BEYOND
NOT_SIMPLE = (
    Verdict.DIFFERS,
    Verdict.STRONGER,
    Verdict.PARTLY,
    Verdict.VACUOUS,
    Verdict.NOT_COMPARABLE,
    Verdict.NOT_TESTED,
)
HEAD = """\
# Reproduction of the paper

N. Flammarion, B. Palaniappan and F. Bach, *Robust Discriminative Clustering with Sparse Regularizers*, JMLR 18(80),
2017. `make figures` measures the tables in `figures/` and writes this page. Beyond the paper: [results](beyond.md).
"""
VERDICTS = """\
A verdict follows from its [rule](rules.md): *agrees*, *stronger than stated*, *partly agrees*, *differs*, *vacuous* (a
single cluster reaches the figure too), *not comparable* (needs the paper's data), *not tested*. Brackets: 95 %
intervals. "Error" is 1 - (y'ŷ/n)²; "gap" is a certified bound on the distance to the optimum.
"""

RULES_HEAD = """\
# Rules of the verdicts

A verdict on a numbered statement of the [reproduction](reproduction.md) follows from a rule on a table, fixed in
`experiments/*/findings.py`. In rules, "interval" means the 95 % interval: Wilson's for proportions, of order statistics
for medians, otherwise Student's over replications. "Not tested" also means that the table lacks what a rule needs. On a
faithful copy of the numbers that the paper prints, the rules agree; this is tested.
"""

RECHECKED = """\
`figures/provenance.json` has the commit, machine and processor seconds of each table. `make recheck` measures a random
sample of cells again: bounds must overlap, means of errors and ranks must agree, other entries must be equal."""

BEYOND_HEAD = """\
# Results beyond the paper

Experiments on questions that the paper does not ask: noise on the labels, other methods, more clusters, wide tables,
few labels, optimal labels, tests of structure. Verdicts and intervals: see [the rules](rules.md).
"""


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A figure, table, proposition or conjecture of the paper.

    Attributes
    ----------
    name, claim : str
        Its name, and what it claims, in a sentence.
    expected : dict of str to Verdict
        Its statements, and the verdicts under which `result` is true.
    result : str
        Whether the claim was found to hold, in a sentence.
    """

    name: str
    claim: str
    expected: dict[str, Verdict]
    result: str

    def found(self, verdicts: Mapping[str, Verdict]) -> str:
        """Return the result, or the number of each verdict if they are not those for which it was written."""
        held = {name: verdicts.get(name, Verdict.NOT_TESTED) for name in self.expected}
        if held == self.expected:
            return self.result
        return ", ".join(f"{count} {verdict.value}" for verdict, count in Counter(held.values()).items())


def read_exhibits() -> list[Exhibit]:
    """Return the exhibits of the paper; an expected verdict follows the name of its statement and a colon."""
    with Path(__file__).with_name("exhibits.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        Exhibit(
            row["exhibit"],
            row["claim"],
            {name: Verdict[word] for name, word in (pair.split(":") for pair in row["verdicts"].split())},
            row["result"],
        )
        for row in rows
    ]


@dataclass(frozen=True)
class Section:
    """Section of the page for one experiment."""

    stem: str
    title: str
    about: str
    found: list[Finding]

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdicts on statements of the paper, by name."""
        judged = (one.verdicts for one in self.found)
        return {name: verdict for one in judged for name, verdict in one.items() if name in BY_NAME}


def read_sections(tables: Path = FIGURES) -> list[Section]:
    """Return the sections of all experiments, empty for those without a table in the folder."""
    sections = []
    for stem in EXPERIMENTS:
        module, path = findings_of(stem), tables / f"{stem}.csv"
        found = list(module.findings(read_table(path))) if path.exists() else []
        sections.append(Section(stem, module.TITLE, module.ABOUT, found))
    return sections


def findings_of(stem: str) -> ModuleType:
    """Return the module with the findings of an experiment."""
    return sys.modules[load(stem).findings.__module__]


def collect_verdicts(sections: Iterable[Section]) -> dict[str, Verdict]:
    """Return the verdict on each statement of the paper that a table decides, by name."""
    return {name: verdict for section in sections for name, verdict in section.verdicts.items()}


def open_statements(sections: list[Section]) -> list[Statement]:
    """Return the statements with neither a verdict nor a test."""
    judged = collect_verdicts(sections)
    return [statement for statement in STATEMENTS if statement.name not in judged and not statement.tests]


def format_page(sections: list[Section]) -> str:
    """Return the page."""
    verdicts = collect_verdicts(sections)
    of_paper = [section for section in sections if section.stem in OF_PAPER]
    counts = [count_verdicts(verdicts), ""]
    for verdict in NOT_SIMPLE:
        numbers = [str(k) for k, s in enumerate(STATEMENTS, 1) if verdicts.get(s.name) is verdict]
        counts += [f"- **{capital(verdict.value)}**: {', '.join(numbers)}."] if numbers else []
    parts = [
        HEAD,
        format_exhibits(of_paper),
        VERDICTS,
        *counts,
        "",
        format_list(verdicts),
        *map(format_section, of_paper),
    ]
    return "\n".join([*parts, format_rechecks(provenance.read_records(FIGURES, provenance.RECHECKS))])


def format_rules(sections: list[Section]) -> str:
    """Return the page of the rules, one section for each experiment on the paper, and which tables are of this code."""
    parts = [RULES_HEAD]
    earlier = sorted({path.stem for path in FIGURES.glob("*.csv")} - set(CURRENT))
    parts += [
        "## Code of the tables",
        "",
        f"Measured with the solvers of this version: {', '.join(CURRENT)}. Measured with earlier ones, whose numbers "
        f"of steps and times differ and whose certified bounds hold all the same: {', '.join(earlier)}.",
        "",
    ]
    for section in sections:
        rules = [rule for one in section.found for rule in one.rules] if section.stem in OF_PAPER else []
        if rules:
            parts += [f"## {section.title}", ""]
            for words, same in groupby(rules, key=lambda rule: rule.words):
                parts.append(f"- {'; '.join(map(name_of, same))}: {words}.")
            parts.append("")
    return "\n".join(parts)


def format_beyond(sections: list[Section]) -> str:
    """Return the page on experiments beyond the paper."""
    beyond = [section for section in sections if section.stem in BEYOND]
    return "\n".join([BEYOND_HEAD, *(format_section(section, with_rules=True) for section in beyond)])


def count_verdicts(verdicts: Mapping[str, Verdict]) -> str:
    """Return the number of statements with each verdict, and of those verified by tests."""
    counts = Counter(verdicts.values())
    tested = sum(statement.name not in verdicts and bool(statement.tests) for statement in STATEMENTS)
    words = ", ".join(counted(counts[verdict], verdict) for verdict in Verdict if counts[verdict])
    return (
        f"Of {len(STATEMENTS)} numbered statements, {len(verdicts)} are judged from tables: {words}. The other "
        f"{tested} are mathematical and verified by tests."
    )


def counted(count: int, verdict: Verdict) -> str:
    """Return a number of statements with its verdict in the same number."""
    plural = verdict.value.replace("agrees", "agree").replace("differs", "differ")
    return f"{count} {verdict.value if count == 1 else plural}"


def summarize(verdicts: Mapping[str, Verdict]) -> str:
    """Return the counts, and the exhibits that do not agree in all parts, for the README."""
    found = {exhibit: exhibit.found(verdicts) for exhibit in read_exhibits()}
    lines = [
        f"- **{exhibit.name}** ({exhibit.claim}): {result}."
        for exhibit, result in found.items()
        if "partly" in result or "differs" in result
    ]
    return "\n".join([count_verdicts(verdicts), "", *lines, ""])


def format_exhibits(sections: Sequence[Section]) -> str:
    """Return the table of the exhibits, each with a link to the section of its first statement."""
    verdicts = collect_verdicts(sections)
    place = {name: section for section in sections for name in section.verdicts}
    lines = ["|exhibit|claim|found here|", "|-|-|-|"]
    for exhibit in read_exhibits():
        section = place.get(next(iter(exhibit.expected)))
        name = f"[{exhibit.name}](#{slug(section.title)})" if section else exhibit.name
        lines.append(f"|{name}|{exhibit.claim}|{exhibit.found(verdicts)}|")
    return "\n".join([*lines, ""])


def slug(title: str) -> str:
    """Return the anchor of a heading, by the rule of GitHub."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def format_tests(statement: Statement) -> str:
    """Return links to the files of the tests of a statement, with the names of the tests as titles."""
    parts = [test.split("::") for test in statement.tests]
    return ", ".join(f'[test](../tests/{file} "{name}")' for file, name in parts)


def format_list(verdicts: Mapping[str, Verdict]) -> str:
    """Return the numbered list of all statements."""
    lines = ["## The paper's statements", "", "||where|statement|verdict or test|", "|-|-|-|-|"]
    for number, statement in enumerate(STATEMENTS, 1):
        judged = verdicts.get(statement.name)
        held = judged.value if judged else format_tests(statement) or "**open**"
        text = statement.text.replace("|", "\\|")
        lines.append(f"|{number}|{statement.place}|{text}|{held}|")
    return "\n".join([*lines, ""])


def format_section(section: Section, with_rules: bool = False) -> str:
    """Return the text of one section, with or without the rules of its verdicts."""
    command, stem = f"make {section.stem.replace('_', '-')}", section.stem
    lines = [f"## {section.title}", ""]
    if not section.found:
        return "\n".join([*lines, f"Not measured yet: `{command}` writes figures/{stem}.csv.", ""])
    picture = f"![{stem}](../figures/{stem}.png)"
    lines += [picture, "", f"`{command}` · [table](../figures/{stem}.csv) · {section.about}", ""]
    return "\n".join([*lines, *(format_found(found, with_rules=with_rules) for found in section.found)])


def format_rechecks(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the section on tables measured again: dates, numbers of cells, and disagreements."""
    lines = ["## Tables measured again", "", RECHECKED, ""]
    if not records:
        return "\n".join([*lines, "No table has been measured again yet.", ""])
    cells, again = (sum(record[key] for record in records.values()) for key in ("cells", "compared"))
    found = [f"- `{name}`: {sentence}" for name, record in records.items() for sentence in record["disagreements"]]
    dates = sorted({record["date"] for record in records.values()})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    total = f"{when}: {again} of {cells} cells of {len(records)} tables, {len(found)} disagreements."
    return "\n".join([*lines, total, "", *([*found, ""] if found else [])])


def with_passage(text: str, mark: str, passage: str) -> str:
    """Return a page with the passage after a mark replaced."""
    begin = f"<!-- {mark} -->\n"
    before, _, rest = text.partition(begin)
    return before + begin + passage + END + rest.partition(END)[2]


def renew_readme(text: str, verdicts: Mapping[str, Verdict], tables: Path = FIGURES) -> str:
    """Return the README with its summary of the verdicts, and the passage of every existing table, replaced."""
    return with_tables(with_passage(text, "what differs", f"\n{summarize(verdicts)}\n"), PASSAGES, tables)


def renew_paper(text: str, verdicts: Mapping[str, Verdict], tables: Path = FIGURES) -> str:
    """Return the paper with its count of the verdicts, and the passage of every existing table, replaced."""
    return with_tables(with_passage(text, "verdicts", f"{count_verdicts(verdicts)}\n"), paper.PASSAGES, tables)


def with_tables(text: str, passages: Mapping[str, Callable[[pd.DataFrame], str]], tables: Path) -> str:
    """Return a page with the passage of every existing table replaced."""
    for name, passage in passages.items():
        path = tables / f"{name}.csv"
        if path.exists():
            text = with_passage(text, f"from figures/{name}.csv", passage(read_table(path)))
    return text


def main() -> int:
    """Write the page and the summary; return 1 if a statement is open."""
    sections = read_sections()
    verdicts = collect_verdicts(sections)
    write_text(PAGE, format_page(sections))
    write_text(RULES_PAGE, format_rules(sections))
    write_text(BEYOND_PAGE, format_beyond(sections))
    write_text(README, renew_readme(README.read_text(encoding="utf-8"), verdicts))
    write_text(paper.PAPER, renew_paper(paper.PAPER.read_text(encoding="utf-8"), verdicts))
    print(f"wrote {PAGE}, {RULES_PAGE}, {BEYOND_PAGE}, {README} and {paper.PAPER}: {count_verdicts(verdicts)}")
    missing = open_statements(sections)
    for statement in missing:
        print(f"neither a verdict nor a test: {statement.place}: {statement.text} ({statement.name})", file=sys.stderr)
    stale = [exhibit for exhibit in read_exhibits() if exhibit.found(verdicts) != exhibit.result]
    for exhibit in stale:
        print(f"{exhibit.name}: its result in exhibits.csv is for other verdicts. Write it again.", file=sys.stderr)
    return 1 if missing or stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
