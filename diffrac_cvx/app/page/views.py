"""The views of what was computed: each as a picture, a file, and the Python that makes it."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from html import escape
from io import BytesIO
from threading import RLock
from typing import Any

from diffrac_cvx.app.page.computation import Outcome, Run, sentence
from diffrac_cvx.app.page.data_choice import Data
from diffrac_cvx.app.page.messages import Call
from diffrac_cvx.app.page.python_code import ORIENTED, PACKAGES, Script, all_results, known, one_result
from diffrac_cvx.app.page.rounding_table import table_html
from diffrac_cvx.app.page.solve_choice import Setting, Solve
from diffrac_cvx.app.page.view_list import BY_NAME, View
from diffrac_cvx.comparison import Comparison, list_methods
from diffrac_cvx.plotting.canvas import apart_from_pyplot
from diffrac_cvx.result import Result, Status

DRAWING = RLock()  # matplotlib is not made for threads
BASELINES = ("k-means", "alternating")  # of `compare`
BOUNDS_LABELS = ("(15)", "(8)", "(11)")  # relaxations of Eq. (9) with the same nu and penalty


EXTRAS = {  # what else is computed: the name of the answer, and the expression that computes it
    "nu path": ("path", "dc.paths.nu_path(X, np.linspace(0, 1, 21), penalty, y=y, tol=tol)"),
    "lambda path": ("path", "dc.paths.lambda_path(X, np.geomspace(1e-4, 1, 21), nu=nu, a=penalty.a, y=y, tol=tol)"),
    "duality": ("duality", "dc.paths.duality(X, np.linspace(0.02, 1, 25))"),
    "comparison": (
        "comparison",
        "dc.compare(X, y, methods={methods}, nu=nu, penalty=penalty, alpha=alpha, tol=tol)",
    ),
}


def evaluated(expression: str, names: Mapping[str, Any]) -> Any:
    """Return the value of one of the expressions of EXTRAS."""
    return eval(expression, {**PACKAGES, **names})


def expression(extra: str, solves: Sequence[Solve]) -> str:
    """Return the expression that computes one of EXTRAS; the comparison is of the solves that are not refused."""
    methods = [solve.method for solve in solves if solve.call is not None and solve.method in list_methods()]
    return EXTRAS[extra][1].format(methods=[*methods, *BASELINES])


def calls(data: Data, setting: Setting, solves: Sequence[Solve], wanted: Sequence[str]) -> list[tuple[str, Call]]:
    """Return the calls for the other computations that are wanted.

    Parameters
    ----------
    data : Data
    setting : Setting
    solves : sequence of Solve
        From `plan_solves`: what the comparison compares.
    wanted : sequence of str
        Of EXTRAS.
    """
    names = known(data, setting, (), "")
    return [(name, Call(evaluated, (expression(name, solves), names))) for name in EXTRAS if name in wanted]


def script(view: View, outcome: Outcome, run: Run | None, rounding: str) -> Script:
    """Return the Python of a view of an outcome, looking at one of its runs."""
    if view.of == "all":
        return Script(view.draw, all_results(outcome), view.imports)
    if view.of in EXTRAS:
        line = f"{EXTRAS[view.of][0]} = {expression(view.of, [run.solve for run in outcome.runs])}"
        return Script(view.draw, (line,), view.imports)
    assert run is not None
    lines = one_result(run)
    if any("labels" in line for line in view.draw):
        lines = (*lines, f"labels = dc.rounding.{rounding}(result.F)")
        lines = (*lines, ORIENTED) if outcome.data.y is not None else lines
    bounds = run.name.split()[0] in BOUNDS_LABELS
    return Script(tuple(line.format(bounds=bounds) for line in view.draw), lines, view.imports)


@dataclass(frozen=True, eq=False)
class Picture:
    """A view of an outcome: what it is drawn from and its Python, or a sentence that says why it is not drawn."""

    view: View
    script: Script | None = None
    names: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    says: str = ""
    caption: str = ""

    def saved(self, kind: str, dpi: int = 200) -> bytes:
        """Return the figure as a file of a kind, "png" or "pdf"."""
        assert self.script is not None
        file = BytesIO()
        with DRAWING, apart_from_pyplot():
            self.script.executed(self.names)["figure"].savefig(file, format=kind, dpi=dpi)
        return file.getvalue()

    @cached_property
    def html(self) -> str:
        """What is shown: the picture, inline, or the table."""
        if self.script is None:
            return f"<p>{escape(self.says)}</p>"
        if self.view.is_table:
            with DRAWING, apart_from_pyplot():
                return table_html(self.script.executed(self.names)["rows"])
        # Inline: a file of the server's would be gone when its cell runs again while the browser asks for it.
        return f'<img alt="{self.view.name}" src="data:image/png;base64,{b64encode(self.png).decode()}">'

    @cached_property
    def png(self) -> bytes:
        """The figure for the screen."""
        return self.saved("png", dpi=110)


def picture(name: str, outcome: Outcome, chosen: str = "", rounding: str = "kmeans_centered") -> Picture:
    """Draw a view.

    Parameters
    ----------
    name : str
        Of BY_NAME.
    outcome : Outcome
        What was computed.
    chosen : str
        Name of the run that views of one result look at; by default the first that has a result.
    rounding : str
        Of `rounding.ROUNDINGS`.
    """
    view, solved = BY_NAME[name], outcome.solved
    run = solved.get(chosen) or next(iter(solved.values()), None)
    if view.needs_labels and outcome.data.y is None:
        return Picture(view, says="These data have no true labels in two classes.")
    extra = outcome.extra(view.of) if view.of in EXTRAS else None
    if view.of in EXTRAS and (extra is None or isinstance(extra, str)):
        return Picture(view, says=extra or "Not computed yet, or not asked for.")
    if view.of not in EXTRAS and run is None:
        return Picture(view, says="No solve has a result yet.")
    runs = tuple(solved.values()) if view.of == "all" else () if run is None or view.of in EXTRAS else (run,)
    python = script(view, outcome, run, rounding)
    text = python.text(outcome.source, outcome.setting, view.name)
    return prepared(view, python, text, outcome.data, outcome.setting, runs, rounding, extra)


def shown(name: str, outcome: Outcome, chosen: str, rounding: str) -> Picture:
    """Return a picture that is drawn already; where that fails, a sentence takes its place."""
    made = picture(name, outcome, chosen, rounding)
    try:
        return made if made.html else Picture(made.view, says="There is nothing to show.")
    except Exception as error:  # the other views go on
        return Picture(made.view, says=f"This view could not be drawn: {sentence(error)}")


@lru_cache(maxsize=32)
def prepared(
    view: View, python: Script, text: str, data: Data, setting: Setting, runs: tuple[Run, ...], rounding: str,
    extra: Any,
) -> Picture:  # fmt: skip
    """Return the same picture where nothing has changed; the key holds the very objects that are drawn."""
    names = known(data, setting, runs, rounding)
    if view.of in EXTRAS:
        names[EXTRAS[view.of][0]] = extra
    of = f"{runs[0].name}: " if view.of == "one" else ""
    return Picture(view, python, names, text, caption=f"{of}{data.title}, n = {data.n}, d = {data.d}, {setting}")


def remarks(outcome: Outcome) -> list[str]:
    """Return what the comparison says, the solves that were refused, and what was warned of, in sentences."""
    comparison = outcome.extra("comparison")
    said = []
    if isinstance(comparison, Comparison):
        said += [f"Disagreement: {sentence}" for sentence in comparison.disagreements]
        said += [] if comparison.disagreements else ["No disagreement beyond the proved gaps."]
        said += comparison.notes
    said += [f"{run.name}: {run.says}" for run in outcome.runs if run.says]
    said += [f"{run.name}: {run.result.status}" for run in outcome.runs if run.result and not fine(run.result)]
    return said + list(dict.fromkeys(sentence for run in outcome.runs for sentence in run.warnings))


def fine(result: Result) -> bool:
    """Whether nothing has to be said about how a solver ended."""
    return result.status in (Status.OPTIMAL, Status.CLOSED_FORM)
