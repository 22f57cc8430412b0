"""Saved models: loading returns the fitted functions, and other files raise errors."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import diffrac_cvx as dc

RNG = np.random.default_rng(3)
CENTERS = np.array([[0.0, 0, 0, 0], [3, 0, 1, 0], [0, 4, 0, 1]])
X = RNG.normal(size=(90, 4)) + CENTERS[np.arange(90) % 3]
FRAME = pd.DataFrame(X, columns=["a", "b", "ü", "=d"])
FEW_LABELS = np.where(np.arange(90) < 30, np.array(["x", "y", "z"])[np.arange(90) % 3], None)
MODELS = {
    "two": dc.DiffracClustering(),
    "sparse": dc.DiffracClustering(lam=0.1, nu=0.7),
    "together": dc.DiffracClustering(n_clusters=3, random_state=0),
    "labels": dc.MultiLabelDiffrac(n_labels=2, random_state=0),
    "one label": dc.MultiLabelDiffrac(n_labels=1, random_state=0),
    "chosen": dc.DiffracClusteringCV(lams=[0.0], ridges=[0.3, 1.0], n_resamples=1),
    "classes": dc.DiffracClassifier(ridge=0.3, labeled_weight=0.0),
}


def fit(name, X):
    return MODELS[name].fit(X, FEW_LABELS) if name == "classes" else MODELS[name].fit(X)


def changed(path, tmp_path, **entries):
    content = json.loads(path.read_text()) | entries
    other = tmp_path / "changed.json"
    other.write_text(json.dumps({key: value for key, value in content.items() if value is not ...}))
    return other


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "score.json"
    dc.save_model(dc.DiffracClustering(n_clusters=3, random_state=0).fit(FRAME), path)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_read_back_agrees_with_the_estimator_in_every_bit(name, tmp_path):
    model, path = fit(name, FRAME), tmp_path / "score.json"
    dc.save_model(model, path)
    score = dc.load_model(path)
    new = FRAME[::-1] * 1.1 + 0.01
    for points in (FRAME, new):
        assert np.array_equal(score.decision_function(points), model.decision_function(points))
        assert np.array_equal(score.predict(points), model.predict(points))
    rows = scipy.sparse.csr_array(new.to_numpy())
    assert np.array_equal(score.predict(rows), score.predict(new))
    assert score.names == tuple(FRAME.columns)
    assert score.bounds["lower_bound"] == model.lower_bound_


def test_columns_of_a_frame_are_found_by_name_and_those_of_an_array_by_place(tmp_path):
    model, path = dc.DiffracClustering().fit(FRAME), tmp_path / "score.json"
    dc.save_model(model, path)
    score = dc.load_model(path)
    mixed = FRAME.assign(more=0.0)[["more", "=d", "ü", "b", "a"]]
    assert np.array_equal(score.predict(mixed), model.labels_)
    assert np.array_equal(score.predict(np.asfortranarray(X)), model.labels_)
    with pytest.raises(dc.DataError, match="no column 'ü'"):
        score.predict(FRAME.drop(columns="ü"))
    with pytest.raises(dc.DataError, match="3 features, but the model has 4"):
        score.predict(X[:, :3])
    with pytest.raises(dc.DataError, match="nan at row 0, column 1"):
        score.predict([[0.0, np.nan, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (dc.DiffracClustering(), "fit it first"),
        (StandardScaler().fit(X), "StandardScaler, which cannot be saved"),
        (make_pipeline(StandardScaler(), dc.DiffracClustering()), "save its last step"),
        (dc.DiffracClustering().fit(X[:, :3]), "table has 4 features, model has 3"),
    ],
)
def test_what_is_no_model_of_the_table_is_refused(model, message, tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    table = dc.datasets.read_table(tmp_path / "t.csv")
    with pytest.raises(dc.ParameterError, match=message):
        dc.save_model(model, tmp_path / "score.json", table=table)
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"form": 1}, "format 1.*this version.*reads format 3"),
        ({"file": "other"}, "is not a saved model"),
        ({"coef": ...}, "has no 'coef'"),
        ({"coef": [[1, 2, 3, 4], [1, 2]]}, "inhomogeneous"),
        ({"coef": [[1, 2, 3, None]]}, "'coef' .*not finite"),
        ({"coef": 3}, "shape"),
        ({"intercept": [0.0]}, "shape"),
        ({"names": ["a"]}, "1 names for 4 coefficients"),
        ({"names": ["a", "b", "c", 4]}, "not a list of texts"),
        ({"categories": {"a": ["x", "x"]}}, "categories"),
        ({"categories": ["a"]}, "damaged"),
        ({"options": {"separator": 3}}, "options"),
        ({"classes": ["x"]}, "classes"),
        ({"bounds": {"lower_bound": "high"}}, "could not convert string to float"),
        ({"diagnostics": "none"}, "diagnostics"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_in_words(entries, message, saved, tmp_path):
    with pytest.raises(dc.DataError, match=message) as caught:
        dc.load_model(changed(saved, tmp_path, **entries))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b"\xff\xfe\x00", pickle.dumps({}), b"[1]", b"NaN", ...])
def test_what_is_no_json_object_is_refused_in_words(content, saved):
    saved.write_bytes(saved.read_bytes()[:500] if content is ... else content)
    with pytest.raises(dc.DataError, match="is not a saved model"):
        dc.load_model(saved)
