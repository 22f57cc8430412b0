"""Appendix D numerically: the spectrum of E T_x for variances m and kurtoses beta of the noise columns."""

from itertools import product
from typing import NamedTuple

import numpy as np

from diffrac_cvx.typing import Array
from experiments.harness.sweep import Row
from experiments.theory.noise_columns import LAWS, balanced_points, bound_of, points_of_paper, scaled_law
from experiments.theory.unique_solution import quadratic_forms

DELTA = 0.5  # fraction of the expected smallest eigenvalue that may be lost
FAILURE = 0.05  # probability of losing more, by the matrix Chernoff bound as printed, at its number of points


class Spectrum(NamedTuple):
    """The two smallest eigenvalues of E T_x, and the second entry of the first one's eigenvector (1, c I)."""

    mu_1: float
    mu_2: float
    c_min: float


def measure_spectrum(d: int, m: float, beta: float) -> Row:
    """Compare the spectrum of E T_x, computed exactly over the atoms of a law, with the paper's closed forms."""
    atoms, weights = law_of_points(d, m, beta)
    values, vectors = np.linalg.eigh(quadratic_forms(atoms).T @ (weights[:, None] * quadratic_forms(atoms)))
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
    """Return mu_1, mu_2 and c_min of the lemma of Appendix D; mu_2 if mu_1 is simple."""
    t = (d + beta - 2) * m**2 - 1
    c_min = -((t**2 + 4 * (d - 1) * m**2) ** 0.5 - t) / (2 * (d - 1) * m)
    if beta >= 3 and m**2 <= (beta - 3) / (2 * (d + beta - 4)):
        return Spectrum(2 * m**2, np.nan, c_min)
    return Spectrum(float(closed_spectrum(d, m, beta)[0]), min(2 * m**2, m**2 * (beta - 1), 2 * m), c_min)


def measure_hessian(law: str, d: int, m: float, replication: int) -> Row:
    """Compare the smallest eigenvalue of the mean of T_x over n points with mu_1, and off Delta_min with mu_2.

    n is that of Proposition 1 (a) and (b), and the one at which d exp(-delta^2 n mu_1 / (4 R^4 d^2)) is `FAILURE`.
    """
    beta, R = LAWS[law][0], bound_of(law, m)
    form, paper = closed_form(d, m, beta), points_of_paper(d, m, beta, R)
    chernoff = 4 * R**4 * d**2 * np.log(d / FAILURE) / (DELTA**2 * form.mu_1)
    rng = np.random.default_rng([2017, 58, list(LAWS).index(law), d, int(10 * m), replication])
    sizes = {"a": paper.a, "b": paper.b, "chernoff": chernoff}
    phi = quadratic_forms(balanced_points(scaled_law(law, m), int(np.ceil(max(sizes.values()))), d, rng))
    row: Row = {"beta": beta, "n_chernoff": int(np.ceil(chernoff))}
    for name, size in sizes.items():
        n = int(np.ceil(size))
        hessian = phi[:n].T @ phi[:n] / n
        row[f"ratio_{name}"] = float(np.linalg.eigvalsh(hessian)[0] / form.mu_1)
        if name == "b":
            row["ratio_b"] = least_off(hessian, d, form.c_min) / form.mu_2
    return row


def least_off(hessian: Array, d: int, c_min: float) -> float:
    """Return the smallest eigenvalue of a form on symmetric matrices, restricted to the complement of (1, c_min I)."""
    direction = np.where(np.equal(*np.triu_indices(d)), c_min, 0.0)
    direction[0] = 1.0
    basis = np.linalg.qr(np.column_stack([direction, np.eye(len(direction))]))[0][:, 1:]
    return float(np.linalg.eigvalsh(basis.T @ hessian @ basis)[0])
