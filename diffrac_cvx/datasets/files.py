"""Locate, verify, download and parse the files of the data sets.

LIBSVM text is parsed here because errors must name the file and the line, and because scikit-learn, which has a
LIBSVM reader, is an optional dependency.
"""

import gzip
import hashlib
import io
import os
import zipfile
import zlib
from importlib import resources
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from diffrac_cvx.datasets.catalog import SETS, DataSet
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.writing import atomic_file
from diffrac_cvx.points.checks import Array, one_of

DATA_HOME_VARIABLE = "DIFFRAC_DATA_HOME"
SUBFOLDERS = ("", "libsvm")  # inside the data folder
MAX_UNPACKED = 100_000_000  # unpacked bytes of arrays to be checked
LOOPBACK = ("127.0.0.1", "::1", "localhost")
BLOCK, MAX_BLOCKS = 65536, 1500  # bytes and blocks of a download; the files have at most a few megabytes
TIMEOUT = 30.0  # seconds without a response


def cache_folder() -> Path:
    """Return the download folder of ``fetch``: $DIFFRAC_DATA_HOME, or diffrac_cvx in the user's cache folder."""
    named = os.environ.get(DATA_HOME_VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "diffrac_cvx"


def possible_paths(record: DataSet) -> list[Path]:
    """Return the possible paths of a data set that is not shipped."""
    return [cache_folder() / folder / record.file for folder in SUBFOLDERS]


def checksum(packed: bytes) -> str:
    """Return the sha256 of the bytes of a file."""
    return hashlib.sha256(packed).hexdigest()


def content_checksum(packed: bytes) -> str:
    """Return the sha256 of the arrays in an npz file, which is the same for all zlib versions; "" for other files."""
    known = hashlib.sha256()
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MAX_UNPACKED:
                return ""
            for name in sorted(archive.namelist()):
                known.update(name.encode() + b"\0" + archive.read(name))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        return ""
    return known.hexdigest()


def matches_checksum(record: DataSet, packed: bytes) -> bool:
    """Return whether bytes are the file of a data set, or contain the same arrays."""
    return checksum(packed) == record.sha256 or (record.content != "" and content_checksum(packed) == record.content)


def read_packed(record: DataSet) -> bytes:
    """Return the bytes of a data set's file after checking its sha256."""
    if record.shipped:
        packed = resources.files("diffrac_cvx.datasets").joinpath("data", record.file).read_bytes()
        where, remedy = record.file, "Reinstall the package"
    else:
        path = next((path for path in possible_paths(record) if path.is_file()), None)
        if path is None:
            raise DataError(explain_missing(record))
        packed, where, remedy = path.read_bytes(), str(path), "Delete it and get it again"
    if not matches_checksum(record, packed):
        raise DataError(f"the file {where} of {record.name!r} is corrupted (its sha256 differs). {remedy}")
    return packed


def explain_missing(record: DataSet) -> str:
    """Return the message on a missing file: the paths searched and how to get it."""
    searched = " and ".join(str(path) for path in possible_paths(record))
    how = (
        f'Call diffrac_cvx.datasets.fetch("{record.name}") to download it from {record.url}'
        if record.url
        else f"Get it manually ({record.source}, sha256 {record.sha256}) and put it there"
    )
    return f"{record.name!r} is not shipped and not found at {searched}. {how}, or set ${DATA_HOME_VARIABLE}"


def read_libsvm(text: str, where: str) -> tuple[Array, Array]:
    """Return X and the labels of LIBSVM text: a label and index:value pairs per line, with indices from 1."""
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
            raise DataError(f"{where}, line {number}: {line[:60]!r} must be 'label index:value ...'") from None
        if any(int(index) < 1 for index, _ in pairs):
            raise DataError(f"{where}, line {number}: indices must be at least 1")
        labels.append(label)
    if not entries:
        raise DataError(f"{where} contains no data in LIBSVM format")
    rows, columns, values = zip(*entries, strict=True)
    require_memory(8.0 * len(labels) * (max(columns) + 1), f"{where} as a dense table", "use a part of it")
    X = np.zeros((len(labels), max(columns) + 1))
    X[list(rows), list(columns)] = values
    return X, np.array(labels)


def read_label_names(packed: bytes) -> tuple[str, ...]:
    """Return the label names in an npz archive."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
        return tuple(str(name) for name in archive["label_names"])


def parse_file(record: DataSet, packed: bytes) -> tuple[Array, Array]:
    """Return X and the labels of a file unchanged."""
    if record.file.endswith(".npz"):
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            return archive["X"].astype(np.float64), archive["Y"].astype(np.float64)
    if record.file.endswith(".csv.gz"):
        table = np.loadtxt(io.BytesIO(gzip.decompress(packed)), delimiter=",", skiprows=1, ndmin=2)
        return np.ascontiguousarray(table[:, :-1]), table[:, -1]
    return read_libsvm(packed.decode(), record.file)


def fetch(name: str, *, url: str | None = None) -> Path:
    """Download the file of a data set, unless it is already present, and return its path.

    The file is saved in $DIFFRAC_DATA_HOME, or in diffrac_cvx in the user's cache folder, and only if its sha256 is the
    known one.  An interrupted download starts from the beginning: the files have at most a few megabytes.

    Parameters
    ----------
    name : str
        Data set that is not shipped and has a known address, such as "australian", "dna" or "w1a".
    url : str, optional
        Mirror of the file, by https (http on this machine only); by default the page named in the paper.  Redirects are
        refused.

    Raises
    ------
    ParameterError
        If the name is unknown, the data set is shipped, or no address is known.
    DataError
        If the file cannot be downloaded or written, has another sha256, or has moved.
    """
    record = SETS[one_of(name, "name", SETS)]
    if record.shipped:
        raise ParameterError(f"{name!r} is shipped with the package. Load it instead")
    for path in possible_paths(record):
        if path.is_file() and matches_checksum(record, path.read_bytes()):
            return path
    if not (address := url or record.url):
        raise ParameterError(explain_missing(record))
    parts = urlsplit(address)
    is_allowed = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not (is_allowed and parts.hostname):
        raise DataError(f"{address} cannot be used for {name!r}: the protocol must be https")
    import requests  # here because most users never download a file

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with requests.get(address, stream=True, timeout=TIMEOUT, allow_redirects=False) as response:
            if response.status_code != requests.codes.ok:
                raise requests.RequestException(response=response)
            packed = b"".join(islice(response.iter_content(BLOCK), MAX_BLOCKS))
        if not matches_checksum(record, packed):
            raise DataError(f"{address} is not the known file of {name!r} (its sha256 differs); no file was saved")
        with atomic_file(folder / record.file) as part:
            part.write_bytes(packed)
    except requests.RequestException as error:
        answer = type(error).__name__ if error.response is None else f"status {error.response.status_code}"
        raise DataError(
            f"{name!r} could not be downloaded from {address} ({answer}); no file was saved. Check the connection, or "
            "pass the url of a mirror"
        ) from None
    except OSError as error:
        raise DataError(
            f"the folder {folder} cannot be written to ({error.strerror}). Set ${DATA_HOME_VARIABLE} to another folder"
        ) from None
    return folder / record.file
