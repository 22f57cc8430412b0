"""Feature groups: recovery of planted groups compared with the l1 penalty and with wrong groups."""

from experiments.groups.cells import SETTINGS, cells_of, measure
from experiments.groups.findings import findings
from experiments.groups.plot import draw
from experiments.harness.command import Experiment

EXPERIMENT = Experiment("groups", cells_of, measure, draw, findings, SETTINGS)
