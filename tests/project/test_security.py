"""Hostile files, names, addresses and values: each test tries the exploit."""

import ast
import csv
import hashlib
import http.server
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path, PurePath

import marimo as mo
import numpy as np
import pandas as pd
import pytest
from packed import npy, npz, parquet

import diffrac_cvx as dc
from diffrac_cvx.app import render
from diffrac_cvx.app.cli.program import run_command_line
from diffrac_cvx.app.page import __main__ as launcher
from diffrac_cvx.app.page import views
from diffrac_cvx.app.page.data import MAX_UPLOAD_BYTES, uploaded_data
from diffrac_cvx.app.page.notebook import app
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.datasets import real
from diffrac_cvx.datasets.real import SETS
from diffrac_cvx.datasets.tables import read_table
from diffrac_cvx.errors import DataError, ParameterError, ResourceError
from diffrac_cvx.machine import memory
from diffrac_cvx.machine.writing import write_csv
from diffrac_cvx.plotting import DirectionDisplay, PathDisplay, ProjectionDisplay
from experiments.data.remake import read_member
from experiments.harness.tables import write_table

ROOT = Path(__file__).parents[2]
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


# What the code may call

FORBIDDEN = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "tempfile.mktemp", "joblib.load",
    "runpy.run_path", "pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.load", "marshal.loads", "shelve.open",
    "dill.load", "pd.read_pickle", "pandas.read_pickle", "yaml.load", "yaml.unsafe_load", "shutil.unpack_archive",
}  # fmt: skip
FORBIDDEN_METHODS = {"extractall", "extract", "read_pickle", "unpack_archive", "to_pickle"}
ALLOWED = {  # each with the reason why it is safe
    ("diffrac_cvx/machine/processes.py", "pickle.load"),  # from the pipe of a process of our own
    ("diffrac_cvx/machine/processes.py", "pickle.loads"),
}
SOURCES = [path for folder in ("diffrac_cvx", "experiments") for path in sorted((ROOT / folder).rglob("*.py"))]


def dotted(node):
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@pytest.fixture(scope="module")
def nodes():
    """Yield the calls of all files with file and dotted name, and the asserts."""
    nodes = [(path, node) for path in SOURCES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    calls = [(path, dotted(node.func), node.keywords) for path, node in nodes if isinstance(node, ast.Call)]
    return calls, [(path, ast.unparse(node.test)) for path, node in nodes if isinstance(node, ast.Assert)]


def test_nothing_is_executed_or_unpickled_but_what_is_named_here(nodes):
    found, arrays = set(), 0
    for path, name, given in nodes[0]:
        if name in FORBIDDEN or ("." in name and name.rpartition(".")[2] in FORBIDDEN_METHODS):
            found.add((str(path.relative_to(ROOT)), name))
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in given}
        assert "shell" not in keywords, f"{path} runs a shell"
        assert "verify" not in keywords, f"{path} checks no certificate"
        assert name not in ("np.fromfile", "np.memmap"), f"{path} reads numbers without a header"
        if name in ("np.load", "numpy.load", "np.lib.format.read_array"):
            arrays += 1
            assert keywords.get("allow_pickle") == "False", f"{path} loads pickled arrays"
    assert found == ALLOWED
    assert arrays >= 3


def test_no_assert_checks_what_a_user_gives(nodes):
    """Asserts vanish under ``python -O``: they may only narrow types to not None."""
    for path, text in nodes[1]:
        if path.is_relative_to(ROOT / "diffrac_cvx"):
            assert re.fullmatch(r"[\w.]+ is not None|isinstance\(.*\)", text), f"{path}: assert {text}"


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


HOSTILE = np.array([[Exploit(), 1.0], [2.0, 3.0]], dtype=object)
PICKLED = {
    "objects.npy": npy(HOSTILE),
    "objects.npz": npz(X=HOSTILE),
    "labels.npz": npz(X=np.eye(2), y=HOSTILE[0]),
    "names.npz": npz(X=np.eye(2), feature_names=HOSTILE[0]),
    "pickle.npy": pickle.dumps(Exploit()),
    "pickle.npz": pickle.dumps(Exploit()),
    "pickle.parquet": pickle.dumps(Exploit()),
    "pickle.csv": pickle.dumps(Exploit()),
}


def test_the_exploit_works_where_nothing_prevents_it():
    pickle.loads(pickle.dumps(Exploit()))
    Path("owned").rmdir()


@pytest.mark.parametrize("name", PICKLED)
def test_a_pickle_in_a_file_is_refused(name, capsys):
    Path(name).write_bytes(PICKLED[name])
    with pytest.raises(DataError):
        read_table(name)
    with pytest.raises(DataError):
        uploaded_data(PICKLED[name], name, None)
    assert run_command_line(["cluster", name]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_pickle_in_the_file_of_a_known_set_is_not_even_parsed(monkeypatch, tmp_path):
    monkeypatch.setenv(real.DATA_HOME_VARIABLE, str(tmp_path))
    for name in ("parse_file", "read_label_names"):
        monkeypatch.setattr(real, name, lambda *_: pytest.fail("parsed before it was checked"))
    for name in ("corel5k", "w1a"):
        (tmp_path / SETS[name].file).write_bytes(PICKLED["objects.npz"])
        with pytest.raises(DataError, match="its sha256 differs"):
            dc.datasets.load(name)
    with pytest.raises(DataError, match="its sha256 differs"):
        dc.datasets.label_names("corel5k")


def test_a_pickle_with_the_right_checksum_is_refused_too(monkeypatch, tmp_path):
    monkeypatch.setenv(real.DATA_HOME_VARIABLE, str(tmp_path))
    content = npz(X=HOSTILE, Y=HOSTILE)
    monkeypatch.setitem(SETS, "corel5k", replace(SETS["corel5k"], sha256=hashlib.sha256(content).hexdigest()))
    (tmp_path / SETS["corel5k"].file).write_bytes(content)
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
    text = views.python_code(hostile_data, views.Setting(), ["low_rank"])
    tree = ast.parse(text)
    (first,) = [call for call in ast.walk(tree) if is_reading(call)]
    assert PurePath(first.args[0].value).name == first.args[0].value, "the table is beside the program"
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = 0
    assert not re.search(r"owned|mkdir|\bos\b|system", ast.unparse(tree))


def is_reading(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "dc.datasets.read_table"


# Files from the network


@contextmanager
def server(answer):
    """Serve `answer` of a path, bytes or a redirect; yield the address and the requested paths."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            found = answer(self.path)
            self.send_response(200 if isinstance(found, bytes) else 302)
            if isinstance(found, bytes):
                self.end_headers()
                self.wfile.write(found)
            else:
                self.send_header("Location", found)
                self.end_headers()

        def log_message(self, *_):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}", seen
    finally:
        httpd.shutdown()
        httpd.server_close()


CONTENT = b"+1 1:1 2:5\n-1 3:1\n" * 20


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv(real.DATA_HOME_VARIABLE, str(tmp_path / "data"))
    monkeypatch.setitem(SETS, "w1a", replace(SETS["w1a"], sha256=hashlib.sha256(CONTENT).hexdigest()))
    return tmp_path / "data"


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/w1a", "ftp://example.org/w1a", "file:///etc/passwd", "http://localhost.example.org/w1a",
        "http://127.0.0.1@example.org/w1a", "//example.org/w1a", "w1a", "https:///w1a", "doi:10.1/x", "",
    ],
)  # fmt: skip
def test_an_address_that_is_not_https_is_not_asked(url, home, monkeypatch):
    import requests

    monkeypatch.setitem(SETS, "w1a", replace(SETS["w1a"], url="http://example.org/w1a"))
    monkeypatch.setattr(requests, "get", lambda *_, **__: pytest.fail("asked"))
    with pytest.raises(DataError, match="the protocol must be https"):
        dc.datasets.fetch("w1a", url=url or None)
    assert not home.exists()


def test_a_redirect_is_not_followed(home):
    with server(lambda _: CONTENT) as (elsewhere, asked):
        for place in (f"{elsewhere}/w1a", "file:///etc/passwd", "/new"):
            with (
                server(lambda _, place=place: place) as (url, own),
                pytest.raises(DataError, match=r"status 302.*no file was saved"),
            ):
                dc.datasets.fetch("w1a", url=f"{url}/w1a")
            assert own == ["/w1a"]
        assert asked == []
    assert list(home.iterdir()) == []


def test_a_download_that_does_not_end_is_ended(home, monkeypatch):
    monkeypatch.setattr(real, "MAX_BLOCKS", 10)
    with server(lambda _: bytes(10**8)) as (url, _), pytest.raises(DataError, match="no file was saved"):
        dc.datasets.fetch("w1a", url=f"{url}/w1a")
    assert list(home.iterdir()) == []


# Sizes


def test_an_upload_is_limited_in_the_browser():
    _, names = app.run()
    assert names["file"]._component_args["max_size"] == MAX_UPLOAD_BYTES


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_a_small_file_that_unpacks_to_more_than_the_memory_is_refused(kind, monkeypatch):
    zeros = np.zeros((100_000, 10))
    content = npz(X=zeros)
    if kind == "parquet":
        content = parquet(**dict.fromkeys("abcdefghij", zeros[:, 0]))
    assert len(content) < zeros.nbytes / 100
    monkeypatch.setattr(memory, "available_memory", lambda: float(zeros.nbytes))
    with pytest.raises(ResourceError, match=rf"t.{kind} cannot be read: the unpacked table needs about"):
        read_table(content, name=f"t.{kind}")


@pytest.mark.parametrize("name", ["t.npz", "t.npy", "t.parquet"])
def test_a_file_cut_anywhere_is_refused_in_words(name):
    whole = npz(X=np.eye(4)) if name == "t.npz" else npy(np.eye(4))
    if name == "t.parquet":
        whole = parquet(**dict(zip("abcd", np.eye(4), strict=True)))
    for size in range(0, len(whole) - 1, max(len(whole) // 40, 1)):
        with pytest.raises(DataError):
            read_table(whole[:size], name=name)
        garbled = whole[:size] + bytes([whole[size] ^ 0xFF]) + whole[size + 1 :]
        with suppress(DataError, ResourceError):  # nothing else may be raised
            read_table(garbled, name=name)


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


@pytest.mark.slow
def test_a_request_without_the_token_gets_no_page():
    with server(lambda _: b"") as (free, _):
        port = int(free.rpartition(":")[2])
    command = [sys.executable, "-m", "diffrac_cvx.app.page", "--headless", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as page:
        try:
            address = page.stdout.readline().split()[0]
            bare = address.partition("?")[0]
            assert status_of(address, patience=90) == 200
            assert status_of(f"{bare}api/status/connections") in (401, 403)
            for wrong in (bare, f"{bare}?access_token=", f"{bare}?access_token=guess"):
                assert "/auth/login" in opened(wrong).url
            assert address.partition("=")[2] not in Path(f"/proc/{page.pid}/cmdline").read_text()
            local = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
            assert {entry[:8] for entry in local if int(entry[9:], 16) == port} == {"0100007F"}, "loopback"
        finally:
            page.terminate()


def opened(address):
    """Return the response of an address or the error; both have `status` and `url`."""
    try:
        return urllib.request.urlopen(address, timeout=10)
    except urllib.error.HTTPError as error:
        return error


def status_of(address, patience=5):
    deadline = time.monotonic() + patience
    while True:
        try:
            return opened(address).status
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)


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
    setting, methods = views.Setting(), ["low_rank"]
    comparison = views.compare_methods(hostile_data, setting, methods)
    model, labels = (
        views.cluster_points(hostile_data.table, setting),
        views.labels_of(hostile_data.table, comparison, 2),
    )
    code = views.python_code(hostile_data, setting, methods)
    for text in (
        views.sentences_html(
            [*NAMES, hostile_data.summary, *views.describe_answer(hostile_data.table, model)[1]], "note"
        ),
        views.table_html(views.comparison_table(hostile_data, setting, comparison, labels)),
        views.table_html(views.answer_table(hostile_data.table, model)),
        views.table_html(ReportTable(tuple(NAMES), (tuple(NAMES),))),
        views.solution_cards(hostile_data, comparison, labels).replace("<i style=", "<u style="),
        mo.md(f"```python\n{code}\n```").text,
        ReportTable(tuple(NAMES), (tuple(NAMES),)).html(),
    ):
        tags = Tags(text)
        assert not {"script", "svg", "i", "iframe", "b"} & tags.tags
        assert tags.active == []


# Reports, figures, tables, the terminal


@pytest.fixture
def hostile_table(tmp_path):
    rng = np.random.default_rng(1)
    names = [name.replace("\n", " ") for name in NAMES]
    frame = pd.DataFrame(rng.standard_normal((24, len(names))), columns=names)
    frame["label"] = np.where(np.arange(24) % 2, "=cmd|' /C calc'!A0", "<script>$")
    path = tmp_path / "a <script>alert(1)<br>$x.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_report_shows_every_name_and_value_as_text(hostile_table, tmp_path, capsys):
    given = [str(hostile_table), "--reference-column", "label", "--report"]
    assert run_command_line(["cluster", "--no-structure", *given, "r.html", "--out", "labels.csv"]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert run_command_line(["compare", *given[:-1], "--method", "low_rank", "--out", "c.csv"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert (
        run_command_line(
            ["cluster", "--no-structure", str(hostile_table), "--reference-column", "label", "--save", "s.json"]
        )
        == 0
    )
    assert run_command_line(["predict", "s.json", str(hostile_table), "--out", "s.csv"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    text = Path("r.html").read_text(encoding="utf-8")
    tags = Tags(text)
    assert tags.tags <= OF_REPORTS
    assert tags.active == []
    assert "default-src 'none'" in unescape(text), "a browser runs nothing in it, whatever is in it"
    assert "alert(1)" in text
    for name in ("labels.csv", "c.csv", "s.csv"):
        assert all(is_harmless(entry) for row in rows_of(Path(name)) for entry in row)


@pytest.mark.parametrize(
    "template", sorted(path.name for path in (Path(render.__file__).parent / "templates").iterdir())
)
def test_a_template_marks_no_text_as_safe(template):
    text = (Path(render.__file__).parent / "templates" / template).read_text(encoding="utf-8")
    assert not re.search(r"\|\s*safe|autoescape|<script", text)


def test_the_clusters_that_the_page_saves_hold_no_formula():
    lines = "".join(f"{x},{x * x % 7},{'=1+1' if x % 2 else '@SUM(1)'}\n" for x in range(12))
    table = uploaded_data(f"x,y,g\n{lines}".encode(), "mine.csv", "g").table
    saved = views.labels_csv(table, views.cluster_points(table, views.Setting())).decode()
    entries = [entry for row in csv.reader(saved.splitlines()) for entry in row]
    assert {"'=1+1", "'@SUM(1)"} <= set(entries)
    assert all(is_harmless(entry) for entry in entries)


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


def test_a_table_of_an_experiment_holds_no_formula_and_comes_back(tmp_path):
    table = pd.DataFrame({"=name": FORMULAS, "value": np.linspace(-1, 1, len(FORMULAS))})
    write_table(table, tmp_path / "t.csv")
    head, *rows = rows_of(tmp_path / "t.csv")
    assert all(is_harmless(entry) for entry in [*head, *(row[0] for row in rows)])
    assert [float(row[1]) for row in rows] == pytest.approx(table["value"], abs=1e-9)


def texts_of(figure):
    from matplotlib.text import Text

    figure.canvas.draw()
    cells = [cell.get_text() for axes in figure.axes for table in axes.tables for cell in table.get_celld().values()]
    return [text for text in [*figure.findobj(Text), *cells] if text.get_text()]


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("draw", ["direction", "path", "labels"])
def test_a_name_in_a_figure_is_no_formula_and_fits(draw):
    from matplotlib import cbook
    from matplotlib import pyplot as plt

    if draw == "direction":
        figure = DirectionDisplay(np.arange(1.0, len(NAMES) + 1), NAMES).plot().figure_
    elif draw == "path":
        X = np.random.default_rng(0).standard_normal((20, 6))
        figure = PathDisplay(dc.paths.nu_path(X, [0.5, 1.0]), NAMES[4:10]).plot().figure_
    else:
        labels = np.array(NAMES[5:10] * 2)
        figure = ProjectionDisplay(np.arange(10.0), labels).plot().figure_
    ours = ("$v_j$", "$\\nu$", "$x^\\top v$")
    drawn = [text.get_text() for text in texts_of(figure) if not any(part in text.get_text() for part in ours)]
    plt.close(figure)
    assert any("\\$" in text for text in drawn), "dollars are drawn"
    for text in drawn:
        math = cbook.is_math_text(text)
        assert math is not True, f"{text!r} is drawn as mathematics"
        assert len(text) < 80
        assert "\n" not in text


# Names of files


@pytest.mark.parametrize("name", ["../heart", "/etc/passwd", "heart/../heart", "heart.csv.gz", "..", "", "heart\0"])
def test_a_data_set_is_known_by_its_name_alone(name):
    for use in (dc.datasets.load, dc.datasets.fetch, dc.datasets.describe, dc.datasets.label_names):
        with pytest.raises(ParameterError, match="name = "):
            use(name)


def test_files_of_data_sets_stay_in_their_folder_and_come_by_https():
    for record in SETS.values():
        assert PurePath(record.file).name == record.file
        assert re.fullmatch(r"[0-9a-f]{64}", record.sha256)
        assert {path.name for path in real.possible_paths(record)} == {record.file}
        assert record.url.startswith("https://") or not record.url


def test_members_of_archives_are_read_and_never_unpacked(tmp_path):
    whole = {"data.csv": b"1", "X.npy": npy(np.eye(3)), "../../owned": b"x", "../../owned.npy": npy(np.eye(3))}
    for name in ("evil.whl", "evil.npz"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member, content in whole.items():
                if name == "evil.whl" or member.endswith(".npy"):
                    archive.writestr(member, content)
    assert read_member(tmp_path / "evil.whl", "data.csv") == b"1"
    assert read_member(tmp_path / "evil.whl", "../../owned") == b"x"
    assert read_table(tmp_path / "evil.npz").X.shape == (3, 3)
    assert {entry.name for entry in tmp_path.iterdir()} == {"evil.whl", "evil.npz"}
    assert not list(tmp_path.parent.parent.glob("owned*"))


# The packages that this one needs


def test_every_dependency_is_pinned_to_one_version_of_the_index():
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in pins}
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in pins), "no address, no range"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (project["optional-dependencies"][extra] for extra in ("experiments", "dev"))
    needed = [*project["dependencies"], *chain.from_iterable(extras)]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", line)[0]).lower() for line in needed} - {"diffrac-cvx"}
    assert names <= pinned


def test_the_policy_says_how_to_report_and_how_pins_are_renewed():
    policy = (ROOT / "SECURITY.md").read_text()
    assert {"## Reporting", "## Supported versions", "## Dependencies"} <= set(policy.splitlines())
