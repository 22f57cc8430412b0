"""Few known labels: the relaxation's classifier compared with supervised and semi-supervised methods on real tables."""

from experiments.few_labels.cells import SETTINGS, cells_of, measure
from experiments.few_labels.findings import findings
from experiments.few_labels.plot import draw
from experiments.harness.command import Experiment

EXPERIMENT = Experiment("few_labels", cells_of, measure, draw, findings, SETTINGS)
