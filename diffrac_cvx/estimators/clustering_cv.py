"""Estimator that chooses lam, ridge, nu and the number of clusters without labels."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClusterMixin

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.estimators.affine import AffineClusterer, choose_seed, limited, require_one_direction
from diffrac_cvx.estimators.choice import (
    POINTS_FACTOR,
    SELECTION_CRITERIA,
    UNIT_PENALTY,
    GridSetting,
    compare_settings,
    default_setting,
    points_needed,
)
from diffrac_cvx.estimators.clustering import DiffracClustering
from diffrac_cvx.machine.deadlines import deadline_after, seconds_left, time_limited
from diffrac_cvx.points.checks import (
    array_of,
    as_weights,
    in_unit_interval,
    nonnegative,
    one_of,
    positive,
    positive_int,
    repetitions,
)
from diffrac_cvx.points.constraints import Constraints, chunklets_of, require_numbered
from diffrac_cvx.points.reading import table_array
from diffrac_cvx.problem.feature_groups import FeatureGroups, GroupsLike
from diffrac_cvx.problem.penalty import GroupWeights, Penalty, suggested_lam

GRID_LAMS, GRID_RIDGES = (0.0, 0.01, 0.1), (0.1, 0.3, 1.0)
DEFAULT_LAMS, DEFAULT_RIDGES = (0.0,), (0.3,)  # grid if several numbers of clusters are compared
WIDE_RIDGE, WIDE_LAM_FACTORS = 0.3, (0.5, 1.0, 2.0)  # with more features than points; multiples of `suggested_lam`
REFIT_TIME_FRACTION = 0.1  # of the time limit, reserved for the fit of the chosen setting
REFITTED_ATTRIBUTES = (
    "labels_", "coef_", "intercept_", "scaled_coef_", "support_", "lower_bound_", "upper_bound_", "n_excluded_",
    "label_gap_", "diagnostics_", "result_", "n_iter_", "groups_used_",
)  # fmt: skip


def default_grid(n: int, d: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the default l1 weights and ridges for a table of this shape."""
    if d <= n:
        return GRID_LAMS, (0.0, *GRID_RIDGES) if n >= POINTS_FACTOR * points_needed(d) else GRID_RIDGES
    return (0.0, *(factor * suggested_lam(n, d, WIDE_RIDGE) for factor in WIDE_LAM_FACTORS)), (WIDE_RIDGE,)


class DiffracClusteringCV(ClusterMixin, AffineClusterer):  # type: ignore[misc]
    r"""Fit `DiffracClustering` with lam, ridge, nu and the number of clusters chosen without labels.

    All settings of a grid are solved, each warm-started from its predecessor, and again on half-samples, warm-started
    from the solution for all points.  The setting with the largest score of a criterion wins (ties go to the more
    stable setting), and `DiffracClustering` is fitted with it.  Settings with an empty or tiny cluster
    (``diagnostics_``) win only if all settings have one.  Very long tables are subsampled for the comparison of
    settings; the final fit uses all points.

    The default criterion keeps the default weights unless others are clearly better.

    Parameters
    ----------
    lams, ridges : sequence of float, optional
        Grid of weights of the squared l1 norm and of the ridge, see `DiffracClustering`.  By default lam is 0, 0.01 and
        0.1, and ridge is 0.1, 0.3 and 1.  Ridge 0 is added if n >= 4 (d + d(d-1)/4), four times the number of points at
        which pure noise can still be split perfectly.  With more features than points ridge is 0.3, and lam is 0 and
        0.5, 1 and 2 times the value suggested in the guide on wide tables.  For several numbers of clusters: lam 0 and
        ridge 0.3 only.
    nus : sequence of float
        Grid of weights of the imbalance, by default 1 only.
    criterion : {"gain", "stability", "separation"}
        Criterion, see the guide on choosing:

        - "gain" (default): the separation below, minus that of the setting nearest to the default weights, minus 0.05;
          0 for that setting.  It is reduced by 1 if the stability is below 0.8 or a single column determines the
          clusters.  So the default weights are chosen unless others separate the clusters clearly better;
        - "stability": mean adjusted Rand index, over ``n_resamples`` half-samples, of the labels predicted for the
          held-out points and those from all points;
        - "separation": squared correlation of the labels predicted for the held-out points with their projections: 0.64
          for normal projections, 1 for two-valued ones; for more than two clusters the fraction of the labels' variance
          that the projections explain.
    n_resamples : int
        Number of half-samples, in complementary pairs, by default 10.
    groups, group_weights, nonnegative
        As for `DiffracClustering`, the same for all settings; groups only matter if lam > 0.
    tol : float
        Absolute tolerance on the duality gap, on the grid and on the half-samples.
    n_clusters : int or sequence of int
        Number or numbers of clusters, at least 2 (or 1 alone).  Of several, the largest with a *prediction strength* of
        at least 0.8 at its best setting is chosen, or if there is none the number with the largest prediction strength
        (Tibshirani and Walther, 2005).  It is the minimum, over the clusters of one half-sample, of the fraction of
        pairs of points that are also together in the clusters predicted from the other half-sample.  It does not test
        whether there is more than one cluster.
    max_iter : int, optional
        Maximum number of iterations of the solver for the chosen setting.
    time_limit : float, optional
        Time limit of `fit` in seconds.  ``cv_results_`` lacks settings and half-samples that were not reached.
    standardize : bool
        Whether features are scaled to unit variance first; default True.
    random_state : int, RandomState or None
        Seed of the half-samples.

    Attributes
    ----------
    cv_results_ : dict of arrays
        Table with one entry for each solved setting, the default weights first.  ``param_lam``, ``param_ridge``,
        ``param_nu``, ``param_n_clusters`` and ``params``; all criteria, ``mean_score`` (the criterion used) and
        ``rank_score``; ``prediction_strength``; ``n_resamples``, the number of solved half-samples;
        ``cost`` of the labels, ``lower_bound``, ``upper_bound``, ``n_excluded``; ``column_share``, the largest fraction
        of the variance of a column that the labels explain; ``diagnostics`` (their codes),
        ``labels`` (m, n), ``coef`` (m, d) per standard deviation, (m, K, d) or a list of (K, d) for more than two
        clusters, and ``selection_frequencies`` (m, d).
    n_settings_ : int
        Number of settings of the grid; the table has fewer if the time limit was reached.
    best_index_, best_score_ : int, float
        Index and score of the chosen setting in this table; the score may be NaN if the time limit was reached.
    best_params_ : dict
        The chosen setting as parameters of `DiffracClustering`.
    best_estimator_ : DiffracClustering
        Estimator fitted at the chosen setting.
    lam_, ridge_, nu_, n_clusters_ : float, int
        The chosen setting.
    selection_frequencies_ : (d,) array
        Fraction of the half-samples that select each feature at the chosen setting; without an l1 penalty all features
        are selected.  ``cv_results_`` contains the frequencies of the other settings.
    labels_, coef_, intercept_, scaled_coef_, support_ : arrays
        Those of ``best_estimator_``; also ``lower_bound_``, ``upper_bound_``, ``n_excluded_``, ``label_gap_``,
        ``diagnostics_``, ``result_``, ``n_iter_`` and ``groups_used_``.
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
        *,
        lams: Sequence[float] | None = None,
        ridges: Sequence[float] | None = None,
        nus: Sequence[float] = (1.0,),
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
    ) -> None:
        self.lams, self.ridges, self.nus, self.criterion = lams, ridges, nus, criterion
        self.n_resamples, self.tol, self.max_iter, self.time_limit = n_resamples, tol, max_iter, time_limit
        self.n_clusters, self.standardize = n_clusters, standardize
        self.random_state = random_state
        self.groups, self.group_weights, self.nonnegative = groups, group_weights, nonnegative

    @limited
    def fit(
        self,
        X: npt.ArrayLike,
        y: object = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
    ) -> Self:
        """Solve the grid, choose a setting and fit it.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
            At least two points; sparse matrices are converted to dense.
        y : ignored
        sample_weight : (n,) array, optional
            Weights of the points, as for `DiffracClustering`.  Half-samples consist of rows: a point of weight 2 is in
            one of two complementary halves, whereas two equal rows may be in different halves.
        constraints : Constraints, optional
            Constraints on rows, as for `DiffracClustering.fit`.  The final fit satisfies them; the comparison of the
            settings ignores them.

        Errors and warnings are those of `DiffracClustering.fit` at the chosen setting.
        """
        self._settings((2, 1), UNIT_PENALTY)  # checks the grid before the table is read
        one_of(self.criterion, "criterion", tuple(SELECTION_CRITERIA))
        tol, counts = positive(self.tol, "tol"), self._counts()
        given = table_array(self._read_table(X, ensure_min_samples=max(counts[-1], 2)))
        columns = self._on_columns(UNIT_PENALTY)
        require_numbered(constraints, self)
        chunklets_of(constraints, len(given))  # raises an error if the constraints do not fit
        for count in counts:
            require_one_direction(columns, count)
        data = self._scale(given, as_weights(sample_weight, len(given)), warn=False)
        settings, seed = self._settings(data.X.shape, columns), choose_seed(self.random_state)
        self.n_settings_ = len(settings) * len(counts)
        options: dict[str, Any] = {"criterion": self.criterion, "tol": tol, "seed": seed}
        options["n_resamples"] = repetitions(self.n_resamples, "n_resamples")
        options["X_all"] = (given - data.mean) * data.inverse_scale
        with time_limited(deadline_after(seconds_left(1.0 - REFIT_TIME_FRACTION))):
            found, self.cv_results_ = compare_settings(data.X, settings, counts, **options)
        table = self.cv_results_
        i = self.best_index_ = int(np.argmin(table["rank_score"]))
        self.best_params_, self.best_score_ = dict(table["params"][i]), float(table["mean_score"][i])
        self.lam_, self.ridge_, self.nu_, _ = found[i].setting
        self.n_clusters_, self.selection_frequencies_ = found[i].n_clusters, table["selection_frequencies"][i]
        given_parameters = ("max_iter", "standardize", "groups", "group_weights", "nonnegative")
        parameters = {name: getattr(self, name) for name in given_parameters}
        parameters |= {"tol": min(tol, 1e-4), "time_limit": seconds_left(), "random_state": seed}
        parameters |= {"n_clusters": self.n_clusters_, **self.best_params_}
        best = self.best_estimator_ = DiffracClustering(**parameters)
        best.fit(X, sample_weight=sample_weight, constraints=constraints)
        for name in REFITTED_ATTRIBUTES:
            setattr(self, name, getattr(best, name))
        return self

    def _counts(self) -> tuple[int, ...]:
        """Return the checked and sorted numbers of clusters."""
        counts = sorted({positive_int(value, "n_clusters") for value in array_of(self.n_clusters).ravel().tolist()})
        if not counts or (counts[0] == 1 and len(counts) > 1):
            raise ParameterError(f"n_clusters = {self.n_clusters!r} must be an integer, or several integers >= 2.")
        return tuple(counts)

    def _settings(self, shape: tuple[int, ...], columns: Penalty) -> list[GridSetting]:
        """Return the checked grid for a table of this shape, the setting nearest to the default weights first."""
        lams, ridges = default_grid(*shape) if len(self._counts()) == 1 else (DEFAULT_LAMS, DEFAULT_RIDGES)
        given = (
            ("lams", lams if self.lams is None else self.lams, nonnegative),
            ("ridges", ridges if self.ridges is None else self.ridges, nonnegative),
            ("nus", self.nus, in_unit_interval),
        )
        down: list[list[float]] = []  # in solution order: large weights first, neighbours similar, for warm starts
        for name, values, check in given:
            distinct = np.unique([check(value, name) for value in array_of(values).ravel().tolist()])
            if distinct.size == 0:
                raise ParameterError(f"{name} is empty. Give at least one number.")
            down.append(distinct.tolist()[::-1])
        settings = [GridSetting(lam, ridge, nu, columns) for nu, ridge, lam in product(*down[::-1])]
        default = default_setting(settings)
        return [default, *(setting for setting in settings if setting != default)]
