"""When a few columns that carry two groups survive in a table of many, against the law that says so.

Run ``make wide-law``; ``GRID=smoke`` for a small one.
"""

from experiments.harness.command import Experiment, run
from experiments.wide_law.cells import SETTINGS, cells_of, measure
from experiments.wide_law.claims import claims
from experiments.wide_law.plot import draw

EXPERIMENT = Experiment("wide_law", cells_of, measure, draw, claims, SETTINGS)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
