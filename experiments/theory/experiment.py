"""The paper's propositions, lemmas and conjectures as experiments."""

from experiments.harness.command import Experiment
from experiments.theory.cells import cells_of, measure
from experiments.theory.findings import findings
from experiments.theory.plot import draw

EXPERIMENT = Experiment("theory", cells_of, measure, draw, findings)
