"""Test for group structure: do rows that did not choose the direction of a split leave a gap along it?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.comparison.held_out import (
    Folds,
    HeldOutScores,
    held_out_scores,
    partitions,
    rotated_to,
    scaled,
    spread_ties,
)
from diffrac_cvx.comparison.null_tables import NULL_MODELS, NullModel, cut_gaussian_cloud, permute_columns
from diffrac_cvx.comparison.splits import N_OPTIMA, ShareSplits, Split, with_unit_scores
from diffrac_cvx.comparison.units import blocks_of, copied_units, linked_units, merged, numbered
from diffrac_cvx.comparison.valley import (
    N_DRAWS,
    SMALLEST_PVALUE,
    bandwidth_of,
    deepest_valley,
    pvalue_of_depth,
    pvalue_of_one_mode,
)
from diffrac_cvx.machine.deadlines import EarlyExitError, Timer, time_limited
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import (
    Array,
    as_data,
    as_generator,
    as_matrix,
    as_weights,
    in_unit_interval,
    nonnegative,
    positive_int,
    require_flag,
    require_table,
)
from diffrac_cvx.points.constraints import Constraints, chunklets_of
from diffrac_cvx.points.linear_algebra import inverse_or_one, renormalize_weights
from diffrac_cvx.points.reading import as_stored, table_array, table_rows, table_times
from diffrac_cvx.points.table import Table, array_table
from diffrac_cvx.problem.penalty import Penalty, require_penalty

SETTINGS = ((1.0, 0.3), (1.0, 0.03), (1.0, 3.0), (0.3, 0.3), (0.1, 0.3))  # nu and ridge of the splits tested
SHARES, SHARE_RIDGE = (0.05, 0.1, 0.2, 0.35, 0.5), 0.3  # of the rows on one side of other splits, and their ridge
RIDGE_FACTOR = 2 / 3  # of d / n, which multiplies the ridges of tables with many columns
N_NULL_TABLES = 19  # null tables of each model
MIN_UNITS = 20  # rows that are not copies, or sets of linked rows, below which the verdict is "not tested"
MAX_CUT_COLUMNS = 300  # of a cloud cut in two: its time and memory are those of a d x d matrix
SIGNIFICANCE_LEVEL = 0.05
MIN_ROWS, MAX_ROWS, MAX_ENTRIES = 200, 1000, 50_000  # larger tables are sampled by rows
COST_RTOL = 1e-6  # relative tolerance for equal costs
UNEQUAL_LEVEL, MIN_SMALLER, MAX_SMALLER = 0.025, 0.08, 0.35  # levels and shares of the smaller side, see `is_unequal`
AnySplit = Split | ShareSplits


@dataclass(frozen=True)
class StructureTest:
    """Result of `structure_test`.

    Attributes
    ----------
    verdict : {"separated", "not separated", "not tested"}
        Conclusion at the level 0.05, see `structure_test`.
    pvalue : float
        p-value of one mode along the split tested, see `structure_test`.
    smallest_pvalue : float
        Smallest value that the comparison with 399 samples can give.
    given_pvalue, picked_pvalue : float
        p-values of one mode along the split with the weights given, and along the splits picked; the latter is 1 if
        there are more columns than rows.  ``pvalue`` is the latter, or with more columns than rows the former.
    nu, penalty : float, Penalty
        Weights of the split to which the verdict refers.
    share : float or None
        Share of the rows on one side of that split, if it is found by this share instead of by ``nu``.
    has_given_weights : bool
        Whether that split has the weights given.
    splits_better : bool
        If not separated: whether the table splits in two better than one Gaussian cloud with the same correlations.
        Skewed, ordinal or dependent columns alone do that.
    gap_column : int or None
        If separated: the column that correlates most with the scores, if its own values reject one mode at the level
        0.05.  The verdict may then be the same for a table with independently permuted columns.
    scores : (m,) array
        Scores of the m units tested along that split, each by directions fitted without the unit.
    bandwidth : float
        Standard deviation of the Gaussian kernel with which the density of the scores is estimated; 0 if all are equal.
    coef, valley : (d,) array, float
        If separated: direction of that split fitted to all units, in the units of X, and the gap of X @ coef.  Zero and
        NaN otherwise.
    deviations : tuple of two floats
        The valley, and the threshold of the split itself, in standard deviations of X @ coef from its mean.
    n_between : int or None
        Number of rows tested that are on other sides of the valley than in the split with the weights given; None if
        there is no valley, or this split has more than two clusters.
    labels : (n,) array of int or None
        If separated: sides 0 and 1 of the valley, of all rows of X.
    n_points : int
        Number of rows tested: all of positive weight, or a random sample.
    n_units : int
        Number of units among them: rows that are equal, nearly equal or linked are one.
    copies : {"", "equal", "nearly equal"}
        Which rows count as copies of others.
    are_answers : bool
        Whether most columns have two values, so that the scores were also compared with those of a cloud cut in two.
    seconds : float
        Run time in seconds.
    """

    verdict: str
    pvalue: float
    smallest_pvalue: float
    given_pvalue: float
    picked_pvalue: float
    nu: float
    penalty: Penalty
    share: float | None
    has_given_weights: bool
    splits_better: bool
    gap_column: int | None
    scores: Array
    bandwidth: float
    coef: Array
    valley: float
    deviations: tuple[float, float]
    n_between: int | None
    labels: npt.NDArray[np.int64] | None
    n_points: int
    n_units: int
    copies: str
    are_answers: bool
    seconds: float

    def __str__(self) -> str:
        return self.message()

    @property
    def is_unequal(self) -> bool:
        """Whether only another split than that with the weights given shows the gap, and its groups are unequal.

        The p-value of the given split is above 0.025, that of the picked splits at most 0.025, and 8 to 35 % of the
        rows are on the smaller side.
        """
        if self.labels is None or self.has_given_weights:
            return False
        share = float(np.mean(self.labels))
        is_clear = self.picked_pvalue <= UNEQUAL_LEVEL < self.given_pvalue
        return is_clear and MIN_SMALLER <= min(share, 1.0 - share) <= MAX_SMALLER

    def message(self, names: Sequence[str] | None = None) -> str:
        """Return the conclusion in sentences; without names of the columns, they are counted from 0."""
        sentences = [f"Structure test: {self._verdict_clause()}."]
        if self.verdict == "separated":
            sentences.append(self._gap_sentence())
        if self.splits_better:
            sentences.append(
                "The table splits in two better than one Gaussian cloud with the same correlations. Skewed, ordinal or "
                "dependent columns alone do that, so this is not evidence of groups."
            )
        if self.gap_column is not None:
            column = f"column {self.gap_column} (counted from 0)" if names is None else names[self.gap_column]
            sentences.append(f"The values of {column} alone have a gap.")
        if self.n_units < self.n_points:
            copied = f"{self.copies} rows" if self.copies else "linked rows"
            sentences.append(f"{copied.capitalize()} count once: {self.n_units} of {self.n_points} rows.")
        return " ".join(sentences)

    def _verdict_clause(self) -> str:
        """Return the verdict with its p-value, or the reason for none."""
        if self.verdict == "not tested":
            few = f"there are fewer than {MIN_UNITS} rows that are neither copies nor linked"
            return f"not tested, because {few if self.n_units < MIN_UNITS else 'the time limit was reached'}"
        is_smallest = np.isclose(self.pvalue, self.smallest_pvalue)
        smallest = f", the smallest value that {N_DRAWS} samples can give" if is_smallest else ""
        p = f"(p = {self.pvalue:.2g}{smallest})"
        if self.verdict == "separated":
            return f"separated, the rows left out of the fit fall into separate groups along the split {p}"
        return f"not separated, no gap between groups was found {p}"

    def _gap_sentence(self) -> str:
        """Return where the gap is, and how many rows lie between it and the threshold of the given split."""
        at, threshold = self.deviations
        gap = f"The gap is {at:+.2f} standard deviations from the mean of the score"
        if self.has_given_weights and self.n_between is None:
            return f"{gap}."
        if self.has_given_weights:
            between = (
                f"{self.n_between} of {self.n_points} rows lie between them"
                if self.n_between
                else "no row lies between them"
            )
            return f"{gap}, the threshold of the split {threshold:+.2f}; {between}."
        split = f"{self.share:.0%} of the rows on one side" if self.share else f"nu = {self.nu:g}"
        text = f"{gap} of the split with {split} and ridge = {self.penalty.ridge:g}, not with the weights given"
        if self.n_between is None:
            return f"{text}."
        return f"{text}; {self.n_between} of {self.n_points} rows are on other sides of the two splits."


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
    it.  If the table is one unimodal cloud, these scores have one mode.  They are averaged over three partitions of the
    rows.  The split tested is that with the deepest valley in the rows of each fit, chosen among splits with several
    weights (nu, ridge), those given included, and up to three splits for each of several shares of the rows on one
    side.  In all folds but the first, depths are multiplied by the squared correlation with the direction chosen in the
    first, so that of three groups all folds separate the same.  With more columns than rows, valleys in the rows of a
    fit hardly predict those of other rows, and the split with the weights given is tested.

    The statistic is the depth of the deepest valley: the root of the smoothed count at the lower of two peaks minus
    that between them.  It is the larger one, standardised, for two bandwidths, 0.245 and 0.455 times the scale of the
    scores.  Its null distribution is that of samples from the unimodal density nearest to the scores.

    The scores of strongly correlated yes-or-no answers have two modes, all yes and all no, without any groups.  If most
    columns have two values and the p-value is at most 0.05, they are therefore also compared with the scores, in the
    same directions, of a Gaussian cloud cut in two at the same shares and with the same tetrachoric correlations, and
    the larger p-value counts.  For more than 300 columns, this compares the parts of the scores on the 300 of largest
    weight.

    Repeated rows count once: equal rows become one row with the sum of their weights, unless the columns are so coarse
    that rows coincide by chance, and so do points that ``constraints`` link to equal labels.  If half of the rows are
    in isolated sets of at most 5 % of the rows, as replicates with little noise are, each set becomes its mean.

    The verdict is

    - "separated" if the p-value is at most 0.05: there is a gap between groups.  The split reported is that with the
      weights given, if its own p-value is at most 0.05 too, otherwise that picked;
    - "not separated" otherwise: no gap was found.  ``splits_better`` is then true if the split with the given weights,
      or with a smaller nu, costs less than those of 19 tables with independently permuted columns, and of 19 tables
      rotated at random about their mean, QX with Q orthogonal, which keeps X'X.  Skewed, ordinal or dependent columns
      cause that without any groups.  If d is above 3n/2, the ridge at a smaller nu is multiplied by 2d/(3n), because
      the eigenvalues of X'X/n increase as d/n;
    - "not tested" if there are fewer than 20 units, or if the time limit is reached, which nothing else depends on.

    A gap in a single column is enough, even if no other column depends on it; ``gap_column`` names such a column, and
    then a table with independently permuted columns may be called separated too.  A single group with a hole in its
    middle, such as a ring or a cycle through time, counts as separated.  Replicates with more noise are not seen as
    such, and many tight groups, each of at most 5 % of the rows, are taken for replicates.  ``make structure`` measures
    how often tables without groups are called separated, and how often groups of several sizes are found.

    Source: Besag and Clifford (1989) for p-values by simulation; Langsrud (2005) for the rotations; Pearson (1900) for
    the tetrachoric correlations.

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
    'not separated'
    >>> structure_test(rng.standard_normal((100, 4)) + 6.0 * (np.arange(100) // 50)[:, None]).verdict
    'separated'
    """
    timer = Timer(None if time_limit is None else nonnegative(time_limit, "time_limit"))
    nu, generator = in_unit_interval(nu, "nu"), as_generator(rng)
    require_flag(standardize, "standardize")
    n_clusters = max(positive_int(n_clusters, "n_clusters"), 2)
    penalty = Penalty(ridge=0.3) if penalty is None else require_penalty(penalty)
    table: Any = X.tocsr() if hasattr(X, "tocsr") else as_stored(X)
    rows = sample_points(table, sample_weight, constraints, generator)
    points, copies = units_of(rows)
    blocks = blocks_of(points)
    n_units = int(blocks.max()) + 1
    splits = [Split(nu, penalty, n_clusters), *other_splits(nu, penalty, n_clusters, points)]
    evidence, is_separated, splits_better = NO_EVIDENCE, False, False
    gap_column: int | None = None
    gap = Gap((0, 0), np.zeros(points.shape[1]), np.nan, (np.nan, np.nan), None)
    is_tested = n_units >= MIN_UNITS
    try:
        with time_limited(timer.deadline):
            if is_tested:
                untied = spread_ties(points.array(), generator)
                folds = Folds(points, untied, standardize, partitions(blocks, points.shape[1], generator))
                evidence = evidence_of(splits, folds, generator)
                is_separated = evidence.pvalue <= SIGNIFICANCE_LEVEL
            if is_separated:
                gap = gap_of(splits, evidence, folds, rows)
                gap_column = column_with_gap(evidence.scores, points, untied, generator)
            elif is_tested:  # costs are compared with those of null tables; smaller nu shows unequal clusters
                splits_better = any(
                    all(costs_less(split, points, standardize, null, generator) for null in NULL_MODELS)
                    for split in splits
                    if isinstance(split, Split) and (split is splits[0] or split.nu < 1.0)
                )
    except EarlyExitError:
        is_tested = False
    is_separated = is_separated and is_tested
    index, column = gap.split if is_separated else evidence.split
    split = splits[index]
    return StructureTest(
        verdict="not tested" if not is_tested else "separated" if is_separated else "not separated",
        pvalue=evidence.pvalue,
        smallest_pvalue=evidence.smallest,
        given_pvalue=evidence.given,
        picked_pvalue=evidence.picked,
        nu=split.nu if isinstance(split, Split) else nu,
        penalty=split.penalty if isinstance(split, Split) else Penalty(ridge=split.ridge),
        share=None if isinstance(split, Split) else split.shares[column // N_OPTIMA],
        has_given_weights=index == 0,
        splits_better=splits_better,
        gap_column=gap_column,
        scores=evidence.scores,
        bandwidth=bandwidth_of(evidence.scores, points.normalized_weights) if len(evidence.scores) else 0.0,
        coef=gap.coef,
        valley=gap.valley,
        deviations=gap.deviations,
        n_between=gap.n_between,
        labels=(table_times(table, gap.coef) > gap.valley).astype(np.int64) if is_separated else None,
        n_points=len(rows),
        n_units=n_units,
        copies=copies,
        are_answers=are_answers(points.array()),
        seconds=timer.elapsed,
    )


# Units


def units_of(rows: Table) -> tuple[Table, str]:
    """Return the rows with linked rows and copies merged, and which rows were copies: "", "equal" or "nearly equal"."""
    points = merged(rows, linked_units(rows.chunklets, len(rows)))
    units, kind = copied_units(points.array())
    if points.is_constrained:  # rows under other constraints stay as they are
        membership, size = points.chunklets.membership, np.bincount(points.chunklets.membership)
        is_bound = (size[membership] > 1) | (membership == points.chunklets.labeled)
        units = numbered(np.where(is_bound, len(points) + np.arange(len(points)), units))
    return merged(points, units), kind if units.max() + 1 < len(points) else ""


def sample_points(
    table: Any,
    sample_weight: npt.ArrayLike | None,
    constraints: Constraints | None,
    rng: np.random.Generator,
) -> Table:
    """Return the points to be tested, centred, with their means: all of positive weight, or a random sample of them."""
    require_table(table)
    n = table.shape[0]
    weights = as_weights(sample_weight, n)
    rows = np.arange(n) if weights is None else np.flatnonzero(weights.mask)
    max_rows = int(np.clip(MAX_ENTRIES // max(table.shape[-1], 1), MIN_ROWS, MAX_ROWS))
    if len(rows) > max_rows:
        rows = np.sort(rng.choice(rows, max_rows, replace=False))
    if len(rows) < n:
        table = table_rows(table, rows)
    given = as_matrix(table_array(table) if hasattr(table, "toarray") else table)
    data = as_data(given, warn=False)
    every = None if weights is None or weights.normalized is None else weights.of_all()
    chunklets = chunklets_of(constraints, n).subset(np.isin(np.arange(n), rows))
    return replace(array_table(data, renormalize_weights(every, rows), chunklets), means=given.mean(axis=0))


# Splits


def other_splits(nu: float, penalty: Penalty, n_clusters: int, points: Table) -> list[AnySplit]:
    """Return the splits in two that are tested beside that with the weights given.

    With sign constraints, or constraints on labels other than must-links, there are none by shares of the rows.
    """
    factor = max(1.0, RIDGE_FACTOR * points.shape[1] / len(points))
    splits: list[AnySplit] = []
    for other, ridge in [(other, factor * ridge) for other, ridge in SETTINGS]:
        is_given = n_clusters == 2 and other == nu and np.all(penalty.ridge == ridge) and not np.any(penalty.c)
        splits += [] if is_given else [Split(other, penalty.with_weights(0.0, ridge))]
    is_free = not points.is_constrained and penalty.nonnegative is None
    return [*splits, ShareSplits(SHARES, SHARE_RIDGE)] if is_free else splits


class Evidence(NamedTuple):
    """What the held-out scores show: p-values, and the split that is reported."""

    pvalue: float  # of the splits picked, or of the split given if there are more columns than rows
    smallest: float  # value that this p-value can have
    given: float
    picked: float  # 1 if there are more columns than rows
    is_given: bool  # whether the split given is reported
    split: tuple[int, int]  # index among the splits, and of the directions of this one
    scores: Array
    first: Array  # (d, k), directions of that split in the first fold


NO_EVIDENCE = Evidence(1.0, SMALLEST_PVALUE, 1.0, 1.0, True, (0, 0), np.zeros(0), np.zeros((0, 0)))


class Pick(NamedTuple):
    """Direction with a deep valley in the rows of a fit."""

    split: tuple[int, int]  # index among the splits, and of the directions of this one
    direction: Array  # (d,)


def evidence_of(splits: Sequence[AnySplit], folds: Folds, rng: np.random.Generator) -> Evidence:
    """Return the evidence of the splits picked, or of the split given if there are more columns than rows."""
    directions = [splits[0].directions(fold.X) for fold in folds]
    scores, pvalues = tested(held_out_scores(folds, directions), folds, rng)
    best = int(np.argmin(pvalues))
    given = min(1.0, len(pvalues) * pvalues[best])
    smallest = len(pvalues) * SMALLEST_PVALUE
    found = Evidence(given, smallest, given, 1.0, True, (0, best), scores[:, best], directions[0])
    n, d = folds.points.shape
    if d > n:
        return found
    picks: list[Pick] = []
    for fold, W in zip(folds, directions, strict=True):
        picks.append(pick(splits, fold.X, fold.fitted, W, picks[0].direction if picks else None))
    directions = [one.direction[:, None] for one in picks]
    scores, (picked,) = tested(held_out_scores(folds, directions), folds, rng)
    found = found._replace(pvalue=picked, smallest=SMALLEST_PVALUE, picked=picked)
    if max(given, picked) <= SIGNIFICANCE_LEVEL:
        return found
    return found._replace(is_given=False, split=picks[0].split, scores=scores[:, 0], first=directions[0])


def tested(score: HeldOutScores, folds: Folds, rng: np.random.Generator) -> tuple[Array, list[float]]:
    """Return the scores (n, k) of the points, and the p-value of one mode of each column.

    If most columns of the points have two values and a p-value is small, it is the larger one of two: the other
    compares with the same scores of a Gaussian cloud cut in two, on the columns that have most weight in them.
    """
    points, p = folds.points, folds.points.normalized_weights
    scores = score(folds.untied)
    pvalues = [pvalue_of_one_mode(column, p, rng) for column in scores.T]
    if min(pvalues) <= SIGNIFICANCE_LEVEL and are_answers(points.array()):
        columns = score.strongest_columns(MAX_CUT_COLUMNS)
        score, draw = score.on(columns), cut_gaussian_cloud(points.array()[:, columns], p)
        drawn = np.stack([score(draw(rng)) for _ in range(N_DRAWS)], axis=2)
        compared, counts = score(folds.untied[:, columns]), p / np.sum(p**2)
        cut = [pvalue_of_depth(column, p, drawn[:, j].T, counts) for j, column in enumerate(compared.T)]
        pvalues = [max(pair) for pair in zip(pvalues, cut, strict=True)]
    return scores, pvalues


def pick(splits: Sequence[AnySplit], X: Table, fitted: Array, given: Array, reference: Array | None = None) -> Pick:
    """Return the direction with the deepest valley in the rows of a fit, which are also given with ties spread.

    With a reference direction, that picked in the first fold, depths are multiplied by the squared correlation with
    its scores: if a table has several gaps, all folds shall pick the same.  The reference has seen the rows left out of
    this fit, but only chooses among directions that have not.  Without any valley the pick is the first one given.
    """
    W = [given, *(split.directions(X) for split in splits[1:])]
    owner = [(i, j) for i, directions in enumerate(W) for j in range(directions.shape[1])]
    directions, p = np.hstack(W), X.normalized_weights
    valleys = [deepest_valley(scores, p) for scores in (fitted @ directions).T]
    depth = np.array([0.0 if valley is None else valley.depth for valley in valleys])
    if reference is not None:
        target = X @ reference
        covariance = X.mean_of((X @ directions) * target[:, None])
        depth *= covariance**2 * inverse_or_one(X.mean_of(target**2))
    best = int(np.argmax(depth))
    return Pick(owner[best], directions[:, best])


def are_answers(table: Array) -> bool:
    """Return whether most columns have two values, as yes-or-no answers do."""
    return bool(np.median([len(np.unique(column)) for column in table.T]) == 2.0)


# The gap


class Gap(NamedTuple):
    """Where the gap is along a split fitted to all units."""

    split: tuple[int, int]  # as in `Evidence`, of all units
    coef: Array  # (d,), in the units of the table
    valley: float
    deviations: tuple[float, float]  # valley and threshold of the split, in standard deviations from the mean
    n_between: int | None  # rows on other sides of the valley than in the split given, if this has two clusters


def gap_of(splits: Sequence[AnySplit], evidence: Evidence, folds: Folds, rows: Table) -> Gap:
    """Return the gap of the split that shows it, and the rows that the split given puts on the other side."""
    points, given = folds.points, splits[0]
    X, mean, scale = scaled(points, folds.standardize)
    untied = (folds.untied - mean) * scale
    v, intercept = None, 0.0
    if isinstance(given, Split) and given.n_clusters == 2:
        v, intercept = given.affine_function(X)
    W = given.directions(X) if v is None else with_unit_scores(X, v[:, None])
    if evidence.is_given:
        split, w = evidence.split, rotated_to(W, evidence.first)[:, evidence.split[1]]
    else:
        split, w = pick(splits, X, untied, W, evidence.first[:, 0])
    w = w * np.sign(w[np.argmax(np.abs(w))])
    found = deepest_valley(untied @ w, points.normalized_weights)
    at, threshold = 0.0 if found is None else found.at, np.nan
    n_between: int | None = None
    if v is not None:
        scores = (rows.array() - mean) * scale @ np.stack([w, v], axis=1)
        n_differ = int(np.sum((scores[:, 0] > at) != (scores[:, 1] + intercept > 0.0)))
        n_between = min(n_differ, len(rows) - n_differ)
        if split[0] == 0:
            threshold = -intercept * float((w @ v) / (v @ v or 1.0))
    return Gap(split, w * scale, float(at + (w * scale) @ (mean + rows.means)), (at, threshold), n_between)


def column_with_gap(scores: Array, points: Table, untied: Array, rng: np.random.Generator) -> int | None:
    """Return the column most correlated with the scores if its own values reject one mode; None for a single column."""
    if points.shape[1] == 1:
        return None
    centered = points.array() - points.mean_of(points.array())
    deviations = np.sqrt(points.mean_of(centered**2))
    correlations = points.mean_of(centered * scores[:, None]) * inverse_or_one(deviations)
    column = int(np.argmax(np.abs(correlations)))
    p = pvalue_of_one_mode(untied[:, column], points.normalized_weights, rng)
    return column if p <= SIGNIFICANCE_LEVEL else None


def costs_less(split: Split, points: Table, standardize: bool, null: NullModel, rng: np.random.Generator) -> bool:
    """Return whether the split in two of the points costs less than those of all null tables.

    Of points that are linked the first stands for all, without constraints and weights.
    """
    groups = split.penalty.feature_groups(points.shape[1])
    if not points.is_plain:
        points = array_table(points.array()[np.unique(blocks_of(points), return_index=True)[1]])
    if null is permute_columns and len(groups.names) == 1:  # a single column or group has no other to depend on
        return True
    X = scaled(points, standardize)[0]
    objective, draw = split.objective(X), null(X.array(), groups)
    tables = (X.with_array(draw(rng)) for _ in range(N_NULL_TABLES))
    return all(split.objective(table) > objective * (1.0 + COST_RTOL) for table in tables)
