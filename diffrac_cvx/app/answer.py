"""The answer of a clustering: one record, which the program, the HTML report and the page render."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diffrac_cvx import metrics
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import EPS, center_columns, column_units
from diffrac_cvx.problem.formatting import sum_rounded_up
from diffrac_cvx.problem.result import Status
from diffrac_cvx.rounding.diagnostics import Diagnostic

STATUS_WORDS = {  # without the names of Python parameters
    Status.OPTIMAL: "converged",
    Status.CLOSED_FORM: "solved in closed form",
    Status.TIME_LIMIT: "time limit reached",
    Status.MAX_ITER: "iteration limit reached",
    Status.USER_LIMIT: "iteration or time limit reached",
    Status.STOPPED: "interrupted",
    Status.STALLED: "no further progress in double precision",
    Status.SMOOTHED_GAP: "the stopping criterion of the paper was met",
}


@dataclass(frozen=True, eq=False)
class Answer:
    """Clusters of n points in d features, with everything that is reported about them."""

    sizes: tuple[int, ...]  # (K,) number of points of each cluster
    class_names: tuple[str | None, ...]  # of the clusters 0 and 1 among the labelled rows; empty without labelled rows
    has_constraints: bool  # on rows, which the clusters satisfy and to which the bounds refer
    objective: float  # of the clusters, rounded up
    lower_bound: float  # certified, on the objective of all clusters
    label_gap: float  # certified optimality gap, objective - lower_bound
    upper_bound: float  # on the optimum of the relaxation or, after a search, of Eq. (9)
    n_excluded: int  # collinear or constant columns, which the bounds do not count
    selected_features: tuple[str, ...] | None  # the most important first; None without an l1 penalty or for K > 2
    feature_groups: Mapping[str, float] | None  # norms of their scaled coefficients, if features are grouped
    structure: Any  # `StructureTest`, None if it was not made
    is_cut_at_gap: bool  # whether the clusters are the sides of the gap that it found
    diagnostics: tuple[Diagnostic, ...]  # warnings with remedies, the most serious first
    notes: tuple[str, ...]  # assumptions on the table, and remarks on the parameters
    suspects: Mapping[str, str]  # features that may be dates, keys or codes, with the reason
    adjusted_rand_score: float | None  # agreement with the known classes, None if there are none
    clustering_error: float | None  # for two clusters and two classes
    contingency_matrix: metrics.ContingencyMatrix | None
    rounded_objective: float | None  # of the clusters before the search for the optimal ones, None without a search
    rounded_agreement: float | None  # adjusted Rand index of the clusters before and after the search
    parameters: Mapping[str, Any]  # nu, lambda, ridge, tol
    solver: str
    status: Status  # of the solver or, after a search, of the search
    seconds: float  # from the start of the command
    code: str  # Python program that repeats the clustering
    names: tuple[str, ...]  # of the features
    rows: Array  # (n,) row of each point in the file
    clusters: Array  # (n,) cluster of each point, from 0
    cluster_means: Array  # (K, d) of each feature in each cluster, NaN in an empty one
    means: Array  # (d,) of each feature
    separations: Array  # (d,) largest difference of cluster means per standard deviation within clusters
    scaled_coefficients: Array  # (1 or K, d) per standard deviation, of each decision function
    coefficients: Array  # (1 or K, d) in the units of the table
    intercept: Array  # (1 or K,)
    standard_deviations: Array  # (d,)

    @property
    def finished(self) -> bool:
        """Whether the solver, or the search, met the tolerance."""
        return self.status in (Status.OPTIMAL, Status.CLOSED_FORM)

    @property
    def has_warnings(self) -> bool:
        """Whether there is a diagnostic, or a tolerance was not met: the exit status is then 1."""
        return bool(self.diagnostics) or not self.finished

    @property
    def by_separation(self) -> list[int]:
        """Indices of the features, the one with the largest separation of the clusters first."""
        return [int(j) for j in np.argsort(-self.separations, kind="stable")]

    @property
    def order(self) -> list[int]:
        """Indices of the features, the most important first."""
        sizes = np.abs(self.scaled_coefficients).max(axis=0)
        return [int(j) for j in np.argsort(-sizes, kind="stable")]


def answer_of(
    model: Any, table: Table, *, seconds: float, loading: str, notes: Sequence[str] = (), constraints: Any = None
) -> Answer:
    """Return the answer of a fitted `DiffracClustering`.

    Parameters
    ----------
    model : DiffracClustering
        Estimator, fitted to the features of the table.
    table : Table
        Features with their names, and the known classes of the rows if there are any.
    seconds : float
        Seconds since the start of the command.
    loading : str
        Lines of Python that define ``X`` and, if given to the estimator, ``groups`` and ``constraints``.
    notes : sequence of str
        Assumptions on the table, and remarks on the parameters.
    constraints : Constraints, optional
        Constraints on rows that were given to ``fit``.
    """
    labels, penalty, scaled = np.asarray(model.labels_), model._penalty, np.atleast_2d(model.scaled_coef_)
    K = max(len(scaled), 2)
    ridge, lam = model.ridge, model.lam
    objective, search = sum_rounded_up(model.lower_bound_, model.label_gap_), getattr(model, "optimal_", None)
    support = sorted(model.support_, key=lambda j: -abs(scaled[0, j]))
    groups = penalty.feature_groups(model.n_features_in_)
    norms = np.sqrt(np.bincount(groups.labels, np.sum(scaled**2, axis=0), len(groups.names))).tolist()
    classes = () if constraints is None or constraints.labels is None else constraints.classes
    counts = index = None
    if table.labels is not None:
        counts = metrics.contingency_matrix(table.labels, labels)
        index = metrics.adjusted_rand_score(table.labels, labels)
    cluster_means, separations = compare_clusters(table.X, labels, K)
    return Answer(
        names=tuple(table.names),
        rows=table.rows,
        clusters=labels,
        cluster_means=cluster_means,
        means=table.X.mean(axis=0),
        separations=separations,
        sizes=tuple(np.bincount(labels, minlength=K).tolist()),
        class_names=tuple(None if name is None else str(name) for name in classes),
        has_constraints=constraints is not None,
        objective=objective,
        lower_bound=model.lower_bound_,
        label_gap=model.label_gap_,
        upper_bound=model.upper_bound_ if search is None else objective,
        n_excluded=model.n_excluded_,
        scaled_coefficients=scaled,
        coefficients=np.atleast_2d(model.coef_),
        intercept=np.atleast_1d(model.intercept_),
        standard_deviations=1.0 / column_units(center_columns(table.X)),
        selected_features=tuple(table.names[j] for j in support) if K == 2 and penalty.has_l1 else None,
        feature_groups=None if groups.are_single else dict(zip(groups.names, norms, strict=True)),
        structure=getattr(model, "structure_", None),
        is_cut_at_gap=model.is_cut_at_gap_,
        diagnostics=model.diagnostics_,
        notes=tuple(notes),
        suspects=table.suspects,
        adjusted_rand_score=index,
        clustering_error=None if table.y is None or K > 2 else metrics.clustering_error(table.y, 2.0 * labels - 1.0),
        contingency_matrix=counts,
        rounded_objective=None if search is None else model.rounded_objective_,
        rounded_agreement=None if search is None else metrics.adjusted_rand_score(model.rounded_labels_, labels),
        parameters={"nu": model.nu, "lambda": lam, "ridge": ridge, "tol": model.tol},
        solver=model.result_.solver,
        status=model.result_.status if search is None else search.status,
        seconds=seconds,
        code=repeating_code(model, loading, constraints is not None),
    )


def compare_clusters(X: Array, clusters: Array, K: int) -> tuple[Array, Array]:
    """Return the mean of each feature in each cluster, (K, d), and the separation of the clusters by each feature.

    The separation (d,) is the largest difference of the means of two clusters, divided by the standard deviation
    within the clusters: infinite if the feature does not vary within them, 0 if it does not differ between them.
    """
    members = [X[clusters == k] for k in range(K)]
    means = np.array([part.mean(axis=0) if len(part) else np.full(X.shape[1], np.nan) for part in members])
    within = sum(np.sum((part - mean) ** 2, axis=0) for part, mean in zip(members, means, strict=True) if len(part))
    differences, deviations = np.nanmax(means, axis=0) - np.nanmin(means, axis=0), np.sqrt(within / len(X))
    is_varying = deviations > EPS * np.abs(X).max(axis=0)
    unvaried = np.where(differences > EPS * np.abs(X).max(axis=0), np.inf, 0.0)
    return means, np.where(is_varying, differences / np.where(is_varying, deviations, 1.0), unvaried)


def repeating_code(model: Any, loading: str, has_constraints: bool) -> str:
    """Return a Python program that repeats a fit; the lines ``loading`` define X, groups and constraints."""
    defaults = type(model)().get_params() | {"callback": model.callback}
    given = {name: value for name, value in sorted(model.get_params().items()) if value != defaults[name]}
    parameters = ", ".join(f"{name}={'groups' if name == 'groups' else repr(value)}" for name, value in given.items())
    constraints = ", constraints=constraints" if has_constraints else ""
    fit = f"model = dc.{type(model).__name__}({parameters}).fit(X{constraints})"
    return "\n".join(["import diffrac_cvx as dc", "", loading, fit, "print(model.labels_)", ""])
