"""The report and the file of --out: means by cluster, held-out scores, IDs of the rows, figures."""

import csv
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.app import render
from diffrac_cvx.app.answer import compare_clusters


def write(path, X, names, **columns):
    """Write a table with columns of text before its features."""
    lines = [[*columns, *names], *([*texts, *row] for *texts, row in zip(*columns.values(), X.tolist(), strict=True))]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
    return path


@pytest.fixture
def people(tmp_path):
    """A table of 24 persons in two groups by height, with IDs that are no numbers."""
    rng = np.random.default_rng(0)
    X = np.column_stack([160 + 20 * (np.arange(24) % 2) + rng.standard_normal(24), rng.standard_normal(24) / 1000])
    ids = [f"{7 * i % 24:03d}" for i in range(24)]
    return write(tmp_path / "people.csv", X.round(6), ["height (cm)", "noise [kg]"], person=ids), X, ids


def rows_of(path):
    return list(csv.DictReader(path.open()))


# IDs


def test_the_output_is_joined_by_the_ids_as_the_file_has_them(people, command, tmp_path):
    path, _, ids = people
    model = tmp_path / "model.npz"
    first, again = tmp_path / "first.csv", tmp_path / "again.csv"
    command("cluster", path, "--id", "person", "--no-structure", "--out", first, "--save", model)
    assert list(rows_of(first)[0]) == ["person", "row", "cluster", "decision"]
    assert [row["person"] for row in rows_of(first)] == ids
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([head, *reversed(lines)]) + "\n")
    command("predict", model, path, "--id", "person", "--out", again)
    clusters = {row["person"]: row["cluster"] for row in rows_of(first)}
    assert clusters == {row["person"]: row["cluster"] for row in rows_of(again)}
    assert [row["person"] for row in rows_of(again)] == ids[::-1]
    assert set(clusters.values()) == {"0", "1"}


def test_ids_that_do_not_identify_the_rows_are_noted_and_a_column_that_does_not_exist_is_an_error(
    people, command, tmp_path
):
    path = people[0]
    path.write_text(path.read_text().replace("\n007,", "\n014,"))
    printed = command("cluster", path, "--id", "person", "--no-structure")[1]
    assert "Note: column 'person' of --id does not identify the rows: 1 of 24 entries are repeated." in printed
    assert "you mean 'person'?" in command("cluster", path, "--id", "persn")[2]
    assert "--id does not apply to the data set 'heart'" in command("cluster", "heart", "--id", "x1")[2]


def test_an_id_with_the_name_of_another_column_of_the_output_keeps_both(people, command, tmp_path):
    path, out = people[0], tmp_path / "out.csv"
    path.write_text(path.read_text().replace("person", "cluster"))
    command("cluster", path, "--id", "cluster", "--no-structure", "--out", out)
    assert list(rows_of(out)[0]) == ["cluster (id)", "row", "cluster", "decision"]


# Means by cluster


def test_means_and_separations_are_those_of_the_formula():
    X = np.array([[0.0, 5.0, 1.0], [2.0, 5.0, 1.0], [10.0, 5.0, 2.0], [12.0, 5.0, 2.0]])
    means, separations = compare_clusters(X, np.array([0, 0, 1, 1]), 2)
    np.testing.assert_array_equal(means, [[1.0, 5.0, 1.0], [11.0, 5.0, 2.0]])
    np.testing.assert_array_equal(separations, [10.0, 0.0, np.inf])
    means, separations = compare_clusters(X, np.zeros(4, dtype=int), 2)
    assert np.isnan(means[1]).all()
    np.testing.assert_array_equal(separations, [0.0, 0.0, 0.0])


def test_the_report_has_the_means_in_units_of_the_table_the_most_separated_feature_first(people, command, tmp_path):
    path, X, _ = people
    report = tmp_path / "r.html"
    status, printed, _ = command("cluster", path, "--drop", "person", "--no-structure", "--report", report)
    assert status == 0
    found = json.loads(command("cluster", path, "--drop", "person", "--no-structure", "--json")[1])
    clusters = np.array(found["clusters"])
    expected = [X[clusters == k].mean(axis=0) for k in (0, 1)]
    np.testing.assert_allclose(found["cluster_means"], expected, atol=1e-5)
    table = re.search(r"<h2>Means by cluster</h2>.*?</table>", report.read_text(), re.DOTALL)[0]
    titles = re.findall(r"<th>(.*?)</th>", table)
    first, second = (re.findall(r"<td>(.*?)</td>", line) for line in re.findall(r"<tr>(<td>.*)</tr>", table))
    assert titles == ["feature", "unit", "cluster 0", "cluster 1", "overall", "separation"]
    assert first[:4] == ["height", "cm", f"{expected[0][0]:.4f}", f"{expected[1][0]:.4f}"]
    assert second[:2] == ["noise", "kg"]
    assert re.search(r"^height +cm +1\d\d\.", printed, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("mass (kg)", ("mass", "kg")),
        ("rate [1/s]", ("rate", "1/s")),
        ("fat (%)", ("fat", "%")),
        ("x (2)", None),
        ("plain", None),
        ("(kg)", None),
    ],
)
def test_a_unit_is_the_end_of_a_name_in_brackets_and_not_the_number_of_a_repeated_name(name, parts):
    found = re.fullmatch(render.WITH_UNIT, name)
    assert (found and found.groups()) == parts


# Figures


@pytest.fixture(scope="module")
def wide():
    """A fitted model with a structure test, on more columns than rows."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    X = rng.standard_normal((40, 60)) + 2.0 * np.outer(2 * y - 1, np.arange(60) < 8)
    return dc.DiffracClustering(test_structure=True, random_state=0).fit(X), X


def test_the_histogram_shows_the_scores_of_points_that_were_left_out(wide):
    model, _ = wide
    scores = render.held_out_scores(model)
    labels = model.labels_
    np.testing.assert_allclose(np.abs(scores), np.abs(model.structure_.scores))
    assert scores[labels == 1].mean() > scores[labels == 0].mean()
    assert np.sum(scores < render.threshold_of(scores, model)) == np.sum(labels == 0)
    moved = np.sum((scores > render.threshold_of(scores, model)) != (labels == 1))
    assert f"{moved} of 40 are on the other side" in render.describe_held_out(scores, model)


def test_scores_of_another_split_or_of_a_sample_of_the_points_are_not_shown(wide):
    model = wide[0]
    test = SimpleNamespace(**vars(model.structure_))
    for change in ({"has_given_weights": False}, {"scores": test.scores[1:]}, {"scores": 0.0 * test.scores}):
        other = SimpleNamespace(**vars(model) | {"structure_": SimpleNamespace(**vars(test) | change)})
        assert render.held_out_scores(other) is None
    without = SimpleNamespace(coef_=model.coef_, labels_=model.labels_)
    assert render.held_out_scores(without) is None


def test_few_eigenvalues_are_not_drawn_and_bounds_are_drawn_by_iteration(wide):
    model, X = wide
    table = SimpleNamespace(X=X, names=tuple(f"g{j}" for j in range(60)), labels=None)
    captions = [figure.caption for figure in render.figures_of(model, table)]
    rank = np.sum(np.linalg.svd(model.result_.F, compute_uv=False) ** 2 > 1e-10 * len(X))
    assert any("eigenvalues" in caption for caption in captions) == (rank >= 5)
    few = dc.DiffracClustering().fit(X[:, :2])
    table = SimpleNamespace(X=X[:, :2], names=("g0", "g1"), labels=None)
    captions = [figure.caption for figure in render.figures_of(few, table)]
    assert not any("eigenvalues" in caption or "time" in caption for caption in captions)
    assert "for the points to which it was fitted" in captions[0]
