"""Propositions of section 5.1 in numbers: the noise columns' kurtosis, and noise on one-dimensional labels."""

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.inputs import Array
from experiments.harness.sweep import Row
from experiments.theory.unique_solution import features, is_unique, threshold

D = 10  # dimensions of the recovery panel; uniqueness is expected from n = 32.5 on
OPTIMAL, AMBIGUOUS = 1e-6, 1e-4  # excess of yy' over the proved bound: optimal below the first, not above the second
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


LAWS: dict[str, tuple[float, Draw]] = {  # name: kurtosis, draws of variance 1
    **{f"three-point {b:g}": (b, three_point(b)) for b in (1.0, 1.02, 1.1, 1.3, 1.8, 3.0, 6.0, 9.0, 30.0)},
    "uniform": (1.8, lambda rng, shape: rng.uniform(-(3**0.5), 3**0.5, shape)),
    "gaussian": (3.0, lambda rng, shape: rng.standard_normal(shape)),
    "laplace": (6.0, lambda rng, shape: rng.laplace(scale=0.5**0.5, size=shape)),
    "student": (9.0, lambda rng, shape: 0.6**0.5 * rng.standard_t(5, shape)),
}


class Spectrum(NamedTuple):
    """The two smallest eigenvalues of E T_x, and the second entry of the first one's eigenvector (1, c I)."""

    mu_1: float
    mu_2: float
    c_min: float


def recovery_cells(full: bool) -> list[dict[str, Any]]:
    """Return cells over the law and the number of points."""
    points = [12, 16, 20, 24, 28, 30, 32, 34, 36, 40, 44, 50, 60, 80, 100, 140, 200, 300] if full else [20, 60]
    laws = list(LAWS) if full else ["three-point 1", "three-point 3"]
    return [{"law": law, "n": n, "replication": r} for law, n, r in product(laws, points, range(20 if full else 2))]


def recovery(law: str, n: int, replication: int) -> Row:
    """Solve a balanced noiseless instance; decide exactly whether yy' is the only solution."""
    beta, draw = LAWS[law]
    rng = np.random.default_rng([2017, 51, list(LAWS).index(law), n, replication])
    B = balanced(draw, n, D, rng)
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


def balanced(draw: Draw, n: int, d: int, rng: np.random.Generator) -> Array:
    """Return [y, Z]: the first n points of a stream that is balanced after every second one."""
    most = 2 * ((n + 1) // 2)
    y = rng.permuted(np.tile([1.0, -1.0], (most // 2, 1)), axis=1).ravel()
    return np.column_stack([y, draw(rng, (most, d - 1))])[:n]


def spectrum_cells(full: bool) -> list[dict[str, Any]]:
    """Return cells over the dimension, the variance and the kurtosis."""
    dimensions = (3, 4, 5, 6) if full else (3,)
    return [
        {"d": d, "m": m, "beta": beta}
        for d, m, beta in product(dimensions, (0.1, 0.5, 1.0, 2.0), (1.0, 1.3, 1.8, 3.0, 6.0, 9.0, 30.0))
    ]


def spectrum(d: int, m: float, beta: float) -> Row:
    """Measure the spectrum of E T_x on all the atoms of a law, exactly, beside the paper's closed forms."""
    atoms, weights = law_of_points(d, m, beta)
    values, vectors = np.linalg.eigh(features(atoms).T @ (weights[:, None] * features(atoms)))
    closed, form = closed_spectrum(d, m, beta), closed_form(d, m, beta)
    pair = min(range(len(values)), key=lambda k: abs(values[k] - closed[0]))
    column = vectors[:, pair]
    diagonal = column[np.equal(*np.triu_indices(d))]
    return {
        "largest_error": float(np.max(np.abs(values - np.sort(closed)))),
        "mu_1": values[0],
        "mu_2": values[1] if d > 2 else np.nan,
        "mu_1_paper": form.mu_1,
        "mu_2_paper": form.mu_2,
        "mu_1_bound": m**2 * (beta - 1) / (1 + (d + beta - 2) * m**2),
        "c_min": float(diagonal[1:].mean() / diagonal[0]) if abs(diagonal[0]) > 1e-8 else np.nan,
        "c_min_paper": form.c_min,
        "c_min_bound": m / abs((d + beta - 2) * m**2 - 1) if (d + beta - 2) * m**2 != 1 else np.inf,
    }


def law_of_points(d: int, m: float, beta: float) -> tuple[Array, Array]:
    """Return all points (1, z) of the three-point law and their probabilities; y = 1 by symmetry of z."""
    size = (m * beta) ** 0.5
    grid = np.array(list(product((0.0, size, -size), repeat=d - 1)))
    probability = np.where(grid == 0.0, 1 - 1 / beta, 0.5 / beta).prod(axis=1)
    return np.column_stack([np.ones(len(grid)), grid]), probability


def closed_spectrum(d: int, m: float, beta: float) -> Array:
    """Return the eigenvalues of E T_x by Appendix D, with their multiplicities, mu_minus first."""
    trace = 1 + (d + beta - 2) * m**2
    root = (trace**2 - 4 * m**2 * (beta - 1)) ** 0.5
    kinds = [((trace - root) / 2, 1), ((trace + root) / 2, 1), (2 * m, d - 1), (2 * m**2, (d - 1) * (d - 2) // 2)]
    return np.repeat([value for value, _ in [*kinds, (m**2 * (beta - 1), d - 2)]], [*(n for _, n in kinds), d - 2])


def closed_form(d: int, m: float, beta: float) -> Spectrum:
    """Return mu_1, mu_2 and c_min as the lemma of Appendix D has them; mu_2 where mu_1 is simple."""
    easy = beta >= 3 and m**2 <= (beta - 3) / (2 * (d + beta - 4))
    t = (d + beta - 2) * m**2 - 1
    c_min = -((t**2 + 4 * (d - 1) * m**2) ** 0.5 - t) / (2 * (d - 1) * m)
    if easy:
        return Spectrum(2 * m**2, np.nan, c_min)
    return Spectrum(float(closed_spectrum(d, m, beta)[0]), min(2 * m**2, m**2 * (beta - 1), 2 * m), c_min)


def sample_size_cells(full: bool) -> list[dict[str, Any]]:
    """Return cells over the law of the noise: how many points Proposition 1 asks for, how many it takes."""
    dimensions = (3, 4, 5, 6) if full else (3,)
    return [
        {"d": d, "m": m, "beta": beta, "replication": r}
        for d, m, beta, r in product(dimensions, (0.5, 1.0), (1.3, 1.8, 3.0, 6.0), range(20 if full else 2))
    ]


def sample_size(d: int, m: float, beta: float, replication: int) -> Row:
    """Find the number of points from which yy' is the only solution, beside the two of Proposition 1."""
    R = max((m * beta) ** 0.5, 1.0)  # the proof bounds |x|^2 by d R^2, which needs R >= 1 for the column y
    n_unique = d**2 * R**4 * (1 + (d + beta) * m**2) / (m**2 * (beta - 1))
    n_direction = d**2 * R**4 / min(m**2 * (beta - 1), 2 * m**2, 2 * m)
    rng = np.random.default_rng([2017, 52, d, int(10 * m), int(10 * beta), replication])
    most = int(np.ceil(n_unique))
    B = balanced(lambda rng, shape: m**0.5 * three_point(beta)(rng, shape), most, d, rng)
    return {"R": R, "n_paper_a": n_unique, "n_paper_b": n_direction, "n_measured": threshold(B, 1)}


def one_dimension_cells(full: bool) -> list[dict[str, Any]]:
    """Return cells over the noise on one-dimensional labels."""
    noises = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0) if full else (0.3, 0.6)
    return [
        {"n": n, "noise": noise, "replication": r}
        for n, noise, r in product((10, 20, 40), noises, range(40 if full else 2))
    ]


def one_dimension(n: int, noise: float, replication: int) -> Row:
    """Compare "yy' solves Eq. (8)", decided by the SDP, with "X and y agree in sign everywhere"."""
    rng = np.random.default_rng([2017, 53, n, replication])
    y = rng.permutation(np.repeat([1.0, -1.0], n // 2))
    epsilon = noise * rng.standard_normal(n)
    X = (y + epsilon - epsilon.mean())[:, None]
    result = dc.solve(dc.penalized_nu(X, 1.0), "CLARABEL")
    excess = 1 - float(X[:, 0] @ y) ** 2 / (n * float(np.sum(X**2))) - result.lower
    return {
        "agree": int(np.all(X[:, 0] * y > 0)),
        "excess": excess,
        "optimal": int(excess <= OPTIMAL),
        "ambiguous": int(OPTIMAL < excess <= AMBIGUOUS),
        "recovered": int(dc.metrics.clustering_error(y, dc.rounding.sign_leading(result.F)) == 0.0),
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(result.F),
        "gap": result.gap,
    }
