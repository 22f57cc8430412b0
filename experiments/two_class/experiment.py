"""Table 1: clustering error on nine two-class data sets, with reference values.

Sets that are not shipped are searched for in $DIFFRAC_DATA_HOME.
"""

from experiments.harness.command import Experiment
from experiments.two_class.cells import SETTINGS, cells_of, measure
from experiments.two_class.findings import findings
from experiments.two_class.plot import draw

EXPERIMENT = Experiment("two_class", cells_of, measure, draw, findings, SETTINGS)
