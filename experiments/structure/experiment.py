"""Structure test: p-values of `structure_test` without groups, and its power compared with other tests."""

from experiments.harness.command import Experiment
from experiments.structure.cells import SETTINGS, cells_of, measure
from experiments.structure.claims import claims
from experiments.structure.plot import draw

EXPERIMENT = Experiment("structure", cells_of, measure, draw, claims, SETTINGS)
