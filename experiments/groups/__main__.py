"""Groups of columns: are the planted ones found, beside the l1 penalty, and which weights keep the direction.

Run ``make groups``; ``GRID=smoke`` for a small one.
"""

from experiments.groups.cells import SETTINGS, cells_of, measure
from experiments.groups.claims import claims
from experiments.groups.plot import draw
from experiments.harness.command import Experiment, run

EXPERIMENT = Experiment("groups", cells_of, measure, draw, claims, SETTINGS)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
