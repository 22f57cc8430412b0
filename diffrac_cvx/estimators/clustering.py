"""Clustering into two or more clusters, with certified bounds."""

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClusterMixin

from diffrac_cvx.comparison.structure import structure_test
from diffrac_cvx.errors import DegenerateDataWarning, ParameterError
from diffrac_cvx.estimators.affine import (
    AffineClusterer,
    ScaledTable,
    bound_of_clusters,
    choose_seed,
    limited,
    optimality_gap,
    require_one_direction,
)
from diffrac_cvx.estimators.choice import GridSetting, compare_settings
from diffrac_cvx.machine.deadlines import Timer, deadline_after, seconds_left, time_limited
from diffrac_cvx.machine.work import work_done
from diffrac_cvx.points.checks import (
    Array,
    PointWeights,
    as_weights,
    one_of,
    positive_int,
    require_flag,
    rows_with_weight,
)
from diffrac_cvx.points.constraints import Chunklets, Constraints, chunklets_of, require_numbered
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.reading import is_out_of_core, many_rows, table_array
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.feature_groups import FeatureGroups, GroupsLike
from diffrac_cvx.problem.formatting import width_of
from diffrac_cvx.problem.penalty import GroupWeights, Penalty, weights_of
from diffrac_cvx.problem.result import Bracket, Progress, Result
from diffrac_cvx.registry import SOLVERS
from diffrac_cvx.rounding.diagnostics import Diagnostic, find_diagnostics
from diffrac_cvx.rounding.directions import LabelRegression, best_affine_function
from diffrac_cvx.rounding.many_clusters import cluster_jointly
from diffrac_cvx.solvers.exact.portfolio import optimal_labels

ZERO_WEIGHT = 1e-200  # stands for weight 0: negligible next to any positive weight
STRUCTURE_TIME_FRACTION = 0.5  # of the time limit
AUTO = "auto"
MIN_AUTO_POINTS, MAX_AUTO_CLUSTERS, N_HALVES = 6, 8, 6  # of n_clusters="auto"
AUTO_TIME_FRACTION = 0.7  # of the time limit
ROWS_WORK = 1e11  # operations of the search for labels that satisfy linear constraints, without prove


class DiffracClustering(ClusterMixin, AffineClusterer):  # type: ignore[misc]
    r"""Cluster points so that affine functions predict the clusters best.

    Solves the relaxation (15), rounds it, computes the direction of the resulting labels,

    .. math::
        \min_v\ \tfrac1n \|\Pi_n y - X v\|_2^2 + \Gamma(v v^\top),

    and alternates between labels and their direction while Eq. (9) decreases.  It repeats this from the exact 2-means
    split of the projections, and keeps the labels with the smallest objective, which never exceeds that of the
    rounding.  The model is an affine function, and ``predict`` on the training data returns ``labels_``, unless there
    are constraints.

    For more than two clusters the relaxation is the same, see `certify_clusters`.  k-means clusters the rows of X
    V^(1/2); then fits of affine functions to the clusters alternate with k-means on the fitted values.

    Source: Eq. (9), (15); sections 2, 3 and 4.

    Parameters
    ----------
    nu : float
        Weight of the imbalance of the clusters, in [0, 1], by default 1.
    lam : float or (d,) array
        Weight of the squared l1 norm, the paper's lambda: larger values select fewer features; 0 (default) disables
        selection.  On standardised real tables, at most about half of the coefficients exceed a thousandth of the
        largest if lam is 0.1, and at most a third if it is 1; V may still have small entries for the other features.
    ridge : float or (d,) array
        Weight of the ridge: larger values favour directions of large variance.  Zero is the paper's problem, which fits
        noise if there are many features per point; ``make choice`` compares the default, 0.3, with other values, see
        the guide on choosing.
    solver : {"low_rank", "fista", "fista published"}
        Solver, see ``registry.SOLVERS``; `solve` uses those of CVXPY.
    n_clusters : int or "auto"
        Number of clusters, by default 2; 1 is accepted for scikit-learn's tools, with a warning.  With "auto" it is
        chosen from 2 to 8 by the prediction strength across half-samples, as by `DiffracClusteringCV`, without
        constraints.  Half-samples may reproduce clusters that no gap separates, so this choice and the structure test
        may disagree; only the structure test is evidence for groups.
    tol : float
        Absolute tolerance on the duality gap; objective values lie in [0, 1].  With more features than points and an
        l1 penalty, a gap of 10 % of the upper bound also suffices.
    max_iter : int, optional
        Maximum number of iterations of the solver; by default its own.
    time_limit : float, optional
        Time limit of `fit` in seconds; rounding and directions use the time that the solver leaves.
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
        Seed of k-means for more than two clusters; nothing else is random.  With None the seed depends on NumPy's
        global random state, which is not changed.
    test_structure : bool
        Test for group structure by `structure_test`, in at most half of the time limit.  The verdict "not separated" is
        added to ``diagnostics_``.
    unequal : bool
        Return the sides of the gap that the structure test finds if the split with the weights given does not show it
        and 8 to 35 % of the rows are on one side.  It needs ``test_structure`` and two clusters; with an l1 penalty,
        sign constraints, ``constraints`` or ``prove`` it has no effect.  ``make unequal`` measures the gain.
    prove : bool
        Search for the labels of smallest objective by `optimal_labels`, until they are certified optimal to within
        ``tol`` or the time limit is reached; ``labels_`` are the better of these and the rounded ones.  For two
        clusters only.  With bags, order, sizes or rows in ``constraints`` there is always a search; without ``prove``
        it does a fixed amount of work.
    callback : callable, optional
        Called with each `Progress` of the solver, for example ``print``; a true value stops it.

    Attributes
    ----------
    labels_ : (n,) array of int
        Clusters 0 and 1, where 1 has the larger projections.  For more than two, clusters 0 to K - 1, ordered along the
        direction that separates their centres most.  If fewer than K clusters are found, ``diagnostics_`` contains a
        warning.
    coef_, intercept_ : (d,) array, float; (K, d) array, (K,) array for more than two clusters
        Direction, in the units of X, and minus the threshold: the decision function of `predict`.  For more than two
        clusters a point belongs to the cluster with the largest value.
    groups_used_ : tuple of str
        Names of the groups with a nonzero coefficient; without ``groups``, each feature is a group.
    scaled_coef_ : (d,) array or (K, d) array
        Coefficients per standard deviation of each feature, which are comparable between features.  The largest is
        positive for two clusters without sign constraints.  For more, the mean of all functions, which affects no
        label, is subtracted, and the values of each function are scaled to standard deviation 1 over the points.
        `predict` uses ``coef_``, which is not rescaled.
    support_ : array of int
        Selected features: indices with a nonzero coefficient.
    lower_bound_, upper_bound_ : float
        Certified bounds on the optimal objective of the relaxation.  For more than two clusters, at most 300 points and
        no other penalty than a ridge, the lower bound is that of a tighter relaxation, of partitions into K clusters.
    n_clusters_ : int
        Number of clusters, as requested or as chosen with "auto".
    n_excluded_ : int
        Number of columns excluded as collinear or constant up to rounding; the bounds refer to X without them.
    diagnostics_ : tuple of Diagnostic
        Warnings that the clusters may not be meaningful: an empty or tiny cluster, a weak lower bound, no gap between
        groups, or a number of clusters chosen without a test of structure.
    structure_ : StructureTest
        With ``test_structure``: the result of `structure_test`.
    is_cut_at_gap_ : bool
        Whether ``labels_`` are the sides of the gap that the structure test found, because of ``unequal``.
    optimal_ : OptimalLabels
        With ``prove``, or bags, order, sizes or rows in ``constraints``: the result of the search.  Its certificate, if
        any, is in the units of X: `check_certificate` verifies it on the table given to `fit`.  ``lower_bound_`` is
        then the bound of the search on Eq. (9).
    rounded_labels_, rounded_objective_ : (n,) array of int, float
        With ``optimal_``: the labels without the search, which may violate bags, order, sizes and rows, and an upper
        bound on their objective.
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
        lam: float | Array = 0.0,
        ridge: float | Array = 0.3,
        groups: GroupsLike | FeatureGroups | None = None,
        group_weights: GroupWeights = "equal",
        nonnegative: Any = None,
        solver: str = "low_rank",
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        standardize: bool = True,
        random_state: Any = None,
        n_clusters: int | str = 2,
        test_structure: bool = False,
        unequal: bool = True,
        prove: bool = False,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        self.nu, self.lam, self.ridge = nu, lam, ridge
        self.groups, self.group_weights, self.nonnegative = groups, group_weights, nonnegative
        self.n_clusters, self.test_structure, self.unequal, self.prove = n_clusters, test_structure, unequal, prove
        self.solver, self.tol, self.max_iter, self.time_limit = solver, tol, max_iter, time_limit
        self.standardize, self.random_state, self.callback = standardize, random_state, callback

    @limited
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
        X : (n, d) array, data frame, sparse matrix, memory map, dask array or table that supports only slicing
            At least as many points as clusters.  For two clusters a sparse matrix is streamed, and so are the last
            three types if they have many rows; for more clusters they are converted to an array, which must fit in
            memory.
        y : ignored
        sample_weight : (n,) array, optional
            Weights of the points, >= 0, of any scale: weight 2 counts as the same point twice, and a point of weight 0
            only receives a label.  The steps of the solver "fista published" depend on the number of rows, so that its
            solution is that of repeated points only to within tol.
        constraints : Constraints, optional
            Constraints that ``labels_`` satisfies; `predict` ignores them.  They refer to the rows of X: for a fold of
            a table pass ``constraints.take(rows)``, see ``n_points`` of `Constraints`.  Known labels +1 become label 1;
            the relaxation is then rounded by the signs of the products of the rows of F with the row of the labelled
            points.  More than two clusters allow only ``must_link`` and ``groups``.

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
        require_flag(self.test_structure, "test_structure")
        require_flag(self.unequal, "unequal")
        require_flag(self.prove, "prove")
        one_of(self.solver, "solver", tuple(SOLVERS))
        require_numbered(constraints, self)
        table = self._read_table(X, ensure_min_samples=2)
        n, given_rows = table.shape[0], constraints is not None and constraints.are_linear
        pairs = constraints.without_linear if constraints is not None and given_rows else constraints
        chunklets = chunklets_of(pairs, n)
        if constraints is not None:
            constraints.require_points(n)
        if isinstance(self.n_clusters, str) and self.n_clusters == AUTO:
            K = self._choose_count(table_array(table), as_weights(sample_weight, n, min_positive=2))
        else:
            K = positive_int(self.n_clusters, "n_clusters")
        self.n_clusters_ = K
        if K != 2 and (chunklets.has_known_labels or np.any(chunklets.sign < 0.0)):
            raise ParameterError(
                f"n_clusters = {K}: cannot_link and labels of constraints are about two clusters. Use must_link and "
                "groups."
            )
        require_one_direction(self._penalty, K)
        if n < K:
            raise ParameterError(f"n_clusters = {K} is more than the {n} points. Reduce n_clusters.")
        if given_rows and K != 2:
            raise ParameterError(f"n_clusters = {K}: bags, order, sizes and rows are about two clusters. Remove them.")
        if self.prove and K != 2:
            raise ParameterError(f"prove = True supports two clusters only, not n_clusters = {K}. Omit one of them.")
        weights = as_weights(sample_weight, n, min_positive=max(K, 2))
        streamed = hasattr(table, "toarray") or (is_out_of_core(table) and many_rows(*table.shape))
        plain = K == 2 and weights is None and not chunklets.max_size and self.solver in ("low_rank", "fista")
        given = table if plain and streamed else table_array(table)
        problem: dict[str, Any] = {
            "sample_weight": None if weights is None else weights.of_all(), "constraints": pairs,
        }  # fmt: skip
        if self.test_structure:
            self.structure_ = structure_test(
                given, nu=self.nu, penalty=self._penalty, n_clusters=K, standardize=self.standardize,
                time_limit=seconds_left(STRUCTURE_TIME_FRACTION), **problem,
            )  # fmt: skip
        data = self._scale(given, weights, pairs)
        result = self._relax(data.X)
        self._store_bounds(result)
        self._store_functions(*self._find_functions(data.X, result, K), data)
        self.is_cut_at_gap_ = self.unequal and constraints is None and not self.prove and self._is_better_cut_at_gap(K)
        if self.is_cut_at_gap_:
            self._store_functions(*self._function_of_gap(data), data)
        if K > 2:  # centred, and scaled so that scores have standard deviation 1
            coef = self.scaled_coef_ - self.scaled_coef_.mean(axis=0)
            scores = data.X.array() @ (coef * inverse_or_one(np.sqrt(data.X.mean_squares()))).T
            deviations = np.sqrt(data.X.mean_of(scores**2))
            self.scaled_coef_ = coef * inverse_or_one(deviations)[:, None]
        self.labels_ = constrained_labels(self._decide(table), chunklets, weights)
        labels: Any = rows_with_weight(self.labels_, weights)
        options: dict[str, Any] = {"nu": self.nu, "penalty": self._penalty}
        self.lower_bound_ = bound_of_clusters(data.X, result.lower, K, **options)
        bound: Any = self.lower_bound_ if K > 2 else result
        self.label_gap_ = optimality_gap(data.X, labels, bound, max(K, 2), **options)
        if self.prove or given_rows:
            self._search_optimal(given, data, weights, constraints)
            labels = rows_with_weight(self.labels_, weights)
        costs = {"objective": self.label_gap_ + self.lower_bound_, "lower": self.lower_bound_}
        self.diagnostics_ = find_diagnostics(data.X, labels, result, n_clusters=K, **costs) if K > 1 else ()
        if self.test_structure and K > 1 and self.structure_.verdict == "not separated":
            self.diagnostics_ = (self._not_separated(), *self.diagnostics_)
        if not self.test_structure and K > 1 and isinstance(self.n_clusters, str):
            message = f"n_clusters='auto' names the {K} clusters that half-samples reproduce, which needs no groups."
            untested = Diagnostic("not tested", message, "Pass test_structure=True to test for groups.")
            self.diagnostics_ = (untested, *self.diagnostics_)
        for diagnostic in self.diagnostics_:
            warnings.warn(str(diagnostic), DegenerateDataWarning, stacklevel=3)
        self.result_ = self._with_all_points(result, given, data, weights, pairs)
        return self

    def _choose_count(self, given: Array, weights: PointWeights | None) -> int:
        """Return the number of clusters chosen by prediction strength."""
        n, penalty = len(given), self._penalty
        if n < MIN_AUTO_POINTS:
            raise ParameterError(f"n_clusters = 'auto' needs {MIN_AUTO_POINTS} points or more, not {n}. Give a number.")
        if penalty.nonnegative is not None:
            raise ParameterError("nonnegative needs two clusters, not n_clusters = 'auto'. Remove it.")
        ridge: Any = penalty.ridge  # one number, or one per column
        setting = GridSetting(float(penalty.has_l1), ridge, float(self.nu), penalty)
        X, counts = self._scale(given, weights, warn=False).X, range(2, min(MAX_AUTO_CLUSTERS, n // 2) + 1)
        options: dict[str, Any] = {"criterion": "gain", "n_resamples": N_HALVES, "seed": choose_seed(self.random_state)}
        with warnings.catch_warnings(), time_limited(deadline_after(seconds_left(AUTO_TIME_FRACTION))):
            warnings.simplefilter("ignore")  # the final fit repeats the warnings about the table
            table = compare_settings(X, [setting], counts, tol=self.tol, **options)[1]
        return int(table["param_n_clusters"][np.argmin(table["rank_score"])])

    def _search_optimal(
        self, given: Any, data: ScaledTable, weights: PointWeights | None, constraints: Constraints | None
    ) -> None:
        """Search for the optimal labels, with the penalty of the scaled features, and store the better labels."""
        table, penalty, report = table_array(given), self._penalty, self.callback
        given_rows, end = constraints is not None and constraints.are_linear, work_done() + ROWS_WORK
        pair_penalty, timer = weights_of(penalty, table.shape[1]), Timer(None)
        X = table
        if penalty.groups is None:  # in the user's units, to which the certificate refers
            a, c = penalty.weights(table.shape[1])
            penalty = Penalty(a / data.inverse_scale, c / data.inverse_scale, nonnegative=penalty.nonnegative)
        else:
            X = (table - data.mean) * data.inverse_scale

        def callback(bounds: Bracket, nodes: int, cuts: int) -> bool:  # noqa: ARG001
            is_asked = report is not None and bool(report(Progress(nodes, timer.elapsed, *bounds)))
            return is_asked or (not self.prove and work_done() > end)

        limits: dict[str, Any] = {"tol": self.tol, "time_limit": seconds_left(), "callback": callback}
        limits |= {"sample_weight": weights, "constraints": constraints}
        self.optimal_ = found = optimal_labels(X, self.nu, penalty, **limits)
        objective, self.lower_bound_ = self.lower_bound_ + self.label_gap_, max(found.lower, self.lower_bound_)
        self.label_gap_ = width_of(self.lower_bound_, min(objective, found.upper))
        self.rounded_labels_, self.rounded_objective_ = self.labels_, objective
        if given_rows:  # the labels without the search may violate these
            self.label_gap_ = width_of(self.lower_bound_, found.upper)
        elif found.upper >= objective:
            return
        y, regression = found.labels, LabelRegression(data.X, pair_penalty)
        if not (given_rows or chunklets_of(constraints, len(X)).has_known_labels):
            oriented, _ = regression.oriented(rows_with_weight(y, weights))
            agreement = y @ (2.0 * self.labels_ - 1.0)
            y = y * np.sign(agreement or 1.0 if pair_penalty.is_even else oriented @ rows_with_weight(y, weights))
        mean = float(data.X.mean_of(rows_with_weight(y, weights)))
        v = regression.direction(rows_with_weight(y, weights) - mean)
        self._store_functions(v, (1.0 - self.nu) * mean, data)
        self.labels_ = (y > 0.0).astype(np.int64)
        if weights is not None and weights.has_zeros and constraints is None:
            self.labels_ = np.where(weights.mask, self.labels_, self._decide(table) > 0.0).astype(np.int64)

    def _not_separated(self) -> Diagnostic:
        """Return the warning that the structure test found no gap between groups."""
        message = str(self.structure_)
        if self.n_clusters == AUTO:
            message += (
                f" Half-samples reproduce the {self.n_clusters_} clusters of n_clusters='auto', which needs no gap "
                "between groups."
            )
        remedy = "Do not take these clusters for groups without other evidence; try other features or penalty weights."
        return Diagnostic("not separated", message, remedy)

    def _is_better_cut_at_gap(self, K: int) -> bool:
        """Return whether the structure test found unequal groups that the weights in use do not show."""
        is_plain = K == 2 and not self._penalty.has_l1 and self._penalty.nonnegative is None
        return is_plain and self.test_structure and self.structure_.is_unequal

    def _function_of_gap(self, data: ScaledTable) -> tuple[Array, float]:
        """Return direction and intercept, of scaled points, of the gap that the structure test found."""
        v = self.structure_.coef * inverse_or_one(data.inverse_scale)
        return v, float(self.structure_.coef @ data.mean) - self.structure_.valley

    def _find_functions(self, X: Table, result: Result, K: int) -> tuple[Array, Any]:
        """Return directions and offsets of the affine functions of K clusters of scaled points."""
        pair_penalty = weights_of(self._penalty, X.shape[1])
        if K == 1:
            return np.zeros(X.shape[1]), 0.0
        if K > 2:
            return cluster_jointly(X, result, K, weights=pair_penalty, rng=choose_seed(self.random_state))
        return best_affine_function(X, result.factor, float(self.nu), pair_penalty)


def constrained_labels(values: Array, chunklets: Chunklets, weights: PointWeights | None) -> npt.NDArray[np.int64]:
    """Return clusters that satisfy the constraints, from the values of the decision functions, (n,) or (n, K).

    The values of linked points are added; points of weight 0 count only if all their linked points have weight 0.
    """
    w = np.ones(len(values))
    if weights is not None:
        w = np.where(weights.mask, w, ZERO_WEIGHT)
        w[weights.mask] = 1.0 if weights.normalized is None else weights.normalized
    if values.ndim == 1:
        return (chunklets.assign_labels(values, w) > 0.0).astype(np.int64)
    clusters = np.argmax(chunklets.signed_sums(w[:, None] * values), axis=1)
    return np.asarray(chunklets.repeat(clusters)).astype(np.int64)
