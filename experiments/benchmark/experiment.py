"""Time to a certified gap for each method: planted, real and dense instances, each solve in its own process.

One solve runs at a time, as concurrent solves share caches and memory, which distorts their times.  Times depend on
the machine, their ratios much less.
"""

from experiments.benchmark.cells import SECONDS, SETTINGS, cells_of, confirm, measure
from experiments.benchmark.findings import check_brackets, findings
from experiments.harness.command import Experiment

EXPERIMENT = Experiment(
    "benchmark", cells_of, measure, None, findings, SETTINGS, SECONDS, complete=confirm, check=check_brackets
)
