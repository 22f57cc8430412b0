"""The parts of the page below the controls: sections of views, lists of sentences, what the data are."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import marimo as mo

from diffrac_cvx.app.page.answer import Answer, answer_of_search
from diffrac_cvx.app.page.computation import SEARCH_SECONDS, Outcome, StatusLine
from diffrac_cvx.app.page.pictures import DRAWING, Picture, draw_picture


def section(title: str, pictures: Iterable[Picture], above: str = "") -> Any:
    """Return a part of the page: its views under a heading."""
    cards = "".join(card(picture) for picture in pictures)
    return mo.Html(f'{mo.md(f"## {title}").text}{above}<div class="views">{cards}</div>')


def answer_section(answer: Answer | None, above: str = "") -> Any:
    """Return the answer in words, with the clusters as a file."""
    head = mo.md("## Answer")
    if answer is None:
        return mo.vstack([head, mo.Html('<p class="note">There is no solution yet.</p>')])
    return mo.vstack([head, mo.Html(f'<div class="answer">{above}{answer.html}</div>'), *save_clusters(answer)])


def save_clusters(answer: Answer) -> list[Any]:
    """Return what saves the clusters, where there are some."""
    if not answer.clusters:
        return []
    file = mo.download(answer.clusters, filename="clusters.csv", mimetype="text/csv", label="Save the clusters (CSV)")
    return [mo.hstack([file], justify="start")]  # a wide table scrolls in the width of the page


def status_line(line: StatusLine, kind: str = "status") -> str:
    """Return a line of progress with its bar, as HTML."""
    bar = f'<progress value="{line.done}" max="{max(line.total, 1)}"></progress>'
    return f'<div class="{kind}" data-state="{line.state}">{escape(str(line))}{bar}</div>'


def marks_section(chooser: Any, chosen: str, buttons: Iterable[Any], field: str) -> Any:
    """Return the part of the page in which the clusters of points are said."""
    says = (
        "If you know the clusters of some points, choose them in the plot, by a click, a box, or a lasso with the "
        "shift key, and say where they belong. The answer follows."
    )
    parts = [mo.md("## What you know"), mo.Html(f'<p class="note">{says}</p>'), chooser]
    parts += [mo.hstack([*buttons, mo.Html(chosen)], justify="start", wrap=True), mo.Html(field)]
    return mo.vstack(parts)


def chooser_of(draw: Callable[[], Any]) -> Any:
    """Return a plot in which points can be chosen."""
    with DRAWING:
        return mo.ui.matplotlib(draw(), debounce=True)


def search_section(button: Any, line: StatusLine | None, outcome: Outcome | None, above: Answer | None) -> Any:
    """Return the search for the best split: how it goes on, and what it found."""
    says = f"Search for the best split of all, for {SEARCH_SECONDS:g} s at most; Stop ends it and keeps what is proved."
    parts = [mo.md("## Is it the best?"), mo.hstack([button, mo.md(says)], justify="start", wrap=True)]
    parts += [] if line is None else [mo.Html(status_line(line, "searching"))]
    found = None if outcome is None else answer_of_search(outcome, above)
    if outcome is not None and found is not None:
        parts += [mo.Html(f'<div class="best">{found.html}</div>'), *save_clusters(found)]
        if found.data is not None:
            parts.append(mo.Html(f'<div class="views">{card(draw_picture("search", outcome, "", ""))}</div>'))
    return mo.vstack(parts)


def card(picture: Picture) -> str:
    """Return a view as HTML: what it shows, of what, its files and its Python."""
    name, view = picture.view.name, picture.view
    kind = "view wide" if view.is_table or name == "duality" else "view"
    head = f'<div class="{kind}" data-view="{name}">{mo.md(f"### {view.title}").text}{mo.md(view.says).text}'
    if picture.says:
        return f"{head}{picture.html}</div>"
    files = [
        mo.download(lambda: picture.save("png"), filename=f"{name}.png", mimetype="image/png", label="PNG"),
        mo.download(lambda: picture.save("pdf"), filename=f"{name}.pdf", mimetype="application/pdf", label="PDF"),
        mo.download(picture.code.encode, filename=f"{name}.py", mimetype="text/x-python", label="Python"),
    ]
    text = mo.md(f"```python\n{picture.code}\n```").text
    code = f"<details><summary>Python code</summary>{text}</details>"
    below = f'<div class="note">{escape(picture.caption)}</div>{mo.hstack(files, justify="start", wrap=True).text}'
    return f"{head}{picture.html}{below}{code}</div>"


def data_summary(summary: str, wrong: str) -> Any:
    """Return what the data are, or what is wrong with them."""
    if wrong:
        return mo.callout(mo.Html(f'<div class="wrong">{escape(wrong)}</div>'), kind="danger")
    return mo.Html(f'<div class="summary">{escape(summary)}</div>')
