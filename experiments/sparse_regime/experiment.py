"""The sparse regime: conjecture n = O(l d), weights that preserve the direction, limit of a vanishing weight."""

from experiments.harness.command import Experiment
from experiments.sparse_regime.cells import SETTINGS, cells_of, measure
from experiments.sparse_regime.findings import findings
from experiments.sparse_regime.plot import draw

EXPERIMENT = Experiment("sparse_regime", cells_of, measure, draw, findings, SETTINGS)
