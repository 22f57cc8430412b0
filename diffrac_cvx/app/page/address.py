"""The state of the controls in the page's address, so that it survives a reload and can be sent to others."""

from collections.abc import Iterable, Mapping
from typing import Any

import marimo as mo

Given = Mapping[str, list[str]]  # what the address says of each control


def read_address() -> Given:
    """Return what the address says; the cell that asks does not run again when the address changes."""
    parameters = mo.query_params()
    return {name: parameters.get_all(name) for name in parameters}


def write_address(values: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Put the values that are not the usual ones into the address, and take out those that are."""
    parameters = mo.query_params()
    for name, value in values.items():
        texts, now = texts_of(value), parameters.get_all(name)
        if texts == texts_of(usual[name]):
            if now:
                parameters.remove(name)
        elif texts != now:
            parameters[name] = texts if len(texts) > 1 else texts[0]


def texts_of(value: Any) -> list[str]:
    """Return a value as the address has it; an empty choice is one empty text."""
    if isinstance(value, list | tuple):
        return [text_of(one) for one in value] or [""]
    return [text_of(value)]


def text_of(value: Any) -> str:
    """Return one value as text, a number as short as can be, true as 1."""
    if isinstance(value, int | float):
        return f"{value:g}"
    return "" if value is None else str(value)


def number(given: Given, name: str, usual: float, allowed: Iterable[float]) -> float:
    """Return the number that the address gives if it is one of those allowed, up to rounding; else the usual one."""
    try:
        wanted = float(given[name][0])
    except (KeyError, IndexError, ValueError):
        return usual
    nearest = min(allowed, key=lambda value: abs(value - wanted))
    return nearest if abs(nearest - wanted) <= 1e-9 else usual


def option(given: Given, name: str, usual: str | None, options: Mapping[str, Any]) -> str | None:
    """Return the key of the option whose value the address gives, if there is one; else the usual key."""
    return next((key for key, value in options.items() if [text_of(value)] == given.get(name)), usual)


def several(given: Given, name: str, usual: list[str], options: Mapping[str, Any]) -> list[str]:
    """Return the keys of the options whose values the address gives; the usual ones where it says nothing."""
    if name not in given:
        return usual
    return [key for key, value in options.items() if text_of(value) in given[name]]
