"""Semi-supervised classification by a relaxation in which the labelled points share a row."""

import warnings
from itertools import product
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError, sentence
from diffrac_cvx.estimators.affine import AffineClusterer, limited, optimality_gap, recentered, require_one_direction
from diffrac_cvx.machine.deadlines import deadline_after, is_late, seconds_left, time_limited
from diffrac_cvx.points.checks import (
    Array,
    as_weights,
    format_exact,
    nonnegative,
    normalize_weights,
    one_of,
    rows_with_weight,
)
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.label_arguments import split_unlabelled
from diffrac_cvx.points.reading import table_array
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.feature_groups import FeatureGroups, GroupsLike
from diffrac_cvx.problem.penalty import GroupWeights, weights_of
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding.directions import best_direction
from diffrac_cvx.rounding.many_clusters import AffineScores, ClusterIndices, classify_jointly, cluster_indices
from diffrac_cvx.rounding.two_clusters import labels_from_known

UNLABELED = -1  # class index of unlabelled points
WEIGHT_FRACTIONS = (0.0, 0.95)  # candidates of "auto" for the weight fraction of the labelled points
CANDIDATE_RIDGES = (0.3, 0.003, 0.03, 1.0)  # likewise; the first of each is used without cross-validation
MAX_FOLDS = 5  # of the cross-validation on the labelled points
SELECTION_TIME_FRACTION = 0.5  # of the time limit, for this cross-validation


class DiffracClassifier(ClassifierMixin, AffineClusterer):  # type: ignore[misc]
    r"""Classify all points from the labels of a few, so that affine functions predict the classes best.

    Solves the relaxation (15) for all points, with certified bounds; the labelled points share a row, see
    `Constraints`.  For two classes a point gets the sign of :math:`Y_{ij} = F_i^\top F_j` for the labelled points j;
    least squares on these labels gives the affine function.  If all points are labelled, this is ridge regression, and
    the relaxation is exact.

    For more than two classes the labelled points of each class share a row.  The rows of X V^(1/2) are assigned to the
    nearest mean of a labelled class.  Then fits of affine functions to the classes alternate with assignments to the
    nearest mean of the fitted values.  One-versus-rest was clearly worse on iris, wine and digits.

    With few labels the unlabelled points dominate.  This misleads if their clusters are not the classes;
    ``labeled_weight`` then gives the labelled points more weight.  Cross-validation chooses it and the ridge by
    default, in up to five folds of the labelled points, by squared error for two classes and by misclassification for
    more.  This takes up to forty more fits, which is slow with many features and an l1 penalty.  If a class has only
    one label, or all points are labelled, there is no cross-validation: the labelled points get no extra weight and the
    ridge is 0.3.

    Source: Eq. (9) with known labels, (15); not in the paper.

    Parameters
    ----------
    lam : float or (d,) array
        Weight of the squared l1 norm, by default 0: larger values select fewer features.
    ridge : float, (d,) array or "auto"
        Weight of the ridge, for features of unit variance; "auto" chooses from 0.003, 0.03, 0.3 and 1.
    groups, group_weights
        As for `DiffracClustering`.
    nonnegative
        As for `DiffracClustering`, for two classes only: larger values of these features indicate the second class.
    nu : float
        Weight of the imbalance of the classes, in [0, 1], by default 1.
    labeled_weight : float or "auto"
        Minimum fraction of the total weight for the labelled points, in [0, 1).  At 0 all points have equal weight;
        near 1 only the labelled points are fitted.  "auto" chooses from 0 and 0.95.
    unlabelled : object, optional
        Additional value that marks unlabelled points in y, besides None, NaN, pd.NA and "".  By default -1 does, with a
        warning, if there are two or more other values.  Pass -1, another value such as 0, or NaN if -1 is always a
        class.
    tol, max_iter, standardize
        As for `DiffracClustering`.
    time_limit : float, optional
        Time limit of `fit` in seconds.  If half of it is too short for the cross-validation, this is skipped.

    Attributes
    ----------
    classes_ : (K,) array
        Sorted classes.
    transduction_ : (n,) array
        Classes of all points; known labels are kept.
    labels_ : (n,) array of int
        Indices of these in ``classes_``.
    coef_, intercept_ : (d,) array, float; (K, d) array, (K,) array for more than two classes
        Coefficients of `decision_function`.
    scaled_coef_ : (d,) array or (K, d) array
        Coefficients per standard deviation of each feature, which are comparable between features.
    ridge_, labeled_weight_ : float
        Ridge and weight of the labelled points in the fit.
    lower_bound_, upper_bound_ : float
        Certified bounds on the optimal objective of the relaxation with the weights given by ``labeled_weight_``.
    label_gap_ : float
        Certified optimality gap of ``labels_`` in Eq. (9) with these weights, among labels that agree with the known
        ones; for more than two classes in the objective of `certify_clusters`.
    result_ : Result
        Solution of the relaxation, for the points of positive weight.
    support_, groups_used_, n_excluded_, n_iter_, n_features_in_, feature_names_in_
        As for `DiffracClustering`.

    Examples
    --------
    >>> import numpy as np
    >>> import diffrac_cvx as dc
    >>> X, y = dc.datasets.load("breast_cancer")
    >>> names = np.where(y > 0, "malignant", "benign")
    >>> few = np.full(len(y), None)
    >>> few[:8] = names[:8]
    >>> model = dc.DiffracClassifier().fit(X, few)
    >>> float(np.round(np.mean(model.transduction_ == names), 2))
    0.96
    """

    coef_: Array
    intercept_: float | Array
    solver, callback = "low_rank", None

    def __init__(
        self,
        *,
        lam: float | Array = 0.0,
        ridge: float | Array | str = "auto",
        nu: float = 1.0,
        labeled_weight: float | str = "auto",
        unlabelled: object = None,
        groups: GroupsLike | FeatureGroups | None = None,
        group_weights: GroupWeights = "equal",
        nonnegative: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        standardize: bool = True,
    ) -> None:
        self.lam, self.ridge, self.nu, self.labeled_weight, self.unlabelled = lam, ridge, nu, labeled_weight, unlabelled
        self.tol, self.max_iter, self.time_limit, self.standardize = tol, max_iter, time_limit, standardize
        self.groups, self.group_weights, self.nonnegative = groups, group_weights, nonnegative

    @limited
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the classes of all points and the affine functions.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
            All points, labelled and unlabelled; sparse matrices are converted to dense.
        y : (n,) array
            Labels, numbers or text; unlabelled points have None, NaN, pd.NA, "" or ``unlabelled``.  At least two
            classes need labels.  If y contains only -1 and 1, these count as two classes, with a warning.
        sample_weight : (n,) array, optional
            Weights of the points, >= 0, of any scale: weight 2 counts as the same point twice, and a point of weight 0
            only receives a label.

        Errors and warnings are those of `DiffracClustering.fit`, without diagnostics.
        """
        ridges, fractions = self._settings()
        self.ridge_, self.labeled_weight_ = ridges[0], fractions[0]
        if y is None:
            raise DataError("DiffracClassifier requires y to be passed, but the target y is None.")
        given = table_array(self._read_table(X, ensure_min_samples=2))
        self.classes_, classes = read_classes(y, len(given), self.unlabelled)
        require_one_direction(self._penalty, len(self.classes_), "the number of classes")
        weights = as_weights(sample_weight, len(given))
        data, seen = self._scale(given, weights), rows_with_weight(classes, weights)
        if len(absent := np.setdiff1d(np.arange(len(self.classes_)), seen)):
            name = self.classes_[absent[0]]
            raise DataError(
                f"all labelled points of class {name} have sample_weight 0. Give one of them a positive weight."
            )
        settings = list(product(ridges, fractions))
        if len(settings) > 1:
            with time_limited(deadline_after(seconds_left(SELECTION_TIME_FRACTION))):
                self.ridge_, self.labeled_weight_ = settings[self._choose(data.X, seen, settings)]
        functions, points, result = self._find(data.X, seen)
        self._store_bounds(result)
        self._store_functions(*functions, data)
        self.labels_ = np.where(classes == UNLABELED, cluster_indices(self._decide(given)), classes)
        self.transduction_ = self.classes_[self.labels_]
        labels: Any = rows_with_weight(self.labels_, weights)
        options: dict[str, Any] = {"nu": self.nu, "penalty": self._penalty}
        self.label_gap_ = optimality_gap(points, labels, result, len(self.classes_), **options)
        return self

    def _settings(self) -> tuple[tuple[Any, ...], tuple[float, ...]]:
        """Return the candidate ridges and weight fractions of the labelled points."""
        for name in ("ridge", "labeled_weight"):
            if isinstance(getattr(self, name), str):
                one_of(getattr(self, name), name, ("auto",))
        ridges = CANDIDATE_RIDGES if isinstance(self.ridge, str) else (self.ridge,)
        weight = self.labeled_weight
        fractions = WEIGHT_FRACTIONS if isinstance(weight, str) else (nonnegative(weight, "labeled_weight"),)
        if fractions[0] >= 1.0:
            raise ParameterError(
                f"labeled_weight = {format_exact(fractions[0])} leaves unlabelled points without weight. Use a value "
                "less than 1."
            )
        return ridges, fractions

    def _find(self, X: Table, classes: ClusterIndices) -> tuple[AffineScores, Any, Result]:
        """Return the functions of partially known classes (one for two), the weighted `Table`, and the solution."""
        point_weights = reweight_known(X.weights, classes != UNLABELED, self.labeled_weight_)
        constraints = Constraints(groups=classes)
        if len(self.classes_) == 2:
            constraints = Constraints(labels=np.where(classes == UNLABELED, np.nan, 2.0 * classes - 1.0))
        points, mean = recentered(X, point_weights, constraints=constraints)
        weights, result = weights_of(self._penalty, X.shape[1]), self._relax(points)
        if len(self.classes_) == 2:
            labels = labels_from_known(result.F, points.chunklets)
            average = points.mean_of(labels)
            found = AffineScores(best_direction(points, labels - average, weights), average)
        else:
            found = classify_jointly(points, result, classes, weights=weights)
        return AffineScores(found.coef, found.intercept - found.coef @ mean), points, result

    def _choose(self, X: Table, classes: ClusterIndices, settings: list[tuple[Any, float]]) -> int:
        """Return the index of the setting with the lowest cross-validation error; ties go to the first.

        The error is squared for two classes, and the number of misclassifications for more.
        """
        folds = assign_folds(classes)
        if folds.max() < 1 or np.all(classes != UNLABELED):
            return 0
        errors = np.zeros(len(settings))
        for i, (self.ridge_, self.labeled_weight_) in enumerate(settings):
            for fold in range(folds.max() + 1):
                if is_late():
                    return 0
                hidden = folds == fold
                functions = self._find(X, np.where(hidden, UNLABELED, classes))[0]
                values, known = functions.of(X.array()[hidden]), classes[hidden]
                wrong = (values - 2.0 * known + 1.0) ** 2 if values.ndim == 1 else cluster_indices(values) != known
                errors[i] += np.sum(wrong)
        return int(np.argmin(errors))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the classes of points, (n,)."""
        indices = cluster_indices(self.decision_function(X))  # raises an error if the model is not fitted
        return np.asarray(self.classes_[indices])

    def score(self, X: npt.ArrayLike, y: object = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the (weighted) fraction of points whose class is y, (n,)."""
        weights = normalize_weights(sample_weight, len(predicted := self.predict(X)))
        try:
            return float(accuracy_score(y, predicted, sample_weight=weights))
        except (TypeError, ValueError) as error:
            raise DataError(f"y cannot be compared with the classes: {sentence(error)}") from None


def read_classes(y: Any, n: int, unlabelled: object) -> tuple[npt.NDArray[Any], ClusterIndices]:
    """Return the sorted classes and the class index of each point, UNLABELED if unknown."""
    try:
        given = column_or_1d(y, warn=True)
    except (TypeError, ValueError) as error:
        raise DataError(str(error)) from None
    if len(given) != n:
        raise DataError(f"y has {len(given)} entries for {n} points.")
    values, known = split_unlabelled(given, unlabelled, "y")
    names = given[known] if given.dtype.kind in "biuf" else np.array([values[i] for i in np.flatnonzero(known)])
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise DataError(f"y contains {names[~np.isfinite(names)][0]}. Mark unlabelled points by None, NaN or -1.")
    if unlabelled is None and known.all() and names.dtype.kind in "iuf" and set(names.tolist()) == {-1, 1}:
        message = "y contains only -1 and 1, which are taken for two classes; pass unlabelled=-1 if -1 means unlabelled"
        warnings.warn(message, DegenerateDataWarning, stacklevel=4)
    if not len(names):
        raise DataError("y has no labels. Label points of at least two classes, or use DiffracClustering.")
    try:
        check_classification_targets(names)
        classes, indices = np.unique(names, return_inverse=True)
    except (TypeError, ValueError) as error:
        raise DataError(f"y cannot be used: {sentence(error)}") from None
    if len(classes) == 1:
        raise DataError(
            f"y has only one class, {classes[0]}. Label points of at least two classes, or pass these labels to "
            "DiffracClustering as constraints=dc.Constraints(labels=...)."
        )
    found = np.full(n, UNLABELED, dtype=np.int64)
    found[known] = indices
    return classes, found


def reweight_known(weights: Array | None, known: npt.NDArray[np.bool_], fraction: float) -> Array | None:
    """Return weights of sum 1 with at least this fraction on the labelled points."""
    p = np.full(len(known), 1.0 / len(known)) if weights is None else weights
    now = float(p[known].sum())
    if fraction <= now or known.all():
        return weights
    return np.where(known, p * (fraction / now), p * ((1.0 - fraction) / (1.0 - now)))


def assign_folds(classes: ClusterIndices) -> ClusterIndices:
    """Return the stratified fold of each labelled point; -1 for the others.

    The number of folds is the size of the smallest class, at most MAX_FOLDS.
    """
    sizes = np.bincount(classes[classes != UNLABELED])
    folds = np.full(len(classes), -1, dtype=np.int64)
    for k, size in enumerate(sizes):
        folds[classes == k] = np.arange(size) % min(MAX_FOLDS, sizes.min())
    return folds
