"""Is there a structure at all: the cost of the split of a table, beside those of tables made of it that have none."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.errors import DegenerateDataWarning
from diffrac_cvx.machine.time_budget import Clock, spend
from diffrac_cvx.points.checks import Array, as_data, as_generator, in_unit_interval, one_of, positive_int
from diffrac_cvx.points.chunks import is_chunked
from diffrac_cvx.points.linear_algebra import is_above_rounding, standardise
from diffrac_cvx.points.reading import table_array
from diffrac_cvx.problem.penalties.columns import Groups
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Progress
from diffrac_cvx.rounding import kmeans_centered, two_means
from diffrac_cvx.solvers import low_rank

N_DRAWS = 39  # as many give p-values from 1/40
LEAST_ROWS, MOST_ENTRIES = 500, 50_000  # of larger tables rows drawn at random are tested
LEVEL = 0.05  # p-values above it are no evidence
FEWEST = 9  # draws from which one that splits as well counts against a structure
TOL, WIDE_GAP, STEPS = 1e-2, 0.1, 120  # of each split, with its steps at most
TIE = 1e-6  # relative, of costs that count as equal
LONGEST_LOOK = 0.3  # seconds, and three times what the steps took, that a proof may take beside them


Draw = Callable[[np.random.Generator], Array]


def shuffle_columns(X: Array, groups: Groups | None = None) -> Draw:
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


def rotate_points(X: Array, _groups: Groups | None = None) -> Draw:
    """Draw QX, with Q a random rotation of the points that keeps their mean: X'X stays as it is."""
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    kept = is_above_rounding(s, X.shape)
    half = s[kept, None] * Vt[kept]

    def draw(rng: np.random.Generator) -> Array:
        frame = rng.standard_normal((len(X), len(half)))
        Q, R = np.linalg.qr(frame - frame.mean(axis=0))
        return np.asarray(Q * np.sign(np.diag(R)) @ half)

    return draw


@dataclass(frozen=True)
class Null:
    """How tables without structure are made, and what it says if they split as well."""

    draws: Callable[[Array, Groups | None], Draw]
    made: str
    verdict: str


NULLS = {
    "columns": Null(
        shuffle_columns,
        "of the same columns without any connection",
        "this split is no evidence of groups",
    ),
    "covariance": Null(
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
    value : float
        Cost of the split that is found at a loose tolerance, Eq. (9); the smaller, the better it splits.
    null_values : tuple of float
        The same of each table without structure.
    n_points : int
        Rows that were tested: all, or as many drawn at random.
    seconds : float
        Time.
    """

    null: str
    value: float
    null_values: tuple[float, ...]
    n_points: int
    seconds: float

    @property
    def as_good(self) -> int:
        """Tables without structure that split as well, ties among them."""
        return int(np.count_nonzero(np.asarray(self.null_values) <= self.value * (1.0 + TIE)))

    @property
    def p_value(self) -> float:
        """Probability of a cost as small without structure: (1 + as_good) / (1 + draws), valid at any number."""
        return (1 + self.as_good) / (1 + len(self.null_values))

    @property
    def resolution(self) -> float:
        """The least p-value that so many draws can give."""
        return 1.0 / (1 + len(self.null_values))

    @property
    def is_none(self) -> bool:
        """Whether of nine draws or more so many split as well that the p-value is above 0.05."""
        return self.as_good > 0 and self.p_value > LEVEL and len(self.null_values) >= FEWEST

    @property
    def is_found(self) -> bool:
        """Whether the p-value is at most 0.05."""
        return self.p_value <= LEVEL

    def __str__(self) -> str:
        null, draws = NULLS[self.null], len(self.null_values)
        if draws == 0:
            return "Whether there is a structure was not tested, for want of time."
        p = f"p = {self.p_value:.2g}"
        if self.is_none:
            return f"A table {null.made} splits as well in {self.as_good} of {draws} draws ({p}): {null.verdict}."
        said = f"a table {null.made} splits as well in {self.as_good or 'none'} of {draws} draws ({p}"
        least = ", the least that so many draws can give" if self.as_good == 0 else ""
        few = "" if self.is_found else "; more draws, which take more time, would say more"
        return f"Structure: {said}{least}{few})."


def structure_test(
    X: npt.ArrayLike,
    *,
    nu: float = 1.0,
    penalty: Penalty | None = None,
    null: str = "columns",
    n_draws: int = N_DRAWS,
    standardize: bool = True,
    time_limit: float | None = None,
    random_state: np.random.Generator | int = 0,
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
    n_draws : int
        Their number; the least p-value is 1 / (1 + n_draws).
    standardize : bool
        Whether the columns are brought to unit variance first.
    time_limit : float, optional
        Seconds; fewer tables are drawn where they are over, none where the table itself takes longer.
    random_state : int or numpy.random.Generator
        Seed of the draws.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).standard_normal((60, 4))
    >>> structure_test(noise).is_none
    True
    """
    made, count = NULLS[one_of(null, "null", NULLS)], positive_int(n_draws, "n_draws")
    nu, clock, rng = in_unit_interval(nu, "nu"), Clock(time_limit), as_generator(random_state)
    penalty = Penalty(ridge=0.3) if penalty is None else penalty
    table = sample_rows(X, rng)
    data = as_data(table, warn=False)
    data = standardise(data).X if standardize else data
    with spend(clock.budget):
        value = cost_of_split(data, nu, penalty, clock)
        values: list[float] = []
        draw = made.draws(data, penalty.groups)
        while value is not None and len(values) < count:
            drawn = cost_of_split(draw(rng), nu, penalty, clock)
            if drawn is None:
                break
            values.append(drawn)
    return StructureTest(null, 1.0 if value is None else value, tuple(values), len(data), clock.seconds)


def nulls_of(d: int) -> tuple[str, ...]:
    """Return the nulls that say something of d columns, or groups: a single one has no connection to lose."""
    return ("columns", "covariance") if d > 1 else ("covariance",)


def against_structure(tests: Sequence[StructureTest]) -> StructureTest | None:
    """Return the test of `nulls_of` that speaks against a structure, None where one of them finds it or none does."""
    return tests[0] if tests and tests[0].is_none and not any(test.is_found for test in tests) else None


def worth_saying(tests: Sequence[StructureTest]) -> list[StructureTest]:
    """Return the tests without those that a clear answer to the harder question has made idle."""
    harder = [test for test in tests if test.null == "covariance" and test.is_found]
    return [test for test in tests if test.is_found or not harder]


def sample_rows(X: npt.ArrayLike, rng: np.random.Generator) -> Array:
    """Return the rows that are tested, as an array."""
    table: Any = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
    if table.ndim == 2:
        most = max(LEAST_ROWS, MOST_ENTRIES // max(table.shape[1], 1))
        if len(rows := np.arange(table.shape[0])) > most:
            chosen = np.sort(rng.choice(rows, most, replace=False))
            table = table.iloc[chosen] if hasattr(table, "iloc") else table[chosen]
    return np.asarray(table_array(table) if hasattr(table, "toarray") or is_chunked(table) else table)


def cost_of_split(X: Array, nu: float, penalty: Penalty, clock: Clock) -> float | None:
    """Return the cost of the split along the direction of the rounded labels, None where the time is over.

    A proof that takes longer than the steps is left: the split is that of the point that it is about.
    """
    if clock.is_over:
        return None
    wide = X.shape[1] > len(X) and penalty.is_coupled
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DegenerateDataWarning)
        result = low_rank(
            X, nu, penalty, tol=TOL, rtol=WIDE_GAP if wide else 0.0, max_iter=STEPS, time_limit=clock.left,
            callback=LeaveLongProof(),
        )  # fmt: skip
        rounded = certify_labels(X, kmeans_centered(result.F), 0.0, nu=nu, penalty=penalty)
        split = two_means(X @ rounded.v)
        found = certify_labels(X, split, 0.0, nu=nu, penalty=penalty)
    return None if clock.is_over else found.objective


class LeaveLongProof:
    """A callback that stops where a proof takes longer than the steps before it."""

    def __init__(self) -> None:
        self.last = Progress(iteration=0, seconds=0.0, lower=0.0, upper=1.0)

    def __call__(self, now: Progress) -> bool:
        if now.iteration != self.last.iteration:
            self.last = now
        longest = max(LONGEST_LOOK, 3.0 * self.last.seconds)
        return self.last.iteration > 0 and now.seconds - self.last.seconds > longest
