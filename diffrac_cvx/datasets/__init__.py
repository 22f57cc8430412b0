"""Data: made, with a planted clustering, and real, with two classes."""

from diffrac_cvx.datasets.planted import Planted, make_planted
from diffrac_cvx.datasets.real import DataSet, describe, load, names

__all__ = ["DataSet", "Planted", "describe", "load", "make_planted", "names"]
