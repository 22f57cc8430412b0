"""Factors of V: every function gives the same for a dense and for a sparse one."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import diffrac_cvx as dc
from diffrac_cvx.points import factors

RNG = np.random.default_rng(2017)
DENSE = RNG.standard_normal((7, 5)) * (RNG.uniform(size=(7, 5)) < 0.5)
FORMS = {name: getattr(scipy.sparse, f"{name}_array") for name in ("csc", "csr", "coo")}

each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def test_only_a_sparse_array_is_sparse():
    assert not factors.is_sparse(DENSE)
    assert not factors.is_sparse(None)
    assert all(factors.is_sparse(form(DENSE)) for form in FORMS.values())
    assert factors.is_sparse(scipy.sparse.csc_matrix(DENSE))


@each_form
def test_the_dense_form_of_a_factor_has_its_entries(form):
    np.testing.assert_array_equal(factors.dense(form(DENSE)), DENSE)
    assert factors.dense(DENSE) is DENSE


@each_form
def test_rows_are_scaled_alike(form):
    s = RNG.standard_normal(7)
    scaled = factors.scale_rows(form(DENSE), s)
    assert factors.is_sparse(scaled)
    np.testing.assert_allclose(factors.dense(scaled), np.diag(s) @ DENSE, rtol=1e-15)
    np.testing.assert_allclose(factors.scale_rows(DENSE, s), np.diag(s) @ DENSE, rtol=1e-15)


@each_form
def test_the_squared_norm_is_the_trace_of_v(form):
    expected = np.trace(DENSE @ DENSE.T)
    assert factors.squared_norm(DENSE) == pytest.approx(expected, rel=1e-14)
    assert factors.squared_norm(form(DENSE)) == pytest.approx(expected, rel=1e-14)


@each_form
def test_products_with_the_data_are_alike(form, monkeypatch):
    monkeypatch.setattr("diffrac_cvx.points.linear_algebra.BLOCK", 4)  # rows at a time
    X = RNG.standard_normal((11, 7))
    for U in (DENSE, form(DENSE)):
        found = factors.products(X, U)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, X @ DENSE, atol=1e-14)


@each_form
def test_the_sum_of_absolute_products_is_that_of_v(form, monkeypatch):
    monkeypatch.setattr(factors, "ROWS", 3)
    expected = np.abs(DENSE @ DENSE.T).sum()
    for U in (DENSE, form(DENSE)):
        assert factors.sum_of_absolute_products(U) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("most", [0, 800], ids=["by norm", "orthogonal"])
@each_form
def test_columns_come_by_decreasing_norm_and_v_stays(form, most, monkeypatch):
    monkeypatch.setattr(factors, "MOST_ROTATED", most)
    for U in (DENSE, form(DENSE).tocsc()):
        ordered = factors.dense(factors.order_columns(U))
        np.testing.assert_allclose(ordered @ ordered.T, DENSE @ DENSE.T, atol=1e-13)
        assert np.all(np.diff(np.sum(ordered**2, axis=0)) <= 1e-13)
    if most:
        ordered = factors.order_columns(DENSE)
        gram = ordered.T @ ordered
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-13)


@pytest.mark.parametrize("most", [0, 800])
def test_negligible_columns_are_dropped_and_one_is_always_kept(most, monkeypatch):
    monkeypatch.setattr(factors, "MOST_ROTATED", most)
    U = np.diag([1e-9, 1.0, 0.5])
    for given in (U, scipy.sparse.csc_array(U)):
        np.testing.assert_allclose(np.abs(factors.dense(factors.order_columns(given, 1e-16))).sum(axis=0), [1.0, 0.5])
        assert factors.order_columns(given).shape == (3, 3)
        assert factors.order_columns(given * 0.0, 1e-16).shape == (3, 1)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_which_columns_are_negligible_does_not_depend_on_their_scale(scale):
    U = scale * np.diag([1e-3, 1.0, 0.5])
    for given in (U, scipy.sparse.csc_array(U)):
        assert factors.order_columns(given, 1e-5).shape == (3, 2)
        assert factors.order_columns(given, 1e-7).shape == (3, 3)


def test_columns_are_made_orthogonal_where_the_smaller_side_is_small(monkeypatch):
    monkeypatch.setattr(factors, "MOST_ROTATED", 5)
    ordered = factors.order_columns(DENSE)
    gram = ordered.T @ ordered
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-13)


def test_the_spectrum_is_that_of_v_for_blocks_of_every_shape():
    blocks = [RNG.standard_normal(shape) for shape in ((1, 1), (3, 1), (2, 4), (3, 3))]
    U = scipy.linalg.block_diag(*blocks)
    order = RNG.permutation(len(U))
    expected = np.sort(np.linalg.eigvalsh(U @ U.T))[::-1]
    for given in (U, scipy.sparse.csc_array(U), scipy.sparse.csc_array(U[order])):
        found = factors.eigenvalues(given)
        assert np.all(np.diff(found) <= 0.0)
        size = min(len(found), len(expected))
        np.testing.assert_allclose(found[:size], expected[:size], atol=1e-12)
        assert np.all(np.abs(np.concatenate([found[size:], expected[size:]])) <= 1e-12)


@each_form
def test_v_is_the_factor_times_its_transpose(form):
    for U in (DENSE, form(DENSE)):
        V = factors.squared(U)
        assert isinstance(V, np.ndarray)
        np.testing.assert_allclose(V, DENSE @ DENSE.T, atol=1e-14)


def test_a_matrix_too_large_for_the_memory_is_refused_with_words(monkeypatch):
    monkeypatch.setattr("diffrac_cvx.machine.memory.available_memory", lambda: 100.0)
    for U in (DENSE, scipy.sparse.csc_array(DENSE)):
        with pytest.raises(dc.ResourceError, match=r"a dense 7 x 7 matrix .* use the factor G"):
            factors.squared(U)
