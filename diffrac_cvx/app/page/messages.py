"""What the page and the process that computes for it say to each other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """A function of a module and what it is called with; `reports` if it takes a `callback` that can stop it."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    reports: bool = False


@dataclass(frozen=True)
class Stop:
    """Asks the call under way to stop by its callback."""


@dataclass(frozen=True)
class Told:
    """What the callback was told."""

    progress: Any


@dataclass(frozen=True)
class Answer:
    """What the call returned or raised, and what it warned of."""

    value: Any = None
    error: Exception | None = None
    warnings: tuple[str, ...] = ()
