"""Tables that mislead: codes, dates, keys, footers, flags, limits and files that are not what their names say."""

import gzip
from io import BytesIO

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import diffrac_cvx as dc
from diffrac_cvx.datasets.suspects import describe_codes, describe_keys, find_total
from diffrac_cvx.datasets.tables import read_table

RNG = np.random.default_rng(0)
N = 90
SCALE = 1.0 + np.arange(N) % 5
AGES = RNG.integers(18, 91, N).astype(float)
WIDTHS = RNG.normal(9.0, 2.0, (N, 2)).round(2)


def with_codes(column, *codes):
    """A column with codes in some of each nine rows."""
    place = np.arange(N) % 9
    return np.where(place < len(codes), np.take(codes, place, mode="clip"), column)


def text_of(**columns):
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


def read(content, label=None, name="t.csv", **how):
    return read_table(content if isinstance(content, bytes) else content.encode(), label, name=name, **how)


def fault(content, label=None, **how):
    with pytest.raises(dc.DataError) as error:
        read(content, label, **how)
    return error.value


# Codes for missing values


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        (with_codes(SCALE, 98, 99), "98 99"),
        (with_codes(SCALE, 77), "77"),
        (with_codes(SCALE, -9, -8), "-9 -8"),
        (with_codes(SCALE, -9, -8, -7), "-9 -8 -7"),
        (with_codes(SCALE, -99, 66, 998), "-99 66 998"),
        (np.where(np.arange(N) % 3, 99.0, SCALE), "99"),  # most rows
        (np.where(np.arange(N) == 7, -9.0, SCALE), "-9"),
        (with_codes(np.arange(N) % 2.0, 8, 9), "8 9"),
        (with_codes(AGES, 998), "998"),
        (with_codes(AGES, 98, 99), "98 99"),
        (with_codes(AGES, -8, -9), "-9 -8"),
        (with_codes(WIDTHS[:, 0] * 20, 0), "0"),
        (np.where(np.arange(N) == 7, -999.0, WIDTHS[:, 0]), "-999"),
    ],
)
def test_values_far_beyond_the_others_or_too_frequent_at_an_end_are_codes(column, codes):
    found = describe_codes(column).rpartition(", ")[0].split(" and ")
    assert [one.split(" in ")[0] for one in found] == codes.split()
    table = read(text_of(q=column, w=WIDTHS[:, 0], v=WIDTHS[:, 1]))
    assert [note for note in table.notes if "'q' is" in note and note.endswith("say so (na_values)")]
    assert list(table.suspects) == ["q"]
    cleaned = read(text_of(q=column, w=WIDTHS[:, 0], v=WIDTHS[:, 1]), na_values=codes.split(), missing="drop")
    assert len(cleaned.X) < N
    assert not cleaned.suspects


@pytest.mark.parametrize(
    "column",
    [
        SCALE,
        AGES,
        np.arange(N) % 2.0,
        np.resize([0.1, 1.0, 10.0, 100.0], N),  # doses
        np.concatenate([np.full(65, 10.0), np.arange(25) % 10]),  # answers of which most are the largest
        np.resize([1.0, 2.0, 3.0, 6.0], N),
        np.resize([2.0, 20.0, 21.0, 22.0, 23.0], N),
        np.resize([1.0, 2.0, 3.0, 20.0, 21.0, 22.0], N),  # two clusters
        np.where(np.arange(N) == 7, 30.0, WIDTHS[:, 0]),  # one outlier
        RNG.poisson(0.2, N).astype(float),
        RNG.negative_binomial(0.3, 0.02, N).astype(float),
        np.exp(RNG.normal(size=N)),
        (RNG.exponential(1.0, N) * (np.arange(N) % 2)).round(1),  # rain
        np.where(np.arange(N) % 2, 0.0, 5.0) + RNG.normal(size=N),
    ],
)
def test_scales_counts_doses_and_heavy_tails_have_no_codes(column):
    assert describe_codes(column) == ""


# Dates and keys

DAYS = np.arange("2023-11-05", "2024-02-03", dtype="datetime64[D]")
PARTS = [str(day).split("-") for day in RNG.permutation(DAYS)]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ([f"{y}{m}{d}" for y, m, d in PARTS], "has dates such as"),
        ([f"{d}{m}{y}" for y, m, d in PARTS], "has dates such as"),
        ([f"{m}{d}{y}" for y, m, d in PARTS], "has dates such as"),
        ([f"{y[2:]}{m}{d}" for y, m, d in PARTS], "has dates such as"),
        ([f"{y}{m}" for y, m, _ in PARTS], "has dates such as"),
        ([f"{y}{m}{d}1730" for y, m, d in PARTS], "has dates such as"),
        (RNG.integers(1950, 2020, N), "has dates such as"),
        (RNG.choice(np.arange(10_000, 99_999), N, replace=False), "has a different whole number in each row"),
        (RNG.permutation(N) + 1, "has a different whole number in each row"),
        ([f"{i:05d}" for i in RNG.integers(0, 99_999, N)], "has leading zeros"),
        (np.arange(N) + 7, "numbers the rows"),
        (np.arange(N) // 3 * 0.7, "grows with the row"),
        (-(np.arange(N) ** 1.5), "falls with the row"),
    ],
)
def test_a_date_or_key_among_the_features_is_noted_and_can_be_dropped(column, reason):
    content = text_of(k=column, w=WIDTHS[:, 0], v=WIDTHS[:, 1])
    table = read(content)
    (note,) = table.notes
    assert note.startswith(f"column 'k' {reason}")
    assert note.endswith("but is used as a feature. Drop it if it is not one (drop)")
    assert list(table.suspects) == ["k"]
    assert read(content, drop=["k"]).notes == ()


def test_measurements_are_no_keys():
    X = np.column_stack([AGES, SCALE, WIDTHS, RNG.integers(20, 9999, N), np.sort(SCALE)])
    assert describe_keys(X, list("abcdef")) == {}
    counts = RNG.permuted(np.tile(np.arange(1000, 1000 + N), (40, 1)), axis=1).T  # of many genes
    assert describe_keys(counts.astype(float), [f"g{j}" for j in range(40)]) == {}


# Footers and totals


def test_a_row_without_a_feature_is_no_point_even_if_it_has_a_label():
    content = text_of(plot=[f"p{i}" for i in range(N)], w=WIDTHS[:, 0], v=WIDTHS[:, 1]) + "Source: a survey,,\n"
    for missing in ("error", "drop", "mean"):
        assert len(read(content, "plot", missing=missing).X) == N


@pytest.mark.parametrize(("what", "name"), [("sum", "All"), ("mean", "Average")])
def test_a_row_of_totals_is_named(what, name):
    last = WIDTHS.sum(axis=0) if what == "sum" else WIDTHS.mean(axis=0).round(2)
    content = text_of(s=[*range(N), name], w=[*WIDTHS[:, 0], last[0]], v=[*WIDTHS[:, 1], last[1]])
    for how in ({"label": "s"}, {"drop": ["s"]}):
        (note,) = read(content, **how).notes
        assert (
            note == f"row 90 of the data (counted from 0) ('{name}') is the {what} of the others. Skip it (skip_footer)"
        )
    assert read(content, "s", skip_footer=1).notes == ()
    assert find_total(np.array([[0.0], [0.0], [1.0], [1.0]]))[1] == ""


# Marks and flags


def test_a_flag_after_a_value_is_no_decimal_and_decides_nothing_for_other_columns():
    rows = [f'48.{i % 7}00,"{17 * i % 90 - 20:+05d},{i % 5}"' for i in range(N)]
    table = read("\n".join(["latitude,temperature", *rows]))
    np.testing.assert_array_equal(table.X[1], [48.1, -3.0])
    assert any("-0020,0 in column 'temperature' was read as -20" in note for note in table.notes)
    decimals = read("a,b\n" + "".join(f'"{i + 10},{i % 7}",{i * i % 11}\n' for i in range(9)))
    assert decimals.X[1, 0] == 11.1
    both = read("a,b\n" + "".join(f'"{i},5",48.{i}00\n' for i in range(9)))
    np.testing.assert_array_equal(both.X[1], [1.5, 48.1])
    assert any("48.000 in column 'b' was read as 48." in note for note in both.notes)


# The remedy of a refusal follows from its cause


@pytest.mark.parametrize(
    ("entry", "words", "parameter"),
    [
        (lambda i: f"<{i % 3}.5" if i % 4 else i, "half the limit of detection", "drop"),
        (lambda i: "n.d." if i % 5 else ">100", "half the limit of detection", "drop"),
        (lambda i: f"{i}.5%", "Remove the unit '%'", "drop"),
        (lambda i: f"\u20ac {i}.5", "Remove the unit '\u20ac '", "drop"),
        (lambda i: f"{i}.5{' bp'[i % 3]}", "Remove the flags or units 'b', 'p'", "drop"),
        (lambda i: f"{i % 24}:30", "Write times as numbers", "drop"),
        (lambda i: f"{i % 28 + 1}/12/2024", "Write dates as numbers", "drop"),
        (lambda i: f"=B{i + 2}*2", "its formulas have no values yet", "drop"),
        (
            lambda i: "=SUM(A2:A24)" if i == 23 else i,
            "its formulas have no values yet, or read it as missing",
            "na_values",
        ),
        (lambda i: "#DIV/0!" if i == 4 else i, "read it as missing", "na_values"),
        (lambda i: "a" if i == 4 else i, "skip the line that repeats the names", "na_values"),
        (lambda i: f"{i % 7}_at", "Drop the text columns", "drop"),
    ],
)
def test_the_remedy_of_text_follows_from_its_cause(entry, words, parameter):
    error = fault("a,b\n" + "".join(f"{entry(i)},{i * i % 7}\n" for i in range(24)))
    assert words in str(error)
    assert "transpose" not in str(error)
    assert error.remedies == (parameter,)


def test_features_as_rows_are_named_as_such():
    lines = [
        "!title\ta",
        "!sample\tb\tc",
        "ID\ts1\ts2\ts3",
        *(f"{j}_s_at\t{j}.5\t{j * j}\t7" for j in range(20)),
        "!end",
    ]
    error = fault("\n".join(lines))
    assert error.remedies == ("drop", "transpose")
    table = read("\n".join(lines), transpose=True)
    assert (table.X.shape, table.points.tolist()) == ((3, 20), ["s1", "s2", "s3"])
    assert "all lines that begin with '!' were read as comments (comment)" in table.notes
    assert read("%fat,b\n1,2\n5,3\n4,7\n").names == ("%fat", "b")


# Files


def parquet(names):
    out = BytesIO()
    pq.write_table(pa.table({"name": names, "x": [1.5, 2.5, 7.0], "y": [1, 5, 4]}), out)
    return out.getvalue()


def test_a_file_that_is_not_what_its_extension_says_is_named():
    plain = b"a,b\n1,2\n5,3\n"
    for content, name, words in (
        (parquet(["a", "b", "c"]), "t.csv", "it is a .parquet file. Rename it to .parquet"),
        (gzip.compress(plain), "t.csv", "it is a .gz file. Rename it to .gz"),
        (b"\xd0\xcf\x11\xe0\0\0", "t.xlsx", "it is a .xls file. Save it as .xlsx or .csv"),
        (b"PK\x03\x04\0\0", "t.txt", "it is a .xlsx file or another zip archive"),
        (plain, "t.xlsx", "If it is text, rename it to .csv"),
    ):
        assert words in str(fault(content, name=name))


def test_parquet_text_in_another_encoding_is_read_and_can_be_dropped():
    names = pa.array([b"Jos\xe9", b"Ann", None], type=pa.binary()).view(pa.string())
    content = parquet(names)
    assert read(parquet(names.dictionary_encode()), drop=["name"], name="t.parquet").X.shape == (3, 2)
    assert dict(fault(content, name="t.parquet").columns) == {"name": "drop"}
    table = read(content, "name", name="t.parquet", missing="drop")
    assert (table.classes, table.notes[0]) == (("Ann", "Jos\xe9"), "text that is not UTF-8 was read as cp1252: 'name'")
    assert read(content, drop=["name"], name="t.parquet").X.shape == (3, 2)


def test_formulas_without_values_are_named_and_can_be_dropped():
    book, out = openpyxl.Workbook(), BytesIO()
    for row in (["a", "b", "twice"], *([i * i % 7, i % 4, f"=2*A{i + 2}"] for i in range(12))):
        book.active.append(row)
    book.save(out)
    error = fault(out.getvalue(), name="t.xlsx")
    assert "text in column 'twice' ('=2*A2', '=2*A3', '=2*A4')" in str(error)
    assert read(out.getvalue(), drop=["twice"], name="t.xlsx").X.shape == (12, 2)
