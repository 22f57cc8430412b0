"""Kernel features before `DiffracClustering`: nonlinear boundaries, and bounds for the kernel problem."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import diffrac_cvx as dc

RINGS_AND_MOONS = {
    "rings": lambda seed, n: make_circles(n, factor=0.4, noise=0.05, random_state=seed),
    "moons": lambda seed, n: make_moons(n, noise=0.05, random_state=seed),
}
each_set = pytest.mark.parametrize("name", RINGS_AND_MOONS)


def curved(n_components, seed=0):
    features = Nystroem(gamma=8.0, n_components=n_components, random_state=seed)
    return make_pipeline(StandardScaler(), features, dc.DiffracClustering(standardize=False, ridge=0.1))


@each_set
def test_a_kernel_before_the_split_finds_rings_and_moons_that_no_line_divides(name):
    linear, found, new = [], [], []
    for seed in range(3):
        X, y = RINGS_AND_MOONS[name](seed, 400)
        model = curved(100, seed).fit(X)
        linear.append(dc.metrics.adjusted_rand_score(y, dc.DiffracClustering().fit_predict(X)))
        found.append(dc.metrics.adjusted_rand_score(y, model[-1].labels_))
        others, groups = RINGS_AND_MOONS[name](seed + 100, 400)
        new.append(dc.metrics.adjusted_rand_score(groups, model.predict(others)))
    assert np.median(linear) < {"rings": 0.05, "moons": 0.6}[name]
    assert min(np.median(found), np.median(new)) > 0.95


@each_set
def test_the_upper_end_falls_with_the_rank_and_is_one_of_the_whole_kernel(name):
    X, _ = RINGS_AND_MOONS[name](0, 120)
    models = [curved(n_components).fit(X)[-1] for n_components in (10, 40, len(X))]
    assert all(model.lower_bound_ <= model.upper_bound_ <= model.lower_bound_ + model.tol for model in models)
    assert all(more.upper_bound_ <= fewer.upper_bound_ + more.tol for fewer, more in pairwise(models))
    assert models[0].lower_bound_ > models[-1].upper_bound_  # the lower bound only holds for the few features


@each_set
def test_the_bracket_of_a_component_for_each_point_is_that_of_the_kernel_matrix(name):
    X, _ = RINGS_AND_MOONS[name](0, 120)
    model = curved(len(X)).fit(X)[-1]
    Z = StandardScaler().fit_transform(X)
    K = np.exp(-8.0 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2))
    eigenvalues, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    alone = dc.low_rank(root - root.mean(axis=0), penalty=dc.Penalty(ridge=0.1), tol=1e-4)
    assert max(alone.lower, model.lower_bound_) <= min(alone.upper, model.upper_bound_)
