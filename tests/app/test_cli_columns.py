"""The command line: groups of columns and known signs."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest

from diffrac_cvx.app.cli.program import run


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(60) < 0.5
    frame = pd.DataFrame({
        "job": np.where(y, rng.choice([*"abc"], 60, p=[0.8, 0.1, 0.1]), rng.choice([*"abc"], 60, p=[0.1, 0.1, 0.8])),
        "size_x": rng.standard_normal(60) + 6 * y, "size_y": rng.standard_normal(60) + 6 * y,
        "noise_x": rng.standard_normal(60), "noise_y": rng.standard_normal(60),
    })  # fmt: skip
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return str(path)


def found_by(capsys, *arguments):
    status = run([*map(str, arguments), "--json"])
    return status, json.loads(capsys.readouterr().out)


USUAL = ("--one-hot", "job", "--no-structure", "--lambda", "0.05")


def test_a_category_is_used_or_left_out_whole_where_lambda_is_given(table, capsys):
    found = found_by(capsys, "cluster", table, *USUAL)[1]
    assert {name: group["columns"] for name, group in found["groups"].items()} == {
        "job": 3, "size_x": 1, "size_y": 1, "noise_x": 1, "noise_y": 1,
    }  # fmt: skip
    lengths = found["scaled_coefficients"]
    job = np.hypot(np.hypot(lengths["job=a"][0], lengths["job=b"][0]), lengths["job=c"][0])
    assert found["groups"]["job"]["length"] == pytest.approx(job)
    assert len({lengths[f"job={name}"][0] == 0.0 for name in "abc"}) == 1
    assert found_by(capsys, "cluster", table, *USUAL, "--groups", "none")[1]["groups"] is None
    assert found_by(capsys, "cluster", table, *USUAL[:3])[1]["groups"] is None


def test_prefixes_and_files_name_groups_and_what_is_printed_counts_their_columns(table, tmp_path, capsys):
    features = tmp_path / "features.csv"
    run(["cluster", table, "--drop", "job", *USUAL[2:], "--groups", "prefix", "--features", str(features)])
    said = capsys.readouterr().out
    assert "In use is 1 of 2 groups of columns: size (2 columns)." in said
    listed = pd.read_csv(features)
    assert list(listed["group"]) == ["size", "size", "noise", "noise"]
    assert (listed["marginal_gain_of_group"] > 0.0).tolist() == [True, True, False, False]
    (tmp_path / "groups.csv").write_text("column,group\njob=a,mine\nsize_x,mine\n")
    found = found_by(capsys, "cluster", table, *USUAL, "--groups", tmp_path / "groups.csv")[1]
    assert found["groups"]["mine"]["columns"] == 2
    assert len(found["groups"]) == 6


def test_known_signs_turn_the_clusters(table, capsys):
    for names in (("--nonnegative", "size_x,job=a"), ("--nonnegative", "size_x", "--nonnegative", "job=a")):
        found = found_by(capsys, "cluster", table, *USUAL, *names)[1]
        assert found["scaled_coefficients"]["size_x"][0] > 0.0
        assert found["scaled_coefficients"]["job=a"][0] >= 0.0
    other = found_by(capsys, "cluster", table, *USUAL, "--nonnegative", "job=c")[1]
    assert np.mean(np.asarray(other["labels"]) != found["labels"]) > 0.8


@pytest.mark.parametrize("more", [(), ("--prove", "--time-limit", "20")])
def test_the_program_of_the_report_finds_the_same_labels(table, tmp_path, capsys, more):
    report = tmp_path / "report.html"
    options = (*USUAL, "--nonnegative", "size_x", "--report", report, *more)
    found = found_by(capsys, "cluster", table, *options)[1]
    text = report.read_text()
    assert "<h2>Groups of columns</h2>" in text
    code = re.search(r"<h2>The same in Python</h2>\s*<pre>(.*?)</pre>", text, flags=re.DOTALL)[1]
    names = {}
    exec(html.unescape(code), names)
    labels = names["best"].labels > 0 if more else names["model"].labels_
    assert np.mean(labels == found["labels"]) in (0.0, 1.0)  # the search alone does not turn them
    if not more:
        np.testing.assert_array_equal(labels, found["labels"])


def test_a_path_has_the_lengths_of_groups_and_a_comparison_takes_them(table, tmp_path, capsys):
    out = tmp_path / "path.csv"
    how = ("--one-hot", "job", "--nonnegative", "size_x")
    assert run(["path", table, *how, "--points", "3", "--out", str(out), "--report", str(tmp_path / "p.html")]) == 0
    assert " groups " in capsys.readouterr().out
    written = pd.read_csv(out)
    np.testing.assert_allclose(
        written["group_job"], np.linalg.norm(written[["w_job=a", "w_job=b", "w_job=c"]], axis=1), atol=1e-12
    )
    assert (written["w_size_x"] >= 0.0).all()
    methods = ("-m", "low_rank", "-m", "v_space/CLARABEL", "-m", "penalized_nu/SCS")
    status, compared = found_by(capsys, "compare", table, *how, "--lambda", "0.1", *methods)
    assert status == 0
    assert compared["disagreements"] == []
    assert "it takes no groups of columns and no known signs" in compared["notes"][-1]


def test_auto_chooses_with_groups_and_signs(table, capsys):
    found = found_by(capsys, "cluster", table, *USUAL[:3], "--lambda", "auto", "--nonnegative", "size_x")[1]
    assert found["groups"]["job"]["columns"] == 3
    assert found["scaled_coefficients"]["size_x"][0] > 0.0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--nonnegative", "Size_x"), "--nonnegative names 'Size_x', which is no column; did you mean 'size_x'?"),
        (("--nonnegative", "job"), "--nonnegative names 'job', which is no column; its columns of 0 and 1 are job=a"),
        (("--nonnegative", "size_x", "--clusters", "3"), "splits in two: leave --clusters out"),
        (("--nonnegative", "size_x", "--clusters", "auto"), "splits in two: leave --clusters out"),
        (("--nonnegative", "size_x", "--labels-count", "2", "--ridge", "0.1"), "leave --labels-count out"),
        (("--groups", "prefx"), "'prefx' is no file, nor 'category' or 'prefix'"),
    ],
)
def test_what_is_wrong_with_the_options_is_said(table, capsys, options, says):
    assert run(["cluster", table, *USUAL, *options]) == 2
    assert says in capsys.readouterr().err


def test_groups_without_lambda_or_without_categories_are_remarked(table, capsys):
    run(["cluster", table, "--drop", "job", "--no-structure", "--groups", "prefix"])
    assert "used or left out as a whole by --lambda, which is 0" in capsys.readouterr().out
    assert run(["cluster", table, "--drop", "job", "--groups", "category", "--lambda", "0.1"]) == 2
    assert "no column of categories was read" in capsys.readouterr().err
    assert run(["path", table, "--one-hot", "job", "--over", "alpha", "--groups", "prefix"]) == 2
    assert "with --over alpha there is no penalty" in capsys.readouterr().err
