"""scikit-learn estimators: clustering in two or more, and many labels at once, each with its proved bracket."""

import copy
import sys
import warnings
from collections.abc import Sequence
from inspect import signature
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted, validate_data

from diffrac_cvx import rounding as roundings
from diffrac_cvx.certificates import certify_clusters, certify_labels
from diffrac_cvx.certificates.direction_problem import direction_problem
from diffrac_cvx.changes import require_file
from diffrac_cvx.chunks import as_chunks, is_chunked, with_known_shape
from diffrac_cvx.directions import affine_functions, best_direction, threshold
from diffrac_cvx.errors import DegenerateDataWarning, ParameterError
from diffrac_cvx.inputs import Array, one_of, positive, positive_int
from diffrac_cvx.linalg import Standardised, column_basis, inverse_or_one, row_blocks, standardise
from diffrac_cvx.many_clusters import (
    Halves,
    cluster_together,
    explained_share,
    last_directions,
    scores_of_splits,
    split_repeatedly,
)
from diffrac_cvx.memory import require_memory
from diffrac_cvx.metrics import separation
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.point_weights import (
    PointWeights,
    as_weighted_data,
    as_weights,
    every_point,
    mean_of,
    points_with_weight,
    shares_of,
)
from diffrac_cvx.points import as_points, deviations_of, root_mean_squares, scale_columns
from diffrac_cvx.proved_numbers import format_upper
from diffrac_cvx.registry import SOLVERS
from diffrac_cvx.relaxations import v_space
from diffrac_cvx.reservations import find_reservations
from diffrac_cvx.result import Bracket, Progress, Result, Status
from diffrac_cvx.rounding.many_labels import fit_label_mixture
from diffrac_cvx.rows import Rows, as_rows
from diffrac_cvx.shifted import Shifted
from diffrac_cvx.solvers import solve
from diffrac_cvx.solvers.factored.sampling import many_rows
from diffrac_cvx.solvers.stopping import WIDE_GAP, with_all_points
from diffrac_cvx.time_budget import is_late, seconds_left, spend, within

INPUT: Any = {"accept_sparse": ("csr", "csc"), "dtype": np.float64}
MOST_ROUNDS = 100  # of directions and splits
STARTS = 10  # of k-means, for more than two clusters
FINE = (Status.OPTIMAL, Status.CLOSED_FORM)
STRATEGIES = ("together", "splits")


class _AffineClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Cluster by signs of affine functions of the features; subclasses find ``coef_`` and ``intercept_``."""

    _watch: Any = None  # called with the progress of the solver; a true value stops it

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any, **options: Any) -> Array:
        """Return checked data, dense."""
        X = as_dense(with_known_shape(X)) if is_chunked(X) else X
        checked: Any = validate_data(self, X, **INPUT, **options)
        return np.asarray(checked.toarray() if hasattr(checked, "toarray") else checked)

    def _read_table(self, X: Any, reset: bool = True, **options: Any) -> Any:
        """Return checked data as they are: an array, a memory map, a sparse matrix or a dask array."""
        if not is_chunked(X) and not isinstance(X, np.memmap):
            return validate_data(self, X, reset=reset, **INPUT, **options)
        X = with_known_shape(X) if is_chunked(X) else require_file(X)
        _check_n_features(self, X, reset=reset)
        if reset:
            _check_feature_names(self, X, reset=True)
        return X

    def _scale(self, X: Array, shares: Array | None = None) -> Standardised:
        """Return centred data, of unit variance where ``standardize`` asks for it."""
        require_flag(self.standardize, "standardize")
        centred = as_weighted_data(X, every_point(shares), warn=False)  # the solver warns
        unit = standardise(centred, shares).unit if self.standardize else np.ones(X.shape[1])
        return Standardised(centred * unit, mean_of(X, shares), unit)

    def _scale_by_parts(self, X: Any) -> Standardised:
        """Return the same of a table that is read by parts."""
        require_flag(self.standardize, "standardize")
        by_columns = self._penalty.has_l1 and not many_rows(*X.shape)
        points = as_points(X, by_rows=True, by_columns=by_columns, warn=False)
        mean = points.mean if isinstance(points, Shifted) else points.mean + points.rest
        unit = inverse_or_one(root_mean_squares(points)) if self.standardize else np.ones(X.shape[1])
        return Standardised(scale_columns(points, unit), mean, unit)

    @property
    def _penalty(self) -> Penalty:
        """The penalty, its weights given as they are or as their roots, which go before the defaults."""
        roots = {name: value for name, value in (("a", self.a), ("c", self.c)) if value is not None}
        weights = {"ridge": self.ridge} if self.a is None else {}
        weights |= {"lam": self.lam} if self.c is None else {}
        return Penalty(**roots, **weights)

    def _solve(self, X: Array, automatic: str, shares: Array | None = None) -> Result:
        """Solve the relaxation by the user's solver, and keep what is proved about it."""
        result = self._relax(X, automatic, seconds_left(), shares)
        self._keep((result,))
        return result

    def _relax(self, X: Array, automatic: str, time_limit: float | None, shares: Array | None = None) -> Result:
        """Solve the relaxation by the user's solver."""
        name = one_of(self.solver, "solver", ("auto", *SOLVERS))
        name = automatic if name == "auto" else name
        penalty = self._penalty
        limits: dict[str, Any] = {"tol": positive(self.tol, "tol"), "time_limit": time_limit}
        if self.max_iter is not None:
            limits["max_iter"] = positive_int(self.max_iter, "max_iter")
        require_flag(self.verbose, "verbose")
        if self.verbose:
            say(f"{name}: {X.shape[0]} points, {X.shape[1]} features")
        if SOLVERS[name].function is None and isinstance(X, Rows | Shifted):
            raise ParameterError(f"solver = {name!r} needs the table in memory, as an array; use 'auto', or pass one")
        weights: dict[str, Any] = {} if shares is None else {"sample_weight": shares}
        if SOLVERS[name].function is not None:
            if weights and not SOLVERS[name].takes_weights:
                raise ParameterError(f"solver = {name!r} takes no sample_weight; use 'low_rank', which does")
            callback = self._watch or (Teller() if self.verbose else None)
            limits |= weights
            if name == "low_rank" and X.shape[1] > X.shape[0] and np.any(penalty.c):
                limits["rtol"] = WIDE_GAP
            result = SOLVERS[name].run(X, self.nu, penalty, callback=callback, **limits)
        else:
            result = solve(v_space(X, self.nu, penalty, **weights), name, **limits)
        if self.verbose:
            say(f"{sentence_of(result.lower, result.upper)} after {result.seconds:.1f} s: {result.status}")
        return result

    def _keep(self, results: Sequence[Result]) -> None:
        """Keep what is proved about the first relaxation that was solved, that of all points; warn of any gap."""
        self.result_ = results[0]
        self.lower_bound_, self.upper_bound_ = self.result_.lower, self.result_.upper
        self.n_iter_ = max(sum(result.n_iter for result in results), 1)
        for result in results:
            if result.status not in FINE:
                message = f"{result.status}; the proved gap is {format_upper(result.gap)}, tol is {self.tol:g}"
                warnings.warn(message, ConvergenceWarning, stacklevel=4)
                return

    def _reserve(self, X: Array, labels: Array, shares: Array | None) -> None:
        """Keep and say why the split may be no answer."""
        known: dict[str, Any] = {"nu": self.nu, "penalty": self._penalty, "n_clusters": self.n_clusters}
        self.reservations_ = find_reservations(X, labels, self.result_, shares=shares, **known)
        for reservation in self.reservations_:
            warnings.warn(str(reservation), DegenerateDataWarning, stacklevel=3)

    def _direction(self, X: Array, labels: Array, shares: Array | None = None) -> Array:
        """Return the penalised least-squares direction of labels."""
        return best_direction(X, labels - mean_of(labels, shares), *self._penalty.weights(X.shape[1]), shares)

    @property
    def _n_features_out(self) -> int:
        return int(np.atleast_2d(self.coef_).shape[0])

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return ``X @ coef_ + intercept_``, shape (n,) or (n, n_labels): positive where the label is 1."""
        return np.asarray(self._project(X) + self.intercept_)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return labels in {0, 1} of points, shape (n,) or (n, n_labels)."""
        return np.asarray(self.decision_function(X) > 0).astype(np.int64)

    def transform(self, X: npt.ArrayLike) -> Array:
        """Return the projections on the directions, shape (n, 1) or (n, n_labels)."""
        projected = self._project(X)
        return projected[:, None] if projected.ndim == 1 else projected

    def score(self, X: npt.ArrayLike, y: object = None) -> float:
        """Return how well the clusters are separated: the squared correlation of labels and projections, in [0, 1].

        It needs no labels, and ``GridSearchCV`` can use it; 0 where all points fall in one cluster.  With several
        labels it is their mean.
        """
        projected, labels = self.transform(X), 2.0 * self.predict(X) - 1.0
        pairs = zip((projected - projected.mean(axis=0)).T, labels.reshape(projected.shape).T, strict=True)
        return float(np.mean([min(separation(column_basis(values[:, None]), y), 1.0) for values, y in pairs]))

    def _project(self, X: npt.ArrayLike) -> Array:
        check_is_fitted(self)
        return multiply(self._read_table(X, reset=False), np.transpose(self.coef_))


class DiffracClustering(ClusterMixin, _AffineClusterer):  # type: ignore[misc]
    r"""Split points in two, or in more clusters, so that affine functions explain the clusters best.

    Solves the relaxation (15), rounds it, takes the direction of the labels found,

    .. math::
        \min_v\ \tfrac1n \|\Pi_n y - X v\|_2^2 + \Gamma(v v^\top),

    and splits the projections on it by exact 2-means: what `fit` finds is an affine function, and ``predict`` on the
    training data gives ``labels_``.  That split is one step of Eq. (2) from the rounded labels: it may
    move points, and ``label_gap_``, which is about Eq. (9), is then usually, not always, below that of the rounding.

    For more than two clusters the relaxation is the same, see `certify_clusters`.  From its solution all clusters are
    found together: k-means on the points as the solution weighs them, then affine functions fitted to the clusters and
    k-means on the fitted values in turn; or the points are split in two, and again the cluster where that gains most.

    Source: Eq. (9), (15); sections 2, 3 and 4.

    Parameters
    ----------
    nu : float
        Weight of the imbalance of the clusters, in [0, 1].
    a, c : float or (d,) array, optional
        Roots of ``ridge`` and ``lam``, as the paper writes them; given, they go before these.
    lam : float or (d,) array
        Weight of the squared l1 norm, the paper's lambda: the larger, the fewer features are used.  From about 0.001
        (all) to 1 (one or none) for standardised features.
    ridge : float or (d,) array
        Weight of the ridge: the larger, the more the split follows directions of large variance.  0 is the paper's
        problem without it, which finds noise where there are many features for the points; ``make choice``
        sets the default against others, see the page on choosing.
    solver : {"auto", "low_rank", "fista", "fista published", "SCS", "CLARABEL"}
        "auto" is "low_rank"; the last two go through CVXPY.  ``registry.SOLVERS`` holds them.
    rounding : {"kmeans_centered", "sign_centered", "sign_leading", "sign_second", "goemans_williamson"}
        From the relaxation to the labels of two clusters.
    refine : bool
        Whether directions and splits in two alternate until nothing changes.
    n_clusters : int
        Number of clusters; 1 splits nothing, and is there because scikit-learn's tools may ask for it.
    strategy : {"together", "splits"}
        How more than two clusters are found: all at once, or by repeated splits in two.
    tol : float
        Proved gap at which the solver stops; values lie in [0, 1].  Where there are more features than points, and an
        l1 part, a gap of one in ten of the upper bound is enough too.
    max_iter : int, optional
        Iterations of the solver; its own default if None.
    time_limit : float, optional
        Seconds for everything: what the solver leaves is for rounding and directions, which take little after it.
    standardize : bool
        Whether features are brought to unit variance first, which the penalty then weighs alike.
    random_state : int, RandomState or None
        Seed of the rounding "goemans_williamson" and of the starts of k-means for more than two clusters; nothing else
        is random.  A whole number is passed on as it is; with None the seed depends on NumPy's global state, which no
        call changes.
    verbose : bool
        Whether the proved bounds are written to standard error, a line a second.

    Attributes
    ----------
    labels_ : (n,) array of int
        Clusters 0 and 1; 1 has the larger projections.  More than two are 0 to K - 1, in their order along the
        direction that separates their centres most, or in that of the splits.  There are fewer than K clusters where
        no more could be found, and ``reservations_`` says so.
    coef_, intercept_ : (d,) array, float; (K, d) array, (K,) array for more than two clusters
        The direction, in the units of X, and minus the threshold: for `predict`.  With more than two clusters a point
        belongs to the one with the largest value of its function; by "splits" they are the functions of the splits
        that set each cluster apart last.
    scaled_coef_ : (d,) array or (K, d) array
        The direction per standard deviation of each feature: these can be compared with each other.  The largest is
        positive, where there are two clusters.
    splits_ : tuple of Split
        By "splits", for more than two clusters: the splits in their order, which `predict` follows.
    support_ : array of int
        Features with a nonzero coefficient.
    lower_bound_, upper_bound_ : float
        Proved bracket on the optimum of the relaxation.
    reservations_ : tuple of Reservation
        Why the split may be no answer (one cluster, a few points, too few points for a proof); empty if it may be one.
    label_gap_ : float
        Proved distance of ``labels_`` from the best partition into K clusters: of Eq. (9), the combinatorial problem,
        for two, of the cost in `certify_clusters` for more.  It is there for all K and n, for the lower bound of the
        relaxation holds for every K.
    result_ : Result
        The relaxation's solution.
    n_iter_, n_features_in_ : int
        Iterations of the solver; d.
    feature_names_in_ : (d,) array of str
        Names of the features, where X has them.

    Examples
    --------
    >>> import diffrac_cvx as dc
    >>> planted = dc.datasets.make_planted(100, 5, rng=0)
    >>> model = dc.DiffracClustering().fit(planted.X)
    >>> dc.metrics.clustering_error(planted.y, 2.0 * model.labels_ - 1.0)
    0.0
    """

    intercept_: float | Array

    def __init__(
        self,
        nu: float = 1.0,
        a: float | Array | None = None,
        c: float | Array | None = None,
        *,
        lam: float | Array = 0.0,
        ridge: float | Array = 0.3,
        solver: str = "auto",
        rounding: str = "kmeans_centered",
        refine: bool = False,
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        standardize: bool = True,
        random_state: Any = None,
        n_clusters: int = 2,
        strategy: str = "together",
        verbose: bool = False,
    ) -> None:
        self.nu, self.a, self.c, self.lam, self.ridge = nu, a, c, lam, ridge
        self.n_clusters, self.strategy, self.verbose = n_clusters, strategy, verbose
        self.solver, self.rounding, self.refine = solver, rounding, refine
        self.tol, self.max_iter, self.time_limit = tol, max_iter, time_limit
        self.standardize, self.random_state = standardize, random_state

    def fit(self, X: npt.ArrayLike, y: object = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Find the directions and the clusters.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
            At least as many points as clusters.  For two clusters a sparse matrix, a dask array and a memory map with
            many rows are read by parts and never made one array; for more they are, and have to fit in memory.
        y : ignored
        sample_weight : (n,) array, optional
            Weights of the points, >= 0 and of any scale: a weight of 2 counts as the same point twice, and one of
            weight 0 plays no part but for its label.  Taken by the solvers "low_rank", "SCS" and "CLARABEL".

        Raises
        ------
        DataError, ParameterError
            Both are ValueErrors; the message names the value and the remedy.

        Warns
        -----
        ConvergenceWarning
            If the solver stopped before the proved gap was at most tol.
        DegenerateDataWarning
            For each of ``reservations_``.
        """
        with spend(within(as_seconds(self.time_limit))):
            return self._fit(X, sample_weight)

    def _fit(self, X: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> Self:
        """Find the directions and the clusters; after the time limit only what is needed is computed, and is short."""
        one_of(self.rounding, "rounding", (*roundings.ROUNDINGS, "goemans_williamson"))
        one_of(self.strategy, "strategy", STRATEGIES)
        require_flag(self.refine, "refine")
        K = positive_int(self.n_clusters, "n_clusters")
        table = self._read_table(X, ensure_min_samples=2)
        if table.shape[0] < K:
            n = table.shape[0]
            raise ParameterError(f"n_clusters = {K} is more than the {n} points: ask for fewer clusters")
        weights = as_weights(sample_weight, table.shape[0], least=max(K, 2))
        shares = shares_of(weights)
        if K == 2 and weights is None and self._by_parts(table):
            given = points = table
            data = self._scale_by_parts(table)
        else:
            given = as_dense(table)
            points = points_with_weight(given, weights)
            data = self._scale(points, shares)
        if K == 1:
            self._solve(data.X, "low_rank", shares)
            self.coef_: Array = np.zeros(points.shape[1])
            self.intercept_: float | Array = 0.0
        elif K > 2 and self.strategy == "splits":
            self._split_repeatedly(points, K, shares)
        elif K > 2:
            self._cluster_together(data, K, shares)
        else:
            result = self._solve(data.X, "low_rank", shares)
            self.coef_, self.intercept_ = self._function(data, result, shares)
        self.scaled_coef_ = self.coef_ * deviations_of(data.X, shares) / data.unit
        self.support_ = np.flatnonzero(np.any(np.atleast_2d(self.coef_), axis=0))
        self.labels_ = self.predict(X)
        labels: Any = points_with_weight(self.labels_, weights)
        self.label_gap_ = certify_clusters(
            data.X, labels, self.result_, max(K, 2), nu=self.nu, penalty=self._penalty, sample_weight=shares
        ).gap
        self.reservations_ = ()
        if K > 1:
            self._reserve(data.X, labels, shares)
        self._add_points_without_weight(given, data, weights)
        return self

    def fit_predict(
        self, X: npt.ArrayLike, y: object = None, sample_weight: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.int64]:
        """Find the clusters, and return them as in ``labels_``; parameters, errors and warnings are those of `fit`."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).labels_)

    def _add_points_without_weight(self, given: Array, data: Standardised, weights: PointWeights | None) -> None:
        """Give the points of weight 0 a row in the result's F."""
        if weights is None or not weights.has_zeros:
            return
        problem = direction_problem(data.X, float(self.nu), self._penalty, weights.shares)
        every = np.where(data.X.any(axis=0), (given - data.mean) * data.unit, 0.0)
        self.result_ = with_all_points(self.result_, problem, every, weights)

    def _cluster_together(self, data: Standardised, K: int, shares: Array | None) -> None:
        """Keep the scores of more than two clusters, found together."""
        result = self._solve(data.X, "low_rank", shares)
        a, c = self._penalty.weights(data.X.shape[1])
        seed = choose_seed(self.random_state)
        found = cluster_together(data.X, result, K, a=a, c=c, restarts=STARTS, seed=seed, shares=shares)
        self.coef_ = found.coef * data.unit
        self.intercept_ = found.intercept - self.coef_ @ data.mean

    def _split_repeatedly(self, points: Array, K: int, shares: Array | None) -> None:
        """Keep the splits that lead to more than two clusters."""
        results: list[Result] = []

        def halve(part: Array, shares: Array | None) -> Halves | None:
            if results and not np.ptp(part, axis=0).any():
                return None
            data = self._scale(part, shares)
            with warnings.catch_warnings():
                if results:  # features may be constant in a part
                    warnings.simplefilter("ignore", DegenerateDataWarning)
                results.append(self._relax(data.X, "low_rank", seconds_left(), shares))
                found = self._halves(data, part, results[-1], shares)
            return found if 0 < np.sum(part @ found.coef + found.intercept > 0.0) < len(part) else None

        self.splits_ = split_repeatedly(points, K, halve, float(self.nu), shares)
        self._keep(results)
        self.coef_, self.intercept_ = last_directions(self.splits_, points.shape[1])

    def _function(self, data: Standardised, result: Result, shares: Array | None) -> tuple[Array, float]:
        """Return the function x'coef + intercept that splits points in two."""
        v = self._find_direction(data.X, self._round(result.factor, shares), shares)
        v = v if v[np.argmax(np.abs(v) * deviations_of(data.X, shares))] >= 0 else -v
        coef = v * data.unit
        return coef, -float(np.dot(coef, data.mean)) - threshold(data.X @ v, shares)

    def _halves(self, data: Standardised, part: Array, result: Result, shares: Array | None) -> Halves:
        """Return the function that splits some points in two, and the cost of its split."""
        coef, intercept = self._function(data, result, shares)
        labels = np.where(part @ coef + intercept > 0.0, 1.0, -1.0)
        proof = certify_labels(data.X, labels, 0.0, nu=self.nu, penalty=self._penalty, sample_weight=shares)
        return Halves(coef, intercept, proof.objective)

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return ``X @ coef_ + intercept_``: (n,), positive where the label is 1, or (n, K), largest at the label.

        For more than two clusters by "splits" it is the least of the values of the splits on the way to each cluster,
        with the sign that leads there.
        """
        if self._by_splits:
            check_is_fitted(self)
            return scores_of_splits(as_dense(self._read_table(X, reset=False)), self.splits_)
        return super().decision_function(X)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the clusters of points, shape (n,)."""
        values = self.decision_function(X)
        return np.asarray(values > 0 if values.ndim == 1 else np.argmax(values, axis=1)).astype(np.int64)

    def score(self, X: npt.ArrayLike, y: object = None) -> float:
        """Return how well the clusters are separated: the share of their variance that the projections explain.

        It lies in [0, 1], needs no labels, and ``GridSearchCV`` can use it; 0 where all points fall in one cluster.
        With two clusters it is the squared correlation of labels and projections.
        """
        return explained_share(self.transform(X), self.predict(X))

    def _by_parts(self, X: Any) -> bool:
        """Whether a table is kept as it is: CVXPY takes arrays only."""
        large = isinstance(X, np.memmap) and many_rows(*X.shape)
        return is_chunked(X) or ((large or hasattr(X, "toarray")) and self.solver in ("auto", "low_rank", "fista"))

    @property
    def _by_splits(self) -> bool:
        return self.n_clusters > 2 and self.strategy == "splits"

    def _round(self, F: Array, shares: Array | None) -> Array:
        """Return labels in {-1, +1}."""
        if self.rounding in roundings.ROUNDINGS:
            known = roundings.ROUNDINGS[self.rounding]
            if shares is not None and "shares" not in signature(known).parameters:
                raise ParameterError(f"rounding = {self.rounding!r} takes no weights; use 'kmeans_centered'")
            return known(F) if shares is None else known(F, shares)
        return roundings.goemans_williamson(F, rng=choose_seed(self.random_state), shares=shares)

    def _find_direction(self, X: Array, labels: Array, shares: Array | None) -> Array:
        """Return the direction of labels; with ``refine``, of the labels at which the alternation with splits ends."""
        v = self._direction(X, labels, shares)
        for _ in range(MOST_ROUNDS if self.refine else 0):
            if is_late():
                break
            split = roundings.two_means(X @ v, shares)
            if np.array_equal(np.abs(split + labels), np.full(len(X), abs(split[0] + labels[0]))):
                break
            labels, v = split, self._direction(X, split, shares)
        return v


class MultiLabelDiffrac(_AffineClusterer):
    r"""Find several labels at once, each the sign of an affine function of the features.

    Solves the relaxation, which is the same for any number of labels, and writes its solution as a mixture of labels
    (`rounding.procrustes`).  Row i of the factor F is a linear function of :math:`x_i` over
    :math:`\sqrt{x_i^\top V x_i}` (with a 1 appended to :math:`x_i` when nu < 1), so that each label of the mixture is
    the sign of an affine function exactly; ``predict`` on the training data gives ``labels_``.

    Source: sections 4 and 5.3; appendix C.2 for the factor.

    Parameters
    ----------
    n_labels : int
        Number of labels, at least 1.
    nu, a, c, lam, ridge, tol, max_iter, time_limit, standardize, verbose
        As for `DiffracClustering`; no penalty by default, as in section 4.
    solver : {"auto", "fista", "low_rank", "fista published", "SCS", "CLARABEL"}
        "auto" is "fista": with the loose tolerance of the default its smoothing keeps all labels in the mixture,
        where an exact solution may leave out those of small weight.
    restarts : int
        Random starts of the rounding.
    random_state : int, RandomState or None
        Of these starts.

    Attributes
    ----------
    labels_ : (n, n_labels) array of int
        Labels in {0, 1} that the rounding found, by decreasing weight.
    signs_ : (n, n_labels) array
        The same in {-1, +1}.
    weights_, objective_ : (n_labels + 1,) array, float
        Of the mixture, the constant's first, and its misfit, see `rounding.fit_label_mixture`.
    coef_, intercept_ : (n_labels, d) array, (n_labels,) array
        Directions, in the units of X, and offsets: about +-``weights_[j + 1]`` on the points with and without label j.
    scaled_coef_ : (n_labels, d) array
        The directions per standard deviation of each feature.
    lower_bound_, upper_bound_, result_, n_iter_, n_features_in_, feature_names_in_
        As for `DiffracClustering`.
    """

    def __init__(
        self,
        n_labels: int = 1,
        nu: float = 1.0,
        a: float | Array | None = None,
        c: float | Array | None = None,
        *,
        lam: float | Array = 0.0,
        ridge: float | Array = 0.0,
        solver: str = "auto",
        tol: float = 1e-2,
        max_iter: int | None = None,
        time_limit: float | None = None,
        standardize: bool = True,
        restarts: int = 20,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_labels, self.nu, self.a, self.c, self.lam, self.ridge = n_labels, nu, a, c, lam, ridge
        self.solver, self.tol, self.max_iter, self.time_limit = solver, tol, max_iter, time_limit
        self.standardize, self.restarts, self.random_state = standardize, restarts, random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output, tags.target_tags.multi_output = False, True
        return tags

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Find the labels and their directions.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
            At least two points; sparse ones are made dense.
        y : ignored

        Raises
        ------
        DataError, ParameterError
            Both are ValueErrors; the message names the value and the remedy.

        Warns
        -----
        ConvergenceWarning
            If the solver stopped before the proved gap was at most tol.
        DegenerateDataWarning
            If the relaxation holds fewer than n_labels labels.
        """
        with spend(within(as_seconds(self.time_limit))):
            return self._fit(X)

    def _fit(self, X: npt.ArrayLike) -> Self:
        """Find the labels and their directions; after the time limit only what is needed is computed, and is short."""
        k = positive_int(self.n_labels, "n_labels")
        data = self._scale(self._read(X, ensure_min_samples=2))
        result = self._solve(data.X, "fista")
        found = fit_label_mixture(result.F, k, restarts=self.restarts, rng=choose_seed(self.random_state))
        self.weights_, self.objective_ = found.weights, found.objective
        V, offsets = affine_functions(data.X, result, found.scores)
        self.coef_ = V * data.unit
        self.scaled_coef_ = self.coef_ * data.X.std(axis=0) / data.unit
        self.intercept_ = offsets - self.coef_ @ data.mean
        self.labels_ = self.predict(X)
        self.signs_ = 2.0 * self.labels_ - 1.0
        return self

    def fit_predict(self, X: npt.ArrayLike, y: object = None) -> npt.NDArray[np.int64]:
        """Find the labels, and return them as in ``labels_``; what is raised and warned of is that of `fit`."""
        return np.asarray(self.fit(X).labels_)


def as_seconds(time_limit: float | None) -> float | None:
    """Return a checked limit of time."""
    return None if time_limit is None else positive(time_limit, "time_limit")


def as_dense(X: Any) -> Array:
    """Return a table as an array of doubles, where it fits in memory.

    Raises
    ------
    ResourceError
        If it does not.
    """
    n, d = X.shape
    require_memory(8.0 * 2 * n * d, f"a table of {n} points and {d} features", "take two clusters, or fewer points")
    if is_chunked(X):
        return np.asarray(as_rows(X, warn=False).raw())
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def multiply(X: Any, W: Array) -> Array:
    """Return X W of a table that may be read by parts, shape (n,) or (n, k)."""
    if is_chunked(X):
        table = as_chunks(X)
        frame = Rows(table, mean=np.zeros(X.shape[1]), rest=np.zeros(X.shape[1]), units=np.ones(X.shape[1]))
        return np.asarray(frame @ W)
    if isinstance(X, np.memmap):
        return np.concatenate([np.asarray(require_file(block), dtype=np.float64) @ W for block in row_blocks(X)])
    return np.asarray(X @ W)


class Teller:
    """Write the proved bounds of a solver to standard error, at most a line a second; called with its progress."""

    def __init__(self) -> None:
        self.last = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.seconds >= self.last + 1.0:
            self.last = progress.seconds
            bounds = sentence_of(progress.lower, progress.upper)
            read = f", {progress.rows / progress.seconds:.3g} rows a second" if progress.rows else ""
            say(f"{bounds} after {progress.seconds:.0f} s, step {progress.iteration}{read}")


def sentence_of(lower: float, upper: float) -> str:
    """Return what is proved of the relaxation, in words."""
    return f"least cost of the relaxation proved to lie in {Bracket(lower, upper)}"


def say(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def choose_seed(random_state: Any) -> int:
    """Return a seed: a whole number as it is, so that the functions of `rounding` give the same, else one drawn.

    With None it depends on NumPy's global state, which stays as it is: nothing else is changed by a call.
    """
    generator = check_random_state(random_state)
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if generator is check_random_state(None):
        generator = copy.deepcopy(generator)
    return int(generator.randint(2**31 - 1))


def require_flag(value: object, name: str) -> None:
    """Raise unless a parameter is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} = {value!r} must be True or False")
