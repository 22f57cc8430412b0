"""User tables: what is read, and the errors of unreadable ones."""

import pickle

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.datasets.tables import read_table

TEXT = "height,weight,species\n1.5,20,cat\n1.7,25,dog\n9.1,80,cat\n"


def written(folder, content, name="t.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_features_labels_and_names_come_apart(tmp_path):
    table = read_table(written(tmp_path, TEXT), "species")
    np.testing.assert_array_equal(table.X, [[1.5, 20], [1.7, 25], [9.1, 80]])
    assert table.names == ("height", "weight")
    assert table.classes == ("cat", "dog")
    np.testing.assert_array_equal(table.y, [-1, 1, -1])
    three = read_table(written(tmp_path, "a,c\n1,x\n2,y\n3,z\n"), "c")
    assert three.classes == ("x", "y", "z")
    assert three.y is None


def test_text_in_a_feature_names_column_row_and_both_remedies(tmp_path):
    with pytest.raises(
        dc.DataError, match=r"'species' contains text: 'cat' in row 0 .*and 2 more.*the label.*drop"
    ) as error:
        read_table(written(tmp_path, TEXT))
    for raised in (error.value, pickle.loads(pickle.dumps(error.value))):  # as received by another process
        assert (raised.column, raised.row) == ("species", 0)
        assert raised.columns == (("species", "label"),)
        assert str(raised) == str(error.value)
    with pytest.raises(dc.DataError, match="column 'b' contains text among numbers: 'oops' in row 1"):
        read_table(written(tmp_path, "a,b\n1,2\n3,oops\n4,5\n"))


MISSING = "a,b,y\n1,2,u\n3,?,v\n5,NA,u\n7,8,\n"


def test_missing_values_are_counted_by_column_with_the_remedies(tmp_path):
    counts = (
        r"3 of 4 rows: column 'b' \(2\), the label \(1\); .* row 1 of the data .*, column 'b'\. Drop these rows, or"
    )
    with pytest.raises(dc.DataError, match=counts) as error:
        read_table(written(tmp_path, MISSING), "y")
    assert (error.value.column, error.value.row, error.value.remedies) == ("b", 1, ("missing",))


@pytest.mark.parametrize("text", [TEXT, MISSING, "id,a\n7,1\n8,2.5\n9,1\n", "a,b\n1,inf\n2,3\n", "a\n?\nNA\n"])
def test_a_message_names_no_option_of_the_command_line(tmp_path, text):
    path = written(tmp_path, text)
    for missing in ("error", "mean"):
        try:
            message = " ".join(read_table(path, missing=missing).notes)
        except dc.DataError as error:
            message = str(error)
        assert message
        assert "--" not in message


@pytest.mark.parametrize("scaling", ["none", "standardize", "min-max"])
def test_features_are_scaled_as_those_of_a_data_set(tmp_path, scaling):
    X, _ = dc.datasets.load("heart")
    np.savez(tmp_path / "t.npz", X=X)
    scaled = dc.datasets.load("heart", scaling=scaling)[0]
    np.testing.assert_allclose(read_table(tmp_path / "t.npz", scaling=scaling).X, scaled, atol=1e-14)


def test_rows_with_missing_values_are_dropped_or_filled_with_means_but_labels_never(tmp_path):
    path = written(tmp_path, MISSING + "9,1,v\n")
    table = read_table(path, "y", missing="drop")
    np.testing.assert_array_equal(table.rows, [0, 4])
    np.testing.assert_array_equal(table.X, [[1, 2], [9, 1]])
    assert "3 of 5 rows" in table.notes[0]
    table = read_table(path, "y", missing="mean")
    np.testing.assert_array_equal(table.rows, [0, 1, 2, 4])
    np.testing.assert_array_equal(table.X[:, 1], [2, 1.5, 1.5, 1])


@pytest.mark.parametrize("name", ["t.npz", "t.parquet"])
def test_other_formats_give_the_same_table(tmp_path, name):
    X, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 1, 0])
    if name == "t.npz":
        np.savez(tmp_path / name, X=X, y=y)
    else:
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_parquet(tmp_path / name)
    table = read_table(tmp_path / name, "y")
    assert name != "t.npz" or read_table(tmp_path / name).classes == ("0", "1")  # detected automatically
    np.testing.assert_array_equal(table.X, X)
    assert table.classes == ("0", "1")
    np.testing.assert_array_equal(table.y, [-1, 1, 1, -1])


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "t.csv", "is empty"),
        ("a,b\n1,2\n1,2,3\n", "t.csv", "cannot be read"),
        ("1 2", "t.xls", "'.xls'"),
        ("1 2", "t.xlsx", "cannot be read"),
        (b"garbage", "t.npz", "cannot be read"),
        ("a,b\n1,2\n", "t.csv", "one row is left"),
    ],
)
def test_what_is_no_table_is_said_to_be_none(tmp_path, content, name, message):
    with pytest.raises(dc.DataError, match=message):
        read_table(written(tmp_path, content, name))


def test_a_missing_file_and_unknown_columns_are_named(tmp_path):
    with pytest.raises(dc.DataError, match="is not a file"):
        read_table(tmp_path / "nowhere.csv")
    with pytest.raises(dc.DataError, match=r"no column 'x'; the columns are height, weight, species"):
        read_table(written(tmp_path, TEXT), "x")
    with pytest.raises(dc.DataError, match="no column 'x' to drop"):
        read_table(written(tmp_path, TEXT), "species", drop=["x"])
