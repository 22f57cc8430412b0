"""The files of data sets: where they are, what they hold, and how they are downloaded: only if they are the known ones.

LIBSVM text is parsed here because an error has to name the file and the line, and because scikit-learn, which has a
reader of it, is an optional dependency.
"""

import contextlib
import gzip
import hashlib
import io
import os
import zipfile
import zlib
from importlib import resources
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import numpy as np

from diffrac_cvx.datasets.catalog import SETS, DataSet
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.checks import Array, one_of

if TYPE_CHECKING:
    import requests

DATA_HOME_VARIABLE = "DIFFRAC_DATA_HOME"
SUBFOLDERS = ("", "libsvm")  # inside a data folder
MAX_UNPACKED = 100_000_000  # bytes of arrays that are looked at
LOOPBACK = ("127.0.0.1", "::1", "localhost")
MAX_BYTES = 100_000_000  # of a download; the files have a few megabytes at most
MAX_REDIRECTS = 3
TIMEOUT = 30.0  # seconds without an answer


def cache_folder() -> Path:
    """Return the folder that ``fetch`` writes to: $DIFFRAC_DATA_HOME, else diffrac_cvx in the user's cache."""
    named = os.environ.get(DATA_HOME_VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "diffrac_cvx"


def possible_paths(record: DataSet) -> list[Path]:
    """Return where the file of a set that is not shipped may be."""
    return [cache_folder() / folder / record.file for folder in SUBFOLDERS]


def checksum(packed: bytes) -> str:
    """Return the sha256 of the bytes of a file."""
    return hashlib.sha256(packed).hexdigest()


def content_checksum(packed: bytes) -> str:
    """Return the sha256 of the arrays in an npz file, which no version of zlib changes; empty for what is none."""
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
    if not matches_checksum(record, packed):
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
    return f"{record.name!r} is not shipped with the package and is not at {searched}. {how}; ${DATA_HOME_VARIABLE} names another folder"


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


def parse_file(record: DataSet, packed: bytes) -> tuple[Array, Array]:
    """Return X and the labels as they are in the file."""
    if record.file.endswith(".npz"):
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            return archive["X"].astype(np.float64), archive["Y"].astype(np.float64)
    if record.file.endswith(".csv.gz"):
        table = np.loadtxt(io.BytesIO(gzip.decompress(packed)), delimiter=",", skiprows=1, ndmin=2)
        return np.ascontiguousarray(table[:, :-1]), table[:, -1]
    return read_libsvm(packed.decode(), record.file)


def fetch(name: str, *, url: str | None = None) -> Path:
    """Download the file of a data set, unless it is there already, and return its path.

    The file goes to $DIFFRAC_DATA_HOME, or to diffrac_cvx in the user's cache folder.  It is kept only if its sha256 is
    the known one.  An interrupted download starts again from the beginning: the files have a few megabytes at most.

    Parameters
    ----------
    name : str
        A set that is not shipped and has an address, such as "australian", "dna" or "w1a".
    url : str, optional
        A mirror of the file, by https (http on this machine alone); by default the page that the paper names.  The
        file is taken from the host of that address and from no other.

    Raises
    ------
    ParameterError
        If the name is unknown, or the set is shipped, or no address is known.
    DataError
        If the file cannot be downloaded or written, is not the right one, or is offered by another host.
    """
    record = SETS[one_of(name, "name", SETS)]
    if record.shipped:
        raise ParameterError(f"{name!r} is shipped with the package: load it")
    for path in possible_paths(record):
        if path.is_file() and matches_checksum(record, path.read_bytes()):
            return path
    if not (address := url or record.url):
        raise ParameterError(explain_missing(record))
    check_address(address, name)
    # Imported here because most users never download anything.
    import pooch
    from requests import RequestException

    folder, logger = cache_folder(), pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    try:
        return Path(pooch.retrieve(address, record.sha256, fname=record.file, path=folder, downloader=download))
    except DataError:
        raise
    except RequestException as error:
        answer = type(error).__name__ if error.response is None else f"status {error.response.status_code}"
        raise DataError(
            f"{name!r} could not be downloaded from {address} ({answer}); nothing was kept; try again when there is a "
            "connection, or pass the url of a mirror"
        ) from None
    except ValueError as error:  # a sha256 that differs
        raise DataError(f"{address} cannot be taken as the file of {name!r}; nothing was kept: {error}") from None
    except OSError as error:
        raise DataError(
            f"the folder {folder} cannot be written to ({error.strerror}); set ${DATA_HOME_VARIABLE}"
        ) from None
    finally:
        logger.setLevel(level)


def check_address(address: str, name: str) -> None:
    """Refuse an address that a file may not be taken from: not by https; on this machine alone it may be http."""
    parts = urlsplit(address)
    allowed = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not (allowed and parts.hostname):
        raise DataError(f"{address} cannot be taken as the file of {name!r}: the protocol has to be https")


def download(address: str, file: str | IO[bytes], _: object) -> None:
    """Write what is at an address to a file, as `pooch.retrieve` asks for it, from this host alone."""
    import requests

    asked = address
    for _redirection in range(MAX_REDIRECTS + 1):
        with requests.get(asked, stream=True, timeout=TIMEOUT, allow_redirects=False) as response:
            if not response.is_redirect:
                response.raise_for_status()
                write_at_most(response, file, address)
                return
            following = urljoin(asked, response.headers["Location"])
            if urlsplit(following)[:2] != urlsplit(address)[:2]:  # protocol, and host with port
                raise DataError(
                    f"{address} leads to another place, {following}; nothing was kept; pass that as the url to trust it"
                )
            asked = following
    raise DataError(f"{address} leads from one place to the next; nothing was kept; pass the url of a mirror")


def write_at_most(response: "requests.Response", file: str | IO[bytes], address: str) -> None:
    """Write the content of a response to a file, up to MAX_BYTES."""
    written = 0
    with open(file, "wb") if isinstance(file, str) else contextlib.nullcontext(file) as target:
        for block in response.iter_content(chunk_size=65536):
            written += len(block)
            if written > MAX_BYTES:
                raise DataError(
                    f"{address} holds more than {MAX_BYTES // 10**6} MB, which no data set has; nothing was kept"
                )
            target.write(block)
