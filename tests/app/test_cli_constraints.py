"""Command line: constraints on rows, and the search for the optimal clusters."""

import csv
import json
from html import unescape

import numpy as np
import pytest

import diffrac_cvx as dc

ROWS = 60


@pytest.fixture
def table(tmp_path):
    """Two classes of thirty rows, nine of them labelled, with two rows per patient."""
    rng = np.random.default_rng(0)
    y = np.arange(ROWS) % 2
    X = rng.standard_normal((ROWS, 3))
    X[:, 0] += 2.2 * y
    names = [["well", "sick"][k] if i < 9 else "" for i, k in enumerate(y)]
    lines = [f"{a:.4f},{b:.4f},{c:.4f},{names[i]},p{i % 2}{i // 4}" for i, (a, b, c) in enumerate(X)]
    (tmp_path / "rows.csv").write_text("\n".join(["height,girth,age,group,patient", *lines, ""]))
    return str(tmp_path / "rows.csv")


def test_a_report_says_that_no_split_that_respects_what_is_known_is_cheaper(table, command, tmp_path):
    report, out = tmp_path / "report.html", tmp_path / "labels.csv"
    arguments = (
        "--known",
        "group",
        "--must-link-column",
        "patient",
        "--prove",
        "--no-structure",
        "--report",
        report,
        "--out",
        out,
    )
    status, printed, _ = command("cluster", table, *arguments)
    assert status == 0
    assert "Certified optimal: no split that satisfies the constraints costs less by more than" in printed
    assert "cluster 0 is sick and cluster 1 is well" in printed
    text = report.read_text()
    assert "no split that satisfies the constraints costs less" in text
    assert "optimal value of the relaxation that was solved" not in text
    start = text.index("import pandas")
    namespace = {}
    exec(unescape(text[start : text.index("</pre>", start)]), namespace)
    rows = list(csv.DictReader(out.open()))
    labels = np.array([int(row["label"]) for row in rows])
    np.testing.assert_array_equal(namespace["model"].labels_, labels)
    assert all(labels[i] == 1 - i % 2 for i in range(9))
    decisions = np.array([float(row["decision"]) for row in rows])
    free = [i for i in range(12, ROWS) if i % 4 < 2]
    assert all((labels[i] == 1) == (decisions[i] + decisions[i + 2] > 0) for i in free)
    assert all(labels[i] == labels[i + 2] for i in range(0, ROWS, 4))


def test_what_is_proved_is_what_optimal_labels_proves(table, command):
    options = ("--drop", "group", "--drop", "patient", "--prove", "--tol", 1e-4, "--json", "--no-structure")
    status, printed, _ = command("cluster", table, *options)
    found = json.loads(printed)
    X = dc.datasets.read_table(table, drop=("group", "patient"), scaling="standardize").X
    best = dc.optimal_labels(X, ridge=0.3, tol=1e-4)
    assert status == 0
    assert found["finished"]
    assert not found["has_constraints"]
    assert found["lower_bound"] <= found["upper_bound"] == found["objective"]
    assert max(found["lower_bound"], best.lower) <= min(found["objective"], best.upper) + 1e-12
    assert abs(np.sum(2.0 * np.array(found["labels"]) - 1.0)) == abs(best.labels.sum())


def test_a_limit_of_time_leaves_by_how_much_a_split_could_be_cheaper(command, tmp_path):
    path = tmp_path / "noise.csv"
    np.savetxt(path, np.random.default_rng(0).standard_normal((150, 8)), delimiter=",")
    status, printed, _ = command(
        "cluster", path, "--prove", "--no-structure", "--time-limit", 0.5, "--cannot-link", "0,1"
    )
    assert status == 1
    assert "WARNING: Not converged: time limit reached" in printed
    assert "no split that satisfies the constraints costs less than" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--cannot-link 0,200", "there is no row 200. Give rows from 0 to 59"),
        ("--must-link 0", "Give two row numbers, such as --must-link 0,5"),
        ("--must-link 0,x", "is not a pair of rows"),
        ("--must-link 0,2 --cannot-link 2,0", "on points 0, 2"),
        ("--cannot-link 3,3", "on point 3"),
        ("--known nothing", "there is no column 'nothing' to set aside"),
        ("--known patient", "labels contains 30 classes"),
        ("--prove --clusters 3", "supports two clusters only"),
        ("--cannot-link 0,1 --clusters 3", "are about two clusters"),
    ],
)
def test_what_cannot_be_known_is_refused_in_words(table, command, arguments, message):
    columns_left = [name for name in ("group", "patient") if name not in arguments]
    dropped = [part for name in columns_left for part in ("--drop", name)]
    status, _, error = command("cluster", table, *dropped, *arguments.split())
    assert status == 2
    assert message in " ".join(error.split())


def test_a_column_without_an_entry_and_a_data_set_have_nothing_known(command, tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("a,b,group\n1,2,\n2,1,\n3,5,\n")
    assert "is empty. Label some rows" in " ".join(command("cluster", path, "--known", "group")[2].split())
    assert "--known does not apply to the data set" in " ".join(command("cluster", "heart", "--known", "y")[2].split())


def test_rows_that_belong_together_are_together_in_more_than_two_clusters(table, command):
    options = ("cluster", table, "--drop", "group", "--must-link-column", "patient", "--clusters", 3)
    status, printed, _ = command(*options, "--json")
    labels = json.loads(printed)["labels"]
    assert status in (0, 1)
    assert all(labels[i] == labels[i + 2] for i in range(0, ROWS, 4))
    assert "partition that satisfies the constraints" in command(*options)[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--must-link", "10,11", "--must-link", "11,12", "--cannot-link", "10,12"],
            ["on points 10, 11, 12"],
        ),
        (["--must-link", "3,7"], ["row 3 was left out, because values are missing"]),
        (["--must-link", "5,99"], ["there is no row 99. Give rows from 0 to 39"]),
        (["--known", "one"], ["contains only -1 and ill", "--unlabelled -1, or --unlabelled NaN"]),
    ],
)
def test_errors_on_constraints_count_the_rows_of_the_file(options, words, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 7},{'' if i == 3 else i % 5},{-1 if i % 4 else 'ill'}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,one", *rows]))
    drop = [] if "--known" in options else ["--drop", "one"]
    status, _, error = command("cluster", "t.csv", "--missing", "drop", "--no-structure", *drop, *options)
    assert status == 2
    assert all(word in error for word in words), error


def test_minus_one_in_a_column_of_known_labels_marks_unlabelled_rows_with_a_note(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    rows = [f"{4 * (i % 2) + i % 3},{i % 5},{['ill', 'well '][i % 2] if i < 6 else -1}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,state", *rows]))
    _, printed, error = command("cluster", "t.csv", "--known", "state", "--no-structure")
    assert "cluster 0 is ill and cluster 1 is well" in printed
    assert "note: -1 in labels marks unlabelled points" in error
    assert "--unlabelled" in error
    assert "note" not in command("cluster", "t.csv", "--known", "state", "--unlabelled", "-1", "--no-structure")[2]


def test_a_certificate_is_written_that_the_checker_accepts_and_a_split_that_changed_is_named(tmp_path, command):
    X, _ = dc.datasets.load("heart")
    table, file = tmp_path / "heart.csv", tmp_path / "heart.npz"
    np.savetxt(table, X, delimiter=",", header=",".join(f"c{i}" for i in range(13)), comments="")
    options = ("--ridge", 1, "--no-structure", "--prove", "--certificate", file)
    _, printed, _ = command("cluster", table, *options)
    assert "Certified optimal" in printed
    assert "Without the search the cost is 0.4" in printed
    given = dc.check_certificate(dc.datasets.read_table(table).X, file)
    assert given.bracket.gap < 1.1e-4
    status, _, error = command("cluster", table, "--certificate", file)
    assert status == 2
    assert "Add --prove" in error
