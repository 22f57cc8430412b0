"""Figure 4: clustering error of k-means, alternating optimisation and the relaxation as noise dimensions are added."""

from experiments.harness.command import Experiment
from experiments.robustness.cells import SETTINGS, cells_of, measure
from experiments.robustness.findings import findings
from experiments.robustness.plot import draw

EXPERIMENT = Experiment("robustness", cells_of, measure, draw, findings, SETTINGS)
