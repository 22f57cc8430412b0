"""The views of the page: each has a title, a sentence, and the Python that draws it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class View:
    """One view."""

    name: str  # that of its files
    section: str  # the part of the page it belongs to
    title: str
    description: str  # what is seen, in plain words
    draw: tuple[str, ...]  # the Python that draws it
    of: str = "one"  # "one" result, "all" results, or the name of another computation
    needs_groups: bool = False  # whether known groups are needed
    clusters: str = "any"  # shown for "two" clusters, for "many", which is more than two, or for "any" number
    needs: tuple[str, ...] = ()  # what its Python takes from the page's tables and figures

    @property
    def imports(self) -> tuple[str, ...]:
        """What its Python imports beyond NumPy and the package."""
        return (f"from diffrac_cvx.app.page.tables import {', '.join(self.needs)}",) if self.needs else ()

    @property
    def is_table(self) -> bool:
        """Whether it is shown as a table, and is a picture only when it is saved."""
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
        "direction", "labels", "What counts",
        "How much the score grows with one standard deviation of a feature.",
        (
            DIRECTION_CODE,
            "display = dc.plotting.DirectionDisplay(w * X.std(axis=0), names, per_deviation=True)",
            'figure = display.plot(kind="bar" if X.shape[1] <= 20 else "stem").figure_',
        ),
        clusters="two",
    ),
    View(
        "projection", "labels", "How many points have which score",
        "The dashed line is where the scores split best in two.",
        (DIRECTION_CODE, SPLIT_CODE.format("(labels > 0).astype(int)", "cluster"), FIGURE_CODE),
        clusters="two",
    ),
    View(
        "known_split", "labels", "The known groups on the same scores",
        "No method is given these.",
        (DIRECTION_CODE, SPLIT_CODE.format("groups", "group"), FIGURE_CODE),
        needs_groups=True, clusters="two",
    ),
    View(
        "cluster_table", "labels", "What makes each cluster",
        "The features by which a score changes most when they grow by one standard deviation; a point is in the "
        "cluster of its largest score.",
        ("table = cluster_table(model, X, names, order)", TABLE_CODE),
        of="clusters", clusters="many", needs=("cluster_table", "table_figure"),
    ),
    View(
        "clusters_found", "labels", "The clusters",
        "The points in the plane in which the scores of the clusters vary most.",
        (PLANE_CODE, "figure = plane_figure(plane, order[model.labels_], 'cluster')"),
        of="clusters", clusters="many", needs=("plane_figure", "plane_of"),
    ),
    View(
        "known_groups", "labels", "The known groups in the same plane",
        "No method is given these.",
        (PLANE_CODE, "figure = plane_figure(plane, groups, 'group')"),
        of="clusters", needs_groups=True, clusters="many", needs=("plane_figure", "plane_of"),
    ),
    View(
        "spectra", "solution", "One split, or a mixture of several",
        "Shares of the eigenvalues of the solution: one alone is one split, and the relaxation is exact.",
        ("display = dc.plotting.SpectrumDisplay.from_result(result)", FIGURE_CODE),
    ),
    View(
        "roundings", "solution", "Ways to read clusters from the solution",
        "Points in each cluster, the cost by Eq. (9), how much cheaper the best split can be at most, and the error "
        "against the known groups (0 the same, 1 unrelated). An asterisk marks the cheapest.",
        ("table = rounding_table(X, result, y, nu, penalty, like=labels, bounds={bounds}{constraints})", TABLE_CODE),
        clusters="two", needs=("rounding_table", "table_figure"),
    ),
    View(
        "brackets", "solution", "The least cost, enclosed",
        "Proved bounds on the least cost, against time; those on one equation overlap.",
        (BRACKETS_CODE, 'figure = display.plot(against="seconds").figure_'),
        of="all",
    ),
    View(
        "gaps", "solution", "Distance of the bounds",
        "Upper minus lower bound; a method stops when it is below the precision (tol).",
        (BRACKETS_CODE, 'figure = display.plot(against="seconds", gap=True).figure_'),
        of="all",
    ),
    View(
        "nu_path", "paths", "Other preferences for equal sizes (nu)",
        "Weights per standard deviation, cost and imbalance (0 for equal sizes) as nu grows, Eq. (14).",
        (PATH_CODE, 'figure = display.plot(panels=["coefficients", "value", "imbalance"]).figure_'),
        of="nu path",
    ),
    View(
        "lambda_path", "paths", "Other preferences for few features (lam)",
        "From few features, left, to all: weights per standard deviation, cost, and the second eigenvalue over the "
        "first (0 for one split), Eq. (15).",
        (
            PATH_CODE,
            'first = "coefficients" if path.groups is None else "groups"',
            'figure = display.plot(panels=[first, "value", "eigenvalue_ratio"]).figure_',
        ),
        of="lambda path",
    ),
    View(
        "duality", "paths", "Fixed and preferred sizes",
        "Left: the least cost q for a fixed imbalance alpha, Eq. (7). Right: for a preference nu, Eq. (8), the least "
        "of q + nu alpha. Without penalty; the band is proved.",
        ("display = dc.plotting.DualityDisplay(duality)", FIGURE_CODE),
        of="duality",
    ),
    View(
        "comparison", "comparison", "All methods and two simple ones",
        "Values can be compared within one equation; (8), (11) and (15) are equal. The proved label gap says by how "
        "much the best split can be cheaper.",
        ("table = comparison_table(comparison)", TABLE_CODE),
        of="comparison", clusters="two", needs=("comparison_table", "table_figure"),
    ),
)  # fmt: skip
SEARCH_VIEW = View(  # shown when the search was asked for
    "search", "best", "How the search closed",
    "The cost of the best split found so far and the proved lower bound on the cost of all splits, against time. The "
    "search is over when they meet within the precision (tol).",
    ("display = dc.plotting.SearchDisplay.from_search(found)", FIGURE_CODE),
    of="best split", clusters="two",
)  # fmt: skip
BY_NAME = {view.name: view for view in (*VIEWS, SEARCH_VIEW)}


def views_for(n_clusters: int) -> list[View]:
    """Return the views that are shown for a number of clusters, in their order."""
    return [view for view in VIEWS if view.clusters in ("any", "two" if n_clusters == 2 else "many")]


def arrange(shown: Mapping[str, T], section: str, n_clusters: int) -> dict[str, T]:
    """Return what is shown of a section's views, in their order, without those of another number of clusters."""
    names = [view.name for view in views_for(n_clusters) if view.section == section]
    return {name: shown[name] for name in names if name in shown}
