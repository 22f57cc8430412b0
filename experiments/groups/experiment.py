"""Groups of columns: are the planted ones found, beside the l1 penalty, and which weights keep the direction."""

from experiments.groups.cells import SETTINGS, cells_of, measure
from experiments.groups.claims import claims
from experiments.groups.plot import draw
from experiments.harness.command import Experiment

EXPERIMENT = Experiment("groups", cells_of, measure, draw, claims, SETTINGS)
