"""Blockwise and Lanczos computations for large matrices certify the same bounds as complete decompositions."""

import importlib
import pkgutil
import warnings
from decimal import Decimal

import numpy as np
import pytest
from rationals import fractions, is_semidefinite

import diffrac_cvx as dc
from diffrac_cvx.certificates.proof import cholesky_or_none
from diffrac_cvx.certificates.search import best_combination
from diffrac_cvx.points import linear_algebra as linalg
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.floating_point import sum_error
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


@pytest.mark.parametrize("size", [2, 5, 8])
def test_a_factorization_by_blocks_that_succeeds_proves_as_much_as_one_of_lapack(small_is_large, size):
    rng = np.random.default_rng(size)
    decided = []
    for _ in range(60):
        U = rng.integers(-4, 5, (size, size - 1)).astype(float) / 8
        S = U @ U.T + 1e-15 * rng.uniform(-3, 3) * np.eye(size)
        S = (S + S.T) / 2
        decided.append(cholesky_or_none(S) is not None)
        if decided[-1]:
            moved = S + sum_error(size + 1) / (1 - sum_error(size + 1)) * np.trace(S) * np.eye(size)
            assert is_semidefinite(fractions(moved))
    assert len(set(decided)) == 2  # both cases occur


@pytest.mark.parametrize("size", [4, 7, 10])
def test_factors_by_blocks_are_those_of_lapack(small_is_large, size):
    rng = np.random.default_rng(size)
    M = rng.standard_normal((size, size))
    M = M @ M.T + np.eye(size)
    L = linalg.cholesky(M)
    np.testing.assert_allclose(L, np.linalg.cholesky(M), atol=1e-13)
    np.testing.assert_allclose(linalg.inverse_triangular(L) @ L, np.eye(size), atol=1e-12)
    np.testing.assert_allclose(linalg.inverse_of_positive(M) @ M, np.eye(size), atol=1e-11)
    with pytest.raises(np.linalg.LinAlgError):
        linalg.cholesky(M - 2 * np.linalg.eigvalsh(M)[-1] * np.eye(size))


@pytest.mark.parametrize("size", [5, 12])
def test_the_blend_of_large_matrices_is_no_smaller_and_hardly_larger(monkeypatch, size):
    for seed in range(5):
        rng = np.random.default_rng([size, seed])
        M, C = rng.standard_normal((2, size, size))
        M, C = M @ M.T / size, 0.3 * (C + C.T) / size**0.5
        whole_t, whole_weight, _ = best_combination(M, C)
        with monkeypatch.context() as patched:
            patched.setattr("diffrac_cvx.certificates.search.LARGE_SIZE", 3)
            t, weight, least = best_combination(M, C)
        right = np.eye(size) + weight * C
        assert np.linalg.eigvalsh(t * right - M)[0] >= -1e-12
        assert t <= whole_t * (1 + 1e-6) or weight != whole_weight
        assert least <= np.linalg.eigvalsh(right)[0] + 1e-12
