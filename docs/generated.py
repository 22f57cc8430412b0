"""Tables of the pages that are generated from the package and from the tables of figures/."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

import diffrac_cvx as dc
from diffrac_cvx.comparison import list_methods
from diffrac_cvx.solvers.reference import memory_needed
from experiments.benchmark.convergence import GOALS, by_family
from experiments.benchmark.findings import gap_text, memory_text, pivot, seconds_text
from experiments.benchmark.scale import costs
from experiments.harness import findings
from experiments.harness.intervals import proportion_of
from experiments.mutation.scores import is_killed, scored
from experiments.optimal.findings import summarize_real

FIGURES = Path(__file__).parents[1] / "figures"
N, D = 200, 10  # of the sizes shown


def list_table(header: Sequence[str], rows: Sequence[Sequence[str]], widths: str = "auto") -> str:
    """Return a list-table of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [header, *rows]:
        lines += [("   * - " if j == 0 else "     - ") + entry for j, entry in enumerate(row)]
    return "\n".join(lines) + "\n"


def escape_text(text: str) -> str:
    """Return text that begins no list and ends no reference: "J. Platt" is a name."""
    return re.sub(r"^([A-Za-z]|\d+)([.)]) ", r"\1\\\2 ", text).replace("*", r"\*").replace("_ ", r"\_ ")


def table_of_data_sets(kinds: Sequence[str]) -> str:
    """Return a table of data sets: size, availability, description, source and licence."""
    rows = []
    for known in (dc.datasets.SETS[name] for kind in kinds for name in dc.datasets.names(kind)):
        where = "included" if known.shipped else "``fetch``" if known.url else "manual"
        size = [f"{known.n}", f"{known.d}"]
        what = f"{escape_text(known.description)}. *Source:* {escape_text(known.source)}. *Licence:* {escape_text(known.license)}."
        rows.append((f"``{known.name}``", *size, where, what))
    return list_table(("name", "n", "d", "file", "description, source, licence"), rows)


def table_of_stress(table: pd.DataFrame) -> str:
    """Return the results of `make stress`, by family."""
    rows = []
    for family, part in table.groupby("family"):
        total = part[["instances", "lower", "upper", "violations", "left_out"]].sum()
        widths = f"{part['median_width'].median():.0e}"
        counts = [str(total[name]) for name in ("instances", "lower", "upper", "violations", "left_out")]
        rows.append((str(family).replace("_", " "), *counts, widths))
    counted = ("instances", "lower bounds", "upper bounds", "violations", "exclusions")
    return list_table(("family", *counted, "median bracket"), rows)


def table_of_mutation(table: pd.DataFrame) -> str:
    """Return the results of `make mutation`, by part, with Wilson intervals."""
    rows = [mutation_row(str(part).replace("_", " "), group) for part, group in table.groupby("part", sort=False)]
    header = ("part", "possible", "tried", "killed", "equivalent", "killed of the others", "95 % interval")
    return list_table(header, [*rows, mutation_row("all", table)])


def mutation_row(name: str, table: pd.DataFrame) -> list[str]:
    """Return the numbers of one part: of the files' mutants, those tried, killed, and equivalent to the code as it is."""
    possible = int(table.groupby("file")["of"].first().sum())
    score = proportion_of(scored(table).to_numpy())
    counts = [possible, len(table), int(is_killed(table).sum()), int((table["reason"] != "").sum())]
    return [name, *map(str, counts), f"{score.value:.1%}", f"{score.low:.1%} to {score.high:.1%}"]


def table_of_convergence(goal: float, table: pd.DataFrame) -> str:
    """Return how many instances of each family each solver solved to a gap."""
    found = by_family(table, goal).fillna("–")
    rows = [[str(family), *map(str, row)] for family, row in zip(found.index, found.to_numpy(), strict=True)]
    return list_table(["family", *map(str, found.columns)], rows)


def table_of_scale(table: pd.DataFrame) -> str:
    """Return the cost of tables larger than memory, one table per row."""
    head, *rows = findings.lines_of(costs(table))
    return list_table(head, rows)


def table_of_exact_solvers(table: pd.DataFrame) -> str:
    """Return what `make optimal` certified on real data, beside what the authors of other exact solvers state."""
    found = f"measured here: certified {summarize_real(table)}"
    sizes = "real-world instances of up to 4000 data points solved"
    others = "in its serial version, better than BiqCrunch, GUROBI and SCIP on the majority of the benchmark instances"
    rows = (
        ("`optimal_labels`", "two clusters along a direction, Eq. (9)", "triangles, five and seven points", found),
        ("SOS-SDP", "k-means objective, K clusters", "pairs, triangles, cliques", sizes),
        ("BiqBin", "quadratic in binary variables, linear constraints", "triangles, five and seven points", others),
    )
    return list_table(("solver", "problem", "inequalities", "result"), rows)


def table_of_methods() -> str:
    """Return the methods that `compare` runs."""
    rows = []
    for name, method in list_methods().items():
        relaxation = dc.registry.RELAXATIONS.get(name.partition("/")[0])
        side = "none" if relaxation is None else relaxation.rows
        rows.append((f"``{name}``", method.problem, ", ".join(method.parts) or "none", side))
    return list_table(("method", "problem", "penalties, constraints", "side of its cone"), rows)


def reference_of_builders() -> str:
    """Return the page of the reference that lists the builder of each relaxation."""
    title, names = "Builders of relaxations", [f"   {name}" for name in dc.registry.RELAXATIONS]
    head = [title, "=" * len(title), "", ".. currentmodule:: diffrac_cvx", ""]
    return "\n".join([*head, ".. autosummary::", "   :toctree: api", "", *names, ""])


def table_of_sizes() -> str:
    """Return the cone of each relaxation, and the memory that `solve` estimates."""
    task = dc.registry.ComparisonTask(X=dc.datasets.make_planted(N, D, rng=0).X, alpha=0.25)
    rows = []
    for name, record in dc.registry.RELAXATIONS.items():
        relaxation = record.build(task)
        needs = [f"{memory_needed(relaxation.size, solver) / 1e9:.2g} GB" for solver in dc.registry.CVXPY_SOLVERS]
        side = f"({record.rows})" if "+" in record.rows else record.rows
        rows.append((f"`{name}`", ", ".join(record.equations), f"{side} × {side}", *needs))
    return list_table(("relaxation", "equation", "variable", *dc.registry.CVXPY_SOLVERS), rows)


def table_of_statuses() -> str:
    """Return the termination statuses of solvers."""
    return list_table(("status", "meaning"), [(f"``{status.name}``", status.value) for status in dc.Status])


def table_of_large(entry: Callable[[pd.Series], str], table: pd.DataFrame) -> str:
    """Return one of the benchmark's tables, an instance a row and a method a column."""
    head, *rows = pivot(table, entry).lines()
    return list_table(head, [["–" if text == "-" else escape_text(text) for text in row] for row in rows])


TABLES: dict[str, Callable[[], str]] = {
    "two_class": lambda: table_of_data_sets(("two-class", "extra")),
    "multi_label": lambda: table_of_data_sets(("multi-label",)),
    "methods": table_of_methods,
    "sizes": table_of_sizes,
    "statuses": table_of_statuses,
}
FROM_FIGURES: dict[str, tuple[str, Callable[[pd.DataFrame], str]]] = {  # from which table of figures/
    "large_seconds": ("benchmark", partial(table_of_large, seconds_text)),
    "large_gaps": ("benchmark", partial(table_of_large, gap_text)),
    "large_memory": ("benchmark", partial(table_of_large, memory_text)),
    "stress": ("stress", table_of_stress),
    "mutation": ("mutation", table_of_mutation),
    "convergence_loose": ("convergence", partial(table_of_convergence, GOALS[0])),
    "convergence_tight": ("convergence", partial(table_of_convergence, GOALS[1])),
    "scale": ("scale", table_of_scale),
    "exact_solvers": ("optimal", table_of_exact_solvers),
}


def from_figure(stem: str, text: Callable[[pd.DataFrame], str]) -> str:
    """Return what a page shows of a measured table, or which target of the Makefile measures it."""
    path = FIGURES / f"{stem}.csv"
    if not path.exists():
        target = {"validation": "validate"}.get(stem, stem.replace("_", "-"))
        return f"Not measured yet: ``make {target}``.\n"
    return text(pd.read_csv(path, keep_default_na=stem != "mutation"))


def write(folder: Path) -> None:
    """Write the page of the builders, and all tables, each to a file that a page includes."""
    folder.mkdir(exist_ok=True)
    (folder / "builders.rst").write_text(reference_of_builders())
    texts = {name: text() for name, text in TABLES.items()}
    texts |= {name: from_figure(*source) for name, source in FROM_FIGURES.items()}
    for name, text in texts.items():
        (folder / f"{name}.inc").write_text(text)
