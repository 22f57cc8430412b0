"""Tables with far more columns than rows: the relaxation compared with methods for such tables.

The real tables are read from packages that pip and apt-get download into build/packages.
"""

from experiments.harness.command import Experiment
from experiments.wide.cells import SETTINGS, cells_of, measure
from experiments.wide.findings import findings
from experiments.wide.plot import draw

EXPERIMENT = Experiment("wide", cells_of, measure, draw, findings, SETTINGS)
