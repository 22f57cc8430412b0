"""Figure 1: phase transitions of the rank and of the clustering error; a sample of the cells also by CVXPY.

``--solver reference`` (``make phase-transition SOLVER=reference``) solves all cells with CVXPY.
"""

from dataclasses import replace

from experiments.harness.command import Experiment, Oracle
from experiments.phase_transition.agreement import check_agreement, compare_with_oracle
from experiments.phase_transition.cells import SETTINGS, cells_of, measure_fast, measure_reference, sample_of
from experiments.phase_transition.findings import findings
from experiments.phase_transition.plot import draw


def by_solver(solver: str) -> Experiment:
    """Return the experiment by the fast solver with its oracle, or by CVXPY only."""
    if solver == "fast":
        return EXPERIMENT
    return replace(EXPERIMENT, name="phase_transition_reference", measure=measure_reference, oracle=None, check=None)


EXPERIMENT = Experiment(
    "phase_transition",
    cells_of,
    measure_fast,
    draw,
    findings,
    SETTINGS,
    oracle=Oracle(sample_of, measure_reference, compare_with_oracle),
    check=check_agreement,
    options={"solver": {"choices": ("fast", "reference"), "default": "fast"}},
    variant=by_solver,
)
