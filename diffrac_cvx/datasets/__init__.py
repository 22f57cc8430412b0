"""Data: made, with a planted clustering, and real, with two classes or many labels."""

from diffrac_cvx.datasets.catalogue import DataSet
from diffrac_cvx.datasets.fetching import fetch
from diffrac_cvx.datasets.planted import Planted, make_planted
from diffrac_cvx.datasets.real import describe, label_names, load, names

__all__ = ["DataSet", "Planted", "describe", "fetch", "label_names", "load", "make_planted", "names"]
