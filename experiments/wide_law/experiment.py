"""Recovery of two clusters from a few informative columns of a wide table, compared with the law."""

from experiments.harness.command import Experiment
from experiments.wide_law.cells import SETTINGS, cells_of, measure
from experiments.wide_law.findings import findings
from experiments.wide_law.plot import draw

EXPERIMENT = Experiment("wide_law", cells_of, measure, draw, findings, SETTINGS)
