"""What an experiment is made of: cells, rows, a figure, claims, and the command that goes through them."""

from experiments.harness.claims import Claim
from experiments.harness.command import Experiment, Oracle, Verdict, run
from experiments.harness.style import ACCENT, GREEN, GREY, PAGE, SECOND, STYLE, label_lines, save, with_band
from experiments.harness.sweep import Cell, Row
from experiments.harness.tables import read_table

__all__ = [
    "ACCENT",
    "GREEN",
    "GREY",
    "PAGE",
    "SECOND",
    "STYLE",
    "Cell",
    "Claim",
    "Experiment",
    "Oracle",
    "Row",
    "Verdict",
    "label_lines",
    "read_table",
    "run",
    "save",
    "with_band",
]
