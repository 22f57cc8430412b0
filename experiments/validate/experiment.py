"""Compare the fast solvers with the SDP oracles over a designed battery; exit 1 and save a reproducer on conflict."""

from experiments.harness.command import Experiment
from experiments.validate.cells import cells_of, measure
from experiments.validate.check import check_brackets
from experiments.validate.claims import claims
from experiments.validate.plot import draw

EXPERIMENT = Experiment("validation", cells_of, measure, draw, claims, check=check_brackets)
