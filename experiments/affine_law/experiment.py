"""Where one solution is left without a penalty, against d + d(d-1)/4, for several laws of the noise."""

from experiments.affine_law.cells import SETTINGS, cells_of, measure
from experiments.affine_law.claims import claims
from experiments.affine_law.plot import draw
from experiments.harness.command import Experiment

EXPERIMENT = Experiment("affine_law", cells_of, measure, draw, claims, SETTINGS)
