import numpy as np
import pytest

from diffrac_cvx.points import linear_algebra as linalg
from diffrac_cvx.points.linear_algebra import center_columns, column_units, standardize_columns

RNG = np.random.default_rng(31)


@pytest.mark.parametrize("large", [3, 100], ids=["by parts", "whole"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_factor_of_a_symmetric_matrix_is_that_of_its_positive_part_largest_first(scale, large, monkeypatch):
    monkeypatch.setattr(linalg, "LARGE_SIZE", large)
    Q = np.linalg.qr(RNG.standard_normal((4, 4)))[0]
    M = scale * (Q * [3.0, 2.0, 1e-3, -1.0]) @ Q.T
    skew = np.triu(np.ones((4, 4)), 1)
    U = linalg.psd_factor(M + scale * (skew - skew.T))  # the antisymmetric part is discarded
    np.testing.assert_allclose(U @ U.T, scale * (Q[:, :3] * [3.0, 2.0, 1e-3]) @ Q[:, :3].T, atol=1e-13 * scale)
    np.testing.assert_allclose(np.sum(U**2, axis=0), scale * np.array([3.0, 2.0, 1e-3]), rtol=1e-10)
    assert linalg.psd_factor(M, rtol=0.5).shape == (4, 2)
    assert linalg.psd_factor(M, rtol=0.7).shape == (4, 1)
    np.testing.assert_array_equal(linalg.psd_factor(-np.eye(3)), np.zeros((3, 1)))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("small", [0, 100])
def test_rotated_columns_are_orthogonal_largest_first_and_the_product_stays(scale, small, monkeypatch):
    monkeypatch.setattr(linalg, "GESVD_SIZE", small)
    U = scale * RNG.standard_normal((6, 4)) @ np.diag([1.0, 0.5, 0.1, 1e-4])
    V = linalg.principal_columns(U)
    np.testing.assert_allclose(V @ V.T, U @ U.T, atol=1e-14 * scale**2)
    sizes = np.sum(V**2, axis=0)
    np.testing.assert_allclose(V.T @ V, np.diag(sizes), atol=1e-14 * scale**2)
    assert np.all(np.diff(sizes) < 0.0)
    assert linalg.principal_columns(U, rtol=1e-6).shape == (6, 3)
    np.testing.assert_array_equal(np.abs(linalg.principal_columns(np.full((1, 1), 2.0))), [[2.0]])


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize(("shape", "rank"), [((7, 3), 3), ((2, 4), 2), ((9, 4), 2), ((5, 3), 0)])
def test_whitened_columns_are_orthonormal_and_as_many_as_the_rank(shape, rank, scale):
    M = scale * RNG.standard_normal((shape[0], rank)) @ RNG.standard_normal((rank, shape[1]))
    W = linalg.whitener(M, full_rank=False)
    assert W.shape == (shape[1], rank)
    np.testing.assert_allclose((M @ W).T @ (M @ W), np.eye(rank), atol=1e-12)


def test_a_direction_that_varies_more_than_rounding_counts_in_the_rank():
    M = np.linalg.qr(RNG.standard_normal((40, 2)))[0]
    assert linalg.whitener(M * [1.0, 1e-12], full_rank=False).shape == (2, 2)
    assert linalg.whitener(M * [1.0, 1e-14], full_rank=False).shape == (2, 1)
    assert linalg.whitener(M * [1.0, 1e-14]).shape == (2, 2)  # a certificate needs all of them


@pytest.mark.parametrize("units", [np.ones(3), np.array([1e-8, 1.0, 1e8])])
def test_the_projection_on_the_columns_takes_a_ridge_and_no_notice_of_units(units):
    X, ridge, n = RNG.standard_normal((8, 3)), np.array([0.0, 0.4, 1.5]), 8
    Q = linalg.column_basis(X * units)
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(Q @ Q.T @ X, X, atol=1e-12)
    R = linalg.column_basis(X * units, ridge * units)
    np.testing.assert_allclose(R @ R.T, X @ np.linalg.inv(X.T @ X + n * np.diag(ridge**2)) @ X.T, atol=1e-12)


def test_standardized_columns_have_mean_0_and_variance_1():
    X = np.random.default_rng(0).normal(5.0, [1.0, 1e3, 1e-3], (50, 3))
    scaled, centered = standardize_columns(X), center_columns(X)
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-11)
    np.testing.assert_allclose(scaled.var(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(centered * column_units(centered), scaled)


@pytest.mark.parametrize("constant", [0.0, 7.0, 0.1])  # the mean of seven times 0.1 is not 0.1
def test_a_constant_column_becomes_0_exactly(constant):
    centered = center_columns(np.column_stack([np.full(7, constant), np.arange(7.0)]))
    assert not centered[:, 0].any()
    assert column_units(centered)[0] == 1.0
