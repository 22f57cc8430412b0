"""Instances of (15) that each solver solves to certified gaps of 1e-4 and 1e-8, and correctness of its status.

It fails if a status is incorrect or two bounds of one instance contradict each other.
"""

from experiments.convergence.cells import SETTINGS, cells_of, complete, measure
from experiments.convergence.claims import check_statuses, claims
from experiments.convergence.plot import draw
from experiments.harness.command import Experiment

EXPERIMENT = Experiment(
    "convergence", cells_of, measure, draw, claims, SETTINGS, seconds=240.0, complete=complete, check=check_statuses
)
