"""Building blocks of an experiment: cells, rows, figure, findings, and the command that runs them."""

from experiments.harness.command import Experiment, Outcome, run
from experiments.harness.findings import Finding, Rule, Verdict
from experiments.harness.style import PAGE, STYLE, save, with_band
from experiments.harness.sweep import Cell, Row, cross
from experiments.harness.tables import read_table

__all__ = [
    "PAGE", "STYLE", "Cell", "Experiment", "Finding", "Outcome", "Row", "Rule", "Verdict", "cross",
    "read_table", "run", "save", "with_band",
]  # fmt: skip
