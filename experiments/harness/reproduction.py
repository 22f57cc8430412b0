"""Write docs/reproduction.md, docs/beyond.md and the passages of the README on experiments, from the tables.

The first page has every statement of the paper with its verdict; the second has every other experiment whose findings
have a TITLE and an ABOUT.  Run ``make reproduction``.  It fails if a statement has neither a verdict nor a test.

Experiments that test this package's solvers (``validate``, ``stress``, ``convergence``, ``benchmark``) are described in
the guides about solvers and reliability: they make no statement about the paper.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from diffrac_cvx.machine.writing import write_text
from experiments import answer
from experiments.benchmark import findings as benchmark
from experiments.choice import unequal
from experiments.harness import provenance
from experiments.harness.command import find_experiments, load, modules_of
from experiments.harness.findings import (
    BY_NAME,
    STATEMENTS,
    Finding,
    Statement,
    Verdict,
    capital,
    format_found,
    markdown,
)
from experiments.harness.tables import read_table
from experiments.structure import findings as structure

PAGE, BEYOND_PAGE = Path("docs/reproduction.md"), Path("docs/beyond.md")
README, FIGURES = Path("README.md"), Path("figures")
PASSAGES: dict[str, Callable[[pd.DataFrame], str]] = {
    "answer": answer.passage, "benchmark": benchmark.passage, "structure": structure.passage,
    "unequal": unequal.passage,
}  # fmt: skip
END = "<!-- end -->\n"  # of a passage of the README; its begin names the table
OF_PAPER = (  # in the order of the paper
    "phase_transition", "sparse_regime", "unbalanced", "runtime", "robustness", "theory", "two_class", "multi_label",
)  # fmt: skip
BEYOND = tuple(
    name
    for name, path in find_experiments().items()
    if name not in OF_PAPER and any("\nTITLE = " in module.read_text("utf-8") for module in modules_of(path))
)
EXPERIMENTS = OF_PAPER + BEYOND
NOT_SIMPLE = (Verdict.DIFFERS, Verdict.PARTLY, Verdict.VACUOUS, Verdict.NOT_COMPARABLE, Verdict.NOT_TESTED)
HEAD = """\
# Reproduction of the paper, statement by statement

The statements of N. Flammarion, B. Palaniappan and F. Bach, *Robust Discriminative Clustering with Sparse
Regularizers*, JMLR 18(80), 2017, each with a verdict or with the test that verifies it. `make figures` measures
their tables in `figures/` and writes this page. Experiments beyond the paper: [results](beyond.md).

A verdict follows from the rule printed below its table (code: `experiments/*/findings.py`): *agrees*, *partly agrees*,
*differs*, *vacuous* (a single cluster reaches the figure too), *not comparable* (needs the data of the paper), *not
tested* (the table does not decide). In brackets: 95 % intervals, Wilson's for proportions, of order statistics for
medians, otherwise Student's over replications. "Error" is 1 - (y'ŷ/n)²; "gap" is a certified bound on the distance to
the optimum.
"""

RECHECKED = """\
`figures/provenance.json` records the version, commit, machine and processor seconds of each table. `make recheck`
measures a random sample of cells again, two minutes each at most, the sample drawn from the date. Bounds of a cell must
overlap; errors and ranks, which depend on the processor if the solution is not unique, are compared as means of a
panel; other entries must be equal."""

BEYOND_HEAD = """\
# Results beyond the paper

Experiments on questions that the paper does not ask: noise on the labels, other methods, more clusters, wide tables,
few labels, optimal labels, tests of structure. Rules, verdicts and intervals: see [the reproduction](reproduction.md).
"""


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
    parts = [HEAD, *counts, "", format_list(verdicts), *map(format_section, of_paper)]
    return "\n".join([*parts, format_rechecks(provenance.read_records(FIGURES, provenance.RECHECKS))])


def format_beyond(sections: list[Section]) -> str:
    """Return the page on experiments beyond the paper."""
    return "\n".join([BEYOND_HEAD, *(format_section(section) for section in sections if section.stem in BEYOND)])


def count_verdicts(verdicts: Mapping[str, Verdict]) -> str:
    """Return the number of statements with each verdict, and of those verified by tests."""
    counts = Counter(verdicts.values())
    tested = sum(statement.name not in verdicts and bool(statement.tests) for statement in STATEMENTS)
    words = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    return (
        f"Of {len(STATEMENTS)} numbered statements, {len(verdicts)} are judged from tables: {words}. The other "
        f"{tested} are mathematical and verified by tests."
    )


def summarize(verdicts: Mapping[str, Verdict]) -> str:
    """Return the counts, and the statements that differ, for the README."""
    differing = [s for s in STATEMENTS if verdicts.get(s.name) is Verdict.DIFFERS]
    lines = [f"- **{capital(Verdict.DIFFERS.value)}**: {s.place} ({s.text})." for s in differing]
    return "\n".join([count_verdicts(verdicts), "", *lines, ""])


def format_list(verdicts: Mapping[str, Verdict]) -> str:
    """Return the numbered list of all statements."""
    lines = ["## The paper's statements", "", "||where|statement|verdict or test|", "|-|-|-|-|"]
    for number, statement in enumerate(STATEMENTS, 1):
        if statement.name in verdicts:
            held = verdicts[statement.name].value
        else:
            held = ", ".join(f"`tests/{test}`" for test in statement.tests) or "**open**"
        text = statement.text.replace("|", "\\|")
        lines.append(f"|{number}|{statement.place}|{text}|{held}|")
    return "\n".join([*lines, ""])


def format_section(section: Section) -> str:
    """Return the text of one section."""
    command, stem = f"make {section.stem.replace('_', '-')}", section.stem
    lines = [f"## {section.title}", ""]
    if not section.found:
        return "\n".join([*lines, f"Not measured yet: `{command}` writes figures/{stem}.csv.", ""])
    picture = f"![{section.title}](../figures/{stem}.png)"
    lines += [picture, "", f"`{command}` · [table](../figures/{stem}.csv) · {section.about}", ""]
    return "\n".join([*lines, *map(format_found, section.found)])


def format_rechecks(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the section on tables measured again: date, share of the cells, and disagreements."""
    lines = ["## Tables measured again", "", RECHECKED, ""]
    if not records:
        return "\n".join([*lines, "No table has been measured again yet.", ""])
    table = pd.DataFrame.from_dict(records, orient="index").rename_axis("table")
    table["disagreements"] = table["disagreements"].map(len)
    table["chosen"] = (table["compared"] / table["cells"]).map("{:.1%}".format)
    shown = table[["date", "cells", "compared", "chosen", "disagreements"]]
    found = [f"- `{name}`: {sentence}" for name, record in records.items() for sentence in record["disagreements"]]
    titles = {"compared": "again", "chosen": "share"}
    return "\n".join([*lines, markdown(shown.rename(columns=titles)), "", *([*found, ""] if found else [])])


def with_passage(text: str, mark: str, passage: str) -> str:
    """Return the README with the passage after a mark replaced."""
    begin = f"<!-- {mark} -->\n"
    before, _, rest = text.partition(begin)
    return before + begin + passage + END + rest.partition(END)[2]


def renew_readme(text: str, verdicts: Mapping[str, Verdict], tables: Path = FIGURES) -> str:
    """Return the README with its summary of the verdicts, and the passage of every existing table, replaced."""
    text = with_passage(text, "what differs", f"\n{summarize(verdicts)}\n")
    for name, passage in PASSAGES.items():
        path = tables / f"{name}.csv"
        if path.exists():
            text = with_passage(text, f"from figures/{name}.csv", passage(read_table(path)))
    return text


def main() -> int:
    """Write the page and the summary; return 1 if a statement is open."""
    sections = read_sections()
    verdicts = collect_verdicts(sections)
    write_text(PAGE, format_page(sections))
    write_text(BEYOND_PAGE, format_beyond(sections))
    write_text(README, renew_readme(README.read_text(encoding="utf-8"), verdicts))
    print(f"wrote {PAGE}, {BEYOND_PAGE} and {README}: {count_verdicts(verdicts)}")
    missing = open_statements(sections)
    for statement in missing:
        print(f"neither a verdict nor a test: {statement.place}: {statement.text} ({statement.name})", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
