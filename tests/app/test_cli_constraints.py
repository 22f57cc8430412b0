"""Command line: constraints on rows and columns, and the search for the optimal clusters."""

import csv
import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
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
    options = ("--known", "group", "--must-link-column", "patient", "--prove", "--no-structure")
    status, printed, _ = command("cluster", table, *options, "--report", report, "--out", out)
    assert status == 0
    assert "Certified optimal: no split that satisfies the constraints costs less by more than" in printed
    assert "cluster 0 is sick and cluster 1 is well" in printed
    text = report.read_text()
    assert "no split that satisfies the constraints costs less" in text
    assert "optimal value of the relaxation that was solved" not in text
    start = text.index("import diffrac_cvx as dc")
    namespace = {}
    exec(unescape(text[start : text.index("</pre>", start)]), namespace)
    rows = list(csv.DictReader(out.open()))
    labels = np.array([int(row["cluster"]) for row in rows])
    np.testing.assert_array_equal(namespace["model"].labels_, labels)
    assert all(labels[i] == 1 - i % 2 for i in range(9))
    decisions = np.array([float(row["decision"]) for row in rows])
    free = [i for i in range(12, ROWS) if i % 4 < 2]
    assert all((labels[i] == 1) == (decisions[i] + decisions[i + 2] > 0) for i in free)
    assert all(labels[i] == labels[i + 2] for i in range(0, ROWS, 4))


def test_a_limit_of_time_leaves_by_how_much_a_split_could_be_cheaper(command, tmp_path):
    path = tmp_path / "noise.csv"
    np.savetxt(path, np.random.default_rng(0).standard_normal((400, 20)), delimiter=",")
    options = ("--prove", "--no-structure", "--time-limit", 0.5, "--cannot-link", "0,1")
    status, printed, _ = command("cluster", path, *options)
    assert status == 1
    assert "WARNING: Not converged: time limit reached" in printed
    assert "no split that satisfies the constraints costs less than" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--must-link 0", "Give two row numbers, such as --must-link 0,5"),
        ("--must-link 0,x", "is not a pair of rows"),
        ("--must-link 0,2 --cannot-link 2,0", "on points 0, 2"),
        ("--cannot-link 3,3", "on point 3"),
        ("--known nothing", "there is no column 'nothing'"),
        ("--known patient", "labels contains 30 classes"),
        ("--known empty", "column 'empty' of --known is empty. Label some rows"),
        ("--prove --clusters 3", "supports two clusters only"),
        ("--cannot-link 0,1 --clusters 3", "are about two clusters"),
    ],
)
def test_what_cannot_be_known_is_refused_in_words(table, command, arguments, message):
    text = Path(table).read_text().splitlines()
    Path(table).write_text("\n".join([f"{text[0]},empty", *(f"{line}," for line in text[1:])]))
    columns_left = [name for name in ("group", "patient", "empty") if name not in arguments]
    dropped = [part for name in columns_left for part in ("--drop", name)]
    status, _, error = command("cluster", table, *dropped, *arguments.split())
    assert status == 2
    assert message in " ".join(error.split())


def test_rows_that_belong_together_are_together_in_more_than_two_clusters(table, command):
    options = ("cluster", table, "--drop", "group", "--must-link-column", "patient", "--clusters", 3)
    status, printed, _ = command(*options, "--json")
    labels = json.loads(printed)["clusters"]
    assert status in (0, 1)
    assert all(labels[i] == labels[i + 2] for i in range(0, ROWS, 4))
    assert "partition that satisfies the constraints" in command(*options)[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--must-link 10,11 --must-link 11,12 --cannot-link 10,12", "on points 10, 11, 12"),
        ("--must-link 3,7", "row 3 was left out, because values are missing"),
        ("--must-link 5,99", "there is no row 99. Give rows from 0 to 39"),
        ("--known one", r"contains only -1 and ill.*--unlabelled -1, or --unlabelled NaN"),
    ],
)
def test_errors_on_constraints_count_the_rows_of_the_file(options, words, tmp_path, command):
    rows = [f"{i % 7},{'' if i == 3 else i % 5},{-1 if i % 4 else 'ill'}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,one", *rows]))
    drop = [] if "--known" in options else ["--drop", "one"]
    status, _, error = command("cluster", tmp_path / "t.csv", "--missing", "drop", *drop, *options.split())
    assert status == 2
    assert re.search(words, error), error


def test_minus_one_in_a_column_of_known_labels_marks_unlabelled_rows_with_a_note(tmp_path, command):
    rows = [f"{4 * (i % 2) + i % 3},{i % 5},{['ill', 'well '][i % 2] if i < 6 else -1}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,state", *rows]))
    options = ("cluster", tmp_path / "t.csv", "--known", "state", "--no-structure")
    _, printed, error = command(*options)
    assert "cluster 0 is ill and cluster 1 is well" in printed
    assert "note: -1 in labels marks unlabelled points" in error
    assert "--unlabelled" in error
    assert "note" not in command(*options, "--unlabelled", "-1")[2]


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


# Feature groups and nonnegative coefficients

COMMON_OPTIONS = ("--one-hot", "job", "--no-structure", "--lambda", "0.05")


@pytest.fixture
def features(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.5
    frame = pd.DataFrame({
        "job": np.where(y, rng.choice([*"abc"], 60, p=[0.8, 0.1, 0.1]), rng.choice([*"abc"], 60, p=[0.1, 0.1, 0.8])),
        "size_x": rng.standard_normal(60) + 6 * y, "size_y": rng.standard_normal(60) + 6 * y,
        "noise_x": rng.standard_normal(60), "noise_y": rng.standard_normal(60),
    })  # fmt: skip
    frame.to_csv(tmp_path / "table.csv", index=False)
    return str(tmp_path / "table.csv")


@pytest.fixture
def found_by(command):
    """Return a function that runs a command and returns its JSON output."""
    return lambda name, *arguments: json.loads(command(name, *arguments, "--json")[1])


def test_a_category_is_used_or_left_out_whole_where_lambda_is_given(features, found_by):
    found = found_by("cluster", features, *COMMON_OPTIONS)
    assert list(found["feature_groups"]) == ["job", "size_x", "size_y", "noise_x", "noise_y"]
    lengths = [found["scaled_coefficients"][f"job={name}"][0] for name in "abc"]
    assert found["feature_groups"]["job"] == pytest.approx(np.linalg.norm(lengths))
    assert len({length == 0.0 for length in lengths}) == 1
    assert found_by("cluster", features, *COMMON_OPTIONS, "--feature-groups", "none")["feature_groups"] is None
    assert found_by("cluster", features, *COMMON_OPTIONS[:3])["feature_groups"] is None


def test_prefixes_and_files_name_groups_and_what_is_printed_counts_their_columns(features, tmp_path, command, found_by):
    options = ("--drop", "job", *COMMON_OPTIONS[2:], "--feature-groups", "prefix")
    assert "Selected feature groups, 1 of 2: size." in command("cluster", features, *options)[1]
    (tmp_path / "groups.csv").write_text("column,group\njob=a,mine\nsize_x,mine\n")
    found = found_by("cluster", features, *COMMON_OPTIONS, "--feature-groups", tmp_path / "groups.csv")
    assert "mine" in found["feature_groups"]
    assert len(found["feature_groups"]) == 6


def test_known_signs_turn_the_clusters(features, found_by):
    for names in (("--nonnegative", "size_x,job=a"), ("--nonnegative", "size_x", "--nonnegative", "job=a")):
        found = found_by("cluster", features, *COMMON_OPTIONS, *names)
        assert found["scaled_coefficients"]["size_x"][0] > 0.0
        assert found["scaled_coefficients"]["job=a"][0] >= 0.0
    other = found_by("cluster", features, *COMMON_OPTIONS, "--nonnegative", "job=c")
    assert np.mean(np.asarray(other["clusters"]) != found["clusters"]) > 0.8


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")  # the clusters are a column's two values
@pytest.mark.parametrize("signs", [(), ("--nonnegative", "size_x")])
def test_the_program_of_the_report_finds_the_same_labels(features, tmp_path, found_by, signs):
    found = found_by("cluster", features, *COMMON_OPTIONS, *signs, "--report", tmp_path / "report.html")
    text, names = unescape((tmp_path / "report.html").read_text()), {}
    exec(re.search(r"<h2>Python code</h2>\s*<pre>(.*?)</pre>", text, flags=re.DOTALL)[1], names)
    np.testing.assert_array_equal(names["model"].labels_, found["clusters"])


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ((), "it takes no feature groups"),
        (("--nonnegative", "size_x"), "it takes no l1 penalty and no sign constraints"),
    ],
)
def test_a_comparison_takes_groups_or_signs(features, found_by, options, note):
    methods = ("-m", "low_rank", "-m", "v_space/CLARABEL", "-m", "penalized_nu/SCS")
    compared = found_by("compare", features, "--one-hot", "job", *options, "--lambda", "0.1", *methods)
    assert (compared["exit"], compared["disagreements"]) == (0, [])
    assert note in compared["notes"][-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--nonnegative Size_x", "--nonnegative: there is no column 'Size_x'. Did you mean 'size_x'?"),
        ("--nonnegative job", "--nonnegative: there is no column 'job'; its binary columns are job=a"),
        ("--nonnegative size_x --clusters 3", "nonnegative needs two clusters"),
        ("--feature-groups prefx", "'prefx' is not a file, 'category' or 'prefix'"),
        ("--drop job --feature-groups category --lambda 0.1", "no categorical features"),
    ],
)
def test_what_is_wrong_with_the_options_is_said(features, command, arguments, message):
    usual = () if "--drop" in arguments else COMMON_OPTIONS
    status, _, error = command("cluster", features, *usual, *arguments.split())
    assert status == 2
    assert message in error


def test_groups_without_lambda_are_remarked(features, command):
    printed = command("cluster", features, "--drop", "job", "--no-structure", "--feature-groups", "prefix")[1]
    assert "--feature-groups has no effect because --lambda" in printed
