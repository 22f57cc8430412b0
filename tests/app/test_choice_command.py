"""``diffrac-cvx cluster`` with weights that are chosen."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import diffrac_cvx as dc
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
    done = run.invoke(app, ["cluster", str(file), "--lambda", "auto", "--ridge", "auto", "--nu", "auto"])
    assert done.exit_code == 0, done.output
    assert f"lambda {chosen.lam:g}, ridge {chosen.ridge:g}, nu {chosen.nu:g}" in done.output
    given = ["--lambda", str(chosen.lam), "--ridge", str(chosen.ridge), "--nu", str(chosen.nu), "--json"]
    again = ["--lambda", "auto", "--ridge", "auto", "--nu", "auto", "--json"]
    first, second = (run.invoke(app, ["cluster", str(file), *options]).stdout for options in (given, again))
    assert json.loads(first)["labels"] == json.loads(second)["labels"]


def test_what_is_given_is_kept(file):
    table = np.loadtxt(file, delimiter=",", skiprows=1)
    assert choose(table, 0.25, 0.5, 1.0, seed=0, standardize=True, seconds=None) == (0.25, 0.5, 1.0, "")
    found = choose(table, 0.25, "auto", 0.75, seed=0, standardize=True, seconds=None)
    assert (found.lam, found.nu) == (0.25, 0.75)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--ridge", "much"], "neither a number nor 'auto'"),
        (["--ridge", "auto", "--labels-count", "2"], "one split in two"),
        (["--ridge", "auto", "--clusters", "3"], "one split in two"),
    ],
)
def test_what_cannot_be_chosen_is_explained(file, options, says):
    done = run.invoke(app, ["cluster", str(file), *options])
    assert done.exit_code == 2 or isinstance(done.exception, dc.ParameterError)
    assert says in " ".join((done.output + str(done.exception)).replace("│", " ").split())
