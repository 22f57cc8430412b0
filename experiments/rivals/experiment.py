"""Noiseless phase diagram: the relaxation beside other methods, those of 2020 to 2022 included."""

from experiments.harness.command import Experiment
from experiments.rivals.cells import SETTINGS, cells_of, measure
from experiments.rivals.claims import claims
from experiments.rivals.plot import draw

EXPERIMENT = Experiment("rivals", cells_of, measure, draw, claims, SETTINGS)
