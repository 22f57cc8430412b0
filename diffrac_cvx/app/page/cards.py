"""Parts of the page below the controls: results, sections of views and data summary."""

from collections.abc import Callable, Iterable, Mapping
from html import escape
from textwrap import shorten
from typing import Any

import marimo as mo
import numpy as np

from diffrac_cvx.app.page.computation import STRUCTURE, Outcome, StatusLine
from diffrac_cvx.app.page.controls import control_row
from diffrac_cvx.app.page.data import PageSource, values_of
from diffrac_cvx.app.page.naming import number_clusters
from diffrac_cvx.app.page.pictures import DRAWING_LOCK, ViewPicture, draw_picture
from diffrac_cvx.app.page.summary import ClusterSummary, summarize_search, warnings_html
from diffrac_cvx.app.page.tables import list_html, stacked_html
from diffrac_cvx.comparison.structure import StructureTest
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.plotting.canvas import style_of
from diffrac_cvx.problem.formatting import format_ends
from diffrac_cvx.rounding.diagnostics import no_structure

MAX_VALUES = 24  # values of a row that are shown
BAR_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # right ends of the bar of bounds
MARKER_SYMBOLS = {
    "o": "●",
    "^": "▲",
    "s": "■",
    "D": "◆",
    "v": "▼",
    "P": "✚",
    "X": "✖",
    "*": "★",
}  # matplotlib markers


def section(title: str, pictures: Iterable[ViewPicture], above: str = "") -> Any:
    """Return a section of the page: views under a heading."""
    cards = "".join(view_html(picture) for picture in pictures)
    return mo.Html(f'{mo.md(f"## {title}").text}{above}<div class="views">{cards}</div>')


def hero(chooser: Any, found: ClusterSummary | None, outcome: Outcome | None, is_new: bool, prove: Any) -> str:
    """Return the main figure and the summary, greyed if data or parameters have changed since."""
    if found is None or outcome is None:
        return '<div class="hero"><p class="note">There is no solution yet.</p></div>'
    messages = found.sentences[1:] if found.sizes else found.sentences  # the legend shows the sizes
    tests = structure_html(outcome.extras.get(STRUCTURE, ""))
    parts = [tests, found.warnings, legend_html(found), proof_bar(found.lower, found.cost), list_html(messages)]
    parts += ["" if found.groups is None else stacked_html(found.groups)]
    buttons = [prove] if outcome.setting.n_clusters == 2 else []
    parts += ['<div class="buttons">', *map(format, [*buttons, *download_buttons(found)]), "</div>"]
    words, plot = f'<div class="words answer">{"".join(parts)}</div>', "" if chooser is None else chooser
    return f'<div class="{"hero" if is_new else "hero old"}"><div class="picture">{plot}</div>{words}</div>'


def structure_html(test: StructureTest | str) -> str:
    """Return the result of the structure test as HTML, as a warning if `DiffracClustering` gives one."""
    if isinstance(test, str):  # the reason for its absence, or none yet
        return ""
    if test.verdict == "none":
        return warnings_html([no_structure(str(test))])
    return f'<div class="structure">{escape(str(test))}</div>'


def legend_html(found: ClusterSummary) -> str:
    """Return the clusters with their colours, markers and sizes as HTML."""
    marks = []
    for k, size in enumerate(found.sizes):
        style = style_of(k)
        name = f"{MARKER_SYMBOLS[style.marker]} <b>cluster {k}</b> {size} points"
        marks.append(f'<span style="color:{style.color}">{name}</span>')
    return f'<div class="keys">{"".join(marks)}</div>'


def proof_bar(lower: float, cost: float) -> str:
    """Return the bounds as a bar: below the lower bound, between the bounds, and the cost."""
    if not np.isfinite(cost):
        return ""
    lower, cost = max(lower, 0.0), min(cost, 1.0)
    least, most = format_ends(lower, cost)
    end = min(end for end in BAR_ENDS if end >= cost)
    widths = (100.0 * lower / end, 100.0 * max(cost - lower, 0.0) / end)
    return (
        f'<div class="proof" role="img" aria-label="no split costs less than {least}; this one costs {most}">'
        f'<div class="track"><div class="proved" style="width:{widths[0]:.2f}%"></div>'
        f'<div class="open" style="width:{widths[1]:.2f}%"></div></div>'
        f'<div class="ends"><span>0</span><span>certified lower bound {least}; cost {most}</span>'
        f"<span>{end:g}</span></div></div>"
    )


def download_buttons(answer: ClusterSummary) -> list[Any]:
    """Return the download button of the clusters if there are any."""
    if not answer.clusters:
        return []
    file = mo.download(answer.clusters, filename="clusters.csv", mimetype="text/csv", label="Download clusters (CSV)")
    return [mo.hstack([file], justify="start")]  # keeps a wide table within the page


def status_line(line: StatusLine, kind: str = "status") -> str:
    """Return a status line as HTML, with a progress bar during a computation."""
    bar = f'<progress value="{line.done}" max="{max(line.total, 1)}"></progress>' if line.state == "running" else ""
    return f'<div class="{kind}" data-state="{line.state}">{escape(str(line))}{bar}</div>'


def point_section(
    source: PageSource, found: ClusterSummary, chosen: list[int], n_known: int, two: bool,
    buttons: Mapping[str, Any], text: Any, wrong: str,
) -> Any:  # fmt: skip
    """Return the row of the selected point, and the controls that label points."""
    assert found.data is not None
    rows, message = (
        found.data.rows,
        "Click a point to show its row; drag a box, or a lasso with Shift, to select several.",
    )
    table = ""
    if len(chosen) == 1:
        message, table = f"Row {rows[chosen[0]]}", stacked_html(row_table(source, found, chosen[0]))
    elif chosen:
        message = f"{len(chosen)} points: {shorten(', '.join(map(str, rows[chosen])), 60)}"
    parts = [f'<div class="chosen">{escape(message)}</div>', table]
    if two:
        question = "Label the selection to constrain the clusters." if chosen else ""
        counted = f" {n_known} labelled." if n_known else ""
        press = "".join(map(format, buttons.values()))
        parts += [f'<div class="buttons"><span class="note">{question}{counted}</span>{press}</div>']
        parts += [
            f'<details class="more"><summary>Labelled points as text</summary>{control_row("marks", text)}</details>'
        ]
        parts += [f'<div class="wrong">{escape(wrong)}</div>'] if wrong else []
    else:
        suffix = f" The {n_known} labels are kept for that case." if n_known else ""
        parts.append(f'<p class="note">Points can be labelled only with two clusters.{suffix}</p>')
    return mo.Html(f'<div class="point">{"".join(parts)}</div>')


def row_table(source: PageSource, found: ClusterSummary, point: int) -> ReportTable:
    """Return cluster and decision function of a point, then its values in the table, at most MAX_VALUES."""
    assert found.data is not None
    cluster = int(number_clusters(found.labels)[point])
    values = {"cluster": str(cluster)}
    for reference in found.data.references:
        values["reference label"] = str(reference[point])
    if found.scores.ndim == 1:
        values["decision function"] = f"{found.scores[point]:+.2f}"
    shown = [*values.items(), *values_of(source, found.data, point).items()]
    names, entries = zip(*shown[:MAX_VALUES], strict=True)
    more = len(shown) - MAX_VALUES
    return ReportTable((*names, *([f"{more} more"] if more > 0 else [])), ((*entries, *([""] if more > 0 else [])),))


def selection_plot(draw: Callable[[], Any]) -> Any:
    """Return a plot with selectable points."""
    with DRAWING_LOCK:
        return mo.ui.matplotlib(draw(), debounce=True)


def search_section(line: StatusLine | None, outcome: Outcome | None, above: ClusterSummary | None) -> Any:
    """Return progress and result of the search for the optimal split, if it was started."""
    parts: list[Any] = []
    if line is not None:
        bar = proof_bar(line.progress.lower, line.progress.upper) if line.progress else ""
        parts.append(mo.Html(f"{mo.md('## Search for the optimum').text}{status_line(line, 'searching')}{bar}"))
    found = None if outcome is None else summarize_search(outcome, above)
    if outcome is not None and found is not None:
        shown = f"{legend_html(found) if found.sizes else ''}{proof_bar(found.lower, found.cost)}{found.html}"
        parts += [mo.Html(f'<div class="best">{shown}</div>'), *download_buttons(found)]
        if found.data is not None:
            parts.append(mo.Html(f'<div class="views">{view_html(draw_picture("search", outcome, "", ""))}</div>'))
    return mo.vstack(parts) if parts else None


def view_html(picture: ViewPicture) -> str:
    """Return a view as HTML, with a menu of its caption, files and Python code."""
    name, view = picture.view.name, picture.view
    kind = "view wide" if view.is_table else "view"
    head = f'<div class="{kind}" data-view="{name}">{mo.md(f"### {view.title}").text}'
    description = mo.md(view.description).text
    if picture.message:
        return f"{head}{description}{picture.html}</div>"
    files = [
        mo.download(lambda: picture.save("png"), filename=f"{name}.png", mimetype="image/png", label="PNG"),
        mo.download(lambda: picture.save("pdf"), filename=f"{name}.pdf", mimetype="application/pdf", label="PDF"),
        mo.download(picture.code.encode, filename=f"{name}.py", mimetype="text/x-python", label="Python"),
    ]
    text = mo.md(f"```python\n{picture.code}\n```").text
    menu = f'<div class="note">{escape(picture.caption)}</div>{mo.hstack(files, justify="start", wrap=True).text}{text}'
    folded = f'<details class="menu"><summary aria-label="save, or show the Python code">⋯</summary>{menu}</details>'
    return f"{head}{folded}{description}{picture.html}</div>"


def data_summary(summary: str, wrong: str, columns: str = "") -> Any:
    """Return the summary of the data or an error, and the assumptions on columns."""
    said = f'<div class="assumed">Columns: {escape(columns)}.</div>' if columns else ""
    if wrong:
        return mo.callout(mo.Html(f'<div class="wrong">{escape(wrong)}</div>{said}'), kind="danger")
    return mo.Html(f'<div class="summary">{escape(summary)}</div>{said}')
