"""Test for group structure: are the scores of rows that did not choose the direction of the split unimodal?"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.errors import DegenerateDataWarning
from diffrac_cvx.machine.deadlines import EarlyExitError, Timer, is_late, seconds_left, time_limited
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.machine.work import work_done
from diffrac_cvx.points.checks import (
    Array,
    as_data,
    as_generator,
    as_weights,
    in_unit_interval,
    nonnegative,
    positive_int,
    require_flag,
    require_table,
)
from diffrac_cvx.points.constraints import Constraints, chunklets_of
from diffrac_cvx.points.linear_algebra import inverse_or_one, is_above_rounding, mean_of, renormalize_weights
from diffrac_cvx.points.reading import as_stored, table_array, table_rows
from diffrac_cvx.points.table import Table, array_table
from diffrac_cvx.problem.feature_groups import FeatureGroups
from diffrac_cvx.problem.penalty import Penalty, require_penalty, weights_of
from diffrac_cvx.problem.result import Progress, Result
from diffrac_cvx.rounding.directions import LabelRegression, label_candidates
from diffrac_cvx.rounding.many_clusters import cluster_jointly
from diffrac_cvx.solvers import low_rank

SETTINGS = ((1.0, 0.3), (1.0, 0.03), (1.0, 3.0), (0.3, 0.3), (0.1, 0.3))  # nu and ridge of the splits tested
RIDGE_FACTOR = 2 / 3  # of d / n, which multiplies the ridges of tables with many columns
N_FOLDS = 5
N_PARTITIONS, N_PARTITIONS_WIDE, WIDE = 3, 2, 100  # partitions into folds; fewer with more than 100 columns
N_DRAWS, MAX_EXCEEDANCES = 199, 10  # samples from the unimodal density; fewer once ten of them are as multimodal
N_NULL_TABLES = 19  # null tables of each model
MIN_UNITS = 20  # rows, or sets of linked rows, below which the verdict is "not tested"
SIGNIFICANCE_LEVEL = 0.05
CENTRAL = (0.025, 0.975)  # quantiles between which modes are counted
MIN_ROWS, MAX_ROWS, MAX_ENTRIES = 200, 1000, 50_000  # larger tables are sampled by rows
SPLIT_TOL, SPLIT_RTOL, SPLIT_MAX_ITER = 1e-2, 0.1, 120  # tolerances and iteration limit of each split
SPLIT_OPERATIONS = 4e9  # of each split
MAX_UNTIED = 0.9  # of the rows: with fewer distinct values, those of a column are spread
COST_RTOL = 1e-6  # relative tolerance for equal costs

VERDICTS = {
    "separated": "the rows left out of the fit fall into separate groups along the split",
    "continuum": (
        "no gap between groups was found, but the table splits in two better than one Gaussian cloud with the same "
        "correlations: the clusters may be the two ends of a continuum"
    ),
    "none": "no evidence of more than one group",
    "not tested": "not tested, because {reason}",
}


@dataclass(frozen=True)
class StructureTest:
    """Result of `structure_test`.

    Attributes
    ----------
    verdict : {"separated", "continuum", "none", "not tested"}
        Conclusion at the level 0.05, see `structure_test`.
    pvalue : float
        p-value of one mode: the smallest over the splits tested, times their number, and at most 1.
    nu, penalty : float, Penalty
        Weights of the split to which the verdict refers.
    has_given_weights : bool
        Whether these are the weights given.
    gap_column : int or None
        If separated: the column that correlates most with the scores, if its own values reject one mode at the level
        0.05.  The verdict may then be the same for a table with independently permuted columns.
    scores : (m,) array
        Scores of the m rows tested along that split, each by directions fitted without the row.
    bandwidth : float
        Critical bandwidth of the scores: the smallest standard deviation of a Gaussian kernel at which their density
        estimate has one mode between their 2.5 % and 97.5 % quantiles.
    n_points : int
        Number m of rows tested: all of positive weight, or a random sample.
    n_units : int
        Number of sets of linked rows among them, each row without links counted as one.
    seconds : float
        Run time in seconds.
    """

    verdict: str
    pvalue: float
    nu: float
    penalty: Penalty
    has_given_weights: bool
    gap_column: int | None
    scores: Array
    bandwidth: float
    n_points: int
    n_units: int
    seconds: float

    def __str__(self) -> str:
        return self.message()

    def message(self, names: Sequence[str] | None = None) -> str:
        """Return the conclusion as a sentence; without names of the columns, they are counted from 0."""
        few = f"there are fewer than {MIN_UNITS} rows, or sets of linked rows"
        reason = few if self.n_units < MIN_UNITS else "the time limit was reached"
        message = VERDICTS[self.verdict].format(reason=reason) + (
            f" (p = {self.pvalue:.2g})" if self.verdict in ("separated", "none") else ""
        )
        if self.verdict in ("separated", "continuum") and not self.has_given_weights:
            message += (
                f"; this is so for the split in two with nu = {self.nu:g} and ridge = {self.penalty.ridge:g}, "
                "not with the weights given"
            )
        if self.gap_column is not None:
            column = f"column {self.gap_column} (counted from 0)" if names is None else names[self.gap_column]
            message += f"; the values of {column} alone have a gap"
        return f"Structure test: {message}."


@one_thread()
def structure_test(
    X: npt.ArrayLike,
    *,
    nu: float = 1.0,
    penalty: Penalty | None = None,
    n_clusters: int = 2,
    standardize: bool = True,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
    time_limit: float | None = None,
    rng: np.random.Generator | int = 0,
) -> StructureTest:
    r"""Test whether a table has more than one group.

    The direction of a split is fitted to four fifths of the rows, and gives scores to the others, which did not choose
    it; over several partitions each row has the mean of its scores.  If the table is one unimodal cloud, these scores
    have one mode.  The statistic is their critical bandwidth (Silverman, 1981), and its null distribution that of
    samples from the unimodal density nearest to the scores.  Splits with several weights (nu, ridge) are tested, those
    given first, because each finds other groups; the p-value is corrected for their number.  If d is above 3n/2,
    the ridges of the others are multiplied by 2d/(3n), because the eigenvalues of X'X/n increase as d/n.

    The verdict is

    - "separated" if p is at most 0.05: there is a gap between groups;
    - "continuum" if there is no gap, but the split with the given weights, or with a smaller nu, costs less than those
      of 19 tables with independently permuted columns, and of 19 tables rotated at random about their mean, QX with Q
      orthogonal, which keeps X'X;
    - "none" otherwise: there is no evidence of more than one group;
    - "not tested" if there are fewer than 20 rows, or sets of linked rows, or if the time limit is reached, which
      nothing else depends on.

    A gap in a single column is enough, even if no other column depends on it; ``gap_column`` names such a column, and
    then a table with independently permuted columns may be called separated too.  A single group with a hole in its
    middle, such as a ring, counts as separated; so does a fifth of tables of strongly correlated yes-or-no answers, of
    which many rows are all yes or all no.  Groups at less than about 3.5 standard deviations between their centres, or
    with fewer than a fifth of the rows, are rarely separated.

    Source: Silverman (1981), Using kernel density estimates to investigate multimodality; Besag and Clifford (1991) for
    the sequential p-value; Langsrud (2005) for the rotations.

    Parameters
    ----------
    X : (n, d) array, data frame or sparse matrix
        Data.  More than 1000 rows, or 50 000 entries, are sampled, to at least 200 rows.
    nu : float
        Weight of the imbalance, in (0, 1].
    penalty : Penalty, optional
        Penalty, by default a ridge of 0.3, as in `DiffracClustering`; its groups and signs apply to all splits.
    n_clusters : int
        Number of clusters: for K > 2 each of the K - 1 directions that separate them is tested.
    standardize : bool
        Whether the columns are scaled to unit variance first.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0, of any scale.
    constraints : Constraints, optional
        Constraints on the labels.  Linked points, unless their labels are known, are left out together.
    time_limit : float, optional
        Time limit in seconds; if it is too short, the verdict is "not tested".
    rng : int or numpy.random.Generator
        Random number generator, or its seed.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> structure_test(rng.standard_normal((100, 4))).verdict
    'none'
    >>> structure_test(rng.standard_normal((100, 4)) + 6.0 * np.arange(100)[:, None] // 50).verdict
    'separated'
    """
    timer = Timer(None if time_limit is None else nonnegative(time_limit, "time_limit"))
    nu, generator = in_unit_interval(nu, "nu"), as_generator(rng)
    require_flag(standardize, "standardize")
    n_clusters = max(positive_int(n_clusters, "n_clusters"), 2)
    penalty = Penalty(ridge=0.3) if penalty is None else require_penalty(penalty)
    points = sample_points(X, sample_weight, constraints, generator)
    splits = [Split(nu, penalty, n_clusters, standardize)]
    factor = max(1.0, RIDGE_FACTOR * points.shape[1] / len(points))
    for other, ridge in [(other, factor * ridge) for other, ridge in SETTINGS]:
        is_given = n_clusters == 2 and other == nu and np.all(penalty.ridge == ridge) and not np.any(penalty.c)
        splits += [] if is_given else [Split(other, penalty.with_weights(0.0, ridge), 2, standardize)]
    n_units = int(units_of(points).max()) + 1
    n_tests, p, verdict = len(splits) + n_clusters - 2, 1.0, "none" if n_units >= MIN_UNITS else "not tested"
    chosen, scores, bandwidth = splits[0], np.zeros(len(points)), 0.0
    gap_column: int | None = None
    try:
        with time_limited(timer.deadline):
            # 1. The first split with a gap between groups decides.
            untied = spread_ties(points.array(), generator)
            for split in splits if verdict == "none" else ():
                for column in held_out_scores(split, points, untied, generator).T:
                    width = critical_bandwidth(column, points.weights)
                    corrected = n_tests * pvalue_of_one_mode(column, width, points.weights, generator)
                    if corrected < p or not scores.any():
                        p, chosen, scores, bandwidth = min(p, corrected), split, column, width
                if p <= SIGNIFICANCE_LEVEL:
                    verdict = "separated"
                    gap_column = column_with_gap(scores, points, untied, generator)
                    break
            # 2. Without a gap, costs are compared with those of null tables; smaller nu shows unequal clusters.
            for split in splits if verdict == "none" else ():
                given_or_unequal = split is splits[0] or split.nu < 1.0
                if given_or_unequal and all(costs_less(split, points, null, generator) for null in NULL_MODELS):
                    verdict, chosen = "continuum", split
                    break
    except EarlyExitError:
        verdict = "not tested"
    weights = chosen.nu, chosen.penalty, chosen is splits[0]
    return StructureTest(verdict, p, *weights, gap_column, scores, bandwidth, len(points), n_units, timer.elapsed)


# Splits


@dataclass(frozen=True, eq=False)
class Split:
    """How points are split: weights, number of clusters, and whether columns are scaled to unit variance first."""

    nu: float
    penalty: Penalty
    n_clusters: int
    standardize: bool

    def scaled(self, points: Table) -> tuple[Table, Array, Array]:
        """Return the points centred and, if required, scaled to unit variance, with their means and scales."""
        mean = points.mean_of(points.array())
        centered = points.with_array(points.array() - mean)
        scale = np.ones(points.shape[1])
        if self.standardize:
            deviation = np.sqrt(centered.mean_squares())
            scale = inverse_or_one(np.where(deviation > 1e-12 * np.abs(mean), deviation, 0.0))
        return centered.scaled(scale), mean, scale

    def directions(self, X: Table) -> Array:
        """Return directions (d, K - 1) between the clusters of scaled points; their scores have variance 1 or 0."""
        pair_penalty, result = weights_of(self.penalty, X.shape[1]), self.solve(X)
        if self.n_clusters == 2:
            regression = LabelRegression(X, pair_penalty)
            labels = label_candidates(regression, result.F)[1]
            W = regression.oriented(labels * labels[0])[1][:, None]
        else:
            functions = cluster_jointly(X, result, self.n_clusters, weights=pair_penalty, rng=0)
            W = (functions.coef - functions.coef.mean(axis=0)).T
            W = W @ np.linalg.svd(X.times_root_counts(X @ W), full_matrices=False)[2][: self.n_clusters - 1].T
        return np.asarray(W * inverse_or_one(np.sqrt(X.mean_of((X @ W) ** 2))))

    def objective(self, X: Any) -> float:
        """Return the objective of the split in two, Eq. (9)."""
        labels = label_candidates(LabelRegression(X, weights_of(self.penalty, X.shape[1])), self.solve(X).F)[1]
        return certify_labels(X, labels, 0.0, nu=self.nu, penalty=self.penalty).objective

    def solve(self, X: Any) -> Result:
        """Solve the relaxation of points at a loose tolerance, within a number of operations; raise at the deadline."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", DegenerateDataWarning)
            limits: dict[str, Any] = {"max_iter": SPLIT_MAX_ITER, "time_limit": seconds_left()}
            limits["rtol"] = SPLIT_RTOL if X.shape[1] > len(X) and self.penalty.has_l1 else 0.0
            result = low_rank(X, self.nu, self.penalty, tol=SPLIT_TOL, callback=StopAfterWork(), **limits)
        if is_late():
            raise EarlyExitError(result.status)
        return result


class StopAfterWork:
    """Callback that stops a solver after a number of operations, which does not depend on the clock."""

    def __init__(self) -> None:
        self.start, self.last = work_done(), (0, 0.0, 1.0)

    def __call__(self, progress: Progress) -> bool:
        now = progress.iteration, progress.lower, progress.upper
        is_new, self.last = now != self.last, now  # the callback may also be called between two iterates
        return is_new and work_done() - self.start > SPLIT_OPERATIONS


def held_out_scores(split: Split, points: Table, untied: Array, rng: np.random.Generator) -> Array:
    """Return scores (n, K - 1) of the rows by directions fitted without them, averaged over partitions into folds.

    The directions of all folds are rotated to agree with the first.  If one of them is 0, all scores are 0.
    """
    n, d = points.shape
    scores, first, unit = np.zeros((n, split.n_clusters - 1)), None, units_of(points)
    for _ in range(N_PARTITIONS if d <= WIDE else N_PARTITIONS_WIDE):
        fold = rng.permutation(np.arange(unit.max() + 1) % N_FOLDS)[unit]
        for k in range(N_FOLDS):
            fitted, held_out = fold != k, fold == k
            X, mean, scale = split.scaled(points.subset(fitted))
            W = split.directions(X)
            if not W.any(axis=0).all():
                return np.zeros_like(scores)
            first = W if first is None else first
            U, _, Vt = np.linalg.svd(W.T @ first)
            scores[held_out] += ((untied[held_out] - mean) * scale) @ (W @ (U @ Vt))
    return scores


def column_with_gap(scores: Array, points: Table, untied: Array, rng: np.random.Generator) -> int | None:
    """Return the column most correlated with the scores if its own values reject one mode; None for a single column."""
    if points.shape[1] == 1:
        return None
    centered = points.array() - points.mean_of(points.array())
    deviations = np.sqrt(points.mean_of(centered**2))
    correlations = points.mean_of(centered * scores[:, None]) * inverse_or_one(deviations)
    column = int(np.argmax(np.abs(correlations)))
    width = critical_bandwidth(untied[:, column], points.weights)
    p = pvalue_of_one_mode(untied[:, column], width, points.weights, rng)
    return column if p <= SIGNIFICANCE_LEVEL else None


def units_of(points: Table) -> npt.NDArray[np.intp]:
    """Return the unit of each point, from 0: points that are linked, unless their labels are known, are one unit."""
    unit, chunklets = np.arange(len(points)), points.chunklets
    if points.is_constrained:
        known = chunklets.membership == chunklets.labeled
        unit = np.where(known, chunklets.n_chunklets + unit, chunklets.membership)
    return np.unique(unit, return_inverse=True)[1]


def spread_ties(table: Array, rng: np.random.Generator) -> Array:
    """Return the table with repeated values spread evenly over the cells between the midpoints to their neighbours."""
    spread = table.copy()
    for j, column in enumerate(table.T):
        values, index = np.unique(column, return_inverse=True)
        if 1 < len(values) <= MAX_UNTIED * len(column):
            middle = (values[1:] + values[:-1]) / 2.0
            low, high = np.append(2.0 * values[0] - middle[0], middle), np.append(middle, 2.0 * values[-1] - middle[-1])
            spread[:, j] = rng.uniform(low[index], high[index])
    return spread


def sample_points(
    X: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    constraints: Constraints | None,
    rng: np.random.Generator,
) -> Table:
    """Return the points to be tested: all of positive weight, or a random sample of them."""
    table: Any = X.tocsr() if hasattr(X, "tocsr") else as_stored(X)
    require_table(table)
    n = table.shape[0]
    weights = as_weights(sample_weight, n)
    rows = np.arange(n) if weights is None else np.flatnonzero(weights.mask)
    max_rows = int(np.clip(MAX_ENTRIES // max(table.shape[-1], 1), MIN_ROWS, MAX_ROWS))
    if len(rows) > max_rows:
        rows = np.sort(rng.choice(rows, max_rows, replace=False))
    if len(rows) < n:
        table = table_rows(table, rows)
    data = as_data(table_array(table) if hasattr(table, "toarray") else table, warn=False)
    every = None if weights is None or weights.normalized is None else weights.of_all()
    chunklets = chunklets_of(constraints, n).subset(np.isin(np.arange(n), rows))
    return array_table(data, renormalize_weights(every, rows), chunklets)


# One mode


def count_modes(scores: Array, bandwidth: float, grid: Array, weights: Array | None = None) -> int:
    """Return the number of modes of the Gaussian kernel density estimate on a grid."""
    kernel = np.exp(-0.5 * ((grid[:, None] - scores) / bandwidth) ** 2)
    density = kernel.sum(axis=1) if weights is None else kernel @ weights
    return int(np.sum((density[1:-1] > density[:-2]) & (density[1:-1] >= density[2:])))


def central_grid(scores: Array, size: int, weights: Array | None = None) -> Array:
    """Return a grid between the quantiles of the scores between which modes are counted."""
    order = np.argsort(scores)
    low, high = (
        np.quantile(scores, CENTRAL)
        if weights is None
        else np.interp(CENTRAL, np.cumsum(weights[order]), scores[order])
    )
    return np.linspace(low, high, size)


def critical_bandwidth(scores: Array, weights: Array | None = None) -> float:
    """Return the smallest bandwidth at which the kernel density estimate of scores has one mode; 0 if all are equal.

    Source: Silverman (1981); by bisection between .02 and 1.5 standard deviations.
    """
    deviation = float(np.sqrt(mean_of((scores - mean_of(scores, weights)) ** 2, weights)))
    low, high = 0.02 * deviation, 1.5 * deviation
    if deviation == 0.0:
        return 0.0
    grid = central_grid(scores, 120, weights)
    for _ in range(12):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if count_modes(scores, middle, grid, weights) <= 1 else (middle, high)
    return high


def unimodal_density(width: Array, share: Array) -> Array:
    """Return the unimodal histogram heights of largest likelihood, for cells of these widths and shares, sum 1."""
    height, best = share / width, share
    largest = -np.inf
    for mode in range(len(height)):
        rising = isotonic_regression(height[: mode + 1], weights=width[: mode + 1]).x
        falling = isotonic_regression(height[mode:], weights=width[mode:], increasing=False).x
        found = np.concatenate([rising[:-1], [max(rising[-1], falling[0])], falling[1:]])
        found = found / (found @ width)
        likelihood = float(share @ np.log(np.maximum(found, 1e-300)))
        if likelihood > largest:
            best, largest = found, likelihood
    return best


def pvalue_of_one_mode(scores: Array, bandwidth: float, weights: Array | None, rng: np.random.Generator) -> float:
    """Return the p-value of the critical bandwidth among samples from the unimodal density nearest to the scores.

    A sample counts if it has several modes at that bandwidth.  The test stops after ten such samples.
    """
    if bandwidth == 0.0:
        return 1.0
    order = np.argsort(scores)
    ordered, p = scores[order], np.full(len(scores), 1.0 / len(scores)) if weights is None else weights[order]
    below = np.append(0.0, np.cumsum(p))[:-1]  # share of the scores below each
    size = round(float(1.0 / np.sum(p**2)))
    n_cells = max(4, round(size / round(size**0.5)))
    ends = np.unique(np.searchsorted(below, np.linspace(0.0, below[-1], n_cells + 1) * (1.0 - 1e-12)))
    edges = ordered[ends]
    width = np.maximum(np.diff(edges), 1e-9 * (ordered[-1] - ordered[0]))
    quantiles = np.append(0.0, np.cumsum(unimodal_density(width, np.diff(below[ends]) / below[-1]) * width))
    exceeding = 0
    for drawn in range(1, N_DRAWS + 1):
        sample = np.interp(rng.random(size), quantiles / quantiles[-1], edges)
        exceeding += count_modes(sample, bandwidth, central_grid(sample, 80)) > 1
        if exceeding == MAX_EXCEEDANCES:
            return exceeding / drawn
    return (1 + exceeding) / (1 + N_DRAWS)


# Null tables


NullSampler = Callable[[np.random.Generator], Array]


def permute_columns(X: Array, groups: FeatureGroups) -> NullSampler:
    """Return a sampler of tables whose columns, or feature groups, are permuted independently."""
    parts = [np.flatnonzero(groups.labels == g) for g in range(len(groups.names))]

    def draw(rng: np.random.Generator) -> Array:
        if groups.are_single:
            return rng.permuted(X, axis=0)
        drawn = np.empty_like(X)
        for part in parts:
            drawn[:, part] = X[np.ix_(rng.permutation(len(X)), part)]
        return drawn

    return draw


def rotate_points(X: Array, _groups: FeatureGroups) -> NullSampler:
    """Return a sampler of QX, with Q a random rotation of the points that preserves their mean, so X'X is unchanged."""
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    mask = is_above_rounding(s, X.shape)
    half = s[mask, None] * Vt[mask]

    def draw(rng: np.random.Generator) -> Array:
        frame = rng.standard_normal((len(X), len(half)))
        Q, R = np.linalg.qr(frame - frame.mean(axis=0))
        return np.asarray(Q * np.sign(np.diag(R)) @ half)

    return draw


NULL_MODELS = (permute_columns, rotate_points)


def costs_less(
    split: Split, points: Table, null: Callable[[Array, FeatureGroups], NullSampler], rng: np.random.Generator
) -> bool:
    """Return whether the split in two of the points costs less than those of all null tables.

    Of points that are linked the first stands for all, without constraints and weights.
    """
    groups = split.penalty.feature_groups(points.shape[1])
    if points.is_constrained:
        points = array_table(points.array()[np.unique(units_of(points), return_index=True)[1]])
    if null is permute_columns and len(groups.names) == 1:  # a single column or group has no other to depend on
        return True
    X = split.scaled(points)[0]
    objective, draw = split.objective(X), null(X.array(), groups)
    tables = (X.with_array(draw(rng)) for _ in range(N_NULL_TABLES))
    return all(split.objective(table) > objective * (1.0 + COST_RTOL) for table in tables)
