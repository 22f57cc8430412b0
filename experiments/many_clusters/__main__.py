"""More than two clusters: the two ways of the estimator beside k-means and a Gaussian mixture.

Run ``make many-clusters``; ``GRID=smoke`` for a small one.
"""

from experiments.harness.command import Experiment, run
from experiments.many_clusters.cells import SETTINGS, cells_of, measure
from experiments.many_clusters.claims import claims
from experiments.many_clusters.plot import draw

EXPERIMENT = Experiment("many_clusters", cells_of, measure, draw, claims, SETTINGS)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
