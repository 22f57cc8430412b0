"""Views of the results: figures, files and the Python code that draws them."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from html import escape
from io import BytesIO
from threading import RLock
from typing import Any

from diffrac_cvx.app.page.computation import (
    CLUSTERS,
    COMPUTATIONS,
    PACKAGE_NAMES,
    Outcome,
    Run,
    error_message,
    expression_of,
    namespace_of,
)
from diffrac_cvx.app.page.data import Data
from diffrac_cvx.app.page.solve_choice import PageSetting
from diffrac_cvx.app.page.summary import bounds_objective, names_of_many, rounded_labels
from diffrac_cvx.app.page.tables import stacked_html
from diffrac_cvx.app.page.views import BY_NAME, View
from diffrac_cvx.comparison import Comparison
from diffrac_cvx.plotting.canvas import without_pyplot
from diffrac_cvx.problem.result import Status

DRAWING_LOCK = RLock()  # matplotlib is not thread-safe
ORIENTATION_CODE = "labels = labels if labels[0] == {:g} else -labels  # the sign of the labels is arbitrary"
QUIET_STATUSES = (Status.OPTIMAL, Status.CLOSED_FORM)  # not reported


@dataclass(frozen=True, eq=False)
class ViewPicture:
    """View of an outcome with its data and Python code, or with the reason why it is not drawn."""

    view: View
    message: str = ""
    lines: tuple[str, ...] = ()  # Python code that defines the matplotlib figure `figure`
    names: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""  # complete script that computes the names and draws the figure
    caption: str = ""

    def execute(self) -> dict[str, Any]:
        """Execute the lines and return the resulting namespace, which has `figure`."""
        namespace = {**PACKAGE_NAMES, **self.names}
        exec("\n".join(self.lines), namespace)
        return namespace

    def save(self, kind: str, dpi: int = 200) -> bytes:
        """Return the figure as the content of a "png" or "pdf" file."""
        file = BytesIO()
        with DRAWING_LOCK, without_pyplot():
            self.execute()["figure"].savefig(file, format=kind, dpi=dpi)
        return file.getvalue()

    @cached_property
    def html(self) -> str:
        """Inline figure, table or message as HTML."""
        if self.message:
            return f"<p>{escape(self.message)}</p>"
        if self.view.is_table:
            with DRAWING_LOCK, without_pyplot():
                return stacked_html(self.execute()["table"])
        # Inline, since the server deletes a cell's files when it reruns, and the browser may still request them.
        png = self.save("png", dpi=110)
        return f'<img alt="{self.view.title}" src="data:image/png;base64,{b64encode(png).decode()}">'


def make_picture(name: str, outcome: Outcome, run_name: str = "", rounding: str = "kmeans_centered") -> ViewPicture:
    """Return a view, not drawn yet, of all runs or one run, by default the first with a result."""
    view, run = BY_NAME[name], outcome.run_named(run_name)
    extra = outcome.extras.get(view.of)
    if view.needs_groups and not outcome.data.classes:
        return ViewPicture(view, "These points have no reference labels.")
    if view.of in COMPUTATIONS and (extra is None or isinstance(extra, str)):
        return ViewPicture(view, extra or "Not computed yet, or not requested.")
    if view.of not in COMPUTATIONS and run is None:
        return ViewPicture(view, "There is no solution yet.")
    runs = (
        tuple(outcome.solved.values()) if view.of == "all" else () if run is None or view.of in COMPUTATIONS else (run,)
    )
    bounds, constraints = run is not None and bounds_objective(run), outcome.setting.constraints_option
    draw = tuple(line.format(bounds=bounds, constraints=constraints) for line in view.draw)
    code = write_code(view, draw, outcome, run, rounding)
    lines = (*view.imports, *draw)
    return cached_picture(view, lines, code, outcome.data, outcome.setting, runs, rounding, extra)


def write_code(view: View, draw: Sequence[str], outcome: Outcome, run: Run | None, rounding: str) -> str:
    """Return a script that runs as it is, in the folder of the user's table if that is the data source."""
    if view.of == "all":
        solves = (f"    {run.name!r}: {run.solve.code}," for run in outcome.solved.values())
        compute = ["results = {", *solves, "}"]
    elif view.of in COMPUTATIONS:
        expression = expression_of(view.of, outcome.setting, [run.solve for run in outcome.runs])
        compute = [f"{COMPUTATIONS[view.of][0]} = {expression}"]
        if view.of == CLUSTERS:
            order = names_of_many(outcome.data, outcome.extras[CLUSTERS]).tolist()
            compute += [f"order = np.array({order})  # numbers of the clusters on the page"]
    else:
        assert run is not None
        compute = [f"result = {run.solve.code}"]
        if any("labels" in line for line in draw):
            compute += [f"labels = dc.rounding.{rounding}(result.F{outcome.setting.constraints_option})"]
            found = rounded_labels(run.result, rounding, outcome.data, outcome.setting)
            compute += [] if outcome.setting.has_constraints else [ORIENTATION_CODE.format(found[0])]
    compute += [f"groups = {outcome.source.groups}"] if any("groups" in line for line in draw) else []
    lines = ["import diffrac_cvx as dc", *view.imports, "", *outcome.source.code(), *outcome.setting.code(), ""]
    lines += [*compute, "", *draw]
    lines += [f'figure.savefig("{view.name}.png", dpi=200)', f'figure.savefig("{view.name}.pdf")', ""]
    text = "\n".join(lines)
    return f"import numpy as np\n\n{text}" if "np." in text else text


def draw_picture(name: str, outcome: Outcome, run_name: str, rounding: str) -> ViewPicture:
    """Return a drawn view, or one with an error message if drawing fails."""
    picture = make_picture(name, outcome, run_name, rounding)
    try:
        return picture if picture.html else ViewPicture(picture.view, "Nothing to show.")
    except Exception as error:  # does not affect the other views
        return ViewPicture(picture.view, f"This view could not be drawn: {error_message(error)}")


@lru_cache(maxsize=32)
def cached_picture(
    view: View, lines: tuple[str, ...], code: str, data: Data, setting: PageSetting, runs: tuple[Run, ...],
    rounding: str, extra: Any,
) -> ViewPicture:  # fmt: skip
    """Return a view, cached by the identity of the objects that are drawn."""
    names = {**namespace_of(data, setting), "results": {run.name: run.result for run in runs}}
    if view.of in COMPUTATIONS:
        names[COMPUTATIONS[view.of][0]] = extra
    if view.of == CLUSTERS:
        names["order"] = names_of_many(data, extra)
    if view.of == "one":
        names["result"] = runs[0].result
        names["labels"] = rounded_labels(names["result"], rounding, data, setting)
    of = f"{runs[0].name}: " if view.of == "one" else ""
    caption = f"{of}{data.title}, n = {len(data.X)}, d = {len(data.names)}, {setting}"
    return ViewPicture(view, lines=lines, names=names, code=code, caption=caption)


def list_remarks(outcome: Outcome) -> list[str]:
    """Return notes: disagreements, refused solves, termination statuses and warnings."""
    comparison, remarks = outcome.extras.get("comparison"), []
    if isinstance(comparison, Comparison):
        remarks += [f"Disagreement: {sentence}" for sentence in comparison.disagreements]
        remarks += [] if comparison.disagreements else ["No disagreement beyond the certified gaps."]
        remarks += comparison.notes
    remarks += [f"{run.name}: {run.message}" for run in outcome.runs if run.message]
    results = [(run.name, run.result) for run in outcome.runs if run.result is not None]
    remarks += [f"{name}: {result.status}" for name, result in results if result.status not in QUIET_STATUSES]
    return remarks + list(dict.fromkeys(sentence for run in outcome.runs for sentence in run.warnings))
