"""Certified bounds of adversarial instances, compared with 60-digit arithmetic.

It fails if a bound is on the wrong side of the exact value.
"""

from experiments.harness.command import Experiment
from experiments.stress.cells import SETTINGS, cells_of, measure
from experiments.stress.claims import check_bounds, claims
from experiments.stress.plot import draw

EXPERIMENT = Experiment("stress", cells_of, measure, draw, claims, SETTINGS, check=check_bounds)
