"""When a few columns that carry two groups survive in a table of many, against the law that says so."""

from experiments.harness.command import Experiment
from experiments.wide_law.cells import SETTINGS, cells_of, measure
from experiments.wide_law.claims import claims
from experiments.wide_law.plot import draw

EXPERIMENT = Experiment("wide_law", cells_of, measure, draw, claims, SETTINGS)
