"""``diffrac-cvx cluster`` with weights that are chosen."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import diffrac_cvx as dc
from diffrac_cvx.app.cli import words
from diffrac_cvx.app.cli.automatic import choose
from diffrac_cvx.app.cli.program import app

run = CliRunner()


@pytest.fixture
def file(tmp_path):
    planted = dc.datasets.make_planted(40, 3, noise=0.1, rng=0)
    path = tmp_path / "points.csv"
    np.savetxt(path, planted.X, delimiter=",", header="p,q,r", comments="")
    return path


def test_auto_says_what_was_chosen_and_clusters_with_it(file):
    table = np.loadtxt(file, delimiter=",", skiprows=1)
    chosen = choose(table, "auto", "auto", "auto", seed=0, standardize=True, seconds=None)
    given = ["--lambda", str(chosen.lam), "--ridge", str(chosen.ridge), "--nu", str(chosen.nu), "--json"]
    again = ["--lambda", "auto", "--ridge", "auto", "--nu", "auto", "--json"]
    first, second = (json.loads(run.invoke(app, ["cluster", str(file), *options]).stdout) for options in (given, again))
    assert first["labels"] == second["labels"]
    assert (first["choice"], second["choice"]) == ("", chosen.says)
    assert f"lambda {chosen.lam:g}, ridge {chosen.ridge:g}, nu {chosen.nu:g}" in chosen.says


def test_what_is_given_is_kept(file):
    table = np.loadtxt(file, delimiter=",", skiprows=1)
    assert choose(table, 0.25, 0.5, 1.0, 4, seed=0, standardize=True, seconds=None) == (0.25, 0.5, 1.0, 4, "")
    found = choose(table, 0.25, "auto", 0.75, seed=0, standardize=True, seconds=None)
    assert (found.lam, found.nu) == (0.25, 0.75)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--ridge", "much"], "neither a number nor 'auto'"),
        (["--ridge", "auto", "--labels-count", "2"], "one split in two"),
        (["--clusters", "1"], "1 clusters: ask for 2 or more"),
        (["--clusters", "many"], "neither a whole number nor 'auto'"),
        (["--clusters", "auto", "--prove"], "about two clusters"),
        (["--features", "f.csv", "--labels-count", "2"], "leave --labels-count out"),
    ],
)
def test_what_cannot_be_chosen_is_explained(file, options, says):
    done = run.invoke(app, ["cluster", str(file), *options])
    assert done.exit_code == 2 or isinstance(done.exception, dc.ParameterError)
    assert says in " ".join((done.output + str(done.exception)).replace("│", " ").split())


def cluster(*arguments):
    return run.invoke(app, ["cluster", *map(str, arguments)])


@pytest.fixture
def three(tmp_path):
    """Three groups in four columns of ninety rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4)) + 6.0 * np.eye(4)[np.arange(90) % 3]
    path = tmp_path / "three.csv"
    np.savetxt(path, X, delimiter=",", header="p,q,r,s", comments="")
    return path


def test_auto_says_that_the_usual_weights_are_kept_where_no_others_are_clearly_better(tmp_path):
    path = tmp_path / "noise.csv"
    np.savetxt(path, np.random.default_rng(0).standard_normal((80, 4)), delimiter=",", header="p,q,r,s", comments="")
    done = cluster(path, "--lambda", "auto")
    first = done.stdout.splitlines()[0]
    assert first.startswith("auto keeps the usual weights, lambda 0, ridge 0.3, nu 1: none of 12 settings separates")


def test_auto_finds_a_direction_of_small_variance_with_no_ridge(tmp_path):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 1500)
    X = rng.standard_normal((1500, 6))
    X[:, 0] = 2.0 * y + 0.3 * X[:, 0]
    np.savetxt(tmp_path / "t.csv", X @ rng.standard_normal((6, 6)), delimiter=",", header="a,b,c,d,e,f", comments="")
    found = json.loads(cluster(tmp_path / "t.csv", "--lambda", "auto", "--json").stdout)
    assert found["weights"] == {"lambda": 0.0, "ridge": 0.0, "nu": 1.0}
    assert "separated better" in found["choice"]
    assert dc.metrics.adjusted_rand_index(y, found["labels"]) > 0.98


def test_the_number_of_clusters_is_chosen_and_the_curve_is_said(three):
    done = cluster(three, "--clusters", "auto")
    assert done.stdout.startswith("3 clusters: of the numbers that halves of the points find alike (0.8 or more) it is")
    assert "Clusters of 30, 30 and 30 points" in done.stdout
    weights = cluster(three, "--clusters", "3", "--lambda", "auto")
    assert weights.stdout.startswith("auto keeps the usual weights")


def test_too_few_rows_for_a_number_of_clusters_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("p,q\n1,2\n3,4\n5,7\n2,2\n")
    assert "4 are too few" in str(cluster(tmp_path / "t.csv", "--clusters", "auto").exception)


def test_a_choice_whose_time_ends_is_said_all_the_same_and_warns_of_nothing_else(three):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = cluster(three, "--lambda", "auto", "--time-limit", "0.02")
    assert done.stdout.splitlines()[0].startswith(
        "auto keeps the usual weights, lambda 0, ridge 0.3, nu 1: the time did"
    )


def test_the_progress_counts_settings_and_halves(file):
    table, said = np.loadtxt(file, delimiter=",", skiprows=1), []
    choose(table, "auto", "auto", 1.0, seed=0, standardize=True, seconds=None, say=said.append)
    assert said == [*(f"setting {k} of 12" for k in range(1, 13)), "half 2 of 2 of the points"]


def test_the_file_of_features_ranks_them_and_says_what_each_adds(file, tmp_path):
    listed, report = tmp_path / "features.csv", tmp_path / "report.html"
    done = cluster(file, "--lambda", "0.1", "--features", listed, "--report", report)
    assert f"wrote {listed}" in done.stdout
    rows = pd.read_csv(listed)
    assert list(rows) == ["feature", "weight", "selection_frequency", "marginal_gain"]
    assert sorted(rows["feature"]) == ["p", "q", "r"]
    assert (rows["weight"].abs().diff().dropna() <= 0.0).all()
    assert rows["selection_frequency"].between(0.0, 1.0).all()
    assert (rows["marginal_gain"] >= 0.0).all()
    text = report.read_text()
    assert "<th>adds</th><th>chosen</th>" in text
    plain = pd.read_csv(listed) if not cluster(file, "--features", listed, "-q").stdout else None
    assert list(plain) == ["feature", "weight", "marginal_gain"]


def test_the_table_itself_is_never_replaced_by_its_features(file):
    assert "would replace" in str(cluster(file, "--features", file).exception)


FOUND = {
    "sizes": [5, 5], "tol": 1e-3, "finished": False, "reservations": [], "d": 4, "label_gap": 0.25, "cost": 0.25,
    "lower_bound": 1e-5, "features_in_use": ["a", "b"], "relaxation_uses_all": False,
}  # fmt: skip


def test_a_bound_of_nothing_is_not_called_a_proof():
    assert "Proved" not in words.proof_of(FOUND)
    assert "Nothing is proved of other splits yet" in words.proof_of(FOUND)
    assert "Nothing is proved of other splits:" in words.proof_of(FOUND | {"finished": True})
    assert "Proved: no split of these points costs less than 0.1" in words.proof_of(FOUND | {"lower_bound": 0.1})


def test_features_are_called_a_choice_only_where_some_are_left_out():
    assert words.count_of(FOUND)[0].startswith("2 of 4 features carry the answer")
    assert words.count_of(FOUND | {"relaxation_uses_all": True})[0].startswith(
        "No feature is left out of the relaxation"
    )
    (line,) = words.count_of(FOUND | {"features_in_use": list("abcd")})
    assert line.startswith("No feature is left out at this lambda")
