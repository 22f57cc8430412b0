"""Real data sets: nine with two classes, as in the paper's Table 1, and four with many labels."""

from collections.abc import Callable

import numpy as np

from diffrac_cvx.datasets.catalog import SETS, DataSet
from diffrac_cvx.datasets.files import parse_file, read_label_names, read_packed
from diffrac_cvx.points.checks import Array, one_of
from diffrac_cvx.points.linear_algebra import inverse_or_one, standardize_columns

KINDS = ("two-class", "multi-label", "extra")


def min_max(X: Array) -> Array:
    """Return the columns scaled to [-1, 1]; constant columns become -1."""
    low = X.min(axis=0)
    return np.asarray(2.0 * (X - low) * inverse_or_one(X.max(axis=0) - low) - 1.0)


SCALINGS: dict[str, Callable[[Array], Array]] = {
    "none": lambda X: X,
    "standardize": lambda X: standardize_columns(X),
    "min-max": min_max,
}


def names(kind: str = "two-class") -> tuple[str, ...]:
    """Return the names of the data sets for ``load``, in the order of the paper's Table 1.

    Parameters
    ----------
    kind : {"two-class", "multi-label", "extra"}
        Kind of data set; "extra" has two classes and is not in Table 1.

    Raises
    ------
    ParameterError
        If the kind is unknown.
    """
    one_of(kind, "kind", KINDS)
    return tuple(name for name, record in SETS.items() if record.kind == kind)


def describe(name: str) -> DataSet:
    """Return the description of a data set.

    Parameters
    ----------
    name : str
        One of `names`, of any kind.

    Raises
    ------
    ParameterError
        If the name is unknown.
    """
    return SETS[one_of(name, "name", SETS)]


def load(name: str, *, scaling: str = "none", drop_zeros: bool = True) -> tuple[Array, Array]:
    """Return the data X (n, d) and the labels in {-1, +1}: y (n,), or Y (n, K) for a multi-label data set.

    Source: section 7.2, Table 1.  As in the paper, d = 10 for "breast_cancer" counts the sample id, the first column.

    Parameters
    ----------
    name : str
        One of `names`, of any kind.
    scaling : {"none", "standardize", "min-max"}
        "standardize" gives columns with mean 0 and variance 1, "min-max" columns in [-1, 1].
    drop_zeros : bool
        Whether all-zero rows and columns are dropped, as in the paper: a1a then has 113 columns, w1a is 2270 x 290.

    Raises
    ------
    ParameterError
        If the name or the scaling is unknown.
    DataError
        If the file is missing or has another sha256; the message names the paths searched and how to get the file.
    """
    record = describe(name)
    one_of(scaling, "scaling", SCALINGS)
    X, labels = parse_file(record, read_packed(record))
    if drop_zeros:
        rows = X.any(axis=1)
        X, labels = X[np.ix_(rows, X.any(axis=0))], labels[rows]
    return np.ascontiguousarray(SCALINGS[scaling](X)), np.where(labels == record.positive, 1.0, -1.0)


def label_names(name: str) -> tuple[str, ...]:
    """Return the label names of a multi-label data set.

    Parameters
    ----------
    name : str
        One of ``names("multi-label")``.

    Raises
    ------
    ParameterError, DataError
        As for `load`.
    """
    one_of(name, "name", names("multi-label"))
    return read_label_names(read_packed(SETS[name]))
