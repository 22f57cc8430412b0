"""Command line: feature groups and nonnegative coefficients."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest

COMMON_OPTIONS = ("--one-hot", "job", "--no-structure", "--lambda", "0.05")


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


@pytest.fixture
def found_by(command):
    """Return a function that runs a command and returns its JSON output."""
    return lambda name, *arguments: json.loads(command(name, *arguments, "--json")[1])


def test_a_category_is_used_or_left_out_whole_where_lambda_is_given(table, found_by):
    found = found_by("cluster", table, *COMMON_OPTIONS)
    assert list(found["feature_groups"]) == ["job", "size_x", "size_y", "noise_x", "noise_y"]
    lengths = [found["scaled_coefficients"][f"job={name}"][0] for name in "abc"]
    assert found["feature_groups"]["job"] == pytest.approx(np.linalg.norm(lengths))
    assert len({length == 0.0 for length in lengths}) == 1
    assert found_by("cluster", table, *COMMON_OPTIONS, "--feature-groups", "none")["feature_groups"] is None
    assert found_by("cluster", table, *COMMON_OPTIONS[:3])["feature_groups"] is None


def test_prefixes_and_files_name_groups_and_what_is_printed_counts_their_columns(table, tmp_path, command, found_by):
    options = ("--drop", "job", *COMMON_OPTIONS[2:], "--feature-groups", "prefix")
    assert "Selected feature groups, 1 of 2: size." in command("cluster", table, *options)[1]
    (tmp_path / "groups.csv").write_text("column,group\njob=a,mine\nsize_x,mine\n")
    found = found_by("cluster", table, *COMMON_OPTIONS, "--feature-groups", tmp_path / "groups.csv")
    assert "mine" in found["feature_groups"]
    assert len(found["feature_groups"]) == 6


def test_known_signs_turn_the_clusters(table, found_by):
    for names in (("--nonnegative", "size_x,job=a"), ("--nonnegative", "size_x", "--nonnegative", "job=a")):
        found = found_by("cluster", table, *COMMON_OPTIONS, *names)
        assert found["scaled_coefficients"]["size_x"][0] > 0.0
        assert found["scaled_coefficients"]["job=a"][0] >= 0.0
    other = found_by("cluster", table, *COMMON_OPTIONS, "--nonnegative", "job=c")
    assert np.mean(np.asarray(other["labels"]) != found["labels"]) > 0.8


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")  # the clusters are a column's two values
@pytest.mark.parametrize("more", [(), pytest.param(("--prove", "--time-limit", "20"), marks=pytest.mark.slow)])
def test_the_program_of_the_report_finds_the_same_labels(table, tmp_path, found_by, more):
    report = tmp_path / "report.html"
    found = found_by("cluster", table, *COMMON_OPTIONS, "--nonnegative", "size_x", "--report", report, *more)
    text = report.read_text()
    code = re.search(r"<h2>Python code</h2>\s*<pre>(.*?)</pre>", text, flags=re.DOTALL)[1]
    names = {}
    exec(html.unescape(code), names)
    labels = names["best"].labels > 0 if more else names["model"].labels_
    assert np.mean(labels == found["labels"]) in (
        (0.0, 1.0) if more else (1.0,)
    )  # the sign of the labels of the search alone is arbitrary


@pytest.mark.parametrize("kind", ["groups", "signs"])
def test_a_path_has_the_lengths_of_groups_or_signs_and_a_comparison_takes_them(
    table, tmp_path, command, found_by, kind
):
    out = tmp_path / "path.csv"
    how = ("--one-hot", "job", *(("--nonnegative", "size_x") if kind == "signs" else ()))
    status, printed, _ = command("path", table, *how, "--n-values", "3", "--out", out)
    assert (status, " groups " in printed) == ((0, True) if kind == "groups" else (1, False))  # the split is one column
    written = pd.read_csv(out)
    if kind == "groups":
        lengths = np.linalg.norm(written[["w_job=a", "w_job=b", "w_job=c"]], axis=1)
        np.testing.assert_allclose(written["group_job"], lengths, atol=1e-12)
    else:
        assert (written["w_size_x"] >= 0.0).all()
    methods = ("-m", "low_rank", "-m", "v_space/CLARABEL", "-m", "penalized_nu/SCS")
    compared = found_by("compare", table, *how, "--lambda", "0.1", *methods)
    assert (compared["exit"], compared["disagreements"]) == (0, [])
    words = {"groups": "it takes no feature groups", "signs": "it takes no l1 penalty and no sign constraints"}
    assert words[kind] in compared["notes"][-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("cluster --nonnegative Size_x", "--nonnegative: there is no column 'Size_x'; did you mean 'size_x'?"),
        (
            "cluster --nonnegative job",
            "--nonnegative: there is no column 'job'; its binary columns are job=a",
        ),
        ("cluster --nonnegative size_x --clusters 3", "nonnegative needs two clusters"),
        ("cluster --feature-groups prefx", "'prefx' is not a file, 'category' or 'prefix'"),
        ("cluster --drop job --feature-groups category --lambda 0.1", "no categorical features"),
    ],
)
def test_what_is_wrong_with_the_options_is_said(table, command, arguments, message):
    name, *more = arguments.split()
    usual = () if {"--drop", "--over"} & set(more) else COMMON_OPTIONS
    status, _, error = command(name, table, *usual, *more)
    assert status == 2
    assert message in error


def test_groups_without_lambda_are_remarked(table, command):
    printed = command("cluster", table, "--drop", "job", "--no-structure", "--feature-groups", "prefix")[1]
    assert "--feature-groups has no effect because --lambda" in printed
