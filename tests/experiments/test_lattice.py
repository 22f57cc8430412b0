"""Lattice reduction: exact labels of noiseless data, and the reduced basis."""

from itertools import product

import numpy as np
import pytest

from diffrac_cvx.datasets import make_planted
from diffrac_cvx.metrics import clustering_error
from experiments.rivals.lattice import lattice, reduced_basis


@pytest.mark.parametrize("d", [1, 2, 5, 12, 16])
def test_two_points_more_than_dimensions_are_enough_for_the_lattice(d):
    X, y, _ = make_planted(d + 2 + d % 2, d, d, rng=1)
    found = lattice(X)
    assert clustering_error(y, found) == 0.0
    assert found[0] == 1.0


def test_the_lattice_finds_unbalanced_clusters():
    rng = np.random.default_rng(1)
    y = rng.permuted(np.repeat([1.0, -1.0], [13, 1]))
    X = np.column_stack([y, rng.standard_normal((14, 8))]) @ rng.standard_normal((9, 9))
    assert clustering_error(y, lattice(X)) == 0.0


@pytest.mark.parametrize("n", [8, 30])
def test_a_noise_of_a_millionth_defeats_the_lattice_at_full_accuracy_only(n):
    X, y, _ = make_planted(n, 4, 4, noise=1e-6, rng=2)
    assert lattice(X) is None
    assert clustering_error(y, lattice(X, bits=15)) == 0.0


def test_labels_that_fit_some_points_only_are_not_returned():
    for seed in range(6):  # at 7 bits some labels fit the few points of the lattice
        assert lattice(np.random.default_rng(seed).standard_normal((60, 3)), bits=7) is None


@pytest.mark.parametrize("seed", range(3))
def test_a_reduced_basis_spans_the_same_lattice_with_short_vectors(seed):
    rng = np.random.default_rng(seed)
    basis = np.array(rng.integers(-(10**6), 10**6, (4, 4)).tolist(), dtype=object)
    reduced = reduced_basis(basis)
    change = np.linalg.solve(basis.astype(float).T, reduced.astype(float).T)
    np.testing.assert_allclose(change, np.rint(change), atol=1e-6)
    assert abs(np.linalg.det(np.rint(change))) == pytest.approx(1.0)
    combinations = np.array([c for c in product(range(-3, 4), repeat=4) if any(c)])
    shortest = np.linalg.norm(combinations @ reduced.astype(float), axis=1).min()
    assert np.linalg.norm(reduced[0].astype(float)) <= 1.1 * shortest
