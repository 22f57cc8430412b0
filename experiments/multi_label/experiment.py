"""Figures 5 and 6: many labels at once, on Corel5k instead of COCO, on three other sets, or on user data.

``make multi-label X=features.npy Y=labels.npy`` does the same with your files (.npy or .csv).
"""

from dataclasses import replace
from functools import partial

from experiments.harness.command import Experiment
from experiments.multi_label.cells import SETTINGS, cells_of, measure
from experiments.multi_label.data import OWN, load_labeled
from experiments.multi_label.findings import findings
from experiments.multi_label.plot import draw


def choose_data(x: str, y: str) -> Experiment:
    """Return the experiment on the known sets, or on a user's files."""
    if not x and not y:
        return KNOWN
    name = f"{x}{OWN}{y}"
    load_labeled(name)  # fail on invalid files before anything is measured
    return replace(KNOWN, name="multi_label_own", cells=partial(cells_of, sets=(name,)), folder="build")


KNOWN = Experiment("multi_label", cells_of, measure, draw, findings, SETTINGS)
FILE = {"default": "", "metavar": "FILE"}
EXPERIMENT = replace(
    KNOWN,
    options={"x": {**FILE, "help": "features, .npy or .csv file"}, "y": {**FILE, "help": "labels, .npy or .csv file"}},
    variant=choose_data,
)
