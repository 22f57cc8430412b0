"""A user's own table: what is read, and what is said when it cannot be."""

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


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_the_separator_is_found(tmp_path, separator):
    table = read_table(written(tmp_path, TEXT.replace(",", separator)), "species")
    assert table.X.shape == (3, 2)


@pytest.mark.parametrize("text", ["1,2\n3,4\n5,7\n", "1,2,a\n3,4,b\n5,7,a\n"])
def test_a_file_without_a_header_loses_no_row(tmp_path, text):
    table = read_table(written(tmp_path, text), "x3" if "a" in text else None)
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4], [5, 7]])
    assert table.names == ("x1", "x2")


def test_numeric_column_names_above_mixed_columns_are_a_header(tmp_path):
    table = read_table(written(tmp_path, "2019,2020,kind\n1,2,3\n4,5,6\n"))
    assert table.names == ("2019", "2020", "kind")


def test_text_in_a_feature_names_column_row_and_both_remedies(tmp_path):
    with pytest.raises(
        dc.DataError, match=r"'species' holds text, 'cat' in row 0 .*and 2 more.*the label.*drop"
    ) as error:
        read_table(written(tmp_path, TEXT))
    assert (error.value.column, error.value.row) == ("species", 0)
    assert error.value.columns == (("species", "label"),)


def test_a_bad_value_among_numbers_is_named(tmp_path):
    with pytest.raises(dc.DataError, match="column 'b' holds text among numbers, 'oops' in row 1"):
        read_table(written(tmp_path, "a,b\n1,2\n3,oops\n4,5\n"))


MISSING = "a,b,y\n1,2,u\n3,?,v\n5,NA,u\n7,8,\n"


def test_missing_values_are_counted_by_column_with_the_remedies(tmp_path):
    counts = r"3 of 4 rows: column 'b' \(2\), the label \(1\); .* row 1 of the data .*, column 'b': drop these rows or"
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


def test_an_error_keeps_its_fields_in_another_process(tmp_path):
    with pytest.raises(dc.DataError) as error:
        read_table(written(tmp_path, TEXT))
    same = pickle.loads(pickle.dumps(error.value))
    assert (str(same), same.column, same.row) == (str(error.value), "species", 0)


@pytest.mark.parametrize("scaling", ["none", "standardise", "min-max"])
def test_features_are_scaled_as_those_of_a_data_set(tmp_path, scaling):
    X, _ = dc.datasets.load("heart")
    np.savez(tmp_path / "t.npz", X=X)
    scaled = dc.datasets.load("heart", scaling=scaling)[0]
    np.testing.assert_allclose(read_table(tmp_path / "t.npz", scaling=scaling).X, scaled, atol=1e-14)


def test_rows_with_missing_values_are_dropped_when_asked(tmp_path):
    text = MISSING + "9,1,v\n"
    table = read_table(written(tmp_path, text), "y", missing="drop")
    np.testing.assert_array_equal(table.rows, [0, 4])
    np.testing.assert_array_equal(table.X, [[1, 2], [9, 1]])
    assert "3 of 5 rows" in table.notes[0]


def test_means_take_the_place_of_missing_values_but_never_of_labels(tmp_path):
    table = read_table(written(tmp_path, MISSING), "y", missing="mean")
    np.testing.assert_array_equal(table.rows, [0, 1, 2])
    np.testing.assert_array_equal(table.X[:, 1], [2, 2, 2])


@pytest.mark.parametrize("name", ["t.npz", "t.parquet"])
def test_other_formats_give_the_same_table(tmp_path, name):
    X, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 1, 0])
    if name == "t.npz":
        np.savez(tmp_path / name, X=X, y=y)
    else:
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_parquet(tmp_path / name)
    table = read_table(tmp_path / name, "y")
    np.testing.assert_array_equal(table.X, X)
    assert table.classes == ("0", "1")
    np.testing.assert_array_equal(table.y, [-1, 1, 1, -1])


def test_labels_of_an_archive_are_found_by_themselves(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(3), y=[1, 2, 1])
    assert read_table(tmp_path / "t.npz").classes == ("1", "2")


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "t.csv", "is empty"),
        ("a,b\n1,2\n1,2,3\n", "t.csv", "cannot be read"),
        ("1 2", "t.xls", "'.xls'"),
        ("1 2", "t.xlsx", "cannot be read"),
        (b"garbage", "t.npz", "cannot be read"),
        ("a,b\n1,inf\n2,3\n", "t.csv", "'b' is infinite in row 0"),
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


def test_three_classes_are_no_signs(tmp_path):
    table = read_table(written(tmp_path, "a,c\n1,x\n2,y\n3,z\n"), "c")
    assert table.classes == ("x", "y", "z")
    assert table.y is None


def test_a_column_that_numbers_the_rows_is_noted_and_others_are_not(tmp_path):
    path = written(tmp_path, "id,a\n7,1\n8,2.5\n9,1\n")
    (note,) = read_table(path).notes
    assert "'id' numbers the rows" in note
    assert read_table(path, drop=["id"]).notes == ()
