"""What the paper's a and c weigh, and how its data were scaled: the text leaves open several readings."""

from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array


class Reading(NamedTuple):
    """One reading of Table 1's settings.

    Attributes
    ----------
    words : str
        The reading, as the tables explain it.
    scaling : str
        Of the columns, as `diffrac_cvx.datasets.load` takes it.
    norm_one : bool
        Whether columns are divided by the root of n, so that they have norm one and not variance one.
    rows : bool
        Whether rows are divided by their norms, before the columns are centred.
    ridge, l1 : float
        Powers of a and of c that are the weights of Gamma: 1 where a and c are the weights themselves, 1/2 where they
        multiply the quadratic regulariser and the squared l1 norm.
    """

    words: str
    scaling: str = "standardize"
    norm_one: bool = False
    rows: bool = False
    ridge: float = 1.0
    l1: float = 1.0


READINGS = {
    "weights": Reading("columns of variance one; a and c are the weights of Gamma, as section 3 defines them"),
    "factors": Reading(
        "columns of variance one; a and c multiply the two regularisers: the weights are their roots",
        ridge=0.5,
        l1=0.5,
    ),
    "norm one": Reading("columns of norm one, which multiplies Gamma by n; weights as section 3", norm_one=True),
    "norm one, mixed": Reading(
        "columns of norm one; a multiplies the squares, c is a weight", norm_one=True, ridge=0.5
    ),
    "as given": Reading("columns as they are distributed; weights as section 3", scaling="none"),
    "min-max": Reading("columns in [-1, 1], as LIBSVM's scaled files; weights as section 3", scaling="min-max"),
    "rows": Reading("rows divided by their norms, columns as they then are; weights as section 3", "none", rows=True),
}
PUBLISHED = ("weights", "norm one", "as given", "min-max", "rows")  # scalings tried in the paper's protocol
MAIN = "weights"  # the letter of section 3; the text says nothing on the scale of the data


def load_scaled(name: str, reading: str = MAIN) -> tuple[Array, Array]:
    """Return X (n, d), centred and scaled as a reading has it, and the labels (n,)."""
    how = READINGS[reading]
    X, y = dc.datasets.load(name, scaling=how.scaling)
    if how.rows:
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        X = X / np.where(norms > 0, norms, 1.0)  # w1a has rows of zeros
    X = X - X.mean(axis=0)
    return (X / len(X) ** 0.5 if how.norm_one else X), y


def penalty_of(a: float, c: float, reading: str = MAIN) -> dc.Penalty:
    """Return the penalty that the paper's a and c mean in a reading."""
    how = READINGS[reading]
    return dc.Penalty(a**how.ridge, c**how.l1)
