"""The answer of a clustering: one record, the same numbers in the terminal, the report, the JSON and Python."""

import html
import json
import re

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.app import render
from diffrac_cvx.app.cli import cluster
from diffrac_cvx.app.cli.options import Parser, add_parameters, parameter_texts
from diffrac_cvx.estimators import DiffracClustering
from diffrac_cvx.plotting import ProjectionDisplay
from diffrac_cvx.problem.formatting import format_upper


def blobs(rng, k, n=60, d=4, shift=6.0):
    X = rng.standard_normal((n, d))
    return X + shift * np.eye(k, d)[np.arange(n) % k], np.arange(n) % k


def noise(rng, n, d):
    return rng.standard_normal((n, d)), None


TABLES = {  # points with reference labels or None, and options
    "two groups": (lambda rng: blobs(rng, 2), ()),
    "two groups, few features": (lambda rng: blobs(rng, 2, d=8), ("--lambda", "0.1")),
    "proved": (lambda rng: blobs(rng, 2, n=40, d=3, shift=2.0), ("--prove", "--time-limit", "20")),
    "three groups": (lambda rng: blobs(rng, 3), ("--clusters", "3")),
    "four groups of three classes": (lambda rng: (blobs(rng, 4)[0], np.arange(60) % 3), ("--clusters", "4")),
    "noise": (lambda rng: noise(rng, 80, 3), ()),
    "one feature": (lambda rng: noise(rng, 40, 1), ()),
    "more columns than rows": (lambda rng: noise(rng, 20, 40), ()),
    "one cluster": (lambda rng: blobs(rng, 2), ("--nu", "0")),
    "constraints": (lambda rng: blobs(rng, 2), ("--must-link", "0,1", "--cannot-link", "0,2")),
}


@pytest.fixture(params=TABLES)
def case(request, tmp_path):
    """Return the arguments of `cluster` for a table, and its reference labels or None."""
    made, options = TABLES[request.param]
    X, classes = made(np.random.default_rng(0))
    head = [*(f"c{j}" for j in range(X.shape[1])), *([] if classes is None else ["who"])]
    lines = [[f"{value:.6f}" for value in row] for row in X]
    lines = lines if classes is None else [[*row, f"k{label}"] for row, label in zip(lines, classes, strict=True)]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(",".join(row) for row in [head, *lines]) + "\n")
    label = () if classes is None else ("--classes", "who")
    return (path, *label, "--no-structure", *options), classes


def test_terminal_report_json_and_python_have_the_numbers_of_one_record(case, command, tmp_path, monkeypatch):
    arguments, classes = case
    seen, drawn, draw = [], [], ProjectionDisplay.from_estimator
    for name in ("terminal_lines", "html_report"):
        function = getattr(cluster, name)
        monkeypatch.setattr(
            cluster, name, lambda answer, *more, function=function: seen.append(answer) or function(answer, *more)
        )
    monkeypatch.setattr(
        ProjectionDisplay, "from_estimator", lambda model, X, y, **how: drawn.append(y) or draw(model, X, y, **how)
    )
    status, printed, _ = command("cluster", *arguments, "--report", tmp_path / "r.html")
    answer, other = seen
    assert answer is other
    assert np.array_equal(drawn[0], answer.clusters), "points are counted by cluster, also for more than two"
    page = html.unescape((tmp_path / "r.html").read_text())
    for sentence in (*render.warning_sentences(answer), *render.summary_sentences(answer)):
        assert sentence in page
        assert sentence in printed
        assert "nan" not in re.findall(r"\w+", sentence)
    found = json.loads(command("cluster", *arguments, "--json")[1])
    assert status == found["exit"] == int(answer.has_warnings)
    names: dict = {}
    exec(answer.code, names)
    model = names["model"]
    assert found["clusters"] == answer.clusters.tolist() == model.labels_.tolist()
    assert found["objective"] == answer.objective >= answer.lower_bound == found["lower_bound"]
    assert "try" not in re.findall(r"\w+", printed), "no command is suggested that was not tried"
    assert answer.lower_bound + answer.label_gap == pytest.approx(model.lower_bound_ + model.label_gap_, abs=1e-6)
    assert list(answer.sizes) == [np.sum(model.labels_ == k) for k in range(len(answer.sizes))]
    assert sum(answer.sizes) == len(answer.rows)
    if classes is not None:
        assert answer.adjusted_rand_score == dc.metrics.adjusted_rand_score(classes, model.labels_)
        assert answer.contingency_matrix.counts.sum() == len(classes)
        assert ("clustering error" in printed) == (answer.clustering_error is not None) == (max(classes) == 1)


def test_cluster_and_compare_print_the_same_number_for_the_same_labels(command, tmp_path):
    rng, n_same = np.random.default_rng(0), 0
    for shift in (2.0, 3.0, 6.0):
        X, _ = blobs(rng, 2, shift=shift)
        np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="a,b,c,d", comments="")
        (printed, compared), (said, found) = (
            (command(*options)[1], json.loads(command(*options, "--json")[1]))
            for options in (
                ("compare", tmp_path / "t.csv", "-m", "low_rank", "-m", "k-means"),
                ("cluster", tmp_path / "t.csv", "--no-structure"),
            )
        )
        assert "parameters: nu 1, lambda 0, ridge 0.3" in printed
        assert "nu 1, lambda 0, ridge 0.3" in said
        labels = {
            name: dc.compare((X - X.mean(0)) / X.std(0), methods=[name], ridge=0.3).labels[name]
            for name in ("low_rank", "k-means")
        }
        for row in compared["rows"]:
            if abs(labels[row["method"]] @ (2.0 * np.array(found["clusters"]) - 1.0)) == len(X):
                n_same += 1
                assert row["objective"] == pytest.approx(found["objective"], abs=1e-9)
                assert f"Cost of this split: {format_upper(row['objective'])} (0 best" in said
                assert format_upper(row["objective"]) in printed
    assert n_same >= 3


def test_an_option_has_the_text_and_the_default_of_the_parameter():
    parser = Parser("cluster", cluster.main)
    add_parameters(parser, DiffracClustering, ("ridge", "lam", "tol", "solver"))
    texts = parameter_texts(DiffracClustering)
    said = " ".join(parser.format_help().split())
    assert texts["ridge"][1].startswith("Weight of the ridge: larger values favour directions of large variance.")
    assert "Weight of the ridge: larger values favour directions of large variance." in said
    assert parser.parse_args([]).ridge == DiffracClustering().ridge
    assert parser.parse_args(["-l", "0.5"]).lam == 0.5
    assert "Default: 0.0001." in said
    assert "low_rank|fista|fista published" in said
    with pytest.raises(dc.ParameterError, match="invalid float value: 'much'"):
        parser.parse_args(["--ridge", "much"])


def test_auto_finds_the_number_of_clusters_and_says_how(command, tmp_path):
    X, _ = blobs(np.random.default_rng(0), 3, n=90)
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", header="a,b,c,d", comments="")
    printed = command("cluster", tmp_path / "t.csv", "--clusters", "auto", "--no-structure")[1]
    assert "Note: 3 clusters, chosen from 2 to 8 by prediction strength across half-samples." in printed
    assert "Clusters of 30, 30 and 30 points." in printed
    (tmp_path / "small.csv").write_text("a,b\n" + "1,2\n3,5\n" * 2)
    assert "needs 6 points or more, not 4" in command("cluster", tmp_path / "small.csv", "--clusters", "auto")[2]
