"""The linear algebra uses one thread where it has many small products."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import diffrac_cvx as dc
from diffrac_cvx.machine import threads
from diffrac_cvx.rounding import many_clusters


def blas_threads():
    return max(blas.num_threads for blas in threads.controller().select(user_api="blas").lib_controllers)


def test_one_thread_keeps_the_number_allowed_outside():
    with threadpool_limits(2, user_api="blas"):
        with threads.one_thread(), threads.one_thread():
            assert blas_threads() == 1
            assert threads.allowed_threads() == 2
        assert (blas_threads(), threads.allowed_threads()) == (2, 2)


@pytest.mark.parametrize("fails", [False, True])
def test_an_estimator_uses_one_thread_in_the_whole_of_its_fit(fails, monkeypatch):
    found, original = [], many_clusters.kmeans_rows

    def spy(*args, **options):
        found.append(blas_threads())
        if fails:
            raise KeyboardInterrupt
        return original(*args, **options)

    monkeypatch.setattr(many_clusters, "kmeans_rows", spy)
    X = np.random.default_rng(0).standard_normal((30, 4))
    with threadpool_limits(2, user_api="blas"):
        try:
            dc.DiffracClustering(n_clusters=3).fit(X)
        except KeyboardInterrupt:
            assert fails
        assert blas_threads() == 2
    assert set(found) == {1}
