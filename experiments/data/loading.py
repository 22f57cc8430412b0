"""Data sets that are available to an experiment on this machine."""

from collections.abc import Callable, Iterable

from diffrac_cvx.errors import DataError


def keep_loadable(names: Iterable[str], load: Callable[[str], object]) -> list[str]:
    """Return the data sets that can be loaded; for the others, print the error and how to get them."""
    loadable = []
    for name in names:
        try:
            load(name)
        except DataError as error:
            print(f"{name} is excluded: {error}")
        else:
            loadable.append(name)
    return loadable
