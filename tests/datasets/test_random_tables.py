"""Random tables as six programs write them: what is read is the table, or a line says what differs."""

import csv
import gzip
from io import BytesIO, StringIO

import numpy as np
import openpyxl
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.datasets.tables import read_table

WORDS = ["Größe", "weight", "score", "dose", "länge", "T4", "x", "level"]


def draw(rng):
    """Return typed columns by name, some of text: names of rows, categories, decimals, whole numbers and thousands."""
    n, columns = int(rng.integers(8, 40)), {}
    if rng.random() < 0.6:
        columns["name"] = [f"P{i:02d}" for i in range(n)]
    for j in range(int(rng.integers(2, 6))):
        kind = rng.choice(["decimal", "whole", "large", "count"])
        name = str(2000 + 5 * j) if rng.random() < 0.2 else WORDS[j]
        values = {
            "decimal": np.round(rng.normal(0.0, 9.0, n), int(rng.integers(1, 5))),
            "whole": rng.integers(-9, 99, n).astype(float),
            "large": rng.integers(1, 10**7, n).astype(float),
            "count": rng.poisson(3.0, n).astype(float),
        }[kind]
        columns[name] = values.tolist()
    if rng.random() < 0.3:
        columns["kind"] = rng.choice(["a", "bé", "c d"], n).tolist()
    return columns


def shown(value, decimal=".", thousands=""):
    """Return a cell as text with these marks."""
    text = value if isinstance(value, str) else f"{int(value):,}" if value == int(value) else repr(value)
    return text if isinstance(value, str) else text.translate(str.maketrans({",": thousands, ".": decimal}))


def rows_of(columns, **marks):
    return [[shown(value, **marks) for value in row] for row in zip(*columns.values(), strict=True)]


def joined(rows, **options):
    out = StringIO()
    csv.writer(out, lineterminator="\n", **options).writerows(rows)
    return out.getvalue()


def by_pandas(columns, rng, header):
    index = header and bool(rng.integers(2))
    return "t.csv", pd.DataFrame(columns).to_csv(index=index, header=header).encode()


def by_r(columns, rng, header):
    rows = [[f"r{i}", *row] for i, row in enumerate(rows_of(columns))]
    lines = [list(columns), *rows] if header else [row[1:] for row in rows]
    return "t.txt", joined(
        lines, delimiter=" ", quoting=csv.QUOTE_ALL if rng.integers(2) else csv.QUOTE_MINIMAL
    ).encode()


def by_european_spreadsheet(columns, rng, header):
    rows = rows_of(columns, decimal=",", thousands="." if rng.integers(2) else "")
    title = [["Report"], []] if header and rng.integers(2) else []
    text = joined([*title, *([list(columns)] if header else []), *rows], delimiter=";")
    return "t.csv", text.encode("cp1252" if rng.integers(2) else "utf-8-sig")


def by_american_spreadsheet(columns, rng, header):
    rows = rows_of(columns, thousands="," if rng.integers(2) else "")
    text = joined([*([list(columns)] if header else []), *rows], delimiter="," if rng.integers(2) else "\t")
    return "t.tsv.gz", gzip.compress(text.encode("utf-16" if rng.integers(2) else "utf-8"))


def by_excel(columns, rng, header):
    book, out = openpyxl.Workbook(), BytesIO()
    if header:
        book.active.append([int(name) if name.isdecimal() else name for name in columns])
    for row in zip(*columns.values(), strict=True):
        book.active.append([value if isinstance(value, str) or value % 1 else int(value) for value in row])
    book.save(out)
    return "t.xlsx", out.getvalue()


def by_numpy(columns, rng, header):
    out = BytesIO()
    np.savetxt(out, np.column_stack([entries for entries in columns.values() if not isinstance(entries[0], str)]))
    return "t.txt", (b"# written by numpy\n" if header else b"") + out.getvalue()


PROGRAMS = (by_pandas, by_r, by_european_spreadsheet, by_american_spreadsheet, by_excel, by_numpy)


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_a_program_wrote_is_read_or_a_line_says_what_differs(program):
    exact = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, PROGRAMS.index(program)])
        columns, header = draw(rng), bool(rng.random() < 0.7)
        name, content = program(columns, rng, header)
        text = [key for key, entries in columns.items() if isinstance(entries[0], str)]
        truth = np.column_stack([entries for key, entries in columns.items() if key not in text])
        if program is by_numpy:
            drop = []
        else:
            drop = text if header else [f"x{j + 1}" for j, key in enumerate(columns) if key in text]
        try:
            table = read_table(content, name=name, drop=drop)
        except dc.DataError as error:  # a text of the first row became a name, and the error lists the names
            assert "columns are" in str(error), seed  # noqa: PT017
            continue
        if table.X.shape == truth.shape and np.allclose(table.X, truth, rtol=1e-12):
            exact += 1
            continue
        said = " ".join(table.notes)
        assert any(words in said for words in ("the first line", "was read as")), (seed, said, table.X[:3], truth[:3])
    assert exact >= 18, "nine of ten need no line"
