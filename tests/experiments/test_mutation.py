"""Mutation testing: changes are applied as described, and a test that detects one is found."""

import ast
import json
from pathlib import Path

import pandas as pd
import pytest

from experiments.mutation import branches, covering, operators, trial
from experiments.mutation.experiment import EXPLAINED, KEY, explain, files_of, mutants_of, sample_of
from experiments.mutation.operators import mutants, mutate

ROOT = Path(__file__).parents[2]
SOURCE = '''"""A module: 1 + 1."""
from functools import cached_property
from typing import Any

LIMIT = 2.0


def clipped(x: float, most: float = LIMIT, *, share: float = 0.5) -> float:
    """Return x + 1, clipped."""
    if x < 0.0 or not x:
        return 0.0
    x += share
    return min(x, most)


def twice(x: float) -> float:
    return 2 * x


class Box:
    side: float = 3.0

    @property
    def area(self) -> float:
        return self.side**2

    @cached_property
    def is_large(self) -> bool:
        return self.area > 4.0

    @classmethod
    def unit(cls) -> Any:
        return cls() if LIMIT else None


def halvings(x: float) -> int:
    count = 0
    while x > 1.0:
        x /= 2.0
        count += 1
    return count
'''
SAID = {
    "2.0 -> 3.0",
    "x < 0.0 -> x <= 0.0",
    "x < 0.0 -> x >= 0.0",
    "x < 0.0 or not x -> x < 0.0 and (not x)",
    "x < 0.0 or not x -> not (x < 0.0 or not x)",
    "LIMIT -> not LIMIT",
    "not x -> x",
    "0.0 -> 1.0",
    "0.5 -> 1.5",
    "x += share -> x -= share",
    "x += share -> pass",
    "return min(x, most) -> return 2 * min(x, most)",
    "min -> max",
    "2 * x -> 2 / x",
    "self.side ** 2 -> self.side * 2",
    "return self.area > 4.0 -> return not self.area > 4.0",
}
TESTS = """from boxes import Box, clipped, halvings, twice

def test_a_large_number_is_clipped_to_the_limit():
    assert clipped(7.0) == 2.0

def test_a_box_has_an_area():
    assert Box().area == 9.0

def test_four_is_halved_twice():
    assert halvings(4.0) == 2

def test_a_test_that_cannot_fail():
    twice(1.0)
"""


def test_the_usual_changes_are_found_and_texts_and_types_are_left_alone():
    assert {mutant.change for mutant in mutants(SOURCE)} >= SAID
    assert not any("float" in mutant.change or "Return" in mutant.change for mutant in mutants(SOURCE))
    assert all(mutant.function for mutant in mutants(SOURCE) if mutant.code != "LIMIT = 2.0")


def test_a_mutant_differs_from_the_source_in_what_it_says_and_in_nothing_else():
    source = (ROOT / "diffrac_cvx/metrics.py").read_text()
    lines = ast.unparse(ast.parse(source)).splitlines()
    for mutant in mutants(source)[::3]:
        changed = ast.unparse(mutate(source, mutant.number)).splitlines()
        first = next(i for i, (old, new) in enumerate(zip(lines, changed, strict=False)) if old != new)
        after = mutant.change.split(" -> ")[-1]
        assert changed[first + 1 :] == lines[first + 1 :] or after == "pass", mutant
        assert after.strip("()") in changed[first] or len(after) == operators.LONGEST, mutant


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("min -> max", "test_boxes.py::test_a_large_number_is_clipped_to_the_limit"),
        ("self.side ** 2 -> self.side * 2", "test_boxes.py::test_a_box_has_an_area"),
        ("x /= 2.0 -> pass", trial.ENDED),
        ("LIMIT -> not LIMIT", ""),
    ],
)
def test_a_mutant_is_killed_by_the_test_that_fails_and_survives_where_none_does(tmp_path, monkeypatch, change, found):
    for name, text in (("boxes.py", SOURCE), ("test_boxes.py", TESTS), ("pytest.ini", "[pytest]\n")):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # plugins take most of the time here
    monkeypatch.setattr(trial, "ROOT", tmp_path)
    monkeypatch.setattr(trial, "AT_LEAST", 0.7 if found == trial.ENDED else 60.0)
    monkeypatch.setattr(trial, "warm_up", lambda: None)
    number = next((mutant.number for mutant in mutants(SOURCE) if mutant.change == change), None)
    names = [line.split()[1].removesuffix("():") for line in TESTS.splitlines() if line.startswith("def")]
    seconds = {f"test_boxes.py::{name}": 0.01 for name in names}
    assert trial.first_failure(seconds, "boxes.py", number) == found


def test_the_quickest_case_of_each_test_comes_first_and_the_budget_holds():
    seconds = {"a[1]": 0.3, "a[2]": 0.1, "b": 0.5, "c": 0.2}
    order = covering.alternating(seconds, seconds)
    assert order == ["a[2]", "c", "b", "a[1]"]
    assert covering.within_budget(order, seconds, 0.35) == ["a[2]", "c"]
    assert covering.within_budget(order, seconds, 0.65) == ["a[2]", "c", "a[1]"]
    assert covering.within_budget(["b"], seconds, 0.35) == ["b"]


def test_the_tests_of_a_mutant_are_those_that_run_its_line_or_name_its_constant(tmp_path, monkeypatch):
    file = str(tmp_path / "boxes.py")
    Path(file).write_text(SOURCE)
    line_of = {key: mutant.line for mutant in mutants(SOURCE) for key in (mutant.change, mutant.code)}
    contexts = {number: {line.strip()} for number, line in enumerate(SOURCE.splitlines(), 1)}
    monkeypatch.setattr(covering, "read_contexts", {file: contexts}.get)
    monkeypatch.setattr(covering, "read_seconds", lambda: {line.strip(): 0.1 for line in SOURCE.splitlines()})
    assert covering.choose_tests(file, line_of["min -> max"], [file]) == ["return min(x, most)"]
    found = covering.choose_tests(file, line_of["LIMIT = 2.0"], [file])
    assert found == ["LIMIT = 2.0", "return cls() if LIMIT else None"]
    of_a_default = covering.choose_tests(file, line_of["0.5 -> 1.5"], [file])
    assert {"if x < 0.0 or not x:", "return min(x, most)"} < set(of_a_default)


def test_an_explanation_counts_for_what_survived_only():
    known = pd.read_csv(EXPLAINED, keep_default_na=False)
    table = explain(pd.concat([known[KEY].assign(verdict=verdict) for verdict in ("survived", "killed")]).reset_index())
    assert list(table["reason"]) == [*known["reason"], *[""] * len(known)]
    assert (known["reason"] != "").all()


def test_every_explanation_is_of_a_change_of_the_library_as_it_is():
    known = pd.read_csv(EXPLAINED, keep_default_na=False)
    for file, rows in known.groupby("file"):
        possible = {(mutant.function, mutant.code, mutant.change) for mutant in mutants_of(str(file))}
        assert {*rows[KEY[1:]].itertuples(index=False, name=None)} <= possible


def test_the_same_mutants_are_sampled_each_time_and_no_more_than_there_are():
    (file,) = files_of("metrics")
    assert len(set(sample_of(file, 10))) == 10
    assert sample_of(file, 10) == sample_of(file, 20)[:10]
    assert sorted(sample_of(file, 10_000)) == sorted(mutants_of(file))


def test_the_coverages_of_branches_are_those_of_the_counts(tmp_path, capsys):
    names = ["num_statements", "covered_lines", "num_branches", "covered_branches"]
    counts = {"diffrac_cvx/metrics.py": (10, 10, 4, 3), "diffrac_cvx/app/cli/data.py": (70, 70, 16, 16)}
    report = {"files": {name: {"summary": dict(zip(names, row, strict=True))} for name, row in counts.items()}}
    (tmp_path / "coverage.json").write_text(json.dumps(report))
    places = ["--report", str(tmp_path / "coverage.json"), "--out", str(tmp_path / "coverage.csv")]
    assert branches.main(places) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("total: 99.0% of statements and branches, 95.0% of")
    table = pd.read_csv(tmp_path / "coverage.csv")
    assert list(table["folder"]) == ["app", "files of the package itself"]
    table.loc[0, "branches_run"] -= 1
    assert not branches.check_coverage(table)
