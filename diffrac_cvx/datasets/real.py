"""Real data sets: nine with two classes, as in the paper's Table 1, four with many labels, and their files."""

import gzip
import hashlib
import io
import os
import threading
import tomllib
import zipfile
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.writing import atomic_file
from diffrac_cvx.points.checks import Array, one_of, positive
from diffrac_cvx.points.linear_algebra import inverse_or_one, standardize_columns

KINDS = ("two-class", "multi-label", "extra")
DATA_HOME_VARIABLE = "DIFFRAC_DATA_HOME"
SUBFOLDERS = ("", "libsvm")  # inside the data folder
MAX_UNPACKED = 100_000_000  # unpacked bytes of arrays to be checked
BLOCK, MAX_BLOCKS = 65536, 1500  # bytes and blocks of a download; the files have at most a few megabytes
TIMEOUT = 30.0  # seconds without a response


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Description of a data set, as recorded in ``catalog.toml``.

    Attributes
    ----------
    name : str
        Name, as for ``load``.
    kind : str
        "two-class" (the nine of Table 1), "multi-label", or "extra" (two classes, not in Table 1).
    file : str
        File name: gzipped CSV with a header row and the label last (.csv.gz), NumPy npz with X, Y and label_names
        (.npz), or LIBSVM text.
    shipped : bool
        Whether the file is part of the package; if not, ``load`` looks for it in the user's data folder.
    description, source, license : str
        Content of the columns, origin of the file, and terms of use.
    n, d : int
        Numbers of points and dimensions after all-zero rows and columns are dropped.
    classes : tuple of int
        Numbers of points labelled +1 and -1; for many labels, the number of points with each label, or ().
    positive : float
        Label that becomes +1; all others become -1.
    sha256 : str
        Checksum of the file.
    content : str
        For an npz file built by users, checksum of its arrays, independent of the compression; otherwise "".
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


RECORDS = tomllib.loads(Path(__file__).with_name("catalog.toml").read_text(encoding="utf-8"))
SETS = {name: DataSet(name=name, **{**one, "classes": tuple(one.get("classes", ()))}) for name, one in RECORDS.items()}
SCALINGS: dict[str, Callable[[Array], Array]] = {
    "none": lambda X: X,
    "standardize": lambda X: standardize_columns(X),
    "min-max": lambda X: 2.0 * (X - X.min(axis=0)) * inverse_or_one(np.ptp(X, axis=0)) - 1.0,
}


def names(kind: str = "two-class") -> tuple[str, ...]:
    """Return the names of the data sets for ``load``, in the order of the paper's Table 1.

    Parameters
    ----------
    kind : {"two-class", "multi-label", "extra"}
        Kind of data set; "extra" has two classes and is not in Table 1.

    Raises
    ------
    ParameterError
        If the kind is unknown.
    """
    one_of(kind, "kind", KINDS)
    return tuple(name for name, record in SETS.items() if record.kind == kind)


def load(name: str, *, scaling: str = "none") -> tuple[Array, Array]:
    """Return the data X (n, d) and the labels in {-1, +1}: y (n,), or Y (n, K) for a multi-label data set.

    Rows and columns of zeros are dropped, as in the paper: a1a then has 113 columns, w1a is 2270 x 290.

    Source: section 7.2, Table 1.  As in the paper, d = 10 for "breast_cancer" counts the sample id, the first column.

    Parameters
    ----------
    name : str
        One of `names`, of any kind.
    scaling : {"none", "standardize", "min-max"}
        "standardize" gives columns with mean 0 and variance 1, "min-max" columns in [-1, 1].

    Raises
    ------
    ParameterError
        If the name or the scaling is unknown.
    DataError
        If the file is missing or has another sha256; the message names the paths searched and how to get the file.
    """
    record = SETS[one_of(name, "name", SETS)]
    one_of(scaling, "scaling", SCALINGS)
    X, labels = parse_file(record, read_packed(record))
    rows = X.any(axis=1)
    X, labels = X[np.ix_(rows, X.any(axis=0))], labels[rows]
    return np.ascontiguousarray(SCALINGS[scaling](X)), np.where(labels == record.positive, 1.0, -1.0)


def cache_folder() -> Path:
    """Return the download folder of ``fetch``: $DIFFRAC_DATA_HOME, or diffrac_cvx in the user's cache folder."""
    named = os.environ.get(DATA_HOME_VARIABLE)
    return Path(named or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "diffrac_cvx")).expanduser()


def possible_paths(record: DataSet) -> list[Path]:
    """Return the possible paths of the file of a data set."""
    if record.shipped:
        return [Path(__file__).with_name("data") / record.file]
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
    path = next(filter(Path.is_file, possible_paths(record)), None)
    if path is None:
        raise DataError(explain_missing(record))
    packed = path.read_bytes()
    if not matches_checksum(record, packed):
        remedy = "Reinstall the package" if record.shipped else "Delete it and get it again"
        raise DataError(f"the file {path} of {record.name!r} is corrupted (its sha256 differs). {remedy}")
    return packed


def explain_missing(record: DataSet) -> str:
    """Return the message on a missing file: the paths searched and how to get it."""
    searched = " and ".join(str(path) for path in possible_paths(record))
    how = f"Get it manually ({record.source}, sha256 {record.sha256}) and put it there"
    if record.url:
        how = f'Call diffrac_cvx.datasets.fetch("{record.name}") to download it from {record.url}'
    return f"{record.name!r} is not shipped and not found at {searched}. {how}, or set ${DATA_HOME_VARIABLE}"


def read_libsvm(content: bytes) -> tuple[Array, Array]:
    """Return X and the labels of LIBSVM text: a label and index:value pairs per line, with indices from 1."""
    from sklearn.datasets import load_svmlight_file  # here because scikit-learn is an optional dependency

    try:
        X, labels = load_svmlight_file(io.BytesIO(content), zero_based=False)
    except (ValueError, OverflowError) as error:
        raise DataError(f"every line must be 'label index:value ...', with indices from 1: {error}") from None
    require_memory(8.0 * X.shape[0] * X.shape[1], "the LIBSVM data as a dense table", "use a part of it")
    return X.toarray(), labels


def parse_file(record: DataSet, packed: bytes) -> tuple[Array, Array]:
    """Return X and the labels of a file unchanged."""
    if record.file.endswith(".npz"):
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            return archive["X"].astype(np.float64), archive["Y"].astype(np.float64)
    if record.file.endswith(".csv.gz"):
        table = np.loadtxt(io.BytesIO(gzip.decompress(packed)), delimiter=",", skiprows=1, ndmin=2)
        return np.ascontiguousarray(table[:, :-1]), table[:, -1]
    return read_libsvm(packed)


def download(url: str, time_limit: float) -> bytes:
    """Download the file at an address; raise TimeoutError after the time limit in seconds.

    The timeout of a connection restarts with every byte, so the file is read in a thread.  After the limit, this thread
    runs until the server sends a block or times out, and its bytes are discarded.
    """
    import requests  # here because most users never download a file

    answer, timer = Future[bytes](), Timer(time_limit)

    def read() -> None:
        try:
            with requests.get(url, stream=True, timeout=TIMEOUT, allow_redirects=False) as response:
                if response.status_code != requests.codes.ok:
                    raise requests.RequestException(response=response)
                blocks = list[bytes]()
                for block in islice(response.iter_content(BLOCK), MAX_BLOCKS):
                    blocks.append(block)
                    if timer.is_over:
                        raise TimeoutError
            answer.set_result(b"".join(blocks))
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=read, daemon=True).start()
    return answer.result(timer.remaining)


def fetch(name: str, *, time_limit: float = 300.0) -> Path:
    """Download the file of a data set, unless it is already present, and return its path.

    The file is saved in $DIFFRAC_DATA_HOME, or in diffrac_cvx in the user's cache folder, if its sha256 is the expected
    one.  An interrupted download starts from the beginning: the files have at most a few megabytes.  Redirects are not
    followed.

    Parameters
    ----------
    name : str
        Data set with a known address, such as "australian", "dna" or "w1a"; a shipped one is not downloaded.
    time_limit : float
        Time limit of the whole download in seconds, > 0; default 300.

    Raises
    ------
    ParameterError
        If the name is unknown, no address is known, or the time limit is not positive.
    DataError
        If the file cannot be downloaded within the time limit, has another sha256, or has moved.
    OSError
        If the folder cannot be written to.
    """
    record, time_limit = SETS[one_of(name, "name", SETS)], positive(time_limit, "time_limit")
    for path in possible_paths(record):
        if path.is_file() and matches_checksum(record, path.read_bytes()):
            return path
    if not record.url:
        raise ParameterError(explain_missing(record))
    import requests

    path = cache_folder() / record.file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = download(record.url, time_limit)
        if not matches_checksum(record, packed):
            raise DataError(f"{record.url} is not the known file of {name!r} (its sha256 differs); no file was saved.")
        with atomic_file(path) as part:
            part.write_bytes(packed)
    except TimeoutError:
        message = f"{name!r} was not downloaded from {record.url} within {time_limit:g} s; no file was saved"
        raise DataError(f"{message}. Raise time_limit, or save the file of a mirror as {path}.") from None
    except requests.RequestException as error:
        answer = type(error).__name__ if error.response is None else f"status {error.response.status_code}"
        message = f"{name!r} could not be downloaded from {record.url} ({answer}); no file was saved"
        raise DataError(f"{message}. Check the connection, or save the file of a mirror as {path}.") from None
    return path
