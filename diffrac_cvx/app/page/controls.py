"""What every control of the page means: its label, and what is said when the pointer rests on it."""

from diffrac_cvx.app.page.solve_choice import list_forms

CONTROLS: dict[str, tuple[str, str]] = {
    "source": ("Data", "Planted clusters (section 7.1), a data set of Table 1 (section 7.2), or a table of your own."),
    "n": ("$n$, points", "Rows of X, section 2.1."),
    "d": ("$d$, dimensions", "Columns of X, section 2.1."),
    "sparsity": ("$k$, sparsity", "Nonzero entries of the planted direction v, at most d; section 7.1."),
    "imbalance": ("$\\alpha^*$, imbalance", "(1'y/n)^2 of the planted labels; 0: clusters of equal size. Section 2.2."),
    "noise": ("$\\sigma$, noise", "Standard deviation of the noise added to the labels; section 5.1.2."),
    "seed": ("seed", "Another seed, another draw of the same law; section 7.1."),
    "name": ("data set", "The nine two-class sets of Table 1, section 7.2; three of them have to be fetched first."),
    "scaling": ("scaling", "Of the columns, section 7.2; it matters for lambda and a, not for Eq. (12) alone."),
    "file": ("table", "CSV, TSV, NPZ or Parquet: one point a row, one feature a column (X of section 2.1)."),
    "label": ("label column", "True labels, numbers or text; only to judge by, Eq. (1) does without them."),
    "drop": ("columns left out", "Such as the number of a sample: it would be a feature of X (section 2.1)."),
    "missing": ("missing values", "Refuse, drop their rows, or put the column's mean: X of section 2.1 has none."),
    "nu": (
        "$\\nu$, weight of the imbalance",
        "Adds nu (1'y/n)^2, Eq. (8) and (9). At 0 one single cluster is optimal; 1 is Eq. (12).",
    ),
    "lam": (
        "$\\lambda$, sparse penalty",
        "Adds lambda ||v||_1^2, Eq. (15) and (20): fewer features take part in the direction v. 0: none.",
    ),
    "ridge": ("$a$, ridge", "Adds a^2 ||v||^2, Eq. (16): a smaller direction v."),
    "alpha": ("$\\alpha$, fixed imbalance", "Fixes 1'Y1/n^2 = alpha in Eq. (7); the other relaxations do not use it."),
    "tol": ("tolerance", "Proved gap (upper - lower bound) at which solvers stop; values lie in [0, 1]. Section 6."),
    "forms": ("relaxations", "Which problems are solved, Eq. (7) to (23). Those in n x n matrices: small n only."),
    "solvers": ("solvers", "low_rank and FISTA (section 6) solve (15); CLARABEL and SCS, through CVXPY, solve all."),
    "extras": (
        "also computed",
        "Paths along nu (Eq. 14) and lambda (Eq. 15), duality of alpha and nu (Eq. 7 and 8), and the table of compare.",
    ),
    "rounding": ("rounding", "How labels are read from Y = FF': sections 2.2 and 5.1.4."),
    "chosen": ("looked at", "The solution whose labels, direction and spectra are shown below (V of Eq. 15, Y of 8)."),
    "automatic": ("solve at every change", "Off: only when Run is pressed. A new solve ends the one under way."),
}

LAMBDAS = (0.0, *(round(m * 10.0**e, 6) for e in (-4, -3, -2, -1) for m in (1, 2, 3, 5)), 1.0)
RIDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
MISSING = {"refuse": "error", "drop the rows": "drop", "the column's mean": "mean"}
TOLERANCES = {f"1e-{digits}": 10.0**-digits for digits in (2, 3, 4, 5, 6)}


def label(name: str) -> str:
    """Return the label of a control as Markdown, with what is said when the pointer rests on it."""
    text, meaning = CONTROLS[name]
    return f'<span data-tooltip="{meaning}">{text}</span>'


def meanings() -> str:
    """Return what all controls and relaxations mean, as a list in Markdown."""
    lines = [f"- **{text}**: {meaning}" for text, meaning in CONTROLS.values()]
    forms = [f"- {form} `{name}`: {record.says}, {record.shape}" for form, (name, record) in list_forms().items()]
    return "\n".join([*lines, *forms])
