"""Many labels at once, with a proved bracket."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.estimators.affine import AffineClusterer, as_seconds, choose_seed
from diffrac_cvx.machine.deadlines import deadline_after, time_limited
from diffrac_cvx.points.checks import Array, positive_int
from diffrac_cvx.points.reading import table_array
from diffrac_cvx.problem.named_columns import GroupWeights
from diffrac_cvx.problem.penalties.columns import FeatureGroups, GroupsLike
from diffrac_cvx.problem.result import Progress
from diffrac_cvx.rounding.directions import affine_functions
from diffrac_cvx.rounding.many_labels import fit_label_mixture


class MultiLabelDiffrac(AffineClusterer):
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
    nu, a, c, lam, ridge, groups, group_weights, tol, max_iter, time_limit, standardize, verbose
        As for `DiffracClustering`; no penalty by default, as in section 4.  Known signs are those of one direction, and
        there is no place for them here.
    solver : {"auto", "fista", "low_rank", "fista published", "SCS", "CLARABEL"}
        "auto" is "fista": with the loose tolerance of the default its smoothing keeps all labels in the mixture,
        where an exact solution may leave out those of small weight.
    n_init : int
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
        groups: GroupsLike | FeatureGroups | None = None,
        group_weights: GroupWeights = "equal",
        solver: str = "auto",
        tol: float = 1e-2,
        max_iter: int | None = None,
        time_limit: float | None = None,
        standardize: bool = True,
        n_init: int = 20,
        random_state: Any = None,
        verbose: bool | Callable[[Progress], object] = False,
    ) -> None:
        self.n_labels, self.nu, self.a, self.c, self.lam, self.ridge = n_labels, nu, a, c, lam, ridge
        self.solver, self.tol, self.max_iter, self.time_limit = solver, tol, max_iter, time_limit
        self.standardize, self.n_init, self.random_state = standardize, n_init, random_state
        self.verbose, self.groups, self.group_weights = verbose, groups, group_weights

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
        with time_limited(deadline_after(as_seconds(self.time_limit))):
            return self._fit(X)

    def _fit(self, X: npt.ArrayLike) -> Self:
        """Find the labels and their directions; after the time limit only what is needed is computed, and is short."""
        k = positive_int(self.n_labels, "n_labels")
        table = self._read_table(X, ensure_min_samples=2)
        data = self._scale(table_array(table))
        result = self._solve(data.X, "fista")
        found = fit_label_mixture(result.F, k, n_init=self.n_init, rng=choose_seed(self.random_state))
        self.weights_, self.objective_ = found.weights, found.objective
        V, offsets = affine_functions(data.X.array(), result, found.scores)
        self.coef_ = V * data.inverse_scale
        self.scaled_coef_ = self.coef_ * np.sqrt(data.X.mean_squares()) / data.inverse_scale
        self.intercept_ = offsets - self.coef_ @ data.mean
        self.labels_ = self._label(self._decide(table))
        self.signs_ = 2.0 * self.labels_ - 1.0
        return self

    def fit_predict(self, X: npt.ArrayLike, y: object = None) -> npt.NDArray[np.int64]:
        """Find the labels, and return them as in ``labels_``; what is raised and warned of is that of `fit`."""
        return np.asarray(self.fit(X).labels_)
