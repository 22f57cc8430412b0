"""Saved models: the affine functions of a fitted estimator as plain JSON, without pickle, and tables read for them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.datasets.columns import (
    as_texts,
    category_columns,
    encode_columns,
    format_list,
    format_row,
    read_numbers,
)
from diffrac_cvx.datasets.reading import ReadOptions, read_file, transpose_table
from diffrac_cvx.datasets.tables import MISSING_POLICIES, Table, clean_missing, require_columns
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.machine.writing import write_text
from diffrac_cvx.points.checks import Array, as_table, one_of, require_finite
from diffrac_cvx.points.reading import table_array
from diffrac_cvx.rounding.many_clusters import cluster_indices

FILE_KIND = "diffrac-cvx score"
FORMAT_VERSION = 3  # of the file: increased if older versions cannot read new files
BOUND_NAMES = ("lower_bound", "upper_bound", "label_gap", "n_excluded")
READ_OPTIONS = tuple(one.name for one in fields(ReadOptions))  # the options that also apply to a new file
OPTION_TYPES: dict[str, Any] = {  # in the file; otherwise text
    "header": bool, "transpose": bool, "skip_rows": int | list, "skip_footer": int, "na_values": list,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class SavedModel:
    """Affine functions of a fitted estimator, as read by `load_model`.

    `decision_function` and `predict` agree with those of the estimator.  If the estimator knew feature names, the
    columns of a data frame are selected by name, in any order.

    Attributes
    ----------
    model : str
        Class name of the estimator.
    coef, intercept : (d,) array and float, or (K, d) array and (K,) array
        ``coef_`` and ``intercept_`` of the estimator, in the units of the features.
    is_multilabel : bool
        True if each point has several labels instead of one cluster.
    classes : (K,) array or None
        Class names, for a classifier.
    names : tuple of str or None
        Names of the features.
    means : (d,) array or None
        Means of the features in the training table, to replace missing values.
    categories, options : mapping
        Of the training table, as in `datasets.Table`.
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
    names: tuple[str, ...] | None = None
    means: Array | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, float] = field(default_factory=dict)
    diagnostics: tuple[str, ...] = ()

    @property
    def n_clusters(self) -> int:
        """Number of clusters or classes, or of labels if each point has several."""
        return 2 if self.coef.ndim == 1 else len(self.coef)

    def decision_function(self, X: Any) -> Array:
        """Return the values of the decision functions, shape (n,) or (n, K), as the estimator does.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
            Points, in the units of the training data; they are converted to one array, which has to fit in memory.

        Raises
        ------
        DataError
            If X is not a finite table with d columns, or a data frame lacks a column.
        """
        if self.names is not None and hasattr(X, "columns"):
            absent = [name for name in self.names if name not in X.columns]
            if absent:
                raise DataError(f"X has no column {', '.join(map(repr, absent))}; pass all features of the model")
            X = X[list(self.names)]
        table = table_array(X) if hasattr(X, "toarray") else as_table(X).astype(np.float64, copy=False)
        require_finite(table, "X")
        given, expected = table.shape[1], self.coef.shape[-1]
        if given != expected:
            raise DataError(f"X has {given} features, but the model has {expected}; pass the features of the model")
        return np.asarray(table @ np.transpose(self.coef) + self.intercept)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return clusters, labels (n, K) or classes, as the estimator does.

        Parameters and errors are those of `decision_function`.
        """
        values = self.decision_function(X)
        indices = (values > 0.0).astype(np.int64) if self.is_multilabel else cluster_indices(values)
        return indices if self.classes is None else self.classes[indices]


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
    names, means = getattr(model, "feature_names_in_", None), None
    if table is not None:
        names, means = table.names, table.X.mean(axis=0)
        if len(names) != model.n_features_in_:
            raise ParameterError(
                f"table has {len(names)} features, model has {model.n_features_in_}; pass the table of the fit"
            )
    bounds = {key: getattr(model, f"{key}_", None) for key in BOUND_NAMES}
    content = {
        "file": FILE_KIND,
        "form": FORMAT_VERSION,
        "version": metadata.version("diffrac-cvx"),
        "model": type(model).__name__,
        "coef": model.coef_,
        "intercept": model.intercept_,
        "is_multilabel": isinstance(model, MultiLabelDiffrac),
        "classes": getattr(model, "classes_", None),
        "names": None if names is None else list(map(str, names)),
        "means": means,
        "categories": {} if table is None else table.categories,
        "options": {} if table is None else table.options,
        "bounds": {key: float(value) for key, value in bounds.items() if value is not None and np.isfinite(value)},
        "diagnostics": list(map(str, getattr(model, "diagnostics_", ()))),
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


def parse_model(content: Mapping[str, Any]) -> SavedModel:
    """Return the model of a file; raise if an entry is missing or has a wrong type or size."""
    found: dict[str, Any] = {one.name: content[one.name] for one in fields(SavedModel)}
    coef = found["coef"] = finite_array(content, "coef")
    if coef.ndim not in (1, 2) or not coef.size:
        raise ValueError(f"'coef' has shape {coef.shape}")
    found["intercept"] = finite_array(content, "intercept", coef.shape[:-1])[()]
    if found["classes"] is not None:
        found["classes"] = np.array(content["classes"])
        if found["classes"].shape != (2 if coef.ndim == 1 else len(coef),):
            raise ValueError("'classes' does not name each class")
    if found["names"] is not None:
        found["names"] = texts_of(content, "names")
        if len(found["names"]) != coef.shape[-1]:
            raise ValueError(f"'names' has {len(found['names'])} names for {coef.shape[-1]} coefficients")
    if found["means"] is not None:
        found["means"] = finite_array(content, "means", coef.shape[-1:])
    found["categories"] = {name: texts_of(content["categories"], name) for name in content["categories"]}
    if any(len({*names}) < max(len(names), 2) for names in found["categories"].values()):
        raise ValueError("'categories' has fewer than two categories of a column, or one twice")
    options = content["options"]
    if any(not isinstance(options[key], OPTION_TYPES.get(key, str)) for key in READ_OPTIONS if key in options):
        raise ValueError("'options' has an invalid option")
    found["bounds"] = {key: float(finite_array(content["bounds"], key, ())) for key in content["bounds"]}
    found["diagnostics"] = texts_of(content, "diagnostics")
    return SavedModel(**found)


def finite_array(content: Mapping[str, Any], name: str, shape: tuple[int, ...] | None = None) -> Array:
    """Return an entry of a file as finite numbers, checked to have the shape if given."""
    array = np.array(content[name], dtype=np.float64)
    if not np.isfinite(array).all() or shape not in (None, array.shape):
        raise ValueError(f"{name!r} has shape {array.shape} instead of {shape}, or entries that are not finite")
    return array


def texts_of(content: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return an entry of a file as texts."""
    values = content[name]
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name!r} is not a list of texts")
    return tuple(values)


def read_table_for(model: SavedModel, source: str | Path, *, missing: str | None = None, **reading: Any) -> Table:
    """Read the features of a saved model from a new table, with at least one row.

    Parameters
    ----------
    model : SavedModel
        Model with feature names.
    source : str or Path
        File, as for `read_table`.
    missing : {"error", "drop", "mean"}, optional
        Treatment of missing values and unknown categories: raise an error, drop the rows, or use the training mean of
        the feature; by default as for the training table.
    **reading
        The parameters of `read_table` for reading a file; None means as for the training table.

    Raises
    ------
    DataError, ParameterError
        If the file cannot be read, or if a column is missing or of another type than in the training table.
    """
    if model.names is None:
        raise DataError(
            "the model has no column names. Fit the estimator on a data frame, or pass save_model the table that "
            "read_table returned."
        )
    missing = one_of(missing or model.options.get("missing", "error"), "missing", MISSING_POLICIES)
    if missing == "mean" and model.means is None:
        raise DataError("missing = 'mean': the training means are not available. Drop rows with missing values")
    given = {key: model.options[key] for key in READ_OPTIONS if key in model.options}
    options = ReadOptions(**given | {key: value for key, value in reading.items() if value is not None and value != ()})
    excluded = [*model.options.get("drop", ()), *model.options.get("aside", ()), model.options.get("label")]
    raw = read_file(source, str(source), options)
    raw = transpose_table(raw, excluded)[0] if options.transpose else raw
    sources = category_columns(model.categories)
    names = list(dict.fromkeys(sources.get(name, name) for name in model.names))
    require_columns(raw, names)
    columns, changes = read_numbers(raw, names, options.marks, options.na_values, model.categories)
    notes, unseen = [*raw.notes, *changes], list[str]()
    if others := [name for name in raw.columns if name not in {*names, *excluded}]:
        notes.append(f"ignored columns, which are not in the training table: {format_list(map(repr, others))}")
    for name, column in columns.items():
        texts, known = as_texts(column), model.categories.get(name)
        if known is None and column.dtype == object:
            row = next(i for i, text in enumerate(texts) if text is not None)
            raise DataError(
                f"column {name!r} contains {texts[row]!r} in {format_row(row)}, but the training table had finite "
                "numbers. Correct it, or leave it empty"
            )
        if known is not None and (unknown := sorted({*filter(None, texts)} - {*known})):
            row = next(i for i, text in enumerate(texts) if text in unknown)
            unseen.append(
                f"column {name!r} contains {format_list(map(repr, unknown))} in {format_row(row)}, but the training "
                f"table had {format_list(map(repr, known))}"
            )
    if unseen and missing == "error":
        raise DataError(f"{'; '.join(unseen)}. Correct them, or treat them as missing", remedies=("missing",))
    X, made = encode_columns(columns, model.categories)
    X = X[:, [made.index(name) for name in model.names]]
    X, mask, changes = clean_missing(X, model.names, missing, means=model.means)
    if not mask.any():
        raise DataError(f"none of the {len(mask)} rows is complete")
    notes += [*(f"{text}: treated as missing" for text in unseen), *changes]
    points = np.array(raw.row_names)[mask] if options.transpose else None
    return Table(np.ascontiguousarray(X), model.names, None, (), np.flatnonzero(mask), tuple(notes), points=points)
