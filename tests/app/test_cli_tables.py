"""Messages of the program on tables: suggested commands, options and columns by name."""

import csv
import re
import shlex
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from diffrac_cvx import registry
from diffrac_cvx.app.answer import STATUS_WORDS
from diffrac_cvx.problem.result import Status

RNG = np.random.default_rng(0)
N = 80
SIDE = np.where(np.arange(N) % 2, 1.0, -1.0)
BASE = pd.DataFrame(2.0 * SIDE[:, None] + RNG.normal(0.0, 1.0, (N, 4)), columns=["a", "b", "c", "d"]).round(3)
CITY = RNG.choice(["Bern", "Zurich"], N)
STATE = np.where(SIDE > 0, "ill", "well")
GENES = pd.DataFrame(RNG.normal(0.0, 1.0, (90, 20)).round(3), columns=["tumour"] * 20)
GENES.insert(0, "gene", [f"g{j}" for j in range(90)])


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def on_table(command):
    """Return a function that runs a command on a table in the current folder."""

    def run_command(frame, *arguments, name="cluster"):
        frame.to_csv("my table.csv", index=False)
        return command(name, "my table.csv", *["--no-structure"] * (name == "cluster"), *arguments)

    return run_command


def suggested(error):
    return [line.removeprefix("try: ") for line in error.splitlines() if line.startswith("try: ")]


def test_a_command_that_is_suggested_reads_the_table(on_table):
    frame = BASE.assign(diagnosis=STATE, city=CITY).astype(object)
    frame.loc[3, "a"] = "?"
    status, _, error = on_table(frame)
    assert (status, "never the outcome" in error, "(--drop, --na-values)" in error) == (2, True, True)
    lines = suggested(error)
    repaired = (
        "diffrac-cvx cluster 'my table.csv' --no-structure --drop diagnosis --drop city --na-values '?' --missing"
    )
    assert lines == [f"{repaired} drop", f"{repaired} mean"]
    found = [on_table(frame, *shlex.split(line)[3:]) for line in lines]
    assert [status for status, *_ in found] == [0, 0]
    assert {re.search(r"\d+ points", printed)[0] for _, printed, _ in found} == {"79 points", "80 points"}


def test_a_line_of_units_and_one_of_the_source_are_left_out_by_what_is_suggested(command, tmp_path):
    text = BASE.round(1).to_csv(index=False).splitlines()
    for lines, option in (
        ([text[0], ",mm,kg,", *text[1:]], "--na-values mm --na-values kg"),
        ([*text, "Source: me"], "--na-values 'Source: me'"),
    ):
        (tmp_path / "t.csv").write_text("\n".join(lines))
        status, _, error = command("cluster", "t.csv", "--no-structure")
        (line,) = suggested(error)
        assert (status, line) == (2, f"diffrac-cvx cluster t.csv --no-structure {option}")
        assert "80 points, 4 features" in command(*shlex.split(line)[1:])[1]


def test_the_other_reading_of_the_first_line_is_suggested_if_a_named_column_is_absent(command, tmp_path):
    rows = "".join(f"P{i},{i % 7},{i * i % 11}\n" for i in range(30))
    for text, name, header in (("name,0,0.5\n" + rows, "name", "yes"), ("P,3,5\n" + rows, "x1", "no")):
        (tmp_path / "t.csv").write_text(text)
        status, _, error = command("cluster", "t.csv", "--no-structure", "--drop", name)
        (line,) = suggested(error)
        assert (status, line) == (2, f"diffrac-cvx cluster t.csv --no-structure --drop {name} --header {header}")
        assert f"{30 + (header == 'no')} points, 2 features" in command(*shlex.split(line)[1:])[1]


def test_nothing_that_fails_is_suggested(on_table):
    marks = BASE.assign(a=[f"{value:.1f}".replace(".", ".,"[i % 2]) for i, value in enumerate(BASE["a"])])
    _, _, error = on_table(marks)
    assert "one decimal mark" in error
    assert suggested(error) == []


def test_genes_as_rows_are_transposed_and_their_largest_variances_selected(on_table, tmp_path):
    status, _, error = on_table(GENES)
    assert (status, "if 'gene' names features, transpose the table (--drop, --transpose)" in error) == (2, True)
    assert suggested(error)[1] == "diffrac-cvx cluster 'my table.csv' --no-structure --transpose"
    options = ["--transpose", "--top-variance", "10", "--out", "o.csv", "--report", "r.html"]
    _, printed, _ = on_table(GENES, *options)
    assert "20 points, 10 features" in printed
    assert "10 of 90 features" in printed
    assert sum(line.startswith("Note: columns with equal names were renamed") for line in printed.splitlines()) == 1
    rows = list(csv.DictReader((tmp_path / "o.csv").open()))
    assert [row["name"] for row in rows[:2]] == ["tumour", "tumour (2)"]
    assert "transpose=True, top_variance=10" in (tmp_path / "r.html").read_text()


def test_a_column_that_is_too_large_is_named_and_the_option_that_helps_follows_a_note(on_table):
    status, _, error = on_table(BASE.assign(huge=BASE["a"] * 1e120))
    assert (status, "columns 'huge' of X have magnitudes outside" in error) == (2, True)
    frame = BASE.assign(id=np.arange(N) + 7, age=np.where(SIDE > 0, 999, np.arange(N) % 50))
    _, printed, _ = on_table(frame)
    assert "column 'id' numbers the rows but is used as a feature. Drop it if it is not one (--drop)." in printed
    assert "column 'age' is 999 in 40 rows, far from the others. If it is missing, say so (--na-values)." in printed
    (checked,) = [line for line in printed.splitlines() if line.startswith("Check these features first: ")]
    assert all(words in checked for words in ("'id' numbers the rows", "'age' is 999 in 40 rows"))
    assert "Check these features" not in on_table(BASE)[1]
    assert "80 points, one feature;" in on_table(BASE[["a"]])[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["my table.csv", "--classes", "A"], "Did you mean 'a'?"),
        (["my table.cvs"], "Did you mean 'my table.csv'?"),
        (["haert"], "Did you mean 'heart'?"),
        (["heart", "--solver", "lowrank"], "Did you mean 'low_rank'?"),
        (["heart", "--known", "x1"], "--known does not apply to the data set 'heart'"),
        (["heart", "--drop", "x1"], "--drop does not apply to the data set 'heart', only to files"),
        (["heart", "--classes", "x1"], "--classes does not apply to the data set 'heart'"),
        (["my table.csv", "--top-variance", "0"], "top_variance = 0 must be a positive integer"),
        (["my table.csv", "--clusters", "1000"], "n_clusters = 1000 is more than the"),
        (["my table.csv", "--clusters", "many"], "neither an integer nor 'auto'"),
        (["my table.csv", "--header", "perhaps"], "neither yes nor no"),
        (["my table.csv", "--skip-rows", "2-"], "neither a number of lines nor a range"),
    ],
)
def test_what_is_misspelled_or_out_of_place_is_one_line(command, arguments, words):
    BASE.to_csv("my table.csv", index=False)
    status, _, error = command("cluster", *arguments)
    assert status == 2
    assert words in error
    assert error.count("\n") == 1


# Warnings of the library that name Python parameters do not reach the terminal


@pytest.mark.parametrize("arguments", ["compare -m low_rank", "compare -m k-means", "cluster"])
def test_constant_columns_are_named_and_no_warning_reaches_the_terminal(on_table, arguments):
    name, *more = arguments.split()
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        _, printed, error = on_table(BASE.assign(unit=1.5), *more, name=name)
    assert not [one for one in leaked if not issubclass(one.category, ResourceWarning)]
    assert "arn" not in error
    assert "constant" not in error
    assert printed.count("constant") == 1
    assert "Note: constant columns carry no information: 'unit'." in printed


@pytest.mark.parametrize("status", [Status.MAX_ITER, Status.TIME_LIMIT, Status.SMOOTHED_GAP, Status.STALLED])
def test_the_program_gives_no_advice_on_what_is_no_option_of_it(status, monkeypatch, command):
    right = registry.SOLVERS["low_rank"]

    def ended(*arguments, **options):
        return replace(right.function(*arguments, **options), status=status)

    monkeypatch.setitem(registry.SOLVERS, "low_rank", replace(right, function=ended))
    printed = command("compare", "heart", "-m", "low_rank")[1]
    (said,) = [line for line in printed.splitlines() if line.startswith("low_rank: ")]
    assert re.search(r"max_iter|(?<!-)\btime_limit|epsilon|larger tol", said) is None
    assert said == f"low_rank: {STATUS_WORDS[status]}"
