"""Numbers and colours of clusters, matched to the last result when a setting changes."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from diffrac_cvx.app.page.data import Data
from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.penalty import Penalty

Numbers = npt.NDArray[np.int64]  # of clusters, from 0

LAST_CLUSTERS: WeakKeyDictionary[Data, dict[int, Numbers]] = (
    WeakKeyDictionary()
)  # last clusters of a table, by number of clusters


def remember_clusters(data: Data, clusters: Numbers, count: int) -> None:
    """Store the displayed clusters 0 to count - 1, to match the next ones with."""
    others = {k: labels for k, labels in LAST_CLUSTERS.get(data, {}).items() if k != count}
    LAST_CLUSTERS[data] = {**others, count: clusters}


def number_clusters(labels: npt.NDArray[Any]) -> Numbers:
    """Return labels as integers from 0: -1.0 and +1.0 become 0 and 1, integers stay."""
    return labels.astype(np.int64) if labels.dtype.kind == "i" else (labels > 0).astype(np.int64)


def match_names(clusters: Numbers, count: int, data: Data) -> Numbers | None:
    """Return displayed numbers of the clusters 0 to count - 1, such that most points keep their last number.

    Without a last result for this number of clusters, they match the reference labels, else the last result with
    another number of clusters; None if there is neither.
    """
    shown = LAST_CLUSTERS.get(data, {})
    references = [np.unique(labels, return_inverse=True)[1].astype(np.int64) for labels in data.references]
    candidates = [*([shown[count]] if count in shown else []), *references, *list(shown.values())[-1:]]
    if not candidates:
        return None
    before = candidates[0]
    common, mask = np.zeros((count, count)), before < count
    np.add.at(common, (clusters[mask], before[mask]), 1.0)
    return np.asarray(linear_sum_assignment(common, maximize=True)[1], dtype=np.int64)


def name_two_clusters(labels: Array, data: Data, nu: float, penalty: Penalty) -> Array:
    """Return labels, -1 and +1, with the signs of the last result, else those of `DiffracClustering`."""
    names = match_names(number_clusters(labels), 2, data)
    if names is not None:
        return -labels if names[0] else labels
    weights = certify_labels(data.X, labels, 0.0, nu=nu, penalty=penalty).v * data.X.std(axis=0)
    return -labels if weights[np.argmax(np.abs(weights))] < 0.0 else labels
