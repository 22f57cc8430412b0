"""The paper's propositions, lemmas and conjectures as experiments.

Run ``make theory``; ``GRID=smoke`` for a small one.
"""

from experiments.harness.command import Experiment, run
from experiments.theory.cells import cells_of, measure
from experiments.theory.claims import claims
from experiments.theory.plot import draw

EXPERIMENT = Experiment("theory", cells_of, measure, draw, claims)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
