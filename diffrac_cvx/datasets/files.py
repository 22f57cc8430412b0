"""The files of data sets: where they are, and what they hold.

LIBSVM text is parsed here because an error has to name the file and the line, and because scikit-learn, which has a
reader of it, is an optional dependency.
"""

import gzip
import hashlib
import io
import os
import zipfile
import zlib
from importlib import resources
from pathlib import Path

import numpy as np

from diffrac_cvx.datasets.catalogue import DataSet
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array

HOME = "DIFFRAC_DATA_HOME"
FOLDERS = ("", "libsvm")  # inside a data folder
MOST_UNPACKED = 100_000_000  # bytes of arrays that are looked at


def cache_folder() -> Path:
    """Return the folder that ``fetch`` writes to: $DIFFRAC_DATA_HOME, else diffrac_cvx in the user's cache."""
    named = os.environ.get(HOME)
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "diffrac_cvx"


def possible_paths(record: DataSet) -> list[Path]:
    """Return where the file of a set that is not shipped may be."""
    return [cache_folder() / folder / record.file for folder in FOLDERS]


def checksum(packed: bytes) -> str:
    """Return the sha256 of the bytes of a file."""
    return hashlib.sha256(packed).hexdigest()


def content_checksum(packed: bytes) -> str:
    """Return the sha256 of the arrays in an npz file, which no version of zlib changes; empty for what is none."""
    known = hashlib.sha256()
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST_UNPACKED:
                return ""
            for name in sorted(archive.namelist()):
                known.update(name.encode() + b"\0" + archive.read(name))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        return ""
    return known.hexdigest()


def is_known(record: DataSet, packed: bytes) -> bool:
    """Whether bytes are the file of a data set, or hold the same arrays as that file."""
    return checksum(packed) == record.sha256 or (record.content != "" and content_checksum(packed) == record.content)


def read_packed(record: DataSet) -> bytes:
    """Return the bytes of a data set's file, checked against its sha256."""
    if record.shipped:
        packed = resources.files("diffrac_cvx.datasets").joinpath("data", record.file).read_bytes()
        where, remedy = record.file, "reinstall the package"
    else:
        path = next((path for path in possible_paths(record) if path.is_file()), None)
        if path is None:
            raise DataError(explain_missing(record))
        packed, where, remedy = path.read_bytes(), str(path), "delete it and get it again"
    if not is_known(record, packed):
        raise DataError(f"the file {where} of {record.name!r} is corrupted (its sha256 differs); {remedy}")
    return packed


def explain_missing(record: DataSet) -> str:
    """Return a sentence on where a file was looked for, and how to get it."""
    searched = " and ".join(str(path) for path in possible_paths(record))
    how = (
        f'The call diffrac_cvx.datasets.fetch("{record.name}") downloads it from {record.url}'
        if record.url
        else f"Get it by hand ({record.source}, sha256 {record.sha256}) and put it there"
    )
    return (
        f"{record.name!r} is not shipped with the package and is not at {searched}. {how}; ${HOME} names another folder"
    )


def read_libsvm(text: str, where: str) -> tuple[Array, Array]:
    """Return X and the labels of LIBSVM text: a label, then index:value pairs with indices from 1 on."""
    labels: list[float] = []
    entries: list[tuple[int, int, float]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        try:
            label = float(fields[0])
            pairs = [field.split(":") for field in fields[1:]]
            entries += [(len(labels), int(index) - 1, float(value)) for index, value in pairs]
        except ValueError:
            raise DataError(f"{where}, line {number}: {line[:60]!r} is not 'label index:value ...'") from None
        if any(int(index) < 1 for index, _ in pairs):
            raise DataError(f"{where}, line {number}: indices start at 1")
        labels.append(label)
    if not entries:
        raise DataError(f"{where} holds no data in LIBSVM format")
    rows, columns, values = zip(*entries, strict=True)
    X = np.zeros((len(labels), max(columns) + 1))
    X[list(rows), list(columns)] = values
    return X, np.array(labels)


def read_label_names(packed: bytes) -> tuple[str, ...]:
    """Return the names of the labels in an npz archive."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
        return tuple(str(name) for name in archive["label_names"])


def parse(record: DataSet, packed: bytes) -> tuple[Array, Array]:
    """Return X and the labels as they are in the file."""
    if record.file.endswith(".npz"):
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            return archive["X"].astype(np.float64), archive["Y"].astype(np.float64)
    if record.file.endswith(".csv.gz"):
        table = np.loadtxt(io.BytesIO(gzip.decompress(packed)), delimiter=",", skiprows=1, ndmin=2)
        return np.ascontiguousarray(table[:, :-1]), table[:, -1]
    return read_libsvm(packed.decode(), record.file)
