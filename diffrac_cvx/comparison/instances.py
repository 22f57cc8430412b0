"""Instances of problem (15) for `validate`: small data of many kinds on which wrong solvers differ from right ones."""

from itertools import product
from typing import NamedTuple

import numpy as np

from diffrac_cvx.datasets.planted import make_planted
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.penalty import Penalty

SHAPES = ((12, 3), (20, 5), (30, 8), (40, 2), (25, 12), (60, 6), (10, 14), (8, 20), (16, 16), (30, 1))
NUS = (0.25, 0.5, 0.75, 1.0)
PENALTIES = ("none", "ridge", "weak l1", "strong l1", "mixed")
TRAITS = ("plain", "noisy", "unbalanced", "badly scaled", "degenerate")
ZERO_OPTIMUM = "zero optimum"  # trait of the only instances whose optimum may be less than 0.01
NOISE = {"noisy": 1.0, ZERO_OPTIMUM: 0.0}  # standard deviation of the noise on the labels, 0.4 for other traits


class Instance(NamedTuple):
    """Arguments of a solver: data X (n, d), weight nu of the imbalance, and penalty."""

    X: Array
    nu: float
    penalty: Penalty


class Design(NamedTuple):
    """Kind of an instance: its size, nu, and the names of its penalty and of a trait of its data."""

    n: int
    d: int
    nu: float
    penalty: str
    trait: str

    def instance(self, seed: int) -> Instance:
        """Return the instance of this kind with a seed.

        Whatever the trait, three in four instances have column means other than 0, half of them have columns of
        different units, and half have a copy of a column, in its own unit.
        """
        n, d, nu, penalty, trait = self
        traits = (*TRAITS, ZERO_OPTIMUM)
        rng = np.random.default_rng([seed, n, d, int(100 * nu), PENALTIES.index(penalty), traits.index(trait)])
        imbalance = 0.25 if trait == "unbalanced" else 0.0
        X = make_planted(n, d, min(2, d), imbalance, NOISE.get(trait, 0.4), rng=rng).X
        is_shifted, is_copied, is_scaled = rng.random(3) < (0.75, 0.5, 0.5)
        if trait == "degenerate":  # a row at the mean, where the square root has no derivative
            X[0] = X[1:].mean(axis=0)
        if is_shifted:
            X += rng.choice([-1.0, 1.0], d) * rng.uniform(1.0, 3.0, d)
        if d > 1 and (is_copied or trait == "degenerate"):
            X[:, -1] = X[:, 0]
        units: Array = np.ones(d)
        if trait == "badly scaled":
            units = np.power(10.0, rng.integers(-4, 5, size=d))
        elif is_scaled:
            units = np.power(2.0, rng.integers(-3, 4, size=d))
        varied = rng.uniform(0.5, 1.5, size=d)
        weights = {
            "none": Penalty(),
            "ridge": Penalty(a=0.4 * units),
            "weak l1": Penalty(c=0.15 * units),
            "strong l1": Penalty(c=0.4 * units),
            "mixed": Penalty(a=0.3 * units * varied, c=0.3 * units * (varied > 0.8)),
        }
        return Instance(X * units, nu, weights[penalty])


def all_designs() -> list[Design]:
    """Return all sizes, nu > 0 and penalties, with traits such that every pair of traits occurs, and zero optima.

    The optimum is 0 if nu = 0, and without a penalty if the rows are affinely independent or the labels are a linear
    function of the features, without noise.
    """
    nonzero = [
        Design(n, d, nu, penalty, TRAITS[(i + 2 * j + 3 * k) % len(TRAITS)])
        for (i, (n, d)), (j, nu), (k, penalty) in product(enumerate(SHAPES), enumerate(NUS), enumerate(PENALTIES))
        if penalty != "none" or n >= 4 * d  # with fewer points the labels are nearly linear in the features
    ]
    zero = [
        Design(n, d, nu, penalty, ZERO_OPTIMUM)
        for i, (n, d) in enumerate(SHAPES)
        for nu, penalty in ((0.0, PENALTIES[i % len(PENALTIES)]), (NUS[i % len(NUS)], "none"))
    ]
    return nonzero + zero
