"""Scores kept in a file: the affine functions of a fitted estimator as plain JSON, without a pickle."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.datasets.schema import READ_OPTIONS, TableSchema
from diffrac_cvx.datasets.tables import MISSING_POLICIES, Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.machine.writing import write_text
from diffrac_cvx.points.checks import Array, as_table, require_finite
from diffrac_cvx.points.chunks import is_chunked, known_shape
from diffrac_cvx.points.reading import table_array, table_times
from diffrac_cvx.rounding.many_clusters import BinarySplit, scores_of_splits

FILE_KIND = "diffrac-cvx score"
FORMAT_VERSION = 1  # of the file: it changes where an older version could not read what is written
BOUND_NAMES = ("lower_bound", "upper_bound", "label_gap", "n_excluded")
SCALED_TABLE_ERROR = (
    "a score is kept in the units of the features, and those of this table were scaled: read it with scaling='none'"
)


@dataclass(frozen=True, eq=False)
class SavedModel:
    """The affine functions of a fitted estimator, which `load_model` reads from a file.

    `decision_function` and `predict` return what those of the estimator do.  The columns of a data frame are taken by
    their names, in any order, where the estimator knew names.

    Attributes
    ----------
    model : str
        The name of the estimator's class.
    n_features_in : int
        d.
    coef, intercept : (d,) array and float, or (K, d) array and (K,) array
        In the units of the features, as ``coef_`` and ``intercept_``.
    splits : tuple of Split
        The tree of splits in two, by the strategy "splits"; empty elsewhere.
    several : bool
        Whether there are several labels of each point, and not one cluster.
    classes : (K,) array or None
        The names of the classes, of a classifier.
    names : tuple of str or None
        Names of the features.
    form : Form or None
        What a table has to have; None where there are no names.
    proved : mapping of str to float
        ``lower_bound``, ``upper_bound``, ``label_gap`` and ``n_excluded``, as far as the estimator has them: of the
        points that it was fitted to, and of no others.
    reservations : tuple of str
        Why what was fitted may be no answer.
    """

    model: str
    coef: Array
    intercept: Any
    splits: tuple[BinarySplit, ...] = ()
    is_multilabel: bool = False
    classes: npt.NDArray[Any] | None = None
    schema: TableSchema | None = None
    bounds: Mapping[str, float] = field(default_factory=dict)
    diagnostics: tuple[str, ...] = ()

    @property
    def n_features_in(self) -> int:
        """The number of features."""
        return int(self.coef.shape[-1])

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return None if self.schema is None else self.schema.names

    @property
    def n_clusters(self) -> int:
        """The number of clusters or classes, or of labels where there are several."""
        return len(self.splits) + 1 if self.splits else 2 if self.coef.ndim == 1 else len(self.coef)

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return the values of the functions, shape (n,) or (n, K), as the estimator does.

        Parameters
        ----------
        X : (n, d) array, data frame, sparse matrix, memory map or dask array
            Points, in the units of those that the estimator was fitted to.

        Raises
        ------
        DataError
            If X is no table of d finite numbers a row, or a data frame lacks a column.
        """
        table = self._read(X)
        if self.splits:
            return scores_of_splits(table_array(table), self.splits)
        return np.asarray(table_times(table, np.transpose(self.coef)) + self.intercept)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return clusters, labels (n, K) or classes, as the estimator does; X and errors are as there.

        Parameters and errors are those of `decision_function`.
        """
        values = self.decision_function(X)
        is_binary = self.is_multilabel or values.ndim == 1
        indices = np.asarray(values > 0.0 if is_binary else np.argmax(values, axis=1)).astype(np.int64)
        return indices if self.classes is None else self.classes[indices]

    def _read(self, X: Any) -> Any:
        """Return a table as the estimator reads it: an array in its own order in memory, or what is read by parts."""
        if self.names is not None and hasattr(X, "columns"):
            absent = [name for name in self.names if name not in X.columns]
            if absent:
                raise DataError(f"X has no column {', '.join(map(repr, absent))}; the score needs each of its features")
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
            raise DataError(f"X has {X.shape[1]} features, and the score is one of {self.n_features_in}")
        return X


def extract_model(model: Any, table: Table | None = None) -> SavedModel:
    """Return the affine functions of a fitted estimator; the parameters and errors are those of `save_model`."""
    from diffrac_cvx.estimators.affine import AffineClusterer
    from diffrac_cvx.estimators.multi_label import MultiLabelDiffrac

    if not isinstance(model, AffineClusterer):
        more = ": save its last step, whose score is about the transformed table" if hasattr(model, "steps") else ""
        raise ParameterError(f"a {type(model).__name__} has no score that can be saved{more}")
    if not hasattr(model, "coef_"):
        raise ParameterError("the estimator has no score yet: fit it first")
    if table is not None and table.options.get("scaling", "none") != "none":
        raise ParameterError(SCALED_TABLE_ERROR)
    names = getattr(model, "feature_names_in_", None)
    schema = None if names is None else TableSchema(tuple(map(str, names)))
    if table is not None:
        if len(table.names) != model.n_features_in_:
            raise ParameterError(f"table has {len(table.names)} features, and the estimator {model.n_features_in_}")
        schema = TableSchema.of(table)
    bounds = {key: getattr(model, f"{key}_", None) for key in BOUND_NAMES}
    by_splits = getattr(model, "strategy", "") == "splits" and model.n_clusters > 2
    return SavedModel(
        type(model).__name__, model.coef_, model.intercept_, model.splits_ if by_splits else (),
        isinstance(model, MultiLabelDiffrac), getattr(model, "classes_", None), schema,
        {key: float(value) for key, value in bounds.items() if value is not None and np.isfinite(value)},
        tuple(map(str, getattr(model, "diagnostics_", ()))),
    )  # fmt: skip


def save_model(model: Any, path: str | Path, *, table: Table | None = None) -> None:
    """Write the affine functions of a fitted estimator to a JSON file, for `load_model` and ``diffrac-cvx predict``.

    The file holds numbers and names alone: reading it executes nothing.  It can be read by a person, by other programs
    and by later versions of this package.

    Parameters
    ----------
    model : DiffracClustering, DiffracClusteringCV, DiffracClassifier or MultiLabelDiffrac
        Fitted.
    path : str or Path
        The file, which is written whole or not at all.
    table : Table, optional
        What `datasets.read_table` returned, of which the estimator was fitted to X: so that a file like the one that
        was read can be given to ``diffrac-cvx predict``, categories and missing values included.  By default the names
        of the features are those of the data frame that the estimator was fitted to, if it was one.

    Raises
    ------
    ParameterError
        If the estimator is another one or not fitted, or the table is not the one that it was fitted to.
    OSError
        If the file cannot be written.
    """
    saved = extract_model(model, table)
    schema = saved.schema
    content = {
        "file": FILE_KIND,
        "form": FORMAT_VERSION,
        "version": metadata.version("diffrac-cvx"),
        "model": saved.model,
        "n_clusters": saved.n_clusters,
        "several": saved.is_multilabel,
        "classes": saved.classes,
        "features": None if schema is None else schema.names,
        "coefficients": saved.coef,
        "intercept": saved.intercept,
        "splits": [vars(split) for split in saved.splits],
        "proved": saved.bounds,
        "diagnostics": saved.diagnostics,
        "means": None if schema is None else schema.means,
        "categories": {} if schema is None else schema.categories,
        "how": {} if schema is None else schema.options,
    }
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, default=to_jsonable, allow_nan=False)}"
        for key, value in content.items()
    )
    write_text(Path(path), "{\n" + ",\n".join(lines) + "\n}\n")


def to_jsonable(value: Any) -> Any:
    """Return an array or a number of NumPy in the types of JSON."""
    return value.tolist()


def load_model(path: str | Path) -> SavedModel:
    """Read a score that `save_model` or ``diffrac-cvx cluster --save`` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    DataError
        If the file is no saved score, is damaged, or has the form of another version.
    OSError
        If it cannot be opened.
    """
    try:
        content = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no saved score: it is not JSON ({error})") from None
    if not isinstance(content, dict) or content.get("file") != FILE_KIND:
        raise DataError(f"{path} is no saved score: diffrac-cvx cluster --save, or save_model, writes one")
    if content.get("form") != FORMAT_VERSION:
        raise DataError(
            f"{path} is a saved score of form {content.get('form')!r}, written by diffrac-cvx "
            f"{content.get('version')!r}; this version, {metadata.version('diffrac-cvx')}, reads form {FORMAT_VERSION}"
        )
    try:
        return parse_model(content)
    except KeyError as error:
        raise DataError(f"{path} is damaged: it has no {error}; save the score again") from None
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"{path} is damaged: {error}; save the score again") from None


def parse_model(content: dict[str, Any]) -> SavedModel:
    """Return the score that a file holds; raise where an entry has another type or size than it must have."""
    coef = read_numbers(content["coefficients"], "coefficients")
    d = coef.shape[-1] if coef.ndim in (1, 2) else 0
    if d == 0:
        raise ValueError(f"'coefficients' has shape {coef.shape}")
    intercept: Any = read_numbers(content["intercept"], "intercept", coef.shape[:-1])
    classes = content["classes"]
    if classes is not None:
        classes = np.array(classes)
        if classes.shape != (2 if coef.ndim == 1 else len(coef),) or classes.dtype.kind not in "biufU":
            raise ValueError("'classes' are not the names of all classes")
    bounds = {
        key: float(read_numbers(content["proved"][key], key, ())) for key in BOUND_NAMES if key in content["proved"]
    }
    splits = tuple(parse_split(split, number, d) for number, split in enumerate(content["splits"], 1))
    model, diagnostics = read_text(content["model"], "model"), read_texts(content["diagnostics"], "diagnostics")
    intercept = intercept if intercept.ndim else float(intercept)
    is_multilabel, schema = content["several"] is True, read_schema(content, d)
    saved = SavedModel(model, coef, intercept, splits, is_multilabel, classes, schema, bounds, diagnostics)
    if content["n_clusters"] != saved.n_clusters or (splits and len(coef) != len(splits) + 1):
        raise ValueError(f"'n_clusters' is {content['n_clusters']!r} for functions of {saved.n_clusters}")
    return saved


def parse_split(split: dict[str, Any], number: int, d: int) -> BinarySplit:
    """Return a split, of a cluster that those before it made, into that and a new one."""
    cluster = split["cluster"]
    if split["new"] != number or cluster not in range(number):
        raise ValueError(f"split {number} is one of cluster {cluster!r}")
    coef, intercept = read_numbers(split["coef"], "splits", (d,)), read_numbers(split["intercept"], "splits", ())
    cost, size = read_numbers(split["cost"], "splits", ()), read_numbers(split["size"], "splits", ())
    return BinarySplit(int(cluster), number, coef, float(intercept), float(cost), int(size))


def read_schema(content: dict[str, Any], d: int) -> TableSchema | None:
    """Return what a table has to have, None where there are no names."""
    if content["features"] is None:
        return None
    names = read_texts(content["features"], "features")
    if len(names) != d:
        raise ValueError(f"'features' has {len(names)} names for {d} coefficients")
    means = None if content["means"] is None else read_numbers(content["means"], "means", (d,))
    categories = {name: read_texts(values, "categories") for name, values in content["categories"].items()}
    if any(len({*every}) < max(len(every), 2) for every in categories.values()):
        raise ValueError("'categories' has fewer than two different ones of a column, or one twice")
    options = dict(content["how"])
    types = dict.fromkeys(READ_OPTIONS, (str,)) | {"header": (bool,), "transpose": (bool,)}
    if any(not isinstance(options[key], types[key]) for key in READ_OPTIONS if key in options):
        raise ValueError("'how' says of a table what is not known")
    for key in ("drop", "aside", "one_hot"):
        if key in options and options[key] != "all":
            options[key] = read_texts(options[key], key)
    if options.get("missing", "error") not in MISSING_POLICIES or not isinstance(options.get("label", ""), str):
        raise ValueError("'how' says of a table what is not known")
    return TableSchema(names, means, categories, options)


def read_numbers(value: Any, name: str, shape: tuple[int, ...] | None = None) -> Array:
    """Return finite numbers, of a shape where it is given."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name!r} has rows of different lengths") from None
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise ValueError(f"{name!r} holds something else than finite numbers")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name!r} has shape {array.shape}, where {shape} is needed")
    return array.astype(np.float64)


def read_text(value: Any, name: str) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is {value!r}, which is no text")
    return value


def read_texts(value: Any, name: str) -> tuple[str, ...]:
    """Return texts."""
    if not isinstance(value, list):
        raise ValueError(f"{name!r} is no list of texts")
    return tuple(read_text(one, name) for one in value)
