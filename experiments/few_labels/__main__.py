"""Few labels known: the relaxation's classifier beside supervised and semi-supervised ones, on real tables.

Run ``make few-labels``; ``GRID=smoke`` for a small one.
"""

from experiments.few_labels.cells import SETTINGS, cells_of, measure
from experiments.few_labels.claims import claims
from experiments.few_labels.plot import draw
from experiments.harness.command import Experiment, run

EXPERIMENT = Experiment("few_labels", cells_of, measure, draw, claims, SETTINGS)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
