"""Blockwise and Lanczos computations for large matrices, and columns beyond the first block, give the same bounds."""

import importlib
import pkgutil
import warnings
from decimal import Decimal

import numpy as np
import pytest
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates import screening
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import eliminate
from diffrac_cvx.certificates.screening import screen_components, screen_pairs
from diffrac_cvx.points import linear_algebra as linalg
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.factors import dense
from experiments.stress.cells import ROUNDED
from experiments.stress.exact import direction_value
from experiments.stress.instances import make_instance

MODULES = [
    importlib.import_module(found.name)
    for package in ("certificates", "solvers")
    for found in pkgutil.walk_packages([f"{dc.__path__[0]}/{package}"], f"diffrac_cvx.{package}.")
    if "reference" not in found.name
]


@pytest.fixture
def small_is_large(monkeypatch):
    for module in [linalg, importlib.import_module("diffrac_cvx.rounding.directions"), *MODULES]:
        if hasattr(module, "LARGE_SIZE"):
            monkeypatch.setattr(module, "LARGE_SIZE", 3)


@pytest.mark.parametrize("family", ["small_integers", "gaussian", "ill_conditioned", "one_outlier", "planted", "wide"])
def test_no_bound_by_parts_exceeds_the_value_of_any_directions(small_is_large, family):
    for number in range(2000, 2012):
        instance = make_instance(family, number)
        X, nu, a, c, w, *_ = instance
        penalty = dc.Penalty(a, np.where(c.any(), np.maximum(c, 1e-3 * np.abs(X).max(axis=0)), c))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = dc.low_rank(X, nu, penalty, tol=1e-6, max_iter=200, time_limit=0.5, sample_weight=w)
            proved = dc.certify_v(X, found, nu, penalty, sample_weight=w)
        exact = direction_value(X, nu, *penalty.weights(X.shape[1]), dense(found.G), w)
        if found.n_excluded == 0:
            assert Decimal(max(found.lower, proved.lower)) - exact <= ROUNDED, number
            assert exact - Decimal(found.upper) <= ROUNDED, number


# Many columns


MANY_COLUMNS = 600  # more columns than are multiplied at a time
SIMILAR_PAIRS = [(3, 5), (10, 540), (20, 511), (21, 512), (530, 531), (550, 599), (5, 7)]  # nearly equal columns


@pytest.mark.parametrize("single", [1, 10**9], ids=["single", "double"])
@pytest.mark.parametrize("nu", [1.0, 0.5])
def test_pairs_are_found_beyond_the_first_block_of_columns(monkeypatch, nu, single):
    assert MANY_COLUMNS > screening.COLUMN_BLOCK
    monkeypatch.setattr(screening, "SINGLE_PRECISION_SIZE", single)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, MANY_COLUMNS))
    for j, k in SIMILAR_PAIRS:
        X[:, k] = X[:, j] + 0.1 * rng.standard_normal(60)
    split = block_problem(direction_problem(as_data(X), nu, dc.Penalty(c=0.75)))
    at = eliminate(split, np.full(60, 2.0), 1.0)
    if at is None:  # with an offset t has to be above the weights
        at = eliminate(split, np.where(np.arange(60) < 30, 0.1, 0.3), 2.2)
    found = screen_pairs(at, np.arange(MANY_COLUMNS), max_pairs=10**6)
    G = at.gram(slice(0, MANY_COLUMNS), slice(0, MANY_COLUMNS)) / np.outer(split.c, split.c)
    expected = np.argwhere(np.triu(np.abs(G) > at.t, 1))
    assert [list(pair) for pair in sorted(zip(found.j, found.k, strict=True))] == expected.tolist()
    assert {j for j, _ in expected} >= {530, 550}
    exact = [G[j, k] * split.c[j] * split.c[k] for j, k in zip(*found[:2], strict=True)]
    np.testing.assert_allclose(found.G, exact, rtol=1e-5 if single == 1 else 1e-12)


# Components with unpenalised columns


def test_all_features_are_joined_where_the_unpenalized_columns_cannot_be_eliminated():
    """Three penalised columns, an unpenalised one and the offset, none of unit scale."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((50, 4)) @ (np.eye(4) + 0.4 * rng.standard_normal((4, 4))) * [1.0, 1.0, 1.0, 1.4]
    problem = direction_problem(as_data(X), 0.4, dc.Penalty(a=[0.2, 0.0, 0.1, 1.3], c=[0.8, 0.9, 1.0, 0.0]))
    near, far = np.full(50, 1.0), np.full(50, 0.01)  # u = 1 and u = 10
    assert len(set(screen_components(problem, near, 0.0))) == 3
    np.testing.assert_array_equal(screen_components(problem, near, 10.0), 0)
    np.testing.assert_array_equal(screen_components(problem, far, 0.0), 0)
