"""Findings on Figures 5 and 6."""

import numpy as np
import pandas as pd

from experiments.harness.findings import Finding, Rule, one_row
from experiments.multi_label.cells import METHODS, NU, RIDGE, SHOWN

TITLE = "Figures 5 and 6: many labels"
ABOUT = (
    "Corel5k, 2000 images and the 80 most frequent labels, **instead of COCO**, whose features are not public; three "
    "other sets. [Correlations](../figures/multi_label_correlations.png) between true and found labels."
)
PAPER = {"n": 2000, "d": 1000, "labels": 80}  # COCO with features of a neural network, as in the paper
WITH, WITHOUT = "overlap", "overlap_centred"  # traces with and without the constant vector
TEN = 10  # labels named in the paper


def is_ahead(table: pd.DataFrame) -> pd.Series:
    """Return for each set whether the relaxation's trace is above that of k-means, in both cases."""
    pairs = [table[f"relaxation{end}"] > table[f"k-means{end}"] for end in ("", ", centred")]
    return pairs[0] & pairs[1]


def like_the_papers(table: pd.DataFrame) -> pd.DataFrame:
    """Return the sets with as many images and labels as the paper's, whatever their features."""
    return table[(table["n"] == PAPER["n"]) & (table["labels"] == PAPER["labels"])]


TRACE = Rule(
    "fig5-trace",
    "agrees if on the sets with 2000 images and 80 labels, as in the paper, the relaxation's trace is above that of "
    "k-means, with the constant vector and without (centred); in part if on half of them; not comparable without one",
    lambda t: is_ahead(like_the_papers(t)).all(),
    lambda t: is_ahead(like_the_papers(t)).mean() >= 0.5,
    comparable=lambda t: len(like_the_papers(t)) > 0,
)
LABELS = Rule(
    "fig6-labels",
    f"agrees if {TEN} true labels have a correlation above twice the largest one with random labels, in part if one "
    "has; comparable on data of the paper's size, 2000 images with 1000 features and 80 labels",
    lambda t: (t["above twice chance"] >= TEN).all(),
    lambda t: (t["above twice chance"] >= 1).all(),
    comparable=lambda t: all((t[name] == size).all() for name, size in PAPER.items()),
)
RULES = (TRACE, LABELS)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the traces on all sets, and the best labels of the first set with correlations."""
    (name, first), *_ = table.groupby("data_set", sort=False)
    return [
        Finding(
            "Trace of the two projections, 'centred' without the constant vector, the sum of the k-means clusters",
            traces(table),
            [TRACE],
            f"nu = {NU:g} and the ridge, {RIDGE:g}, were chosen by the true labels.",
        ),
        Finding(
            f"Correlations of true labels with those found on {name}",
            best_labels(first),
            [LABELS],
            "The ten labels named in the paper do not occur in these data.",
        ),
    ]


def sizes(table: pd.DataFrame) -> dict[str, int]:
    """Return the largest k up to the paper's, and the size of a set."""
    k = max(count for count in table["k"].unique() if count <= SHOWN)
    return {"k": int(k), **{name: int(table[name].dropna().iloc[0]) for name in PAPER}}


def traces(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean trace of each method on each set, at the largest k up to the paper's."""
    records = {}
    for name, mine in table.groupby("data_set", sort=False):
        size = sizes(mine)
        mean = mine[mine["k"] == size["k"]].groupby("method")[[WITH, WITHOUT]].mean()
        columns = {f"{m}{end}": mean.loc[m, c] for c, end in ((WITH, ""), (WITHOUT, ", centred")) for m in METHODS}
        records[str(name)] = {**size, **columns}
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("set")


def correlation_matrix(table: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Return the names of the true labels and their absolute correlations with the found ones, both sorted.

    Rows are found labels and columns true ones, each in decreasing order of the sum of squares.
    """
    rows = table[table["method"] == "correlations"]
    matrix = np.array([[float(value) for value in str(profile).split()] for profile in rows["profile"]]).T
    found, true = (np.argsort(-np.sum(matrix**2, axis=axis), kind="stable") for axis in (1, 0))
    names = rows["label"].tolist()
    return [str(names[j]) for j in true], matrix[np.ix_(found, true)]


def best_labels(table: pd.DataFrame) -> pd.DataFrame:
    """Return the largest correlations of the ten labels with the largest sums of squares, and those of chance."""
    names, matrix = correlation_matrix(table)
    largest, chance = matrix.max(axis=0), float(table["chance"].max())
    return one_row(
        **sizes(table), **dict(zip(names[:TEN], map(float, largest), strict=False)), largest=float(largest.max()),
        random_labels=chance, above_twice_chance=int((largest > 2 * chance).sum()),
    )  # fmt: skip
