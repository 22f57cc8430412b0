"""Choosing lam, ridge and nu without labels: on labelled sets, against fixed weights and other methods.

Run ``make choice``; ``GRID=smoke`` for a small one.  The held-out sets are read from packages that pip and apt-get
download into build/packages.
"""

from experiments.choice.cells import SETTINGS, cells_of, measure
from experiments.choice.claims import claims
from experiments.choice.plot import draw
from experiments.harness.command import Experiment, run

EXPERIMENT = Experiment("choice", cells_of, measure, draw, claims, SETTINGS)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
