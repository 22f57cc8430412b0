"""The cells of Table 1: nine data sets, the paper's grid of penalties, and two baselines of ten runs each."""

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import diffrac_cvx as dc
from diffrac_cvx.inputs import Array, as_data
from diffrac_cvx.linalg import column_basis
from experiments.data.loading import keep_loadable
from experiments.harness.sweep import Cell, Row, cross
from experiments.theory.unique_solution import statistical_dimension

WEIGHTS = (1e-3, 1e-2, 1e-1)  # the paper's values of a and of c
IMBALANCE = (0.01, 0.25, 0.5, 0.75, 1.0)  # the paper's values of nu
RUNS = 10
TOLERANCE = 1e-4
MOST_ITERATIONS = 4000
SUBSAMPLES, SHARE = 2, 0.8
LARGE = 200_000  # entries of X from which one subsample has to do
SEARCHED = "sonar"  # where the paper's grid does not reach the paper's figure: a wider search
WIDER_A, WIDER_C = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 0.3), (0.0, 1e-3, 3e-3, 1e-2, 2e-2, 3e-2, 0.1, 0.2, 0.3, 0.5, 1.0)
WIDER_NU = (0.25, 0.5, 1.0)
WIDER_SCALINGS = ("none", "standardise", "min-max")
SETTINGS = {"tolerance": TOLERANCE, "iterations": MOST_ITERATIONS, "subsamples": SUBSAMPLES, "reading": "a squared"}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid, over the data sets that are there; the others are named with how to get them."""
    names = keep_loadable(dc.datasets.names() if grid == "full" else ("heart", "liver_disorders"), dc.datasets.load)
    weights, imbalance, runs = (WEIGHTS, IMBALANCE, RUNS) if grid == "full" else (WEIGHTS[1:], IMBALANCE[::4], 2)
    plain: dict[str, Any] = {"a": [0.0], "c": [0.0], "nu": [1.0], "run": [0], "scaling": ["standardise"]}
    penalties = {**plain, "a": weights, "c": (0.0, *weights), "nu": imbalance}
    cells: list[Cell] = []
    for name in names:
        cells += cross(data_set=[name], method=["facts"], **plain)
        cells += cross(data_set=[name], method=["relaxation"], **penalties)
        cells += cross(data_set=[name], method=["alternating", "k-means"], **{**plain, "run": range(runs)})
    if grid == "full":
        wider = {"a": WIDER_A, "c": WIDER_C, "nu": WIDER_NU, "run": [0], "scaling": WIDER_SCALINGS}
        cells += cross(data_set=[SEARCHED], method=["search"], **wider)
    return cells


def load_scaled(name: str, scaling: str = "standardise") -> tuple[Array, Array]:
    """Return X, centred, over the root of n, and the labels; standardised columns have then norm one.

    The paper does not say how its data were scaled; the penalties depend on it.
    """
    X, y = dc.datasets.load(name, scaling=scaling)
    return (X - X.mean(axis=0)) / len(X) ** 0.5, y


def penalty_of(a: float, c: float) -> dc.Penalty:
    """Return the penalty that the paper's a and c are taken to mean: a weighs the squares, so its root is the weight.

    The paper calls them "associated with" the two regularisers; other readings were tried and do no better.
    """
    return dc.Penalty(a**0.5, c)


def measure(data_set: str, method: str, a: float, c: float, nu: float, run: int, scaling: str) -> Row:
    """Measure one cell."""
    X, y = load_scaled(data_set, scaling)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "facts":
            return measure_facts(X, y)
        if method == "relaxation":
            return measure_relaxation(X, y, nu, penalty_of(a, c))
        if method == "search":
            labels, result = solve_and_round(X, nu, penalty_of(a, c))
            return {**scores(y, labels), "gap": result.gap, "size_of_smaller": share_of_smaller(labels)}
        if method == "alternating":
            return scores(y, dc.baselines.alternating_optimisation(X, restarts=1, rng=run))
        return scores(y, 2.0 * KMeans(2, n_init=1, random_state=run).fit_predict(X) - 1.0)


def solve_and_round(X: Array, nu: float, penalty: dc.Penalty) -> tuple[Array, dc.Result]:
    """Return the labels of the relaxation, and its result."""
    result = dc.low_rank(X, nu, penalty, tol=TOLERANCE, max_iter=MOST_ITERATIONS)
    return dc.rounding.kmeans_centered(result.F), result


def measure_relaxation(X: Array, y: Array, nu: float, penalty: dc.Penalty) -> Row:
    """Solve the relaxation, round it, and measure all that can be said of it with and without the true labels."""
    labels, result = solve_and_round(X, nu, penalty)
    proof = dc.certify_labels(X, labels, result, nu=nu, penalty=penalty)
    return {
        **scores(y, labels),
        "gap": result.gap,
        "value": result.value,
        "label_gap": proof.gap,
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(result.F),
        "correlation": dc.metrics.squared_correlation(X, labels),
        "stability": measure_stability(X, labels, nu, penalty),
        "size_of_smaller": share_of_smaller(labels),
    }


def share_of_smaller(labels: Array) -> float:
    """Return the share of the points in the smaller cluster."""
    return float(min(np.mean(labels > 0), np.mean(labels < 0)))


def measure_stability(X: Array, labels: Array, nu: float, penalty: dc.Penalty) -> float:
    """Return the mean agreement of the labels with those found on random parts of the rows, 1 at best."""
    rng = np.random.default_rng(2017)
    agreements = []
    for _ in range(SUBSAMPLES if X.size < LARGE else 1):
        rows = rng.permutation(len(X))[: int(SHARE * len(X))]
        part, _ = solve_and_round(X[rows] * SHARE**-0.5, nu, penalty)
        agreements.append(1.0 - dc.metrics.clustering_error(labels[rows], part))
    return float(np.mean(agreements))


def scores(y: Array, labels: Array) -> Row:
    """Return what the true labels say of found ones."""
    return {
        "error": dc.metrics.clustering_error(y, labels),
        "rand": float(adjusted_rand_score(y, labels)),
        "information": float(normalized_mutual_info_score(y, labels)),
    }


def measure_facts(X: Array, y: Array) -> Row:
    """Return what frames a data set: constant labels, supervision, whether n suffices, the relaxation alone."""
    result = dc.low_rank(X, 1.0, tol=1e-5, max_iter=MOST_ITERATIONS)
    basis = column_basis(as_data(X))
    d = basis.shape[1]
    supervised = np.where(basis @ (basis.T @ (y - y.mean())) + y.mean() >= 0, 1.0, -1.0)
    assert result.V is not None
    spectrum = np.linalg.eigvalsh(result.V)
    return {
        "n": len(X),
        "d": X.shape[1],
        "rank": d,
        "constant_error": 1.0 - dc.metrics.imbalance(y),
        "supervised_error": dc.metrics.clustering_error(y, supervised),
        "points_needed": statistical_dimension(d),
        "value": result.value,
        "gap": result.gap,
        "effective_rank": float(spectrum.sum() / spectrum[-1]),
        "two_valued": sum(len(np.unique(column)) == 2 for column in X.T),
    }
