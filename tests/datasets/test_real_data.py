"""Real data sets: shipped, in the user's folder or downloaded, and the errors of each."""

import hashlib
import io
import socketserver
import threading
import time
from dataclasses import replace
from pathlib import Path, PurePath

import numpy as np
import pytest
import requests

from diffrac_cvx import datasets
from diffrac_cvx.datasets import SETS, real
from diffrac_cvx.errors import DataError, ParameterError

PAPER = ["heart", "diabetes", "breast_cancer", "australian", "liver_disorders", "sonar", "dna", "a1a", "w1a"]
SHIPPED = [name for name, record in SETS.items() if record.shipped]
REFERENCE = [name for name, record in SETS.items() if not record.shipped]


def test_the_two_class_sets_are_those_of_the_papers_table_in_its_order():
    assert list(datasets.names()) == PAPER
    assert datasets.names("multi-label")[0] == "yeast"


@pytest.mark.parametrize("name", SETS)
def test_a_real_set_is_as_its_record_says(name):
    record = SETS[name]
    if not any(path.is_file() for path in real.possible_paths(record)):
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


def test_files_of_data_sets_have_a_license_stay_in_their_folder_and_come_by_https():
    assert {SETS[name].license for name in SHIPPED} <= {"CC BY 4.0 (UCI)", "CC0"}
    folder = Path(real.__file__).parent / "data"
    assert {path.name for path in folder.iterdir()} == {SETS[name].file for name in SHIPPED}
    for record in SETS.values():
        assert {path.name for path in real.possible_paths(record)} == {record.file} == {PurePath(record.file).name}
        assert len(record.sha256) == 64
        assert record.url.startswith("https://") or not record.url


def test_scalings_do_what_they_say():
    X, _ = datasets.load("heart", scaling="standardize")
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    X, _ = datasets.load("heart", scaling="min-max")
    np.testing.assert_allclose([X.min(axis=0), X.max(axis=0)], [[-1.0] * 13, [1.0] * 13])


@pytest.mark.parametrize("name", ["brest_cancer", "", None, 3, "../heart", "/etc/passwd", "heart.csv.gz", "heart\0"])
def test_a_data_set_is_known_by_its_name_alone_and_an_unknown_one_is_refused_with_the_known_ones(name):
    for use in (datasets.load, datasets.fetch):
        with pytest.raises(ParameterError, match=r"name = .*breast_cancer"):
            use(name)
    with pytest.raises(ParameterError, match="multi-label"):
        datasets.names("regression")


def test_a_file_that_is_not_the_one_shipped_is_refused(monkeypatch):
    monkeypatch.setitem(SETS, "heart", replace(SETS["heart"], sha256="0" * 64))
    with pytest.raises(DataError, match=r"heart\.csv\.gz.*corrupted.*Reinstall"):
        datasets.load("heart")


@pytest.mark.parametrize("name", REFERENCE)
def test_a_missing_file_says_where_it_was_looked_for_and_how_to_get_it(name, monkeypatch, tmp_path):
    monkeypatch.setenv(real.DATA_HOME_VARIABLE, str(tmp_path))
    for use in (datasets.load, *([] if SETS[name].url else [datasets.fetch])):
        with pytest.raises((DataError, ParameterError)) as caught:
            use(name)
        message = str(caught.value)
        assert str(tmp_path / SETS[name].file) in message
        assert "DIFFRAC_DATA_HOME" in message
        assert "fetch(" in message if SETS[name].url else SETS[name].sha256 in message
    monkeypatch.delenv(real.DATA_HOME_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert real.cache_folder() == tmp_path / "diffrac_cvx"


@pytest.mark.parametrize("line", ["one 1:2", "+1 0:3", "-1 1:2:3", "1 99999999999:1"])
def test_libsvm_text_is_read_sparse_lines_and_comments_included_and_a_bad_line_is_refused(line):
    X, y = real.read_libsvm(b"+1 1:0.5 3:2 # a comment\n-1 2:1\n\n")
    np.testing.assert_array_equal(X, [[0.5, 0, 2], [0, 1, 0]])
    np.testing.assert_array_equal(y, [1, -1])
    with pytest.raises(DataError, match="every line must be 'label index:value"):
        real.read_libsvm(f"+1 1:1\n{line}\n".encode())


# Downloads


CONTENT = b"".join(b"+1 1:1 2:%d\n-1 3:1\n" % (k + 1) for k in range(500))


@pytest.fixture
def home(monkeypatch, tmp_path):
    """A temporary data folder, with the checksum of CONTENT for w1a."""
    monkeypatch.setenv(real.DATA_HOME_VARIABLE, str(tmp_path / "data"))
    monkeypatch.setitem(SETS, "w1a", replace(SETS["w1a"], sha256=hashlib.sha256(CONTENT).hexdigest()))
    return tmp_path / "data"


@pytest.fixture
def serve(monkeypatch):
    """Function that lets every download have a content and a status, and returns the list of addresses asked for."""

    def answer(content, status=200):
        asked = []

        def get(address, *, allow_redirects, **_):
            assert not allow_redirects
            asked.append(address)
            response = requests.Response()
            response.status_code, response.raw = status, io.BytesIO(content)
            return response

        monkeypatch.setattr(requests, "get", get)
        return asked

    return answer


@pytest.mark.parametrize("before", [None, CONTENT[:100]], ids=["no file", "a wrong file"])
def test_a_set_is_downloaded_once_without_a_word_and_loaded(home, before, serve, capfd):
    if before:
        home.mkdir()
        (home / "w1a").write_bytes(before)
    asked = serve(CONTENT)
    for _ in range(2):
        assert datasets.fetch("w1a") == home / "w1a"
    assert asked == [SETS["w1a"].url]
    assert datasets.load("w1a")[0].shape == (1000, 3)
    assert [entry.name for entry in home.iterdir()] == ["w1a"]
    assert capfd.readouterr() == ("", "")


def test_a_shipped_file_and_a_right_one_in_either_folder_are_not_downloaded(home, serve):
    (home / "libsvm").mkdir(parents=True)
    (home / "libsvm" / "w1a").write_bytes(CONTENT)
    asked = serve(b"")
    assert datasets.fetch("w1a") == home / "libsvm" / "w1a"
    assert datasets.fetch("heart").name == "heart.csv.gz"
    assert asked == []


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (CONTENT[:1000], 200, r"its sha256 differs.*no file was saved"),
        (b"<html>moved</html>", 200, r"its sha256 differs.*no file was saved"),
        (CONTENT, 200, r"its sha256 differs.*no file was saved"),
        (CONTENT, 404, r"status 404.*no file was saved"),
        (CONTENT, 302, "status 302"),
    ],
    ids=["broken off", "another file", "longer than the limit", "no file", "redirect"],
)
def test_what_cannot_be_downloaded_is_an_error_and_nothing_is_left(home, content, status, words, serve, monkeypatch):
    monkeypatch.setattr(real, "BLOCK", 100)
    monkeypatch.setattr(real, "MAX_BLOCKS", 20)
    serve(content, status)
    with pytest.raises(DataError, match=words):
        datasets.fetch("w1a")
    assert list(home.iterdir()) == []


def test_without_a_connection_the_error_says_where_the_file_may_be_put(home, monkeypatch):
    monkeypatch.setitem(SETS, "w1a", replace(SETS["w1a"], url="https://127.0.0.1:9/w1a"))
    with pytest.raises(DataError, match=rf"w1a \(ConnectionError\).*save the file of a mirror as {home}"):
        datasets.fetch("w1a")


HEADER = b"HTTP/1.0 200 OK\r\nContent-Length: 5000\r\n\r\n"


@pytest.fixture
def slow_server():
    """Function that returns the address of a server that sends some bytes at once, then one every 20 ms."""
    over = threading.Event()

    def address(at_once):
        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                self.rfile.readline()
                self.wfile.write(at_once)
                for byte in HEADER[len(at_once) :] + CONTENT:
                    if over.wait(0.02):
                        return
                    self.wfile.write(bytes([byte]))

        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        return f"http://127.0.0.1:{server.server_address[1]}/w1a"

    servers = []
    yield address
    over.set()
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("at_once", [b"", HEADER], ids=["the header", "the file"])
def test_a_server_that_sends_a_byte_now_and_then_holds_no_download_beyond_its_time_limit(
    home, at_once, slow_server, monkeypatch
):
    monkeypatch.setattr(real, "TIMEOUT", 0.3)
    monkeypatch.setitem(SETS, "w1a", replace(SETS["w1a"], url=slow_server(at_once)))
    started = time.perf_counter()
    with pytest.raises(DataError, match=r"within 0\.5 s; no file was saved\. Raise time_limit"):
        datasets.fetch("w1a", time_limit=0.5)
    assert 0.5 <= time.perf_counter() - started < 3.0
    assert list(home.iterdir()) == []


def test_the_time_limit_of_a_download_is_positive():
    with pytest.raises(ParameterError, match="time_limit = 0"):
        datasets.fetch("w1a", time_limit=0.0)
