"""Choosing lam, ridge and nu without labels: on labelled sets, compared with fixed weights and other methods.

The held-out sets are read from packages that pip and apt-get download into build/packages.
"""

from experiments.choice.cells import SETTINGS, cells_of, measure
from experiments.choice.findings import findings
from experiments.choice.plot import draw
from experiments.harness.command import Experiment

EXPERIMENT = Experiment("choice", cells_of, measure, draw, findings, SETTINGS)
