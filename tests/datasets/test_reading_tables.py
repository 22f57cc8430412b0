"""Rules for reading tables: first line, marks of numbers, missing values, formats, errors and warnings."""

import gzip
import pickle
import sys
import time
from io import BytesIO

import numpy as np
import openpyxl
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.datasets.tables import read_table

RNG = np.random.default_rng(0)
BASE = pd.DataFrame(RNG.normal(10.0, 2.0, (60, 3)).round(2), columns=["a", "b", "c"])
COUNTS = RNG.integers(0, 17, (60, 5))
TEXT = "height,weight,species\n1.5,20,cat\n1.7,25,dog \n9.1,80, cat\n"


def read(content, label=None, name="t.csv", **how):
    content = content.to_csv(index=False) if isinstance(content, pd.DataFrame) else content
    return read_table(content if isinstance(content, bytes) else content.encode(), label, name=name, **how)


def fault(content, label=None, **how):
    with pytest.raises(dc.DataError) as error:
        read(content, label, **how)
    received = pickle.loads(pickle.dumps(error.value))  # as by another process
    assert (str(received), received.columns) == (str(error.value), error.value.columns)
    return error.value


def said(table, words):
    return any(words in note for note in table.notes)


def test_a_line_of_more_characters_than_the_csv_module_reads_is_read():
    numbers = np.arange(20_000) + 0.5
    text = ",".join(f"g{j}" for j in range(20_000)) + "\n" + "\n".join(",".join(map(str, numbers * k)) for k in (1, 2))
    np.testing.assert_array_equal(read_table(text.encode(), name="t.csv").X, [numbers, 2.0 * numbers])
    entry = "words, " * 20_000
    found = read_table(f'a,text,b\n1,"{entry}",2\n3,none,5\n'.encode(), name="t.csv", drop=["text"])
    np.testing.assert_array_equal(found.X, [[1.0, 2.0], [3.0, 5.0]])


def test_features_labels_and_names_come_apart():
    table = read(TEXT, "species")
    np.testing.assert_array_equal(table.X, [[1.5, 20], [1.7, 25], [9.1, 80]])
    assert (table.names, table.classes, table.notes) == (("height", "weight"), ("cat", "dog"), ())
    np.testing.assert_array_equal(table.y, [-1, 1, -1])
    assert read("a,c\n1,x\n4,y\n3,z\n", "c").y is None
    for saved in (TEXT.replace("\n", "\r\n"), TEXT.replace("\n", "\r"), TEXT.rstrip(), TEXT.replace(",", ", ")):
        np.testing.assert_array_equal(read(saved, "species").X, table.X)
    equal = read(TEXT.replace("weight", "height"), "species")
    assert equal.names == ("height", "height (2)")
    assert equal.notes == ("columns with equal names were renamed: 'height (2)'",)


# The first line


@pytest.mark.parametrize(
    ("text", "names", "n"),
    [
        ("name,2010,2011\np,1,2\nq,3,4\n", "name,2010,2011", 2),
        ("name,400,390\np,1,2\nq,3,4\n", "name,400,390", 2),
        ("name,1,0,10\np,1,2,5\nq,3,4,1\n", "x1,x2,x3,x4", 3),
        ("name,1,2.5\np,1,2\nq,3,4\n", "x1,x2,x3", 3),
        ("0,1,2\n5,3,9\n1,4,4\n", "0,1,2", 2),
        ("5,7,9\n5,3,9\n1,4,4\n", "x1,x2,x3", 3),
        ("5,7,9\n5,3,9.5\n1,4,4\n", "5,7,9", 2),
        ("5,7,a\n5,3,b\n1,4,a\n", "x1,x2,x3", 3),
    ],
)
def test_the_first_line_has_the_names_if_its_whole_numbers_increase_or_decrease(text, names, n):
    entries = dict(zip(names.split(","), text.split("\n")[1].split(","), strict=True))
    for how in ({}, {"header": names[0] != "x"}):
        table = read(text, aside=[name for name, entry in entries.items() if entry.isalpha()], **how)
        assert {*table.excluded, *table.names} == {*entries}
        assert len(table.X) == n
        assert said(table, "the first line") == (not how)


@pytest.mark.parametrize("index", [False, True])
def test_the_names_that_pandas_gives_by_default_are_no_point(index):
    for values in (BASE.to_numpy(), COUNTS):
        table = read(pd.DataFrame(values).to_csv(index=index))
        np.testing.assert_array_equal(table.X, values)
        assert table.names == tuple(map(str, range(values.shape[1])))
        assert said(table, "the first column has no name") == index


@pytest.mark.parametrize("title", ["My study 2024\n", "My study 2024,,\nby me,,\n", "My study 2024\n\n", "# by me\n\n"])
def test_lines_above_the_names_are_skipped_with_a_note(title):
    table = read(title + BASE.to_csv(index=False) + ",,\n")
    np.testing.assert_array_equal(table.X, BASE)
    assert table.names == ("a", "b", "c")
    assert said(table, "skipped: ")
    assert said(table, "dropped 1 of 61 rows")


# Separators, encodings and skipped lines


@pytest.mark.parametrize("mark", [",", ";", "\t", "|", " "])
def test_a_declared_separator_and_one_that_is_found_give_the_same(mark):
    text = "a,b,c\n1,2,3\n4,5,7\n8,1,2\n".replace(",", mark)
    for content in (text, f"sep={mark}\n{text}", f"\n\n{text}"):
        table = read(content)
        assert table.names == ("a", "b", "c")
        np.testing.assert_array_equal(table.X, [[1, 2, 3], [4, 5, 7], [8, 1, 2]])


@pytest.mark.parametrize("text", ["a,b,\n1,2,\n3,5,\n", "a,b\n1,2,\n3,5,\n", 'a;"b, c, d"\n1;2\n3;4\n5;7\n'])
def test_a_separator_in_quotes_or_at_the_end_of_each_line_separates_nothing(text):
    assert read(text).X.shape[1] == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
def test_accents_are_read_in_any_encoding_and_guesses_are_said(encoding):
    text = "größe,länge\n" + "".join(f"{i * i % 7},{i * i % 13}.5\n" for i in range(20))
    table = read(text.encode(encoding))
    assert table.names == ("größe", "länge")
    assert bool(table.notes) == (encoding in ("cp1252", "latin-1"))
    assert read(text.encode("utf-16-le"), encoding="utf-16-le").names == table.names
    assert "Specify its encoding, such as utf-16-le" in str(fault(text.encode("utf-16-le")))
    assert "encoding 'utf-8'" in str(fault("größe\n1\n".encode("cp1252"), encoding="utf-8"))


def test_lines_that_are_skipped_keep_the_numbers_of_the_others():
    text = "a,b\nm,kg\n1,2\n3,4 # first\n5,7\nSource: me\n"
    table = read(text, skip_rows=[1], skip_footer=1, comment="#")
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4], [5, 7]])
    assert "line 5 has 3 values instead of 2" in str(fault(text.replace("5,7", "5,7,8"), skip_rows=[1], comment="#"))
    table = read("x\ny\n" + text, skip_rows=2, na_values=["m", "kg"], skip_footer=1, comment="#", missing="drop")
    assert table.X.size == 6


# Numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b\n1,5;2\n2,25;3\n", [[1.5, 2], [2.25, 3]]),
        ("a;b\n1.234,5;1.000\n2,25;2.500\n", [[1234.5, 1000], [2.25, 2500]]),
        ('a,b\n"1,234.5","1,000"\n2.25,"2,500"\n', [[1234.5, 1000], [2.25, 2500]]),
        ('a,b\n"1,5",2.5\n"2,25",3.5\n', [[1.5, 2.5], [2.25, 3.5]]),
        ("a;b\n1 234,5;1\n2 500,25;2\n", [[1234.5, 1], [2500.25, 2]]),
        ("a;b\n1'234.5;1\n2'500.25;2\n", [[1234.5, 1], [2500.25, 2]]),
        ("a\tb\n1\u202f234\t\u22121.5\n2\u202f500\t2\n", [[1234, -1.5], [2500, 2]]),
        ("a;b\n1,5e-3;0\n2,5E2;1\n", [[0.0015, 0], [250, 1]]),
    ],
)
def test_each_column_has_its_own_marks(text, expected):
    np.testing.assert_array_equal(read(text).X, expected)


@pytest.mark.parametrize(
    ("how", "expected"), [({}, 1.234), ({"decimal": ","}, 1.234), ({"decimal": "."}, 1234), ({"thousands": ","}, 1234)]
)
def test_a_mark_that_may_be_either_is_said_and_can_be_named(how, expected):
    table = read("a;b\n1,234;1\n5;2\n", **how)
    assert table.X[0, 0] == expected
    assert said(table, "1,234 in column 'a' was read as 1.234. Specify the decimal mark or the thousands") == (not how)
    assert read("a;b\n1.234;1\n5;2\n", thousands=".").X[0, 0] == 1234
    np.testing.assert_array_equal(read("x\n1,5\n2,25\n0,5\n", decimal=",").X[:, 0], [1.5, 2.25, 0.5])


def test_marks_follow_the_other_columns_but_none_that_is_dropped():
    text = "a;b;c\n1.234;0,5;x\n987;7,25;y\n"
    assert read(text, drop=["c"]).X[0, 0] == 1234
    assert read(text, drop=["b", "c"]).X[0, 0] == 1.234


# Missing values


MISSING = "a,b,y\n1,2,u\n3,,v\n5,NA,u\n7,8,\n"


def test_rows_with_missing_values_are_dropped_or_filled_with_means_but_labels_never():
    assert fault(MISSING, "y").remedies == ("missing",)
    table = read(MISSING + "9,1,v\n", "y", missing="drop")
    np.testing.assert_array_equal(table.rows, [0, 4])
    np.testing.assert_array_equal(table.X, [[1, 2], [9, 1]])
    table = read(MISSING + "9,1,v\n", "y", missing="mean")
    np.testing.assert_array_equal(table.rows, [0, 1, 2, 4])
    np.testing.assert_array_equal(table.X[:, 1], [2, 1.5, 1.5, 1])
    assert said(table, "replaced 2 missing values by the column mean")


def test_marks_of_missing_values_are_those_of_pandas_and_those_named():
    frame = BASE.astype(object)
    frame.loc[5, "b"], frame.loc[7, "c"] = "?", -999
    error = fault(frame)
    assert error.columns == (("?", "na_values"),)
    assert "text in column 'b' ('?'), first in row 5" in str(error)
    table = read(frame, na_values=["?", "-999"], missing="drop")
    np.testing.assert_array_equal(table.rows, np.delete(np.arange(60), [5, 7]))
    assert said(read(frame, na_values=["?"], missing="drop"), "column 'c' is -999 in one row, far from the others")


def test_a_line_of_units_is_left_out_if_its_texts_are_read_as_missing():
    units = pd.concat([pd.DataFrame([{"a": "cm", "b": "kg"}]), BASE], ignore_index=True)
    error = fault(units)
    assert error.columns == (("cm", "na_values"), ("kg", "na_values"))
    np.testing.assert_array_equal(read(units, na_values=["cm", "kg"]).X, BASE)


# Text, categories and labels


def test_all_text_columns_are_named_at_once_with_remedies_but_no_outcome_becomes_a_feature():
    assert fault(TEXT).columns == (("species", "drop"),)
    assert fault("a,b,c\nNA,1,\nNA,2,\n", missing="mean").columns == (("a", "drop"), ("c", "drop"))
    error = fault(BASE.assign(sex="m", name=[f"p{i}" for i in range(60)]))
    assert "text in columns 'sex' ('m'), 'name' ('p0', 'p1', 'p2')" in str(error)
    assert dict(error.columns) == {"sex": "drop", "name": "drop"}


@pytest.mark.parametrize("one_hot", [["city", "size"], "all"])
def test_categories_become_columns_on_request(one_hot):
    rows = "".join(f"{('Oslo', 'Rome', ' Bonn')[i % 3]},{'LS'[i % 2]},{i * 37 % 11}\n" for i in range(24))
    table = read("city,size,weight\n" + rows, one_hot=one_hot)
    assert table.names == ("city=Bonn", "city=Oslo", "city=Rome", "size=S", "weight")
    np.testing.assert_array_equal(table.X[:4, :4], [[0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 1]])
    assert said(table, "one-hot encoded columns: 'city', 'size' (binary columns: 4)")


def test_a_missing_category_is_a_missing_value_and_numbers_may_be_categories():
    table = read("a,b\nx,1\ny,2\n,3\nx,5\n", one_hot=["a"], missing="drop")
    np.testing.assert_array_equal(table.X, [[0, 1], [1, 2], [0, 5]])
    assert read("k,b\n1,1\n2,2\n10,3\n1,5\n", one_hot=["k"]).names == ("k=1", "k=2", "k=10", "b")
    names = "name,b\n" + "".join(f"p{i},{i % 7}\n" for i in range(60))
    assert fault(names, one_hot=["name"]).columns == (("name", "drop"),)


def test_a_label_is_trimmed_and_a_missing_one_drops_the_row():
    table = read("a,b,y\n1,2,ill \n3,4, well\n5,7,ill\n9,9, \n", "y", missing="drop")
    assert (table.classes, len(table.X)) == (("ill", "well"), 3)


# Features as rows


def test_a_table_with_features_as_rows_is_transposed_on_request():
    names = ["abl", "nan", "na", "NULL"]
    frame = BASE.head(4).assign(symbol=names, note="text", Length=range(4))[["symbol", "note", "Length", "a", "b", "c"]]
    table = read(frame, transpose=True, drop=["Length", "na"])
    assert (table.names, table.points.tolist()) == (("abl", "nan", "NULL"), ["a", "b", "c"])
    np.testing.assert_array_equal(table.X, BASE.head(4).drop(index=2).T)
    assert said(table, "the table was transposed: 3 points (a, b, c), 4 features")
    assert said(table, "excluded text columns: 'note'")
    labeled = read(frame.drop(columns="Length").to_csv(index=False) + "kind,,x,y,x\n", "kind", transpose=True)
    assert labeled.labels.tolist() == ["x", "y", "x"]
    np.testing.assert_array_equal(read(packed(BASE.T, "t.parquet"), name="t.parquet", transpose=True).X, BASE)
    assert "if 'symbol' names features, transpose the table" in str(fault(frame.replace("NULL", "abx")))


def test_the_columns_of_largest_variance_are_kept_in_their_order():
    X = RNG.normal(size=(20, 50)) * np.arange(50)
    table = read(pd.DataFrame(X, columns=[f"g{j}" for j in range(50)]), top_variance=7)
    chosen = sorted(np.argsort(-X.var(axis=0))[:7])
    assert table.names == tuple(f"g{j}" for j in chosen)
    np.testing.assert_array_equal(table.X, X[:, chosen])
    assert said(table, "7 of 50 features with the largest variance")
    for count in (0, -3, 1.5):
        with pytest.raises(dc.ParameterError, match="top_variance"):
            read(BASE, top_variance=count)


# Formats


def packed(frame, name):
    out = BytesIO()
    if name == "t.parquet":
        frame.rename(columns=str).astype({"a": "Float64"} if "a" in frame else {}).to_parquet(out)
    elif name == "t.xlsx":
        with pd.ExcelWriter(out) as book:
            frame.to_excel(book, sheet_name="first", index=False)
            frame.head(9).to_excel(book, sheet_name="second", index=False)
    elif name == "t.libsvm":
        rows = frame.to_numpy().tolist()
        return "".join(f"{row[-1]:.0f} 1:{row[0]} 2:{row[1]} 3:{row[2]} # x\n" for row in rows).encode()
    else:
        return (gzip.compress if name.endswith("gz") else bytes)(frame.to_csv(index=False).encode())
    return out.getvalue()


@pytest.mark.parametrize("name", ["t.parquet", "t.xlsx", "t.libsvm", "t.csv.gz", "t.tsv"])
def test_all_formats_give_the_same_table(name):
    frame = BASE.assign(y=np.arange(60) % 2)
    table = read(packed(frame, name), "y", name=name)
    np.testing.assert_array_equal(table.X, BASE)
    assert table.classes == ("0", "1")
    assert table.names == (("x1", "x2", "x3") if name == "t.libsvm" else ("a", "b", "c"))


def test_the_first_sheet_is_read_with_a_note_or_the_one_named():
    book = packed(BASE, "t.xlsx")
    assert said(read(book, name="t.xlsx"), "2 sheets, and 'first' was read")
    assert len(read(book, name="t.xlsx", sheet="second").X) == 9
    assert "no sheet 'third'; the sheets are first, second" in str(fault(book, name="t.xlsx", sheet="third"))


@pytest.mark.parametrize("name", ["t.xlsx", "t.csv.gz", "t.parquet", "t.libsvm"])
def test_a_file_that_unpacks_to_more_than_the_memory_is_refused(name, monkeypatch):
    content = packed(BASE.assign(y=0), name)
    monkeypatch.setattr("diffrac_cvx.machine.memory.available_memory", lambda: 1e3)
    monkeypatch.setattr("diffrac_cvx.datasets.file_columns.available_memory", lambda: 1e3)
    words = "unpacks to more than|needs about"
    with pytest.raises(dc.ResourceError, match=rf"{name} cannot be read: .*({words})"):
        read(content, name=name)
    monkeypatch.undo()
    monkeypatch.setattr("diffrac_cvx.datasets.file_columns.MAX_UNPACKED", 100)
    if name in ("t.xlsx", "t.csv.gz"):
        with pytest.raises(dc.ResourceError, match="it unpacks to more than 100 bytes"):
            read(content, name=name)


def test_a_cell_in_the_far_corner_of_a_sheet_costs_no_memory():
    book, out = openpyxl.Workbook(), BytesIO()
    for row in ([1, 2], [3, 5.5], [4, 1]):
        book.active.append(row)
    book.active["XFD1048576"] = 1
    book.save(out)
    assert "line 1048576 has 16384 values instead of 2" in str(fault(out.getvalue(), name="t.xlsx"))


def test_a_missing_library_or_file_is_named_with_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text(TEXT)
    with pytest.raises(dc.DataError, match=r"t.cvs is not a file.*Did you mean 't\.csv'"):
        read_table(tmp_path / "t.cvs")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "needs openpyxl. Run pip install 'diffrac-cvx[app]'" in str(fault(b"PK", name="t.xlsx"))


# Warnings


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"unit": 3.0, "site": 0.1}, "constant columns carry no information: 'unit', 'site'"),
        ({"id": np.arange(7, 67)}, "column 'id' numbers the rows"),
        ({"age": np.where(np.arange(60) % 9, RNG.integers(20, 60, 60), -999)}, "column 'age' is -999 in 7 rows"),
        ({"t": np.where(np.arange(60) % 9, RNG.normal(0.0, 9.0, 60), 9999.9)}, "column 't' is 9999.9 in 7 rows"),
        ({"class": RNG.integers(0, 3, 60)}, None),
        ({"change": np.where(np.arange(60) % 9, RNG.normal(0.0, 20.0, 60), -99)}, "column 'change' is -99 in 7 rows"),
    ],
)
def test_columns_that_mislead_are_named_in_one_note_and_others_are_not(columns, words):
    notes = read(BASE.assign(**columns)).notes
    assert len(notes) == (words is not None)
    assert all(words in note for note in notes)


@pytest.mark.parametrize("shape", [(2000, 60), (60, 2000)])
def test_a_hundred_thousand_numbers_are_read_in_a_second_of_processor_time(shape):
    frame = pd.DataFrame(RNG.normal(7.0, 2.0, shape).round(3), columns=[f"s{j}" for j in range(shape[1])])
    content = frame.assign(gene=[f"g{i}" for i in range(shape[0])])[["gene", *frame.columns]].to_csv(index=False)
    start = time.process_time()
    upright, turned = read(content, drop=["gene"]), read(content, transpose=True)
    assert time.process_time() - start < 1.0
    np.testing.assert_array_equal(upright.X, frame)
    np.testing.assert_array_equal(turned.X, frame.T)
