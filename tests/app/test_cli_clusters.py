"""The program with more than two clusters, and with tables of more than two classes."""

import csv
import json

import numpy as np
import pytest

from diffrac_cvx.app.cli.program import run

CLASSES = ("ash", "elm", "oak")


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Three separate groups of twelve points, with their names."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 4.0], [4.0, -2.0], [-4.0, -2.0]])
    path = tmp_path_factory.mktemp("trees") / "trees.csv"
    lines = ["height,girth,tree"]
    for i in range(36):
        x = centres[i % 3] + 0.2 * rng.standard_normal(2)
        lines.append(f"{x[0]:.4f},{x[1]:.4f},{CLASSES[i % 3]}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def cluster(capsys, *arguments):
    status = run(["cluster", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.mark.parametrize("strategy", ["together", "splits"])
def test_three_clusters_are_found_and_set_against_three_classes(trees, capsys, strategy):
    arguments = ("--label", "tree", "--clusters", 3, "--strategy", strategy, "--ridge", 0.1, "--json")
    status, printed, _ = cluster(capsys, trees, *arguments)
    found = json.loads(printed)
    assert status == 0
    assert found["adjusted_rand_index"] == 1.0
    assert found["sizes"] == [12, 12, 12]
    assert found["crosstab"]["true"] == list(CLASSES)
    assert found["crosstab"]["found"] == [0, 1, 2]
    assert sorted(np.array(found["crosstab"]["counts"]).max(axis=1)) == [12, 12, 12]
    assert "clustering_error" not in found


def test_two_clusters_are_set_against_three_classes_too(trees, capsys):
    _, printed, _ = cluster(capsys, trees, "--label", "tree", "--json")
    found = json.loads(printed)
    assert np.sum(found["crosstab"]["counts"]) == 36
    assert 0.0 < found["adjusted_rand_index"] < 1.0


def test_a_person_reads_the_clusters_and_the_crosstab_and_the_file_has_a_value_for_each(trees, capsys, tmp_path):
    out = tmp_path / "labels.csv"
    _, printed, _ = cluster(capsys, trees, "--label", "tree", "--clusters", 3, "--ridge", 0.1, "--out", out)
    assert "12, 12 and 12 points" in printed
    lines = [line.split() for line in printed.splitlines()]
    assert sum(line[:1] == [name] and sorted(line[1:]) == ["0", "0", "12"] for name in CLASSES for line in lines) == 3
    rows = list(csv.DictReader(out.open()))
    assert list(rows[0]) == ["row", "label", "decision_0", "decision_1", "decision_2", "margin", "true"]
    values = np.array([[float(row[f"decision_{j}"]) for j in range(3)] for row in rows])
    assert np.argmax(values, axis=1).tolist() == [int(row["label"]) for row in rows]


def test_clusters_and_several_labels_exclude_each_other(trees, capsys):
    status, _, error = cluster(capsys, trees, "--label", "tree", "--clusters", 3, "--labels-count", 2)
    assert status == 2
    assert "not both" in error
    assert cluster(capsys, trees, "--label", "tree", "--clusters", 1)[0] == 2


def test_more_clusters_than_points_are_refused_in_words(trees, capsys):
    status, _, error = cluster(capsys, trees, "--label", "tree", "--clusters", 1000)
    assert status == 2
    assert "n_clusters = 1000 is more than the" in error


def test_the_report_shows_true_labels_of_any_number_of_classes(capsys, tmp_path):
    path, report = tmp_path / "many.csv", tmp_path / "report.html"
    rows = (f"{k + i / 5},{k * 7 % 11},kind {k}" for k in range(20) for i in range(3))
    path.write_text("\n".join(["height,width,kind", *rows]))
    cluster(capsys, path, "--label", "kind", "--report", report)
    page = report.read_text(encoding="utf-8")
    assert "The same points with their true labels." in page
    assert all(f"kind {k}" in page for k in range(20))


def test_the_report_has_a_picture_of_each_of_three_clusters(trees, capsys, tmp_path):
    report = tmp_path / "report.html"
    cluster(capsys, trees, "--label", "tree", "--clusters", 3, "--report", report)
    page = report.read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") >= 6
