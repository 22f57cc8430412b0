"""Several labels at once, with certified bounds."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.estimators.affine import AffineClusterer, choose_seed, limited
from diffrac_cvx.points.checks import Array, as_weights, normalize_weights, positive_int
from diffrac_cvx.points.reading import table_array
from diffrac_cvx.problem.feature_groups import FeatureGroups, GroupsLike
from diffrac_cvx.problem.penalty import GroupWeights
from diffrac_cvx.problem.result import Progress
from diffrac_cvx.rounding.directions import affine_functions
from diffrac_cvx.rounding.many_clusters import explained_variance
from diffrac_cvx.rounding.many_labels import fit_label_mixture


class MultiLabelDiffrac(AffineClusterer):
    r"""Find several labels at once, each the sign of an affine function of the features.

    Solves the relaxation, which is the same for any number of labels, and approximates its solution by a mixture of
    labels (`rounding.procrustes`).  Row i of the factor F is a linear function of :math:`x_i`, divided by
    :math:`\sqrt{x_i^\top V x_i}` (with a 1 appended to :math:`x_i` if nu < 1).  Therefore each label is exactly the
    sign of an affine function, and ``predict`` on the training data returns ``labels_``.

    Source: sections 4 and 5.3; appendix C.2 for the factor.

    Parameters
    ----------
    n_labels : int
        Number of labels, at least 1.
    nu, lam, ridge, groups, group_weights, tol, max_iter, time_limit, standardize, callback
        As for `DiffracClustering`; no penalty by default, as in section 4.  ``nonnegative`` is not available, since it
        constrains a single direction.
    solver : {"fista", "low_rank", "fista published"}
        Solver, by default "fista": at the loose default tolerance its smoothing keeps all labels in the mixture,
        whereas an exact solution may lose those of small weight.
    n_init : int
        Number of random initialisations of the rounding.
    random_state : int, RandomState or None
        Seed of these initialisations.

    Attributes
    ----------
    labels_ : (n, n_labels) array of int
        Labels in {0, 1}, by decreasing weight; the largest of the ``scaled_coef_`` of a label is positive.
    signs_ : (n, n_labels) array
        The same labels in {-1, +1}.
    weights_, objective_ : (n_labels + 1,) array, float
        Weights of the mixture, that of the constant first, and its objective, see `rounding.fit_label_mixture`.
    coef_, intercept_ : (n_labels, d) array, (n_labels,) array
        Directions, in the units of X, and offsets: the values are about ``weights_[j + 1]`` with label j, and minus
        that without.
    scaled_coef_ : (n_labels, d) array
        Directions per standard deviation of each feature.
    support_, groups_used_, lower_bound_, upper_bound_, n_excluded_, result_, n_iter_, n_features_in_, feature_names_in_
        As for `DiffracClustering`.
    """

    def __init__(
        self,
        *,
        n_labels: int = 1,
        nu: float = 1.0,
        lam: float | Array = 0.0,
        ridge: float | Array = 0.0,
        groups: GroupsLike | FeatureGroups | None = None,
        group_weights: GroupWeights = "equal",
        solver: str = "fista",
        tol: float = 1e-2,
        max_iter: int | None = None,
        time_limit: float | None = None,
        standardize: bool = True,
        n_init: int = 20,
        random_state: Any = None,
        callback: Callable[[Progress], object] | None = None,
    ) -> None:
        self.n_labels, self.nu, self.lam, self.ridge = n_labels, nu, lam, ridge
        self.solver, self.tol, self.max_iter, self.time_limit = solver, tol, max_iter, time_limit
        self.standardize, self.n_init, self.random_state = standardize, n_init, random_state
        self.callback, self.groups, self.group_weights = callback, groups, group_weights

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output, tags.target_tags.multi_output = False, True
        return tags

    @limited
    def fit(self, X: npt.ArrayLike, y: object = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the labels and their directions.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
            At least two points and at least n_labels; sparse matrices are converted to dense.
        y : ignored
        sample_weight : (n,) array, optional
            Weights of the points, >= 0, of any scale: weight 2 counts as the same point twice, in the relaxation, in
            its bounds and in the mixture of labels, and a point of weight 0 only receives labels.  If several solutions
            are optimal to within tol, those of weighted and of repeated points may differ: with fewer points than
            features and no penalty, or for the solver "fista published", whose steps depend on the number of rows.

        Errors and warnings are those of `DiffracClustering.fit`; DegenerateDataWarning is also issued if the solution
        has fewer than n_labels labels.
        """
        k = positive_int(self.n_labels, "n_labels")
        table = self._read_table(X, ensure_min_samples=2)
        weights = as_weights(sample_weight, table.shape[0], min_positive=max(k, 2))
        given = table_array(table)
        data = self._scale(given, weights)
        result, rng = self._relax(data.X), choose_seed(self.random_state)
        options: dict[str, Any] = {"n_init": self.n_init, "rng": rng, "sample_weight": data.X.normalized_weights}
        found = fit_label_mixture(result.F, k, **options)
        self.weights_, self.objective_ = found.weights, found.objective
        coef, intercept = affine_functions(data.X.array(), result, found.scores)
        largest = np.argmax(np.abs(coef) * np.sqrt(data.X.mean_squares()), axis=1)
        signs = np.where(coef[np.arange(k), largest] < 0.0, -1.0, 1.0)
        self._store_functions(signs[:, None] * coef, signs * intercept, data)
        self._store_bounds(self._with_all_points(result, given, data, weights))
        self.labels_ = self._label(self._decide(table))
        self.signs_ = 2.0 * self.labels_ - 1.0
        return self

    def _label(self, values: Array) -> npt.NDArray[np.int64]:
        return np.asarray(values > 0).astype(np.int64)

    def score(self, X: npt.ArrayLike, y: object = None, sample_weight: npt.ArrayLike | None = None) -> float:
        pairs = zip((projections := self.transform(X)).T, self.predict(X).T, strict=True)
        weights = normalize_weights(sample_weight, len(projections))
        return float(np.mean([explained_variance(values[:, None], labels, weights) for values, labels in pairs]))

    def fit_predict(
        self, X: npt.ArrayLike, y: object = None, sample_weight: npt.ArrayLike | None = None
    ) -> npt.NDArray[np.int64]:
        """Fit the labels and return ``labels_``; parameters, errors and warnings are those of `fit`."""
        return np.asarray(self.fit(X, sample_weight=sample_weight).labels_)
