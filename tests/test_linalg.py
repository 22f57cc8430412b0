import numpy as np
import pytest

from diffrac_cvx.linalg import standardise


def test_standardised_columns_have_mean_0_and_variance_1():
    X = np.random.default_rng(0).normal(5.0, [1.0, 1e3, 1e-3], (50, 3))
    scaled = standardise(X)
    np.testing.assert_allclose(scaled.X.mean(axis=0), 0.0, atol=1e-11)
    np.testing.assert_allclose(scaled.X.var(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose((X - scaled.mean) * scaled.unit, scaled.X)


@pytest.mark.parametrize("constant", [0.0, 7.0, 0.1])  # the mean of seven times 0.1 is not 0.1
def test_a_constant_column_becomes_0_exactly(constant):
    scaled = standardise(np.column_stack([np.full(7, constant), np.arange(7.0)]))
    assert not scaled.X[:, 0].any()
    assert scaled.unit[0] == 1.0
