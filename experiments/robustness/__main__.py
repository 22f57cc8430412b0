"""Figure 4: clustering error of k-means, alternating optimisation and the relaxation as noise dimensions are added.

Run ``make robustness``; ``GRID=smoke`` for a small one.
"""

from experiments.harness.command import Experiment, run
from experiments.robustness.cells import SETTINGS, cells_of, measure
from experiments.robustness.claims import claims
from experiments.robustness.plot import draw

EXPERIMENT = Experiment("robustness", cells_of, measure, draw, claims, SETTINGS)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
