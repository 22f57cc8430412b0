"""Problems too large for the memory and invalid commands, with their words; other errors are in messages.txt."""

import io
import os
import sys
import time

import numpy as np
import pytest
from messages import TEXT

import diffrac_cvx as dc
from diffrac_cvx.app.cli.program import run_and_exit, run_command_line
from diffrac_cvx.datasets import make_planted

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: dc.fista(np.broadcast_to(np.arange(2.0)[:, None], (2, 300_000)), lam=0.1),
            "300000 features.*low_rank",
        ),
        (lambda: make_planted(10**15, 2), "1000000000000000 points and 2 columns"),
        (lambda: make_planted(9, 2**63), "9 points and 9223372036854775808"),
    ],
)
def test_what_fits_in_no_memory_is_refused(call, words):
    with pytest.raises(dc.ResourceError, match=words):
        call()


# The program: exit status 2, nothing on standard output, one line on standard error, and never a traceback

PROGRAM = {
    "text": (["cluster", "good.csv"], "text in column 'name'"),
    "a folder": (["cluster", "folder.csv"], "is not a file"),
    "an absent name": (["cluster", "nowhere"], "nor one of the data sets"),
    "a name too long": (["cluster", "x" * 5000 + ".csv"], ""),
    "a damaged archive": (["cluster", "bad.xlsx"], "cannot be read as a .xlsx file"),
    "a binary file": (["cluster", "binary.csv"], "zero bytes"),
    "nu": (["cluster", "heart", "--nu", "7"], "nu = 7 is outside"),
    "a time limit": (["cluster", "heart", "--time-limit", "-3"], "time-limit = -3"),
    "a solver": (["cluster", "heart", "--solver", "magic"], "solver = 'magic'"),
    "a label": (["cluster", "good.csv", "--classes", "town"], "no column 'town'"),
    "an option": (["cluster", "heart", "--quickly"], "--quickly"),
    "no file": (["cluster"], "arguments are required: FILE"),
    "a command": (["dance"], "dance"),
    "a folder to write to": (["cluster", "heart", "--out", "."], "--out . is a folder"),
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
        "one.csv": b"a,b\n1,2\n", "good.csv": TEXT.encode(), "bad.xlsx": b"PK\x03\x04 no",
        "binary.csv": bytes(range(256)),
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.csv").mkdir()
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


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError, "out of memory: this and that"),
        (PermissionError, "a file cannot be opened or written (this and that)"),
        (ZeroDivisionError, "internal error, please report it: ZeroDivisionError: this and that"),
    ],
)
def test_an_error_that_should_not_happen_is_one_line(error, words, files, capsys, monkeypatch):
    def fail(*_, **__):
        raise error("this\nand that")

    monkeypatch.setattr("diffrac_cvx.app.cli.cluster.fit", fail)
    assert run_command_line(["cluster", "heart"]) == 2
    assert capsys.readouterr().err == f"error: {words}\n"


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


def test_the_time_for_compiling_counts_and_ends_a_process_of_its_own():
    relaxation = dc.v_space(np.random.default_rng(0).standard_normal((60, 200)), penalty=dc.Penalty.l1(0.01))
    started = time.perf_counter()
    result = dc.solve(relaxation, "SCS", tol=1e-9, time_limit=0.5)
    assert time.perf_counter() - started < 3.5  # compiling takes more than two seconds, and a busy machine adds two
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
