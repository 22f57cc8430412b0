"""Numbers that leave the range of double precision: how libraries say so, and how this package does."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from diffrac_cvx.errors import DataError

OUT_OF_RANGE = (
    "numbers leave the range of double precision on the way: bring the columns of X, the penalties and V nearer to 1"
)


def is_out_of_range(error: Exception) -> bool:
    """Whether an error of a library says that a number became infinite, or was none."""
    if isinstance(error, np.linalg.LinAlgError):
        return "dimension" not in str(error)  # a matrix of another shape is an error of whoever calls
    if isinstance(error, OverflowError | FloatingPointError):
        return True
    return type(error) is ValueError and "infs or NaNs" in str(error)  # from scipy.linalg


@contextmanager
def in_range() -> Iterator[None]:
    """Say in words where numbers leave the range of double precision inside."""
    try:
        yield
    except (ArithmeticError, ValueError) as error:
        if not is_out_of_range(error):
            raise
        raise DataError(OUT_OF_RANGE) from error


def are_finite(*matrices: np.ndarray) -> bool:
    return all(bool(np.isfinite(matrix).all()) for matrix in matrices)
