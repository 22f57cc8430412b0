"""Views of the page: title, description and Python code of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class View:
    """A figure or table of the page."""

    name: str  # also of its files
    section: str  # part of the page
    title: str
    description: str  # one or two plain sentences
    draw: tuple[str, ...]  # Python code that draws it
    of: str = "one"  # "one" result, "all" results, or the key of another computation
    needs_groups: bool = False  # whether reference labels are needed
    clusters: str = "any"  # shown for "two" clusters, "many" (more than two) or "any" number
    needs: tuple[str, ...] = ()  # functions of the page that its Python code imports

    @property
    def imports(self) -> tuple[str, ...]:
        """Import lines of its Python code beyond NumPy and the package."""
        return (f"from diffrac_cvx.app.page.tables import {', '.join(self.needs)}",) if self.needs else ()

    @property
    def is_table(self) -> bool:
        """Whether it is shown as a table and becomes a figure only when saved."""
        return self.draw[-1] == TABLE_CODE


TABLE_CODE = "figure = table_figure(table)"
DIRECTION_CODE = "w = dc.certify_labels(X, labels, 0.0, nu=nu, penalty=penalty).v"
SPLIT_CODE = "display = dc.plotting.ProjectionDisplay.from_labels(X, {}, w, kind={!r})"
FIGURE_CODE = "figure = display.plot().figure_"
PLANE_CODE = "plane = plane_of(model, X)"
BRACKETS_CODE = "display = dc.plotting.BracketDisplay.from_result(*results.values(), names=list(results))"
PATH_CODE = "display = dc.plotting.PathDisplay(path, names, X.std(axis=0))"  # coefficients per standard deviation

VIEWS = (
    View(
        "direction", "labels", "Feature importance",
        "Change of the decision function per standard deviation of each feature.",
        (
            DIRECTION_CODE,
            "display = dc.plotting.DirectionDisplay(w * X.std(axis=0), names, per_deviation=True)",
            'figure = display.plot(kind="bar" if X.shape[1] <= 20 else "stem").figure_',
        ),
        clusters="two",
    ),
    View(
        "projection", "labels", "Decision function by cluster",
        "Histogram of the decision function; the dashed line is the best threshold between two clusters.",
        (DIRECTION_CODE, SPLIT_CODE.format("(labels > 0).astype(int)", "cluster"), FIGURE_CODE),
        clusters="two",
    ),
    View(
        "known_split", "labels", "Decision function by reference label",
        "The reference labels are used for evaluation only.",
        (DIRECTION_CODE, SPLIT_CODE.format("groups", "group"), FIGURE_CODE),
        needs_groups=True, clusters="two",
    ),
    View(
        "cluster_table", "labels", "Clusters and features",
        "Features with the largest coefficients per standard deviation; each point is in the cluster with the largest "
        "decision function.",
        ("table = cluster_table(model, X, names, order)", TABLE_CODE),
        of="clusters", clusters="many", needs=("cluster_table", "table_figure"),
    ),
    View(
        "clusters_found", "labels", "Clusters",
        "First two principal components of the decision functions, coloured by cluster.",
        (PLANE_CODE, "figure = plane_figure(plane, order[model.labels_], 'cluster')"),
        of="clusters", clusters="many", needs=("plane_figure", "plane_of"),
    ),
    View(
        "known_groups", "labels", "Reference labels",
        "The same plane, coloured by reference label; these are used for evaluation only.",
        (PLANE_CODE, "figure = plane_figure(plane, groups, 'group')"),
        of="clusters", needs_groups=True, clusters="many", needs=("plane_figure", "plane_of"),
    ),
    View(
        "spectra", "solution", "Spectrum of the solution",
        "Normalised eigenvalues of the solution: if only one is nonzero, the relaxation is exact.",
        ("display = dc.plotting.SpectrumDisplay.from_result(result)", FIGURE_CODE),
    ),
    View(
        "roundings", "solution", "Comparison of roundings",
        "Points in each cluster, cost of Eq. (9), optimality gap, and clustering error against the reference labels (0 "
        "identical, 1 unrelated). An asterisk marks the lowest cost.",
        ("table = rounding_table(X, result, y, nu, penalty, like=labels, bounds={bounds}{constraints})", TABLE_CODE),
        clusters="two", needs=("rounding_table", "table_figure"),
    ),
    View(
        "brackets", "solution", "Certified bounds",
        "Bounds on the optimal cost against time; intervals for the same equation overlap.",
        (BRACKETS_CODE, 'figure = display.plot(against="seconds").figure_'),
        of="all",
    ),
    View(
        "gaps", "solution", "Duality gap",
        "Upper minus lower bound against time; a solver stops when it is below the tolerance (tol).",
        (BRACKETS_CODE, 'figure = display.plot(against="seconds", gap=True).figure_'),
        of="all",
    ),
    View(
        "nu_path", "paths", "Regularization path over nu",
        "Coefficients per standard deviation, cost and imbalance (0 for equal sizes) against nu, Eq. (14).",
        (PATH_CODE, 'figure = display.plot(panels=["coefficients", "value", "imbalance"]).figure_'),
        of="nu path",
    ),
    View(
        "lambda_path", "paths", "Regularization path over lam",
        "From few features (left) to all: coefficients per standard deviation, cost, and ratio of the second to the "
        "first eigenvalue (0 for one split), Eq. (15).",
        (
            PATH_CODE,
            'first = "coefficients" if path.groups.are_single else "groups"',
            'figure = display.plot(panels=[first, "value", "eigenvalue_ratio"]).figure_',
        ),
        of="lambda path",
    ),
    View(
        "comparison", "comparison", "Comparison of methods",
        "Solvers, k-means and alternating optimization. Values are comparable for one equation; (8), (11) and (15) are "
        "equal. The optimality gap bounds the possible improvement of the labels.",
        ("table = comparison_table(comparison)", TABLE_CODE),
        of="comparison", clusters="two", needs=("comparison_table", "table_figure"),
    ),
)  # fmt: skip
SEARCH_VIEW = View(  # shown after a search
    "search", "best", "Convergence of the search",
    "Cost of the best split so far and certified lower bound on the cost of all splits, against time. The search ends "
    "when they agree within the tolerance (tol).",
    ("display = dc.plotting.SearchDisplay.from_search(found)", FIGURE_CODE),
    of="best split", clusters="two",
)  # fmt: skip
BY_NAME = {view.name: view for view in (*VIEWS, SEARCH_VIEW)}


def views_for(n_clusters: int) -> list[View]:
    """Return the views for a number of clusters, in order."""
    return [view for view in VIEWS if view.clusters in ("any", "two" if n_clusters == 2 else "many")]


def arrange(shown: Mapping[str, T], section: str, n_clusters: int) -> dict[str, T]:
    """Return the shown views of a section in order, without those for another number of clusters."""
    names = [view.name for view in views_for(n_clusters) if view.section == section]
    return {name: shown[name] for name in names if name in shown}
