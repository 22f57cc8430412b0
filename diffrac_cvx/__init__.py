"""Convex relaxations for discriminative clustering with sparse regularisers."""

from typing import Any

import lazy_loader

__version__ = "0.1.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # __init__.pyi names the module of each


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if name not in __all__ or str(error.name).startswith("diffrac_cvx"):
            raise
        raise ImportError(
            f"{name} needs scikit-learn ({error.name} is missing): pip install 'diffrac-cvx[app]'"
        ) from None
