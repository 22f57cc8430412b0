"""Command line: text output, JSON output and exit status."""

import argparse
import csv
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx import registry
from diffrac_cvx.app.cli import console, program
from diffrac_cvx.comparison import ReportTable
from diffrac_cvx.problem.result import Progress
from diffrac_cvx.registry import SolverRecord, baseline_method

TEXT = "name,age,income,city\n" + "".join(
    f"p{i},{20 + 30 * (i % 2) + i / 7:.2f},{i * 37 % 11},{'Oslo' if i % 2 else 'Rome'}\n" for i in range(24)
)
READ = ("--classes", "city", "--drop", "name")
SPLIT = (*READ, "--no-structure")  # the structure test takes seconds


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "my table.csv"
    path.write_text(TEXT)
    return str(path)


def test_a_strangers_table_gets_labels_a_proof_and_a_judgment(table, command, tmp_path):
    out = tmp_path / "labels.csv"
    status, printed, _ = command("cluster", table, *SPLIT, "--out", out)
    assert status == 0
    assert "Certified optimal: no split of these points costs less" in printed
    assert "clustering error 0.000" in printed
    rows = list(csv.DictReader(out.open()))
    assert [row["class"] for row in rows] == ["Rome", "Oslo"] * 12
    assert len({(row["cluster"], row["class"]) for row in rows}) == 2
    found = json.loads(command("cluster", table, *SPLIT, "--json")[1])
    assert found["exit"] == 0
    assert found["lower_bound"] <= found["upper_bound"]
    assert len(found["rows"]) == len(found["clusters"]) == 24
    assert found["adjusted_rand_score"] == 1.0


def test_a_table_that_pandas_wrote_with_its_default_names_has_all_its_points_and_no_more(tmp_path, command):
    points = np.round(np.random.default_rng(0).normal(size=(40, 4)), 3)
    pd.DataFrame(points).to_csv(tmp_path / "t.csv", index=False)
    status, printed, _ = command("cluster", tmp_path / "t.csv", "--json")
    found = json.loads(printed)
    assert (status, len(found["clusters"])) == (1, 40)  # pure noise
    assert "Read the table without a header" in found["notes"][0]
    assert json.loads(command("cluster", tmp_path / "t.csv", "--json", "--header", "no")[1])["rows"][-1] == 40


def test_features_are_ranked_by_what_they_do_and_not_by_their_units(tmp_path, command):
    rng = np.random.default_rng(0)
    signs = np.repeat([-1.0, 1.0], 30)
    decides, noise = 1e4 * (signs + 0.1 * rng.normal(size=60)), 1e-4 * rng.normal(size=60)
    pd.DataFrame({"noise": noise, "decides": decides}).to_csv(tmp_path / "t.csv", index=False)
    report = tmp_path / "r.html"
    _, printed, _ = command("cluster", tmp_path / "t.csv", "--no-structure", "--report", report)
    assert "Features by importance (coefficient per standard deviation): decides +" in printed
    assert re.findall(r"<tr><td>(noise|decides)</td>", report.read_text()) == 2 * ["decides", "noise"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["cluster", "--nu", "0"], "All points are in one cluster"),
        (["compare", "-m", "low_rank", "--nu", "0"], "small cluster"),
    ],
)
def test_a_split_that_is_no_answer_is_said_so_first_and_the_status_is_one(table, command, arguments, reason):
    name, *more = arguments
    status, printed, _ = command(name, table, *READ, *more)
    assert status == 1
    assert printed.startswith("WARNING: ")
    assert re.search(reason, printed)


def test_points_that_are_all_equal_are_no_answer(tmp_path, command):
    (tmp_path / "t.csv").write_text("age,income\n" + "1,2\n" * 5)
    status, printed, _ = command("cluster", tmp_path / "t.csv")
    assert (status, printed.startswith("WARNING: ")) == (1, True)
    assert "All points are in one cluster" in printed


# Tables


@pytest.mark.parametrize("on_terminal", [True, False])
def test_a_table_wraps_between_words_on_a_terminal_and_has_any_width_elsewhere(on_terminal, capsys, monkeypatch):
    rows = tuple((f"method {k}", 0.12345 + k, "\x1b[2Jclear") for k in range(2))
    shown = ReportTable(("method", "certified lower bound", "status of the solver " * 9), rows)
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: on_terminal)
    console.Console(argparse.Namespace(json=False, quiet=False, time_limit=None), 0.0).show_table(shown)
    printed = capsys.readouterr().out
    assert (max(map(len, printed.splitlines())) > 100) == (not on_terminal)
    assert [word for word in printed.split() if "." in word] == ["0.1235", "1.1235"]
    assert "\\x1b[2Jclear" in printed
    assert "\x1b" not in printed


# More columns than rows


@pytest.fixture
def wide(tmp_path):
    """A file of 30 rows and 45 columns, of which 3 differ between two classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 45))
    X[:, [4, 20, 33]] += 2.5 * np.repeat([1.0, -1.0], 15)[:, None]
    path = tmp_path / "wide.csv"
    pd.DataFrame(X, columns=[f"g{j}" for j in range(45)]).to_csv(path, index=False)
    return path


def test_the_features_that_carry_the_answer_are_counted_and_what_others_could_gain_is_the_distance_from_the_best(
    wide, command
):
    options = ("cluster", wide, "--no-structure", "--lambda", "0.12")
    status, printed, _ = command(*options)
    assert status == 0
    found = json.loads(command(*options, "--json")[1])
    assert set(found["selected_features"][:3]) == {"g4", "g20", "g33"}
    (line,) = [line for line in printed.splitlines() if "are selected" in line]
    count, gap = re.match(r"(\d+) of 45 features are selected; .* by more than ([\d.]+)\. All", line).groups()
    assert int(count) == len(found["selected_features"]) < 45
    assert found["label_gap"] <= float(gap) <= found["label_gap"] + 1e-4
    assert json.loads(command(*options, "--clusters", "3", "--json")[1])["selected_features"] is None


# Progress, limits, Ctrl-C


def test_progress_is_on_standard_error_and_not_with_quiet_or_json(table, command, monkeypatch):
    monkeypatch.setattr(console, "FIRST_LINE_SECONDS", 0.0)
    options = ("cluster", table, *SPLIT)
    _, printed, error = command(*options)
    assert error.startswith("0 s: ")
    assert "0 s: " not in printed
    assert command(*options, "--quiet") == (0, "", "")
    assert command(*options, "--json")[2] == ""


def interrupted(X, *, rng):
    signal.raise_signal(signal.SIGINT)
    raise AssertionError("Ctrl-C did not interrupt")


def test_ctrl_c_in_a_comparison_keeps_the_rows_that_are_finished(table, command, monkeypatch, tmp_path):
    monkeypatch.setitem(registry.BASELINES, "slow", baseline_method(interrupted, "nothing"))
    out = tmp_path / "c.csv"
    methods = ("-m", "low_rank", "-m", "slow", "-m", "alternating")
    status, printed, _ = command("compare", table, *methods, *READ, "--out", out)
    assert status == 130
    assert "stopped in slow, before alternating" in printed
    assert [row["method"] for row in csv.DictReader(out.open())] == ["low_rank"]


def test_ctrl_c_in_a_solver_keeps_its_bounds_and_the_labels(table, command, monkeypatch, tmp_path):
    def solver(X, nu, penalty, *, callback, **limits):
        def asked(now):
            if now.upper - now.lower < 1e-6:
                signal.raise_signal(signal.SIGINT)
            return callback(now)

        asked(Progress(0, 0.0, 0.0, 1.0))
        return dc.low_rank(X, nu, penalty, callback=asked, **{**limits, "tol": 1e-12})

    monkeypatch.setitem(registry.SOLVERS, "low_rank", SolverRecord(solver))
    out = tmp_path / "l.csv"
    status, printed, _ = command("cluster", table, *SPLIT, "--lambda", "0.01", "--out", out)
    assert status == 130
    assert "WARNING: Not converged: interrupted; the bounds are valid" in printed
    assert "Certified optimal: no split" in printed
    assert len(list(csv.DictReader(out.open()))) == 24


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_a_tolerance_that_is_not_met_is_exit_status_one(command):
    limits = ("--tol", "1e-9", "--time-limit", "0.05")
    status, printed, _ = command("cluster", "sonar", "--solver", "fista", "--lambda", "0.1", *limits)
    assert status == 1
    assert printed.startswith(("WARNING: Not converged: time limit reached", "WARNING: No clusters were found"))


# Reports and files


@pytest.mark.browser
@pytest.mark.parametrize("width", [420, 1280])
def test_nothing_of_the_report_is_off_the_page(command, tmp_path, width, browser):
    names = ["a feature with a long name, of many words", "a_feature_with_a_name_without_any_place_to_break", "c", "d"]
    X = dc.datasets.make_planted(40, 4, noise=0.1, rng=0).X
    pd.DataFrame(X, columns=names).assign(kind=["x", "y"] * 20).to_csv(tmp_path / "t.csv", index=False)
    report = tmp_path / "r.html"
    command("cluster", tmp_path / "t.csv", "--classes", "kind", "--clusters", "3", "--report", report)
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.parametrize(("name", "option"), [("cluster", "--out"), ("cluster", "--report"), ("compare", "--out")])
def test_the_table_that_is_read_is_never_written_over(name, option, table, command, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "link.csv").symlink_to(table)
    for target in (Path(table), tmp_path / "link.csv", tmp_path / "a" / ".." / "my table.csv"):
        status, printed, error = command(name, table, *READ, option, target)
        assert (status, printed) == (2, "")
        assert f"error: {option} {target} is an input, which it would overwrite" in error
    assert Path(table).read_text() == TEXT


def test_the_name_of_a_data_set_is_no_file_that_could_be_written_over(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, *_ = command("cluster", "heart", "--no-structure", "--out", "heart")
    assert (status, (tmp_path / "heart").read_text().count("\n")) == (0, 271)


# The installation


def test_the_program_is_installed_and_knows_its_version():
    command = [sys.executable, str(Path(sys.executable).parent / "diffrac-cvx"), "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == dc.__version__


def test_explore_hands_its_options_on(command, monkeypatch):
    seen = []
    ended = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(program.subprocess, "run", lambda command, **_: seen.append(command) or ended)
    assert command("explore", "--port", "2799", "--headless")[0] == 0
    assert seen[0][1:] == ["-m", "diffrac_cvx.app.page", "--port", "2799", "--headless"]
