"""What every function from data and a seed to two clusters does: the baselines, and the methods of the experiments."""

import numpy as np

from diffrac_cvx.datasets import make_planted


def assert_finds_far_groups(cluster):
    """Check the labels of two far groups, whatever the units and the type of the entries."""
    y = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    X = np.rint(40.0 * y[:, None] + 10.0 * np.random.default_rng(0).standard_normal((40, 6))).astype(int)
    X.setflags(write=False)
    for data in (X, X * [1e4, 1.0, 1e-4, 3.0, -7.0, 1e2] + 5.0):
        np.testing.assert_array_equal(cluster(data, rng=0), y)


def assert_affine_changes_keep_labels(cluster):
    """Check that no affine change of the data, and no column that depends on others, changes the labels."""
    rng = np.random.default_rng(4)
    X = make_planted(60, 4, 4, rng=rng).X
    mixed = X @ rng.standard_normal((4, 4)) * 1e3 + rng.standard_normal(4)
    for data in (mixed, np.column_stack([X, X[:, 0] - 2 * X[:, 1]])):
        np.testing.assert_array_equal(cluster(data, rng=0), cluster(X, rng=0))


def assert_two_clusters_by_data_and_seed(cluster, n, d):
    """Check that noise has two clusters, by the data and the seed alone, and that the first point is at +1."""
    X = np.random.default_rng(2).standard_normal((n, d))
    found = cluster(X, rng=3)
    assert found.shape == (n,)
    assert found[0] == 1.0
    assert set(found) == {-1.0, 1.0}
    np.testing.assert_array_equal(found, cluster(X, rng=np.random.default_rng(3)))
