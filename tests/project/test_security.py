"""Hostile files, names, addresses and values: each test tries the exploit."""

import ast
import csv
import hashlib
import os
import pickle
import re
import sys
from contextlib import suppress
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path, PurePath

import marimo as mo
import numpy as np
import pandas as pd
import pytest
from forms import npz, parquet
from matplotlib import cbook
from matplotlib.figure import Figure
from matplotlib.text import Text

import diffrac_cvx as dc
from diffrac_cvx.app import render
from diffrac_cvx.app.cli.program import run_command_line
from diffrac_cvx.app.page import __main__ as launcher
from diffrac_cvx.app.page import views
from diffrac_cvx.app.page.data import MAX_UPLOAD_BYTES, uploaded_data
from diffrac_cvx.app.page.notebook import app
from diffrac_cvx.app.page.run import Request, Run
from diffrac_cvx.comparison.rendered_table import ReportTable
from diffrac_cvx.datasets import real
from diffrac_cvx.datasets.real import SETS
from diffrac_cvx.datasets.tables import read_table
from diffrac_cvx.errors import DataError, ResourceError
from diffrac_cvx.machine.writing import write_csv
from diffrac_cvx.plotting import DirectionDisplay, PathDisplay, ProjectionDisplay

NAMES = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title><svg/onload=alert(1)>",
    "```\n</code><script>alert(1)</script>",
    "&lt;b&gt;",
    "{{7*7}}",
    "$\\frac{$",
    "$x$",
    "a$",
    "\\$",
    "__import__('os').system('touch owned')",
    "'); import os; os.system('touch owned'); ('",
    "=1+1",
    "\x1b[31mred\x1b[0m",
    "../../etc/passwd",
    "x" * 3000,
]


# Pickles and text as code


class Exploit:
    """Object that runs a command when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("owned",)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """Use a separate folder, and check that no file "owned" appears in it."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.rglob("owned"))


def test_the_exploit_works_where_nothing_prevents_it():
    pickle.loads(pickle.dumps(Exploit()))
    Path("owned").rmdir()


@pytest.mark.parametrize("name", ["pickle.npz", "pickle.parquet", "pickle.csv", "pickle.xlsx", "pickle.csv.gz"])
def test_a_pickle_in_a_file_is_refused(name, capsys):
    Path(name).write_bytes(content := pickle.dumps(Exploit()))
    with pytest.raises(DataError):
        uploaded_data(content, name, None)
    assert run_command_line(["cluster", name]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_pickle_in_the_file_of_a_known_set_is_not_parsed_and_not_loaded_with_the_right_checksum(
    monkeypatch, tmp_path
):
    monkeypatch.setenv(real.DATA_HOME_VARIABLE, str(tmp_path))
    objects = np.array([[Exploit(), 1.0], [2.0, 3.0]], dtype=object)
    content = npz(X=objects, Y=objects)
    for name in ("corel5k", "w1a"):
        (tmp_path / SETS[name].file).write_bytes(content)
        with monkeypatch.context() as patch:
            patch.setattr(real, "parse_file", lambda *_: pytest.fail("parsed before it was checked"))
            with pytest.raises(DataError, match="its sha256 differs"):
                dc.datasets.load(name)
    monkeypatch.setitem(SETS, "corel5k", replace(SETS["corel5k"], sha256=hashlib.sha256(content).hexdigest()))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        dc.datasets.load("corel5k")


@pytest.fixture(scope="module")
def hostile_data():
    """Data of the page: a table with hostile file name, columns and labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((30, len(NAMES))), columns=NAMES)
    frame["label ' $ <b>"] = np.where(np.arange(30) % 2, "'); import os; os.mkdir('owned')", "<b>$x")
    content, file = frame.to_csv(index=False).encode(), "../<i>'); import os; os.mkdir('owned').csv"
    return uploaded_data(content, file, "label ' $ <b>", drop=[NAMES[3].replace("\n", " ")])


def test_the_python_that_the_page_shows_holds_names_as_text_alone(hostile_data):
    text = views.python_code(Request(hostile_data, names=("low_rank", "v_space")))
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    (first,) = [call for call in calls if ast.unparse(call.func) == "dc.datasets.read_table"]
    assert PurePath(first.args[0].value).name == first.args[0].value, "the table is beside the program"
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = 0
    assert not re.search(r"owned|mkdir|\bos\b|system", ast.unparse(tree))


# Sizes


def test_an_upload_is_limited_in_the_browser():
    _, names = app.run()
    assert names["file"]._component_args["max_size"] == MAX_UPLOAD_BYTES


def test_a_file_cut_or_garbled_anywhere_is_refused_in_words():
    whole = parquet(**dict(zip("abcd", np.eye(4), strict=True)))
    for size in range(0, len(whole) - 1, max(len(whole) // 40, 1)):
        with pytest.raises(DataError):
            read_table(whole[:size], name="t.parquet")
        garbled = whole[:size] + bytes([whole[size] ^ 0xFF]) + whole[size + 1 :]
        with suppress(DataError, ResourceError):  # nothing else may be raised
            read_table(garbled, name="t.parquet")


# The page


@pytest.mark.parametrize("headless", [True, False])
def test_the_program_starts_the_page_on_this_machine_alone_with_a_token(monkeypatch, capsys, headless):
    done, environment, tokens = [], {}, set()
    monkeypatch.setattr(launcher, "import_module", lambda _: None)
    monkeypatch.setattr(launcher.runpy, "run_module", lambda name, run_name, **_: done.append((name, run_name)))
    monkeypatch.setattr(launcher.os, "environ", environment)
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", ["page", "--port", "4321", *["--headless"] * headless])
        launcher.main()
        (token,) = re.findall(r"http://127\.0\.0\.1:4321/\?access_token=(\S+)\s", capsys.readouterr().out)
        given = dict(zip(sys.argv, sys.argv[1:], strict=False))
        assert (given["--host"], given["--port"], given["--token-password"]) == ("127.0.0.1", "4321", token)
        assert ("--headless" in sys.argv) == headless
        assert not {"--no-token", "--include-code", "--allow-origins"} & set(sys.argv)
        assert len(token) >= 32
        tokens.add(token)
    assert len(tokens) == 2
    assert done == [("marimo", "__main__")] * 2
    assert environment["MARIMO_SKIP_UPDATE_CHECK"] == "1"


class Tags(HTMLParser):
    """Collect the tags of a page and its active attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.active = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            outside = name in ("src", "href", "action", "data") and not (value or "").startswith(("data:image/", "#"))
            if name.startswith("on") or outside:
                self.active.append((tag, name, value))


OF_REPORTS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "ul", "li", "pre", "table", "thead", "tbody",
    "tr", "th", "td", "figure", "img", "figcaption", "div", "caption", "dl", "dt",
    "dd", "ol", "code", "strong", "section", "main",
}  # fmt: skip


def test_parts_of_the_page_show_names_as_text(hostile_data):
    table, run = hostile_data.table, Run(Request(hostile_data, names=("low_rank", "v_space")))
    run.work()
    comparison, model, labels = run.comparison, run.model, views.labels_of(run)
    names = ReportTable(tuple(NAMES), (tuple(NAMES),))
    for text in (
        views.sentences_html([*NAMES, hostile_data.summary, *views.describe_answer(table, model)[1]], "note"),
        views.comparison_html(run, labels),
        views.progress_html([*NAMES, *run.describe()]),
        views.table_html(views.answer_table(table, model)),
        views.table_html(names),
        views.solution_cards(table, comparison, labels).replace("<i style=", "<u style="),
        mo.md(f"```python\n{views.python_code(run.request)}\n```").text,
        names.html(),
    ):
        tags = Tags(text)
        assert not {"script", "svg", "i", "iframe", "b"} & tags.tags
        assert tags.active == []


# Reports, figures, tables, the terminal


def test_reports_and_tables_show_every_name_and_value_as_text(capsys):
    names = [name.replace("\n", " ") for name in NAMES]
    frame = pd.DataFrame(np.random.default_rng(1).standard_normal((24, len(names))), columns=names)
    frame["label"] = np.where(np.arange(24) % 2, "=cmd|' /C calc'!A0", "<script>$")
    frame.to_csv(file := "a <script>alert(1)<br>$x.csv", index=False)
    table, cluster = [file, "--classes", "label"], ["cluster", "--no-structure"]
    for command in (
        [*cluster, *table, "--report", "r.html", "--out", "labels.csv", "--save", "s.json"],
        ["compare", *table, "--method", "low_rank", "--out", "c.csv"],
        ["predict", "s.json", file, "--out", "s.csv"],
    ):
        assert run_command_line(command) == 0
        assert "\x1b" not in capsys.readouterr().out
    text = Path("r.html").read_text(encoding="utf-8")
    tags = Tags(text)
    assert tags.tags <= OF_REPORTS
    assert tags.active == []
    assert "default-src 'none'" in unescape(text), "a browser runs nothing in it, whatever is in it"
    assert "alert(1)" in text
    for name in ("labels.csv", "c.csv", "s.csv"):
        assert all(is_harmless(entry) for row in rows_of(Path(name)) for entry in row)


def test_a_template_marks_no_text_as_safe():
    for template in (Path(render.__file__).parent / "templates").iterdir():
        assert not re.search(r"\|\s*safe|autoescape|<script", template.read_text(encoding="utf-8")), template


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def is_harmless(entry):
    return not re.match(r"\s*[=+\-@＝＋－＠\t\r\n]", entry) or re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", entry)  # noqa: RUF001


FORMULAS = [
    "=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", "\n=1", " =1", "＝1", "-", "+", "=", "-1e", "1;=1", "-cmd|x!A",  # noqa: RUF001
]  # fmt: skip
NUMBERS = [-1.5, 0.0, 1e300, -3, 2.5e-9, float("-inf")]


def test_a_cell_of_text_never_begins_a_formula_and_a_number_stays_one(tmp_path):
    path = tmp_path / "t.csv"
    write_csv(path, FORMULAS[:6], [NUMBERS, FORMULAS[6:12], [*FORMULAS[12:], "+1", "-1", "1e5"]])
    head, numbers, *rows = rows_of(path)
    assert list(map(float, numbers)) == NUMBERS
    for entry, given in zip([*head, *rows[0], *rows[1]], [*FORMULAS, "+1", "-1", "1e5"], strict=True):
        assert is_harmless(entry), entry
        assert entry in (given, f"'{given}"), "nothing is lost"
    assert rows[1][-3:] == ["+1", "-1", "1e5"], "labels that are numbers stay as they are"
    text = path.read_text(encoding="utf-8")
    assert '"1;=1"' in text, "where cells are separated by semicolons, it is one cell still"


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("kind", ["direction", "path", "labels"])
def test_a_name_in_a_figure_is_no_formula_and_fits(kind):
    X = np.random.default_rng(0).standard_normal((20, 6))
    figure = Figure(layout="constrained")
    {
        "direction": DirectionDisplay(np.arange(1.0, len(NAMES) + 1), NAMES),
        "path": PathDisplay(dc.paths.nu_path(X, [0.5, 1.0]), NAMES[4:10]),
        "labels": ProjectionDisplay(np.arange(10.0), np.array(NAMES[5:10] * 2)),
    }[kind].plot(figure)
    figure.canvas.draw()
    texts = [artist.get_text() for artist in figure.findobj(Text)]
    drawn = [text for text in texts if text and not text.endswith(("$v_j$", "$\\nu$", "$x^\\top v$"))]
    assert any("\\$" in text for text in drawn), "dollars are drawn"
    for text in drawn:
        math = cbook.is_math_text(text)
        assert math is not True, f"{text!r} is drawn as mathematics"
        assert len(text) < 80
        assert "\n" not in text
