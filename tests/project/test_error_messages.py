"""Invalid files, sizes and commands with the error and its words; other errors of the library are in messages.txt.

Inputs that are invalid for every function are in test_bad_input, penalty weights in test_penalty.
"""

import io
import os
import sys
import time
import zipfile

import numpy as np
import pytest
from packed import forged_npy, npy, npz

import diffrac_cvx as dc
from diffrac_cvx.app.cli.program import run_and_exit, run_command_line
from diffrac_cvx.app.page.data import planted_data, uploaded_data
from diffrac_cvx.app.page.ports import require_port
from diffrac_cvx.app.page.views import Setting
from diffrac_cvx.datasets import make_planted, read_table

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

X = np.random.default_rng(0).integers(-4, 5, (8, 3)).astype(float)
Y = np.where(np.arange(8) < 5, 1.0, -1.0)
F = dc.low_rank(X).F
NAN = np.array([[np.nan, 1.0], [0.0, 1.0]])
DATA, PARAMETER, RESOURCE = dc.DataError, dc.ParameterError, dc.ResourceError
TEXT = "name,age,income\n" + "".join(f"p{i},{20 + 30 * (i % 2) + i / 7:.2f},{i * 37 % 11}\n" for i in range(12))


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def table(name, content, **how):
    content = content.encode() if isinstance(content, str) else content
    return lambda: read_table(content, name=name, **how)


def estimator(**parameters):
    return lambda: dc.DiffracClustering(**parameters).fit(X)


FAULTS = {
    "a parameter just out of range": (lambda: dc.low_rank(X, 1.0 + 2.0**-52), PARAMETER, "nu = 1.0000000000000002 is"),
    "a weight just out of range": (
        lambda: dc.Penalty(lam=np.nextafter(1e100, 2e100)),
        PARAMETER,
        r"1.0000000000000002e\+100 ",
    ),
    "labels too many to pair": (lambda: dc.penalized_nu(np.ones((300_000, 1))), RESOURCE, "penalized_nu.*low_rank"),
    "directions too many to pair": (
        lambda: dc.v_space(np.broadcast_to(np.arange(2.0)[:, None], (2, 300_000))),
        RESOURCE,
        "v_space.*low_rank",
    ),
    "a start that is not finite": (lambda: dc.fista(X, start=np.full((3, 3), np.nan)), DATA, "start is nan at row 0"),
    "an absent solver": (lambda: dc.solve(dc.v_space(X), "CPLEXX"), PARAMETER, "'CPLEXX'.*CLARABEL"),
    "an option of another solver": (lambda: dc.solve(dc.v_space(X), "SCS", gap=1.0), PARAMETER, "SCS.*'gap'"),
    "too little memory": (
        lambda: dc.solve(dc.v_space(X), "SCS", memory_limit=1e-6),
        RESOURCE,
        "needs about.*low_rank and fista",
    ),
    "features too many for fista": (
        lambda: dc.fista(np.random.default_rng(0).standard_normal((2, 300_000)), penalty=dc.Penalty(c=0.1)),
        RESOURCE,
        "fista with 300000 features.*low_rank",
    ),
    "an infinite factor": (lambda: dc.rounding.kmeans_centered(F * np.inf), DATA, "F is (nan|-?inf)"),
    "an estimator's seed": (estimator(n_clusters=3, random_state="x"), ValueError, "'x'"),
    "one point for an estimator": (lambda: dc.DiffracClustering().fit(X[:1]), ValueError, "minimum of 2"),
    "an estimator's NaN": (lambda: dc.DiffracClustering().fit(NAN), ValueError, "NaN"),
    "an estimator not fitted": (lambda: dc.DiffracClustering().predict(X), ValueError, "not fitted"),
    "other features": (lambda: dc.DiffracClustering().fit(X).predict(X[:, :2]), ValueError, "2 features.*3 features"),
    "points that fit in no memory": (
        lambda: make_planted(10**15, 2),
        RESOURCE,
        "1000000000000000 points and 2 columns",
    ),
    "columns that fit in no memory": (lambda: make_planted(9, 2**63), RESOURCE, "9 points and 9223372036854775808"),
    "a spreadsheet": (table("t.xlsx", b"PK"), DATA, r"cannot be read"),
    "not an archive": (table("t.npz", b"PK\x03\x04 and no more"), DATA, "cannot be read as a .npz file"),
    "half an archive": (table("t.npz", npz(X=X)[:150]), DATA, "cannot be read as a .npz file"),
    "an archive of other things": (table("t.npz", zipped(X=b"no array")), DATA, "two-dimensional array X"),
    "an empty array file": (table("t.npy", b""), DATA, "cannot be read as a .npy file"),
    "a forged size": (table("t.npy", forged_npy((10**11, 3))), RESOURCE, "does not fit in memory"),
    "a forged sign": (table("t.npy", forged_npy((-5, 3))), DATA, "negative dimensions"),
    "half an array": (table("t.npy", npy(X)[:150]), DATA, "cannot be read as a .npy file"),
    "names of other features": (table("t.npz", npz(X=X, feature_names=["a"])), DATA, "cannot be read as a .npz file"),
    "labels of fewer points": (table("t.npz", npz(X=X, y=Y[:3])), DATA, r"y has shape \(3,\), but X has 8 rows"),
    "not Parquet": (table("t.parquet", b"PAR1"), DATA, "cannot be read as a .parquet file"),
    "text on the page": (lambda: uploaded_data(TEXT.encode(), "t.csv", None), DATA, "column 'name' contains text"),
    "planted data of no size": (lambda: planted_data(0, 1, 1, 0.0, 0.0, 0), PARAMETER, "n = 0"),
    "a lambda below 0 on the page": (lambda: Setting(lam=-1.0).penalty, PARAMETER, "lam = -1"),
    "a port out of range": (lambda: require_port(70_000), PARAMETER, "port = 70000 is not a valid port"),
}


@pytest.mark.parametrize(("call", "error", "words"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n\n\n" not in str(caught.value)


# The program: exit status 2, nothing on standard output, one line on standard error, and never a traceback

PROGRAM = {
    "an empty file": (["cluster", "empty.csv"], "is empty"),
    "one row": (["cluster", "one.csv"], "at least two"),
    "text": (["cluster", "good.csv"], "contains text"),
    "a folder": (["cluster", "folder.csv"], "is not a file"),
    "a broken link": (["cluster", "link.csv"], "is not a file"),
    "an absent file": (["cluster", "nowhere.csv"], "is not a file"),
    "an absent name": (["cluster", "nowhere"], "nor one of the data sets"),
    "nothing": (["cluster", ""], "is not a file"),
    "a name too long": (["cluster", "x" * 5000 + ".csv"], ""),
    "a damaged archive": (["cluster", "bad.npz"], "cannot be read as a .npz file"),
    "an empty archive": (["cluster", "empty.npz"], "cannot be read as a .npz file"),
    "a binary file": (["cluster", "binary.csv"], "zero bytes"),
    "values missing": (["cluster", "missing.csv"], "values are missing"),
    "nu": (["cluster", "heart", "--nu", "7"], "nu = 7 is outside"),
    "nu NaN": (["cluster", "heart", "--nu", "nan"], "nu = nan"),
    "nu in words": (["cluster", "heart", "--nu", "half"], "--nu"),
    "a ridge": (["cluster", "heart", "--ridge", "-1"], "ridge = -1"),
    "a lambda": (["cluster", "heart", "--lambda", "nan"], "lam = nan"),
    "a tolerance": (["cluster", "heart", "--tol", "0"], "tol = 0"),
    "a time limit": (["cluster", "heart", "--time-limit", "-3"], "time-limit = -3"),
    "a seed": (["cluster", "heart", "--seed", "-1"], "seed = -1"),
    "a solver": (["cluster", "heart", "--solver", "magic"], "solver = 'magic'"),
    "labels": (["cluster", "heart", "--n-labels", "2"], "unrecognized arguments"),
    "a label": (["cluster", "good.csv", "--reference-column", "town"], "no column 'town'"),
    "a label without a name": (["cluster", "good.csv", "--reference-column"], "expected one argument"),
    "an option": (["cluster", "heart", "--quickly"], "--quickly"),
    "no file": (["cluster"], "arguments are required: FILE"),
    "a command": (["dance"], "dance"),
    "a folder to write to": (["cluster", "heart", "--out", "."], "--out . is a folder"),
    "a folder for a report": (["cluster", "heart", "--report", "folder.csv"], "--report folder.csv is a folder"),
    "the table to write to": (["compare", "good.csv", "--out", "./good.csv"], "is an input"),
    "a full disk": (["cluster", "heart", "--out", "/dev/full"], "No space left"),
    "a folder that is absent": (["cluster", "heart", "--report", "no/r.html"], "r.html cannot be opened"),
    "a file for a folder": (["cluster", "heart", "--out", "one.csv/x.csv"], "Not a directory"),
    "a method": (["compare", "heart", "-m", "magic"], "unknown name 'magic'"),
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Use a folder with files of all kinds as the current one, without progress."""
    monkeypatch.setattr("diffrac_cvx.app.cli.console.FIRST_LINE_SECONDS", 1e6)
    for name, content in {
        "empty.csv": b"", "one.csv": b"a,b\n1,2\n", "good.csv": TEXT.encode(), "bad.npz": b"PK\x03\x04 no",
        "empty.npz": b"", "binary.csv": bytes(range(256)), "missing.csv": b"a,b\n1,2\n3,\n5,7\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "nowhere")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("arguments", "words"), PROGRAM.values(), ids=PROGRAM)
def test_the_program_says_in_one_line_what_is_wrong(arguments, words, files, capsys):
    if "/dev/full" in arguments and not os.path.exists("/dev/full"):
        pytest.skip("there is no device that is full")
    before = sorted(files.rglob("*"))
    status = run_command_line(arguments)
    error = capsys.readouterr().err
    assert status == 2
    assert error.startswith("error: ")
    assert all(line.startswith("try: ") for line in error.splitlines()[1:])
    assert words in error.splitlines()[0]
    assert "Traceback" not in error
    assert sorted(files.rglob("*")) == before


def test_a_table_that_cannot_be_read_by_this_user_is_one_line(files, capsys, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert run_command_line(["cluster", "good.csv"]) == 2
    error = capsys.readouterr().err
    assert "Permission denied" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [(MemoryError, "out of memory:"), (ZeroDivisionError, "internal error, please report it: ZeroDivisionError:")],
)
def test_an_error_that_should_not_happen_is_one_line(error, words, files, capsys, monkeypatch):
    def fail(*_, **__):
        raise error("this\nand that")

    monkeypatch.setattr("diffrac_cvx.app.cli.cluster.fit", fail)
    assert run_command_line(["cluster", "heart"]) == 2
    assert capsys.readouterr().err == f"error: {words} this and that\n"


GOOD_TABLES = {
    "a byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "semicolons": TEXT.replace(",", ";").encode(),
    "tabs": TEXT.replace(",", "\t").encode(),
    "Windows' line ends": TEXT.replace("\n", "\r\n").encode(),
    "old line ends": TEXT.replace("\n", "\r").encode(),
    "no last line end": TEXT.rstrip().encode(),
    "spaces after commas": TEXT.replace(",", ", ").encode(),
}


@pytest.mark.parametrize("content", GOOD_TABLES.values(), ids=GOOD_TABLES)
def test_a_table_is_read_however_it_was_saved(content):
    found, expected = (read_table(text, drop=["name"], name="t.csv") for text in (content, TEXT.encode()))
    np.testing.assert_array_equal(found.X, expected.X)
    assert found.names == expected.names


def test_two_columns_of_one_name_in_a_text_stay_apart():
    found = read_table(TEXT.replace("age,income", "age,age").encode(), drop=["name"], name="t.csv")
    assert found.names == ("age", "age (2)")


def test_names_that_a_terminal_cannot_show_end_no_command(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text(TEXT.replace("age", "âge \N{SNOWMAN}"), encoding="utf-8")
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", terminal := io.TextIOWrapper(shown, encoding="ascii"))
    monkeypatch.setattr(sys, "argv", ["diffrac-cvx", "cluster", str(tmp_path / "t.csv"), "--drop", "name"])
    with pytest.raises(SystemExit) as end:
        run_and_exit()
    terminal.flush()
    assert end.value.code == 0
    assert rb"\u2603" in shown.getvalue()


# Limits hold


BUSY = 2.0  # seconds that a busy machine may add


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("n", "d"), [(60, 2000), (3000, 300), (20, 100_000)])
def test_a_limit_on_a_comparison_is_one_on_all_methods(n, d):
    data = np.random.default_rng(0).standard_normal((n, d))
    found = dc.compare(data, penalty=dc.Penalty.l1(0.01), tol=1e-12, time_limit=5.0)
    assert sum(row["seconds"] for row in found.rows) < 6.0 + BUSY


def test_the_time_for_compiling_counts_and_ends_a_process_of_its_own():
    relaxation = dc.v_space(np.random.default_rng(0).standard_normal((60, 200)), penalty=dc.Penalty.l1(0.01))
    started = time.perf_counter()
    result = dc.solve(relaxation, "SCS", tol=1e-9, time_limit=0.5)
    assert time.perf_counter() - started < 0.5 + 1.0 + BUSY  # compiling takes more than two seconds
    assert result.status is dc.Status.USER_LIMIT
    assert (result.lower, result.upper) == (0.0, 1.0)


def test_a_problem_solved_in_a_process_of_its_own_gives_what_it_gives_here(monkeypatch):
    relaxation = dc.lifted(np.random.default_rng(0).standard_normal((20, 4)), 0.5, dc.Penalty(0.1, 0.2))
    here = dc.solve(relaxation, "SCS", time_limit=60.0)
    monkeypatch.setattr("diffrac_cvx.solvers.reference.QUICK_ROWS", 0)
    there = dc.solve(relaxation, "SCS", time_limit=60.0)
    assert (there.lower, there.upper, there.n_iter) == (here.lower, here.upper, here.n_iter)
    assert there.status is here.status
    np.testing.assert_array_equal(there.V, here.V)
