"""The numbers that steer the search of the low-rank solver; none of them can make a bracket false."""

from dataclasses import dataclass


@dataclass(frozen=True)
class OneBlockSettings:
    """The augmented Lagrangian, and its steps where V is one block."""

    stiffness: float = 60.0  # times D c_i c_j: too small costs outer rounds, too large makes steps ill conditioned
    max_stiffness: float = 100.0  # the curvature of the rest is about one half, whatever D and c
    max_scale: float = 30.0  # V to what the variances suggest, from which the unknown is scaled,
    max_scale_ratio: float = 3.0  # or of one column to another
    steps_of_a_multiplier: int = 10  # L-BFGS steps before it is updated, long before the minimum is exact
    rounds: int = 2  # of them before the point is certified, and one more for each hundred steps that were done
    steps_without_l1: int = 20  # before the point is certified, or a quarter of those that were done
    stall_rounds_to_grow: int = 8  # certificates without progress before the rank is allowed to grow again
    stall_rounds_to_end: int = 60  # without a narrower bracket before there is no more to be gained in double precision
    steps_to_fit: float = 70.0  # times columns of U to its rows: they take four times as long as fitting a multiplier
    fitting_steps: int = 10  # in which a multiplier is fitted
    shrinkage: float = 1e-2  # of the largest eigenvalue of U'U, added to it in the metric of the steps
    shrinkage_without_l1: float = 1e-1
    shrinkage_of_blocks: float = 0.03  # where V is diagonal at first, and its entries have to come apart
    correlation_threshold: float = (
        3.0  # tr B^2 / tr B from which the metric takes account of B; it is 1 + d/n for noise
    )
    column_rtol: float = 1e-12  # squared norm of a column of U, relative to the largest, below which it is dropped
    pairs: int = 10  # steps that L-BFGS remembers
    backtracks: int = 12  # tries of a step


@dataclass(frozen=True)
class BlockSettings:
    """From a diagonal V to blocks."""

    first_steps: int = 20  # before the pairs are looked at first, where that is cheap: most may be one component
    steps: int = 60  # L-BFGS steps a round
    max_free: int = 8  # coordinates without an l1 weight, each of which is in every block
    min_penalized: int = 4  # below, one block is as quick
    cheap_size: int = 240  # coordinates up to which a look at all pairs costs no more than the steps between two looks
    slow_size: int = 500  # coordinates from which on a look at all pairs may take seconds
    max_near_pairs: int = 20  # pairs a coordinate that are kept to be looked at again
    stall_rounds_to_end: int = 8  # without a smaller gap before the problem is left to one block, if it is not large
    max_one_block: int = 1000  # coordinates
    screening_gap: float = 0.02  # gap of the block diagonal problem below which pairs are looked at
    quick_size: int = 64  # coordinates of the largest block up to which the gap is looked at between the steps
    merge_factor: float = 1.5  # times c_j c_k: pairs so far beyond their box will be joined
    min_merged_weight: float = (
        0.01  # of the largest weight: what a single coordinate gets at least when blocks are joined
    )
    free_factor_scale: float = 0.1  # of the size of V: what the unpenalised coordinates start with
    min_warm_weight: float = (
        0.2  # as small, in a warm start: 1e-3 took twice as many steps to grow, and more than a cold start
    )


@dataclass(frozen=True)
class WorkingSetSettings:
    """From a few features outwards."""

    min_features: int = 200  # coordinates, below which the problem on all of them takes as long
    max_free: int = 8  # coordinates without an l1 weight, each of which is in every core
    max_entries: float = 1e8  # of the data
    fitting_steps: int = 30  # in which the multiplier of groups is fitted
    max_group_fraction: float = 0.5  # of all coordinates, in groups that are not left out, beyond which V is one block
    stall_steps: int = 60  # from a diagonal V without any bound, after which few features are tried in any case
    initial_size: int = 40  # features to start from
    min_new: int = 20  # features that join at once: so many, or this share of those there are
    new_fraction: float = 0.5
    spare_rank: int = 8  # columns of U beyond those that matter, so that it can grow
    column_rtol: float = 1e-5  # squared norm of a column of U, to the largest, below which it goes when features join
    inactive_rtol: float = 1e-7  # of the largest diagonal entry of V, below which a feature leaves
    warm_start_rtol: float = 1e-4  # the same in a warm start
    random_entry_scale: float = 3e-3  # sizes of the new entries of U, to the others: at random,
    direction_scale: float = 0.02  # and along violated directions
    first_steps: int = 40  # before the first certificate, then as many as there were
    max_steps: int = 800  # of a round
    first_gap: float = 0.03  # relative gap to which the problem on the first features is solved
    target: float = 0.8  # of the gap to be proved next, to which it is solved then
    attempted_fraction: float = 0.99  # of that gap, which is tried
    first_target: float = 0.3  # relative gap that is proved first
    gap_reduction: float = 10.0  # by how much a smaller gap is tried where one is proved
    gap_backoff: float = 3.0  # by how much a larger one is tried next where more is missing than can join
    max_attempted_fraction: float = 0.6  # of the gap that is proved, above which a gap is not tried
    violation_ratio: float = 1.001  # what a feature gains over what it costs, from which it would enter alone
    min_fraction: float = (
        1e-3  # of that gap: nothing is violated, and the core is solved so far: no more is to be gained
    )
    rough_points: int = 4  # certified points of the problem without l1 part at most,
    rough_gap: float = 0.1  # and its relative gap


@dataclass(frozen=True)
class SamplingSettings:
    """On samples of many rows."""

    min_rows: int = 40_000  # rows; below, all rows at once are as quick
    min_sample_rows: int = 2000  # rows of the first sample
    rows_per_square: int = 8  # of the first sample, over D^2
    rows_per_square_l1: int = 3  # the same with an l1 part, where many entries of V are 0; more where they are cheap
    cheap_fraction: float = 0.02  # share of the rows that is cheap beside a pass over all of them
    max_fraction: float = 0.5  # of all rows, in a sample
    max_entries: int = 2**25  # of a sample, 256 MB
    max_permuted_rows: int = 10_000_000  # rows up to which samples are taken from one permutation
    growth: float = 2.5  # of the sample
    progress: float = 3.0  # factor by which a pass should shrink the gap; the sample is enlarged where it does not
    first_target: float = 1e-3  # gap on the first sample, whose own error is larger
    surrogate_gap_ratio: float = 0.1  # gap of a surrogate, over that of the last pass
    rounds: int = 12  # of the augmented Lagrangian on one surrogate
    smallest_eigenvalue: float = 0.1  # of the surrogate's A + Diag(c)^2, in units of that of all rows
    new_column_scale: float = 1e-2  # size of columns by which a factor grows, over its own


ONE_BLOCK, COMPONENTS, WORKING_SET, SAMPLES = (
    OneBlockSettings(),
    BlockSettings(),
    WorkingSetSettings(),
    SamplingSettings(),
)
