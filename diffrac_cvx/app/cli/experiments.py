"""The paper's experiments from the command line.  They are part of the source tree, not of the wheel."""

import subprocess
import sys
from pathlib import Path

from diffrac_cvx.errors import ResourceError

MODULES = {
    "phase-transition": ("phase_transition", "Figure 1: rank and error over n and d."),
    "unbalanced": ("unbalanced", "Figure 2: errors and ranks over alpha and nu."),
    "runtime": ("runtime", "Figure 3: time, error and proved gap by solver."),
    "robustness": ("robustness", "Figure 4: six methods as noise dimensions are added."),
    "theory": ("theory", "Section 5: propositions, lemmas and conjectures."),
    "two-class": ("two_class", "Table 1: nine real sets."),
    "multi-label": ("multi_label", "Figures 5 and 6: many labels at once."),
    "validate": ("validate", "The fast solvers against the reference path; exits with 1 on a disagreement."),
}


def source_tree() -> Path:
    """Return the folder that holds the experiments: that of the package, or the one we are in.

    Raises
    ------
    ResourceError
        If there is none.
    """
    for folder in (Path(__file__).parents[3], Path.cwd()):
        if (folder / "experiments" / "harness" / "command.py").is_file():
            return folder
    raise ResourceError("the experiments are not part of the wheel: run this in a clone of the project")


def run(name: str, arguments: list[str]) -> int:
    """Run an experiment's own command in the source tree, and return its exit status."""
    module, _ = MODULES[name]
    return subprocess.run(
        [sys.executable, "-m", f"experiments.{module}", *arguments], cwd=source_tree(), check=False
    ).returncode
