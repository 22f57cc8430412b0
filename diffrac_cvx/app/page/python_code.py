"""A view as Python: the lines that the page itself executes for its picture, and the file that a user takes home."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from diffrac_cvx.app.page.computation import Outcome, Run
from diffrac_cvx.app.page.data_choice import Data, Source
from diffrac_cvx.app.page.solve_choice import Setting
from diffrac_cvx.rounding import ROUNDINGS

PACKAGES = {"dc": import_module("diffrac_cvx"), "np": np}  # as the lines know them
ORIENTED = "labels = -labels if y @ labels < 0 else labels  # which of the clusters is +1 is arbitrary"


@dataclass(frozen=True)
class Script:
    """The Python of one view.

    Attributes
    ----------
    imports : tuple of str
        What it needs beyond NumPy and the package.
    compute : tuple of str
        How it gets its numbers from X, y, names, nu, alpha and penalty; the page has computed them already.
    draw : tuple of str
        How they become `figure`, a matplotlib figure.  The page executes these lines.
    """

    draw: tuple[str, ...]
    compute: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()

    def executed(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Execute the lines that draw, and return all names that are known then; `figure` is one of them."""
        names = {**PACKAGES, **known}
        exec("\n".join((*self.imports, *self.draw)), names)
        return names

    def text(self, source: Source, setting: Setting, name: str) -> str:
        """Return a file that runs as it stands, beside the user's own table where that is the data."""
        data = source.code()
        imports = [line for line in (*self.imports, *data) if line.startswith("from ")]
        lines = ["import numpy as np", "", "import diffrac_cvx as dc", *sorted(set(imports)), ""]
        lines += [line for line in data if line and not line.startswith("from ")]
        lines += [*setting.code(), "", *self.compute, "", *self.draw]
        lines += [f'figure.savefig("{name}.png", dpi=200)', f'figure.savefig("{name}.pdf")']
        text = "\n".join(lines)
        return (text if "np." in text else text.removeprefix("import numpy as np\n\n")) + "\n"


def known(data: Data, setting: Setting, runs: Sequence[Run], rounding: str) -> dict[str, Any]:
    """Return what the lines may use, by name; the first run is the one that is looked at."""
    found: dict[str, Any] = {"X": data.X, "y": data.y, "names": data.names, "nu": setting.nu, "alpha": setting.alpha}
    found |= {"tol": setting.tol, "penalty": setting.penalty, "results": {run.name: run.result for run in runs}}
    if runs and runs[0].result is not None:
        found["result"] = runs[0].result
        labels = ROUNDINGS[rounding](runs[0].result.F)
        found["labels"] = -labels if data.y is not None and data.y @ labels < 0 else labels
    return found


def one_result(run: Run) -> tuple[str, ...]:
    """Return the line that computes the result that is looked at."""
    return (f"result = {run.solve.code}",)


def all_results(outcome: Outcome) -> tuple[str, ...]:
    """Return the lines that compute every result."""
    return ("results = {", *(f"    {run.name!r}: {run.solve.code}," for run in outcome.solved.values()), "}")
