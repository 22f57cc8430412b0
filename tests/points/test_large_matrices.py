"""Blockwise and Lanczos computations for large matrices certify the same bounds as complete decompositions."""

import importlib
import pkgutil
import warnings
from decimal import Decimal

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.certificates.search import best_combination
from diffrac_cvx.points import linear_algebra as linalg
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
