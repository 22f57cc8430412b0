"""Figure 3: time and clustering error as n and d grow, and the time to an equal proved gap.

Run ``make runtime``; ``GRID=smoke`` for a small one.  Times depend on the machine, their ratios much less.
"""

from experiments.harness.command import Experiment, run
from experiments.runtime.cells import MEMORY, SECONDS, SETTINGS, cells_of, measure
from experiments.runtime.claims import claims
from experiments.runtime.plot import draw

EXPERIMENT = Experiment("runtime", cells_of, measure, draw, claims, SETTINGS, SECONDS, MEMORY)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
