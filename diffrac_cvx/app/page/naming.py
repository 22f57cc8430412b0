"""One name, and so one colour, for each cluster: it stays with the points that have it when a setting changes."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from diffrac_cvx.app.page.data import Data
from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.penalty import Penalty

Numbers = npt.NDArray[np.int64]  # of clusters, from 0 on

LAST_CLUSTERS: WeakKeyDictionary[Data, dict[int, Numbers]] = (
    WeakKeyDictionary()
)  # the last answers of a table, by their number


def remember_clusters(data: Data, clusters: Numbers, count: int) -> None:
    """Keep the clusters 0 to count - 1 of an answer that is shown, as those that the next is compared with."""
    others = {k: labels for k, labels in LAST_CLUSTERS.get(data, {}).items() if k != count}
    LAST_CLUSTERS[data] = {**others, count: clusters}


def number_clusters(labels: npt.NDArray[Any]) -> Numbers:
    """Return clusters as whole numbers from 0 on: those that are, as they are, and -1.0 and +1.0 as 0 and 1."""
    return labels.astype(np.int64) if labels.dtype.kind == "i" else (labels > 0).astype(np.int64)


def match_names(clusters: Numbers, count: int, data: Data) -> Numbers | None:
    """Return the number by which each of the clusters 0 to count - 1 goes: most points keep that of the last answer.

    Before the first answer of so many clusters it is that of the known groups, else of the last answer with another
    number; None where there are none.
    """
    shown = LAST_CLUSTERS.get(data, {})
    before = shown.get(count)
    if before is None and data.labels is not None:
        before = np.unique(data.labels, return_inverse=True)[1].astype(np.int64)
    if before is None and shown:
        before = [*shown.values()][-1]
    if before is None:
        return None
    common, mask = np.zeros((count, count)), before < count
    np.add.at(common, (clusters[mask], before[mask]), 1.0)
    return np.asarray(linear_sum_assignment(common, maximize=True)[1], dtype=np.int64)


def name_two_clusters(labels: Array, data: Data, nu: float, penalty: Penalty) -> Array:
    """Return labels, -1 and +1, with the signs of the last answer, else those of `DiffracClustering`."""
    names = match_names(number_clusters(labels), 2, data)
    if names is not None:
        return -labels if names[0] else labels
    weights = certify_labels(data.X, labels, 0.0, nu=nu, penalty=penalty).v * data.X.std(axis=0)
    return -labels if weights[np.argmax(np.abs(weights))] < 0.0 else labels
