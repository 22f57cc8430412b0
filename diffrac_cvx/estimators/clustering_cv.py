"""The estimator that chooses lam, ridge, nu and the number of clusters without labels, by a criterion."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from diffrac_cvx.errors import DegenerateDataWarning, ParameterError
from diffrac_cvx.estimators.affine import (
    AffineClusterer,
    ScaledTable,
    choose_seed,
    require_flag,
    require_one_direction,
)
from diffrac_cvx.estimators.choice import (
    SELECTION_CRITERIA,
    UNIT_PENALTY,
    GridSetting,
    HeldOutResult,
    PathEntry,
    SettingCallback,
    default_setting,
    draw_half_samples,
    evaluate_half,
    find_best,
    follow_path,
    list_settings,
    subset_of,
    tabulate,
)
from diffrac_cvx.estimators.clustering import DiffracClustering
from diffrac_cvx.machine.deadlines import Timer, deadline_after, time_limited
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
from diffrac_cvx.problem.named_columns import GroupWeights
from diffrac_cvx.problem.penalties.columns import FeatureGroups, GroupsLike
from diffrac_cvx.problem.penalty import Penalty, suggested_lam
from diffrac_cvx.rounding.diagnostics import ONE_CLUSTER_REQUESTED, points_needed

GRID_LAMS, GRID_RIDGES = (0.0, 0.01, 0.1), (0.1, 0.3, 1.0)
POINTS_FACTOR = 4  # times the points below which noise is fitted perfectly: from there on no ridge is tried too
MAX_POINTS = 10_000  # on which the settings are compared, and at least `ENOUGH` in each half
DEFAULT_LAMS, DEFAULT_RIDGES = (0.0,), (0.3,)  # where numbers of clusters are compared
WIDE_RIDGE, WIDE_LAM_FACTORS = (
    0.3,
    (0.5, 1.0, 2.0),
)  # where there are more features than points; shares of `suggested_lam`
REFIT_TIME_FRACTION = 0.1  # share of the time limit that is kept for the fit of the setting chosen
REFITTED_ATTRIBUTES = (
    "labels_", "coef_", "intercept_", "scaled_coef_", "support_", "lower_bound_", "upper_bound_", "n_excluded_",
    "label_gap_", "diagnostics_", "result_", "n_iter_",
)  # fmt: skip


def default_grid(n: int, d: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the l1 weights and the ridges that are tried on a table of this shape."""
    if d <= n:
        return GRID_LAMS, (0.0, *GRID_RIDGES) if n >= POINTS_FACTOR * points_needed(d) else GRID_RIDGES
    return (0.0, *(factor * suggested_lam(n, d, WIDE_RIDGE) for factor in WIDE_LAM_FACTORS)), (WIDE_RIDGE,)


class DiffracClusteringCV(ClusterMixin, AffineClusterer):  # type: ignore[misc]
    r"""Cluster as `DiffracClustering` does, with lam, ridge, nu and the number of clusters chosen without labels.

    All settings of a grid are solved, each started from the one before, and again on halves of the points, started from
    the solution for all points.  A criterion gives every setting a score, the largest wins, of equal ones the more
    stable, and `DiffracClustering` is fitted there.  A setting whose split is no answer (``diagnostics_``: one
    cluster, a few points, ...) never wins, unless there is no other.  Of a table with very many points the settings
    are compared on a part, drawn at random, and the one chosen is fitted to all.

    The default criterion keeps the default weights unless others are clearly better, so that it differs from
    `DiffracClustering` only where it has a reason.

    Parameters
    ----------
    lams, ridges : sequence of float, optional
        The grid: weights of the squared l1 norm and of the ridge, see `DiffracClustering`.  By default 0, 0.01 and 0.1
        by 0.1, 0.3 and 1, and ridge 0 where the points are at least four times as many as noise in d features can be
        split perfectly, d + d(d-1)/4; where there are more features than points, ridge 0.3 with 0 and with a half, one
        and two times the l1 weight that the guide on wide tables suggests.  Where several numbers of clusters are
        compared it is lam 0 and ridge 0.3 only.
    nus : sequence of float
        The grid: weights of the imbalance.
    criterion : {"gain", "consensus", "stability", "separation", "eigenvalue_ratio", "label_gap"}
        What chooses, as measured in the page on choosing:

        - "gain", the default: the separation below, less that of the setting nearest to the default weights and 0.05;
          0 for that one.  Where the labels are not stable, less than 0.8, or a single column makes the split, it is
          less by 1.  So the default weights are chosen unless others separate clearly better;
        - "consensus": how well the split agrees with those of the other settings, the mean adjusted Rand index; 1 if
          perfectly, 0 if by chance;
        - "stability": how well the split of one half of the points predicts the labels of the points left out, the
          mean adjusted Rand index over ``n_resamples`` halves;
        - "separation": the squared correlation of the labels that a half predicts for the points left out with their
          projections: 0.64 where these are normal, 1 where they take two values only; for more than two clusters the
          share of the labels' variance that the projections explain;
        - "eigenvalue_ratio": minus the ratio of the second eigenvalue of Y to the first;
        - "label_gap": minus the proved distance of the labels from the best ones.
    n_resamples : int
        Halves of the points, in pairs: what one leaves out is the other.
    groups, group_weights, nonnegative
        As for `DiffracClustering`, the same for all settings; groups come in only where a lam is above 0.
    tol : float
        Proved gap at which the solver stops, on the grid and on the halves; values lie in [0, 1].
    n_clusters : int or sequence of int
        Numbers of clusters, at least 2; 1 alone is taken too, and warned of.  Of several, the largest one is taken
        whose *prediction strength* at the best setting is at least 0.8 (Tibshirani and Walther, 2005): of the pairs of
        points of a cluster of one half, the share that the other half puts together, for the cluster with the smallest.
        Where there is none it is the number with the largest.  Whether there is more than one cluster at all is another
        question.
    max_iter : int, optional
        Iterations of the solver for the setting chosen.
    time_limit : float, optional
        Seconds for everything.  Settings and halves that are not reached are left out, see ``cv_results_``.
    refit : bool
        Whether the setting chosen is fitted; without it there are only ``cv_results_`` and what is chosen.
    standardize : bool
        Whether features are brought to unit variance first.
    random_state : int, RandomState or None
        Of the halves.
    n_jobs : int, optional
        Processes for the halves, as in joblib: -1 for all cores.
    verbose : int or callable
        As in joblib: how much is said about the progress over the halves; or what is called with a sentence as each
        setting and each half begins, such as "setting 3 of 9", and ends the search by a true return value.

    Attributes
    ----------
    cv_results_ : dict of arrays
        The table, one entry for each setting that was solved, the default weights first.  ``param_lam``,
        ``param_ridge``, ``param_nu``, ``param_n_clusters`` and ``params``; all criteria, ``mean_score`` for the one
        that chose and ``rank_score``; ``std_stability``; ``prediction_strength``; ``n_resamples``, the halves that were
        solved; ``cost`` of the labels, ``lower_bound``, ``upper_bound``; ``max_column_r2``, how much of a single column
        the labels explain; ``smallest_cluster``, ``diagnostics`` (their kinds), ``labels`` (m, n), ``coef`` (m, d) per
        standard deviation, (m, K, d) or a list of (K, d) for more than two clusters, and ``selection_frequencies``
        (m, d).
    n_settings_ : int
        Settings of the grid; there are fewer in the table where the time ended first.
    best_index_, best_score_ : int, float
        The setting chosen, in this table.
    best_params_ : dict
        It as parameters of `DiffracClustering`.
    best_estimator_ : DiffracClustering
        Fitted there.
    lam_, ridge_, nu_, n_clusters_ : float, int
        It.
    selection_frequencies_ : (d,) array
        Share of the halves whose direction uses a feature, at the chosen ridge and nu: for the lam chosen if it is
        positive, else for the positive lam of the largest score.  Without any l1 part all features are used.
    labels_, coef_, intercept_, scaled_coef_, support_ : arrays
        Of ``best_estimator_``, as are ``lower_bound_``, ``upper_bound_``, ``n_excluded_``, ``label_gap_``,
        ``diagnostics_``, ``result_``, ``n_iter_`` and, with groups, ``groups_used_``.
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
        criterion: str = "gain",
        n_clusters: int | Sequence[int] = 2,
        n_resamples: int = 10,
        groups: GroupsLike | FeatureGroups | None = None,
        group_weights: GroupWeights = "equal",
        nonnegative: Any = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        standardize: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | Callable[[str], object] = 0,
        refit: bool = True,
    ) -> None:
        self.lams, self.ridges, self.nus, self.criterion = lams, ridges, nus, criterion
        self.n_resamples, self.tol, self.max_iter, self.time_limit = n_resamples, tol, max_iter, time_limit
        self.standardize, self.random_state, self.n_jobs, self.verbose = standardize, random_state, n_jobs, verbose
        self.n_clusters, self.refit = n_clusters, refit
        self.groups, self.group_weights, self.nonnegative = groups, group_weights, nonnegative

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
        self._settings((2, 1), UNIT_PENALTY)  # what is wrong with the grid is said before the table is read
        one_of(self.criterion, "criterion", tuple(SELECTION_CRITERIA))
        require_flag(self.refit, "refit")
        tol, limit = positive(self.tol, "tol"), self.time_limit
        fraction = 1.0 - REFIT_TIME_FRACTION if self.refit else 1.0
        timer = Timer(None if limit is None else fraction * positive(limit, "time_limit"))
        counts = self._counts()
        given = table_array(self._read_table(X, ensure_min_samples=max(counts[-1], 2)))
        columns = self._on_columns(UNIT_PENALTY)
        for count in counts:
            require_one_direction(columns, count)
        weights = as_weights(sample_weight, len(given))
        data = self._scale(given, weights, depth=4)
        seed = choose_seed(self.random_state)
        rng = np.random.default_rng(seed)
        points, center = subsample_points(data.X, rng)
        options: dict[str, Any] = {"tol": tol, "timer": timer, "seed": seed}
        callback = self.verbose if callable(self.verbose) else None
        settings = self._settings(data.X.shape, columns)
        self.n_settings_ = len(settings) * len(counts)
        entries = follow_path(points, settings, counts=counts, callback=callback, **options)
        halves = self._evaluate_halves(points, entries, rng, callback, **options)
        self.cv_results_ = tabulate(entries, halves, self.criterion, points.weights)
        if len(points) < len(given):
            X_all = (given - data.mean) * data.inverse_scale - center
            self.cv_results_["labels"] = np.stack([entry.partition.label(X_all) for entry in entries])
        self.best_index_ = find_best(self.cv_results_)
        self._store_choice(entries[self.best_index_].partition.setting)
        if self.refit:
            self._refit(
                given,
                data,
                weights,
                seed,
                None if limit is None else (timer.time_left or 0.0) + REFIT_TIME_FRACTION * limit,
            )
        return self

    def _counts(self) -> tuple[int, ...]:
        """Return the numbers of clusters, checked, in their order."""
        counts = sorted({positive_int(value, "n_clusters") for value in np.ravel(self.n_clusters).tolist()})
        if not counts or (counts[0] == 1 and len(counts) > 1):
            raise ParameterError(f"n_clusters = {self.n_clusters!r} must be a number, or several of at least 2")
        return tuple(counts)

    def _settings(self, shape: tuple[int, ...], columns: Penalty) -> list[GridSetting]:
        """Return the grid for a table of this shape, checked; the setting nearest to the default weights is first."""
        lams, ridges = default_grid(*shape) if len(self._counts()) == 1 else (DEFAULT_LAMS, DEFAULT_RIDGES)
        given = {"lams": lams if self.lams is None else self.lams}
        given["ridges"] = ridges if self.ridges is None else self.ridges
        checks = (("lams", nonnegative), ("ridges", nonnegative), ("nus", in_unit_interval))
        grid: list[list[float]] = []
        for name, check in checks:
            values = np.unique(np.asarray(given.get(name, self.nus)))
            if values.size == 0:
                raise ParameterError(f"{name} is empty; give at least one number")
            grid.append([check(value, name) for value in values])
        settings = [setting._replace(columns=columns) for setting in list_settings(*grid)]
        default = default_setting(settings)
        return [default, *(setting for setting in settings if setting != default)]

    def _evaluate_halves(
        self,
        X: Points,
        entries: list[PathEntry],
        rng: np.random.Generator,
        callback: SettingCallback | None,
        **options: Any,
    ) -> list[list[HeldOutResult]]:
        """Return what each half says; none where a half would be a single point."""
        count = positive_int(self.n_resamples, "n_resamples") if len(X) >= 4 else 0
        halves = draw_half_samples(len(X), count, rng)
        parallel = Parallel(
            n_jobs=self.n_jobs, verbose=0 if callable(self.verbose) else self.verbose, return_as="generator"
        )
        found: list[list[HeldOutResult]] = []
        for one in parallel(delayed(evaluate_half)(X, half, entries, **options) for half in halves):
            found.append(one)
            if (
                callback is not None
                and len(found) < count
                and callback(f"half {len(found) + 1} of {count} of the points")
            ):
                break
        return found

    def _store_choice(self, setting: GridSetting) -> None:
        """Keep the setting chosen, and how often each feature is used there."""
        table, i = self.cv_results_, self.best_index_
        self.best_params_ = dict(table["params"][i])
        self.best_score_ = float(table["mean_score"][i])
        self.lam_, self.ridge_, self.nu_ = setting.lam, setting.ridge, setting.nu
        self.n_clusters_ = int(table["param_n_clusters"][i])
        sparse = (
            (table["param_lam"] > 0.0) & (table["param_ridge"] == setting.ridge) & (table["param_nu"] == setting.nu)
        )
        if self.lam_ == 0.0 and sparse.any():
            i = int(np.argmax(np.where(sparse, np.nan_to_num(table["mean_score"], nan=-np.inf), -np.inf)))
        self.selection_frequencies_ = table["selection_frequencies"][i]

    def _refit(
        self, given: Array, data: ScaledTable, weights: PointWeights | None, seed: int, time_limit: float | None
    ) -> None:
        """Fit the setting chosen, and take its attributes for this estimator's."""
        best = self.best_estimator_ = DiffracClustering(
            **self.best_params_, tol=min(self.tol, 1e-4), max_iter=self.max_iter, time_limit=time_limit,
            standardize=self.standardize, random_state=seed,
            groups=self.groups, group_weights=self.group_weights, nonnegative=self.nonnegative,
        )  # fmt: skip
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(best, name, getattr(self, name))
        with warnings.catch_warnings(), time_limited(deadline_after(time_limit)):
            warnings.simplefilter("ignore", DegenerateDataWarning)
            best._fit_points(given, given, data, weights)
        for name in (*REFITTED_ATTRIBUTES, *(("groups_used_",) if self.groups is not None else ())):
            setattr(self, name, getattr(best, name))
        for diagnostic in self.diagnostics_ if self.n_clusters_ > 1 else (ONE_CLUSTER_REQUESTED,):
            warnings.warn(str(diagnostic), DegenerateDataWarning, stacklevel=3)

    def score(self, X: npt.ArrayLike, y: object = None) -> float:
        """Return how well the clusters are separated, as `DiffracClustering.score` does."""
        check_is_fitted(self)
        return self.best_estimator_.score(X)

    def _label(self, values: Array) -> npt.NDArray[np.int64]:
        return self.best_estimator_._label(values)


def subsample_points(X: Points, rng: np.random.Generator) -> tuple[Points, Array]:
    """Return the points on which settings are compared, all or some drawn at random, and where their mean is."""
    n, d = X.shape
    max_points = max(MAX_POINTS, int(2 * POINTS_FACTOR * points_needed(d)))
    if n <= max_points:
        return X, np.zeros(d)
    return subset_of(X, np.sort(rng.choice(n, max_points, replace=False)))
