"""Tuning parameters of the low-rank solver; the certified bounds are valid for any values."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BlockSettings:
    """Block decomposition, from a diagonal V."""

    first_steps: int = 20  # before the first screening if it is cheap: most features may be in one component
    steps: int = 60  # L-BFGS steps per round
    max_free: int = 8  # coordinates without an l1 weight, each of which is in every block
    min_penalized: int = 4  # below, one block is as fast
    cheap_size: int = 240  # coordinates up to which screening all pairs costs no more than the steps between screenings
    slow_size: int = 500  # coordinates from which screening all pairs may take seconds
    max_near_pairs: int = 20  # pairs per coordinate stored to be checked again
    stall_rounds_to_end: int = 8  # without a smaller gap before switching to one block, if the problem is not too large
    max_one_block: int = 1000  # coordinates
    screening_gap: float = 0.02  # gap of the block diagonal problem below which pairs are screened
    quick_size: int = 64  # coordinates of the largest block up to which the gap is checked between the steps
    merge_factor: float = 1.5  # |G_jk| / (c_j c_k) from which a pair is expected to be merged
    min_merged_weight: float = (
        0.01  # smallest weight of a single coordinate when blocks are merged, relative to the largest
    )
    free_factor_scale: float = 0.1  # initial size of V on the unpenalised coordinates, relative to the others
    min_warm_weight: float = (
        0.2  # the same in a warm start: 1e-3 took twice as many steps to grow, and more than a cold start
    )


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
    gap_reduction: float = 10.0  # factor of the next, smaller gap after a success
    gap_backoff: float = 3.0  # factor of the next, larger gap after more violations than features can be added
    max_attempted_fraction: float = 0.6  # of the certified gap, above which a gap is not attempted
    violation_ratio: float = 1.001  # gain of a feature over its penalty from which it would enter alone
    min_fraction: float = (
        1e-3  # gap of the working-set problem, relative to that to be certified, at which the solver gives up
    )
    rough_points: int = 4  # maximum number of certified points of the problem without an l1 penalty
    rough_gap: float = 0.1  # relative gap of that problem


COMPONENTS, WORKING_SET = BlockSettings(), WorkingSetSettings()
