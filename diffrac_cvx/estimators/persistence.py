"""Saved models: the data that a fitted estimator needs for prediction, as one .npz file without pickle."""

import json
import zipfile
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx.datasets.file_columns import unpacked_limit
from diffrac_cvx.datasets.schema import Schema
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.estimators.affine import AffineClusterer
from diffrac_cvx.estimators.classifier import DiffracClassifier
from diffrac_cvx.estimators.clustering import DiffracClustering
from diffrac_cvx.estimators.clustering_cv import DiffracClusteringCV
from diffrac_cvx.estimators.multi_label import MultiLabelDiffrac
from diffrac_cvx.machine.writing import atomic_file
from diffrac_cvx.points.checks import Array
from diffrac_cvx.rounding.diagnostics import Diagnostic

ESTIMATORS: dict[str, type[AffineClusterer]] = {
    one.__name__: one for one in (DiffracClassifier, DiffracClustering, DiffracClusteringCV, MultiLabelDiffrac)
}
OPTIONAL: dict[str, Any] = {  # attributes that not all estimators have, and their types
    "lower_bound_": float, "upper_bound_": float, "label_gap_": float, "n_excluded_": int, "classes_": np.array,
    "feature_names_in_": np.array,
}  # fmt: skip


def save_model(model: Any, path: str | Path, *, table: Table | None = None) -> None:
    """Save the affine functions of a fitted estimator, for `load_model` and ``diffrac-cvx predict``.

    The file has coefficients, names, bounds and ``diagnostics_``, but neither training data nor ``result_``.

    Parameters
    ----------
    model : DiffracClustering, DiffracClusteringCV, DiffracClassifier or MultiLabelDiffrac
        Fitted estimator.
    path : str or Path
        File, written atomically.
    table : Table, optional
        Result of `datasets.read_table` whose X was fitted, so that ``diffrac-cvx predict`` reads new files in the same
        way.  By default the features have the names of the data frame fitted, if any.

    Raises
    ------
    ParameterError
        If the estimator is of another class or not fitted, or the table is not the one of the fit.
    """
    if type(model) not in ESTIMATORS.values():
        more = " Save its last step, a model of the transformed table." if hasattr(model, "steps") else ""
        raise ParameterError(f"model is a {type(model).__name__}, which cannot be saved.{more}")
    if not hasattr(model, "coef_"):
        raise ParameterError("model is not fitted. Fit it first.")
    if table is not None and len(table.names) != (d := model.n_features_in_):
        raise ParameterError(f"table has {len(table.names)} features, model has {d}. Pass the table of the fit.")
    names = getattr(model, "feature_names_in_", None)
    schema = Schema.of(table) if table is not None else None if names is None else Schema(tuple(map(str, names)))
    record = {
        "estimator": type(model).__name__,
        "diagnostics": [astuple(one) for one in getattr(model, "diagnostics_", ())],
        "schema": None if schema is None else vars(schema),
        **{name: getattr(model, name, None) for name in OPTIONAL},
    }
    text = json.dumps(record, default=lambda array: array.tolist())
    with atomic_file(Path(path)) as part, part.open("wb") as file:
        np.savez_compressed(file, coef=model.coef_, intercept=model.intercept_, record=text)


def load_model(path: str | Path) -> Any:
    """Load a model that `save_model` or ``diffrac-cvx cluster --save`` wrote.

    Parameters
    ----------
    path : str or Path
        File to read.  No code in it is executed.

    Returns
    -------
    DiffracClustering, DiffracClusteringCV, DiffracClassifier or MultiLabelDiffrac
        Estimator that predicts as the saved one, but with default parameters and without ``result_``.

    Raises
    ------
    DataError
        If the file is not a saved model, or is damaged or unpacks to more than the memory allows.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size, limit = sum(member.file_size for member in archive.infolist()), unpacked_limit()
        if size > limit:
            raise ValueError(f"it unpacks to {size} bytes, more than the {limit} allowed")
        with np.load(path, allow_pickle=False) as arrays:
            return restore_model(arrays["coef"], arrays["intercept"], json.loads(str(arrays["record"])))
    except OSError:
        raise
    except Exception as error:  # reading a damaged file may raise any error
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{path} is not a saved model, or is damaged: {reason}. Save the model again.") from None


def restore_model(coef: Array, intercept: Array, record: dict[str, Any]) -> AffineClusterer:
    """Return the estimator of a file; raise any exception if an entry is missing or does not fit."""
    model, (*head, d), schema = ESTIMATORS[record["estimator"]](), coef.shape, record["schema"]
    model.coef_, model.intercept_, model.n_features_in_ = coef, intercept[()], d
    model.diagnostics_ = tuple(Diagnostic(*map(str, one)) for one in record["diagnostics"])
    for name, kind in OPTIONAL.items():
        if record[name] is not None:
            setattr(model, name, kind(record[name]))
    model.schema_ = schema and Schema(**schema | {"names": tuple(schema["names"])})
    sizes = [(record["classes_"], head[0] if head else 2), (record["feature_names_in_"], d)]
    sizes += [(schema[name], d) for name in ("names", "means")] if schema else []
    if len(head) > 1 or intercept.shape != tuple(head) or any(one and len(one) != size for one, size in sizes):
        raise ValueError("its parts do not fit together")
    return model
