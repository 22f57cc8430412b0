"""Noiseless phase diagram: the relaxation compared with other methods, including those of 2020 to 2022."""

from experiments.harness.command import Experiment
from experiments.rivals.cells import SETTINGS, cells_of, measure
from experiments.rivals.findings import findings
from experiments.rivals.plot import draw

EXPERIMENT = Experiment("rivals", cells_of, measure, draw, findings, SETTINGS)
