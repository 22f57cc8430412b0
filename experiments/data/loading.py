"""Which data sets an experiment can use on this machine."""

from collections.abc import Callable, Iterable

from diffrac_cvx.errors import DataError


def keep_loadable(names: Iterable[str], load: Callable[[str], object]) -> list[str]:
    """Return the data sets that can be loaded; print what is wrong with the others, and how to get them."""
    loadable = []
    for name in names:
        try:
            load(name)
        except DataError as error:
            print(f"{name} is left out: {error}")
        else:
            loadable.append(name)
    return loadable
