"""Certified optimal labels by branch and bound compared with other exact methods, and the relaxation assessed by them.

It fails if two exact methods, or a bound and the objective of any labels, contradict each other.
"""

from experiments.harness.command import Experiment
from experiments.optimal.cells import SETTINGS, cells_of, measure
from experiments.optimal.findings import check_bounds, findings
from experiments.optimal.plot import draw

EXPERIMENT = Experiment("optimal", cells_of, measure, draw, findings, SETTINGS, check=check_bounds)
