"""Saved models: the affine functions of a fitted estimator as plain JSON, without pickle."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.datasets.tables import MISSING_POLICIES, Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.estimators.schema import READ_OPTIONS, TableSchema
from diffrac_cvx.machine.writing import write_text
from diffrac_cvx.points.checks import Array, as_table, require_finite
from diffrac_cvx.points.reading import table_times
from diffrac_cvx.points.streamed import is_chunked, known_shape
from diffrac_cvx.rounding.many_clusters import cluster_indices

FILE_KIND = "diffrac-cvx score"
FORMAT_VERSION = 2  # of the file: increased if older versions cannot read new files
BOUND_NAMES = ("lower_bound", "upper_bound", "label_gap", "n_excluded")


@dataclass(frozen=True, eq=False)
class SavedModel:
    """Affine functions of a fitted estimator, as read by `load_model`.

    `decision_function` and `predict` agree with those of the estimator.  If the estimator knew feature names, the
    columns of a data frame are selected by name, in any order.

    Attributes
    ----------
    model : str
        Class name of the estimator.
    n_features_in : int
        Number of features d.
    coef, intercept : (d,) array and float, or (K, d) array and (K,) array
        ``coef_`` and ``intercept_`` of the estimator, in the units of the features.
    is_multilabel : bool
        True if each point has several labels instead of one cluster.
    classes : (K,) array or None
        Class names, for a classifier.
    names : tuple of str or None
        Names of the features.
    schema : TableSchema or None
        Required columns of a table; None without names.
    bounds : mapping of str to float
        ``lower_bound``, ``upper_bound``, ``label_gap`` and ``n_excluded``, if the estimator has them; they only refer
        to the training data.
    diagnostics : tuple of str
        Warnings that the fit may not be meaningful.
    """

    model: str
    coef: Array
    intercept: Any
    is_multilabel: bool = False
    classes: npt.NDArray[Any] | None = None
    schema: TableSchema | None = None
    bounds: Mapping[str, float] = field(default_factory=dict)
    diagnostics: tuple[str, ...] = ()

    @property
    def n_features_in(self) -> int:
        """Number of features."""
        return int(self.coef.shape[-1])

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return None if self.schema is None else self.schema.names

    @property
    def n_clusters(self) -> int:
        """Number of clusters or classes, or of labels if each point has several."""
        return 2 if self.coef.ndim == 1 else len(self.coef)

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return the values of the decision functions, shape (n,) or (n, K), as the estimator does.

        Parameters
        ----------
        X : (n, d) array, data frame, sparse matrix, memory map or dask array
            Points, in the units of the training data.

        Raises
        ------
        DataError
            If X is not a finite table with d columns, or a data frame lacks a column.
        """
        return np.asarray(table_times(self._read(X), np.transpose(self.coef)) + self.intercept)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return clusters, labels (n, K) or classes, as the estimator does.

        Parameters and errors are those of `decision_function`.
        """
        values = self.decision_function(X)
        indices = (values > 0.0).astype(np.int64) if self.is_multilabel else cluster_indices(values)
        return indices if self.classes is None else self.classes[indices]

    def _read(self, X: Any) -> Any:
        """Return X as the estimator reads it: an array, a sparse matrix, or a streamed table."""
        if self.names is not None and hasattr(X, "columns"):
            absent = [name for name in self.names if name not in X.columns]
            if absent:
                raise DataError(f"X has no column {', '.join(map(repr, absent))}; pass all features of the model")
            X = X if list(X.columns) == list(self.names) else X[list(self.names)]
        if is_chunked(X) or isinstance(X, np.memmap):
            X = known_shape(X)
        elif hasattr(X, "toarray"):
            X = X.tocsr().astype(np.float64)
            require_finite(X.data, "X")
        else:
            X = as_table(X).astype(np.float64, copy=False)
            require_finite(X, "X")
        if X.shape[1] != self.n_features_in:
            raise DataError(
                f"X has {X.shape[1]} features, but the model has {self.n_features_in}; pass the features of the model"
            )
        return X


def save_model(model: Any, path: str | Path, *, table: Table | None = None) -> None:
    """Save the affine functions of a fitted estimator as JSON, for `load_model` and ``diffrac-cvx predict``.

    The file contains only numbers and names, so reading it executes no code.  People, other programs and later versions
    of this package can read it.

    Parameters
    ----------
    model : DiffracClustering, DiffracClusteringCV, DiffracClassifier or MultiLabelDiffrac
        Fitted estimator.
    path : str or Path
        File, written atomically.
    table : Table, optional
        Result of `datasets.read_table` whose X was fitted.  Then ``diffrac-cvx predict`` accepts files like the one
        read, including categories and missing values.  By default feature names are those of the data frame of the fit,
        if any.

    Raises
    ------
    ParameterError
        If the estimator is of another class or not fitted, or the table is not the one of the fit.
    OSError
        If the file cannot be written.
    """
    from diffrac_cvx.estimators.affine import AffineClusterer
    from diffrac_cvx.estimators.multi_label import MultiLabelDiffrac

    if not isinstance(model, AffineClusterer):
        more = "; save its last step, a model of the transformed table" if hasattr(model, "steps") else ""
        raise ParameterError(f"model is a {type(model).__name__}, which cannot be saved{more}")
    if not hasattr(model, "coef_"):
        raise ParameterError("model is not fitted; fit it first")
    names = getattr(model, "feature_names_in_", None)
    schema = None if names is None else TableSchema(tuple(map(str, names)))
    if table is not None:
        if len(table.names) != model.n_features_in_:
            raise ParameterError(
                f"table has {len(table.names)} features, model has {model.n_features_in_}; pass the table of the fit"
            )
        schema = TableSchema.of(table)
    bounds = {key: getattr(model, f"{key}_", None) for key in BOUND_NAMES}
    content = {
        "file": FILE_KIND,
        "form": FORMAT_VERSION,
        "version": metadata.version("diffrac-cvx"),
        "model": type(model).__name__,
        "n_clusters": 2 if np.ndim(model.coef_) == 1 else len(model.coef_),
        "several": isinstance(model, MultiLabelDiffrac),
        "classes": getattr(model, "classes_", None),
        "features": None if schema is None else schema.names,
        "coefficients": model.coef_,
        "intercept": model.intercept_,
        "proved": {key: float(value) for key, value in bounds.items() if value is not None and np.isfinite(value)},
        "diagnostics": list(map(str, getattr(model, "diagnostics_", ()))),
        "means": None if schema is None else schema.means,
        "categories": {} if schema is None else schema.categories,
        "how": {} if schema is None else schema.options,
    }
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, default=lambda array: array.tolist(), allow_nan=False)}"
        for key, value in content.items()
    )
    write_text(Path(path), "{\n" + ",\n".join(lines) + "\n}\n")


def load_model(path: str | Path) -> SavedModel:
    """Load a model that `save_model` or ``diffrac-cvx cluster --save`` wrote.

    Parameters
    ----------
    path : str or Path
        File to read.

    Raises
    ------
    DataError
        If the file is not a saved model, is damaged, or has the format of another version.
    OSError
        If the file cannot be opened.
    """
    try:
        content = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not a saved model: it is not JSON ({error})") from None
    if not isinstance(content, dict) or content.get("file") != FILE_KIND:
        raise DataError(f"{path} is not a saved model; create one with diffrac-cvx cluster --save or save_model")
    if content.get("form") != FORMAT_VERSION:
        raise DataError(
            f"{path} has format {content.get('form')!r} of diffrac-cvx {content.get('version')!r}; this version, "
            f"{metadata.version('diffrac-cvx')}, reads format {FORMAT_VERSION}; save the model again"
        )
    try:
        return parse_model(content)
    except KeyError as error:
        raise DataError(f"{path} is damaged: it has no {error}; save the model again") from None
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"{path} is damaged: {error}; save the model again") from None


def parse_model(content: dict[str, Any]) -> SavedModel:
    """Return the model of a file; raise if an entry has a wrong type or size."""
    coef = read_numbers(content["coefficients"], "coefficients")
    d = coef.shape[-1] if coef.ndim in (1, 2) else 0
    if d == 0:
        raise ValueError(f"'coefficients' has shape {coef.shape}")
    intercept: Any = read_numbers(content["intercept"], "intercept", coef.shape[:-1])
    classes = content["classes"]
    if classes is not None:
        classes = np.array(classes)
        if classes.shape != (2 if coef.ndim == 1 else len(coef),) or classes.dtype.kind not in "biufU":
            raise ValueError("'classes' does not name each class")
    bounds = {
        key: float(read_numbers(content["proved"][key], key, ())) for key in BOUND_NAMES if key in content["proved"]
    }
    model, diagnostics = read_text(content["model"], "model"), read_texts(content["diagnostics"], "diagnostics")
    intercept = intercept if intercept.ndim else float(intercept)
    is_multilabel, schema = content["several"] is True, read_schema(content, d)
    saved = SavedModel(model, coef, intercept, is_multilabel, classes, schema, bounds, diagnostics)
    if content["n_clusters"] != saved.n_clusters:
        raise ValueError(f"'n_clusters' is {content['n_clusters']!r} for {saved.n_clusters} clusters")
    return saved


def read_schema(content: dict[str, Any], d: int) -> TableSchema | None:
    """Return the required columns of a table, or None without names."""
    if content["features"] is None:
        return None
    names = read_texts(content["features"], "features")
    if len(names) != d:
        raise ValueError(f"'features' has {len(names)} names for {d} coefficients")
    means = None if content["means"] is None else read_numbers(content["means"], "means", (d,))
    categories = {name: read_texts(values, "categories") for name, values in content["categories"].items()}
    if any(len({*names}) < max(len(names), 2) for names in categories.values()):
        raise ValueError("'categories' has fewer than two categories of a column, or one twice")
    options = dict(content["how"])
    types: dict[str, Any] = dict.fromkeys(READ_OPTIONS, str) | {"header": bool, "transpose": bool, "skip_footer": int}
    types |= {"skip_rows": int | list, "na_values": list}
    if any(not isinstance(options[key], types[key]) for key in READ_OPTIONS if key in options):
        raise ValueError("'how' has an invalid option")
    if isinstance(lines := options.get("skip_rows", 0), list) and not all(isinstance(line, int) for line in lines):
        raise ValueError("'how' has an invalid option")
    for key in ("drop", "aside", "one_hot", "na_values"):
        if key in options and options[key] != "all":
            options[key] = read_texts(options[key], key)
    if options.get("missing", "error") not in MISSING_POLICIES or not isinstance(options.get("label", ""), str):
        raise ValueError("'how' has an invalid option")
    return TableSchema(names, means, categories, options)


def read_numbers(value: Any, name: str, shape: tuple[int, ...] | None = None) -> Array:
    """Return finite numbers, checked to have the shape if given."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name!r} has rows of different lengths") from None
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise ValueError(f"{name!r} contains other values than finite numbers")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name!r} has shape {array.shape} instead of {shape}")
    return array.astype(np.float64)


def read_text(value: Any, name: str) -> str:
    """Return a checked string."""
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is {value!r}, not a string")
    return value


def read_texts(value: Any, name: str) -> tuple[str, ...]:
    """Return checked strings."""
    if not isinstance(value, list):
        raise ValueError(f"{name!r} is not a list of strings")
    return tuple(read_text(one, name) for one in value)
