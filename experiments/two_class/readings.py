"""Meaning of the paper's a and c, and scaling of its data: the text allows several readings."""

from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array


class Reading(NamedTuple):
    """One reading of Table 1's settings.

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
    ridge, l1 : float
        Powers of a and of c that are the weights of Gamma: 1 if a and c are the weights themselves, 1/2 if they
        multiply the quadratic regulariser and the squared l1 norm.
    """

    words: str
    scaling: str = "standardize"
    norm_one: bool = False
    rows: bool = False
    ridge: float = 1.0
    l1: float = 1.0


READINGS = {
    "weights": Reading("columns of variance one; a and c are the weights of Gamma, as defined in section 3"),
    "factors": Reading(
        "columns of variance one; a and c multiply the two regularisers: the weights are their roots",
        ridge=0.5,
        l1=0.5,
    ),
    "norm one": Reading("columns of norm one, which multiplies Gamma by n; weights as in section 3", norm_one=True),
    "norm one, mixed": Reading(
        "columns of norm one; a multiplies the squares, c is a weight", norm_one=True, ridge=0.5
    ),
    "as given": Reading("columns as they are distributed; weights as in section 3", scaling="none"),
    "min-max": Reading("columns in [-1, 1], as in LIBSVM's scaled files; weights as in section 3", scaling="min-max"),
    "rows": Reading("rows divided by their norms, columns not rescaled; weights as in section 3", "none", rows=True),
}
PUBLISHED = ("weights", "norm one", "as given", "min-max", "rows")  # scalings tried in the paper's protocol
MAIN = "weights"  # section 3 read literally; the paper does not state the scale of the data


def load_scaled(name: str, reading: str = MAIN) -> tuple[Array, Array]:
    """Return X (n, d), centred and scaled according to a reading, and the labels (n,)."""
    how = READINGS[reading]
    X, y = dc.datasets.load(name, scaling=how.scaling)
    if how.rows:
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        X = X / np.where(norms > 0, norms, 1.0)  # w1a has zero rows
    X = X - X.mean(axis=0)
    return (X / len(X) ** 0.5 if how.norm_one else X), y


def penalty_of(a: float, c: float, reading: str = MAIN) -> dc.Penalty:
    """Return the penalty that corresponds to the paper's a and c in a reading."""
    how = READINGS[reading]
    return dc.Penalty(a**how.ridge, c**how.l1)
