"""Data of the tests of estimators."""

import pytest

import diffrac_cvx as dc


@pytest.fixture(scope="session")
def planted():
    return dc.datasets.make_planted(120, 6, noise=0.1, rng=3)
