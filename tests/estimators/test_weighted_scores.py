"""Scores count a point of weight two twice."""

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
