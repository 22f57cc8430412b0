"""Saved models: loading returns the fitted functions, and other files raise errors."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
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


def parts_of(path):
    """The arrays of a file, and its record."""
    with np.load(path) as arrays:
        return {"coef": arrays["coef"], "intercept": arrays["intercept"]}, json.loads(str(arrays["record"]))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.npz"
    dc.save_model(dc.DiffracClustering(n_clusters=3, random_state=0).fit(FRAME), path)
    return path


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_read_back_agrees_with_the_estimator_in_every_bit(name, tmp_path):
    model, path = fit(name, FRAME), tmp_path / "model.npz"
    dc.save_model(model, path)
    loaded = dc.load_model(path)
    assert type(loaded) is type(model)
    new = FRAME[::-1] * 1.1 + 0.01
    for points in (FRAME, new):
        assert np.array_equal(loaded.decision_function(points), model.decision_function(points))
        assert np.array_equal(loaded.predict(points), model.predict(points))
    assert list(loaded.feature_names_in_) == list(FRAME.columns) == list(loaded.schema_.names)
    assert loaded.lower_bound_ == model.lower_bound_
    assert loaded.diagnostics_ == getattr(model, "diagnostics_", ())


def test_the_names_of_a_frame_are_checked_and_an_array_has_none(tmp_path, saved):
    loaded = dc.load_model(saved)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(FRAME[["b", "a", "ü", "=d"]])
    dc.save_model(dc.DiffracClustering().fit(X), path := tmp_path / "array.npz")
    assert dc.load_model(path).schema_ is None
    assert np.array_equal(dc.load_model(path).predict(X), dc.DiffracClustering().fit_predict(X))
    with pytest.raises(ValueError, match="expecting 4 features"):
        dc.load_model(path).predict(X[:, :3])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (dc.DiffracClustering(), "Fit it first"),
        (StandardScaler().fit(X), "StandardScaler, which cannot be saved"),
        (make_pipeline(StandardScaler(), dc.DiffracClustering()), "Save its last step"),
        (dc.DiffracClustering().fit(X[:, :3]), "table has 4 features, model has 3"),
    ],
)
def test_what_is_no_model_of_the_table_is_refused(model, message, tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    table = dc.datasets.read_table(tmp_path / "t.csv")
    with pytest.raises(dc.ParameterError, match=message):
        dc.save_model(model, tmp_path / "model.npz", table=table)
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, record: arrays.pop("coef"),
        lambda arrays, record: arrays.update(coef=np.ones((3, 5))),
        lambda arrays, record: arrays.update(coef=np.array([None]), intercept=np.array([None])),
        lambda arrays, record: arrays.update(intercept=np.zeros(1)),
        lambda arrays, record: record.update(estimator="Other"),
        lambda arrays, record: record.update(classes_=["x"]),
        lambda arrays, record: record.update(lower_bound_="high"),
        lambda arrays, record: record["schema"].update(names=["a"]),
        lambda arrays, record: record["schema"].pop("names"),
        lambda arrays, record: record.clear(),
    ],
)
def test_a_file_whose_parts_do_not_fit_is_one_error(change, saved):
    arrays, record = parts_of(saved)
    change(arrays, record)
    np.savez(saved, record=json.dumps(record), **arrays)
    with pytest.raises(dc.DataError, match=r"is not a saved model, or is damaged: .*Save the model again") as caught:
        dc.load_model(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", pickle.dumps({}), b"{}", -1, -100, 500, ...])
def test_a_file_that_is_cut_changed_or_of_another_kind_is_one_error(content, saved):
    whole = saved.read_bytes()
    if content is ...:  # one bit of the coefficients
        middle = whole.index(b"coef.npy") + 100
        content = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    saved.write_bytes(whole[:content] if isinstance(content, int) else content)
    with pytest.raises(dc.DataError, match="is not a saved model, or is damaged"):
        dc.load_model(saved)


def test_a_file_that_unpacks_to_more_than_the_limit_is_not_unpacked(saved, monkeypatch):
    monkeypatch.setattr("diffrac_cvx.estimators.persistence.unpacked_limit", lambda: 100)
    with pytest.raises(dc.DataError, match=r"it unpacks to .* bytes, more than the 100 allowed"):
        dc.load_model(saved)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        dc.load_model(tmp_path / "none.npz")
