"""Labels proved optimal by branch and bound, beside other exact methods, and the relaxation judged by them.

It fails where two exact methods, or a bound and the cost of any labels, contradict each other.
"""

from experiments.harness.command import Experiment
from experiments.optimal.cells import SETTINGS, cells_of, measure
from experiments.optimal.claims import check_bounds, claims
from experiments.optimal.plot import draw

EXPERIMENT = Experiment("optimal", cells_of, measure, draw, claims, SETTINGS, check=check_bounds)
