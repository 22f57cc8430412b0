"""The paper's propositions, lemmas and conjectures as experiments.

Run ``make theory``; ``GRID=smoke`` for a small one.
"""

import sys

from experiments.command import Experiment, run
from experiments.theory_cells import SETTINGS, cells_of, measure
from experiments.theory_claims import claims
from experiments.theory_plot import draw

EXPERIMENT = Experiment("theory", cells_of, measure, draw, claims, SETTINGS)

if __name__ == "__main__":
    sys.exit(run(EXPERIMENT, __doc__))
