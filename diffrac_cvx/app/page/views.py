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
        What is seen, with the paper's equation.
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

VIEWS = (
    View(
        "projection", "labels", "Found labels on their direction",
        "Points projected on the direction $v$ that is best for the found labels in Eq. (9); the threshold is that of "
        "exact 2-means.",
        (DIRECTION, "display = dc.plotting.ProjectionDisplay.from_labels(X, labels, w)", FIGURE),
    ),
    View(
        "true_labels", "labels", "True labels on the same direction",
        "The same projection with the true labels, which no solver is given.",
        (DIRECTION, "display = dc.plotting.ProjectionDisplay.from_labels(X, y, w)", FIGURE),
        needs_labels=True,
    ),
    View(
        "direction", "labels", "Coefficients of the direction",
        "Leading direction of $V$, Eq. (15); outside the support the bars are grey.",
        (
            "display = dc.plotting.DirectionDisplay.from_result(result, X, feature_names=names)",
            'figure = display.plot(kind="bar" if X.shape[1] <= 20 else "stem").figure_',
        ),
    ),
    View(
        "spectra", "labels", "Spectra of Y and V",
        "Eigenvalues over their sum. One eigenvalue alone: $Y = yy'$, the relaxation is tight (section 5).",
        ("display = dc.plotting.SpectrumDisplay.from_result(result)", FIGURE),
    ),
    View(
        "roundings", "labels", "Roundings",
        "Labels that each rounding reads from $Y = FF'$ (sections 2.2, 5.1.4): clustering error $1 - (y'\\hat y/n)^2$ "
        "where true labels are known, the objective of Eq. (9), and a proved bound on how far it is from the best of "
        "all labellings. An asterisk marks the least objective.",
        ("table = rounding_table(X, result, y, nu, penalty, bounds={bounds})", TABLE),
        imports=("from diffrac_cvx.app.page.tables import rounding_table, table_figure",),
    ),
    View(
        "brackets", "proofs", "Brackets closing",
        "Proved lower and upper bounds on the optimum against time: a solution through CVXPY is one point. Brackets of "
        "one equation overlap; Eq. (7), (21) and (24) are other problems.",
        (
            "display = dc.plotting.BracketDisplay.from_result(*results.values(), names=list(results))",
            'figure = display.plot(against="seconds").figure_',
        ),
        of="all",
    ),
    View(
        "gaps", "proofs", "Proved gaps",
        "Upper minus lower bound against time, certified by this package whichever solver found the point.",
        (
            "display = dc.plotting.BracketDisplay.from_result(*results.values(), names=list(results))",
            'figure = display.plot(against="seconds", gap=True).figure_',
        ),
        of="all",
    ),
    View(
        "nu_path", "paths", "Along $\\nu$",
        "Solutions of Eq. (14) as the weight of the imbalance grows from 0, where one cluster is optimal, to 1.",
        ("display = dc.plotting.PathDisplay(path, names)", 'figure = display.plot(panels=["coefficients", "value", '
         '"imbalance"]).figure_'),
        of="nu path",
    ),
    View(
        "lambda_path", "paths", "Along $\\lambda$",
        "Solutions of Eq. (15) as the sparse penalty $\\lambda \\|v\\|_1^2$ grows; $\\lambda$ decreases to the right.",
        ("display = dc.plotting.PathDisplay(path, names)", 'figure = display.plot(panels=["coefficients", "value", '
         '"eigenvalue_ratio"]).figure_'),
        of="lambda path",
    ),
    View(
        "duality", "paths", "Duality of $\\alpha$ and $\\nu$",
        "$p(\\nu)$ of Eq. (8) is the least of $q(\\alpha) + \\nu \\alpha$, with $q(\\alpha)$ that of Eq. (7), without "
        "penalty. The band is the proved bracket on $q$.",
        ("display = dc.plotting.DualityDisplay(duality)", FIGURE),
        of="duality",
    ),
    View(
        "comparison", "comparison", "All methods and two baselines",
        "What `compare` finds on the same data, each method with its proved bracket. Values are comparable within one "
        "equation; (8), (11) and (15) are equal. The label gap is a proved distance from the best labels of Eq. (9).",
        ("table = comparison_table(comparison)", TABLE),
        of="comparison",
        imports=("from diffrac_cvx.app.page.tables import comparison_table, table_figure",),
    ),
)  # fmt: skip
BY_NAME = {view.name: view for view in VIEWS}
