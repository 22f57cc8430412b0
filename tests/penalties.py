"""A penalty that only the tests have: the l1 norm with a weight for each pair, as the guide says to write one."""

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.problem.penalties.base import PairPenalty


class PairWeights(PairPenalty):
    """sum_jk r_jk c_j c_k |V_jk|: the dual set is the box |C_jk| <= r_jk c_j c_k."""

    def __init__(self, c, r, a=None):
        super().__init__(c, a=a)
        self.r = r

    def with_weights(self, c, a=None):
        return type(self)(c, self.r, self.a if a is None else a)

    def with_offset(self, a=0.0):
        return type(self)(np.append(self.c, 0.0), np.pad(self.r, (0, 1), constant_values=1.0), np.append(self.a, a))

    def restrict(self, indices):
        places = np.arange(len(self.c))[indices]
        return type(self)(self.c[places], self.r[np.ix_(places, places)], self.a[places])

    def half_widths(self, j, k):
        return self.r[j, k]


class PenaltyOfPairs(dc.Penalty):
    """A ridge and an l1 penalty with weights r of the pairs of columns."""

    def __init__(self, r, **weights):
        super().__init__(**weights)
        object.__setattr__(self, "r", r)

    def pair_penalty(self, d):
        a, c = self.weights(d)
        return PairWeights(c, self.r, a)


def draw_sides(rng, d):
    """Weights of pairs in [.3, 1]; 1 on the diagonal."""
    r = np.triu(rng.uniform(0.3, 1.0, (d, d)), 1)
    return r + r.T + np.eye(d)
