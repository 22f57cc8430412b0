"""Number of points for a unique solution without a penalty, compared with d + d(d-1)/4, for several noise laws."""

from experiments.affine_law.cells import SETTINGS, cells_of, measure
from experiments.affine_law.claims import claims
from experiments.affine_law.plot import draw
from experiments.harness.command import Experiment

EXPERIMENT = Experiment("affine_law", cells_of, measure, draw, claims, SETTINGS)
