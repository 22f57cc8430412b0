"""Real data sets: shipped, in the user's folder or downloaded, and the errors of each."""

import hashlib
import http.server
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diffrac_cvx import datasets
from diffrac_cvx.datasets import SETS, real
from diffrac_cvx.errors import DataError, ParameterError

PAPER = ["heart", "diabetes", "breast_cancer", "australian", "liver_disorders", "sonar", "dna", "a1a", "w1a"]
SHIPPED = [name for name, record in SETS.items() if record.shipped]
REFERENCE = [name for name, record in SETS.items() if not record.shipped]


def is_there(name):
    return any(path.is_file() for path in real.possible_paths(SETS[name]))


def test_the_two_class_sets_are_those_of_the_papers_table_in_its_order():
    assert list(datasets.names()) == PAPER
    assert datasets.names("multi-label")[0] == "yeast"


@pytest.mark.parametrize("name", SETS)
def test_a_real_set_is_as_its_record_says(name):
    record = datasets.describe(name)
    if not record.shipped and not is_there(name):
        pytest.skip("a reference copy, not in $DIFFRAC_DATA_HOME")
    X, y = datasets.load(name)
    assert X.shape == (record.n, record.d)
    assert X.dtype == y.dtype == np.float64
    assert np.isfinite(X).all()
    assert set(np.unique(y)) == {-1.0, 1.0}
    assert len(y) == record.n
    if record.kind != "multi-label":
        assert (np.sum(y > 0), np.sum(y < 0)) == record.classes
    elif record.classes:
        assert tuple(np.sum(y > 0, axis=0)) == record.classes
        assert len(datasets.label_names(name)) == y.shape[1]


def test_what_is_shipped_states_a_license_of_its_own():
    assert {SETS[name].license for name in SHIPPED} <= {"CC BY 4.0 (UCI)", "CC0"}
    assert "yeast" in REFERENCE


def test_what_may_not_be_shipped_is_not_shipped():
    folder = Path(real.__file__).parent / "data"
    assert {path.name for path in folder.iterdir()} == {SETS[name].file for name in SHIPPED}


def test_breast_cancer_has_444_benign_and_239_malignant_samples():
    X, y = datasets.load("breast_cancer")
    assert np.sum(y == -1) == 444
    np.testing.assert_array_equal(X[0], [1000025, 5, 1, 1, 1, 2, 1, 3, 1, 1])
    assert X[y == 1, 1:].mean() > X[y == -1, 1:].mean()


def test_a_loaded_set_is_the_users_own():
    X, y = datasets.load("heart")
    X[:], y[:] = 0.0, 0.0
    assert datasets.load("heart")[0].any()


def test_zero_rows_and_columns_are_dropped_as_in_the_paper_or_kept():
    assert datasets.load("a1a")[0].shape == (1605, 113)
    assert datasets.load("a1a", drop_zeros=False)[0].shape == (1605, 123)


def test_scalings_do_what_they_say():
    X, _ = datasets.load("heart", scaling="standardize")
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    X, _ = datasets.load("heart", scaling="min-max")
    np.testing.assert_allclose([X.min(axis=0), X.max(axis=0)], [[-1.0] * 13, [1.0] * 13])
    with pytest.raises(ParameterError, match="standardize"):
        datasets.load("heart", scaling="normal")


@pytest.mark.parametrize("name", ["brest_cancer", "", None, 3])
@pytest.mark.parametrize("ask", [datasets.load, datasets.describe, datasets.fetch])
def test_an_unknown_name_is_refused_with_the_known_ones(ask, name):
    with pytest.raises(ParameterError, match="breast_cancer"):
        ask(name)
    with pytest.raises(ParameterError, match="multi-label"):
        datasets.names("regression")


def test_a_file_that_is_not_the_one_shipped_is_refused(monkeypatch):
    record = datasets.describe("heart")
    monkeypatch.setitem(SETS, record.name, replace(record, sha256="0" * 64))
    with pytest.raises(DataError, match=r"heart\.csv\.gz.*corrupted.*Reinstall"):
        datasets.load(record.name)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_missing_file_says_where_it_was_looked_for_and_how_to_get_it(name, monkeypatch, tmp_path):
    monkeypatch.setenv(real.DATA_HOME_VARIABLE, str(tmp_path))
    with pytest.raises(DataError) as caught:
        datasets.load(name)
    message = str(caught.value)
    assert str(tmp_path / SETS[name].file) in message
    assert "DIFFRAC_DATA_HOME" in message
    assert "fetch(" in message if SETS[name].url else SETS[name].sha256 in message


def test_without_the_variable_the_folder_is_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv(real.DATA_HOME_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert real.cache_folder() == tmp_path / "diffrac_cvx"


# Files


def test_a_libsvm_file_is_read_sparse_lines_and_comments_included():
    X, y = real.read_libsvm("+1 1:0.5 3:2 # a comment\n-1 2:1\n\n", "here")
    np.testing.assert_array_equal(X, [[0.5, 0, 2], [0, 1, 0]])
    np.testing.assert_array_equal(y, [1, -1])


@pytest.mark.parametrize("line", ["+1 1:x", "one 1:2", "+1 0:3", "+1 3", "-1 1:2:3"])
def test_a_bad_line_of_a_libsvm_file_is_named_by_number(line):
    with pytest.raises(DataError, match="line 2 of there"):
        real.read_libsvm(f"+1 1:1\n{line}\n", "there")
    with pytest.raises(DataError, match="there contains no"):
        real.read_libsvm("", "there")


# Downloads, from a server of our own


@contextmanager
def server(content, *, promised=None, status=None):
    """Serve bytes with a declared length; yield the address and the requested paths."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            if status:
                self.send_error(status)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(promised or len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/w1a", seen
    finally:
        httpd.shutdown()
        httpd.server_close()


CONTENT = b"".join(b"+1 1:1 2:%d\n-1 3:1\n" % k for k in range(5000))


@pytest.fixture
def home(monkeypatch, tmp_path):
    """A temporary data folder, with the checksum of CONTENT for w1a."""
    monkeypatch.setenv(real.DATA_HOME_VARIABLE, str(tmp_path / "data"))
    monkeypatch.setitem(SETS, "w1a", replace(SETS["w1a"], sha256=hashlib.sha256(CONTENT).hexdigest()))
    return tmp_path / "data"


@pytest.mark.parametrize("before", [None, CONTENT[:100]], ids=["no file", "a wrong file"])
def test_a_set_is_downloaded_once_without_a_word_and_loaded(home, before, capfd):
    if before:
        home.mkdir()
        (home / "w1a").write_bytes(before)
    with server(CONTENT) as (url, seen):
        path = datasets.fetch("w1a", url=url)
        assert path == home / "w1a"
        assert path.read_bytes() == CONTENT
        assert datasets.fetch("w1a", url=url) == path
    assert len(seen) == 1
    assert datasets.load("w1a")[0].shape == (10_000, 3)
    assert [entry.name for entry in home.iterdir()] == ["w1a"]
    assert capfd.readouterr() == ("", "")


def test_a_right_file_in_either_folder_is_not_downloaded_again(home):
    (home / "libsvm").mkdir(parents=True)
    (home / "libsvm" / "w1a").write_bytes(CONTENT)
    assert datasets.fetch("w1a", url="http://127.0.0.1:9/w1a") == home / "libsvm" / "w1a"


@pytest.mark.parametrize(
    ("served", "words"),
    [
        ({"content": CONTENT[:1000], "promised": len(CONTENT)}, "no file was saved"),
        ({"content": b"<html>moved</html>"}, r"its sha256 differs.*no file was saved"),
        ({"content": CONTENT, "status": 404}, "status 404"),
        (None, r"could not be downloaded from http.*ConnectionError"),
    ],
    ids=["broken off", "another file", "no file", "no server"],
)
def test_what_cannot_be_downloaded_is_an_error_and_nothing_is_left(home, served, words):
    with server(**(served or {"content": CONTENT})) as (url, _):
        if served:
            with pytest.raises(DataError, match=words):
                datasets.fetch("w1a", url=url)
    if not served:
        with pytest.raises(DataError, match=words):
            datasets.fetch("w1a", url=url)
    assert list(home.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("a file where a folder is needed")
    monkeypatch.setenv(real.DATA_HOME_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(DataError, match=rf"{tmp_path / 'file'} cannot be written to"):
        datasets.fetch("w1a", url="http://127.0.0.1:9/w1a")


def test_an_address_of_an_unknown_protocol_is_refused(home):
    with pytest.raises(DataError, match=r"cannot be used for 'w1a'.*protocol"):
        datasets.fetch("w1a", url="gopher://127.0.0.1/w1a")


def test_a_set_without_an_address_and_a_shipped_one_are_not_downloaded(monkeypatch, tmp_path):
    monkeypatch.setenv(real.DATA_HOME_VARIABLE, str(tmp_path))
    for name, words in (("corel5k", "manually"), ("heart", "shipped")):
        with pytest.raises(ParameterError, match=words):
            datasets.fetch(name)
