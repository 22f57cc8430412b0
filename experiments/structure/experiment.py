"""Structure test: its verdicts on tables with and without groups, compared with other tests."""

from experiments.harness.command import Experiment
from experiments.structure.cells import SETTINGS, cells_of, measure
from experiments.structure.findings import findings
from experiments.structure.plot import draw

EXPERIMENT = Experiment("structure", cells_of, measure, draw, findings, SETTINGS)
