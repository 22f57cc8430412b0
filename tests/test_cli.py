"""The command line: what a person reads, what a program reads, and how it ends."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.app.cli.program import run

TEXT = "name,age,income,city\n" + "".join(
    f"p{i},{20 + 30 * (i % 2) + i / 7:.2f},{i * 37 % 11},{'Oslo' if i % 2 else 'Rome'}\n" for i in range(24)
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "my table.csv"
    path.write_text(TEXT)
    return str(path)


def run_command(capsys, *arguments):
    status = run(list(map(str, arguments)))
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_strangers_table_gets_labels_a_proof_and_a_judgement(table, capsys, tmp_path):
    out = tmp_path / "labels.csv"
    status, printed, _ = run_command(capsys, "cluster", table, "--label", "city", "--drop", "name", "--out", out)
    assert status == 0
    assert "proved to lie in" in printed
    assert "clustering error 0.000" in printed
    rows = list(csv.DictReader(out.open()))
    assert [row["true"] for row in rows] == ["Rome", "Oslo"] * 12
    assert len({(row["label"], row["true"]) for row in rows}) == 2


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
    assert "reservation: " in printed


def test_several_labels_are_found_at_once(capsys):
    status, printed, _ = run_command(capsys, "cluster", "heart", "--labels-count", "3", "--json")
    assert status == 0
    assert np.array(json.loads(printed)["labels"]).shape == (270, 3)


def test_the_report_holds_its_pictures_and_asks_for_nothing_from_elsewhere(table, capsys, tmp_path):
    report = tmp_path / "r.html"
    status, *_ = run_command(capsys, "cluster", table, "--label", "city", "--drop", "name", "--report", report)
    page = report.read_text()
    assert status == 0
    assert page.count('<img alt="') == page.count("data:image/png;base64,") >= 3
    assert not re.search(r'(src|href)="(?!data:)|<script|@import|url\(', page)


def test_the_program_in_the_report_gives_the_same_labels(table, capsys, tmp_path):
    import html

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
    assert len(rows) == len(printed.strip().splitlines()) - 2 >= 4
    assert {"w_age", "w_income", "error"} <= set(rows[0])


def test_a_path_is_drawn_where_the_name_ends_like_a_picture(table, capsys, tmp_path):
    status, *_ = run_command(
        capsys, "path", table, "--label", "city", "--drop", "name", "--points", "3", "-o", tmp_path / "p.png"
    )
    assert status == 0
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


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


def test_a_missing_package_is_one_line_that_says_how_to_get_it(table, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    for name in [name for name in sys.modules if name.startswith("diffrac_cvx.estimator")]:
        monkeypatch.delitem(sys.modules, name)
    status, _, error = run_command(capsys, "cluster", table, "--label", "city", "--drop", "name")
    assert status == 2
    assert "pip install 'diffrac-cvx[app]'" in error
    assert error.count("\n") == 1


def test_explore_hands_its_port_on(monkeypatch):
    from diffrac_cvx.app.cli import program

    seen = []
    ended = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(program.subprocess, "run", lambda command, **_: seen.append(command) or ended)
    assert run(["explore", "--port", "2799", "--headless"]) == 0
    assert seen[0][1:] == ["-m", "diffrac_cvx.app.page", "--port", "2799", "--headless"]
