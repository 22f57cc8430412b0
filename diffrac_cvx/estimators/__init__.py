"""Estimators in scikit-learn's manner, the choice of the weights without labels, and scores kept in files.

What needs scikit-learn is imported when it is asked for.
"""

from importlib import import_module
from typing import Any

_PLACES = {
    "DiffracClassifier": "classifier",
    "DiffracClustering": "clustering",
    "DiffracClusteringCV": "clustering_cv",
    "MultiLabelDiffrac": "multi_label",
    "SavedScore": "saved",
    "load_score": "saved",
    "save_score": "saved",
}

__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'diffrac_cvx.estimators' has no attribute {name!r}")
    return getattr(import_module(f"diffrac_cvx.estimators.{_PLACES[name]}"), name)
