"""Write docs/reproduction.md: every statement on the paper's experiments and theory beside our numbers, from tables.

Run ``make reproduction``; no sentence of the page is written by hand but those in this file.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pandas as pd

from experiments.harness.claims import Claim
from experiments.harness.tables import read_table

PAGE = Path("docs/reproduction.md")
FIGURES = Path("figures")

HEAD = """\
# What was reproduced, and what differs

Every statement that the paper makes about its experiments (section 7) and its theory (section 5), beside what this
project measured. The numbers come from the tables in `figures/`; `make figures` makes them anew, and this
page after them. "Agrees" and "differs" are decided by the numbers, by rules in `experiments/*/claims.py`.

The paper is N. Flammarion, B. Palaniappan and F. Bach, *Robust Discriminative Clustering with Sparse Regularizers*,
JMLR 18(80), 2017. "Error" is the clustering error 1 - (y'ŷ/n)², "gap" a proved bound on the distance to the optimum.
"""


@dataclass(frozen=True)
class Section:
    """A figure, its table, and the statements it bears on; the stem of the files is the folder of the experiment."""

    title: str
    stem: str
    data: str

    @property
    def command(self) -> str:
        """What makes the figure and the table."""
        return f"make {self.stem.replace('_', '-')}"

    def claims(self, table: pd.DataFrame) -> list[Claim]:
        """Return what the table says about the statements."""
        found: list[Claim] = import_module(f"experiments.{self.stem}.claims").claims(table)
        return found


SECTIONS = [
    Section(
        "Figure 1: phase transitions",
        "phase_transition",
        "Balanced, noiseless, columns of unit variance; four replications, twelve for d up to 20 in the affine panel.",
    ),
    Section(
        "Figure 2: unbalanced clusters",
        "unbalanced",
        "n = 80, d = 10, alpha* = 0.25, ten replications; sigma is the noise on the labels. The constrained relaxation "
        "is solved by SCS to 1e-9, the penalised one by `low_rank` to a gap of 1e-8.",
    ),
    Section(
        "Figure 3: runtime",
        "runtime",
        "A k-sparse direction among Gaussian noise columns, sigma = 0.3 on the labels; n varied at d = 50, k = 6, and "
        "d varied at n = 100, k = 2. One thread each. FISTA without an adjective is the paper's algorithm.",
    ),
    Section(
        "Figure 4: robustness to noise dimensions",
        "robustness",
        "n = 100, two relevant dimensions, sigma = 0.1, twenty replications.",
    ),
    Section(
        "Section 5: propositions, lemmas and conjectures",
        "theory",
        "Noiseless data [y, Z] unless said otherwise. Whether a solution is the only one is decided exactly "
        "(`experiments/theory/unique_solution.py`), not by the rank of what a solver returns.",
    ),
    Section(
        "Table 1: two-class data",
        "two_class",
        "Nine sets, columns standardised; the best of the paper's grid by the true labels, as the paper chose. "
        "[The tables](../figures/two_class.md) have what frames each figure, and settings chosen without labels.",
    ),
    Section(
        "Figures 5 and 6: many labels",
        "multi_label",
        "Corel5k, 2000 images and the 80 most frequent labels, **in place of COCO**, whose features are not public; "
        "three other sets. [Correlations](../figures/multi_label_correlations.png) of true and found labels.",
    ),
]


def format_page(tables: Path = FIGURES) -> str:
    """Return the page made from the tables of a folder; a missing table is said to be missing."""
    parts, every = [], []
    for section in SECTIONS:
        table = tables / f"{section.stem}.csv"
        if not table.exists():
            parts.append(f"## {section.title}\n\nNot measured yet: `{section.command}` writes {table}.\n")
            continue
        claims = section.claims(read_table(table))
        every += claims
        parts.append(format_section(section, claims))
    return "\n".join([HEAD, summarize(every), *parts])


def format_section(section: Section, claims: list[Claim]) -> str:
    """Return the text of one section."""
    lines = [
        f"## {section.title}",
        "",
        f"![{section.title}](../figures/{section.stem}.png)",
        "",
        f"`{section.command}` · [table](../figures/{section.stem}.csv) · {section.data}",
        "",
    ]
    for claim in claims:
        lines += [
            f"- **{claim.place}: {claim.verdict}.** {as_sentence(claim.says)}",
            f"  *Measured:* {claim.measured}" + (f" *Why:* {claim.why}" if claim.why else ""),
        ]
    return "\n".join([*lines, ""])


def as_sentence(text: str) -> str:
    """Return a phrase as a sentence."""
    opening = text if text[1:2].isspace() or text.startswith("cvx") else text[0].upper() + text[1:]  # not a symbol
    return opening + "."


def summarize(claims: list[Claim]) -> str:
    """Return how many statements agree, and which do not."""
    agree, differ, new = (sum(c.agrees is kind for c in claims) for kind in (True, False, None))
    places = "; ".join(f"{c.place} ({c.says})" for c in claims if c.agrees is False)
    return (
        f"Of {agree + differ} statements of the paper {agree} agree and {differ} differ; {new} more results are not in "
        f"the paper." + (f" Those that differ: {places}." if differ else "") + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(format_page())
    print(f"wrote {PAGE}")
