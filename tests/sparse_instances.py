"""Small sparse problems of every kind: weights that differ or are 0, a ridge, columns of zeros or of two values."""

from functools import cache
from typing import NamedTuple

import numpy as np
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.direction_bounds import Blocks
from diffrac_cvx.points.checks import as_data

KINDS = ("equal", "unequal", "free", "ridge", "zeros", "correlated", "binary", "all")
NUS = (1.0, 0.5, 0.05)


class Instance(NamedTuple):
    """Data, the weight of the imbalance, and the penalty."""

    X: np.ndarray
    nu: float
    penalty: dc.Penalty

    @property
    def problem(self):
        """Problem (15)."""
        return direction_problem(as_data(self.X, warn=False), self.nu, self.penalty)

    @property
    def split(self):
        """The same with the unpenalised coordinates apart."""
        return block_problem(self.problem)

    def solve(self, **options):
        """The solution of `low_rank`."""
        return dc.low_rank(self.X, self.nu, self.penalty, **options)

    def certify(self, V):
        """The bracket that V proves."""
        return dc.certify_v(self.X, V, self.nu, self.penalty)


@cache
def instance(seed):
    """One of 24 kinds of problems, n in 8, ..., 40 and d in 4, ..., 12."""
    rng = np.random.default_rng([2017, 10, seed])
    kind, nu = KINDS[seed % 8], NUS[seed // 8 % 3]
    n, d = int(rng.integers(8, 41)), int(rng.integers(4, 13))
    X = rng.standard_normal((n, d))
    if kind in ("correlated", "all"):
        X = X @ (np.eye(d) + 0.4 * rng.standard_normal((d, d)))
    if kind in ("binary", "all"):
        X[:, ::2] = np.sign(X[:, ::2])
    if kind in ("zeros", "all"):
        X[:, rng.integers(1, d)] = 0.0
    c = rng.uniform(0.05, 0.7) * (rng.uniform(0.5, 1.5, d) if kind in ("unequal", "all") else np.ones(d))
    if kind in ("free", "all"):
        c[rng.integers(d, size=2)] = 0.0
    return Instance(X, nu, dc.Penalty(a=0.2 * (kind in ("ridge", "all")) * rng.uniform(0.0, 2.0, d), c=c))


@cache
def optimum(seed):
    """An accurate solution that does not use components."""
    return instance(seed).solve(working_set=False, tol=1e-8, max_iter=1500)


def random_blocks(rng, split):
    """Groups of a random number of coordinates."""
    m = len(split.c)
    return Blocks(split, np.unique(rng.integers(int(rng.integers(1, m + 1)), size=m), return_inverse=True)[1])


def random_point(rng, blocks):
    """A block diagonal V at random: the weights, intercepts, rest and factors of a `Point`."""
    f, m1 = blocks.problem.F.shape[1], len(blocks.singles)
    factors = [rng.standard_normal((len(block) + f, int(rng.integers(1, 5)))) for block in blocks.members]
    return rng.standard_normal(m1), rng.standard_normal((m1, f)), rng.standard_normal((f, f)), factors


def random_multipliers(rng, blocks):
    """Symmetric matrices inside the boxes of the blocks."""
    matrices = [rng.uniform(-1.0, 1.0, (len(block), len(block))) for block in blocks.members]
    boxes = [blocks.problem.pair_penalty_of(block).half_width for block in blocks.members]
    return [box * (C + C.T) / 2 for box, C in zip(boxes, matrices, strict=True)]


def restricted_point(blocks, U, noise, rng):
    """A `Point` with the rows of a factor U of V in each group, and some noise."""
    split = blocks.problem
    rows, f = U[split.penalized], split.F.shape[1]
    free = np.linalg.lstsq(split.inner.W, U[split.free])[0] / (1 + blocks.labels.max()) ** 0.5
    weights = np.linalg.norm(rows[blocks.singles], axis=1)
    intercepts = rows[blocks.singles] @ free.T / np.maximum(weights, 1e-300)[:, None]
    factors = [np.vstack([rows[block], free]) for block in blocks.members]
    size = noise * np.sqrt(np.mean(U**2))
    parts = [weights, intercepts, np.zeros((f, f)), *factors]
    weights, intercepts, rest, *factors = [part + size * rng.standard_normal(part.shape) for part in parts]
    return weights, intercepts, rest, factors
