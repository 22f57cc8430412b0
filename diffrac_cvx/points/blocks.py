"""What is computed of rows that come a block at a time: what a function gives of the blocks is stacked, or added."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import row_products, times

Values = TypeVar("Values", bound=npt.NDArray[Any])


def with_entries(blocks: Iterable[Array], aligned: tuple[Array, ...]) -> Iterator[tuple[Array, ...]]:
    """Yield each block of rows with the entries, for its rows, of arrays that have one for each row."""
    start = 0
    for block in blocks:
        yield block, *(values[start : start + len(block)] for values in aligned)
        start += len(block)


def stack_blocks(blocks: Iterable[Array], n: int, function: Callable[..., Values], *aligned: Array) -> Values:
    """Return ``function(block, *aligned)`` of all blocks, of n rows, one below the other."""
    stacked, start = np.empty(0), 0
    for given in with_entries(blocks, aligned):
        found = function(*given)
        if start == 0:
            stacked = np.empty((n, *found.shape[1:]), dtype=found.dtype)
        stacked[start : start + len(found)] = found
        start += len(found)
    return cast(Values, stacked)


def add_blocks(blocks: Iterable[Array], function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
    """Return the sums of the tuples ``function(block, *aligned)`` of all blocks; there is at least one."""
    sums: list[Any] = []
    for given in with_entries(blocks, aligned):
        found = function(*given)
        sums = sums or [0.0] * len(found)
        for i, value in enumerate(found):
            sums[i] += value
    return tuple(sums)


# Of a block


def squared_norms(block: Array) -> Array:
    """Return the squared norms of the rows."""
    return row_products(block, block)


def are_zero(used: npt.NDArray[np.bool_], block: Array) -> npt.NDArray[np.bool_]:
    """Return which rows are zero in the columns in use."""
    return np.asarray(~block[:, used].any(axis=1))


def norms_and_squares(block: Array) -> tuple[float, float]:
    """Return the sums of the norms of the rows, and of their squares."""
    squares = squared_norms(block)
    return float(np.sqrt(squares).sum()), float(squares.sum())


def squares_and_sum(block: Array) -> tuple[Array, Array]:
    """Return the sums of x_i x_i' and of x_i."""
    return block.T @ block, block.sum(axis=0)


def weighted_squares(block: Array, u: Array) -> tuple[Array]:
    """Return the sum of u_i x_i x_i'."""
    return (times(block.T, u[:, None] * block),)


def products_of_rows(block: Array, Y: Array) -> tuple[Array]:
    """Return the sum of x_i y_i'."""
    return (block.T @ Y,)


def roots_and_pull(U: Array, block: Array) -> tuple[float, Array]:
    """Return sum_i sqrt(q_i) and X' Diag(1/sqrt(q)) X U."""
    XU = times(block, U)
    roots = np.sqrt(row_products(XU, XU))
    # At x_i'U = 0 the root has no gradient; 0 is in the limit of its subgradients along symmetric directions.
    XU /= np.where(roots > 0.0, roots, 1.0)[:, None]
    return float(roots.sum()), times(block.T, XU)
