"""Locate, verify, download and parse the files of the data sets.

LIBSVM text is parsed here because errors must name the file and the line, and because scikit-learn, which has a
LIBSVM reader, is an optional dependency.
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
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, one_of

if TYPE_CHECKING:
    import requests

DATA_HOME_VARIABLE = "DIFFRAC_DATA_HOME"
SUBFOLDERS = ("", "libsvm")  # inside the data folder
MAX_UNPACKED = 100_000_000  # unpacked bytes of arrays to be checked
LOOPBACK = ("127.0.0.1", "::1", "localhost")
MAX_BYTES = 100_000_000  # of a download; the files have at most a few megabytes
MAX_REDIRECTS = 3
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
        Mirror of the file, by https (http on this machine only); by default the page named in the paper.  Redirects to
        another host are refused.

    Raises
    ------
    ParameterError
        If the name is unknown, the data set is shipped, or no address is known.
    DataError
        If the file cannot be downloaded or written, has another sha256, or redirects to another host.
    """
    record = SETS[one_of(name, "name", SETS)]
    if record.shipped:
        raise ParameterError(f"{name!r} is shipped with the package. Load it instead")
    for path in possible_paths(record):
        if path.is_file() and matches_checksum(record, path.read_bytes()):
            return path
    if not (address := url or record.url):
        raise ParameterError(explain_missing(record))
    check_address(address, name)
    # Imported here because most users never download a file.
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
            f"{name!r} could not be downloaded from {address} ({answer}); no file was saved. Check the connection, or "
            "pass the url of a mirror"
        ) from None
    except ValueError as error:  # another sha256
        raise DataError(f"{address} is not the known file of {name!r}; no file was saved: {error}") from None
    except OSError as error:
        raise DataError(
            f"the folder {folder} cannot be written to ({error.strerror}). Set ${DATA_HOME_VARIABLE} to another folder"
        ) from None
    finally:
        logger.setLevel(level)


def check_address(address: str, name: str) -> None:
    """Raise DataError unless an address uses https, or http on this machine."""
    parts = urlsplit(address)
    allowed = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not (allowed and parts.hostname):
        raise DataError(f"{address} cannot be used for {name!r}: the protocol must be https")


def download(address: str, file: str | IO[bytes], _: object) -> None:
    """Write the content of an address to a file, for `pooch.retrieve`, without redirects to another host."""
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
                    f"{address} redirects to another host, {following}; no file was saved. Pass that as url to trust it"
                )
            asked = following
    raise DataError(f"{address} redirects too often; no file was saved. Pass the url of a mirror")


def write_at_most(response: "requests.Response", file: str | IO[bytes], address: str) -> None:
    """Write the content of a response to a file; raise DataError above MAX_BYTES."""
    written = 0
    with open(file, "wb") if isinstance(file, str) else contextlib.nullcontext(file) as target:
        for block in response.iter_content(chunk_size=65536):
            written += len(block)
            if written > MAX_BYTES:
                raise DataError(
                    f"{address} has more than {MAX_BYTES // 10**6} MB, more than any data set; no file was saved"
                )
            target.write(block)
