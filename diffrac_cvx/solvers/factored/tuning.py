"""Tuning parameters of the low-rank solver; the certified bounds are valid for any values."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WorkingSetSettings:
    """Growing working set of features."""

    min_features: int = 200  # coordinates below which the problem on all of them takes as long
    max_free: int = 8  # coordinates without an l1 weight, each of which is in every working set
    max_entries: float = 1e8  # of the data
    fitting_steps: int = 30  # steps to fit the multiplier of feature groups
    max_group_fraction: float = 0.5  # of all coordinates, in selected feature groups, above which V is one block
    initial_size: int = 40  # features of the first working set
    min_new: int = 20  # features added at once: the larger of this number and new_fraction of the working set
    new_fraction: float = 0.5
    spare_rank: int = 8  # extra columns of U, so that the rank can grow
    column_rtol: float = 1e-5  # squared norm of a column of U, relative to the largest, below which growth drops it
    inactive_rtol: float = 1e-7  # diagonal entry of V, relative to the largest, below which a feature is dropped
    warm_start_rtol: float = 1e-4  # the same in a warm start
    random_entry_scale: float = 3e-3  # size of new entries of U relative to the others: random ones,
    direction_scale: float = 0.02  # and those along violated directions
    first_steps: int = 40  # before the first certificate; afterwards, half as many as done so far
    max_steps: int = 800  # per round
    first_gap: float = 0.03  # gap to which the problem on the first features is solved
    target: float = 0.8  # gap of the working-set problem, relative to the gap to be certified next
    attempted_fraction: float = 0.99  # of that gap, in a certificate attempt
    first_target: float = 0.3  # relative gap to be certified first
    gap_reduction: float = 3.0  # factor of the next, smaller gap after a success
    max_attempted_fraction: float = 0.6  # of the certified gap, above which a gap is not attempted
    violation_ratio: float = 1.001  # gain of a feature over its penalty from which it would enter alone
    min_fraction: float = (
        1e-3  # gap of the working-set problem, relative to that to be certified, at which the solver gives up
    )
    rough_points: int = 4  # maximum number of certified points of the problem without an l1 penalty
    rough_gap: float = 0.1  # relative gap of that problem


WORKING_SET = WorkingSetSettings()
