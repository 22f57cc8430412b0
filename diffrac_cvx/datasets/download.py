"""Download the file of a data set that is not shipped."""

from pathlib import Path

from diffrac_cvx.datasets.catalogue import SETS
from diffrac_cvx.datasets.files import HOME, cache_folder, checksum, explain_missing, possible_paths
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.inputs import one_of


def fetch(name: str, *, url: str | None = None) -> Path:
    """Download the file of a data set, unless it is there already, and return its path.

    The file goes to $DIFFRAC_DATA_HOME, or to diffrac_cvx in the user's cache folder.  It is kept only if its sha256 is
    the known one.  An interrupted download starts again from the beginning: the files have a few megabytes at most.

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
        If the file cannot be downloaded or written, or is not the right one.
    """
    record = SETS[one_of(name, "name", SETS)]
    if record.shipped:
        raise ParameterError(f"{name!r} is shipped with the package: load it")
    for path in possible_paths(record):
        if path.is_file() and checksum(path.read_bytes()) == record.sha256:
            return path
    if not (address := url or record.url):
        raise ParameterError(explain_missing(record))
    # Imported here because most users never download anything.
    import pooch
    from requests import RequestException

    folder, logger = cache_folder(), pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    try:
        return Path(pooch.retrieve(address, record.sha256, fname=record.file, path=folder))
    except RequestException as error:
        answer = type(error).__name__ if error.response is None else f"status {error.response.status_code}"
        raise DataError(
            f"{name!r} could not be downloaded from {address} ({answer}); nothing was kept; try again when there is a "
            "connection, or pass the url of a mirror"
        ) from None
    except ValueError as error:  # an unknown protocol, or a sha256 that differs
        raise DataError(f"{address} cannot be taken as the file of {name!r}; nothing was kept: {error}") from None
    except OSError as error:
        raise DataError(f"the folder {folder} cannot be written to ({error.strerror}); set ${HOME}") from None
    finally:
        logger.setLevel(level)
