"""Instances of the benchmark: planted (from few interacting features to many rows), real, and one dense instance."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.typing import Array
from experiments.convergence.instances import autoregressive

SPARSITY, NOISE = 10, 0.3  # nonzeros of the planted direction; standard deviation of each cluster (centres at -1 and 1)
CORRELATION = 0.7  # of neighbouring columns of the dense instance, which has no clusters
LIMIT, MEDIUM, LONG = 15.0, 40.0, 60.0  # seconds per solve, the same for every method


class Instance(NamedTuple):
    """Data by name and size, the l1 weight lambda, and the time limit of a solve in seconds."""

    data: str
    n: int
    d: int
    weight: str
    seconds: float = LIMIT

    @property
    def name(self) -> str:
        """Name of the instance in the table."""
        return f"{self.data} {self.n} x {self.d}, {self.weight}"

    @property
    def lam(self) -> float:
        """Lambda, from a number or a multiple of 1/sqrt(n)."""
        factor, _, root = self.weight.partition("/")
        return float(factor) / (self.n**0.5 if root else 1.0)

    @property
    def penalty(self) -> dc.Penalty:
        """Penalty with this lambda."""
        return dc.Penalty.l1(self.lam)


# At lambda = 0 the optimum of a1a is 2e-6 and that of corel5k 2e-12: a relative gap is not attainable there.
FULL = (
    Instance("planted", 500, 300, "1/sqrt(n)"),
    Instance("planted", 1500, 400, "0.3/sqrt(n)"),
    Instance("planted", 2000, 1000, "1/sqrt(n)"),
    Instance("planted", 500, 5000, "1/sqrt(n)"),
    Instance("planted", 100, 10_000, "1/sqrt(n)", LONG),
    Instance("planted", 500, 20_000, "1/sqrt(n)", LONG),
    Instance("planted", 1500, 400, "0.03/sqrt(n)"),
    Instance("planted", 2000, 200, "0.001"),
    Instance("planted", 2000, 1000, "0.03/sqrt(n)", LONG),
    Instance("planted", 1000, 50, "0", MEDIUM),
    Instance("planted", 1000, 50, "0.01", MEDIUM),
    Instance("planted", 10_000, 50, "0.001"),
    Instance("planted", 100_000, 50, "0.001"),
    Instance("planted", 1_000_000, 50, "0.001", LONG),
    Instance("planted", 1_000_000, 50, "0", LONG),
    Instance("breast_cancer", 683, 10, "0"),
    Instance("breast_cancer", 683, 10, "0.01"),
    Instance("a1a", 1605, 113, "0.01"),
    Instance("w1a", 2270, 290, "0"),
    Instance("w1a", 2270, 290, "0.01"),
    Instance("corel5k", 5000, 499, "0.01"),
    Instance("dense", 1000, 40, "0"),
    Instance("dense", 1000, 40, "0.001"),
)
SMOKE = (
    Instance("planted", 80, 6, "1/sqrt(n)", 2.0),
    Instance("breast_cancer", 683, 10, "0", 2.0),
)
GRIDS = {"full": FULL, "smoke": SMOKE}
INSTANCES = {instance.name: instance for instance in (*FULL, *SMOKE)}


@lru_cache(maxsize=1)
def data_of(name: str) -> Array:
    """Return X of an instance with columns of mean 0 and variance 1; the seed depends only on its size."""
    data, n, d, *_ = INSTANCES[name]
    rng = np.random.default_rng([2017, 7, n, d])
    if data == "planted":
        return dc.datasets.make_planted(n, d, min(SPARSITY, d), noise=NOISE, rng=rng).X
    if data == "dense":
        return np.asarray(standardize_columns(autoregressive(rng, n, d, CORRELATION)))
    return dc.datasets.load(data, scaling="standardize")[0]
