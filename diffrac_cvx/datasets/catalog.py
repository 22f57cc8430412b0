"""Catalogue of the data sets: origin, size and positive label, as recorded in ``catalog.toml``."""

import tomllib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Description of a data set.

    Attributes
    ----------
    name : str
        Name, as for ``load``.
    kind : str
        "two-class" (the nine of Table 1), "multi-label", or "extra" (two classes, not in Table 1).
    file : str
        File name: gzipped CSV with a header row and the label last (.csv.gz), NumPy npz with X, Y and label_names
        (.npz), or else LIBSVM text.
    shipped : bool
        Whether the file is part of the package; if not, ``load`` looks for it in the user's data folder.
    description, source, license : str
        Content of the columns, origin of the file, and terms of use.
    n, d : int
        Numbers of points and dimensions after all-zero rows and columns are dropped.
    classes : tuple of int
        Numbers of points labelled +1 and -1; for many labels, the number of points with each label, or empty.
    positive : float
        Label that becomes +1; all others become -1.
    sha256 : str
        Checksum of the file.
    content : str
        For an npz file made by users, checksum of its arrays, independent of the compression; or empty.
    url : str
        Address used by ``fetch``; empty if the file is shipped, or if the user has to get it manually.
    """

    name: str
    kind: str = "two-class"
    file: str
    shipped: bool = True
    description: str
    source: str
    license: str
    n: int
    d: int
    classes: tuple[int, ...] = ()
    positive: float = 1.0
    sha256: str
    content: str = ""
    url: str = ""


RECORDS = tomllib.loads(resources.files("diffrac_cvx.datasets").joinpath("catalog.toml").read_text(encoding="utf-8"))
SETS: dict[str, DataSet] = {
    name: DataSet(name=name, **{**record, "classes": tuple(record.get("classes", ()))})
    for name, record in RECORDS.items()
}
