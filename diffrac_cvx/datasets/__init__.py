"""Data sets: simulated data with planted clusters, real data with two classes or many labels, and user tables."""

from diffrac_cvx.datasets.groups import column_groups
from diffrac_cvx.datasets.planted import Planted, make_planted
from diffrac_cvx.datasets.real import SCALINGS, SETS, DataSet, fetch, load, names
from diffrac_cvx.datasets.tables import Table, read_table

__all__ = [
    "SCALINGS", "SETS", "DataSet", "Planted", "Table", "column_groups", "fetch", "load",
    "make_planted", "names", "read_table",
]  # fmt: skip
