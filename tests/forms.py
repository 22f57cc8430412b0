"""One table in every form in which users hold theirs; the fixture `form` of conftest.py gives each in turn."""

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse


def as_map(X, folder):
    """A map of a file, which a process may write to."""
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r+")


def read_only(X):
    """A copy that cannot be written to."""
    X = X.copy()
    X.setflags(write=False)
    return X


class OnlySlices:
    """A table that lies elsewhere, such as one of h5py or zarr, and counts the rows of each slice that is read."""

    def __init__(self, X, chunks=None):
        self.X, self.shape, self.dtype, self.chunks, self.slices = X, X.shape, X.dtype, chunks, []

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        self.slices.append(rows.stop - rows.start)
        return self.X[rows]


def as_dask(X, _):
    """A dask array, in chunks of some rows and columns."""
    dask_array = pytest.importorskip("dask.array")
    return dask_array.from_array(X, chunks=(max(len(X) // 3, 1), 2))


IN_MEMORY = {  # whole numbers up to 127 are the same numbers in each
    "array": lambda X: X,
    "double precision, big-endian": lambda X: X.astype(">f8"),
    "single precision": lambda X: X.astype(np.float32),
    "half precision": lambda X: X.astype(np.float16),
    "int": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "object": lambda X: X.astype(object),
    "Fortran order": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "read-only": read_only,
    "data frame": lambda X: pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])]),
    "data frame of Int64": lambda X: pd.DataFrame(X, index=np.arange(len(X))[::-1]).astype("Int64"),
    "list": lambda X: X.tolist(),
    "tuples": lambda X: tuple(map(tuple, X)),
    "matrix": np.asmatrix,
    "subclass": np.ma.asarray,
    "only slices": OnlySlices,
}
BY_PARTS = {
    "csr": lambda X, _: scipy.sparse.csr_array(X),
    "csc": lambda X, _: scipy.sparse.csc_matrix(X),
    "coo": lambda X, _: scipy.sparse.coo_array(X),
}
LEFT_TO_SLOW_TESTS = {"csr", "coo", "dask array"}  # beside "csc", where a test takes all forms
OUT_OF_CORE = {"memory map": as_map, "dask array": as_dask}
FORMS = {name: lambda X, _, make=make: make(X) for name, make in IN_MEMORY.items()} | OUT_OF_CORE | BY_PARTS


class Form(NamedTuple):
    """A form of tables, by its name; called with an array it gives that in this form."""

    name: str
    folder: Path

    def __call__(self, X):
        return FORMS[self.name](X, self.folder)


def each_form(*names):
    """Run a test with some of the forms."""
    return pytest.mark.parametrize("form", names, indirect=True)


def quick_or_slow(axes, cases, quick):
    """Run a test with some cases, of which all but a few are left to the slow tests."""
    marks = {True: (), False: pytest.mark.slow}
    chosen = [pytest.param(*case, marks=marks[case in quick]) for case in cases]
    return pytest.mark.parametrize(axes, chosen, indirect=["form"] if "form" in axes else [])


def npz(**arrays):
    """Arrays in an archive, pickled where they hold objects."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def parquet(**columns):
    """A table of columns."""
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()
