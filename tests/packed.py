"""Files as bytes: arrays and tables as they are saved, and heads of files that lie."""

import io

import numpy as np
import pandas as pd


def npy(array):
    """An array in a file, pickled where it holds objects."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npz(**arrays):
    """Arrays in an archive."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def parquet(**columns):
    """A table of columns."""
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()


def forged_npy(shape):
    """The head of an array of a shape, without the array."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()
