"""Scores, and several labels at once, count a point of weight two twice."""

import numpy as np
import pytest

import diffrac_cvx as dc

X = dc.datasets.make_planted(40, 4, noise=0.3, rng=0).X
COUNTS = np.random.default_rng(0).integers(0, 4, len(X))
REPEATED = np.repeat(X, COUNTS, axis=0)


@pytest.mark.parametrize(
    "model",
    [dc.DiffracClustering(), dc.DiffracClustering(n_clusters=3, random_state=0), dc.MultiLabelDiffrac(n_labels=2)],
    ids=["two", "three", "labels"],
)
def test_the_score_with_weights_is_that_of_repeated_points(model):
    model.set_params(random_state=0).fit(X)
    assert model.score(X, sample_weight=COUNTS) == pytest.approx(model.score(REPEATED), abs=1e-9)
    assert model.score(X, sample_weight=np.full(len(X), 3.0)) == pytest.approx(model.score(X), abs=1e-12)
    with pytest.raises(dc.DataError, match="sample_weight"):
        model.score(X, sample_weight=COUNTS[1:])


@pytest.mark.parametrize(("solver", "tol"), [("low_rank", 1e-3), ("fista", 1e-6)])
def test_labels_of_weighted_points_are_those_of_repeated_points(solver, tol):
    models = [dc.MultiLabelDiffrac(n_labels=2, solver=solver, tol=tol, ridge=0.1, random_state=0) for _ in range(2)]
    weighted, repeated = models[0].fit(X, sample_weight=COUNTS), models[1].fit(REPEATED)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-3)
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-3)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-2)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, COUNTS, axis=0), repeated.labels_)
    assert len(weighted.labels_) == len(X)
