"""Proposition 1 in numbers: how the law of the noise columns decides from which n on yy' is the only solution."""

import warnings
from collections.abc import Callable

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.datasets import planted
from diffrac_cvx.inputs import Array
from experiments.harness.sweep import Row
from experiments.theory.unique_solution import is_unique, points_for_uniqueness

D = 10  # dimensions of the recovery panel; uniqueness is expected from n = 32.5 on
KURTOSIS = {"uniform": 1.8, "gaussian": 3.0, "laplace": 6.0, "student": 9.0}  # of the package's laws
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]


def three_point(beta: float) -> Draw:
    """Return the law on {-s, 0, s} of variance 1 and kurtosis beta: Rademacher at beta = 1."""
    return lambda rng, shape: beta**0.5 * rng.choice([-1.0, 0.0, 1.0], shape, p=[0.5 / beta, 1 - 1 / beta, 0.5 / beta])


def with_mean_zero(Z: Array, rng: np.random.Generator) -> Array:
    """Return columns of mean 0: signs of a three-point column are drawn again, as many + as -, others are centred.

    Centring would pull the values of a Rademacher column apart, and spoil the second clustering that it is.
    """
    if len(np.unique(np.abs(Z))) > 2:
        return np.asarray(Z - Z.mean(axis=0))
    balanced = np.abs(Z)
    for column in balanced.T:
        live = rng.permutation(np.flatnonzero(column))
        column[live[: len(live) // 2]] *= -1.0
        if len(live) % 2:
            column[live[-1]] = 0.0
    return balanced


LAWS: dict[str, tuple[float, Draw]] = {  # name: kurtosis, draws of variance 1; the place in this list enters the seeds
    **{f"three-point {b:g}": (b, three_point(b)) for b in (1.0, 1.02, 1.1, 1.3, 1.8, 3.0, 6.0, 9.0, 30.0)},
    **{law: (beta, planted.LAWS[law]) for law, beta in KURTOSIS.items()},
}


def balanced_points(draw: Draw, n: int, d: int, rng: np.random.Generator) -> Array:
    """Return [y, Z]: the first n points of a stream that is balanced after every second one."""
    most = 2 * ((n + 1) // 2)
    y = rng.permuted(np.tile([1.0, -1.0], (most // 2, 1)), axis=1).ravel()
    return np.column_stack([y, draw(rng, (most, d - 1))])[:n]


def measure_recovery(law: str, n: int, replication: int) -> Row:
    """Solve a balanced noiseless instance; decide exactly whether yy' is the only solution."""
    beta, draw = LAWS[law]
    rng = np.random.default_rng([2017, 51, list(LAWS).index(law), n, replication])
    B = balanced_points(draw, n, D, rng)
    y = B[:, 0]
    B[:, 1:] = with_mean_zero(B[:, 1:], rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        result = dc.low_rank(B, tol=1e-8)
    assert result.V is not None
    principal = np.linalg.eigh(result.V)[1][:, -1]
    return {
        "d": D,
        "beta": beta,
        "unique": int(is_unique(B, 1)),
        "recovered": int(dc.metrics.clustering_error(y, dc.rounding.two_means(B @ principal)) == 0.0),
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(result.F),
        "gap": result.gap,
    }


def measure_sample_size(d: int, m: float, beta: float, replication: int) -> Row:
    """Find the number of points from which yy' is the only solution, beside the two of Proposition 1."""
    R = max((m * beta) ** 0.5, 1.0)  # the proof bounds |x|^2 by d R^2, which needs R >= 1 for the column y
    n_unique = d**2 * R**4 * (1 + (d + beta) * m**2) / (m**2 * (beta - 1))
    n_direction = d**2 * R**4 / min(m**2 * (beta - 1), 2 * m**2, 2 * m)
    rng = np.random.default_rng([2017, 52, d, int(10 * m), int(10 * beta), replication])
    most = int(np.ceil(n_unique))
    B = balanced_points(lambda rng, shape: m**0.5 * three_point(beta)(rng, shape), most, d, rng)
    return {"R": R, "n_paper_a": n_unique, "n_paper_b": n_direction, "n_measured": points_for_uniqueness(B, 1)}
