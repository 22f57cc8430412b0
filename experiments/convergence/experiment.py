"""Which instances each solver of (15) solves to proved gaps of 1e-4 and 1e-8, and whether its status says so.

It fails where a status is not true or two brackets of one instance do not meet.
"""

from experiments.convergence.cells import SETTINGS, cells_of, complete, measure
from experiments.convergence.claims import check_statuses, claims
from experiments.convergence.plot import draw
from experiments.harness.command import Experiment

EXPERIMENT = Experiment(
    "convergence", cells_of, measure, draw, claims, SETTINGS, seconds=240.0, complete=complete, check=check_statuses
)
