"""The views of the page: each has a title, a sentence, and the Python that draws it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """One view.

    Attributes
    ----------
    name, section, title : str
        The name is that of its files; the section is the part of the page it belongs to.
    says : str
        What is seen, in plain words.
    draw : tuple of str
        The Python that draws it.
    of : str
        "one" result, "all" results, or the name of another computation.
    needs_labels : bool
        Whether true labels are needed.
    imports : tuple of str
        What its Python imports beyond the package.
    """

    name: str
    section: str
    title: str
    says: str
    draw: tuple[str, ...]
    of: str = "one"
    needs_labels: bool = False
    imports: tuple[str, ...] = ()

    @property
    def is_wide(self) -> bool:
        """Whether it takes the whole width of the page."""
        return self.is_table or self.name == "duality"

    @property
    def is_table(self) -> bool:
        """Whether it is shown as a table, and is a picture only when it is saved."""
        return self.draw[-1] == TABLE


TABLE = "figure = table_figure(table)"
DIRECTION = "w = dc.certify_labels(X, labels, 0.0, nu=nu, penalty=penalty).v"
FIGURE = "figure = display.plot().figure_"
PATH = "display = dc.plotting.PathDisplay(path, names, X.std(axis=0))"  # coefficients per standard deviation

VIEWS = (
    View(
        "projection", "labels", "The clusters found",
        "Each point by its score, a weighted sum of its features. The weights are the best ones for the clusters "
        "found, and the dashed line is where the scores split best in two.",
        (DIRECTION, "display = dc.plotting.ProjectionDisplay.from_labels(X, labels, w)", FIGURE),
    ),
    View(
        "true_labels", "labels", "The true groups on the same scores",
        "The same scores, with the groups that are known: no method is given these.",
        (DIRECTION, "display = dc.plotting.ProjectionDisplay.from_labels(X, y, w)", FIGURE),
        needs_labels=True,
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
        ("table = rounding_table(X, result, y, nu, penalty, bounds={bounds})", TABLE),
        imports=("from diffrac_cvx.app.page.tables import rounding_table, table_figure",),
    ),
    View(
        "brackets", "proofs", "The least cost, enclosed",
        "Proved lower and upper bounds on the least cost, against time. The solution lies between them; methods that "
        "go through CVXPY are one point. Bounds on one equation must overlap.",
        (
            "display = dc.plotting.BracketDisplay.from_result(*results.values(), names=list(results))",
            'figure = display.plot(against="seconds").figure_',
        ),
        of="all",
    ),
    View(
        "gaps", "proofs", "Distance of the bounds",
        "Upper minus lower bound against time, proved by this package whichever method found the point. A method "
        "stops when the distance is below the precision (tol).",
        (
            "display = dc.plotting.BracketDisplay.from_result(*results.values(), names=list(results))",
            'figure = display.plot(against="seconds", gap=True).figure_',
        ),
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
        of="comparison",
        imports=("from diffrac_cvx.app.page.tables import comparison_table, table_figure",),
    ),
)  # fmt: skip
BY_NAME = {view.name: view for view in VIEWS}
