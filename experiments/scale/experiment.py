"""Tables larger than memory: a file of many rows, a sparse table of many columns, a table on a cluster's workers.

The full grid writes a file of 4 GB in build, and deletes it.
"""

from experiments.harness.command import Experiment
from experiments.scale.cells import SETTINGS, cells_of, measure
from experiments.scale.claims import check_sizes, claims
from experiments.scale.plot import draw

EXPERIMENT = Experiment("scale", cells_of, measure, draw, claims, SETTINGS, seconds=1500.0, check=check_sizes)
