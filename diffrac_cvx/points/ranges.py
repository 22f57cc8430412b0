"""Overflow of double precision: detection in errors of libraries, and the error that this package raises."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from diffrac_cvx.errors import DataError

OUT_OF_RANGE = (
    "the computation left the range of double precision. Rescale the columns of X, the penalties and V towards 1."
)


def is_out_of_range(error: Exception) -> bool:
    """Return whether a library error reports an infinite number or NaN."""
    if isinstance(error, np.linalg.LinAlgError):
        return "dimension" not in str(error)  # a wrong shape is an error of the caller
    if isinstance(error, OverflowError | FloatingPointError):
        return True
    return type(error) is ValueError and "infs or NaNs" in str(error)  # from scipy.linalg


@contextmanager
def in_range() -> Iterator[None]:
    """Raise DataError if a number leaves the range of double precision in this context."""
    try:
        yield
    except (ArithmeticError, ValueError) as error:
        if not is_out_of_range(error):
            raise
        raise DataError(OUT_OF_RANGE) from error


def are_finite(*matrices: np.ndarray) -> bool:
    return all(bool(np.isfinite(matrix).all()) for matrix in matrices)
