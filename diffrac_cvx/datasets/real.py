"""Real data with two classes, shipped with the package."""

import gzip
import hashlib
import io
from dataclasses import dataclass
from importlib import resources

import numpy as np

from diffrac_cvx.errors import DataError
from diffrac_cvx.inputs import Array, one_of


@dataclass(frozen=True)
class DataSet:
    """What is known of a data set.

    Attributes
    ----------
    name : str
        What ``load`` knows it by.
    file : str
        A gzipped CSV file with a header row and the label last, in the folder ``data``.
    description, source, licence : str
        What the columns are, where the file comes from, under which terms.
    n, d : int
        Points and dimensions.
    positive : float
        The label that becomes +1; the other becomes -1.
    sha256 : str
        Checksum of the file.
    """

    name: str
    file: str
    description: str
    source: str
    licence: str
    n: int
    d: int
    positive: float
    sha256: str


BREAST_CANCER = DataSet(
    name="breast_cancer",
    file="breast_cancer.csv.gz",
    description="Sample id and nine cytological grades from 1 to 10; +1 is malignant (239), -1 is benign (444)",
    source=(
        "UCI, Breast Cancer Wisconsin (Original), W. H. Wolberg, by way of BreastCancer in the R package mlbench; "
        "16 rows with missing values dropped"
    ),
    licence="CC BY 4.0",
    n=683,
    d=10,
    positive=4,
    sha256="f9e1ff810e025714c384a43738175e2df9f1da51de553530703fe5428492828c",
)

SETS = {record.name: record for record in (BREAST_CANCER,)}


def names() -> tuple[str, ...]:
    """Return the names that ``load`` knows."""
    return tuple(SETS)


def describe(name: str) -> DataSet:
    """Return what is known of a data set.

    Parameters
    ----------
    name : str
        One of `names`.

    Raises
    ------
    ParameterError
        If the name is unknown.
    """
    return SETS[one_of(name, "name", SETS)]


def load(name: str) -> tuple[Array, Array]:
    """Return the data X (n, d), as in the file, and the labels y (n,) in {-1, +1}.

    Source: section 7.2, Table 1.  As in the paper, d = 10 for "breast_cancer" counts the sample id, the first column.

    Parameters
    ----------
    name : str
        One of `names`.

    Raises
    ------
    ParameterError
        If the name is unknown.
    DataError
        If the file is not the one that was shipped.
    """
    record = describe(name)
    table = np.loadtxt(io.StringIO(_text(record)), delimiter=",", skiprows=1)
    return np.ascontiguousarray(table[:, :-1]), np.where(table[:, -1] == record.positive, 1.0, -1.0)


def _text(record: DataSet) -> str:
    packed = resources.files("diffrac_cvx.datasets").joinpath("data", record.file).read_bytes()
    if hashlib.sha256(packed).hexdigest() != record.sha256:
        raise DataError(
            f"the file {record.file} of {record.name!r} is corrupted (its sha256 differs); reinstall the package"
        )
    return gzip.decompress(packed).decode()
