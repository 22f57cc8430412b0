"""The controls of the page and the cards of its views, as marimo's elements."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import marimo as mo

from diffrac_cvx import datasets
from diffrac_cvx.app.page import controls
from diffrac_cvx.app.page.solve_choice import list_forms
from diffrac_cvx.app.page.views import EXTRAS, Picture
from diffrac_cvx.registry import MOST_ON_PAGE, SOLVERS
from diffrac_cvx.rounding import ROUNDINGS

SCALINGS = ("standardise", "min-max", "none")
FILES = (".csv", ".tsv", ".txt", ".npz", ".npy", ".parquet")
TALL = ("forms", "solvers", "extras", "file", "drop")  # controls below their label, not beside it


def slider(value: float, **shape: Any) -> Any:
    """Return a slider that tells its value when it is let go; its shape is start, stop and step, or steps."""
    return mo.ui.slider(value=value, debounce=True, show_value=True, full_width=True, **shape)


def planted() -> Any:
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


def known() -> Any:
    """Return the controls of data sets that have a name."""
    return mo.ui.dictionary(
        {
            "name": mo.ui.dropdown(datasets.names(), value="breast_cancer"),
            "scaling": mo.ui.dropdown(SCALINGS, value="standardise"),
        }
    )


def own(columns: Sequence[str]) -> Any:
    """Return the controls of a user's own table with these columns."""
    return mo.ui.dictionary(
        {
            "label": mo.ui.dropdown(columns),
            "drop": mo.ui.multiselect(columns, full_width=True),
            "missing": mo.ui.dropdown(controls.MISSING, value="refuse"),
            "scaling": mo.ui.dropdown(SCALINGS, value="standardise"),
        }
    )


def parameters() -> Any:
    """Return the controls of what is solved."""
    return mo.ui.dictionary(
        {
            "nu": slider(1.0, start=0.0, stop=1.0, step=0.05),
            "lam": slider(0.01, steps=controls.LAMBDAS),
            "ridge": slider(0.0, steps=controls.RIDGES),
            "alpha": slider(0.0, start=0.0, stop=1.0, step=0.05),
            "tol": mo.ui.dropdown(controls.TOLERANCES, value="1e-4"),
        }
    )


def chosen() -> Any:
    """Return the controls of who solves it, and of what else is computed."""
    forms = {f"{form} {name}": form for form, (name, _) in list_forms().items()}
    return mo.ui.dictionary(
        {
            "forms": mo.ui.multiselect(forms, value=["(15) v_space"], full_width=True),
            "solvers": mo.ui.multiselect(list(SOLVERS), value=["low_rank", "fista", "CLARABEL"], full_width=True),
            "extras": mo.ui.multiselect(list(EXTRAS), value=list(EXTRAS), full_width=True),
        }
    )


def rounding() -> Any:
    """Return the control of the rounding."""
    return mo.ui.dropdown(list(ROUNDINGS), value="kmeans_centered")


def row(name: str, element: Any) -> str:
    """Return a control with its label as HTML."""
    kind, text = "control tall" if name in TALL else "control", mo.md(controls.label(name)).text
    return f'<div class="{kind}" data-control="{name}"><div>{text}</div><div>{element}</div></div>'


def panel(source: Any, groups: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the side panel: the kind of data, and the controls under their headings."""
    parts = []
    for title, elements in groups.items():
        parts.append(mo.Html(f'<div class="side"><h2>{title}</h2></div>'))
        parts += [source] if title == "Data" else []
        # In a box of their own: other controls keep their places, and the browser does not take one for another.
        inside = "".join(row(name, element) for name, element in elements.items())
        parts.append(mo.Html(f'<div class="group">{inside}</div>'))
    limits = f"Relaxations in n x n matrices take at most {MOST_ON_PAGE} points here."
    parts.append(mo.Html(f'<div class="note">{limits}</div>'))
    parts.append(mo.accordion({"What the controls mean": mo.md(controls.meanings())}))
    return mo.sidebar(parts, width="23rem")


def section(title: str, pictures: Iterable[Picture], above: str = "") -> Any:
    """Return a part of the page: its views under a heading."""
    cards = "".join(card(picture) for picture in pictures)
    return mo.Html(f'{mo.md(f"## {title}").text}{above}<div class="views">{cards}</div>')


def card(picture: Picture) -> str:
    """Return a view as HTML: what it shows, of what, and how to take it home."""
    name, view = picture.view.name, picture.view
    kind = "view wide" if view.is_wide else "view"
    head = f'<div class="{kind}" data-view="{name}">{mo.md(f"### {view.title}").text}{mo.md(view.says).text}'
    if picture.script is None:
        return f"{head}{picture.html}</div>"
    files = [
        mo.download(lambda: picture.saved("png"), filename=f"{name}.png", mimetype="image/png", label="PNG"),
        mo.download(lambda: picture.saved("pdf"), filename=f"{name}.pdf", mimetype="application/pdf", label="PDF"),
        mo.download(picture.code.encode, filename=f"{name}.py", mimetype="text/x-python", label="Python"),
    ]
    text = mo.md(f"```python\n{picture.code}\n```").text
    code = f"<details><summary>Python code</summary>{text}</details>"
    below = f'<div class="note">{escape(picture.caption)}</div>{mo.hstack(files, justify="start", wrap=True).text}'
    return f"{head}{picture.html}{below}{code}</div>"


def sentences(said: Iterable[str]) -> str:
    """Return sentences as a list in HTML."""
    return '<ul class="remarks">' + "".join(f"<li>{escape(sentence)}</li>" for sentence in said) + "</ul>"


def told(summary: str, wrong: str) -> Any:
    """Return what the data are, or what is wrong with them."""
    if wrong:
        return mo.callout(mo.Html(f'<div class="wrong">{escape(wrong)}</div>'), kind="danger")
    return mo.Html(f'<div class="summary">{escape(summary)}</div>')
