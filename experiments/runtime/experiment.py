"""Figure 3: the time to a proved relative gap as n and d grow, and each method by its own rule.

Times depend on the machine, their ratios much less.
"""

from experiments.harness.command import Experiment
from experiments.runtime.cells import SECONDS, SETTINGS, cells_of, measure
from experiments.runtime.claims import claims
from experiments.runtime.methods import MEMORY
from experiments.runtime.plot import draw

EXPERIMENT = Experiment("runtime", cells_of, measure, draw, claims, SETTINGS, SECONDS, MEMORY)
