"""What the measurements of Figures 5 and 6 say."""

import numpy as np
import pandas as pd

from experiments.harness.claims import Claim, Finding, judge
from experiments.multi_label.cells import SETS, SHOWN

TITLE = "Figures 5 and 6: many labels"
ABOUT = (
    "Corel5k, 2000 images and the 80 most frequent labels, **in place of COCO**, whose features are not public; three "
    "other sets. [Correlations](../figures/multi_label_correlations.png) of true and found labels."
)
STAND_IN = SETS[0]
PAPER = {"n": 2000, "d": 1000, "labels": 80}  # COCO with the features of a network, as the paper had it
FREE = "the clusters of k-means add up to the constant vector, and so does almost every rare true label"


def claims(table: pd.DataFrame) -> list[Claim | Finding]:
    """Return the statement on the trace, the same for each set, what the setting changes, and which labels are found.

    The statements are on the first set: the paper's, or what stands in for it.
    """
    (_, first), *others = table.groupby("data_set", sort=False)
    found: list[Claim | Finding] = [trace(first)]
    if (table["method"] == "correlations").any():
        found.append(best_labels(first))
    if (table["method"] == "setting").any():
        found.append(other_settings(table[table["data_set"] == STAND_IN]))
    return [*found, *(Finding(f"Figure 5 on {name}", describe_traces(mine)) for name, mine in others)]


def is_the_papers(table: pd.DataFrame) -> bool:
    """Whether the rows are of data of the size of the paper's."""
    return all((table[name].dropna() == size).all() for name, size in PAPER.items())


def mean_traces(table: pd.DataFrame) -> tuple[int, pd.DataFrame]:
    """Return the largest k up to the paper's, and the mean traces at it by method."""
    k = int(max(count for count in table["k"].unique() if count <= SHOWN))
    return k, table[table["k"] == k].groupby("method")[["overlap", "overlap_centred"]].mean()


def describe_traces(table: pd.DataFrame) -> str:
    """Return the traces of all methods in words."""
    k, mean = mean_traces(table)
    words = ", ".join(
        f"{mean.loc[method, 'overlap']:.2f} / {mean.loc[method, 'overlap_centred']:.2f} ({method})"
        for method in ("relaxation", "k-means of F", "k-means", "random")
    )
    n, d, labels = (int(table[name].dropna().iloc[0]) for name in ("n", "d", "labels"))
    return f"k = {k}, {labels} labels, n = {n}, d = {d}; trace with / without the constant vector: {words}."


def trace(table: pd.DataFrame) -> Claim:
    """The span of the found labels against that of the clusters of k-means."""
    _, mean = mean_traces(table)
    ahead = mean.loc["relaxation"] > mean.loc["k-means"]
    return Claim(
        "fig5-trace",
        f"{table['data_set'].iloc[0]}: {describe_traces(table)}",
        judge(bool(ahead.all()), bool(ahead.any()), comparable=is_the_papers(table)),
        "agrees if the trace of the relaxation is above that of k-means with and without the constant vector, partly if "
        "in one of the two; comparable on data of the paper's size only, 2000 images with 1000 features and 80 labels.",
        f"The second trace leaves out the constant vector: {FREE}.",
    )


def other_settings(table: pd.DataFrame) -> Finding:
    """What nu and the ridge change."""
    tried = table[table["method"] == "setting"]
    kmeans = table[(table["method"] == "k-means") & (table["k"] == SHOWN)][["overlap", "overlap_centred"]].mean()
    best = tried.loc[tried["overlap"].idxmax()]
    return Finding(
        f"how much Figure 5 on {STAND_IN} depends on nu and on the ridge",
        f"Over {len(tried)} settings the trace at k = {SHOWN} is {tried['overlap'].min():.2f} to {tried['overlap'].max():.2f} (nu = "
        f"{best['nu']:g}, a = {best['ridge']:g}), above k-means in {(tried['overlap'] > kmeans['overlap']).sum()}; without the "
        f"constant vector {tried['overlap_centred'].min():.2f} to {tried['overlap_centred'].max():.2f}, above k-means in "
        f"{(tried['overlap_centred'] > kmeans['overlap_centred']).sum()}.",
        "The setting of the figure was chosen among these by the true labels; the paper does not say its own.",
    )


def correlation_matrix(table: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Return the names of the true labels and their absolute correlations with the found ones, both in order.

    Rows are found labels and columns true ones, each by its sum of squares, the largest first.
    """
    rows = table[table["method"] == "correlations"]
    matrix = np.array([[float(value) for value in str(profile).split()] for profile in rows["profile"]]).T
    found, true = (np.argsort(-np.sum(matrix**2, axis=axis), kind="stable") for axis in (1, 0))
    names = rows["label"].tolist()
    return [str(names[j]) for j in true], matrix[np.ix_(found, true)]


def best_labels(table: pd.DataFrame) -> Claim:
    """The labels that are found best, and how well."""
    names, matrix = correlation_matrix(table)
    chance = table["chance"].max()
    words = ", ".join(f"{name} {column.max():.2f}" for name, column in zip(names[:10], matrix.T, strict=False))
    above = int(np.sum(matrix.max(axis=0) > 2 * chance))
    return Claim(
        "fig6-labels",
        f"{table['data_set'].iloc[0]}, k = {len(matrix)}, ten labels by their sums of squares, each with its largest "
        f"correlation: {words}; the largest of all is {matrix.max():.2f}, and {chance:.2f} for random labels.",
        judge(above >= 10, above >= 1, comparable=is_the_papers(table)),
        "agrees if ten true labels have a correlation above twice the largest one with random labels, partly if one has; "
        "comparable as Figure 5.",
        f"Here {above} labels have; the ten that the paper names are not among the labels of these data.",
    )
