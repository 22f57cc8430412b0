"""Hold the fast solvers to the SDP oracles over a designed battery; exit 1 and save a reproducer where they part.

Run ``make validate``; ``GRID=smoke`` for a small one.
"""

from experiments.harness.command import Experiment, run
from experiments.validate.cells import cells_of, measure
from experiments.validate.check import check_brackets
from experiments.validate.claims import claims
from experiments.validate.plot import draw

EXPERIMENT = Experiment("validation", cells_of, measure, draw, claims, check=check_brackets)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
