"""Download the file of a data set that is not shipped: from one host, and kept only if it is the known one."""

import contextlib
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from diffrac_cvx.datasets.catalogue import SETS
from diffrac_cvx.datasets.files import HOME, cache_folder, explain_missing, is_known, possible_paths
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.points.checks import one_of

if TYPE_CHECKING:
    import requests

LOOPBACK = ("127.0.0.1", "::1", "localhost")
MOST_BYTES = 100_000_000  # of a download; the files have a few megabytes at most
MOST_REDIRECTIONS = 3
TIMEOUT = 30.0  # seconds without an answer


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
        if path.is_file() and is_known(record, path.read_bytes()):
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
        raise DataError(f"the folder {folder} cannot be written to ({error.strerror}); set ${HOME}") from None
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
    for _redirection in range(MOST_REDIRECTIONS + 1):
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
    """Write the content of a response to a file, up to MOST_BYTES."""
    written = 0
    with open(file, "wb") if isinstance(file, str) else contextlib.nullcontext(file) as target:
        for block in response.iter_content(chunk_size=65536):
            written += len(block)
            if written > MOST_BYTES:
                raise DataError(
                    f"{address} holds more than {MOST_BYTES // 10**6} MB, which no data set has; nothing was kept"
                )
            target.write(block)
