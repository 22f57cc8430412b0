"""Validation of user input: each check returns a copy, or raises an error that names the value and a remedy."""

import difflib
import math
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.errors import DataError, DataTypeError, DegenerateDataWarning, ParameterError
from diffrac_cvx.points.sliced import in_memory, is_read_by_blocks, opened

Array = npt.NDArray[np.float64]
ArrayT = TypeVar("ArrayT", bound=npt.NDArray[Any])

MAX_NAMED = 5  # points or columns named in a message
MIN_RELATIVE_WEIGHT = 1e-100  # of the largest weight: the squares of smaller weights leave the range of doubles
MAX_REPETITIONS = 1_000_000  # of a random start, a sample or an instance


def as_matrix(X: npt.ArrayLike, name: str = "X") -> Array:
    """Return a fresh, finite, C-ordered float64 (n, d) copy of a matrix-like input."""
    matrix = np.array(as_table(X, name), dtype=np.float64, order="C")
    require_finite(matrix, name)
    return matrix


def as_table(X: npt.ArrayLike, name: str = "X") -> npt.NDArray[np.number]:
    """Return a matrix-like input as a real (n, d) array, not copied if numeric; entries may be infinite or NaN."""
    if is_read_by_blocks(X):
        require_table(X, name)
        return in_memory(X)
    table = as_real(X, name)
    require_table(table, name)
    return table


def as_real(values: npt.ArrayLike, name: str) -> npt.NDArray[np.number]:
    """Return values in memory, of any container, as an array of real numbers, not copied if they are one."""
    require_readable(values, name)
    raw = as_any(values, name)
    raw = numbers_of(raw, name) if raw.dtype.kind == "O" else raw
    require_numbers(raw, name)
    return raw


def as_any(values: Any, name: str) -> npt.NDArray[Any]:
    """Return values of any type as an array; raise DataError if rows have unequal lengths."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} is not an array ({error}). Pass rows of equal lengths.") from None


def require_readable(values: Any, name: str) -> None:
    """Raise DataError if values are missing, masked or not in memory."""
    if values is None:
        raise DataError(f"{name} is None. Pass an array.")
    for attribute, method in (("toarray", "toarray"), ("dask", "compute")):
        if hasattr(values, attribute):
            raise DataError(f"{name} is a {type(values).__name__}, not an array in memory. Pass {name}.{method}().")
    parts = values if isinstance(values, list | tuple) else (values,)
    if any(np.ma.is_masked(part) for part in parts):
        raise DataError(f"{name} is a masked array. Drop or impute the masked entries.")


def numbers_of(objects: npt.NDArray[Any], name: str) -> Array:
    """Return an array of objects as floats, with NaN for missing values; text is not converted."""
    values = objects.ravel().tolist()
    kinds = set(map(type, values))
    if any(issubclass(kind, str | bytes) for kind in kinds):
        i = next(i for i, value in enumerate(values) if isinstance(value, str | bytes))
        place = place_of(tuple(map(int, np.unravel_index(i, objects.shape))))
        raise DataError(f"{name} is the text {values[i]!r} at {place}, counting from 0. Encode text as numbers.")
    if any(kind.__name__ == "NAType" for kind in kinds):
        values = [math.nan if type(value).__name__ == "NAType" else value for value in values]
    try:
        return np.array(values, dtype=np.float64).reshape(objects.shape)
    except (TypeError, ValueError, OverflowError) as error:
        kind = DataTypeError if isinstance(error, TypeError) else DataError
        raise kind(f"{name} is not an array of real numbers ({error}). Encode its entries as numbers.") from None


def require_numbers(values: Any, name: str) -> None:
    """Raise DataError if an array does not contain real numbers."""
    if values.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {name} has entries of type {values.dtype}. Pass real numbers.")
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name} has entries of type {values.dtype}. Encode them as numbers.")


def as_sparse_table(X: Any) -> Any:
    """Return a sparse matrix in CSR format, without duplicates or explicit zeros; the input is not modified."""
    require_table(X)
    table = scipy.sparse.csr_array(X)
    if not table.has_canonical_format or (table.data == 0).any():
        table = table.copy()
        table.sum_duplicates()
        table.eliminate_zeros()
    return table


def require_table(X: Any, name: str = "X") -> None:
    """Raise DataError if X is not a non-empty 2-d array of real numbers."""
    require_numbers(X, name)
    if len(X.shape) != 2:
        raise DataError(f"{name} has shape {X.shape}. Pass a 2-d array; for a single feature, reshape(-1, 1).")
    if 0 in X.shape:
        raise DataError(f"{name} is empty: it has shape {X.shape}. Pass at least two rows and one column.")


def require_finite(matrix: Array, name: str) -> None:
    """Raise DataError naming the first entry that is NaN or infinite."""
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        raise not_finite_error(name, matrix[tuple(bad[0])], tuple(bad[0]), len(bad))


def not_finite_error(name: str, value: float, index: tuple[int, ...], count: int) -> DataError:
    """Return the error that names the first of `count` entries that are NaN or infinite."""
    more = f" (and {count - 1} more)" if count > 1 else ""
    return DataError(f"{name} is {value} at {place_of(index)}{more}, counting from 0. Drop or impute these entries.")


def place_of(index: tuple[int, ...]) -> str:
    """Return the place of an entry as text for a message."""
    return f"row {index[0]}, column {index[1]}" if len(index) == 2 else f"entry {', '.join(map(str, index))}"


@dataclass(frozen=True, eq=False)
class PointWeights:
    """Sample weights of n points, m of which have a positive weight."""

    mask: npt.NDArray[np.bool_]  # (n,), the points of positive weight
    normalized: Array | None  # (m,), p_i = w_i / sum(w) of these points; None if all are equal

    @property
    def has_zeros(self) -> bool:
        """Whether some weights are zero."""
        return not self.mask.all()

    def of_all(self) -> Array:
        """Return the weights of all n points, shape (n,)."""
        weights = np.zeros(len(self.mask))
        weights[self.mask] = 1.0 if self.normalized is None else self.normalized
        return weights


def _checked_weights(sample_weight: npt.ArrayLike, n: int, min_positive: int) -> Array:
    """Return the weights of n points as finite numbers >= 0, at least min_positive of them > 0."""
    w = as_real(sample_weight, "sample_weight").astype(np.float64)
    if w.shape != (n,):
        raise DataError(f"sample_weight has shape {w.shape}. Pass a 1-d array of {n} weights, one per point.")
    require_finite(w, "sample_weight")
    if np.any(w < 0.0):
        i = int(np.argmax(w < 0.0))
        raise DataError(
            f"sample_weight is {format_exact(w[i])} at entry {i}, counting from 0. Weights must not be negative."
        )
    count = np.count_nonzero(w)
    if count < min_positive:
        raise DataError(
            f"sample_weight is zero except at {count} points. At least {min_positive} need a positive weight."
        )
    return w


def as_weights(sample_weight: npt.ArrayLike | None, n: int, min_positive: int = 2) -> PointWeights | None:
    """Return validated weights of n points, at least `min_positive` of them positive; None if absent or all equal."""
    if sample_weight is None:
        return None
    w = _checked_weights(sample_weight, n, min_positive)
    mask = w > 0.0
    if np.any(w[mask] < MIN_RELATIVE_WEIGHT * w.max()):
        tiny = format_indices(mask & (w < MIN_RELATIVE_WEIGHT * w.max()))
        raise DataError(
            f"sample_weight is below {MIN_RELATIVE_WEIGHT:g} times its largest entry at {tiny}. Set these weights to 0."
        )
    positive = w[mask]
    if positive.min() == positive.max():
        return PointWeights(mask, None) if not mask.all() else None
    return PointWeights(mask, scaled_to_sum_one(positive))


def scaled_to_sum_one(weights: Array) -> Array:
    """Return positive weights over their sum."""
    scaled = weights * 2.0 ** -float(np.frexp(weights.max())[1])  # exact, and its sum does not overflow
    return np.asarray(scaled / math.fsum(scaled))


def normalize_weights(sample_weight: npt.ArrayLike | None, n: int) -> Array | None:
    """Return checked weights of n points, divided by their sum, unless this is 1 up to rounding.

    Zeros are replaced by a negligible positive weight, so that no cluster has weight 0.
    """
    if sample_weight is None:
        return None
    w = _checked_weights(sample_weight, n, 1)
    w[w == 0.0] = MIN_RELATIVE_WEIGHT * w.max()
    normalized = scaled_to_sum_one(w)
    return w if np.allclose(w, normalized, rtol=1e-10, atol=0.0) else normalized


def weights_for(X: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> PointWeights | None:
    """Return validated weights of the rows of a table; None if absent or all equal."""
    if sample_weight is None:
        return None
    return as_weights(sample_weight, len(opened(X)) if is_read_by_blocks(X) else len(as_table(X)))


def all_positive_weights(weights: Array | None) -> PointWeights | None:
    """Return the weights of points that are all positive, from the normalised weights."""
    return None if weights is None else PointWeights(np.ones(len(weights), dtype=bool), weights)


def rows_with_weight(X: ArrayT, weights: PointWeights | None) -> ArrayT:
    """Return the rows of positive weight, shape (m, ...)."""
    return X if weights is None or not weights.has_zeros else cast(ArrayT, X[weights.mask])


def as_data(X: npt.ArrayLike, *, warn: bool = True) -> Array:
    """Return the (n, d) data matrix of `centered_data`, n >= 2, for methods without certified bounds.

    Columns that vary by no more than the rounding of their mean are set to zero: they must not act as features.
    """
    data, mean = centered_data(X, warn=warn)
    data[:, np.sqrt(np.mean(data**2, axis=0)) <= rounding_floor(mean, len(data))] = 0.0
    return data


def centered_data(
    X: npt.ArrayLike, weights: PointWeights | None = None, *, means: Array | float = 0.0, warn: bool = True
) -> tuple[Array, Array]:
    """Return the centred (n, d) data matrix, n >= 2, and its means: errors are proportional to a column's variation.

    With sample weights the mean is weighted; points of weight 0 are centred by the same mean.  ``means`` are the means
    that were subtracted from columns that were centred before.
    """
    data = as_matrix(X)
    require_two_points(len(data))
    require_moderate_scale(np.abs(data).max(axis=0))
    rows, mean = data if weights is None else data[weights.mask], np.zeros(data.shape[1]) + means
    constant = rows.min(axis=0) == rows.max(axis=0)
    # The rounding error of a difference is proportional to the difference, and a column far from zero is subtracted
    # exactly.  So only the mean is recomputed: the third one averages numbers as small as the variation of the column.
    for _ in range(3):
        shift = rows.mean(axis=0) if weights is None or weights.normalized is None else weights.normalized @ rows
        data -= shift
        mean += shift
        rows = data if weights is None else data[weights.mask]
    data[:, constant] = 0.0
    warn_constant(np.sqrt(np.mean(rows**2, axis=0)) <= rounding_floor(mean, len(rows)), warn)
    return data, mean


def require_two_points(n: int) -> None:
    """Raise DataError if there are fewer than two points."""
    if n < 2:
        raise DataError("X has one row. Clustering needs at least two points.")


def require_moderate_scale(largest: Array, names: Sequence[object] | None = None) -> None:
    """Raise DataError if the squares of a column with this largest absolute value leave the range of doubles."""
    extreme = (largest > 1e100) | ((largest < 1e-100) & (largest > 0))
    if extreme.any():
        which = format_indices(extreme, names=names)
        raise DataError(f"columns {which} of X have magnitudes outside [1e-100, 1e100]. Rescale them.")


def rounding_floor(mean: Array, n: int) -> Array:
    """Return the standard deviations that rounding alone can give to columns of n entries with these means."""
    return np.asarray(8 * n**0.5 * np.finfo(float).eps * np.abs(mean))


def warn_constant(constant: npt.NDArray[np.bool_], warn: bool, names: Sequence[object] | None = None) -> None:
    """Warn about constant columns, by name if names are given."""
    if constant.all():
        warn_degenerate("every column of X is constant up to rounding: there is nothing to cluster.", warn)
    elif constant.any():
        one = constant.sum() == 1
        which = f"{'column' if one else 'columns'} {format_indices(constant, names=names)} of X"
        predicate = "is constant up to rounding and carries" if one else "are constant up to rounding and carry"
        warn_degenerate(f"{which} {predicate} no information.", warn)


def warn_degenerate(message: str, warn: bool = True) -> None:
    """Warn that the data are degenerate, at the first line of the call stack outside this package."""
    frame, depth = sys._getframe(), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("diffrac_cvx."):
        frame, depth = frame.f_back, depth + 1
    if warn:
        warnings.warn(message, DegenerateDataWarning, stacklevel=depth)


def format_indices(mask: npt.NDArray[np.bool_], names: Sequence[object] | None = None) -> str:
    """Return the first few indices at which a mask is true, or their names, as text."""
    found = np.flatnonzero(mask).tolist()
    return f"[{list_first(found)}]" if names is None else list_first([repr(str(names[j])) for j in found])


def list_first(values: Sequence[object]) -> str:
    """Return the first few values as text."""
    return ", ".join(map(str, values[:MAX_NAMED])) + (", ..." if len(values) > MAX_NAMED else "")


def as_labels(y: npt.ArrayLike, n: int | None = None, name: str = "y") -> Array:
    """Return a float64 (n,) copy of labels in {-1, +1}."""
    raw = as_any(y, name)
    if raw.ndim != 1 or len(raw) == 0:
        raise DataError(f"{name} has shape {raw.shape}. Pass a 1-d array of labels, one per point.")
    if n is not None and len(raw) != n:
        raise DataError(f"{name} has {len(raw)} labels for {n} points. Pass one label per point.")
    if raw.dtype.kind not in "biuf" or not np.isin(raw, (-1, 1)).all():
        raise DataError(f"{name} must contain only -1 and +1. Map the two classes to these values.")
    return raw.astype(np.float64)


def as_clusters(labels: npt.ArrayLike, n: int, n_clusters: int | None = None) -> tuple[npt.NDArray[np.int64], int]:
    """Return an int64 (n,) copy of labels in 0, ..., K - 1, and K: n_clusters, or by default the smallest possible."""
    raw = as_any(labels, "labels")
    if raw.shape != (n,) or raw.dtype.kind not in "biu" or raw.min(initial=0) < 0:
        raise DataError(f"labels must contain {n} integers from 0 on. Pass np.unique(labels, return_inverse=True)[1].")
    min_clusters = max(int(raw.max()) + 1, 2)
    K = min_clusters if n_clusters is None else positive_int(n_clusters, "n_clusters")
    if not min_clusters <= K <= max(n, 2):
        raise ParameterError(
            f"n_clusters = {K} must be at least {min_clusters}, to allow labels up to {min_clusters - 1}, and at most "
            f"the number of points, {n}. Number the clusters by np.unique(labels, return_inverse=True)[1]."
        )
    return raw.astype(np.int64), K


def array_of(value: Any) -> npt.NDArray[Any]:
    """Return a value as an array, of objects if its rows have unequal lengths."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return np.array(value, dtype=object)


def as_scalar(value: Any, name: str) -> float:
    """Return a real finite scalar as a float."""
    array = array_of(value)
    if array.ndim != 0 or array.dtype.kind not in "biuf" or not np.isfinite(array):
        shown = value.item() if isinstance(value, np.generic) else value
        raise ParameterError(f"{name} = {shown!r} must be a finite number.")
    return float(array)


def format_exact(number: float) -> str:
    """Return a number with enough digits to identify it exactly, integers without a decimal point."""
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))


def in_unit_interval(value: Any, name: str) -> float:
    number = as_scalar(value, name)
    if not 0.0 <= number <= 1.0:
        raise ParameterError(f"{name} = {format_exact(number)} is outside [0, 1].")
    return number


def positive(value: Any, name: str) -> float:
    number = as_scalar(value, name)
    if number <= 0.0:
        raise ParameterError(f"{name} = {format_exact(number)} must be greater than 0.")
    return number


def nonnegative(value: Any, name: str) -> float:
    number = as_scalar(value, name)
    if number < 0.0:
        raise ParameterError(f"{name} = {format_exact(number)} must not be negative.")
    return number


def positive_int(value: Any, name: str) -> int:
    number = as_scalar(value, name)
    if number != int(number) or number < 1:
        raise ParameterError(f"{name} = {value!r} must be a positive integer.")
    return int(number)


def repetitions(value: Any, name: str) -> int:
    """Return a number of repetitions, a positive integer."""
    number = positive_int(value, name)
    if number > MAX_REPETITIONS:
        raise ParameterError(f"{name} = {value!r} is more than {MAX_REPETITIONS}. Pass a smaller number.")
    return number


def one_of(value: Any, name: str, choices: Mapping[str, Any] | tuple[str, ...]) -> str:
    """Return the value if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"{name} = {value!r} is not one of {', '.join(choices)}{did_you_mean(value, choices)}")
    return value


def require_callback(value: object, name: str = "callback") -> None:
    """Raise ParameterError if a value is neither a function nor None."""
    if not (value is None or callable(value)):
        raise ParameterError(f"{name} = {value!r} is not a function. Pass one, such as print, or None.")


def require_flag(value: object, name: str) -> None:
    """Raise if a parameter is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} = {value!r} must be True or False.")


def did_you_mean(value: object, choices: Iterable[object]) -> str:
    """Return the end of a message that suggests the choice closest to a value, or "." if none is close."""
    known = {str(choice).lower(): str(choice) for choice in choices}
    near = difflib.get_close_matches(str(value).strip().lower(), known, 1)
    return f". Did you mean {known[near[0]]!r}?" if near else "."


def as_generator(rng: np.random.Generator | int) -> np.random.Generator:
    """Return the generator itself, or a new one from a seed (a non-negative integer)."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(as_seed(rng, "rng", "a numpy.random.Generator or "))


def as_seed(value: Any, name: str, alternative: str = "") -> int:
    """Return a seed, a non-negative integer; `alternative` describes other accepted values in the error message."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
        raise ParameterError(f"{name} = {value!r} must be {alternative}a seed (a non-negative integer).")
    return int(value)
