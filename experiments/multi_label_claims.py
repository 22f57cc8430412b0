"""What the measurements of Figures 5 and 6 say."""

import pandas as pd

from experiments.claims import Claim
from experiments.multi_label_cells import SHOWN


def claims(table: pd.DataFrame) -> list[Claim]:
    """Return one statement for each set, and the shape of the curve."""
    return [against_kmeans(name, mine) for name, mine in table.groupby("set", sort=False)]


def against_kmeans(name: str, table: pd.DataFrame) -> Claim:
    """The span of the found labels against that of the clusters of k-means."""
    mean = table.groupby(["method", "k"])[["overlap", "overlap_centred"]].mean()
    k = int(max(count for count in table["k"].unique() if count <= SHOWN))
    ours, theirs, floor = (mean.loc[(method, k)] for method in ("relaxation", "k-means", "random"))
    return Claim(
        f"Figure 5, {name}",
        "the trace of the two projections is above that of k-means"
        if name == "corel5k"
        else "not in the paper: the same on another set",
        f"k = {k}, {int(table['labels'].iloc[0])} labels, n = {int(table['n'].iloc[0])}, d = {int(table['d'].iloc[0])}: "
        f"{ours['overlap']:.2f} (relaxation), {theirs['overlap']:.2f} (k-means), {floor['overlap']:.2f} (random); without the "
        f"constant vector {ours['overlap_centred']:.2f}, {theirs['overlap_centred']:.2f}, {floor['overlap_centred']:.2f}.",
        bool(ours["overlap"] > theirs["overlap"]) if name == "corel5k" else None,
        "COCO's features are not public; Corel5k with its 80 most frequent labels and 2000 rows stands in."
        if name == "corel5k"
        else "",
    )
