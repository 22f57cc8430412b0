"""Clustering into two or more clusters, with certified bounds."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClusterMixin

from diffrac_cvx import rounding as roundings
from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.comparison.structure import structure_test
from diffrac_cvx.errors import DegenerateDataWarning, ParameterError
from diffrac_cvx.estimators.affine import (
    AffineClusterer,
    ScaledTable,
    as_seconds,
    choose_seed,
    optimality_gap,
    require_flag,
    require_one_direction,
)
from diffrac_cvx.estimators.choice import GridSetting, choose_count
from diffrac_cvx.machine.deadlines import Timer, deadline_after, is_late, seconds_left, time_limited
from diffrac_cvx.metrics import adjusted_rand_score
from diffrac_cvx.points.checks import (
    Array,
    PointWeights,
    all_positive_weights,
    as_weights,
    one_of,
    positive_int,
    rows_with_weight,
)
from diffrac_cvx.points.constraints import Chunklets, Constraints, chunklets_of
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.linear_algebra import inverse_or_one, scale_by_sqrt_weights
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.reading import table_array
from diffrac_cvx.points.streamed import is_chunked
from diffrac_cvx.problem.direction_problem import direction_problem
from diffrac_cvx.problem.feature_groups import FeatureGroups, GroupsLike
from diffrac_cvx.problem.formatting import width_of
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalty import GroupWeights, weights_of
from diffrac_cvx.problem.result import Bracket, Progress, Result, Status
from diffrac_cvx.rounding.diagnostics import ONE_CLUSTER_REQUESTED, Diagnostic, find_diagnostics, no_structure, unstable
from diffrac_cvx.rounding.directions import best_direction, oriented_direction, threshold
from diffrac_cvx.rounding.many_clusters import (
    cluster_indices,
    cluster_jointly,
    last_directions,
    scores_of_splits,
    split_repeatedly,
)
from diffrac_cvx.rounding.two_clusters import labels_from_known
from diffrac_cvx.solvers.driver import with_all_points
from diffrac_cvx.solvers.exact.search import optimal_labels
from diffrac_cvx.solvers.factored.sampling import many_rows

MAX_ALTERNATIONS, MAX_STREAMED_ALTERNATIONS = 100, 2  # of directions and labels
ZERO_WEIGHT = 1e-200  # stands for weight 0: negligible next to any positive weight
STRUCTURE_TIME_FRACTION = 0.5  # of the time limit
AUTO = "auto"
MIN_AUTO_POINTS = 6  # of n_clusters="auto"
AUTO_TIME_FRACTION = 0.7  # of the time limit
KMEANS_N_INIT = 10  # for more than two clusters
CLUSTERING_STRATEGIES = ("together", "splits")


class DiffracClustering(ClusterMixin, AffineClusterer):  # type: ignore[misc]
    r"""Cluster points such that affine functions predict the clusters best.

    Solves the relaxation (15), rounds it, computes the direction of the resulting labels,

    .. math::
        \min_v\ \tfrac1n \|\Pi_n y - X v\|_2^2 + \Gamma(v v^\top),

    and alternates between labels and their direction while Eq. (9) decreases.  It does the same from the split of the
    projections by exact 2-means, and keeps the labels of least objective: it never exceeds that of the rounding.  The
    model is an affine function, and ``predict`` on the training data returns ``labels_``, unless there are constraints.

    For more than two clusters the relaxation is the same, see `certify_clusters`.  The strategy "together" runs k-means
    on the rows of X V^(1/2), then alternates between affine functions fitted to the clusters and k-means on the fitted
    values.  The strategy "splits" repeatedly splits the cluster with the largest gain in two.

    Source: Eq. (9), (15); sections 2, 3 and 4.

    Parameters
    ----------
    nu : float
        Weight of the imbalance of the clusters, in [0, 1], by default 1.
    a, c : float or (d,) array, optional
        Square roots of ``ridge`` and ``lam``, as in the paper; if given, they replace these.
    lam : float or (d,) array
        Weight of the squared l1 norm, the paper's lambda: larger values select fewer features; 0 (default) disables
        selection.  On standardised real tables at most about half of the coefficients exceed a thousandth of the
        largest at 0.1, and at most a third at 1; V may still have small entries for the other features.
    ridge : float or (d,) array
        Weight of the ridge: larger values favour directions of large variance.  Zero is the paper's problem, which fits
        noise if there are many features per point; ``make choice`` compares the default, 0.3, with other values, see
        the page on choosing.
    solver : {"auto", "low_rank", "fista", "fista published", "SCS", "CLARABEL"}
        Solver: "auto" is "low_rank", and the last two use CVXPY.  See ``registry.SOLVERS``.
    rounding : {"kmeans_centered", "sign_centered", "sign_leading", "sign_second", "goemans_williamson"}
        Rounding of the relaxation for two clusters.
    n_clusters : int or "auto"
        Number of clusters, by default 2; 1 is accepted for scikit-learn's tools, with a warning.  With "auto" it is
        chosen from 2 to 8 by the prediction strength across half-samples, as by `DiffracClusteringCV`, without
        constraints.
    strategy : {"together", "splits"}
        Strategy for more than two clusters: jointly, or by repeated bisection.
    tol : float
        Absolute tolerance on the duality gap; objective values lie in [0, 1].  With more features than points and an
        l1 penalty, a gap of 10 % of the upper bound also suffices.
    max_iter : int, optional
        Maximum number of iterations of the solver; by default its own.
    time_limit : float, optional
        Time limit in seconds for everything; rounding and directions use what the solver leaves.
    standardize : bool
        Scaling of the features to unit variance, so that the penalty treats them equally.
    groups : mapping of name to columns, list of lists of columns, or (d,) array of labels, optional
        Feature groups, as for `Penalty`: with ``lam`` > 0 groups are selected or excluded as a whole.  Columns are
        given by index or, for a data frame, by name; each belongs to one group.
    group_weights : {"equal", "size"}
        Factors of ``lam`` for the groups: 1, or the number of columns (so that a group costs about as much as its
        columns one by one).
    nonnegative : list of columns, (d,) array of bool, or True, optional
        Columns whose coefficients are constrained to be >= 0: larger values indicate cluster 1.  For two clusters and
        without ``groups`` only.
    random_state : int, RandomState or None
        Seed of the rounding "goemans_williamson" and of k-means for more than two clusters; nothing else is random.
        With None the seed depends on NumPy's global random state, which is not changed.
    test_structure : bool
        Test for group structure (`structure_test`, in at most half of the time limit) and for stability: with a
        tolerance ten times larger or, for more than two clusters, other random initialisations.
        The verdict "none" and unstable clusters are added to ``diagnostics_``.
    prove : bool
        Search for the labels of least objective by `optimal_labels`, until they are certified optimal to within ``tol``
        or the time limit; the better ones of both are ``labels_``.  For two clusters only.
    verbose : bool or callable
        If True, the bounds are written to standard error once a second; a callable receives each `Progress` and stops
        the solver by returning True.

    Attributes
    ----------
    labels_ : (n,) array of int
        Clusters 0 and 1; 1 has the larger projections.  For more than two: 0 to K - 1, ordered along the direction that
        separates their centres most, or in the order of the splits.  If fewer than K clusters are found,
        ``diagnostics_`` contains a warning.
    coef_, intercept_ : (d,) array, float; (K, d) array, (K,) array for more than two clusters
        Direction, in the units of X, and minus the threshold: the decision function of `predict`.  For more than two
        clusters a point belongs to the cluster with the largest value; with "splits" the functions are those of the
        last split of each cluster.
    groups_used_ : tuple of str
        Names of the groups with a nonzero coefficient; without ``groups``, each feature is a group.
    scaled_coef_ : (d,) array or (K, d) array
        Coefficients per standard deviation of each feature, which are comparable between features.  The largest is
        positive for two clusters without sign constraints.  For more, the values of each function have standard
        deviation 1 over the points; with "together" the mean of all functions, which affects no label, is subtracted
        first.  `predict` uses ``coef_``, which is not rescaled.
    splits_ : tuple of BinarySplit
        With "splits", for more than two clusters: the splits in order, which `predict` applies.
    support_ : array of int
        Selected features: indices with a nonzero coefficient.
    lower_bound_, upper_bound_ : float
        Certified bounds on the optimal objective of the relaxation.
    n_clusters_ : int
        Number of clusters requested, or chosen with "auto".
    n_excluded_ : int
        Number of columns excluded as collinear or constant up to rounding; the bounds refer to X without them.
    diagnostics_ : tuple of Diagnostic
        Warnings that the clusters may not be meaningful (one cluster, a tiny cluster, too few points, ...).
    structure_ : StructureTest
        With ``test_structure``: the result of `structure_test`.
    optimal_ : OptimalLabels
        With ``prove``: the result of the search.  Its certificate, if any, is in the units of X: `check_certificate`
        verifies it on the table given to `fit`.  ``lower_bound_`` is then the bound of the search on Eq. (9).
    rounded_labels_, rounded_objective_ : (n,) array of int, float
        With ``prove``: the labels without the search, and an upper bound on their objective.
    label_gap_ : float
        Certified optimality gap of ``labels_``: the objective exceeds that of the best partition into K clusters by at
        most this amount.  The objective is Eq. (9) for two clusters, that of `certify_clusters` for more.  Available
        for all K and n, since the lower bound of the relaxation holds for every K.
    result_ : Result
        Solution of the relaxation.
    n_iter_, n_features_in_ : int
        Iterations of the solver; number of features d.
    feature_names_in_ : (d,) array of str
        Names of the features, if X has names.

    Examples
    --------
    >>> import diffrac_cvx as dc
    >>> planted = dc.datasets.make_planted(100, 5, rng=0)
    >>> model = dc.DiffracClustering().fit(planted.X)
    >>> dc.metrics.clustering_error(planted.y, 2.0 * model.labels_ - 1.0)
    0.0
    """

    coef_: Array
    intercept_: float | Array

    def __init__(
        self,
        *,
        nu: float = 1.0,
        a: float | Array | None = None,
        c: float | Array | None = None,
        lam: float | Array = 0.0,
        ridge: float | Array = 0.3,
        groups: GroupsLike | FeatureGroups | None = None,
        group_weights: GroupWeights = "equal",
        nonnegative: Any = None,
        solver: str = "auto",
        rounding: str = "kmeans_centered",
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        standardize: bool = True,
        random_state: Any = None,
        n_clusters: int | str = 2,
        strategy: str = "together",
        test_structure: bool = False,
        prove: bool = False,
        verbose: bool | Callable[[Progress], object] = False,
    ) -> None:
        self.nu, self.a, self.c, self.lam, self.ridge = nu, a, c, lam, ridge
        self.groups, self.group_weights, self.nonnegative = groups, group_weights, nonnegative
        self.n_clusters, self.strategy, self.verbose = n_clusters, strategy, verbose
        self.test_structure, self.prove = test_structure, prove
        self.solver, self.rounding = solver, rounding
        self.tol, self.max_iter, self.time_limit = tol, max_iter, time_limit
        self.standardize, self.random_state = standardize, random_state

    def fit(
        self,
        X: npt.ArrayLike,
        y: object = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        constraints: Constraints | None = None,
    ) -> Self:
        """Fit the directions and clusters.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
            At least as many points as clusters.  For two clusters a sparse matrix, a dask array and a memory map with
            many rows are streamed; for more they are converted to one array, which has to fit in memory.
        y : ignored
        sample_weight : (n,) array, optional
            Weights of the points, >= 0, of any scale: weight 2 counts as the same point twice, and a point of weight 0
            only receives a label.  For the solvers "low_rank", "SCS" and "CLARABEL".
        constraints : Constraints, optional
            Constraints that ``labels_`` satisfies; `predict` ignores them.  Known labels +1 become label 1, and with
            them the relaxation is rounded by the signs of the products of the rows of F with that of the labelled
            points, whatever ``rounding`` is.  More than two clusters allow only ``must_link`` and ``groups``, and the
            strategy "together".  For the solver "low_rank".

        Raises
        ------
        DataError, ParameterError
            Subclasses of ValueError; the message names the value and the remedy.

        Warns
        -----
        ConvergenceWarning
            If the solver stopped with a duality gap above tol.
        DegenerateDataWarning
            For each of ``diagnostics_``.
        """
        with time_limited(deadline_after(as_seconds(self.time_limit))):
            return self._fit(X, sample_weight, constraints)

    def _fit(self, X: npt.ArrayLike, sample_weight: npt.ArrayLike | None, constraints: Constraints | None) -> Self:
        """Fit the directions and clusters; after the time limit only short, necessary steps are computed."""
        one_of(self.rounding, "rounding", (*roundings.ROUNDINGS, "goemans_williamson"))
        one_of(self.strategy, "strategy", CLUSTERING_STRATEGIES)
        require_flag(self.test_structure, "test_structure")
        require_flag(self.prove, "prove")
        if not isinstance(constraints, Constraints | None):
            kind = type(constraints).__name__
            raise ParameterError(f"constraints is a {kind}; pass dc.Constraints(must_link=..., labels=...)")
        table = self._read_table(X, ensure_min_samples=2)
        chunklets = chunklets_of(constraints, table.shape[0])
        if isinstance(self.n_clusters, str) and self.n_clusters == AUTO:
            K = self._choose_count(table_array(table), as_weights(sample_weight, table.shape[0], min_positive=2))
        else:
            K = positive_int(self.n_clusters, "n_clusters")
        self.n_clusters_ = K
        require_applicable(chunklets, K, self.strategy)
        if table.shape[0] < K:
            n = table.shape[0]
            raise ParameterError(f"n_clusters = {K} is more than the {n} points; reduce n_clusters")
        require_one_direction(self._penalty, K)
        if self.prove and K != 2:
            raise ParameterError(f"prove = True supports two clusters only, not n_clusters = {K}; omit one of them")
        weights = as_weights(sample_weight, table.shape[0], min_positive=max(K, 2))
        plain = K == 2 and weights is None and not chunklets.max_size
        given = table if plain and self._is_streamed(table) else table_array(table)
        return self._fit_points(table, given, self._scale(given, weights, constraints), weights, constraints)

    def _choose_count(self, given: Array, weights: PointWeights | None) -> int:
        """Return the number of clusters of the largest prediction strength."""
        n, penalty, left = len(given), self._penalty, seconds_left()
        if n < MIN_AUTO_POINTS:
            raise ParameterError(f"n_clusters = 'auto' needs at least {MIN_AUTO_POINTS} points, not {n}; give a number")
        if penalty.nonnegative is not None:
            raise ParameterError("nonnegative needs two clusters, not n_clusters = 'auto'; remove it")
        ridge: Any = penalty.ridge  # one for all columns, or one each
        setting = GridSetting(float(penalty.has_l1), ridge, float(self.nu), penalty)
        timer = Timer(None if left is None else AUTO_TIME_FRACTION * left)
        X = self._scale(given, weights, warn=False).X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit with this number repeats the warnings about the table
            return choose_count(X, setting, tol=self.tol, timer=timer, seed=choose_seed(self.random_state))

    def _fit_points(
        self,
        table: Any,
        given: Any,
        data: ScaledTable,
        weights: PointWeights | None,
        constraints: Constraints | None = None,
    ) -> Self:
        """Fit the directions and clusters of a checked table, given as an array unless it is streamed."""
        K = self.n_clusters_
        if self.test_structure:
            limit = None if seconds_left() is None else STRUCTURE_TIME_FRACTION * (seconds_left() or 0.0)
            self.structure_ = structure_test(
                given, nu=self.nu, penalty=self._penalty, n_clusters=K, standardize=self.standardize, time_limit=limit,
                sample_weight=None if weights is None else weights.of_all(), constraints=constraints,
            )  # fmt: skip
        if K > 2 and self.strategy == "splits":
            self._split_repeatedly(rows_with_weight(given, weights), data, K)
        else:
            result = self._solve(data.X, "low_rank")
            if K == 1:
                self.coef_, self.intercept_ = np.zeros(given.shape[1]), 0.0
            elif K == 2:
                self.coef_, self.intercept_ = self._affine_function(data, result)
            else:
                self._cluster_together(data, result, K)
        self.scaled_coef_ = self.coef_ * np.sqrt(data.X.mean_squares()) / data.inverse_scale
        if K > 2:
            self.scaled_coef_ = scale_to_unit_scores(self.scaled_coef_, data.X, center=self.strategy == "together")
        self.support_ = np.flatnonzero(np.any(np.atleast_2d(self.coef_), axis=0))
        self._name_groups(self._penalty)
        values = self._decide(table)
        self.labels_ = constrained_labels(values, chunklets_of(constraints, len(values)), weights)
        labels: Any = rows_with_weight(self.labels_, weights)
        options: dict[str, Any] = {"nu": self.nu, "penalty": self._penalty}
        self.label_gap_ = optimality_gap(data.X, labels, self.result_, max(K, 2), **options)
        if self.prove:
            self._search_optimal(given, data, weights, constraints)
            labels = rows_with_weight(self.labels_, weights)
        options |= {"n_clusters": K, "objective": self.label_gap_ + self.lower_bound_}
        options["names"] = getattr(self, "feature_names_in_", None)
        self.diagnostics_ = find_diagnostics(data.X, labels, self.result_, **options) if K > 1 else ()
        if self.test_structure and K > 1:
            self.diagnostics_ = (*self._structure_diagnostics(given, data, weights, constraints), *self.diagnostics_)
        for diagnostic in self.diagnostics_ if K > 1 else (ONE_CLUSTER_REQUESTED,):
            warnings.warn(str(diagnostic), DegenerateDataWarning, stacklevel=4)
        if weights is not None and weights.has_zeros:  # the result's F needs a row for these points
            problem = direction_problem(data.X, float(self.nu), self._penalty)
            X_all = np.where(data.X.used_columns(), (given - data.mean) * data.inverse_scale, 0.0)
            self.result_ = with_all_points(self.result_, problem, array_points(X_all), weights, constraints)
        return self

    def _search_optimal(
        self, given: Any, data: ScaledTable, weights: PointWeights | None, constraints: Constraints | None
    ) -> None:
        """Search for the optimal labels, with the penalty of the scaled features, and store the better labels."""
        table = table_array(given)
        X = (table - data.mean) * data.inverse_scale
        penalty, verbose = self._penalty, self.verbose
        pair_penalty, timer = weights_of(penalty, X.shape[1]), Timer(None)

        def callback(bounds: Bracket, nodes: int, cuts: int) -> bool:  # noqa: ARG001
            return callable(verbose) and bool(verbose(Progress(nodes, timer.elapsed, *bounds)))

        limits: dict[str, Any] = {"tol": self.tol, "time_limit": seconds_left(), "callback": callback}
        limits |= {"sample_weight": weights, "certificate": pair_penalty.splits_into_blocks}
        found = optimal_labels(X, self.nu, penalty, constraints=constraints, **limits)
        certificate = None if found.certificate is None else found.certificate.in_units(data.inverse_scale, table)
        self.optimal_ = replace(found, certificate=certificate)
        objective, self.lower_bound_ = self.lower_bound_ + self.label_gap_, max(found.lower, self.lower_bound_)
        self.label_gap_ = width_of(self.lower_bound_, min(objective, found.upper))
        self.rounded_labels_, self.rounded_objective_ = self.labels_, objective
        if found.upper >= objective:
            return
        y = found.labels
        if chunklets_of(constraints, len(X)).labeled < 0:
            oriented, _ = oriented_direction(data.X, rows_with_weight(y, weights), pair_penalty)
            agreement = y @ (2.0 * self.labels_ - 1.0)
            y = y * np.sign(agreement or 1.0 if pair_penalty.is_even else oriented @ rows_with_weight(y, weights))
        mean = float(data.X.mean_of(rows_with_weight(y, weights)))
        v = best_direction(data.X, rows_with_weight(y, weights) - mean, pair_penalty)
        self.coef_, self.labels_ = v * data.inverse_scale, (y > 0.0).astype(np.int64)
        self.intercept_ = float((1.0 - self.nu) * mean - self.coef_ @ data.mean)
        self.scaled_coef_ = v * np.sqrt(data.X.mean_squares())
        self.support_ = np.flatnonzero(v)
        self._name_groups(penalty)
        if weights is not None and weights.has_zeros and constraints is None:
            self.labels_ = np.where(weights.mask, self.labels_, self._decide(table) > 0.0).astype(np.int64)

    def _structure_diagnostics(
        self, given: Any, data: ScaledTable, weights: PointWeights | None, constraints: Constraints | None
    ) -> tuple[Diagnostic, ...]:
        """Return the warnings of the structure test and of the test for stability."""
        found = [no_structure(str(self.structure_))] if self.structure_.verdict == "none" else []
        ended = self.result_.status not in (Status.TIME_LIMIT, Status.STOPPED)
        if not ended or is_late() or data.X.unread_bytes:
            return tuple(found)
        changed: dict[str, Any] = (
            {"tol": min(10.0 * self.tol, 1.0)} if self.n_clusters_ == 2 else {"random_state": KMEANS_N_INIT}
        )
        changed |= {
            "groups": self._penalty.groups,
            "nonnegative": self._penalty.nonnegative,
        }  # by index: arrays have no names
        changed |= {"test_structure": False, "prove": False, "verbose": False, "n_clusters": self.n_clusters_}
        other = type(self)(**{**self.get_params(), **changed})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other.fit(given, sample_weight=None if weights is None else weights.of_all(), constraints=constraints)
        words = "a tolerance ten times larger" if self.n_clusters_ == 2 else "other random initialisations"
        diagnostic = unstable(words, adjusted_rand_score(self.labels_, other.labels_))
        return (*found, *([] if diagnostic is None else [diagnostic]))

    def _cluster_together(self, data: ScaledTable, result: Result, K: int) -> None:
        """Store the decision functions of more than two clusters, fitted jointly."""
        weights = weights_of(self._penalty, data.X.shape[1])
        options: dict[str, Any] = {
            "n_init": KMEANS_N_INIT,
            "rng": choose_seed(self.random_state),
            "sample_weight": data.X.weights,
        }
        found = cluster_jointly(data.X.array(), result, K, weights=weights, chunklets=data.X.chunklets, **options)
        self.coef_ = found.coef * data.inverse_scale
        self.intercept_ = found.intercept - self.coef_ @ data.mean

    def _split_repeatedly(self, points: Array, whole: ScaledTable, K: int) -> None:
        """Store the splits of more than two clusters."""
        results: list[Result] = []

        def split_in_two(part: Array, weights: Array | None) -> tuple[Array, float, float] | None:
            if results and not np.ptp(part, axis=0).any():
                return None
            data = self._scale(part, all_positive_weights(weights), warn=False) if results else whole
            with warnings.catch_warnings():
                if results:  # features may be constant in a part
                    warnings.simplefilter("ignore", DegenerateDataWarning)
                results.append(self._relax(data.X, "low_rank", seconds_left()))
                coef, intercept = self._affine_function(data, results[-1])
                labels = np.where(part @ coef + intercept > 0.0, 1.0, -1.0)
                cost = certify_labels(data.X, labels, 0.0, nu=self.nu, penalty=self._penalty).objective
            return (coef, intercept, cost) if np.ptp(labels) > 0.0 else None

        self.splits_ = split_repeatedly(points, K, split_in_two, float(self.nu), whole.X.weights)
        self._store_bounds(results)
        self.coef_, self.intercept_ = last_directions(self.splits_, points.shape[1])

    def _affine_function(self, data: ScaledTable, result: Result) -> tuple[Array, float]:
        """Return coef and intercept of the affine function that splits points in two."""
        X, pair_penalty = data.X, weights_of(self._penalty, data.X.shape[1])
        if has_labels(X):  # least squares on the labels
            labels = labels_from_known(result.F, X.chunklets)
            intercept = float(X.mean_of(labels))
            v = best_direction(X, labels - intercept, pair_penalty)
        else:
            rounded = X.chunklets.assign_labels(self._round(result.factor, X.weights), X.weights)
            projections = X @ oriented_direction(X, rounded, pair_penalty)[1]
            split = X.chunklets.assign_labels(projections - threshold(projections, X.weights), X.weights)
            found = [alternate(X, labels, float(self.nu), pair_penalty) for labels in (rounded, split)]
            v, intercept, _ = min(found, key=lambda one: one[2])
            if pair_penalty.is_even and v[np.argmax(np.abs(v) * np.sqrt(X.mean_squares()))] < 0:
                v, intercept = 0.0 - v, -intercept
        coef = v * data.inverse_scale
        return coef, intercept - float(np.dot(coef, data.mean))

    def _is_streamed(self, X: Any) -> bool:
        """Return whether a table is streamed; CVXPY needs arrays."""
        large = isinstance(X, np.memmap) and many_rows(*X.shape)
        return is_chunked(X) or ((large or hasattr(X, "toarray")) and self.solver in ("auto", "low_rank", "fista"))

    def _decide(self, table: Any) -> Array:
        if self.n_clusters_ > 2 and self.strategy == "splits":
            return scores_of_splits(table_array(table), self.splits_)
        return super()._decide(table)

    def _label(self, values: Array) -> npt.NDArray[np.int64]:
        return cluster_indices(values)

    def _round(self, F: Array, weights: Array | None) -> Array:
        """Return labels in {-1, +1}."""
        if self.rounding in roundings.ROUNDINGS:
            function = roundings.ROUNDINGS[self.rounding]
            if weights is not None and "sample_weight" not in signature(function).parameters:
                raise ParameterError(f"rounding = {self.rounding!r} takes no weights; use 'kmeans_centered'")
            return function(F) if weights is None else function(F, weights)
        return roundings.goemans_williamson(F, rng=choose_seed(self.random_state), sample_weight=weights)


def scale_to_unit_scores(coef: Array, X: Points, *, center: bool) -> Array:
    """Return coefficients (K, d) per standard deviation, rescaled so that the scores have standard deviation 1."""
    coef = coef - coef.mean(axis=0) if center else coef
    scores = scale_by_sqrt_weights(X.array() @ (coef * inverse_or_one(np.sqrt(X.mean_squares()))).T, X.weights)
    return np.asarray(coef * inverse_or_one(np.sqrt(np.mean(scores**2, axis=0)))[:, None])


def has_labels(X: Points) -> bool:
    """Return whether some labels are known."""
    return X.chunklets.labeled >= 0


def alternate(X: Points, labels: Array, nu: float, pair_penalty: PairPenalty) -> tuple[Array, float, float]:
    r"""Alternate between labels and their direction from labels; return direction, intercept and objective, Eq. (9).

    At the direction v of labels of mean m the objective is 1 - (1 - nu) m^2 - (X'y/n)'v, and the signs of
    Xv + (1 - nu) m never increase it.  The last labels are the signs of the affine function that is returned.  Labels
    that would all be equal are not taken: then the threshold is that of 2-means.  Tables whose rows are read again for
    each sum get few steps.
    """
    for _ in range(MAX_STREAMED_ALTERNATIONS if X.is_streamed else MAX_ALTERNATIONS):
        labels, v = oriented_direction(X, labels, pair_penalty)
        projections, mean = X @ v, float(X.mean_of(labels))
        intercept = (1.0 - nu) * mean
        changed = X.chunklets.assign_labels(projections + intercept, X.weights)
        if np.array_equal(changed, labels) or not np.ptp(changed) or is_late():
            break
        labels = changed
    if not np.ptp(changed):
        intercept = -threshold(projections, X.weights)
    product = float(X.mean_of(labels * projections))
    return v, intercept, 1.0 - (1.0 - nu) * mean**2 - product


def require_applicable(chunklets: Chunklets, n_clusters: int, strategy: str) -> None:
    """Raise if the constraints are not available for this number of clusters or strategy."""
    if n_clusters == 2:
        return
    if chunklets.labeled >= 0 or np.any(chunklets.sign < 0.0):
        raise ParameterError(
            f"n_clusters = {n_clusters}: cannot_link and labels of constraints are about two clusters; use must_link "
            "and groups"
        )
    if strategy == "splits" and chunklets.max_size:
        raise ParameterError("strategy = 'splits' takes no constraints for more than two clusters; use 'together'")


def constrained_labels(values: Array, chunklets: Chunklets, weights: PointWeights | None) -> npt.NDArray[np.int64]:
    """Return clusters that satisfy the constraints, from the values of the decision functions, (n,) or (n, K).

    The values of linked points are added; points of weight 0 count only among themselves.
    """
    w = np.ones(len(values))
    if weights is not None:
        w = np.where(weights.mask, w, ZERO_WEIGHT)
        w[weights.mask] = 1.0 if weights.normalized is None else weights.normalized
    if values.ndim == 1:
        return (chunklets.assign_labels(values, w) > 0.0).astype(np.int64)
    clusters = np.argmax(chunklets.signed_sums(w[:, None] * values), axis=1)
    return np.asarray(chunklets.repeat(clusters)).astype(np.int64)
