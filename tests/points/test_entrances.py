"""All functions and methods that take a table read it alike: no two disagree about what a table is."""

import datetime
import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from entrances import D, N, X, entrances

import diffrac_cvx as dc

pyarrow = pytest.importorskip("pyarrow")
FRAME = pd.DataFrame(X, columns=["one", "two", "three"])
IN_MEMORY_ONLY = {  # these refuse a sparse matrix and say what to pass
    "alternating_optimization", "certify_y", "compare", "constrained_alpha", "correlation", "gaussian_mixture",
    "kmeans_standardized", "kmeans_whitened", "lifted", "multiclass", "penalized_nu", "refine", "squared_correlation",
    "v_space", "v_space_normalized",
}  # fmt: skip


class OtherFrame:
    """A data frame of another library, such as polars: columns of its own types, and a conversion to an array."""

    def __init__(self, X):
        self.X, self.shape, self.columns = np.asarray(X), np.shape(X), list("abc")[: np.shape(X)[1]]

    def __len__(self):
        return len(self.X)

    def __getitem__(self, column):
        raise KeyError(column)

    def __array__(self, dtype=None, copy=None):
        return self.X.astype(dtype or self.X.dtype)


def with_entry(value, dtype=object):
    changed = X.astype(dtype)
    changed[2, 1] = value
    return changed


def saved(table, folder):
    np.save(folder / "X.npy", table)
    return np.load(folder / "X.npy", mmap_mode="r")


def dask_frame():
    return pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=2)


TAKEN = {
    "a table of Arrow": lambda _: pyarrow.Table.from_pandas(FRAME),
    "a data frame of Arrow's numbers": lambda _: FRAME.astype("double[pyarrow]"),
    "nullable numbers": lambda _: FRAME.astype("Float64"),
    "a frame of another library": lambda _: OtherFrame(X),
    "numbers that are objects": lambda _: X.astype(object),
    "an array with a mask of nothing": lambda _: np.ma.asarray(X),
    "a memory map": lambda folder: saved(X, folder),
    "a sparse matrix": lambda _: scipy.sparse.csr_array(X),
}
REFUSED = {  # and words of the message
    "None": (lambda _: None, "X is None"),
    "text": (lambda _: "table.csv", "X has entries of type <U9"),
    "a number": (lambda _: 1.0, r"X has shape \(\)|scalar array"),
    "a mapping": (lambda _: {"one": [1.0, 2.0]}, "'dict'"),
    "a generator": (lambda _: (row for row in X), "'generator'"),
    "masked": (lambda _: np.ma.masked_greater(X, 3.0), "X is a masked array"),
    "masked rows": (lambda _: list(np.ma.masked_greater(X, 3.0)), "X is a masked array"),
    "missing nullable numbers": (lambda _: FRAME.astype("Int64").mask(FRAME > 3.0), "X is nan at row 0, column 0|NaN"),
    "nulls of Arrow": (lambda _: pyarrow.table({name: [1.0, None] * 6 for name in FRAME}), "X is nan at row 1|NaN"),
    "missing objects": (lambda _: with_entry(None), "X is nan at row 2, column 1|NaN"),
    "a frame of dask": (lambda _: dask_frame(), r"X\.compute\(\)"),
    "numbers as text": (lambda _: X.astype(str), "X has entries of type <U32"),
    "numbers as text objects": (lambda _: FRAME.astype(str), "X is the text '9.0' at row 0, column 0"),
    "one number as text": (lambda _: with_entry("1"), "X is the text '1' at row 2, column 1"),
    "one entry of bytes": (lambda _: with_entry(b"1"), "X is the text b'1' at row 2, column 1"),
    "text in a frame of another library": (lambda _: OtherFrame(X.astype(str)), "X has entries of type <U32"),
    "a map of text": (lambda folder: saved(X.astype(str), folder), "X has entries of type <U32"),
    "an entry of another type": (lambda _: with_entry({}), "'dict'"),
    "dates": (lambda _: np.full((N, D), np.datetime64("2017-01-01")), "X has entries of type datetime64"),
    "dates that are objects": (lambda _: with_entry(datetime.date(2017, 1, 1)), r"'datetime\.date'"),
    "complex": (lambda _: X * 1j, "X has entries of type complex128"),
    "a complex sparse matrix": (lambda _: scipy.sparse.csr_array(X * 1j), r"type complex128|toarray"),
    "records": (lambda _: np.zeros(N, dtype=[("one", float), ("two", float)]), "X has entries of type"),
    "rows of unequal lengths": (lambda _: [[1.0, 2.0], [3.0]], "X is not an array"),
    "an enormous integer": (lambda _: [[10**400, 1], [2, 3]], "X is not an array of real numbers"),
    "NaN": (lambda _: with_entry(np.nan, float), "X is nan|NaN"),
    "a map with NaN": (lambda folder: saved(with_entry(np.nan, float), folder), "X is nan|NaN"),
    "sparse with NaN": (lambda _: scipy.sparse.csr_array(with_entry(np.nan, float)), "nan|NaN|infinite|toarray"),
    "one dimension": (lambda _: X[:, 0], "(X has shape|Expected 2D)"),
    "a map of one dimension": (lambda folder: saved(X[:, 0], folder), "X has shape"),
    "three dimensions": (lambda _: X[None], "(X has shape|dim 3)"),
    "no rows": (lambda _: X[:0], r"\(0, 3\)"),
    "no columns": (lambda _: X[:, :0], r"\(12, 0\)"),
}  # fmt: skip


@cache
def every():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return entrances()


def said(function, table):
    """Return the message with which a function refuses a table, None if it takes it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(table)
        except dc.DataError as error:
            return str(error)
    return None


def test_every_entrance_is_among_those_tested():
    found = set(every())
    assert {"low_rank", "check_certificate", "structure_test", "penalized_nu", "nu_path", "compare"} <= found
    assert {"DiffracClustering.fit", "DiffracClustering.predict", "MultiLabelDiffrac.score"} <= found
    assert found >= IN_MEMORY_ONLY


@pytest.mark.parametrize("make", TAKEN.values(), ids=TAKEN)
def test_a_table_is_taken_by_all(make, tmp_path):
    refusing = {name: message for name, one in every().items() if (message := said(one, make(tmp_path))) is not None}
    expected = IN_MEMORY_ONLY if hasattr(make(tmp_path), "toarray") else set()
    assert set(refusing) == expected
    assert all("X.toarray()" in message for message in refusing.values())


@pytest.mark.parametrize(("make", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_table_of_numbers_is_refused_by_all(make, words, tmp_path):
    for name, one in every().items():
        message = said(one, make(tmp_path))
        assert message is not None, name
        assert re.search(words, message), (name, message)
