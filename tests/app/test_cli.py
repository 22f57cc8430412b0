"""The command line: what a person reads, what a program reads, and how it ends."""

import csv
import html
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx import registry
from diffrac_cvx.app.cli import console
from diffrac_cvx.app.cli.options import RIDGE
from diffrac_cvx.app.cli.program import run
from diffrac_cvx.problem.result import Progress
from diffrac_cvx.registry import BaselineRecord, SolverRecord

TEXT = "name,age,income,city\n" + "".join(
    f"p{i},{20 + 30 * (i % 2) + i / 7:.2f},{i * 37 % 11},{'Oslo' if i % 2 else 'Rome'}\n" for i in range(24)
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "my table.csv"
    path.write_text(TEXT)
    return str(path)


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch):
    monkeypatch.setattr(console, "FIRST", 1e6)


def run_command(capsys, *arguments):
    status = run(list(map(str, arguments)))
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_strangers_table_gets_labels_a_proof_and_a_judgement(table, capsys, tmp_path):
    out = tmp_path / "labels.csv"
    status, printed, _ = run_command(capsys, "cluster", table, "--label", "city", "--drop", "name", "--out", out)
    assert status == 0
    assert "Proved: no split of these points costs less" in printed
    assert "clustering error 0.000" in printed
    rows = list(csv.DictReader(out.open()))
    assert [row["true"] for row in rows] == ["Rome", "Oslo"] * 12
    assert len({(row["label"], row["true"]) for row in rows}) == 2


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (lambda text: text, [], "2 columns do not hold numbers: 'name' (text: 'p0'"),
        (
            lambda text: text.replace("20.00", ""),
            ["--label", "city", "--drop", "name"],
            "values are missing in 1 of 24",
        ),
        (lambda text: text, ["--label", "town"], "there is no column 'town'"),
        (lambda text: text, ["--label", "city", "--drop", "name", "--nu", "7"], "nu = 7 is outside"),
        (lambda text: text, ["--label", "city", "--drop", "name", "--solver", "magic"], "solver = 'magic'"),
        (lambda _: "", [], "is empty"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_status_two(tmp_path, capsys, change, arguments, message):
    path = tmp_path / "t.csv"
    path.write_text(change(TEXT))
    status, _, error = run_command(capsys, "cluster", path, *arguments)
    assert status == 2
    assert message in error.splitlines()[0]
    assert all(line.startswith("try: ") for line in error.splitlines()[1:])
    assert "Traceback" not in error


def test_what_is_suggested_can_be_pasted_into_a_shell(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my table.csv").write_text(TEXT.replace("name,", "full name,"))
    _, _, error = run_command(capsys, "cluster", "my table.csv", "--quiet")
    suggested = error.splitlines()[1].removeprefix("try: ")
    assert suggested == "diffrac-cvx cluster 'my table.csv' --quiet --drop 'full name' --label city"
    assert run_command(capsys, *shlex.split(suggested)[1:]) == (0, "", "")


# A header of integers; one scale; no answer


def test_a_table_that_pandas_wrote_with_its_default_names_has_all_its_points_and_no_more(tmp_path, capsys):
    points = np.round(np.random.default_rng(0).normal(size=(40, 4)), 3)
    pd.DataFrame(points).to_csv(tmp_path / "t.csv", index=False)
    status, printed, _ = run_command(capsys, "cluster", tmp_path / "t.csv", "--json")
    found = json.loads(printed)
    assert (status, found["n"], len(found["labels"])) == (1, 40, 40)  # noise
    assert "(--no-header)" in found["notes"][0]
    _, printed, _ = run_command(capsys, "cluster", tmp_path / "t.csv", "--json", "--no-header")
    assert json.loads(printed)["n"] == 41


def test_features_are_ranked_by_what_they_do_and_not_by_their_units(tmp_path, capsys):
    rng = np.random.default_rng(0)
    signs = np.repeat([-1.0, 1.0], 30)
    decides, noise = 1e4 * (signs + 0.1 * rng.normal(size=60)), 1e-4 * rng.normal(size=60)
    pd.DataFrame({"noise": noise, "decides": decides}).to_csv(tmp_path / "t.csv", index=False)
    report = tmp_path / "r.html"
    _, printed, _ = run_command(capsys, "cluster", tmp_path / "t.csv", "--report", report)
    assert "Features by importance (coefficient per standard deviation): decides +" in printed
    rows = re.findall(r"<tr><td>(noise|decides)</td>", report.read_text())
    assert rows == ["decides", "noise"]
    out = tmp_path / "p.csv"
    run_command(capsys, "path", tmp_path / "t.csv", "--value", "0.01", "--no-standardize", "-o", out)
    (row,) = csv.DictReader(out.open())
    assert abs(float(row["w_decides"])) > 10 * abs(float(row["w_noise"]))


@pytest.mark.parametrize(
    ("text", "arguments", "reason"),
    [
        (TEXT, ["--nu", "0"], "all points in one cluster cost nothing"),
        (TEXT, ["--lambda", "1e6"], "One cluster of 24 points|no direction is better than none"),
        ("age,income,name,city\n" + "1,2,a,u\n" * 5, [], "All points are equal"),
    ],
    ids=["no preference", "large penalty", "constant"],
)
def test_a_split_that_is_no_answer_is_said_so_first_and_the_status_is_one(tmp_path, capsys, text, arguments, reason):
    (tmp_path / "t.csv").write_text(text)
    status, printed, _ = run_command(
        capsys, "cluster", tmp_path / "t.csv", "--label", "city", "--drop", "name", *arguments
    )
    assert status == 1
    assert printed.startswith("NO ANSWER: ")
    assert re.search(reason, printed)


def test_paths_and_comparisons_mark_what_is_no_answer(table, capsys):
    options = ("--label", "city", "--drop", "name")
    status, printed, _ = run_command(capsys, "path", table, *options, "--value", "0.001", "--value", "1e6")
    first, second = printed.splitlines()[-2:]
    assert status == 0
    assert not first.endswith(("one cluster", "no gain"))
    assert second.endswith(("one cluster", "no gain"))
    status, printed, _ = run_command(capsys, "path", table, *options, "--value", "1e6")
    assert (status, printed.startswith("NO ANSWER: ")) == (1, True)
    status, printed, _ = run_command(capsys, "compare", table, *options, "-m", "low_rank", "--nu", "0")
    assert status == 1
    assert printed.startswith("NO ANSWER: ")
    assert "no preference" in printed


# The penalty: weights, roots, the default


def test_the_penalty_is_given_by_weights_or_by_roots_and_is_the_estimators_by_default(table, capsys):
    options = (table, "--label", "city", "--drop", "name", "--json")

    def coefficients(*arguments):
        _, printed, _ = run_command(capsys, "cluster", *options, *arguments)
        return json.loads(printed)["coefficients"]

    assert coefficients() == coefficients("--ridge", "0.3")
    assert coefficients("--ridge", "0.09", "--lambda", "0.04") == coefficients("-a", "0.3", "-c", "0.2")
    assert coefficients("--ridge", "0.09") != coefficients("--ridge", "0.3")
    default = dc.DiffracClustering().get_params()
    assert (default["ridge"], default["lam"]) == (RIDGE, 0.0)
    status, _, error = run_command(capsys, "cluster", *options, "--ridge", "1", "-a", "1")
    assert (status, "give --ridge or its root -a, not both" in error) == (2, True)


# More columns than rows


@pytest.fixture
def wide(tmp_path):
    """A file of 30 rows and 45 columns, of which 3 differ between two groups."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 45))
    X[:, [4, 20, 33]] += 2.5 * np.repeat([1.0, -1.0], 15)[:, None]
    path = tmp_path / "wide.csv"
    pd.DataFrame(X, columns=[f"g{j}" for j in range(45)]).to_csv(path, index=False)
    return path


def test_a_lambda_is_suggested_once_where_there_are_more_columns_than_rows_and_none_is_given(wide, capsys):
    suggested = f"--lambda {0.3 * (np.log(45) / 30) ** 0.5:.2g}"
    lines = run_command(capsys, "cluster", wide, "--no-structure")[1].splitlines()
    (line,) = [line for line in lines if "with more columns" in line]
    assert line.startswith("Note: with more columns (45) than rows (30) an l1 weight finds groups ")
    assert line.endswith(f"try the same command with {suggested}.")
    half = run_command(capsys, "cluster", wide, "--no-structure", "--ridge", "0.15")[1]
    assert f"--lambda {0.15 * (np.log(45) / 30) ** 0.5:.2g}" in half
    for options in (suggested.split(), ["-c", "0.3"], ["--ridge", "0"], ["--clusters", "3"], ["--lambda", "0"]):
        assert "with more columns" not in run_command(capsys, "cluster", wide, "--no-structure", *options)[1], options


def test_a_table_with_as_many_rows_as_columns_gets_no_suggestion(table, capsys):
    printed = run_command(capsys, "cluster", table, "--label", "city", "--drop", "name")[1]
    assert "with more columns" not in printed


def test_the_features_that_carry_the_answer_are_counted_and_what_others_could_gain_is_the_distance_from_the_best(
    wide, capsys
):
    status, printed, _ = run_command(capsys, "cluster", wide, "--no-structure", "--lambda", "0.12")
    assert status == 0
    found = json.loads(run_command(capsys, "cluster", wide, "--no-structure", "--lambda", "0.12", "--json")[1])
    assert set(found["features_in_use"][:3]) == {"g4", "g20", "g33"}
    (line,) = [line for line in printed.splitlines() if "carry the answer" in line]
    count, gap = re.match(r"(\d+) of 45 features carry the answer; .* by more than ([\d.]+)\. Any", line).groups()
    assert int(count) == len(found["features_in_use"]) < 45
    assert found["label_gap"] <= float(gap) <= found["label_gap"] + 1e-4


def test_features_are_not_counted_where_no_l1_weight_chose_them_or_the_split_is_no_answer(wide, capsys):
    assert json.loads(run_command(capsys, "cluster", wide, "--no-structure", "--json")[1])["features_in_use"] is None
    three = run_command(capsys, "cluster", wide, "--no-structure", "--lambda", "0.12", "--clusters", "3", "--json")[1]
    assert json.loads(three)["features_in_use"] is None
    for options in ([], ["--lambda", "1e6"]):
        assert "the answer; no other set" not in run_command(capsys, "cluster", wide, "--no-structure", *options)[1]


# Progress, limits, Ctrl-C


def test_progress_is_on_standard_error_and_not_with_quiet_or_json(table, capsys, monkeypatch):
    monkeypatch.setattr(console, "FIRST", 0.0)
    options = ("cluster", table, "--label", "city", "--drop", "name")
    _, printed, error = run_command(capsys, *options)
    assert error.startswith("0 s: ")
    assert "0 s: " not in printed
    assert run_command(capsys, *options, "--quiet") == (0, "", "")
    assert run_command(capsys, *options, "--json")[2] == ""


def interrupted(X, *, rng):
    signal.raise_signal(signal.SIGINT)
    raise AssertionError("Ctrl-C did not interrupt")


def test_ctrl_c_in_a_comparison_keeps_the_rows_that_are_finished(table, capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(registry.BASELINES, "slow", BaselineRecord(interrupted, "nothing"))
    out = tmp_path / "c.csv"
    methods = ("-m", "low_rank", "-m", "slow", "-m", "alternating")
    options = ("--label", "city", "--drop", "name", "--out", out)
    status, printed, _ = run_command(capsys, "compare", table, *methods, *options)
    assert status == 130
    assert "stopped in slow, before alternating" in printed
    assert [row["method"] for row in csv.DictReader(out.open())] == ["low_rank"]


def test_ctrl_c_in_a_solver_keeps_its_bounds_and_the_labels(table, capsys, monkeypatch, tmp_path):
    def solver(X, nu, penalty, *, callback, **limits):
        def asked(now):
            if now.iteration:
                signal.raise_signal(signal.SIGINT)
            return callback(now)

        asked(Progress(0, 0.0, 0.0, 1.0))
        return dc.low_rank(X, nu, penalty, callback=asked, **{**limits, "tol": 1e-12})

    monkeypatch.setitem(registry.SOLVERS, "low_rank", SolverRecord("interrupted", solver))
    out = tmp_path / "l.csv"
    status, printed, _ = run_command(
        capsys, "cluster", table, "--label", "city", "--drop", "name", "--lambda", "0.01", "--out", out
    )
    assert status == 130
    assert "NOT FINISHED: it was stopped; the bounds below hold" in printed
    assert "Proved: no split" in printed
    assert len(list(csv.DictReader(out.open()))) == 24


def sleeping(X, *, rng):
    time.sleep(0.3)
    return np.sign(X[:, 0])


def test_a_limit_of_time_is_one_for_all_methods_and_all_values(monkeypatch):
    X = dc.datasets.make_planted(30, 3, noise=0.3, rng=0).X
    monkeypatch.setitem(registry.BASELINES, "slow", BaselineRecord(sleeping, "nothing"))
    found = dc.compare(X, methods=["slow", "low_rank", "alternating"], total_time=0.1)
    assert "the time was up before low_rank, alternating" in found.notes
    assert list(found.found) == ["slow"]
    path = dc.paths.lambda_path(X, np.geomspace(1e-4, 1e-2, 9), total_time=1e-6)
    assert len(path.parameter) == len(path.value) == len(path.reservations) == 1
    assert path.parameter[0] == pytest.approx(1e-2)


def test_a_path_that_is_stopped_keeps_what_was_solved():
    X, seen = dc.datasets.make_planted(30, 3, noise=0.1, rng=0).X, []
    path = dc.paths.nu_path(X, [0.25, 0.5, 1.0], progress=lambda nu: seen.append(nu) or nu < 0.5)
    assert seen == [1.0, 0.5, 0.25]
    np.testing.assert_array_equal(path.parameter, [0.5, 1.0])


def test_missing_values_are_dealt_with_as_asked(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text(TEXT.replace("20.00", "?"))
    for choice, n in (("drop", 23), ("mean", 24)):
        status, printed, _ = run_command(
            capsys, "cluster", path, "--label", "city", "--drop", "name", "--missing", choice
        )
        assert status == 0
        assert f"{n} points" in printed


def test_json_is_one_object_with_the_numbers_of_the_estimator(table, capsys):
    status, printed, _ = run_command(capsys, "cluster", table, "--label", "city", "--drop", "name", "--json")
    found = json.loads(printed)
    assert status == found["exit"] == 0
    assert found["lower_bound"] <= found["upper_bound"]
    assert found["n"] == len(found["labels"]) == 24
    assert found["adjusted_rand_index"] == 1.0


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_quiet_prints_nothing_and_a_tolerance_that_is_not_met_is_exit_status_one(capsys):
    assert run_command(capsys, "cluster", "heart", "--quiet") == (0, "", "")
    limits = ("--tol", "1e-9", "--time-limit", "0.05")
    status, printed, _ = run_command(capsys, "cluster", "sonar", "--solver", "fista", "--lambda", "0.1", *limits)
    assert status == 1
    assert printed.startswith(("NOT FINISHED: the time limit was reached", "NO ANSWER: no split was found before"))


def test_several_labels_are_found_at_once(capsys):
    status, printed, _ = run_command(capsys, "cluster", "heart", "--labels-count", "3", "--json")
    assert status == 0
    assert np.array(json.loads(printed)["labels"]).shape == (270, 3)


def test_three_clusters_are_compared_with_labels_of_any_number_of_classes(tmp_path, capsys):
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [6, 0], [0, 6]])[np.arange(60) % 3]
    frame = pd.DataFrame(centres + 0.3 * rng.normal(size=(60, 2)), columns=["a", "b"])
    frame.assign(kind=np.array(["x", "<b>y", "z"])[np.arange(60) % 3]).to_csv(tmp_path / "t.csv", index=False)
    out, report = tmp_path / "l.csv", tmp_path / "r.html"
    options = ("--clusters", "3", "--label", "kind", "-o", out, "--report", report)
    status, printed, _ = run_command(capsys, "cluster", tmp_path / "t.csv", *options)
    assert status == 0
    assert "Clusters of 20, 20 and 20 points." in printed
    assert "with the 3 true labels: adjusted Rand index 1.000" in printed
    (first, *_) = csv.DictReader(out.open())
    assert {"label", "decision_0", "decision_2", "true"} <= set(first)
    page = report.read_text()
    assert "&lt;b&gt;y" in page
    assert "<b>y" not in page


def test_the_report_holds_its_pictures_and_asks_for_nothing_from_elsewhere(table, capsys, tmp_path):
    report = tmp_path / "r.html"
    status, *_ = run_command(capsys, "cluster", table, "--label", "city", "--drop", "name", "--report", report)
    page = report.read_text()
    assert status == 0
    assert page.count('<img alt="') == page.count("data:image/png;base64,") >= 3
    assert not re.search(r'(src|href)="(?!data:)|<script|@import|url\(', page)


def test_the_report_says_what_it_is_of_and_what_every_number_means(table, capsys, tmp_path):
    report = tmp_path / "r.html"
    run_command(capsys, "cluster", table, "--label", "city", "--drop", "name", "--nu", "0", "--report", report)
    page = html.unescape(report.read_text())
    assert f"diffrac-cvx {dc.__version__}" in page
    assert str(date.today().year) in page
    assert page.index("NO ANSWER") < page.index("Cost of this split") < page.index("<h2>")
    numbers = re.search(r'<table class="numbers">(.*?)</table>', page, flags=re.DOTALL)[1]
    for row in re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>", numbers):
        assert len(row[2]) > 10, row
    assert {"cost", "proved lower bound", "adjusted Rand index"} <= set(re.findall(r"<tr><td>(.*?)</td>", numbers))
    assert "<td>Oslo</td>" in page
    assert "found cluster 0" in page


@pytest.mark.browser
@pytest.mark.parametrize("width", [420, 1280])
def test_nothing_of_the_report_is_off_the_page(capsys, tmp_path, width):
    from playwright.sync_api import sync_playwright

    names = [
        "a feature with a long name, of many words",
        "a_feature_with_a_name_without_any_place_to_break_it",
        "c",
        "d",
    ]
    X = dc.datasets.make_planted(40, 4, noise=0.1, rng=0).X
    pd.DataFrame(X, columns=names).assign(kind=["x", "y"] * 20).to_csv(tmp_path / "t.csv", index=False)
    report = tmp_path / "r.html"
    run_command(capsys, "cluster", tmp_path / "t.csv", "--label", "kind", "--clusters", "3", "--report", report)
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(report.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()


def test_the_program_in_the_report_gives_the_same_labels(table, capsys, tmp_path):
    report = tmp_path / "r.html"
    _, printed, _ = run_command(
        capsys, "cluster", table, "--label", "city", "--drop", "name", "--report", report, "--json"
    )
    program = html.unescape(re.search(r"<pre>(.*?)</pre>", report.read_text(), flags=re.DOTALL)[1])
    names: dict = {}
    exec(program, names)
    assert names["model"].labels_.tolist() == json.loads(printed)["labels"]


def test_compare_names_every_method_and_its_report_is_whole(table, capsys, tmp_path):
    report, rows = tmp_path / "c.html", tmp_path / "c.csv"
    status, printed, _ = run_command(
        capsys, "compare", table, "--label", "city", "--drop", "name", "--report", report, "--out", rows
    )
    assert status == 0
    methods = [row["method"] for row in csv.DictReader(rows.open())]
    assert len(methods) >= 8
    assert all(name in printed and name in report.read_text() for name in methods)
    assert "No disagreement" in printed


def test_compare_of_one_method_as_json(capsys):
    status, printed, _ = run_command(capsys, "compare", "heart", "--method", "low_rank", "--json")
    found = json.loads(printed)
    assert status == found["exit"] == 0
    assert found["rows"][0]["gap"] <= 1e-4
    assert found["rows"][0]["memory_MB"] is None


@pytest.mark.parametrize("over", ["lambda", "nu", "alpha"])
def test_a_path_has_a_row_for_each_value(over, table, capsys, tmp_path):
    out = tmp_path / "p.csv"
    status, printed, _ = run_command(
        capsys, "path", table, "--label", "city", "--drop", "name", "--over", over, "--points", "4", "--out", out
    )
    rows = list(csv.DictReader(out.open()))
    assert status == 0
    assert len(rows) == len(printed.strip().splitlines()) - 2 >= 3
    assert {"w_age", "w_income", "error"} <= set(rows[0])


def test_a_path_is_drawn_where_the_name_ends_like_a_picture(table, capsys, tmp_path):
    status, *_ = run_command(
        capsys, "path", table, "--label", "city", "--drop", "name", "--points", "3", "-o", tmp_path / "p.png"
    )
    assert status == 0
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("command", "option"),
    [("cluster", "--out"), ("cluster", "--report"), ("compare", "--out"), ("compare", "--report"), ("path", "--out")],
)
@pytest.mark.parametrize("how", ["as it is", "by a link", "from another folder"])
def test_the_table_that_is_read_is_never_written_over(command, option, how, table, capsys, tmp_path):
    places = {"as it is": Path(table), "by a link": tmp_path / "link.csv"}
    target = places.get(how, tmp_path / "a" / ".." / "my table.csv")
    (tmp_path / "a").mkdir()
    (tmp_path / "link.csv").symlink_to(table)
    status, printed, error = run_command(capsys, command, table, "--label", "city", "--drop", "name", option, target)
    assert (status, printed) == (2, "")
    assert f"error: {option} {target} is the table that is read" in error
    assert Path(table).read_text() == TEXT


@pytest.mark.parametrize("command", ["cluster", "compare"])
def test_two_results_in_one_file_are_refused(command, table, capsys, tmp_path):
    outputs = ("--out", tmp_path / "new.csv", "--report", tmp_path / "." / "new.csv")
    status, _, error = run_command(capsys, command, table, "--label", "city", "--drop", "name", *outputs)
    assert status == 2
    assert "is the file of --out too" in error
    assert not (tmp_path / "new.csv").exists()


def test_the_name_of_a_data_set_is_no_file_that_could_be_written_over(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, *_ = run_command(capsys, "cluster", "heart", "--out", "heart")
    assert (status, (tmp_path / "heart").read_text().count("\n")) == (0, 271)


def test_a_folder_that_cannot_be_written_is_one_line(table, capsys, tmp_path):
    status, _, error = run_command(
        capsys, "cluster", table, "--label", "city", "--drop", "name", "--out", tmp_path / "no" / "x.csv"
    )
    assert status == 2
    assert "x.csv cannot be opened or written (No such file" in error
    assert sum(line.startswith("error: ") for line in error.splitlines()) == 1


def test_the_doctor_finds_this_installation_well(capsys):
    status, printed, _ = run_command(capsys, "doctor", "--json")
    found = json.loads(printed)
    assert status == 0
    assert all(found["checks"].values())
    assert {"CLARABEL", "SCS"} <= set(found["solvers"])


def test_the_doctor_says_when_a_check_fails(capsys, monkeypatch):
    from diffrac_cvx.app.cli import doctor

    monkeypatch.setattr(doctor, "self_test", lambda: {"low_rank finds the planted labels": False})
    status, printed, _ = run_command(capsys, "doctor")
    assert status == 1
    assert "[FAILED] low_rank" in printed


def test_the_data_sets_are_listed_with_what_is_here(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("DIFFRAC_DATA_HOME", str(tmp_path))
    status, printed, _ = run_command(capsys, "datasets", "list", "--json")
    where = {row["name"]: row["where"] for row in json.loads(printed)["datasets"]}
    assert status == 0
    assert (where["heart"], where["w1a"], where["scene"]) == ("shipped", "to be fetched", "to be put there by hand")


def test_fetching_a_shipped_set_says_that_it_is_shipped(capsys):
    status, _, error = run_command(capsys, "datasets", "fetch", "heart")
    assert status == 2
    assert "shipped with the package" in error


def test_the_program_is_installed_and_knows_its_version():
    program = Path(sys.executable).parent / "diffrac-cvx"
    command = [sys.executable, str(program), "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == dc.__version__


def test_an_unknown_command_and_a_missing_file_end_with_status_two(capsys):
    assert run_command(capsys, "dance")[0] == 2
    status, _, error = run_command(capsys, "cluster", "nowhere")
    assert status == 2
    assert "data sets by name are heart" in error


def test_a_missing_package_is_one_line_that_says_how_to_get_it(table, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    for name in [name for name in sys.modules if name.startswith("diffrac_cvx.estimator")]:
        monkeypatch.delitem(sys.modules, name)
    status, _, error = run_command(capsys, "cluster", table, "--label", "city", "--drop", "name")
    assert status == 2
    assert "pip install 'diffrac-cvx[app]'" in error
    assert sum(line.startswith("error: ") for line in error.splitlines()) == 1


def test_explore_hands_its_port_on(monkeypatch):
    from diffrac_cvx.app.cli import program

    seen = []
    ended = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(program.subprocess, "run", lambda command, **_: seen.append(command) or ended)
    assert run(["explore", "--port", "2799", "--headless"]) == 0
    assert seen[0][1:] == ["-m", "diffrac_cvx.app.page", "--port", "2799", "--headless"]
