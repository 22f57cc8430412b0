import numpy as np
import pytest

from diffrac_cvx.datasets import make_planted, planted
from diffrac_cvx.metrics import imbalance

# Planted


@pytest.mark.parametrize("law", planted.DISTRIBUTIONS)
@pytest.mark.parametrize("sparsity", [1, 4, 9])
def test_the_direction_gives_the_centered_labels_and_is_as_sparse_as_asked(law, sparsity):
    X, y, v = make_planted(50, 9, sparsity, 0.2, law=law)
    np.testing.assert_allclose(X @ v, y - y.mean(), atol=1e-13)
    np.testing.assert_array_equal(np.flatnonzero(v), np.arange(sparsity))
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(np.mean(X**2, axis=0), 1.0, rtol=1e-13)


def test_with_noise_the_direction_gives_the_noisy_labels():
    n, noise = 4000, 0.3
    X, y, v = make_planted(n, 5, 2, noise=noise)
    error = X @ v - (y - y.mean())
    assert np.std(error) == pytest.approx(noise, abs=4 * noise / (2 * n) ** 0.5)
    assert abs(error @ y) / n < 4 * noise / n**0.5
    assert np.mean(error**4) / np.mean(error**2) ** 2 == pytest.approx(3, abs=4 * (24 / n) ** 0.5)


@pytest.mark.parametrize("n", [2, 3, 10, 81])
@pytest.mark.parametrize("wanted", [0.0, 0.25, 0.6, 0.999])
def test_the_imbalance_is_the_nearest_that_two_clusters_allow(n, wanted):
    reached = imbalance(make_planted(n, 2, imbalance=wanted).y)
    possible = (2 * np.arange(1, n) / n - 1) ** 2
    assert abs(reached - wanted) <= np.abs(possible - wanted).min() + 1e-15


def test_the_labels_are_shuffled():
    y = make_planted(100, 2).y
    assert 30 < np.sum(y[1:] != y[:-1]) < 70


KURTOSIS = {"gaussian": 3.0, "uniform": 1.8, "rademacher": 1.0, "laplace": 6.0, "student": 9.0}


@pytest.mark.parametrize("law", KURTOSIS)
def test_a_law_has_mean_zero_variance_one_and_its_kurtosis(law):
    z = planted.DISTRIBUTIONS[law](np.random.default_rng(0), (1000, 400)).ravel()
    assert abs(z.mean()) < 0.01
    assert np.var(z) == pytest.approx(1.0, abs=0.02)
    # A Student variable with 5 degrees of freedom has no finite eighth moment: its kurtosis converges slowly.
    assert np.mean(z**4) == pytest.approx(KURTOSIS[law], rel=0.3 if law == "student" else 0.03)


def test_a_rotation_is_orthogonal_of_determinant_one_and_uniform():
    rng = np.random.default_rng(0)
    rotations = np.array([planted.draw_rotation(3, rng) for _ in range(2000)])
    np.testing.assert_allclose(
        rotations @ rotations.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (2000, 3, 3)), atol=1e-13
    )
    np.testing.assert_allclose(np.linalg.det(rotations), 1.0)
    assert np.abs(rotations.mean(axis=0)).max() < 4 / (3 * 2000) ** 0.5  # each entry has variance 1/3


def test_planted_data_depend_on_the_generator_alone():
    rng = np.random.default_rng(5)
    np.testing.assert_array_equal(make_planted(20, 4, rng=5).X, make_planted(20, 4, rng=rng).X)
    assert np.any(make_planted(20, 4, rng=5).X != make_planted(20, 4, rng=rng).X)
    np.testing.assert_array_equal(make_planted(20, 4).X, make_planted(20, 4, rng=0).X)


@pytest.mark.parametrize("law", planted.DISTRIBUTIONS)
def test_a_noise_column_that_happens_to_be_constant_is_harmless(law):
    X, y, v = make_planted(2, 30, law=law)
    assert np.isfinite(X).all()
    np.testing.assert_allclose(X @ v, y)
