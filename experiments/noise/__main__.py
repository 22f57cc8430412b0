"""Noise on the labels: error, proved gap of the labels and spectrum of Y as the clusters spread.

Run ``make noise``; ``GRID=smoke`` for a small one.
"""

from experiments.harness.command import Experiment, run
from experiments.noise.cells import SETTINGS, cells_of, measure
from experiments.noise.claims import claims
from experiments.noise.plot import draw

EXPERIMENT = Experiment("noise", cells_of, measure, draw, claims, SETTINGS)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
