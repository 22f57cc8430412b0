"""Get a data set that is not shipped: resumed after a break, checked, and whole or not there at all."""

import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path

from diffrac_cvx.datasets.catalogue import SETS
from diffrac_cvx.datasets.files import cache, missing, places
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.inputs import one_of

TIMEOUT = 30.0  # seconds without a byte
CHUNK = 1 << 16


def fetch(name: str, *, url: str | None = None) -> Path:
    """Download the file of a data set, unless it is there already, and return its path.

    The file goes to $DIFFRAC_DATA_HOME, or to diffrac_cvx in the user's cache folder.  A download that broke off is
    resumed; a file whose sha256 differs is deleted.

    Parameters
    ----------
    name : str
        A set that is not shipped and has an address, such as "australian", "dna" or "w1a".
    url : str, optional
        A mirror of the file; by default the page that the paper names.

    Raises
    ------
    ParameterError
        If the name is unknown, or the set is shipped, or no address is known.
    DataError
        If the file cannot be got or written, or is not the right one.
    """
    record = SETS[one_of(name, "name", SETS)]
    if record.shipped:
        raise ParameterError(f"{name!r} is shipped with the package: load it")
    for path in places(record):
        if path.is_file() and checksum(path) == record.sha256:
            return path
    if not (address := url or record.url):
        raise ParameterError(missing(record))
    target = cache() / record.file
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab"):
            pass
    except OSError as error:
        raise DataError(
            f"the folder {target.parent} cannot be written to ({error.strerror}); set $DIFFRAC_DATA_HOME"
        ) from None
    download(address, part, name)
    found = checksum(part)
    if found != record.sha256:
        part.unlink()
        raise DataError(
            f"{address} is not the file known as {name!r}: its sha256 is {found}, not {record.sha256}; nothing was kept"
        )
    part.replace(target)
    return target


def download(address: str, part: Path, name: str) -> None:
    """Append what is missing of an address to a file; what has come so far is kept when the connection breaks."""
    done = part.stat().st_size
    request = urllib.request.Request(address, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            resumed = answer.status == 206
            expected = answer.headers.get("Content-Length")
            with part.open("ab" if resumed else "wb") as file:
                received = 0
                while chunk := answer.read(CHUNK):
                    file.write(chunk)
                    received += len(chunk)
                file.flush()
                os.fsync(file.fileno())
        if expected is not None and received < int(expected):
            raise ConnectionError(f"{received} of {expected} bytes came")
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is left to get: the checksum decides
            return
        drop_if_empty(part)
        raise DataError(f"{address} answered {error.code} {error.reason}: {name!r} was not got") from None
    except (OSError, ConnectionError) as error:
        drop_if_empty(part)
        reason = getattr(error, "reason", error)
        raise DataError(
            f"{name!r} could not be got from {address} ({reason}); once there is a connection, the same call goes on "
            "from where it was"
        ) from None


def drop_if_empty(part: Path) -> None:
    """Remove a file that nothing came into."""
    if part.exists() and part.stat().st_size == 0:
        part.unlink()


def checksum(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
