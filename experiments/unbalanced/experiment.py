"""Figure 2: unbalanced clusters, the constrained and the penalised relaxation."""

from experiments.harness.command import Experiment
from experiments.unbalanced.cells import SETTINGS, cells_of, measure
from experiments.unbalanced.findings import findings
from experiments.unbalanced.plot import draw

EXPERIMENT = Experiment("unbalanced", cells_of, measure, draw, findings, SETTINGS)
