"""Scaling of the paper's data, which the text does not state: several readings."""

from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array


class Reading(NamedTuple):
    """One reading of the scale of the data; a and c are the weights of Gamma, as defined in section 3.

    Attributes
    ----------
    words : str
        Description of the reading, as in the tables.
    scaling : str
        Scaling of the columns, as in `diffrac_cvx.datasets.load`.
    norm_one : bool
        Whether columns are divided by the root of n, so that they have norm one instead of variance one.
    rows : bool
        Whether rows are divided by their norms before the columns are centred.
    """

    words: str
    scaling: str = "standardize"
    norm_one: bool = False
    rows: bool = False


READINGS = {
    "weights": Reading("columns of variance one"),
    "norm one": Reading("columns of norm one, which multiplies Gamma by n", norm_one=True),
    "as given": Reading("columns as they are distributed", scaling="none"),
    "min-max": Reading("columns in [-1, 1], as in LIBSVM's scaled files", scaling="min-max"),
    "rows": Reading("rows divided by their norms, columns not rescaled", "none", rows=True),
}
MAIN = "weights"


def load_scaled(name: str, reading: str = MAIN) -> tuple[Array, Array]:
    """Return X (n, d), centred and scaled according to a reading, and the labels (n,)."""
    how = READINGS[reading]
    X, y = dc.datasets.load(name, scaling=how.scaling)
    if how.rows:
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        X = X / np.where(norms > 0, norms, 1.0)  # w1a has zero rows
    X = X - X.mean(axis=0)
    return (X / len(X) ** 0.5 if how.norm_one else X), y
