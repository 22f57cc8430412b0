"""Noiseless phase diagram: the relaxation beside other methods, those of 2020 to 2022 included.

Run ``make rivals``; ``GRID=smoke`` for a small one.
"""

from experiments.harness.command import Experiment, run
from experiments.rivals.cells import SETTINGS, cells_of, measure
from experiments.rivals.claims import claims
from experiments.rivals.plot import draw

EXPERIMENT = Experiment("rivals", cells_of, measure, draw, claims, SETTINGS)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
