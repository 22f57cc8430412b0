"""How long each method takes to a proved gap: planted, real and dense instances, each solve in its own process.

One solve at a time, since solves that run side by side share caches and memory and disturb each other's times.  Times
depend on the machine, their ratios much less.
"""

from experiments.benchmark.cells import SECONDS, SETTINGS, cells_of, confirm, measure
from experiments.benchmark.check import check_brackets
from experiments.benchmark.claims import claims
from experiments.benchmark.plot import draw
from experiments.harness.command import Experiment

EXPERIMENT = Experiment(
    "benchmark", cells_of, measure, draw, claims, SETTINGS, SECONDS, complete=confirm, check=check_brackets
)
