"""Write the README passages on experiments from their tables, between marks that name the tables.

Run ``make reproduction`` after ``make benchmark`` or ``make answer``.
"""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from diffrac_cvx.machine.writing import write_text
from experiments import answer
from experiments.benchmark import findings as benchmark

README, FIGURES = Path("README.md"), Path("figures")
PASSAGES: dict[str, Callable[[pd.DataFrame], str]] = {
    "answer": answer.passage,
    "benchmark": benchmark.passage,
}
END = "<!-- end -->\n"


def with_passage(text: str, name: str, passage: str) -> str:
    """Return the README with the passage between the marks of a table replaced."""
    begin = f"<!-- from figures/{name}.csv -->\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(END)
    return before + begin + passage + END + after


def with_passages(text: str, figures: Path) -> str:
    """Return the README with the passage of every existing table replaced."""
    for name, passage in PASSAGES.items():
        table = figures / f"{name}.csv"
        if table.exists():
            text = with_passage(text, name, passage(pd.read_csv(table)))
    return text


if __name__ == "__main__":
    write_text(README, with_passages(README.read_text(encoding="utf-8"), FIGURES))
    print(f"wrote {README}")
