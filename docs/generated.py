"""Tables of the pages that are generated from the package and from the tables of figures/."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import diffrac_cvx as dc
from diffrac_cvx.comparison import list_methods
from diffrac_cvx.solvers.reference import choose_solver, memory_needed
from experiments.benchmark.cells import TIMES
from experiments.benchmark.convergence import GOALS, by_family
from experiments.benchmark.scale import costs
from experiments.benchmark.table import gap_text, memory_text, pivot, seconds_text
from experiments.choice import findings as choice
from experiments.few_labels import findings as few_labels
from experiments.groups import findings as groups
from experiments.harness import findings
from experiments.harness.intervals import proportion_of
from experiments.many_clusters.findings import means
from experiments.mutation.branches import shares_of
from experiments.mutation.scores import is_killed, scored
from experiments.optimal import findings as optimal
from experiments.structure import findings as structure
from experiments.wide.findings import at, by_method
from experiments.wide.methods import FIXED as FIXED_LAMS
from experiments.wide.methods import OWN

FIGURES = Path(__file__).parents[1] / "figures"
N, D = 200, 10  # of the sizes shown
WIDE_RIVALS = (
    "k-means",
    "spectral",
    "first component",
    "sparse k-means",
    "IF-PCA",
    "sparse component",
    "kurtosis",
    "pursuit",
)
WIDE_SETTINGS: dict[str, dict[str, Any]] = {
    "5 columns, shift 2": {"k": 5, "shift": 2.0},
    "20": {},
    "20, of 5000": {"d": 5000},
    "20, heavy tails": {"noise": "heavy tails"},
    "60, shift 0.8": {"k": 60, "shift": 0.8},
    "200, shift 0.8": {"k": 200, "shift": 0.8},
    "20, independent, shift 0.8": {"noise": "independent", "shift": 0.8},
    "20, independent": {"noise": "independent"},
    "20, correlated in blocks": {"noise": "blocks"},
    "20, clusters of 30 and 70": {"share": 0.3},
    "60 words, shift 2": {"noise": "words", "k": 60, "shift": 2.0},
}


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
    for known in (dc.datasets.describe(name) for kind in kinds for name in dc.datasets.names(kind)):
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


def table_of_coverage(table: pd.DataFrame) -> str:
    """Return the statements and branches of the library that the fast tests run, folder by folder."""
    named = [(str(row["folder"]), row) for _, row in table.iterrows()]
    rows = []
    for name, counts in [*named, ("all", table.drop(columns="folder").sum())]:
        both, branches = shares_of(counts)
        rows.append([name, str(counts["statements"]), str(counts["branches"]), f"{both:.1%}", f"{branches:.1%}"])
    return list_table(("folder", "statements", "branches", "of both, run", "of the branches, run"), rows)


def table_of_convergence(goal: float, table: pd.DataFrame) -> str:
    """Return how many instances of each family each solver solved to a gap."""
    found = by_family(table, goal).fillna("–")
    rows = [[str(family), *map(str, row)] for family, row in zip(found.index, found.to_numpy(), strict=True)]
    return list_table(["family", *map(str, found.columns)], rows)


def table_of_many_clusters(table: pd.DataFrame) -> str:
    """Return the mean adjusted Rand index of each method, a set a row, then the means over planted and real sets."""
    by_set = means(table)
    planted = by_set.index.str.startswith("planted")
    groups = {
        "**mean of the planted ones**": by_set[planted].mean(),
        "**mean of the real ones**": by_set[~planted].mean(),
    }
    rows = [(str(name), *(f"{value:.2f}" for value in row)) for name, row in [*by_set.iterrows(), *groups.items()]]
    return list_table(("data", *by_set.columns), rows)


def table_of_choice(table: pd.DataFrame) -> str:
    """Return the mean adjusted Rand index on each kind of sets, a method a row."""
    means = choice.means(table)
    rows = [(str(name), *("–" if pd.isna(mean) else f"{mean:.2f}" for mean in row)) for name, row in means.iterrows()]
    return list_table(("mean adjusted Rand index", *means.columns), rows)


def table_of_choice_by_set(table: pd.DataFrame) -> str:
    """Return the adjusted Rand index on each set."""
    means = table.groupby(["kind", "name"], sort=False).mean(numeric_only=True)
    columns = ("choice", "best", "kmeans", "mixture", "spectral")
    rows = [
        (str(kind), str(name), f"{row['n']:.0f} × {row['d']:.0f}", *(f"{row[column]:.2f}" for column in columns))
        for (kind, name), row in means.iterrows()
    ]
    return list_table(("kind", "set", "n × d", *(choice.METHODS[column] for column in columns)), rows)


def table_of_wide(table: pd.DataFrame) -> str:
    """Return the mean adjusted Rand index of the methods on the simulated tables, by setting."""
    made = table[table["kind"] == "made"]
    means = {name: by_method(at(made, **changed), "index").mean() for name, changed in WIDE_SETTINGS.items()}
    head = ["columns that differ", "relaxation", *WIDE_RIVALS]
    rows = [
        (name, *(f"{row[method]:.2f}".replace("-0.00", "0.00") for method in (OWN, *WIDE_RIVALS)))
        for name, row in means.items()
    ]
    return list_table(head, rows)


def table_of_wide_pairs(table: pd.DataFrame) -> str:
    """Return the mean adjusted Rand index of each method on the real pairs of classes."""
    pairs = table[table["kind"].isin(("design", "held-out"))]
    means = pairs.pivot_table(index="method", columns="kind", values="index", sort=False)
    means["all"] = pairs.groupby("method")["index"].mean()
    named = {OWN: "relaxation, at the weight of the rule", **{name: f"relaxation, {name}" for name in FIXED_LAMS}}
    rows = [(named.get(str(name), str(name)), *(f"{value:.2f}" for value in row)) for name, row in means.iterrows()]
    counts = [f"{count} {kind} pairs" for kind, count in pairs.groupby("kind", sort=False)["name"].nunique().items()]
    head = ("mean adjusted Rand index", *counts, f"all {pairs['name'].nunique()} pairs")
    return list_table(head, rows)


def table_of_scale(table: pd.DataFrame) -> str:
    """Return the cost of tables larger than memory, one table per row."""
    head, *rows = findings.lines_of(costs(table))
    return list_table(head, rows)


def table_of_methods() -> str:
    """Return the methods that `compare` runs."""
    rows = []
    for name, method in list_methods().items():
        relaxation = dc.registry.RELAXATIONS.get(name.partition("/")[0])
        side = "none" if relaxation is None else relaxation.rows
        rows.append((f"``{name}``", method.problem, ", ".join(method.parts) or "none", side))
    return list_table(("method", "problem", "penalties, constraints", "side of its cone"), rows)


def table_of_sizes() -> str:
    """Return the cone of each relaxation, and the memory that `solve` estimates."""
    X, parameters = dc.datasets.make_planted(N, D, rng=0).X, dc.registry.Parameters(alpha=0.25)
    rows = []
    for name, record in dc.registry.RELAXATIONS.items():
        relaxation = record.build(X, parameters)
        needs = [f"{memory_needed(relaxation.size, solver) / 1e9:.2g} GB" for solver in dc.registry.cvxpy_solvers()]
        chosen = f"``{choose_solver(relaxation.size)}``"
        rows.append((f"`{name}`", ", ".join(record.equations), record.shape.replace("x", "×"), *needs, chosen))
    return list_table(("relaxation", "equation", "variable", *dc.registry.cvxpy_solvers(), "chosen"), rows)


def table_of_statuses() -> str:
    """Return the termination statuses of solvers."""
    return list_table(("status", "meaning"), [(f"``{status.name}``", status.value) for status in dc.Status])


def table_of_equal_gap(lam: float, table: pd.DataFrame) -> str:
    """Return the median seconds to a proved relative gap of 0.01 at d = 50, by method and n, where all runs reached it."""
    column = TIMES[0]
    chosen = table[(table["panel"] == "n") & (table["goal"] == "gap") & (table["lam"] == lam)]
    groups = chosen.groupby(["method", "n"])[column]
    seconds = groups.median().where(groups.count() == groups.size()).unstack("n")
    order = [method for method in dict.fromkeys(table["method"]) if method in seconds.index]
    rows = [(method, *("–" if pd.isna(value) else f"{value:.2g}" for value in seconds.loc[method])) for method in order]
    return list_table(("seconds", *(f"n = {n:,}".replace(",", " ") for n in seconds.columns)), rows)


def table_of_large(entry: Callable[[pd.Series], str], table: pd.DataFrame) -> str:
    """Return one of the benchmark's tables, an instance a row and a method a column."""
    head, *rows = pivot(table, entry).lines()
    return list_table(head, [["–" if text == "-" else escape_text(text) for text in row] for row in rows])


def table_of_few_labels(table: pd.DataFrame) -> str:
    """Return the mean accuracies on the points without labels, a set a row and a number of known labels a column."""
    balanced, methods = table[table["draw"] == "balanced"], ["relaxation", "ridge", "label spreading"]
    means = balanced.groupby(["kind", "name", "known"], sort=False)[methods].mean()
    numbers = sorted(table["known"].unique())
    rows = []
    for kind in few_labels.KINDS:
        by_set = means.loc[kind]
        entries = {name: by_set.loc[name] for name in by_set.index.unique("name")}
        for name, found in entries.items():
            texts = [three(found.loc[known]) if known in found.index else "–" for known in numbers]
            rows.append((str(name).replace("_", " "), kind, *texts))
        rows.append(
            (
                f"**mean**, {len(entries)} sets",
                kind,
                *(three(by_set.xs(known, level="known").mean()) for known in numbers),
            )
        )
    return list_table(("set", "kind", *(f"{known} labels" for known in numbers)), rows)


def three(values: pd.Series) -> str:
    """Return accuracies in two digits, without the 0."""
    return " / ".join(f"{value:.2f}".removeprefix("0") for value in values)


LEAST_WEIGHT = r":math:`w^2 (s' - 1) d / (1 + a^2 + w^2)`"


def table_of_least_weights(table: pd.DataFrame) -> str:
    """Return the least weights that hide an exact direction, measured and expected, by kind of table."""
    header, *rows = findings.lines_of(groups.law_table(table[table["part"] == "law"]))
    return list_table([LEAST_WEIGHT if name == "smallest weight" else name for name in header], rows)


def findings_of(found: Callable[[pd.DataFrame], list[findings.Finding]], table: pd.DataFrame) -> str:
    """Return what an experiment found, as tables with captions."""
    return "\n".join(map(format_finding, found(table))) + "\n"


def format_finding(one: findings.Finding) -> str:
    """Return a finding: a table after its caption."""
    head, *rows = findings.lines_of(one.table)
    caption = escape_text(f"{one.caption}. {one.comment}".rstrip())
    return f"{caption}\n\n{list_table(head, [[escape_text(entry) for entry in row] for row in rows])}"


TABLES: dict[str, Callable[[], str]] = {
    "two_class": lambda: table_of_data_sets(("two-class", "extra")),
    "multi_label": lambda: table_of_data_sets(("multi-label",)),
    "methods": table_of_methods,
    "sizes": table_of_sizes,
    "statuses": table_of_statuses,
}
FROM_FIGURES: dict[str, tuple[str, Callable[[pd.DataFrame], str]]] = {  # from which table of figures/
    "equal_gap_plain": ("runtime", partial(table_of_equal_gap, 0.0)),
    "equal_gap_sparse": ("runtime", partial(table_of_equal_gap, 0.001)),
    "large_seconds": ("benchmark", partial(table_of_large, seconds_text)),
    "large_gaps": ("benchmark", partial(table_of_large, gap_text)),
    "large_memory": ("benchmark", partial(table_of_large, memory_text)),
    "stress": ("stress", table_of_stress),
    "optimal": ("optimal", partial(findings_of, lambda table: optimal.findings(table)[:2])),
    "optimal_losses": ("optimal", partial(findings_of, lambda table: optimal.findings(table)[-3:])),
    "few_labels": ("few_labels", table_of_few_labels),
    "few_labels_findings": ("few_labels", partial(findings_of, few_labels.findings)),
    "structure": ("structure", partial(findings_of, structure.findings)),
    "groups_law": ("groups", table_of_least_weights),
    "groups_findings": ("groups", partial(findings_of, groups.on_planted_groups)),
    "mutation": ("mutation", table_of_mutation),
    "coverage": ("coverage", table_of_coverage),
    "convergence_loose": ("convergence", partial(table_of_convergence, GOALS[0])),
    "convergence_tight": ("convergence", partial(table_of_convergence, GOALS[1])),
    "many_clusters": ("many_clusters", table_of_many_clusters),
    "choice": ("choice", table_of_choice),
    "choice_by_set": ("choice", table_of_choice_by_set),
    "choice_findings": (
        "choice",
        partial(findings_of, lambda table: [choice.gains_over_default(table[table["kind"] != "made"])]),
    ),
    "wide": ("wide", table_of_wide),
    "wide_pairs": ("wide", table_of_wide_pairs),
    "scale": ("scale", table_of_scale),
}
PICTURES = {  # of figures/, with their words
    "few_labels_picture": (
        "few_labels", "Accuracy of all methods over the number of known labels, and the gain over ridge regression"
    ),
    "structure_picture": (
        "structure", "Share of each verdict, and of the tables that other tests reject, by family of tables"
    ),
    "groups_picture": (
        "groups", "Recovery rate of planted feature groups, label errors, and the weight that hides a direction"
    ),
    "convergence_picture": ("convergence", "Goals reached, by family, size and solver."),
    "scale_picture": ("scale", "Time, memory and bytes sent per pass against the size of the table"),
    "large_picture": ("benchmark", "Time to two relative gaps, by instance and method."),
}  # fmt: skip


def from_figure(stem: str, text: Callable[[pd.DataFrame], str]) -> str:
    """Return what a page shows of a measured table, or which target of the Makefile measures it."""
    path = FIGURES / f"{stem}.csv"
    if not path.exists():
        target = {"validation": "validate"}.get(stem, stem.replace("_", "-"))
        return f"Not measured yet: ``make {target}``.\n"
    return text(pd.read_csv(path, keep_default_na=stem != "mutation"))


def picture_of(stem: str, words: str) -> str:
    """Return the figure of an experiment, where there is one."""
    return f".. image:: /../figures/{stem}.png\n   :alt: {words}\n" if (FIGURES / f"{stem}.png").exists() else ""


def write(folder: Path) -> None:
    """Write all tables, each to a file that a page includes."""
    folder.mkdir(exist_ok=True)
    texts = {name: text() for name, text in TABLES.items()}
    texts |= {name: from_figure(*source) for name, source in FROM_FIGURES.items()}
    texts |= {name: picture_of(*picture) for name, picture in PICTURES.items()}
    for name, text in texts.items():
        (folder / f"{name}.inc").write_text(text)
