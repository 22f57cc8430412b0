"""Mutation testing: changes are made where and as they are said, and a test that notices one is found."""

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from experiments.mutation import branches, covering, operators, patching, session
from experiments.mutation.__main__ import explanations, files_of, sample_of, table_of
from experiments.mutation.operators import Mutant, mutants, mutate

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
TESTS = """from boxes import clipped, twice

def test_a_negative_number_is_clipped_to_zero():
    assert clipped(-1.0) == 0.0

def test_a_large_number_is_clipped_to_the_limit():
    assert clipped(7.0) == 2.0

def test_a_test_that_cannot_fail():
    twice(1.0)
"""
RUN = """import os, sys, pytest
from experiments.mutation import session
from experiments.mutation.operators import mutants
os.chdir(sys.argv[1]); sys.path.insert(0, sys.argv[1])
chosen = [m for m in mutants(open("boxes.py").read(), "boxes.py") if m.change in ("min -> max", "2 * x -> 2 / x")]
tests = [f"test_boxes.py::{name}" for name in sys.argv[2:]]
run = session.MutationRun([session.Task(m, tests) for m in chosen], dict.fromkeys(tests, 0.01), 2)
pytest.main(["-s", "-q", "-p", "no:cacheprovider", "test_boxes.py"], plugins=[run])
print(*sorted(f"{o.mutant.change}: {o.verdict}: {o.by}" for o in run.outcomes), sep="\\n")
"""


@pytest.fixture
def boxes(tmp_path, monkeypatch):
    """A module that mutants are put into, loaded; with another module that has its constant."""
    (tmp_path / "boxes.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(patching, "PACKAGE", "boxes")
    yield importlib.import_module("boxes")
    sys.modules.pop("boxes")


def put(change):
    patching.put(next(mutant for mutant in mutants(SOURCE, "boxes.py") if mutant.change == change))


def test_the_usual_changes_are_found_and_texts_and_types_are_left_alone():
    assert {mutant.change for mutant in mutants(SOURCE, "boxes.py")} >= SAID
    assert not any("float" in mutant.change or "Return" in mutant.change for mutant in mutants(SOURCE, "boxes.py"))
    assert all(mutant.function for mutant in mutants(SOURCE, "boxes.py") if mutant.code != "LIMIT = 2.0")


@pytest.mark.parametrize("file", ["diffrac_cvx/metrics.py", "diffrac_cvx/solvers/factored/quasi_newton.py"])
def test_a_mutant_differs_from_the_source_in_what_it_says_and_in_nothing_else(file):
    source = (ROOT / file).read_text()
    lines = ast.unparse(ast.parse(source)).splitlines()
    for mutant in mutants(source, file):
        changed = ast.unparse(mutate(source, mutant.number)).splitlines()
        first = next(i for i, (old, new) in enumerate(zip(lines, changed, strict=False)) if old != new)
        after = mutant.change.split(" -> ")[-1]
        assert changed[first + 1 :] == lines[first + 1 :] or after == "pass", mutant
        assert after.strip("()") in changed[first] or len(after) == operators.LONGEST, mutant
        compile(mutate(source, mutant.number), file, "exec")


def test_a_changed_function_is_changed_for_those_who_imported_it(boxes):
    clipped = boxes.clipped
    assert clipped(7.0) == 2.0
    put("min -> max")
    assert clipped(7.0) == 7.5


def test_a_changed_default_a_property_a_kept_one_and_a_class_method_are_put(boxes):
    put("0.5 -> 1.5")
    assert boxes.clipped(0.25) == 1.75
    put("self.side ** 2 -> self.side * 2")
    assert boxes.Box().area == 6.0
    put("return self.area > 4.0 -> return not self.area > 4.0")
    assert boxes.Box().is_large is False
    put("LIMIT -> not LIMIT")
    assert boxes.Box.unit() is None


def test_a_changed_constant_is_changed_wherever_it_was_imported(boxes, monkeypatch):
    other = type(boxes)("boxes.other")
    other.LIMIT = boxes.LIMIT
    monkeypatch.setitem(sys.modules, "boxes.other", other)
    put("2.0 -> 3.0")
    assert boxes.LIMIT == other.LIMIT == 3.0


def test_a_mutant_of_a_function_that_is_not_there_is_refused(boxes):
    del boxes.clipped
    with pytest.raises(patching.CannotPatchError, match="clipped"):
        put("min -> max")


def test_a_mutant_is_killed_by_the_test_that_fails_and_survives_where_none_does(tmp_path):
    (tmp_path / "boxes.py").write_text(SOURCE)
    (tmp_path / "test_boxes.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    names = [line.split()[1].removesuffix("():") for line in TESTS.splitlines() if line.startswith("def")]
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path), *names], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines()[-2:] == [
        "2 * x -> 2 / x: survived: ",
        "min -> max: killed: test_boxes.py::test_a_large_number_is_clipped_to_the_limit",
    ]


def test_the_quickest_case_of_each_test_comes_first_and_the_budget_holds():
    seconds = {"a[1]": 0.3, "a[2]": 0.1, "b": 0.5, "c": 0.2}
    order = covering.alternating(seconds, seconds)
    assert order == ["a[2]", "c", "b", "a[1]"]
    assert session.within_budget(order, seconds, 0.35) == ["a[2]", "c"]
    assert session.within_budget(order, seconds, 0.65) == ["a[2]", "c", "a[1]"]
    assert session.within_budget(["b"], seconds, 0.35) == ["b"]


def test_the_tests_of_a_mutant_are_those_that_run_its_line_or_name_its_constant(tmp_path):
    file = str(tmp_path / "boxes.py")
    Path(file).write_text(SOURCE)
    by_text = {mutant.change: mutant for mutant in mutants(SOURCE, file)}
    lines = dict(enumerate(SOURCE.splitlines(), 1))
    contexts = {number: [line.strip()] for number, line in lines.items()}
    covered = covering.Coverage({file: contexts}, {line.strip(): 0.1 for line in lines.values()})
    assert covered.tests_of(by_text["min -> max"], SOURCE) == ["return min(x, most)"]
    assert covered.tests_of(by_text["2.0 -> 3.0"], SOURCE) == ["LIMIT = 2.0", "return cls() if LIMIT else None"]
    kept = covering.Coverage({file: {12: ["x += share"]}}, {"x += share": 0.1})
    assert kept.tests_of(by_text["0.5 -> 1.5"], SOURCE) == ["x += share"]  # a default: tests of the body


def test_an_explanation_counts_for_what_survived_only():
    row = next(iter(explanations()), None)
    file = files_of("metrics")[0] if row is None else row[0]
    mutant = Mutant(file, *(row[1:2] if row else ("f",)), 1, "constant", *(row[2:] if row else ("code", "1 -> 2")), 0)
    table = table_of([session.Outcome(mutant, "survived", "", 3), session.Outcome(mutant, "killed", "a", 3)], {file: 9})
    assert list(table["verdict"]) == ["survived", "killed"]
    assert table["reason"][1] == ""
    assert (table["reason"][0] != "") == (row is not None)


def test_the_same_mutants_are_sampled_each_time_and_no_more_than_there_are():
    (file,) = files_of("metrics")
    everything = mutants((ROOT / file).read_text(), file)
    assert sample_of(file, 10) == sample_of(file, 10)
    assert len(set(sample_of(file, 10))) == 10
    assert sample_of(file, 10) == sample_of(file, 20)[:10]
    assert sorted(sample_of(file, 10_000)) == sorted(everything)


def test_the_shares_of_branches_are_those_of_the_counts(tmp_path, capsys):
    names = ["num_statements", "covered_lines", "num_branches", "covered_branches"]
    counts = {"diffrac_cvx/metrics.py": (10, 10, 4, 3), "diffrac_cvx/app/cli/data.py": (70, 70, 16, 16)}
    report = {"files": {name: {"summary": dict(zip(names, row, strict=True))} for name, row in counts.items()}}
    (tmp_path / "coverage.json").write_text(json.dumps(report))
    places = ["--report", str(tmp_path / "coverage.json"), "--out", str(tmp_path / "coverage.csv")]
    assert branches.main(places) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("in all: 99.0% of statements and branches, 95.0% of")
    table = pd.read_csv(tmp_path / "coverage.csv")
    assert list(table["folder"]) == ["app", "files of the package itself"]
    table.loc[0, "branches_run"] -= 1
    assert not branches.check_coverage(table)
