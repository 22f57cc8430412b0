"""Factors of V: every function gives equal results for dense and sparse factors."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import diffrac_cvx as dc
from diffrac_cvx.points import factors

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


@pytest.mark.parametrize("most", [0, 5, 800], ids=["by norm", "orthogonal, the smaller side small", "orthogonal"])
def test_columns_come_by_decreasing_norm_and_v_stays(most, monkeypatch):
    monkeypatch.setattr(factors, "LARGE_SIZE", most)
    for U in (DENSE, scipy.sparse.csc_array(DENSE)):
        ordered = factors.dense(factors.order_columns(U))
        np.testing.assert_allclose(ordered @ ordered.T, DENSE @ DENSE.T, atol=1e-13)
        assert np.all(np.diff(np.sum(ordered**2, axis=0)) <= 1e-13)
    if most:
        ordered = factors.order_columns(DENSE)
        gram = ordered.T @ ordered
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-13)


def test_a_matrix_too_large_for_the_memory_is_refused_with_words(monkeypatch):
    monkeypatch.setattr("diffrac_cvx.machine.memory.available_memory", lambda: 100.0)
    for U in (DENSE, scipy.sparse.csc_array(DENSE)):
        with pytest.raises(dc.ResourceError, match=r"a dense 7 x 7 matrix .* use the factor G"):
            factors.outer_product(U)
