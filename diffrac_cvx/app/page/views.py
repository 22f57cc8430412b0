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
    says: str  # what is seen, in plain words
    draw: tuple[str, ...]  # the Python that draws it
    of: str = "one"  # "one" result, "all" results, or the name of another computation
    needs_labels: bool = False  # whether two true groups are needed,
    needs_groups: bool = False  # or any number of them
    clusters: str = "any"  # shown for "two" clusters, for "many", which is more than two, or for "any" number
    needs: tuple[str, ...] = ()  # what its Python takes from the page's tables and figures

    @property
    def imports(self) -> tuple[str, ...]:
        """What its Python imports beyond NumPy and the package."""
        return (f"from diffrac_cvx.app.page.tables import {', '.join(self.needs)}",) if self.needs else ()

    @property
    def is_table(self) -> bool:
        """Whether it is shown as a table, and is a picture only when it is saved."""
        return self.draw[-1] == TABLE


TABLE = "figure = table_figure(table)"
DIRECTION = "w = dc.certify_labels(X, labels, 0.0, nu=nu, penalty=penalty).v"
FIGURE = "figure = display.plot().figure_"
PLANE = "plane = plane_of(model, X)"
BRACKETS = "display = dc.plotting.BracketDisplay.from_result(*results.values(), names=list(results))"
PATH = "display = dc.plotting.PathDisplay(path, names, X.std(axis=0))"  # coefficients per standard deviation

VIEWS = (
    View(
        "projection", "labels", "The clusters found",
        "Each point by its score, a weighted sum of its features. The weights are the best ones for the clusters "
        "found, and the dashed line is where the scores split best in two.",
        (DIRECTION, "display = dc.plotting.ProjectionDisplay.from_labels(X, labels, w)", FIGURE),
        clusters="two",
    ),
    View(
        "true_labels", "labels", "The true groups on the same scores",
        "The same scores, with the groups that are known: no method is given these.",
        (DIRECTION, "display = dc.plotting.ProjectionDisplay.from_labels(X, y, w)", FIGURE),
        needs_labels=True, clusters="two",
    ),
    View(
        "direction", "labels", "Weights of the features",
        "By how much the score of a point changes when a feature grows by one standard deviation: features in "
        "different units can be compared. The largest come first.",
        (
            DIRECTION,
            "display = dc.plotting.DirectionDisplay(w * X.std(axis=0), names, per_deviation=True)",
            'figure = display.plot(kind="bar" if X.shape[1] <= 20 else "stem").figure_',
        ),
        clusters="two",
    ),
    View(
        "clusters_found", "labels", "The clusters found",
        "The points in the plane in which the scores of the clusters vary most. A score is a weighted sum of the "
        "features, one for each cluster.",
        (PLANE, "figure = plane_figure(plane, model.labels_, 'cluster')"),
        of="clusters", clusters="many", needs=("plane_figure", "plane_of"),
    ),
    View(
        "known_groups", "labels", "The true groups in the same plane",
        "The same points, with the groups that are known: no method is given these.",
        (PLANE, "figure = plane_figure(plane, groups, 'group')"),
        of="clusters", needs_groups=True, clusters="many", needs=("plane_figure", "plane_of"),
    ),
    View(
        "cluster_table", "labels", "What makes each cluster",
        "How many points each cluster has, and the features that count most for it: by how much its score changes when "
        "a feature grows by one standard deviation. A point belongs to the cluster with the largest score; by "
        "repeated splits, the score is that of the split that set the cluster apart last.",
        ("table = cluster_table(model, X, names)", TABLE),
        of="clusters", clusters="many", needs=("cluster_table", "table_figure"),
    ),
    View(
        "spectra", "labels", "One split, or a mixture of several",
        "Shares of the eigenvalues of the solution. The first alone: the solution is one split, and the relaxation "
        "is exact. Several: it is a mixture of splits, from which the clusters are read.",
        ("display = dc.plotting.SpectrumDisplay.from_result(result)", FIGURE),
    ),
    View(
        "roundings", "labels", "Ways to read clusters from the solution",
        "What each way gives: the number of points in each cluster, the cost by Eq. (9) (0 is best, 1 is worst), and "
        "the proved label gap, by which the best of all splits can be cheaper at most. Where true groups are known: "
        "the error, 0 for the same groups and 1 for unrelated ones. An asterisk marks the cheapest.",
        ("table = rounding_table(X, result, y, nu, penalty, bounds={bounds}{links})", TABLE),
        clusters="two", needs=("rounding_table", "table_figure"),
    ),
    View(
        "brackets", "proofs", "The least cost, enclosed",
        "Proved lower and upper bounds on the least cost, against time. The solution lies between them; methods that "
        "go through CVXPY are one point. Bounds on one equation must overlap.",
        (BRACKETS, 'figure = display.plot(against="seconds").figure_'),
        of="all",
    ),
    View(
        "gaps", "proofs", "Distance of the bounds",
        "Upper minus lower bound against time, proved by this package whichever method found the point. A method "
        "stops when the distance is below the precision (tol).",
        (BRACKETS, 'figure = display.plot(against="seconds", gap=True).figure_'),
        of="all",
    ),
    View(
        "nu_path", "paths", "Other preferences for equal sizes (nu)",
        "The solution as nu grows from 0, where all points in one cluster are cheapest, to 1, where equal sizes are "
        "preferred: weights per standard deviation, cost, imbalance (0 for equal sizes). See Eq. (14).",
        (PATH, 'figure = display.plot(panels=["coefficients", "value", "imbalance"]).figure_'),
        of="nu path",
    ),
    View(
        "lambda_path", "paths", "Other preferences for few features (lam)",
        "The solution from few features, left, to all, right: weights per standard deviation, cost, and the second "
        "eigenvalue over the first (0 for one split). See Eq. (15).",
        (PATH, 'figure = display.plot(panels=["coefficients", "value", "eigenvalue_ratio"]).figure_'),
        of="lambda path",
    ),
    View(
        "duality", "paths", "Fixed and preferred sizes",
        "Left: the least cost q if the imbalance alpha is fixed, Eq. (7). Right: the least cost p if equal sizes are "
        "preferred by nu, Eq. (8), which is the least of q + nu alpha. Without penalty; the band is proved.",
        ("display = dc.plotting.DualityDisplay(duality)", FIGURE),
        of="duality",
    ),
    View(
        "comparison", "comparison", "All methods and two simple ones",
        "What each method finds for the same points, with its proved bounds. Values can be compared within one "
        "equation; (8), (11) and (15) are equal. The proved label gap says by how much the best split can be cheaper.",
        ("table = comparison_table(comparison)", TABLE),
        of="comparison", clusters="two", needs=("comparison_table", "table_figure"),
    ),
)  # fmt: skip
SEARCH = View(  # shown when the search was asked for
    "search", "best", "How the search closed",
    "The cost of the best split found so far and the proved lower bound on the cost of all splits, against time. The "
    "search is over when they meet within the precision (tol).",
    ("display = dc.plotting.SearchDisplay.from_search(found)", FIGURE),
    of="best split", clusters="two",
)  # fmt: skip
BY_NAME = {view.name: view for view in (*VIEWS, SEARCH)}


def views_for(n_clusters: int) -> list[View]:
    """Return the views that are shown for a number of clusters, in their order."""
    return [view for view in VIEWS if view.clusters in ("any", "two" if n_clusters == 2 else "many")]


def arrange(shown: Mapping[str, T], section: str, n_clusters: int) -> dict[str, T]:
    """Return what is shown of a section's views, in their order, without those of another number of clusters."""
    names = [view.name for view in views_for(n_clusters) if view.section == section]
    return {name: shown[name] for name in names if name in shown}
