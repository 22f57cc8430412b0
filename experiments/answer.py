"""Figure of one example, and a comparison of the default with other methods on labelled tables, for the README.

Run ``make answer``; then ``make reproduction`` updates the README.
"""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import diffrac_cvx as dc
from diffrac_cvx.problem.formatting import format_upper
from diffrac_cvx.typing import Array
from experiments.choice.cells import clusterings
from experiments.harness import provenance
from experiments.harness.style import ACCENT, SECONDARY, panels

FIGURES = Path("figures")
MOST = 10  # columns shown
OTHERS = ("k-means", "mixture", "spectral", "Ward")  # the columns of `clusterings`
LIMIT, TOL = 120.0, 1e-4  # seconds of the search for the optimum, and its tolerance, the default
MOST_POINTS = 1000  # of a search for more than two clusters
SHOWN = ("breast tumours", "wines", "irises", "digits 3 and 8", "ten digits", "heart")  # in the README
SHIPPED = ("breast_cancer", "heart", "diabetes", "liver_disorders", "sonar")


def draw(stem: Path) -> None:
    """Cluster the breast tumour data and draw the four panels of the result."""
    cells = load_breast_cancer()
    X, names = cells.data, list(cells.feature_names)
    model = dc.DiffracClustering(test_structure=True).fit(X)
    with panels(stem, 2, 2, 4.4) as (_, axes):
        dc.plotting.StructureDisplay(model.structure_).plot(axes.flat[0])
        true = cells.target_names[cells.target]
        points = dc.plotting.ProjectionDisplay.from_estimator(model, X, true, kind="class").plot(axes.flat[1])
        points.legend_.set_loc("upper right")
        points.legend_.set_frame_on(True)
        points.legend_.get_frame().set(facecolor="white", edgecolor="none", alpha=1.0)
        dc.plotting.DirectionDisplay.from_estimator(model, feature_names=names).plot(axes.flat[2], most=MOST)
        axes.flat[1].set_ylim(top=1.45 * axes.flat[1].get_ylim()[1])
        draw_proof(axes.flat[3], model.lower_bound_, model.lower_bound_ + model.label_gap_)
        words = ("structure test", "clusters and true classes", "feature importance", "certified bound")
        for letter, ax, title in zip("abcd", axes.flat, words, strict=True):
            ax.set_title(f"({letter}) {title}")


def draw_proof(ax: Axes, lower: float, cost: float) -> None:
    """Draw the cost of the partition and the range that the certified lower bound excludes."""
    ax.barh([0], [lower], height=0.5, color=SECONDARY, alpha=0.25)
    ax.text(0.0, 0.42, " certified: no\n partition here", color=SECONDARY, va="bottom", fontsize=7)
    ax.axvline(cost, color=ACCENT)
    ax.text(cost, -0.35, f" this partition: {format_upper(cost)}", color=ACCENT, va="top")
    ax.set(xlim=(0, 1), ylim=(-0.8, 1.0), yticks=[], xlabel="cost of a partition, from 0 (best) to 1 (worst)")


def tables() -> Iterator[tuple[str, Array, Any]]:
    """Yield labelled tables: names, features and true classes."""
    for name, load in (("breast tumours", load_breast_cancer), ("wines", load_wine), ("irises", load_iris)):
        yield name, *load(return_X_y=True)
    X, y = load_digits(return_X_y=True)
    for pair in ((3, 8), (4, 9), (1, 7)):
        rows = np.isin(y, pair)
        yield f"digits {pair[0]} and {pair[1]}", X[rows], y[rows]
    yield "ten digits", X, y
    for name in SHIPPED:
        yield name.replace("_", " "), *dc.datasets.load(name)


def compare() -> pd.DataFrame:
    """Return the agreement with the true classes, for the default, the optimum, and k-means."""
    rows = []
    for name, X, y in tables():
        K = len(np.unique(y))
        begun = time.perf_counter()
        model = dc.DiffracClustering(n_clusters=K, random_state=0, test_structure=True)
        with warnings.catch_warnings(action="ignore"):
            model.fit(X)
            seconds = time.perf_counter() - begun
            standard = StandardScaler().fit_transform(X)
            others = [cluster(standard) for cluster in clusterings(K).values()]
            proof = [np.nan] * 4
            exact, begun, objective = model.labels_, time.process_time(), model.lower_bound_ + model.label_gap_
            if K == 2:
                best = dc.DiffracClustering(random_state=0, prove=True, time_limit=LIMIT).fit(X)
                exact, objectives = best.labels_, [objective, best.lower_bound_ + best.label_gap_]
                proof = [*objectives, best.label_gap_, time.process_time() - begun]
            elif len(X) <= MOST_POINTS:
                best = dc.optimal_partition(standard, K, ridge=model.ridge, time_limit=LIMIT)
                exact, proof = best.labels, [objective, best.upper, best.gap, time.process_time() - begun]
        found = [dc.metrics.adjusted_rand_score(y, labels) for labels in (model.labels_, exact, *others)]
        said = "; ".join(reason.code for reason in model.diagnostics_)
        rows.append(
            [name, *X.shape, K, *found, model.structure_.verdict, model.structure_.pvalue, said, seconds, *proof]
        )
    columns = ["name", "n", "d", "groups", "default", "exact", *OTHERS, "structure", "p", "diagnostics"]
    columns += ["seconds", "objective", "objective of exact", "gap of exact", "seconds of proof"]
    return pd.DataFrame(rows, columns=columns)


def passage(table: pd.DataFrame) -> str:
    """Return the README passage that compares the default with other methods and the optimum."""
    header = f"| table | n x d | classes | default | {' | '.join(OTHERS)} | warnings | optimum | objectives | proved |"
    lines = [header, "|---" * (header.count("|") - 1) + "|"]
    for row in table[table["name"].isin(SHOWN)].to_dict("records"):
        said = row["diagnostics"] if isinstance(row["diagnostics"], str) else ""
        numbers = f"{row['n']} x {row['d']} | {row['groups']} | {row['default']:.2f}"
        numbers += "".join(f" | {row[name]:.2f}" for name in OTHERS)
        proof = "- | - | -"
        if row["gap of exact"] >= 0.0:
            objectives = f"{format_upper(row['objective'])}, {format_upper(row['objective of exact'])}"
            is_proved = row["gap of exact"] <= TOL
            seconds = f"{row['seconds of proof']:.2g} s" if is_proved else f"to {format_upper(row['gap of exact'])}"
            proof = f"{row['exact']:.2f} | {objectives} | {seconds}"
        lines.append(f"| {row['name']} | {numbers} | {said} | {proof} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    draw(FIGURES / "answer")
    compare().to_csv(FIGURES / "answer.csv", index=False, float_format="%.9g")
    provenance.record(["answer"], time.process_time())
    print("wrote figures/answer.csv and figures/answer.png")
