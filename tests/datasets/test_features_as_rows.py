"""Tables whose rows are features: detection, note and transposition; selection of features by variance."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import diffrac_cvx as dc
from diffrac_cvx.datasets.tables import read_table

RNG = np.random.default_rng(0)
POINTS, GENES = 20, 120
X = RNG.normal(np.arange(GENES) % 7, 1.0 + np.arange(GENES) % 3, (POINTS, GENES)).round(3)
NAMES = [f"gene {j}" for j in range(GENES)]
KINDS = ["EWS", "BL", "NB", "RMS"] * 5
SAMPLES = [f"GSM{100 + i}" for i in range(POINTS)]


def genes_as_rows(columns, names=NAMES, title="gene"):
    frame = pd.DataFrame(X.T, columns=columns)
    frame.insert(0, title, names)
    return frame


def as_golub():
    """Two text columns, and a column of calls next to each numbered sample."""
    calls = [pd.Series(["A", "P", "M"] * (GENES // 3), name="call")] * POINTS
    samples = [pd.Series(X[i], name=str(i + 1)) for i in range(POINTS)]
    pairs = [column for pair in zip(samples, calls, strict=True) for column in pair]
    names = pd.Series([f"M{j}_at" for j in range(GENES)], name="Gene Accession Number")
    return pd.concat([pd.Series(NAMES, name="Gene Description"), names, *pairs], axis=1)


SIDEWAYS = {
    "samples in numbers": genes_as_rows(SAMPLES),
    "kinds as names": genes_as_rows(KINDS),
    "kinds as names, genes that repeat": genes_as_rows(KINDS, RNG.choice(NAMES, GENES), "symbol"),
    "golub": as_golub(),
}


def read(folder, frame, index=False, **how):
    frame.to_csv(folder / "t.csv", index=index)
    return read_table(folder / "t.csv", **how)


@pytest.mark.parametrize("frame", SIDEWAYS.values(), ids=SIDEWAYS)
def test_features_as_rows_are_said_to_be_such_and_turned_to_the_same_numbers(tmp_path, frame):
    with pytest.raises(dc.DataError, match=r"120 rows look like features and the 20 columns .* like points") as error:
        read(tmp_path, frame)
    assert (error.value.remedies, error.value.columns) == (("transpose",), ())
    table = read(tmp_path, frame, transpose=True)
    np.testing.assert_array_equal(table.X, X)
    assert len(set(table.names)) == GENES
    assert sum("duplicate names" in note for note in table.notes) <= 2
    assert len(table.notes) <= 5


def test_names_of_rows_and_a_row_of_classes_serve_a_turned_table(tmp_path):
    frame = pd.DataFrame(X.T, columns=SAMPLES, index=NAMES)
    table = read(tmp_path, frame, index=True, transpose=True)
    assert table.names == tuple(NAMES)
    assert table.points.tolist() == SAMPLES
    assert any("Transpose the table" in note for note in read(tmp_path, frame, index=True).notes)
    numbered = read(tmp_path, pd.DataFrame(X.T, columns=SAMPLES), index=True, transpose=True)
    frame = genes_as_rows(SAMPLES).astype(object)
    frame.loc[GENES] = ["kind", *KINDS]
    labeled = read(tmp_path, frame, label="kind", transpose=True)
    assert labeled.labels.tolist() == KINDS
    for found in (table, numbered, labeled):
        np.testing.assert_array_equal(found.X, X)


def test_missing_values_of_a_turned_table_are_those_of_its_points(tmp_path):
    frame = genes_as_rows(SAMPLES)
    frame.loc[3, "GSM104"] = np.nan
    table = read(tmp_path, frame, transpose=True, missing="drop")
    assert table.points.tolist() == [name for name in SAMPLES if name != "GSM104"]
    np.testing.assert_array_equal(table.X, np.delete(X, 4, axis=0))


def test_an_array_and_a_parquet_file_are_turned_too(tmp_path):
    np.save(tmp_path / "t.npy", X.T)
    np.testing.assert_array_equal(read_table(tmp_path / "t.npy", transpose=True).X, X)
    names = pd.array([None, *NAMES[1:]], dtype="string")
    genes_as_rows(SAMPLES, names).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", transpose=True).names == ("column 1", *NAMES[1:])


UPRIGHT = {
    "more columns than rows": pd.DataFrame(X, columns=NAMES).assign(kind=KINDS),
    "iris": load_iris(as_frame=True).data.assign(species=["a", "b", "c"] * 50),
    "breast cancer": load_breast_cancer(as_frame=True).frame,
    "numbered questions": pd.DataFrame(X.T, columns=[f"q{i}" for i in range(POINTS)]).assign(kind=["a", "b"] * 60),
    "numbered questions and people": genes_as_rows(SAMPLES, title="patient_id"),
    "few columns": genes_as_rows(SAMPLES)[["gene", *SAMPLES[:4]]],
}


@pytest.mark.parametrize("frame", UPRIGHT.values(), ids=UPRIGHT)
def test_a_table_of_points_as_rows_is_not_said_to_be_sideways(tmp_path, frame):
    text = [name for name in frame.columns if frame[name].dtype.kind not in "iuf"]
    assert not any("transpose" in note for note in read(tmp_path, frame, drop=text).notes)
    if text:
        with pytest.raises(dc.DataError) as error:
            read(tmp_path, frame)
        assert "transpose" not in error.value.remedies


@pytest.mark.parametrize("name", dc.datasets.names())
def test_no_known_data_set_is_said_to_be_sideways(tmp_path, name):
    if not dc.datasets.describe(name).shipped:
        pytest.skip("not shipped")
    A, y = dc.datasets.load(name)
    frame = pd.DataFrame(A, columns=[f"x{j}" for j in range(A.shape[1])]).assign(label=y)
    assert not any("transpose" in note for note in read(tmp_path, frame, label="label").notes)


def test_the_columns_of_largest_variance_are_kept_in_their_order(tmp_path):
    frame = pd.DataFrame(X, columns=NAMES)
    table = read(tmp_path, frame, top_variance=7, scaling="standardize")
    chosen = sorted(np.argsort(-X.var(axis=0))[:7])
    assert table.names == tuple(NAMES[j] for j in chosen)
    np.testing.assert_allclose(table.X * X.std(axis=0)[chosen] + X.mean(axis=0)[chosen], X[:, chosen])
    assert any("7 of 120 features with the largest variance" in note for note in table.notes)
    full = read(tmp_path, frame, top_variance=500)
    assert full.X.shape == X.shape
    assert any("all 120 features were selected" in note for note in full.notes)


@pytest.mark.parametrize("count", [0, -3, 1.5])
def test_no_features_are_too_few_to_keep(tmp_path, count):
    with pytest.raises(dc.ParameterError, match="top_variance"):
        read(tmp_path, pd.DataFrame(X), top_variance=count)
