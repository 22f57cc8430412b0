"""Decompositions and factors of matrices, dense and sparse."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from diffrac_cvx.points import factors
from diffrac_cvx.points import linear_algebra as linalg
from diffrac_cvx.points.linear_algebra import standardize_columns

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


def test_a_large_product_is_formed_in_blocks_of_rows(monkeypatch):
    monkeypatch.setattr(linalg, "FLOPS_PER_SECOND", 1.0)
    A, B = RNG.standard_normal((50, 3)), RNG.standard_normal((3, 2))
    np.testing.assert_allclose(linalg.times(A, B), A @ B, rtol=1e-14)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 1), (6, 2), (3, 5)])
def test_the_upper_part_of_a_gram_matrix_and_its_mirrored_product_are_those_of_whole_matrices(shape, order):
    F = np.asarray(RNG.standard_normal(shape), order=order)
    T = linalg.upper_gram(F)
    np.testing.assert_allclose(T, np.triu(F @ F.T), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(linalg.mirrored_times(T, F), (T + T.T) @ F, rtol=1e-13, atol=1e-14)


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


def test_standardized_columns_have_mean_0_and_variance_1_and_a_constant_column_becomes_0():
    X = np.random.default_rng(0).normal(5.0, [1.0, 1e3, 1e-3], (49, 3))
    scaled = standardize_columns(np.column_stack([X, np.full(49, 0.1)]))  # the mean of 49 times 0.1 is not 0.1
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-11)
    np.testing.assert_allclose(scaled[:, :3].var(axis=0), 1.0, rtol=1e-12)
    assert not scaled[:, 3].any()


# Factors of V


RNG = np.random.default_rng(2017)
DENSE = RNG.standard_normal((7, 5)) * (RNG.uniform(size=(7, 5)) < 0.5)
FORMS = {"array": np.asarray, **{name: getattr(scipy.sparse, f"{name}_array") for name in ("csc", "csr", "coo")}}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_function_gives_for_a_sparse_factor_what_it_gives_for_a_dense_one(form, monkeypatch):
    monkeypatch.setattr("diffrac_cvx.points.linear_algebra.BLOCK_ROWS", 4)  # rows at a time
    monkeypatch.setattr(factors, "GRAM_BLOCK_ROWS", 3)
    U, s, X, V = form(DENSE), RNG.standard_normal(7), RNG.standard_normal((11, 7)), DENSE @ DENSE.T
    scaled, products, squared = factors.scale_rows(U, s), factors.products(X, U), factors.outer_product(U)
    assert factors.is_sparse(U) == factors.is_sparse(scaled) == (form is not np.asarray)
    assert isinstance(products, np.ndarray)
    assert isinstance(squared, np.ndarray)
    np.testing.assert_array_equal(factors.dense(U), DENSE)
    np.testing.assert_allclose(factors.dense(scaled), np.diag(s) @ DENSE, rtol=1e-15)
    np.testing.assert_allclose(products, X @ DENSE, atol=1e-14)
    np.testing.assert_allclose(squared, V, atol=1e-14)
    assert factors.squared_norm(U) == pytest.approx(np.trace(V), rel=1e-14)
    assert factors.abs_gram_sum(U) == pytest.approx(np.abs(V).sum(), rel=1e-14)


@pytest.mark.parametrize("small", [0, 100], ids=["gesdd", "gesvd"])
@pytest.mark.parametrize("most", [0, 5, 800], ids=["by norm", "orthogonal, the smaller side small", "orthogonal"])
def test_columns_come_by_decreasing_norm_and_v_stays(most, small, monkeypatch):
    monkeypatch.setattr(factors, "LARGE_SIZE", most)
    monkeypatch.setattr(linalg, "GESVD_SIZE", small)
    for U in (DENSE, scipy.sparse.csc_array(DENSE)):
        ordered = factors.dense(factors.order_columns(U))
        np.testing.assert_allclose(ordered @ ordered.T, DENSE @ DENSE.T, atol=1e-13)
        assert np.all(np.diff(np.sum(ordered**2, axis=0)) <= 1e-13)
    if most:
        ordered = factors.order_columns(DENSE)
        gram = ordered.T @ ordered
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-13)
        assert factors.order_columns(DENSE * [1.0, 1.0, 1e-9, 1.0, 1.0], rtol=1e-12).shape == (7, 4)
