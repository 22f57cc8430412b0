"""Figure 1: phase transitions of the rank and of the clustering error; a sample of the cells also by CVXPY."""

from experiments.harness.command import Experiment, Oracle
from experiments.phase_transition.agreement import check_agreement, compare_with_oracle
from experiments.phase_transition.cells import SETTINGS, cells_of, measure_fast, measure_reference, sample_of
from experiments.phase_transition.findings import findings
from experiments.phase_transition.plot import draw

EXPERIMENT = Experiment(
    "phase_transition",
    cells_of,
    measure_fast,
    draw,
    findings,
    SETTINGS,
    oracle=Oracle(sample_of, measure_reference, compare_with_oracle),
    check=check_agreement,
)
