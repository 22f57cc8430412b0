"""Figures 5 and 6: many labels at once, on Corel5k instead of COCO, and on three other sets."""

from experiments.harness.command import Experiment
from experiments.multi_label.cells import SETTINGS, cells_of, measure
from experiments.multi_label.findings import findings
from experiments.multi_label.plot import draw

EXPERIMENT = Experiment("multi_label", cells_of, measure, draw, findings, SETTINGS)
