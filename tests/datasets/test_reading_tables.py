"""Tables as written by programs: headers of numbers, decimal commas, encodings, separators, Excel, categories."""

import sys
import time
import zipfile
from io import BytesIO

import numpy as np
import openpyxl
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.datasets.tables import read_table, sheet_extent
from diffrac_cvx.datasets.text_tables import find_header, name_columns

IRIS = np.round(np.random.default_rng(0).normal([5.8, 3.0, 3.7, 1.2], [0.8, 0.4, 1.7, 0.7], (150, 4)), 1)
COUNTS = np.random.default_rng(1).integers(0, 17, (60, 5))


def read(folder, content, label=None, name="t.csv", **how):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, label, **how)


def said(table, words):
    return any(words in note for note in table.notes)


# Headers


@pytest.mark.parametrize("values", [IRIS, COUNTS], ids=["decimals", "whole numbers"])
@pytest.mark.parametrize("index", [False, True])
def test_the_names_that_pandas_gives_by_default_are_no_point(tmp_path, values, index):
    table = read(tmp_path, pd.DataFrame(values).to_csv(index=index))
    np.testing.assert_array_equal(table.X, values)
    assert table.names == tuple(map(str, range(values.shape[1])))
    if index:
        assert said(table, "the first column has no name")
    assert said(table, "read as column names")


@pytest.mark.parametrize("names", ["2019,2020,2021,2022", "10,30,20,40", '"0","1","2","3"'])
def test_years_and_other_whole_numbers_above_decimals_are_names(tmp_path, names):
    table = read(tmp_path, names + "\n" + pd.DataFrame(IRIS).to_csv(index=False, header=False))
    np.testing.assert_array_equal(table.X, IRIS)


def test_numbers_with_a_name_above_text_are_names(tmp_path):
    frame = pd.DataFrame(COUNTS[:, :2]).assign(kind=["a", "b", "c"] * 20)
    frame.columns = [7, 3, "kind"]
    table = read(tmp_path, frame.to_csv(index=False), "kind")
    assert table.names == ("7", "3")
    np.testing.assert_array_equal(table.X, COUNTS[:, :2])


@pytest.mark.parametrize("values", [IRIS, COUNTS], ids=["decimals", "whole numbers"])
def test_a_table_without_a_header_loses_no_point_and_says_so(tmp_path, values):
    table = read(tmp_path, pd.DataFrame(values).to_csv(index=False, header=False))
    np.testing.assert_array_equal(table.X, values)
    assert said(table, "columns were named x1, x2, ...")


def test_points_that_all_count_up_are_points():
    rows = [[str(i + j) for j in range(4)] for i in range(30)]
    assert not find_header(rows)[0]


def test_one_text_of_a_class_below_makes_the_first_line_a_point(tmp_path):
    frame = pd.DataFrame(COUNTS[:, :3]).assign(kind=["a", "b"] * 30)
    table = read(tmp_path, frame.to_csv(index=False, header=False), "x4")
    assert len(table.X) == 60


@pytest.mark.parametrize(("header", "n"), [(True, 59), (False, 60)])
def test_what_is_said_of_the_header_is_done(tmp_path, header, n):
    text = pd.DataFrame(COUNTS).to_csv(index=False, header=False)
    assert len(read(tmp_path, text.replace("\n", "\n", 1), header=header).X) == n


def test_names_after_a_number_sign_are_names(tmp_path):
    np.savetxt(tmp_path / "t.txt", IRIS, header="written by numpy\na b c d")
    table = read_table(tmp_path / "t.txt")
    np.testing.assert_array_equal(table.X, IRIS)
    assert table.names == ("a", "b", "c", "d")


def test_row_names_of_r_are_left_out_and_equal_names_are_told_apart(tmp_path):
    text = '"a" "b" "a"\n' + "".join(f'"row {i}" {i * i} {i % 7} {i % 5}\n' for i in range(20))
    table = read(tmp_path, text, name="t.txt")
    assert table.names == ("a", "b", "a (2)")
    assert table.X.shape == (20, 3)
    assert said(table, "two columns are named 'a'")


# Numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b\n1,5;2\n2,25;3\n", [[1.5, 2], [2.25, 3]]),
        ("a;b\n1.234,5;1.000\n2,25;2.500\n", [[1234.5, 1000], [2.25, 2500]]),
        ('a,b\n"1,234.5","1,000"\n2.25,"2,500"\n', [[1234.5, 1000], [2.25, 2500]]),
        ('a,b\n"1,5",2\n"2,25",3\n', [[1.5, 2], [2.25, 3]]),
        ("a;b\n1 234,5;1\n2 500,25;2\n", [[1234.5, 1], [2500.25, 2]]),
        ("a;b\n1'234.5;1\n2'500.25;2\n", [[1234.5, 1], [2500.25, 2]]),
        ("a\tb\n1\u202f234\t\u22121.5\n2\u202f500\t2\n", [[1234, -1.5], [2500, 2]]),
        ("a;b\n1,5e-3;0\n2,5E2;1\n", [[0.0015, 0], [250, 1]]),
    ],
)
def test_decimal_commas_and_marks_between_thousands_are_read(tmp_path, text, expected):
    np.testing.assert_array_equal(read(tmp_path, text).X, expected)


@pytest.mark.parametrize(("decimal", "expected"), [(None, 1.234), (",", 1.234), (".", 1234)])
def test_a_mark_that_may_be_either_is_said_and_can_be_named(tmp_path, decimal, expected):
    table = read(tmp_path, "a;b\n1,234;1\n2,345;3\n", decimal=decimal)
    assert table.X[0, 0] == expected
    assert said(table, "Specify the decimal mark") == (decimal is None)


def test_a_number_of_another_decimal_mark_is_text_and_never_another_number(tmp_path):
    with pytest.raises(dc.DataError, match=r"'12\.5' in row 1"):
        read(tmp_path, "a;b\n1,5;1\n12.5;2\n3,25;4\n")


# Encodings and separators


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"])
def test_accents_are_read_in_any_encoding_and_guesses_are_said(tmp_path, encoding):
    text = "größe,länge\n" + "".join(f"{i * i % 7},{i * i}.5\n" for i in range(20))
    table = read(tmp_path, text.encode(encoding))
    assert table.names == ("größe", "länge")
    assert bool(table.notes) == (encoding in ("cp1252", "latin-1"))


def test_an_encoding_that_was_named_is_kept_to(tmp_path):
    text = "größe\n1\n2\n".encode("cp1252")
    assert read(tmp_path, text, encoding="cp1252").names == ("größe",)
    with pytest.raises(dc.DataError, match="encoding 'utf-8'"):
        read(tmp_path, text, encoding="utf-8")


@pytest.mark.parametrize("mark", [",", ";", "\t", "|", " "])
def test_a_declared_separator_and_one_that_is_found_give_the_same(tmp_path, mark):
    text = "a,b,c\n1,2,3\n4,5,7\n8,1,2\n".replace(",", mark)
    for content in (text, f"sep={mark}\n{text}", f"\n\n{text}"):
        table = read(tmp_path, content)
        assert table.names == ("a", "b", "c")
        np.testing.assert_array_equal(table.X, [[1, 2, 3], [4, 5, 7], [8, 1, 2]])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b,\n1,2,\n3,5,\n", ("a", "b")),
        ("a,b\n1,2,\n3,5,\n", ("a", "b")),
        ('a;"b, c, d"\n1;2\n3;4\n5;7\n', ("a", "b, c, d")),
    ],
)
def test_a_separator_in_quotes_or_at_the_end_of_each_line_separates_nothing(tmp_path, text, names):
    assert read(tmp_path, text).names == names


# Columns that hold no numbers

MIXED = "name,city,born,size,weight\n" + "".join(
    f"p{i},{('Oslo', 'Rome', 'Bonn')[i % 3]},2020-01-{i + 1:02d},{'LS'[i % 2]},{i * 37 % 11}\n" for i in range(24)
)


def test_all_columns_that_hold_no_numbers_are_named_at_once(tmp_path):
    with pytest.raises(dc.DataError, match="4 columns are not numeric") as error:
        read(tmp_path, MIXED)
    assert dict(error.value.columns) == dict.fromkeys(["name", "city", "born", "size"], "drop")
    assert all(words in str(error.value) for words in ("'city' (categories: 'Oslo'", "'born' (dates: '2020-01-01'"))


@pytest.mark.parametrize("one_hot", [["city", "size"], "all"])
def test_categories_become_columns_on_request(tmp_path, one_hot):
    table = read(tmp_path, MIXED, drop=["name", "born"], one_hot=one_hot)
    assert table.names == ("city=Bonn", "city=Oslo", "city=Rome", "size=S", "weight")
    np.testing.assert_array_equal(table.X[:4, :4], [[0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 1]])


def test_a_missing_category_is_a_missing_value(tmp_path):
    table = read(tmp_path, "a,b\nx,1\ny,2\n,3\nx,5\n", one_hot=["a"], missing="drop")
    np.testing.assert_array_equal(table.rows, [0, 1, 3])
    np.testing.assert_array_equal(table.X, [[0, 1], [1, 2], [0, 5]])


def test_numbers_may_be_categories_and_text_that_never_repeats_may_not(tmp_path):
    assert read(tmp_path, "k,b\n1,1\n2,2\n10,3\n1,5\n", one_hot=["k"]).names == ("k=1", "k=2", "k=10", "b")
    with pytest.raises(dc.DataError, match="one-hot encoding needs 2 to 50"):
        read(tmp_path, "name,b\n" + "".join(f"p{i},{i % 7}\n" for i in range(60)), one_hot=["name"])


def test_all_columns_that_are_unknown_infinite_or_empty_are_named(tmp_path):
    with pytest.raises(dc.DataError, match="no columns 'x', 'y' to drop"):
        read(tmp_path, "a,b\n1,2\n2,3\n", drop=["x", "a", "y"])
    with pytest.raises(dc.DataError, match=r"'a' is infinite in row 0.*'b'"):
        read(tmp_path, "a,b,c\ninf,2,1\n2,-inf,2\n")
    with pytest.raises(dc.DataError, match="columns 'a', 'c' have no value") as error:
        read(tmp_path, "a,b,c\n?,1,\n?,2,\n", missing="mean")
    assert error.value.columns == (("a", "drop"), ("c", "drop"))


# Excel


def excel(path, **sheets):
    with pd.ExcelWriter(path) as book:
        for name, frame in sheets.items():
            frame.to_excel(book, sheet_name=name, index=False)


def test_an_excel_file_gives_the_table_of_its_sheet(tmp_path):
    frame = pd.DataFrame(IRIS, columns=["a", "b", "c", "d"]).assign(kind=["x", "y"] * 75)
    excel(tmp_path / "t.xlsx", first=frame, second=pd.DataFrame(COUNTS))
    table = read_table(tmp_path / "t.xlsx", "kind")
    np.testing.assert_array_equal(table.X, IRIS)
    assert table.classes == ("x", "y")
    assert said(table, "2 sheets, and 'first' was read")
    other = read_table(tmp_path / "t.xlsx", sheet="second")
    np.testing.assert_array_equal(other.X, COUNTS)
    assert other.names == ("0", "1", "2", "3", "4")
    with pytest.raises(dc.DataError, match="no sheet 'third'; the sheets are first, second"):
        read_table(tmp_path / "t.xlsx", sheet="third")


def test_dates_of_excel_are_named_as_dates(tmp_path):
    excel(
        tmp_path / "t.xlsx", s=pd.DataFrame({"day": pd.date_range("2020-01-01", periods=9), "b": np.arange(9.0) ** 2})
    )
    with pytest.raises(dc.DataError, match="column 'day' contains dates"):
        read_table(tmp_path / "t.xlsx")


def test_an_excel_file_that_unpacks_to_no_table_is_refused_before_it_is_unpacked(tmp_path):
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 2**27)
    with pytest.raises(dc.DataError, match=r"to 134217728 bytes: implausible for a table"):
        read(tmp_path, packed.getvalue(), name="t.xlsx")


def test_an_excel_file_larger_than_memory_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    excel(tmp_path / "t.xlsx", s=pd.DataFrame(IRIS))
    monkeypatch.setattr("diffrac_cvx.machine.memory.available_memory", lambda: 1e5)
    with pytest.raises(dc.ResourceError, match=r"t\.xlsx, unpacked, needs about"):
        read_table(tmp_path / "t.xlsx")


def test_a_cell_in_the_far_corner_of_a_sheet_is_refused(tmp_path):
    book = openpyxl.Workbook()
    book.active.append([1, 2])
    book.active["XFD1048576"] = 1
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(dc.ResourceError, match="1048576 rows and 16384 columns up to its last cell"):
        read_table(tmp_path / "t.xlsx")


@pytest.mark.parametrize(
    ("cell", "extent"), [("A1", (1, 1)), ("Z9", (9, 26)), ("AA10", (10, 27)), ("XFD2", (2, 16384))]
)
def test_the_extent_of_a_sheet_is_that_of_its_last_cell(cell, extent):
    text = f'<row r="1048576"><c s="1" r="{cell}" t="n"><v>1</v></c></row>'.encode()
    assert sheet_extent(text) == extent


def test_excel_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(dc.DataError, match=r"pip install 'diffrac-cvx\[excel\]'"):
        read(tmp_path, b"PK", name="t.xlsx")


# Many columns


def text_of_categories(width, names=None):
    kinds = np.array(["red", "green", "blue"])[np.random.default_rng(0).integers(0, 3, (20, width))]
    return "\n".join(map(",".join, [names or [f"name{j}" for j in range(width)], *kinds]))


def test_thousands_of_columns_of_text_are_named_soon(tmp_path):
    start = time.perf_counter()
    with pytest.raises(dc.DataError, match=r"1500 columns are not numeric.*and 1488 more"):
        read(tmp_path, text_of_categories(1500))
    with pytest.raises(dc.DataError, match=r"1500 columns are not numeric: 'a' .*'a \(2\)'"):
        read(tmp_path, text_of_categories(1500, ["a"] * 1500))
    assert time.perf_counter() - start < 30.0  # the names alone took minutes


def test_thousands_of_columns_of_categories_become_columns_in_seconds(tmp_path):
    start = time.perf_counter()
    table = read(tmp_path, text_of_categories(1500), one_hot="all")
    assert time.perf_counter() - start < 15.0
    assert table.X.shape[0] == 20
    assert set(np.unique(table.X)) == {0.0, 1.0}
    assert said(table, f"1500 categorical columns became {table.X.shape[1]} binary columns")


def test_more_columns_of_0_and_1_than_can_be_clustered_on_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("diffrac_cvx.datasets.columns.MAX_ONE_HOT", 100)
    with pytest.raises(dc.DataError, match=r"40 categorical columns would become \d+ binary columns.* at most 100"):
        read(tmp_path, text_of_categories(40), one_hot="all")


def test_names_that_are_used_twice_get_numbers_that_no_other_has():
    names, notes = name_columns(["a", "a", "", "a (2)", "a", "column 3"])
    assert names == ["a", "a (3)", "column 3", "a (2)", "a (4)", "column 3 (2)"]
    assert len(notes) == 3


# What is wrong with a text, and what was assumed of it


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xef\xbb\xbfa,b\n1,\xff\n", "starts like utf-8-sig text but cannot be decoded"),
        ("# only a remark\n\n", "has no rows"),
        ("a,b,c\n1,2\n3,4\n", r"the rows have fewer values \(2\) than the header has names \(3\)"),
        ("a,b\n1,2,3\n1,4,5\n", "the rows have more values.* than the header has names"),
        ("a\n1,5\n2,5\n", "one name but the rows have two values"),
        ("a,b\n", "no row"),
    ],
)
def test_what_is_wrong_with_a_text_is_said(tmp_path, content, words):
    with pytest.raises(dc.DataError, match=words):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "names", "words"),
    [
        ("# made by hand\n# again\n1,2.5\n3,4.5\n6,1\n", ("x1", "x2"), "starting with #) were skipped: 2"),
        ("# height, weight\n1,2.5\n3,4.5\n6,1\n", ("height", "weight"), "were read from line 1, which starts with #"),
        ('a,b\n"1,234",2\n"2,345",3\n', ("a", "b"), "with a thousands comma"),
        ("a;b\n1,234;2\n2,345;3\n", ("a", "b"), "with a decimal comma"),
        (b"a,b\xe9\n1,2\n3,4\n", ("a", "b\xe9"), "was read as cp1252"),
        (b"a,b\x81\n1,2\n3,4\n", ("a", "b\x81"), "was read as latin-1"),
        (b"a,b\n1,2\n3,4\n5,7\n".decode().encode("utf-16-le"), ("a", "b"), ""),
        ('"7","3"\n4,2\n6,1\n', ("7", "3"), ""),
    ],
)
def test_what_is_assumed_of_a_text_is_said(tmp_path, content, names, words):
    table = read(tmp_path, content)
    assert table.names == names
    assert not words or said(table, words)
