"""Checks of what users pass in: they return a copy, or raise an error that says what to do instead."""

import difflib
import math
import mmap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError

Array = npt.NDArray[np.float64]
ArrayT = TypeVar("ArrayT", bound=npt.NDArray[Any])

MIN_RELATIVE_WEIGHT = 1e-100  # of the largest weight: squares of what is smaller leave the range of doubles


def as_matrix(X: npt.ArrayLike, name: str = "X") -> Array:
    """Return a fresh, finite, C-ordered float64 (n, d) copy of a matrix-like input."""
    matrix = np.array(as_table(X, name), dtype=np.float64, order="C")
    require_finite(matrix, name)
    return matrix


def as_table(X: npt.ArrayLike, name: str = "X") -> npt.NDArray[np.number]:
    """Return a matrix-like input as a real (n, d) array, which may have infinite entries; a numeric one as it is."""
    if hasattr(X, "toarray"):
        raise DataError(f"{name} is a sparse matrix; pass {name}.toarray()")
    if hasattr(X, "dask"):
        raise DataError(f"{name} is a dask array, which has no place here; pass {name}.compute() if it fits in memory")
    require_file(X, name)
    if np.ma.is_masked(X):
        raise DataError(f"{name} is a masked array; drop or impute the masked entries")
    try:
        raw = np.asarray(X)
    except ValueError as error:
        raise DataError(f"{name} is not a table, its rows differ in length ({error}); pass a 2-d array") from None
    if raw.dtype.kind == "c":
        raise DataError(f"{name} is complex; pass its real part, or real and imaginary parts as columns")
    require_table(raw, name, "biufO", f" (one feature: {name}.reshape(-1, 1))")
    try:
        return raw.astype(np.float64) if raw.dtype.kind == "O" else raw
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{name} holds entries that are not real numbers ({error}); encode them as numbers first"
        ) from None


def as_sparse_table(X: Any) -> Any:
    """Return a sparse matrix by rows, without duplicates or explicit zeros; the user's is not changed."""
    require_table(X)
    table = scipy.sparse.csr_array(X)
    if not table.has_canonical_format or (table.data == 0).any():
        table = table.copy()
        table.sum_duplicates()
        table.eliminate_zeros()
    return table


def require_table(X: Any, name: str = "X", kinds: str = "biuf", remedy: str = "") -> None:
    """Raise DataError where something is no table of real numbers, or has no entries."""
    if X.dtype.kind not in kinds:
        raise DataError(f"{name} has entries of type {X.dtype}; encode them as numbers first")
    if X.ndim != 2:
        raise DataError(f"{name} has shape {X.shape}; pass a 2-d array{remedy}")
    if 0 in X.shape:
        raise DataError(f"{name} is empty, its shape is {X.shape}; at least two rows and one column are needed")


def require_file(table: Any, name: str = "X") -> Any:
    """Return a table; raise DataError where it is, or views, a memory map longer than its file.

    To read it would give zeros, or end the process.  So would a file that is cut off between this look and the reading,
    which therefore follows at once, a block of rows at a time.
    """
    file: Any = table
    while isinstance(file, np.ndarray) and getattr(file, "_mmap", None) is None:
        file = file.base
    if not hasattr(file, "_mmap"):
        return table
    needed = file.offset - file.offset % mmap.ALLOCATIONGRANULARITY + len(file._mmap)
    try:
        size = file._mmap.size()  # of the file itself, whatever its name stands for now
    except (OSError, ValueError):
        return table
    if size < needed:
        raise DataError(
            f"{name} is a map of {file.filename}, which has {size} bytes where {needed} are needed: it was cut off"
        )
    return table


def require_finite(matrix: Array, name: str) -> None:
    """Raise DataError naming the first entry that is NaN or infinite."""
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        raise not_finite_error(name, matrix[tuple(bad[0])], tuple(bad[0]), len(bad))


def not_finite_error(name: str, value: float, index: tuple[int, ...], count: int) -> DataError:
    """Return the error that names the first of so many entries that are NaN or infinite."""
    where = ("row {}, column {}" if len(index) == 2 else "entry {}").format(*index)
    more = f" (and {count - 1} more)" if count > 1 else ""
    return DataError(f"{name} is {value} at {where}{more}, counting from 0; drop or impute such entries")


@dataclass(frozen=True, eq=False)
class PointWeights:
    """Weights of n points, of which m have a positive one."""

    mask: npt.NDArray[np.bool_]  # the points of positive weight, (n,)
    normalized: Array | None  # p_i = w_i / sum w of these points, (m,); None where all are equal

    @property
    def has_zeros(self) -> bool:
        """Whether points are left out."""
        return not self.mask.all()


def as_weights(sample_weight: npt.ArrayLike | None, n: int, min_positive: int = 2) -> PointWeights | None:
    """Return checked weights of n points, at least so many positive; None where there are none, or all are equal."""
    if sample_weight is None:
        return None
    raw = np.asarray(sample_weight)
    if raw.dtype.kind not in "biufO":
        raise DataError(f"sample_weight has entries of type {raw.dtype}; weights must be real numbers")
    try:
        w = raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight holds entries that are not real numbers ({error})") from None
    if w.ndim != 1:
        raise DataError(f"sample_weight has shape {w.shape}; pass a 1-d array, one weight for each of the {n} points")
    if len(w) != n:
        raise DataError(f"sample_weight has {len(w)} weights for {n} points")
    require_finite(w, "sample_weight")
    if np.any(w < 0.0):
        i = int(np.argmax(w < 0.0))
        raise DataError(
            f"sample_weight is {format_exact(w[i])} at entry {i}, counting from 0; weights must not be negative"
        )
    mask = w > 0.0
    if mask.sum() < min_positive:
        many = f"{mask.sum()} positive among {n} entries" if mask.any() else "only zeros"
        raise DataError(f"sample_weight has {many}; at least {min_positive} points need a positive weight")
    if np.any(w[mask] < MIN_RELATIVE_WEIGHT * w.max()):
        tiny = format_indices(mask & (w < MIN_RELATIVE_WEIGHT * w.max()))
        raise DataError(
            f"sample_weight is below {MIN_RELATIVE_WEIGHT:g} of its largest entry at {tiny}; set such weights to 0"
        )
    positive = w[mask]
    if positive.min() == positive.max():
        return PointWeights(mask, None) if not mask.all() else None
    positive = positive * 2.0 ** -float(np.frexp(positive.max())[1])  # exact, and its sum does not overflow
    return PointWeights(mask, positive / math.fsum(positive))


def weights_for(X: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> PointWeights | None:
    """Return checked weights of the rows of a table; None where there are none, or all are equal."""
    return None if sample_weight is None else as_weights(sample_weight, len(as_table(X)))


def all_positive_weights(weights: Array | None) -> PointWeights | None:
    """Return the weights of points that all have a positive one, from their shares."""
    return None if weights is None else PointWeights(np.ones(len(weights), dtype=bool), weights)


def rows_with_weight(X: ArrayT, weights: PointWeights | None) -> ArrayT:
    """Return the rows of positive weight, shape (m, ...)."""
    return X if weights is None or not weights.has_zeros else cast(ArrayT, X[weights.mask])


def as_data(X: npt.ArrayLike, weights: PointWeights | None = None, *, warn: bool = True, depth: int = 4) -> Array:
    """Return the (n, d) data matrix of `centered_data`, n >= 2, for methods that state no bounds.

    Columns that vary by no more than the rounding of their mean become zero: they must not be taken for features.
    """
    data, mean = centered_data(X, weights, warn=warn, depth=depth + 1)
    rows = data if weights is None else data[weights.mask]
    data[:, np.sqrt(np.mean(rows**2, axis=0)) <= rounding_floor(mean, len(rows))] = 0.0
    return data


class Centered(NamedTuple):
    """Columns of mean zero, (n, d), and the means that were subtracted, (d,)."""

    data: Array
    mean: Array


def centered_data(
    X: npt.ArrayLike,
    weights: PointWeights | None = None,
    *,
    means: Array | float = 0.0,
    warn: bool = True,
    depth: int = 4,
) -> Centered:
    """Return the (n, d) data matrix, centred, n >= 2: each column is exact up to rounding of its own variation.

    If points have weights, the mean is weighted; points of weight 0 are centred by it too.  From columns that were
    centred before, what was subtracted then is given as ``means``.  Warnings point at the user's line, ``depth`` calls
    up.
    """
    data = as_matrix(X)
    require_two_points(len(data))
    require_moderate_scale(np.abs(data).max(axis=0))
    rows, mean = data if weights is None else data[weights.mask], np.zeros(data.shape[1]) + means
    constant = rows.min(axis=0) == rows.max(axis=0)
    # A difference is rounded in proportion to itself, and it is exact for a column far from zero, so that only the
    # mean has to be found again: the third one is that of numbers as small as the variation of the column.
    for _ in range(3):
        shift = rows.mean(axis=0) if weights is None or weights.normalized is None else weights.normalized @ rows
        data -= shift
        mean += shift
        rows = data if weights is None else data[weights.mask]
    data[:, constant] = 0.0
    warn_constant(np.sqrt(np.mean(rows**2, axis=0)) <= rounding_floor(mean, len(rows)), warn, depth + 1)
    return Centered(data, mean)


def require_two_points(n: int) -> None:
    """Raise DataError where there are fewer than two points."""
    if n < 2:
        raise DataError("X has one row; clustering needs at least two points")


def require_moderate_scale(largest: Array, names: Sequence[object] | None = None) -> None:
    """Raise DataError where the squares of a column, given its largest absolute value, leave the range of doubles."""
    extreme = (largest > 1e100) | ((largest < 1e-100) & (largest > 0))
    if extreme.any():
        which = format_indices(extreme, names=names)
        raise DataError(f"columns {which} of X have entries beyond 1e-100..1e100; rescale them")


def rounding_floor(mean: Array, n: int) -> Array:
    """Return the standard deviations up to which columns of n entries vary as the rounding of their entries may."""
    return np.asarray(8 * n**0.5 * np.finfo(float).eps * np.abs(mean))


def warn_constant(
    constant: npt.NDArray[np.bool_], warn: bool, depth: int, names: Sequence[object] | None = None
) -> None:
    """Warn about constant columns, by their names where these are known, at the user's line, ``depth`` calls up."""
    if constant.all():
        warn_degenerate("every column of X is constant, up to rounding: there is nothing to cluster on", warn, depth)
    elif constant.any():
        one = constant.sum() == 1
        which = f"{'column' if one else 'columns'} {format_indices(constant, names=names)} of X"
        does = "is constant, up to rounding, and carries" if one else "are constant, up to rounding, and carry"
        warn_degenerate(f"{which} {does} no information", warn, depth)


def warn_degenerate(message: str, warn: bool = True, depth: int = 4) -> None:
    """Warn that the data are degenerate, at the user's line, ``depth`` calls up."""
    if warn:
        warnings.warn(message, DegenerateDataWarning, stacklevel=depth)


def format_indices(mask: npt.NDArray[np.bool_], limit: int = 5, names: Sequence[object] | None = None) -> str:
    """Return the first few indices at which a mask is true, or the names there, as text."""
    found = np.flatnonzero(mask)
    if names is not None:
        return ", ".join(repr(str(names[j])) for j in found[:limit]) + (", ..." if len(found) > limit else "")
    return "[" + ", ".join(map(str, found[:limit])) + (", ...]" if len(found) > limit else "]")


def as_labels(y: npt.ArrayLike, n: int | None = None, name: str = "y") -> Array:
    """Return a float64 (n,) copy of labels in {-1, +1}."""
    raw = np.asarray(y)
    if raw.ndim != 1:
        raise DataError(f"{name} has shape {raw.shape}; pass a 1-d array of labels")
    if n is not None and len(raw) != n:
        raise DataError(f"{name} has {len(raw)} labels for {n} points")
    if raw.dtype.kind not in "biuf" or not np.isin(raw, (-1, 1)).all():
        raise DataError(f"{name} must hold only -1 and +1; map the two classes to them first")
    if len(raw) == 0:
        raise DataError(f"{name} is empty")
    return raw.astype(np.float64)


def as_clusters(labels: npt.ArrayLike, n: int, n_clusters: int | None = None) -> tuple[npt.NDArray[np.int64], int]:
    """Return an int64 (n,) copy of labels in 0, ..., K - 1, and K: n_clusters, or the least that there can be."""
    raw = np.asarray(labels)
    if raw.ndim != 1 or len(raw) != n:
        raise DataError(f"labels has shape {raw.shape}; pass one whole number for each of the {n} points")
    if raw.dtype.kind not in "biu" or (raw.size and raw.min() < 0):
        raise DataError("labels must hold whole numbers from 0 on; np.unique(labels, return_inverse=True)[1] are such")
    min_clusters = max(int(raw.max()) + 1, 2)
    K = min_clusters if n_clusters is None else positive_int(n_clusters, "n_clusters")
    if min_clusters > K:
        raise ParameterError(
            f"n_clusters = {K} must be at least {min_clusters}, for labels up to {min_clusters - 1}, and at least 2"
        )
    if K > max(n, 2):
        numbered = "np.unique(labels, return_inverse=True)[1] numbers those there are"
        raise ParameterError(f"{K} clusters are more than the {n} points; {numbered}")
    return raw.astype(np.int64), K


def as_scalar(value: Any, name: str) -> float:
    """Return a real finite scalar as a float."""
    array = np.asarray(value)
    if array.ndim != 0 or array.dtype.kind not in "biuf" or not np.isfinite(array):
        shown = value.item() if isinstance(value, np.generic) else value
        raise ParameterError(f"{name} = {shown!r} must be a finite number")
    return float(array)


def format_exact(number: float) -> str:
    """Return a number with as many digits as tell it from every other one, 2 and not 2.0."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def in_unit_interval(value: Any, name: str) -> float:
    number = as_scalar(value, name)
    if not 0.0 <= number <= 1.0:
        raise ParameterError(f"{name} = {format_exact(number)} is outside [0, 1]")
    return number


def positive(value: Any, name: str) -> float:
    number = as_scalar(value, name)
    if number <= 0.0:
        raise ParameterError(f"{name} = {format_exact(number)} must be greater than 0")
    return number


def nonnegative(value: Any, name: str) -> float:
    number = as_scalar(value, name)
    if number < 0.0:
        raise ParameterError(f"{name} = {format_exact(number)} must not be negative")
    return number


def positive_int(value: Any, name: str) -> int:
    number = as_scalar(value, name)
    if number != int(number) or number < 1:
        raise ParameterError(f"{name} = {value!r} must be a whole number, at least 1")
    return int(number)


def one_of(value: Any, name: str, choices: Mapping[str, Any] | tuple[str, ...]) -> str:
    """Return a value that must be one of a few names."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"{name} = {value!r} is not one of {', '.join(choices)}{did_you_mean(value, choices)}")
    return value


def did_you_mean(value: object, choices: Iterable[object]) -> str:
    """Return the end of a message that names the choice most like a value, or nothing where none is like it."""
    known = {str(choice).lower(): str(choice) for choice in choices}
    near = difflib.get_close_matches(str(value).strip().lower(), known, 1)
    return f"; did you mean {known[near[0]]!r}?" if near else ""


def as_generator(rng: np.random.Generator | int) -> np.random.Generator:
    """Return the generator itself, or a new one from a seed, a whole number >= 0."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(as_seed(rng, "rng", "a numpy.random.Generator or "))


def as_seed(value: Any, name: str, alternative: str = "") -> int:
    """Return a seed, a whole number >= 0; the alternative is what else is accepted, for the message of the error."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
        raise ParameterError(f"{name} = {value!r} must be {alternative}a seed, a whole number >= 0")
    return int(value)
