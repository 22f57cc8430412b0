"""The controls of the page: what each means, its element, and the panel that holds them."""

from collections.abc import Mapping, Sequence
from typing import Any

import marimo as mo

from diffrac_cvx import datasets
from diffrac_cvx.app.page.computation import EXTRAS
from diffrac_cvx.app.page.data import MOST_UPLOADED
from diffrac_cvx.app.page.solve_choice import list_forms
from diffrac_cvx.datasets.tables import SUFFIXES
from diffrac_cvx.errors import DataError
from diffrac_cvx.registry import MOST_ON_PAGE, SOLVERS
from diffrac_cvx.rounding import ROUNDINGS

# The label of each control, and the text that appears when the pointer rests on it.
CONTROLS: dict[str, tuple[str, str]] = {
    "source": ("Data", "Planted clusters (section 7.1), a data set of Table 1 (section 7.2), or a table of your own."),
    "n": ("$n$, points", "Rows of X, section 2.1."),
    "d": ("$d$, dimensions", "Columns of X, section 2.1."),
    "sparsity": ("$k$, sparsity", "Nonzero entries of the planted direction v, at most d; section 7.1."),
    "imbalance": ("$\\alpha^*$, imbalance", "(1'y/n)^2 of the planted labels; 0: clusters of equal size. Section 2.2."),
    "noise": ("$\\sigma$, noise", "Standard deviation of the noise added to the labels; section 5.1.2."),
    "seed": ("seed", "Another seed gives other data of the same distribution; section 7.1."),
    "name": ("data set", "The nine two-class sets of Table 1, section 7.2; three of them have to be fetched first."),
    "scaling": ("scaling", "Of the columns, section 7.2; it matters for lambda and a, not for Eq. (12) alone."),
    "file": (
        "table",
        f"CSV, TSV, NPZ or Parquet of at most {MOST_UPLOADED // 10**6} MB: one point a row, one feature a column (X of "
        "section 2.1).",
    ),
    "label": ("label column", "True labels, numbers or text; only to compare with, Eq. (1) does not use them."),
    "drop": ("columns left out", "Such as the number of a sample: it would be a feature of X (section 2.1)."),
    "missing": ("missing values", "Refuse, drop their rows, or take the column's mean: X of section 2.1 has none."),
    "nu": (
        "$\\nu$, weight of the imbalance",
        "Adds nu (1'y/n)^2, Eq. (8) and (9). At 0 one single cluster is optimal; 1 is Eq. (12).",
    ),
    "lam": (
        "$\\lambda$, sparse penalty",
        "Adds lambda ||v||_1^2, Eq. (15) and (20): fewer features have a nonzero entry in v. 0: no penalty.",
    ),
    "ridge": ("$a$, ridge", "Adds a^2 ||v||^2, Eq. (16): a smaller direction v."),
    "alpha": ("$\\alpha$, fixed imbalance", "Fixes 1'Y1/n^2 = alpha in Eq. (7); the other relaxations do not use it."),
    "tol": ("tolerance", "Proved gap (upper - lower bound) at which solvers stop; values lie in [0, 1]. Section 6."),
    "forms": ("relaxations", "Which problems are solved, Eq. (7) to (24). Those in n x n matrices: small n only."),
    "solvers": ("solvers", "low_rank and FISTA (section 6) solve (15); CLARABEL and SCS, through CVXPY, solve all."),
    "extras": (
        "also computed",
        "Paths along nu (Eq. 14) and lambda (Eq. 15), duality of alpha and nu (Eq. 7 and 8), and the table of compare.",
    ),
    "rounding": ("rounding", "How labels are read from Y = FF': sections 2.2 and 5.1.4."),
    "run": ("solution shown", "The solution whose labels, direction and spectra are below (V of Eq. 15, Y of 8)."),
    "automatic": ("solve at every change", "Off: only when Run is pressed. A new solve ends the one that runs."),
}

LAMBDAS = (0.0, *(round(m * 10.0**e, 6) for e in (-4, -3, -2, -1) for m in (1, 2, 3, 5)), 1.0)
RIDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
MISSING = {"refuse": "error", "drop the rows": "drop", "the column's mean": "mean"}
TOLERANCES = {f"1e-{digits}": 10.0**-digits for digits in (2, 3, 4, 5, 6)}
SCALINGS = ("standardise", "min-max", "none")
TALL = ("forms", "solvers", "extras", "file", "drop")  # controls below their label, not beside it


def slider(value: float, **shape: Any) -> Any:
    """Return a slider that updates its value when it is released; its shape is start, stop and step, or steps."""
    return mo.ui.slider(value=value, debounce=True, show_value=True, full_width=True, **shape)


def label_of(name: str) -> str:
    """Return the label of a control as Markdown, with the text that appears when the pointer rests on it."""
    text, meaning = CONTROLS[name]
    return f'<span data-tooltip="{meaning}">{text}</span>'


def list_meanings() -> str:
    """Return what all controls and relaxations mean, as a list in Markdown."""
    lines = [f"- **{text}**: {meaning}" for text, meaning in CONTROLS.values()]
    forms = [f"- {form} `{name}`: {record.says}, {record.shape}" for form, (name, record) in list_forms().items()]
    return "\n".join([*lines, *forms])


def hint(error: Exception) -> str:
    """Return the controls that would help, in parentheses."""
    labels = [CONTROLS[remedy][0] for remedy in error.remedies] if isinstance(error, DataError) else []
    return f" (in the panel: {' or '.join(labels)})" if labels else ""


def file_control() -> Any:
    """Return the control that takes a user's own table."""
    return mo.ui.file(filetypes=SUFFIXES, kind="area", max_size=MOST_UPLOADED)


def planted_controls() -> Any:
    """Return the controls of planted data."""
    return mo.ui.dictionary(
        {
            "n": slider(80, start=20, stop=1000, step=10),
            "d": slider(10, start=2, stop=60, step=1),
            "sparsity": slider(1, start=1, stop=20, step=1),
            "imbalance": slider(0.0, start=0.0, stop=0.9, step=0.05),
            "noise": slider(0.3, start=0.0, stop=1.5, step=0.05),
            "seed": slider(0, start=0, stop=20, step=1),
        }
    )


def set_controls() -> Any:
    """Return the controls of data sets that have a name."""
    return mo.ui.dictionary(
        {
            "name": mo.ui.dropdown(datasets.names(), value="breast_cancer"),
            "scaling": mo.ui.dropdown(SCALINGS, value="standardise"),
        }
    )


def table_controls(columns: Sequence[str]) -> Any:
    """Return the controls of a user's own table with these columns."""
    return mo.ui.dictionary(
        {
            "label": mo.ui.dropdown(columns),
            "drop": mo.ui.multiselect(columns, full_width=True),
            "missing": mo.ui.dropdown(MISSING, value="refuse"),
            "scaling": mo.ui.dropdown(SCALINGS, value="standardise"),
        }
    )


def parameter_controls() -> Any:
    """Return the controls of what is solved."""
    return mo.ui.dictionary(
        {
            "nu": slider(1.0, start=0.0, stop=1.0, step=0.05),
            "lam": slider(0.01, steps=LAMBDAS),
            "ridge": slider(0.0, steps=RIDGES),
            "alpha": slider(0.0, start=0.0, stop=1.0, step=0.05),
            "tol": mo.ui.dropdown(TOLERANCES, value="1e-4"),
        }
    )


def solve_controls() -> Any:
    """Return the controls of the solvers, and of what else is computed."""
    forms = {f"{form} {name}": form for form, (name, _) in list_forms().items()}
    return mo.ui.dictionary(
        {
            "forms": mo.ui.multiselect(forms, value=["(15) v_space"], full_width=True),
            "solvers": mo.ui.multiselect(list(SOLVERS), value=["low_rank", "fista", "CLARABEL"], full_width=True),
            "extras": mo.ui.multiselect(list(EXTRAS), value=list(EXTRAS), full_width=True),
        }
    )


def rounding_control() -> Any:
    """Return the control of the rounding, which does not start a new solve."""
    return mo.ui.dropdown(list(ROUNDINGS), value="kmeans_centered")


def row(name: str, element: Any) -> str:
    """Return a control with its label as HTML."""
    kind, text = "control tall" if name in TALL else "control", mo.md(label_of(name)).text
    return f'<div class="{kind}" data-control="{name}"><div>{text}</div><div>{element}</div></div>'


def panel(source: Any, groups: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the side panel: the kind of data, and the controls under their headings."""
    parts = []
    for title, elements in groups.items():
        parts.append(mo.Html(f'<div class="side"><h2>{title}</h2></div>'))
        parts += [source] if title == "Data" else []
        # In a container of their own: other controls keep their places, and the browser does not confuse them.
        inside = "".join(row(name, element) for name, element in elements.items())
        parts.append(mo.Html(f'<div class="group">{inside}</div>'))
    limits = f"Relaxations in n x n matrices take at most {MOST_ON_PAGE} points here."
    parts.append(mo.Html(f'<div class="note">{limits}</div>'))
    parts.append(mo.accordion({"What the controls mean": mo.md(list_meanings())}))
    return mo.sidebar(parts, width="23rem")
