"""Figure 3: time to a certified relative gap as n and d grow, and each method with its own stopping rule.

Times depend on the machine, their ratios much less.
"""

from experiments.harness.command import Experiment
from experiments.runtime.cells import SECONDS, SETTINGS, cells_of, measure
from experiments.runtime.findings import findings
from experiments.runtime.methods import MEMORY
from experiments.runtime.plot import draw

EXPERIMENT = Experiment("runtime", cells_of, measure, draw, findings, SETTINGS, SECONDS, MEMORY)
