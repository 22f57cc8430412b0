"""Figure 1 with all cells solved by CVXPY: ``make phase-transition SOLVER=reference``."""

from dataclasses import replace

from experiments.phase_transition import experiment
from experiments.phase_transition.cells import measure_reference

EXPERIMENT = replace(
    experiment.EXPERIMENT, name="phase_transition_reference", measure=measure_reference, oracle=None, check=None
)
