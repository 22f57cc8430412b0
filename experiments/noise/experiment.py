"""Label noise: error, certified gap of the labels and spectrum of Y as the clusters spread."""

from experiments.harness.command import Experiment
from experiments.noise.cells import SETTINGS, cells_of, measure
from experiments.noise.claims import claims
from experiments.noise.plot import draw

EXPERIMENT = Experiment("noise", cells_of, measure, draw, claims, SETTINGS)
