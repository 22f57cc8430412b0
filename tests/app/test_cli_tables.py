"""What the program says of a table: a command that helps and leaks nothing, options by name, columns by name."""

import csv
import json
import shlex

import numpy as np
import pandas as pd
import pytest

from diffrac_cvx.app.cli import console
from diffrac_cvx.app.cli.data import Source
from diffrac_cvx.app.cli.program import run

RNG = np.random.default_rng(0)
N = 80
SIDE = np.where(np.arange(N) % 2, 1.0, -1.0)
BASE = pd.DataFrame(2.0 * SIDE[:, None] + RNG.normal(0.0, 1.0, (N, 4)), columns=["a", "b", "c", "d"]).round(3)
CITY = RNG.choice(["Bern", "Zurich"], N)
STATE = np.where(SIDE > 0, "ill", "well")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "FIRST", 1e6)


def command(capsys, frame, *arguments, name="cluster"):
    frame.to_csv("my table.csv", index=False)
    status = run([name, "my table.csv", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def suggested(error):
    return [line.removeprefix("try: ") for line in error.splitlines() if line.startswith("try: ")]


def test_with_two_columns_of_text_what_is_suggested_makes_none_a_feature(capsys):
    frame = BASE.assign(diagnosis=STATE, city=CITY)
    status, _, error = command(capsys, frame)
    assert status == 2
    assert "never those of the outcome" in error
    assert "(--label, --one-hot, --drop)" in error
    (line,) = suggested(error)
    assert line == "diffrac-cvx cluster 'my table.csv' --label diagnosis --drop city"
    status, printed, _ = command(capsys, frame, *shlex.split(line)[3:])
    assert (status, "80 points, 4 features" in printed) == (0, True)


def test_both_ways_with_missing_values_can_be_pasted(capsys):
    frame = BASE.copy()
    frame.loc[3, "a"] = np.nan
    _, _, error = command(capsys, frame)
    assert len(suggested(error)) == 2
    for line in suggested(error):
        assert command(capsys, frame, *shlex.split(line)[3:])[0] == 0


def test_genes_as_rows_are_turned_by_what_is_suggested(capsys, tmp_path):
    frame = pd.DataFrame(RNG.normal(0.0, 1.0, (90, 20)).round(3), columns=["tumour"] * 20)
    frame.insert(0, "gene", [f"g{j}" for j in range(90)])
    status, _, error = command(capsys, frame)
    assert (status, "look like features" in error) == (2, True)
    (line,) = suggested(error)
    options = [*shlex.split(line)[3:], "--top-variance", "10", "--out", "o.csv", "--report", "r.html"]
    _, printed, _ = command(capsys, frame, *options)
    assert "20 points, 10 features" in printed
    assert "10 of 90 features" in printed
    assert sum(line.startswith("Note: ") and "'tumour (2)'" in line for line in printed.splitlines()) == 1
    rows = list(csv.DictReader((tmp_path / "o.csv").open()))
    assert [row["name"] for row in rows[:2]] == ["tumour", "tumour (2)"]
    assert "transpose=True, top_variance=10" in (tmp_path / "r.html").read_text()


def test_a_source_and_its_python_code_give_the_same_points():
    frame = pd.DataFrame(RNG.normal(0.0, 1.0, (90, 20)), columns=[f"s{i}" for i in range(20)])
    frame.insert(0, "gene", [f"g{j}" for j in range(90)])
    frame.to_csv("t.csv", index=False)
    source = Source("t.csv", transpose=True, top_variance=7)
    given: dict[str, np.ndarray] = {}
    exec("import diffrac_cvx as dc\n" + source.code(), given)
    np.testing.assert_array_equal(given["X"], source.load().X)
    assert given["X"].shape == (20, 7)


def test_a_split_that_is_one_column_is_no_answer_and_names_it(capsys):
    frame = pd.DataFrame(RNG.normal(0.0, 1.0, (N, 4)), columns=list("abcd")).assign(Zurich=(CITY == "Zurich") * 1)
    status, printed, _ = command(capsys, frame)
    assert status == 1
    assert printed.startswith("NO ANSWER: The clusters are the two values of column 'Zurich' and no more")
    status, printed, _ = command(capsys, frame, "--json")
    assert "'Zurich'" in json.loads(printed)["reservations"][0]["says"]
    status, printed, _ = command(capsys, frame, "--prove", "--tol", "0.1")
    assert "column 'Zurich' and no more" in printed


@pytest.mark.parametrize("name", ["cluster", "compare", "path"])
def test_constant_columns_are_named_and_no_warning_reaches_the_terminal(capsys, name):
    more = {"cluster": [], "compare": ["--method", "low_rank"], "path": ["--points", "2"]}[name]
    _, printed, error = command(capsys, BASE.assign(unit=1.5), *more, name=name)
    assert error == ""
    assert printed.count("constant") == 1
    assert "Note: column 'unit' is constant and carries no information." in printed


def test_a_column_that_is_too_large_is_named(capsys):
    status, _, error = command(capsys, BASE.assign(huge=BASE["a"] * 1e120))
    assert (status, "columns 'huge' of X have entries beyond" in error) == (2, True)


def test_the_option_that_helps_follows_a_note(capsys):
    frame = BASE.assign(target=(SIDE > 0) * 1, twin=BASE["a"], id=RNG.permutation(N))
    _, printed, _ = command(capsys, frame)
    assert (
        "column 'target' looks like a label, with 2 values: name it as the label if it is no feature (--label)"
        in printed
    )
    assert "'a' = 'twin'; keep one of each (--drop)" in printed
    assert "column 'id' numbers the rows, and is used as a feature: drop it if it is not one (--drop)" in printed


def test_one_feature_is_said_in_the_singular(capsys):
    _, printed, _ = command(capsys, BASE[["a"]])
    assert "80 points, one feature;" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["my table.csv", "--label", "A"], "did you mean 'a'?"),
        (["my table.cvs"], "did you mean 'my table.csv'?"),
        (["haert"], "did you mean 'heart'?"),
        (["heart", "--solver", "lowrank"], "did you mean 'low_rank'?"),
        (["heart", "--drop", "x1"], "the data set heart is read as it is: --drop is for files"),
        (["heart", "--label", "x1"], "--label is for files"),
        (["my table.csv", "--top-variance", "0"], "top_variance = 0 must be a whole number, at least 1"),
    ],
)
def test_what_is_misspelt_or_out_of_place_is_one_line(capsys, arguments, words):
    BASE.to_csv("my table.csv", index=False)
    assert run(["cluster", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
