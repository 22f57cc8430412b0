"""More than two clusters: both strategies of the estimator compared with k-means and a Gaussian mixture."""

from experiments.harness.command import Experiment
from experiments.many_clusters.cells import SETTINGS, cells_of, measure
from experiments.many_clusters.findings import findings
from experiments.many_clusters.plot import draw

EXPERIMENT = Experiment("many_clusters", cells_of, measure, draw, findings, SETTINGS)
