"""The script that makes the shipped data again: its sources, its readers, its files."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.datasets.catalogue import SETS
from diffrac_cvx.datasets.files import content
from experiments import shipped_data


def test_every_shipped_set_has_a_source_and_nothing_else_has():
    assert set(shipped_data.SOURCES) == {name for name, record in SETS.items() if record.shipped}


def test_heart_is_unscaled_to_the_numbers_of_the_uci_table():
    first = b"+1 1:0.708333 2:1 3:1 4:-0.320755 5:-0.105023 6:-1 7:1 8:-0.419847 9:-1 10:-0.225806 12:1 13:-1 \n"
    table = shipped_data.heart(first)
    assert table.iloc[0].tolist() == [70, 1, 4, 130, 322, 0, 2, 109, 0, 2.4, 2, 3, 3, 1]
    X, y = dc.datasets.load("heart")
    np.testing.assert_array_equal(X[0], table.iloc[0, :-1])
    assert y[0] == 1


def test_keels_headers_are_passed_over():
    table = shipped_data.liver(b"@relation bupa\n@data\n85.0, 92.0, 45.0, 27.0, 31.0, 0.5, 1\n")
    assert table.iloc[0].tolist() == [85, 92, 45, 27, 31, 0.5, 1]


def test_the_first_column_of_the_adult_table_becomes_the_last():
    table = shipped_data.adult(b"0,1,2\n-1,0.0,1.0\n1,1.0,1.0\n")
    assert table.columns.tolist() == ["x1", "x2", "label"]
    assert table["label"].tolist() == [-1, 1]


@pytest.mark.parametrize("name", ["liver_disorders", "yeast"])
def test_what_is_written_from_a_shipped_table_is_that_file_again(name):
    record, packed = SETS[name], content(SETS[name])
    if record.file.endswith(".gz"):
        made = shipped_data.csv_gz(pd.read_csv(io.BytesIO(gzip.decompress(packed))))
    else:
        with np.load(io.BytesIO(packed)) as archive:
            features = pd.DataFrame(archive["X"], columns=archive["feature_names"])
            made = shipped_data.npz(features.join(pd.DataFrame(archive["Y"], columns=archive["label_names"])))
    assert shipped_data.unpacked(made, record.file) == shipped_data.unpacked(packed, record.file)


def test_the_same_table_gives_the_same_bytes():
    table = pd.DataFrame({"a": [1.5, 2.0], "Class1": [0, 1]})
    assert shipped_data.csv_gz(table) == shipped_data.csv_gz(table.copy())
    assert shipped_data.npz(table) == shipped_data.npz(table.copy())


def test_without_the_package_and_its_client_one_line_says_what_to_put_where(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert shipped_data.main(["--packages", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "put the file of liblinear-tools into" in message
