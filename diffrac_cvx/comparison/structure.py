"""Test for group structure: the cost of a table's two-way split compared with that of null tables drawn from it."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.errors import DegenerateDataWarning
from diffrac_cvx.machine.deadlines import Timer, time_limited
from diffrac_cvx.points.checks import Array, as_data, as_generator, in_unit_interval, one_of, positive_int
from diffrac_cvx.points.linear_algebra import is_above_rounding, standardize_columns
from diffrac_cvx.points.reading import table_array
from diffrac_cvx.points.streamed import is_chunked
from diffrac_cvx.problem.feature_groups import FeatureGroups
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Progress
from diffrac_cvx.rounding import kmeans_1d, kmeans_centered
from diffrac_cvx.solvers import low_rank

DEFAULT_RESAMPLES = 39  # smallest attainable p-value 1/40
MIN_ROWS, MAX_ENTRIES = 500, 50_000  # larger tables are subsampled by rows
SIGNIFICANCE_LEVEL = 0.05
MIN_RESAMPLES = 9  # fewer null tables never count as evidence against structure
SPLIT_TOL, SPLIT_RTOL, SPLIT_MAX_ITER = 1e-2, 0.1, 120  # tolerances and iteration limit of each split
TIE_RTOL = 1e-6  # relative tolerance for equal costs
MAX_CERTIFICATE_SECONDS = 0.3  # a certificate may take this long, or three times the time of the iterations before it


NullSampler = Callable[[np.random.Generator], Array]


def permute_columns(X: Array, groups: FeatureGroups) -> NullSampler:
    """Return a sampler of tables whose columns, or feature groups, are permuted independently."""
    if groups.are_single:
        return lambda rng: rng.permuted(X, axis=0)
    parts = [np.flatnonzero(groups.labels == g) for g in range(len(groups.names))]

    def draw(rng: np.random.Generator) -> Array:
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


@dataclass(frozen=True)
class NullModel:
    """Null model: the sampler of null tables, its description, and the conclusion if it is not rejected."""

    make_sampler: Callable[[Array, FeatureGroups], NullSampler]
    description: str
    conclusion: str


NULL_MODELS = {
    "columns": NullModel(
        permute_columns,
        "independent columns",
        "this cost is no evidence of groups",
    ),
    "covariance": NullModel(
        rotate_points,
        "single Gaussian cloud",
        "the correlations alone explain it",
    ),
}


@dataclass(frozen=True)
class StructureTest:
    """Result of `structure_test`: the cost of a table's two-way split and the costs of the null tables.

    Attributes
    ----------
    null : {"columns", "covariance"}
        Null model, see `structure_test`.
    statistic : float
        Cost of the two-way split, Eq. (9), found at a loose tolerance; lower is better.
    null_distribution : tuple of float
        Costs of the null tables.
    n_points : int
        Number of rows tested: all, or a random subsample.
    seconds : float
        Run time in seconds.
    """

    null: str
    statistic: float
    null_distribution: tuple[float, ...]
    n_points: int
    seconds: float

    @property
    def n_as_extreme(self) -> int:
        """Number of null tables with a cost as low as the table, including ties."""
        return int(np.count_nonzero(np.asarray(self.null_distribution) <= self.statistic * (1.0 + TIE_RTOL)))

    @property
    def pvalue(self) -> float:
        """The p-value (1 + n_as_extreme) / (1 + n_resamples), valid for any number of null tables."""
        return (1 + self.n_as_extreme) / (1 + len(self.null_distribution))

    @property
    def resolution(self) -> float:
        """The smallest attainable p-value for this number of null tables."""
        return 1.0 / (1 + len(self.null_distribution))

    @property
    def not_rejected(self) -> bool:
        """Whether the null model is retained: at least nine null tables and a p-value above 0.05."""
        return (
            self.n_as_extreme > 0 and self.pvalue > SIGNIFICANCE_LEVEL and len(self.null_distribution) >= MIN_RESAMPLES
        )

    @property
    def rejected(self) -> bool:
        """Whether the null model is rejected: a p-value of at most 0.05."""
        return self.pvalue <= SIGNIFICANCE_LEVEL

    def __str__(self) -> str:
        null, n_resamples = NULL_MODELS[self.null], len(self.null_distribution)
        if n_resamples == 0:
            return "Structure test: not tested, because the time limit was reached."
        p = f"p = {self.pvalue:.2g}"
        if self.not_rejected:
            return (
                f"Structure test, {null.description}: {self.n_as_extreme} of {n_resamples} null tables reach this cost "
                f"({p}): {null.conclusion}."
            )
        message = f"{null.description}: {self.n_as_extreme or '0'} of {n_resamples} null tables reach this cost ({p}"
        smallest = ", the smallest attainable" if self.n_as_extreme == 0 else ""
        hint = "" if self.rejected else "; inconclusive: more null tables, and more time, are needed"
        return f"Structure test, {message}{smallest}{hint})."


def structure_test(
    X: npt.ArrayLike,
    *,
    nu: float = 1.0,
    penalty: Penalty | None = None,
    null: str = "columns",
    n_resamples: int = DEFAULT_RESAMPLES,
    standardize: bool = True,
    time_limit: float | None = None,
    rng: np.random.Generator | int = 0,
) -> StructureTest:
    r"""Test whether a table splits in two at a lower cost than null tables without group structure.

    The table and B null tables drawn from it are split as by `DiffracClustering`, at a loose tolerance, and their
    costs, Eq. (9), are compared.  Under the null model all these tables are exchangeable, so
    :math:`(1 + \#\{\text{null cost} \le \text{cost of the table}\}) / (1 + B)` is a valid p-value for any B.  (The
    value of the relaxation is also a valid statistic, but less informative: with many independent columns it is small,
    attained by a V of high rank.)  The two null models answer two questions.

    - "columns": each column is permuted independently.  Are the columns dependent at all?  Valid for independent
      columns with any distributions.  If the penalty has feature groups, each group is permuted as a whole: are the
      groups dependent?
    - "covariance": the points are rotated at random about their mean, QX with Q orthogonal, which preserves X'X.  Do
      the points form two groups more clearly than a Gaussian cloud with the same correlations?  Valid for Gaussian
      points with any covariance, also with more columns than rows; conservative for heavy tails.

    Source: Langsrud (2005), Rotation tests; Phipson and Smyth (2010) for the p-value.

    Parameters
    ----------
    X : (n, d) array, data frame or sparse matrix
        Data.  A table with more than 50 000 entries is subsampled to that size, with at least 500 rows.
    nu : float
        Weight of the imbalance, in (0, 1].
    penalty : Penalty, optional
        Penalty, by default a ridge of 0.3, as in `DiffracClustering`; its groups and signs apply to all null tables.
    null : {"columns", "covariance"}
        Null model.
    n_resamples : int
        Number B of null tables; the smallest attainable p-value is 1 / (1 + n_resamples).
    standardize : bool
        Whether the columns are scaled to unit variance first.
    time_limit : float, optional
        Time limit in seconds; it reduces the number of null tables, to 0 if the table itself takes longer.
    rng : int or numpy.random.Generator
        Random number generator, or its seed.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).standard_normal((60, 4))
    >>> structure_test(noise).not_rejected
    True
    """
    null_model, count = NULL_MODELS[one_of(null, "null", NULL_MODELS)], positive_int(n_resamples, "n_resamples")
    nu, timer, generator = in_unit_interval(nu, "nu"), Timer(time_limit), as_generator(rng)
    penalty = Penalty(ridge=0.3) if penalty is None else penalty
    table = sample_rows(X, generator)
    data = as_data(table, warn=False)
    data = standardize_columns(data) if standardize else data
    with time_limited(timer.deadline):
        statistic = split_objective(data, nu, penalty, timer)
        null_distribution: list[float] = []
        sampler = null_model.make_sampler(data, penalty.feature_groups(data.shape[1]))
        while statistic is not None and len(null_distribution) < count:
            objective = split_objective(sampler(generator), nu, penalty, timer)
            if objective is None:
                break
            null_distribution.append(objective)
    return StructureTest(
        null, 1.0 if statistic is None else statistic, tuple(null_distribution), len(data), timer.elapsed
    )


def applicable_nulls(d: int) -> tuple[str, ...]:
    """Return the null models for d columns or groups; a single one cannot be dependent on others."""
    return ("columns", "covariance") if d > 1 else ("covariance",)


def find_not_rejected(tests: Sequence[StructureTest]) -> StructureTest | None:
    """Return the first test if it is not rejected and no other test of `applicable_nulls` is; None otherwise."""
    return tests[0] if tests and tests[0].not_rejected and not any(test.rejected for test in tests) else None


def select_informative(tests: Sequence[StructureTest]) -> list[StructureTest]:
    """Return the tests, without those not rejected if the stricter covariance null is rejected."""
    decisive = [test for test in tests if test.null == "covariance" and test.rejected]
    return [test for test in tests if test.rejected or not decisive]


def sample_rows(X: npt.ArrayLike, rng: np.random.Generator) -> Array:
    """Return the rows to be tested, as an array."""
    table: Any = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
    if table.ndim == 2:
        max_rows = max(MIN_ROWS, MAX_ENTRIES // max(table.shape[1], 1))
        if len(rows := np.arange(table.shape[0])) > max_rows:
            chosen = np.sort(rng.choice(rows, max_rows, replace=False))
            table = table.iloc[chosen] if hasattr(table, "iloc") else table[chosen]
    return np.asarray(table_array(table) if hasattr(table, "toarray") or is_chunked(table) else table)


def split_objective(X: Array, nu: float, penalty: Penalty, timer: Timer) -> float | None:
    """Return the cost of the split along the direction of the rounded labels, None after the time limit.

    A certificate that takes longer than the iterations is stopped; the split is that of its primal point.
    """
    if timer.is_over:
        return None
    wide = X.shape[1] > len(X) and penalty.has_l1
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DegenerateDataWarning)
        result = low_rank(
            X, nu, penalty, tol=SPLIT_TOL, rtol=SPLIT_RTOL if wide else 0.0, max_iter=SPLIT_MAX_ITER,
            time_limit=timer.time_left, callback=StopLongCertificate(),
        )  # fmt: skip
        rounded = certify_labels(X, kmeans_centered(result.F), 0.0, nu=nu, penalty=penalty)
        split = kmeans_1d(X @ rounded.v)
        found = certify_labels(X, split, 0.0, nu=nu, penalty=penalty)
    return None if timer.is_over else found.objective


class StopLongCertificate:
    """Callback that stops the solver if a certificate takes longer than the iterations before it."""

    def __init__(self) -> None:
        self.last = Progress(iteration=0, seconds=0.0, lower=0.0, upper=1.0)

    def __call__(self, progress: Progress) -> bool:
        if progress.iteration != self.last.iteration:
            self.last = progress
        max_seconds = max(MAX_CERTIFICATE_SECONDS, 3.0 * self.last.seconds)
        return self.last.iteration > 0 and progress.seconds - self.last.seconds > max_seconds
