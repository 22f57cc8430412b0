"""Is there a structure at all: the cost of the split of a table, beside those of tables made of it that have none."""

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
from diffrac_cvx.points.chunks import is_chunked
from diffrac_cvx.points.linear_algebra import is_above_rounding, standardize_columns
from diffrac_cvx.points.reading import table_array
from diffrac_cvx.problem.penalties.columns import FeatureGroups
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Progress
from diffrac_cvx.rounding import kmeans_1d, kmeans_centered
from diffrac_cvx.solvers import low_rank

DEFAULT_RESAMPLES = 39  # as many give p-values from 1/40
MIN_ROWS, MAX_ENTRIES = 500, 50_000  # of larger tables rows drawn at random are tested
SIGNIFICANCE_LEVEL = 0.05  # p-values above it are no evidence
MIN_RESAMPLES = 9  # draws from which one that splits as well counts against a structure
SPLIT_TOL, SPLIT_RTOL, SPLIT_MAX_ITER = 1e-2, 0.1, 120  # of each split, with its steps at most
TIE_RTOL = 1e-6  # relative, of costs that count as equal
MAX_CERTIFICATE_SECONDS = 0.3  # seconds, and three times what the steps took, that a proof may take beside them


NullSampler = Callable[[np.random.Generator], Array]


def permute_columns(X: Array, groups: FeatureGroups | None = None) -> NullSampler:
    """Draw tables with each column permuted by itself, or each group of columns as a whole."""
    if groups is None:
        return lambda rng: rng.permuted(X, axis=0)
    parts = [np.flatnonzero(groups.labels == g) for g in range(len(groups.names))]

    def draw(rng: np.random.Generator) -> Array:
        drawn = np.empty_like(X)
        for part in parts:
            drawn[:, part] = X[np.ix_(rng.permutation(len(X)), part)]
        return drawn

    return draw


def rotate_points(X: Array, _groups: FeatureGroups | None = None) -> NullSampler:
    """Draw QX, with Q a random rotation of the points that keeps their mean: X'X stays as it is."""
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
    """How tables without structure are made, and what it says if they split as well."""

    make_sampler: Callable[[Array, FeatureGroups | None], NullSampler]
    description: str
    conclusion: str


NULL_MODELS = {
    "columns": NullModel(
        permute_columns,
        "of the same columns without any connection",
        "this split is no evidence of groups",
    ),
    "covariance": NullModel(
        rotate_points,
        "that is one Gaussian cloud with the same correlations",
        "that the columns go together explains so good a split, without any groups",
    ),
}


@dataclass(frozen=True)
class StructureTest:
    """The cost of the split of a table, beside those of tables made of it that have no structure.

    Attributes
    ----------
    null : {"columns", "covariance"}
        How these were made, see `structure_test`.
    statistic : float
        Cost of the split that is found at a loose tolerance, Eq. (9); the smaller, the better it splits.
    null_distribution : tuple of float
        The same of each table without structure.
    n_points : int
        Rows that were tested: all, or as many drawn at random.
    seconds : float
        Time.
    """

    null: str
    statistic: float
    null_distribution: tuple[float, ...]
    n_points: int
    seconds: float

    @property
    def n_as_extreme(self) -> int:
        """Tables without structure that split as well, ties among them."""
        return int(np.count_nonzero(np.asarray(self.null_distribution) <= self.statistic * (1.0 + TIE_RTOL)))

    @property
    def pvalue(self) -> float:
        """Probability of a cost as small without structure: (1 + as_good) / (1 + draws), valid at any number."""
        return (1 + self.n_as_extreme) / (1 + len(self.null_distribution))

    @property
    def resolution(self) -> float:
        """The least p-value that so many draws can give."""
        return 1.0 / (1 + len(self.null_distribution))

    @property
    def not_rejected(self) -> bool:
        """Whether of nine draws or more so many split as well that the p-value is above 0.05."""
        return (
            self.n_as_extreme > 0 and self.pvalue > SIGNIFICANCE_LEVEL and len(self.null_distribution) >= MIN_RESAMPLES
        )

    @property
    def rejected(self) -> bool:
        """Whether the p-value is at most 0.05."""
        return self.pvalue <= SIGNIFICANCE_LEVEL

    def __str__(self) -> str:
        null, n_resamples = NULL_MODELS[self.null], len(self.null_distribution)
        if n_resamples == 0:
            return "Whether there is a structure was not tested, for want of time."
        p = f"p = {self.pvalue:.2g}"
        if self.not_rejected:
            return f"A table {null.description} splits as well in {self.n_as_extreme} of {n_resamples} draws ({p}): {null.conclusion}."
        message = (
            f"a table {null.description} splits as well in {self.n_as_extreme or 'none'} of {n_resamples} draws ({p}"
        )
        smallest = ", the least that so many draws can give" if self.n_as_extreme == 0 else ""
        hint = "" if self.rejected else "; more draws, which take more time, would say more"
        return f"Structure: {message}{smallest}{hint})."


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
    r"""Test whether a table splits better in two than tables without structure do.

    The table is split as `DiffracClustering` does, at a loose tolerance, and so are tables made of it; their costs,
    Eq. (9), are compared.  Under the null the table and these are exchangeable, so that
    :math:`(1 + \#\{\text{cost} \le \text{that of the table}\}) / (1 + B)` is a valid p-value at any number B of
    draws.  Two nulls answer two questions.  (The value of the relaxation would do as well, but it tells less: of
    independent columns it is small where there are many of them, for a V of high rank.)

    - "columns": each column is permuted by itself.  Is there any connection among the columns?  Valid for independent
      columns of any distributions.  Where the penalty has groups of columns each group is permuted as a whole: is there
      any connection among the groups?
    - "covariance": the points are rotated at random about their mean, QX with Q orthogonal, which keeps X'X.  Do the
      points fall into two groups better than a Gaussian cloud with the same correlations does?  Valid for Gaussian
      points of any covariance, also with more columns than rows; heavy tails make it conservative.

    Source: Langsrud (2005), Rotation tests; Phipson and Smyth (2010) for the p-value.

    Parameters
    ----------
    X : (n, d) array, data frame or sparse matrix
        Of a table of more than 50 000 entries rows drawn at random are tested, 500 at least.
    nu : float
        Weight of the imbalance, in (0, 1].
    penalty : Penalty, optional
        A ridge of 0.3 by default, as in `DiffracClustering`; its groups and known signs are kept in all draws.
    null : {"columns", "covariance"}
        How tables without structure are made.
    n_resamples : int
        Their number; the least p-value is 1 / (1 + n_draws).
    standardize : bool
        Whether the columns are brought to unit variance first.
    time_limit : float, optional
        Seconds; fewer tables are drawn where they are over, none where the table itself takes longer.
    rng : int or numpy.random.Generator
        Seed of the draws.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.

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
    data = standardize_columns(data).X if standardize else data
    with time_limited(timer.deadline):
        statistic = split_objective(data, nu, penalty, timer)
        null_distribution: list[float] = []
        sampler = null_model.make_sampler(data, penalty.groups)
        while statistic is not None and len(null_distribution) < count:
            objective = split_objective(sampler(generator), nu, penalty, timer)
            if objective is None:
                break
            null_distribution.append(objective)
    return StructureTest(
        null, 1.0 if statistic is None else statistic, tuple(null_distribution), len(data), timer.elapsed
    )


def applicable_nulls(d: int) -> tuple[str, ...]:
    """Return the nulls that say something of d columns, or groups: a single one has no connection to lose."""
    return ("columns", "covariance") if d > 1 else ("covariance",)


def find_not_rejected(tests: Sequence[StructureTest]) -> StructureTest | None:
    """Return the test of `applicable_nulls` that speaks against a structure, None where one of them finds it or none does."""
    return tests[0] if tests and tests[0].not_rejected and not any(test.rejected for test in tests) else None


def select_informative(tests: Sequence[StructureTest]) -> list[StructureTest]:
    """Return the tests without those that a clear answer to the harder question has made idle."""
    decisive = [test for test in tests if test.null == "covariance" and test.rejected]
    return [test for test in tests if test.rejected or not decisive]


def sample_rows(X: npt.ArrayLike, rng: np.random.Generator) -> Array:
    """Return the rows that are tested, as an array."""
    table: Any = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
    if table.ndim == 2:
        max_rows = max(MIN_ROWS, MAX_ENTRIES // max(table.shape[1], 1))
        if len(rows := np.arange(table.shape[0])) > max_rows:
            chosen = np.sort(rng.choice(rows, max_rows, replace=False))
            table = table.iloc[chosen] if hasattr(table, "iloc") else table[chosen]
    return np.asarray(table_array(table) if hasattr(table, "toarray") or is_chunked(table) else table)


def split_objective(X: Array, nu: float, penalty: Penalty, timer: Timer) -> float | None:
    """Return the cost of the split along the direction of the rounded labels, None where the time is over.

    A proof that takes longer than the steps is left: the split is that of the point that it is about.
    """
    if timer.is_over:
        return None
    wide = X.shape[1] > len(X) and penalty.has_l1
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DegenerateDataWarning)
        result = low_rank(
            X, nu, penalty, tol=SPLIT_TOL, rtol=SPLIT_RTOL if wide else 0.0, max_iter=SPLIT_MAX_ITER, time_limit=timer.time_left,
            callback=StopLongCertificate(),
        )  # fmt: skip
        rounded = certify_labels(X, kmeans_centered(result.F), 0.0, nu=nu, penalty=penalty)
        split = kmeans_1d(X @ rounded.v)
        found = certify_labels(X, split, 0.0, nu=nu, penalty=penalty)
    return None if timer.is_over else found.objective


class StopLongCertificate:
    """A callback that stops where a proof takes longer than the steps before it."""

    def __init__(self) -> None:
        self.last = Progress(iteration=0, seconds=0.0, lower=0.0, upper=1.0)

    def __call__(self, progress: Progress) -> bool:
        if progress.iteration != self.last.iteration:
            self.last = progress
        max_seconds = max(MAX_CERTIFICATE_SECONDS, 3.0 * self.last.seconds)
        return self.last.iteration > 0 and progress.seconds - self.last.seconds > max_seconds
