"""A split that says nothing about the data says so first, with what to change."""

import warnings

import numpy as np
import pytest

import diffrac_cvx as dc

NOISE = np.random.default_rng(0).standard_normal((60, 30))
SMALL = NOISE[:, :5]
OUTLIER = np.vstack([[100.0, 100.0, 100.0, 100.0, 100.0], SMALL])


def kinds_of(X: np.ndarray, **parameters: float) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        model = dc.DiffracClustering(**parameters).fit(X)
    return [reservation.kind for reservation in model.reservations_]


@pytest.mark.parametrize(
    ("X", "parameters", "kinds"),
    [
        (np.ones((5, 2)), {}, ["constant"]),
        (SMALL, {"nu": 0.0}, ["no preference", "one cluster"]),
        (SMALL, {"nu": 0.1, "ridge": 1e6}, ["one cluster"]),
        (SMALL, {"lam": 1e6}, ["no gain"]),
        (NOISE, {"ridge": 0.0}, ["too few points"]),
        (np.hstack([NOISE, NOISE**3]), {"ridge": 0.0}, ["too few points"]),
        (OUTLIER, {}, ["few points"]),
        (SMALL, {}, []),
        (NOISE, {}, []),
        (dc.datasets.make_planted(100, 5, rng=0).X, {"ridge": 0.0}, ["one column"]),
        (dc.datasets.make_planted(100, 5, noise=0.1, rng=0).X, {"ridge": 0.0}, []),
        (dc.datasets.make_planted(60, 20, 2, rng=0).X, {"ridge": 0.0, "lam": 0.02}, []),
    ],
)
def test_each_case_is_named(X, parameters, kinds):
    assert kinds_of(X, **parameters) == kinds


def test_it_is_a_warning_that_says_what_to_change():
    with pytest.warns(dc.DegenerateDataWarning, match=r"penalty is so large.*smaller"):
        dc.DiffracClustering(lam=1e6).fit(SMALL)


def test_coefficients_on_one_scale_do_not_depend_on_units():
    X = dc.datasets.make_planted(80, 4, noise=0.2, rng=1).X
    units = np.array([1e-3, 1.0, 10.0, 1e4])
    first, second = dc.DiffracClustering().fit(X), dc.DiffracClustering().fit(X * units)
    np.testing.assert_allclose(first.scaled_coef_, second.scaled_coef_, rtol=1e-6)
    np.testing.assert_allclose(first.scaled_coef_, first.coef_ * X.std(axis=0))
    assert np.max(first.scaled_coef_) == np.max(np.abs(first.scaled_coef_))
