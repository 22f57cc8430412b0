"""The estimator that chooses lam, ridge and nu without labels, by a criterion."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import ClusterMixin

from diffrac_cvx.errors import DegenerateDataWarning, ParameterError
from diffrac_cvx.estimators.affine import AffineClusterer, ScaledTable, choose_seed
from diffrac_cvx.estimators.choice import (
    CRITERIA,
    HeldOut,
    PathEntry,
    Setting,
    draw_halves,
    find_best,
    follow_path,
    judge_half,
    list_settings,
    tabulate,
)
from diffrac_cvx.estimators.clustering import DiffracClustering
from diffrac_cvx.machine.time_budget import Clock, spend, within
from diffrac_cvx.points.checks import (
    Array,
    PointWeights,
    as_weights,
    in_unit_interval,
    nonnegative,
    one_of,
    positive,
    positive_int,
)
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.reading import table_array
from diffrac_cvx.problem.penalty import suggested_lam

LAMS, RIDGES = (0.0, 0.01, 0.1), (0.1, 0.3, 1.0)
WIDE_RIDGE, WIDE_SHARES = 0.3, (0.5, 1.0, 2.0)  # where there are more features than points; shares of `suggested_lam`
REFIT = 0.1  # share of the time limit that is kept for the fit of the setting chosen
FROM_BEST = (
    "labels_", "coef_", "intercept_", "scaled_coef_", "support_", "lower_bound_", "upper_bound_", "label_gap_",
    "reservations_", "result_", "n_iter_",
)  # fmt: skip


def default_grid(n: int, d: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the l1 weights and the ridges that are tried on a table of this shape."""
    if d <= n:
        return LAMS, RIDGES
    return (0.0, *(share * suggested_lam(n, d, WIDE_RIDGE) for share in WIDE_SHARES)), (WIDE_RIDGE,)


class DiffracClusteringCV(ClusterMixin, AffineClusterer):  # type: ignore[misc]
    r"""Split points in two as `DiffracClustering` does, with lam, ridge and nu chosen without labels.

    All settings of a grid are solved on all points, each started from the one before, and again on halves of the
    points, started from the solution for all points.  A criterion gives every setting a score, the largest wins, of
    equal ones the more stable, and `DiffracClustering` is fitted there.  A setting whose split is no answer
    (``reservations_``: one cluster, a few points, ...) never wins, unless there is no other.

    Parameters
    ----------
    lams, ridges : sequence of float, optional
        The grid: weights of the squared l1 norm and of the ridge, see `DiffracClustering`.  By default 0, 0.01 and 0.1
        by 0.1, 0.3 and 1; where there are more features than points, ridge 0.3 with 0 and with a half, one and two
        times the l1 weight that the guide on wide tables suggests.
    nus : sequence of float
        The grid: weights of the imbalance.
    criterion : {"consensus", "stability", "separation", "eigenvalue_ratio", "label_gap"}
        What chooses, as measured in the page on choosing:

        - "consensus", the default: how well the split agrees with those of the other settings, the mean adjusted Rand
          index; 1 if perfectly, 0 if by chance;
        - "stability": how well the split of one half of the points predicts the labels of the points left out, the
          mean adjusted Rand index over ``n_resamples`` halves;
        - "separation": the squared correlation of the labels that a half predicts for the points left out with their
          projections, 1 for two points only;
        - "eigenvalue_ratio": minus the ratio of the second eigenvalue of Y to the first;
        - "label_gap": minus the proved distance of the labels from the best ones.
    n_resamples : int
        Halves of the points, in pairs: what one leaves out is the other.
    tol : float
        Proved gap at which the solver stops, on the grid and on the halves; values lie in [0, 1].
    max_iter : int, optional
        Iterations of the solver for the setting chosen.
    time_limit : float, optional
        Seconds for everything.  Settings and halves that are not reached are left out, see ``cv_results_``.
    standardize : bool
        Whether features are brought to unit variance first.
    random_state : int, RandomState or None
        Of the halves.
    n_jobs : int, optional
        Processes for the halves, as in joblib: -1 for all cores.
    verbose : int
        As in joblib: how much is said about the progress over the halves.

    Attributes
    ----------
    cv_results_ : dict of arrays
        The table, one entry for each setting that was solved.  ``param_lam``, ``param_ridge``, ``param_nu`` and
        ``params``; all criteria, ``mean_score`` for the one that chose and ``rank_score``; ``std_stability``;
        ``n_resamples``, the halves that were solved; ``lower_bound``, ``upper_bound``, ``smallest_cluster``,
        ``reservations`` (their kinds), ``labels`` (m, n), ``coef`` (m, d) per standard deviation and
        ``selection_frequencies`` (m, d).
    best_index_, best_score_ : int, float
        The setting chosen, in this table.
    best_params_ : dict
        It as parameters of `DiffracClustering`.
    best_estimator_ : DiffracClustering
        Fitted there.
    lam_, ridge_, nu_ : float
        It.
    selection_frequencies_ : (d,) array
        Share of the halves whose direction uses a feature, at the chosen ridge and nu: for the lam chosen if it is
        positive, else for the positive lam of the largest score.  Without any l1 part all features are used.
    labels_, coef_, intercept_, scaled_coef_, support_ : arrays
        Of ``best_estimator_``, as are ``lower_bound_``, ``upper_bound_``, ``label_gap_``, ``reservations_``,
        ``result_`` and ``n_iter_``.
    n_features_in_, feature_names_in_
        As for `DiffracClustering`.

    Examples
    --------
    >>> import diffrac_cvx as dc
    >>> planted = dc.datasets.make_planted(100, 5, rng=0)
    >>> model = dc.DiffracClusteringCV(ridges=(0.0, 0.3), random_state=0).fit(planted.X)
    >>> dc.metrics.clustering_error(planted.y, 2.0 * model.labels_ - 1.0)
    0.0
    """

    def __init__(
        self,
        lams: Sequence[float] | None = None,
        ridges: Sequence[float] | None = None,
        nus: Sequence[float] = (1.0,),
        *,
        criterion: str = "consensus",
        n_resamples: int = 10,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        standardize: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.lams, self.ridges, self.nus, self.criterion = lams, ridges, nus, criterion
        self.n_resamples, self.tol, self.max_iter, self.time_limit = n_resamples, tol, max_iter, time_limit
        self.standardize, self.random_state, self.n_jobs, self.verbose = standardize, random_state, n_jobs, verbose

    def fit(self, X: npt.ArrayLike, y: object = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Solve the grid, choose, and fit the setting chosen.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
            At least two points; sparse ones are made dense.
        y : ignored
        sample_weight : (n,) array, optional
            Weights of the points, as for `DiffracClustering`.  The halves are of points, each with its weight: a point
            of weight 2 is in one of the two, while of two equal rows each half may have one.

        Errors and warnings are those of `DiffracClustering.fit`, of a gap at the setting chosen.
        """
        self._settings((2, 1))  # what is wrong with the grid is said before the table is read
        one_of(self.criterion, "criterion", tuple(CRITERIA))
        tol, limit = positive(self.tol, "tol"), self.time_limit
        clock = Clock(None if limit is None else (1.0 - REFIT) * positive(limit, "time_limit"))
        given = table_array(self._read_table(X, ensure_min_samples=2))
        weights = as_weights(sample_weight, len(given))
        data = self._scale(given, weights, depth=4)
        entries = follow_path(data.X, self._settings(data.X.shape), tol=tol, clock=clock)
        halves = self._judge_halves(data.X, entries, tol, clock)
        self.cv_results_ = tabulate(entries, halves, self.criterion, data.X.shares)
        if weights is not None and weights.has_zeros:
            every = (given - data.mean) * data.unit
            labels = np.stack([entry.split.label(every) > 0.0 for entry in entries])
            self.cv_results_["labels"] = labels.astype(np.int64)
        self.best_index_ = find_best(self.cv_results_)
        self._keep_choice(entries[self.best_index_].split.setting)
        rest = None if limit is None else (clock.left or 0.0) + REFIT * limit
        self._refit(given, data, weights, rest)
        return self

    def _settings(self, shape: tuple[int, ...]) -> list[Setting]:
        """Return the grid for a table of this shape, checked."""
        lams, ridges = default_grid(*shape)
        given = {"lams": lams if self.lams is None else self.lams}
        given["ridges"] = ridges if self.ridges is None else self.ridges
        checks = (("lams", nonnegative), ("ridges", nonnegative), ("nus", in_unit_interval))
        grid: list[list[float]] = []
        for name, check in checks:
            values = np.unique(np.asarray(given.get(name, self.nus)))
            if values.size == 0:
                raise ParameterError(f"{name} is empty; give at least one number")
            grid.append([check(value, name) for value in values])
        return list_settings(*grid)

    def _judge_halves(self, X: Points, entries: list[PathEntry], tol: float, clock: Clock) -> list[list[HeldOut]]:
        """Return what each half says; none where a half would be a single point."""
        rng = np.random.default_rng(choose_seed(self.random_state))
        count = positive_int(self.n_resamples, "n_resamples") if len(X) >= 4 else 0
        halves = draw_halves(len(X), count, rng)
        work = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)
        return list(work(delayed(judge_half)(X, half, entries, tol=tol, clock=clock) for half in halves))

    def _keep_choice(self, chosen: Setting) -> None:
        """Keep the setting chosen, and how often each feature is used there."""
        table, i = self.cv_results_, self.best_index_
        self.best_params_ = dict(table["params"][i])
        self.best_score_ = float(table["mean_score"][i])
        self.lam_, self.ridge_, self.nu_ = chosen
        sparse = (table["param_lam"] > 0.0) & (table["param_ridge"] == chosen.ridge) & (table["param_nu"] == chosen.nu)
        if self.lam_ == 0.0 and sparse.any():
            i = int(np.argmax(np.where(sparse, np.nan_to_num(table["mean_score"], nan=-np.inf), -np.inf)))
        self.selection_frequencies_ = table["selection_frequencies"][i]

    def _refit(self, given: Array, data: ScaledTable, weights: PointWeights | None, seconds: float | None) -> None:
        """Fit the setting chosen, and take its attributes for this estimator's."""
        best = self.best_estimator_ = DiffracClustering(
            **self.best_params_, tol=min(self.tol, 1e-4), max_iter=self.max_iter, time_limit=seconds,
            standardize=self.standardize,
        )  # fmt: skip
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(best, name, getattr(self, name))
        with warnings.catch_warnings(), spend(within(seconds)):
            warnings.simplefilter("ignore", DegenerateDataWarning)
            best._fit_points(given, given, data, weights)
        for name in FROM_BEST:
            setattr(self, name, getattr(best, name))
        for reservation in self.reservations_:
            warnings.warn(str(reservation), DegenerateDataWarning, stacklevel=3)
