"""``diffrac-cvx cluster`` with automatically selected parameters and numbers of clusters."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.app.cli import messages
from diffrac_cvx.app.cli.automatic import choose_parameters

DEFAULTS_KEPT = "auto keeps the defaults, lambda 0, ridge 0.3, nu 1: "


@pytest.fixture
def points():
    return dc.datasets.make_planted(40, 3, noise=0.1, rng=0).X


@pytest.fixture
def file(tmp_path):
    """Return a function that writes points to a file with columns p, q, ..."""

    def write(X):
        names = ",".join("pqrstu"[: X.shape[1]])
        np.savetxt(tmp_path / "points.csv", X, delimiter=",", header=names, comments="")
        return tmp_path / "points.csv"

    return write


def test_auto_says_what_was_chosen_and_clusters_with_it_and_progress_counts(points, file, command):
    said = []
    chosen = choose_parameters(
        points, "auto", "auto", "auto", seed=0, standardize=True, seconds=None, callback=said.append
    )
    most = len(said) - 1
    assert said == [*(f"setting {k} of {most}" for k in range(1, most + 1)), "half 2 of 2 of the points"]
    given = ["--lambda", chosen.lam, "--ridge", chosen.ridge, "--nu", chosen.nu, "--json"]
    again = ["--lambda", "auto", "--ridge", "auto", "--nu", "auto", "--json"]
    first, second = (json.loads(command("cluster", file(points), *options)[1]) for options in (given, again))
    assert first["labels"] == second["labels"]
    assert (first["choice"], second["choice"]) == ("", chosen.message)
    assert f"lambda {chosen.lam:g}, ridge {chosen.ridge:g}, nu {chosen.nu:g}" in chosen.message


def test_what_is_given_is_kept(points):
    assert choose_parameters(points, 0.25, 0.5, 1.0, 4, seed=0, standardize=True, seconds=None) == (
        0.25,
        0.5,
        1.0,
        4,
        "",
    )
    found = choose_parameters(points, 0.25, "auto", 0.75, seed=0, standardize=True, seconds=None)
    assert (found.lam, found.nu) == (0.25, 0.75)


def test_the_usual_weights_are_kept_where_no_others_are_clearly_better(file, command):
    path = file(np.random.default_rng(0).standard_normal((80, 4)))
    printed = command("cluster", path, "--lambda", "auto")[1]
    assert printed.startswith(DEFAULTS_KEPT + "none of 12 settings separates")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        printed = command("cluster", path, "--lambda", "auto", "--time-limit", "0.02")[1]
    assert printed.splitlines()[0].startswith(DEFAULTS_KEPT + "there was no time")


def test_auto_finds_a_direction_of_small_variance_with_no_ridge(file, command):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 1500)
    X = rng.standard_normal((1500, 6))
    X[:, 0] = 2.0 * y + 0.3 * X[:, 0]
    path = file(X @ rng.standard_normal((6, 6)))
    found = json.loads(command("cluster", path, "--lambda", "auto", "--no-structure", "--json")[1])
    assert found["parameters"] == {"lambda": 0.0, "ridge": 0.0, "nu": 1.0}
    assert "separates held-out points better" in found["choice"]
    assert dc.metrics.adjusted_rand_score(y, found["labels"]) > 0.98


def test_the_number_of_clusters_is_chosen_and_the_curve_is_said(file, command):
    X = np.random.default_rng(0).standard_normal((90, 4)) + 6.0 * np.eye(4)[np.arange(90) % 3]
    printed = command("cluster", file(X), "--clusters", "auto")[1]
    assert printed.startswith(
        "3 clusters: the largest number with a prediction strength across half-samples of 0.8 or more"
    )
    assert "Clusters of 30, 30 and 30 points" in printed
    assert command("cluster", file(X), "--clusters", "3", "--lambda", "auto")[1].startswith(DEFAULTS_KEPT)


def test_the_file_of_features_ranks_them_and_says_what_each_adds(points, file, command, tmp_path):
    listed, report = tmp_path / "features.csv", tmp_path / "report.html"
    printed = command("cluster", file(points), "--lambda", "0.1", "--features", listed, "--report", report)[1]
    assert f"wrote {listed}" in printed
    rows = pd.read_csv(listed)
    assert list(rows) == ["feature", "weight", "selection_frequency", "marginal_gain"]
    assert sorted(rows["feature"]) == ["p", "q", "r"]
    assert (rows["weight"].abs().diff().dropna() <= 0.0).all()
    assert rows["selection_frequency"].between(0.0, 1.0).all()
    assert (rows["marginal_gain"] >= 0.0).all()
    assert "<th>cost increase if removed</th><th>selection frequency</th>" in report.read_text()
    assert command("cluster", file(points), "--features", listed, "-q")[1] == ""
    assert list(pd.read_csv(listed)) == ["feature", "weight", "marginal_gain"]


FOUND = {
    "sizes": [5, 5], "tol": 1e-3, "finished": False, "diagnostics": [], "d": 4, "label_gap": 0.25, "cost": 0.25,
    "lower_bound": 1e-5, "selected_features": ["a", "b"], "relaxation_selects_all": False, "n_excluded": 0,
}  # fmt: skip


def test_a_bound_of_nothing_is_not_called_a_proof():
    assert "Certified" not in messages.describe_bounds(FOUND)
    assert (
        "The lower bound is still weak: no split of these points costs less than 1.0e-05."
        in messages.describe_bounds(FOUND)
    )
    assert "The lower bound is weak:" in messages.describe_bounds(FOUND | {"finished": True})
    assert "Certified: no split of these points costs less than 0.1" in messages.describe_bounds(
        FOUND | {"lower_bound": 0.1}
    )


def test_features_are_called_a_choice_only_where_some_are_left_out():
    assert messages.describe_feature_count(FOUND)[0].startswith("2 of 4 features are selected")
    assert messages.describe_feature_count(FOUND | {"relaxation_selects_all": True})[0].startswith(
        "At this lambda the relaxation uses every feature"
    )
    (line,) = messages.describe_feature_count(FOUND | {"selected_features": list("abcd")})
    assert line.startswith("No feature is excluded at this lambda")
